// Pauses behind sends in exchanges through shared memory: how many there are where none helps.
// That they end turns is a matter of time: see the unit test of ExchangePace.
//
// Runs with pml/speculative only.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <algorithm>
#include <array>
#include <vector>

using namespace overlap::test;

namespace {

constexpr int messages = 2000;

/// Nobody pauses where processes share cores, or threads the lock, or no fragment is returned.
bool may_pause() {
  int threads = 0;
  MPI_Query_thread(&threads);
  return !over_tcp() && !over_ring() && threads != MPI_THREAD_MULTIPLE &&
         !set_to("OMPI_MCA_mpi_yield_when_idle", "1");
}

}  // namespace

TEST_CASE("Where each message is ahead of its receive there are few pauses") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 2048;
  const auto answers = GENERATE(&MPI_Send, &MPI_Bsend);
  Bytes attached(1U << 20U);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  Scene scene;
  Counters count;
  const auto before = count["exchange_pauses"];
  const Bytes question = pattern(n, 1), answer = pattern(n, 2);
  std::vector<Bytes> in(messages, empty(n));
  if (sender()) {
    for (int i = 0; i < messages; ++i) MPI_Send(question.data(), n, MPI_BYTE, 1, 3, scene.comm);
  }
  scene.meet();
  for (Bytes& each : in) {
    if (!sender() && !receiver()) break;
    MPI_Recv(each.data(), n, MPI_BYTE, sender() ? 1 : 0, 3, scene.comm, MPI_STATUS_IGNORE);
    if (receiver()) answers(answer.data(), n, MPI_BYTE, 0, 3, scene.comm);
  }
  void* detached = nullptr;
  int detached_bytes = 0;
  MPI_Buffer_detach(static_cast<void*>(&detached), &detached_bytes);
  if (!sender() && !receiver()) return;
  CHECK(
      std::ranges::all_of(in, [](const Bytes& each) { return holds(each, n, sender() ? 2 : 1); }));
  // 1, 3, 7 .. of them are not paused for, each time that it has not helped.
  const auto pauses = count["exchange_pauses"] - before;
  if (!may_pause()) {
    CHECK(pauses == 0);
  } else if (receiver()) {
    CHECK(pauses > 0);
    CHECK(pauses <= 100);
  }
}

TEST_CASE("Processes that send two messages in a row to each other pause for few") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 2048;
  Scene scene;
  Counters count;
  const auto before = count["exchange_pauses"];
  const Bytes data = pattern(n, 1);
  std::array<Bytes, 2> in{empty(n), empty(n)};
  const int other = 1 - rank();
  for (int i = 0; i < messages && (sender() || receiver()); ++i) {
    std::array<MPI_Request, 2> sends{};
    for (MPI_Request& send : sends)
      MPI_Isend(data.data(), n, MPI_BYTE, other, 3, scene.comm, &send);
    for (Bytes& each : in)
      MPI_Recv(each.data(), n, MPI_BYTE, other, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Waitall(2, sends.data(), MPI_STATUSES_IGNORE);
  }
  if (!sender() && !receiver()) return;
  CHECK(holds(in[0], n, 1));
  CHECK(holds(in[1], n, 1));
  const auto pauses = count["exchange_pauses"] - before;
  CHECK(pauses <= (may_pause() ? 100 : 0));
}

TEST_CASE("Nobody pauses behind small messages, and behind messages to itself") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters count;
  const auto before = count["exchange_pauses"];
  bool ok = true;
  for (const int n : {0, 8, 999, 1000, 4000}) {
    const int to = n < 1000 ? 1 - rank() : rank();
    if (!sender() && !receiver()) break;
    Bytes in = empty(n);
    for (int i = 0; i < messages / 10; ++i) {
      const Bytes data = pattern(n, i);
      MPI_Request send;
      MPI_Isend(data.data(), n, MPI_BYTE, to, 3, scene.comm, &send);
      MPI_Recv(in.data(), n, MPI_BYTE, to, 3, scene.comm, MPI_STATUS_IGNORE);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      ok = ok && holds(in, n, i);
    }
  }
  CHECK(ok);
  CHECK(count["exchange_pauses"] == before);
}
