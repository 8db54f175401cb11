// P4.3: windows of other components than osc/newrma. Their components enter BTLs outside the
// progress lock, so an interrupt thread must not: nothing moves until somebody calls MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr int bytes = 24 << 20;  // more than sockets take in
constexpr int tag = 5;

struct Window {
  long long word = 0;
  MPI_Win win = MPI_WIN_NULL;

  Window() { MPI_Win_create(&word, sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &win); }
  ~Window() { MPI_Win_free(&win); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};

/// With Open MPI 4.1 they leave btl/tcp alone.
bool served_beside_windows() { return interrupts() && over_tcp() && OMPI_MAJOR_VERSION == 4; }

/// A message whose receiver comes first; then both compute.
/// @returns  at the receiver: whether it has arrived meanwhile
bool arrives_while_computing(Steps& steps, int& step, std::uint64_t seed, bool expected) {
  const Bytes whole = pattern(bytes, seed);
  Bytes data = sender() ? whole : empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  if (receiver()) MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
  { const OutsideMpi turn(steps, step); }
  if (sender()) MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
  bool arrived = false;
  {
    const OutsideMpi computing(steps, step);
    const auto is_there = [&] {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes it
      return data.back() == whole.back() && data == whole;
    };
    if (receiver() && expected) arrived = watch_until(is_there);
    if (receiver() && !expected) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      arrived = is_there();
    }
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (receiver()) CHECK(data == whole);
  return arrived;
}

}  // namespace

TEST_CASE("P4.3: no progress outside MPI beside other components' windows, and again after them") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  const auto check = [&](std::uint64_t seed, bool expected) {
    scene.meet();
    const bool arrived = arrives_while_computing(steps, step, seed, expected);
    if (receiver()) CHECK(arrived == expected);
  };
  check(10, interrupts());
  {
    const Window window;
    check(20, served_beside_windows());
    check(30, served_beside_windows());
  }
  check(40, interrupts());
}
