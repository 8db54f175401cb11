// Messages that could go eagerly through shared memory and are read by their receiver instead:
// those that it probes for.
//
// Runs with pml/speculative only; what it expects follows the OMPI_MCA_ variables that mpirun hands
// on.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

namespace {
constexpr int n = 16384;

/// The sender's part: it sends when the receiver makes no call but the one that looks for it.
void send_when_looked_for(const Scene& scene, Steps& steps, int number) {
  const Bytes data = pattern(n, number);
  steps.wait_for(2 * number + 1);
  MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
  steps.reach(2 * number + 2);
}
}  // namespace

// A copy to memory of its own, and a second one to where it belongs, took a third longer.
TEST_CASE("A message that is probed for and received is copied once") {
  TWO_RANKS_WITH_COUNTERS();
  const bool matched = GENERATE(true, false);
  CAPTURE(matched);
  constexpr int messages = 20;
  Scene scene;
  Steps steps;
  Counters count;
  MPI_Barrier(scene.comm);
  const auto before = count["unexpected_copied"];
  for (int i = 0; i < messages; ++i) {
    if (sender()) {
      send_when_looked_for(scene, steps, i);
    } else {
      MPI_Status status;
      MPI_Message message = MPI_MESSAGE_NULL;
      Bytes in = empty(n);
      steps.reach(2 * i + 1);
      if (matched) {
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, scene.comm, &message, &status);
        MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      } else {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, scene.comm, &status);
        MPI_Recv(in.data(), n, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, scene.comm,
                 MPI_STATUS_IGNORE);
      }
      CHECK(holds(in, n, i));
      CHECK(status.MPI_TAG == 3);
      steps.wait_for(2 * i + 2);
    }
  }
  // A thread that progresses looks for nothing.
  if (receiver() && !interrupts()) CHECK(count["unexpected_copied"] == before);
  MPI_Barrier(scene.comm);
}

TEST_CASE("A message that is probed for keeps its place, and holds its sender up for one call") {
  TWO_RANKS_WITH_COUNTERS();
  const bool tests = GENERATE(true, false);
  CAPTURE(tests);
  Scene scene;
  Steps steps;
  Counters count;
  MPI_Barrier(scene.comm);
  const auto before = count["unexpected_copied"];
  if (sender()) {
    send_when_looked_for(scene, steps, 0);
    const Bytes last = pattern(10, 2);
    MPI_Send(last.data(), 10, MPI_BYTE, 1, 3, scene.comm);
  } else {
    MPI_Status status;
    steps.reach(1);
    MPI_Probe(0, 3, scene.comm, &status);
    int bytes = 0, flag = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK(bytes == n);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(nullptr, 0, MPI_BYTE, 0, 4, scene.comm, &request);
    if (tests)
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    else
      MPI_Iprobe(0, 5, scene.comm, &flag, MPI_STATUS_IGNORE);
    CHECK_FALSE(flag);
    steps.wait_for(2);  // without another call
    if (are_read()) CHECK(count["unexpected_copied"] == before + 1);
    Bytes in = empty(n), short_in = empty(10);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Recv(short_in.data(), 10, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 0));
    CHECK(holds(short_in, 10, 2));
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(scene.comm);
}

TEST_CASE("A matched probe that holds its message does not hold its sender up") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  MPI_Barrier(scene.comm);
  if (sender()) {
    send_when_looked_for(scene, steps, 0);
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 4, scene.comm);
  } else {
    MPI_Message message = MPI_MESSAGE_NULL;
    Bytes in = empty(n);
    steps.reach(1);
    MPI_Mprobe(0, 3, scene.comm, &message, MPI_STATUS_IGNORE);
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 4, scene.comm, MPI_STATUS_IGNORE);
    MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 0));
  }
  MPI_Barrier(scene.comm);
}

TEST_CASE("A probe that finds a message again and again does not hold its sender up") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  MPI_Barrier(scene.comm);
  if (sender()) {
    send_when_looked_for(scene, steps, 0);
  } else {
    int flag = 0;
    Bytes in = empty(n);
    steps.reach(1);
    while (steps.now() < 2) MPI_Iprobe(0, 3, scene.comm, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 0));
  }
  MPI_Barrier(scene.comm);
}

// Behind probes and sends that have waited, too.
TEST_CASE("A message that comes in another call is copied in its turn") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  Counters count;
  MPI_Barrier(scene.comm);
  if (sender()) {
    send_when_looked_for(scene, steps, 0);
    Bytes in = empty(n);
    MPI_Recv(in.data(), n, MPI_BYTE, 1, 3, scene.comm, MPI_STATUS_IGNORE);
    const Bytes data = pattern(n, 1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
    steps.reach(3);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    Bytes in = empty(n);
    const Bytes data = pattern(n, 1);
    MPI_Request request = MPI_REQUEST_NULL;
    int flag = 0;
    steps.reach(1);
    MPI_Probe(0, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Irecv(nullptr, 0, MPI_BYTE, 0, 4, scene.comm, &request);
    MPI_Send(data.data(), n, MPI_BYTE, 0, 3, scene.comm);
    const auto before = count["unexpected_copied"];
    steps.wait_for(3);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (are_read() && !interrupts()) CHECK(count["unexpected_copied"] == before + 1);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 1));
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(scene.comm);
}

// The last one: it cannot be undone.
TEST_CASE("A message that is probed for comes where the kernel refuses to copy, too") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  MPI_Barrier(scene.comm);
  if (sender()) {
    send_when_looked_for(scene, steps, 0);
  } else {
    if (!forbid(SYS_process_vm_readv)) WARN("this system knows no filters");
    Bytes in = empty(n);
    steps.reach(1);
    MPI_Probe(0, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 0));
  }
  MPI_Barrier(scene.comm);
}
