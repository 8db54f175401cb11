// A sandbox that forbids the kernel's copies between processes from the start: operations go as
// messages, and the kernel is asked once for a window, not for each of them.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "sandbox.hpp"
#include "scene.hpp"

namespace {

using namespace overlap::test;

constexpr int origin = 0, target = 1;

#if defined(__x86_64__)
/// Open an epoch for one put, and close it.
void put_once(const Window& window, const Bytes& data, int how, MPI_Group other) {
  const auto put = [&] {
    const int n = static_cast<int>(data.size());
    MPI_Put(data.data(), n, MPI_BYTE, target, window.at(target, 0), n, MPI_BYTE, window.win);
  };
  if (how == 0) {
    if (rank() == origin) {
      MPI_Win_start(other, 0, window.win);
      put();
      MPI_Win_complete(window.win);
    } else {
      MPI_Win_post(other, 0, window.win);
      MPI_Win_wait(window.win);
    }
  } else if (how == 1) {
    MPI_Win_fence(0, window.win);
    if (rank() == origin) put();
    MPI_Win_fence(0, window.win);
  } else {
    if (rank() == origin) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
      put();
      MPI_Win_unlock(target, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
#endif

}  // namespace

// The only one: it cannot be undone, and what came before would have asked already.
TEST_CASE("The kernel is asked once where it refuses all copies") {
#if !defined(__x86_64__)
  WARN("only x86-64 says how to count refused system calls");
#else
  if (size() != 2) return;
  if (rank() == origin && !count_refusals()) {
    WARN("this system knows no filters");
    return;
  }
  MPI_Group all = MPI_GROUP_NULL, other = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  const int other_rank = 1 - rank();
  MPI_Group_incl(all, 1, &other_rank, &other);
  for (const int n : {64, 4096, 256 * 1024}) {
    for (const int how : {0, 1, 2}) {
      const Window window(static_cast<std::size_t>(n));
      const sig_atomic_t before = refused;
      for (int i = 0; i < 50; ++i) put_once(window, pattern(n, n + i), how, other);
      INFO(n << " bytes, epoch " << how);
      CHECK(refused - before <= 3);
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank() == target) {
        const auto* first = static_cast<const char*>(static_cast<const void*>(window.memory));
        const Bytes wanted = pattern(n, n + 49);
        CHECK(std::memcmp(first, wanted.data(), static_cast<std::size_t>(n)) == 0);
      }
    }
  }
  MPI_Group_free(&other);
  MPI_Group_free(&all);
#endif
}
