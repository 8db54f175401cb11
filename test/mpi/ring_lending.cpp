// Buffers that are used often are lent to the adapter by senders that compute meanwhile, and copied
// by those that wait for them (P3.3).
//
// Run it with slots that 60,000 bytes fit into, and with btl_ring_frequent_fraction 1.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <unistd.h>

using namespace overlap::test;

namespace {

constexpr int bytes = 60000;

/// Messages sent without a copy, or -1 when btl/ring is not in use.
long long lent() {
  int provided = 0, index = -1, count = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (MPI_T_pvar_get_index("btl_ring_in_place_sent", MPI_T_PVAR_CLASS_COUNTER, &index) !=
      MPI_SUCCESS)
    return -1;
  static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  static MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  if (session == MPI_T_PVAR_SESSION_NULL) {
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, nullptr, &handle, &count);
  }
  unsigned long long value = 0;
  MPI_T_pvar_read(session, handle, &value);
  return static_cast<long long>(value);
}

/// Send `count` messages from one buffer. @returns  those that were lent
template <class Between>
long long exchange(Bytes& buffer, int count, Between&& between) {
  const long long before = lent();
  for (int i = 0; i < count; ++i) {
    if (sender()) {
      MPI_Request request;
      fill(buffer.data(), buffer.size(), static_cast<std::uint64_t>(i));
      MPI_Isend(buffer.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, &request);
      between();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (receiver()) {
      MPI_Recv(buffer.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      REQUIRE(holds(buffer, bytes, static_cast<std::uint64_t>(i)));
    }
    if (i % 16 != 15) continue;  // the ring never fills
    if (sender()) await(partner());
    if (receiver()) tell(partner());
  }
  return lent() - before;
}

}  // namespace

TEST_CASE("P3.3 who computes lends its buffers, who waits for them copies them") {
  Bytes buffer = empty(bytes);
  static_cast<void>(exchange(buffer, 64, [] { usleep(5000); }));  // ring, uses of the buffer
  const long long computing = exchange(buffer, 200, [] { usleep(5000); });
  const long long waiting = exchange(buffer, 3000, [] {});
  REQUIRE(lent() >= 0);
  if (!sender()) return;
  // Most of them: on a busy host some who wait do not run, and some who compute wait afterwards.
  CHECK(computing > 100);
  CHECK(waiting >= 1);  // it has tried
  CHECK(waiting < 1500);
}
