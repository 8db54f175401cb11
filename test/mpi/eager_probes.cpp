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

/// Messages that come while their receiver makes no call but the one that looks for them.
struct Probed {
  Scene scene;
  Steps steps;
  Counters count;
  std::uint64_t before = 0;  ///< messages that were copied before they were received

  Probed() {
    MPI_Barrier(scene.comm);
    before = copied();
  }
  std::uint64_t copied() { return count["unexpected_copied"]; }
  /// The sender's part. It is the receiver's to reach 2 * number + 1, and to look then.
  void send(int number = 0) {
    const Bytes data = pattern(n, number);
    steps.wait_for(2 * number + 1);
    MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
    steps.reach(2 * number + 2);
  }
  void receive(int number = 0) {
    Bytes in = empty(n);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, number));
  }
};
}  // namespace

// A copy to memory of its own, and a second one to where it belongs, took a third longer.
TEST_CASE("A message that is probed for and received is copied once") {
  TWO_RANKS_WITH_COUNTERS();
  const bool matched = GENERATE(true, false);
  CAPTURE(matched);
  Probed probed;
  for (int i = 0; i < 20; ++i) {
    if (sender()) {
      probed.send(i);
    } else {
      MPI_Status status;
      MPI_Message message = MPI_MESSAGE_NULL;
      Bytes in = empty(n);
      probed.steps.reach(2 * i + 1);
      if (matched) {
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, probed.scene.comm, &message, &status);
        MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      } else {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, probed.scene.comm, &status);
        MPI_Recv(in.data(), n, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, probed.scene.comm,
                 MPI_STATUS_IGNORE);
      }
      CHECK(holds(in, n, i));
      CHECK(status.MPI_TAG == 3);
      probed.steps.wait_for(2 * i + 2);
    }
  }
  // A thread that progresses looks for nothing.
  if (receiver() && !interrupts()) CHECK(probed.copied() == probed.before);
  MPI_Barrier(probed.scene.comm);
}

// One of 25 came in the call of MPI_Send.
TEST_CASE("An answer that comes before MPI_Send has ended is copied once") {
  TWO_RANKS_WITH_COUNTERS();
  Probed probed;
  const Bytes out = pattern(n, 1);
  Bytes in = empty(n);
  for (int i = 0; i < 2000; ++i) {
    if (sender()) MPI_Send(out.data(), n, MPI_BYTE, 1, 3, probed.scene.comm);
    MPI_Recv(in.data(), n, MPI_BYTE, partner(), 3, probed.scene.comm, MPI_STATUS_IGNORE);
    if (receiver()) MPI_Send(out.data(), n, MPI_BYTE, 0, 3, probed.scene.comm);
  }
  CHECK(holds(in, n, 1));
  if (!interrupts()) CHECK(probed.copied() == probed.before);
  MPI_Barrier(probed.scene.comm);
}

TEST_CASE("A message that is probed for keeps its place, and holds its sender up for one call") {
  TWO_RANKS_WITH_COUNTERS();
  const bool tests = GENERATE(true, false);
  CAPTURE(tests);
  Probed probed;
  MPI_Comm comm = probed.scene.comm;
  if (sender()) {
    probed.send();
    const Bytes last = pattern(10, 2);
    MPI_Send(last.data(), 10, MPI_BYTE, 1, 3, comm);
  } else {
    MPI_Status status;
    probed.steps.reach(1);
    MPI_Probe(0, 3, comm, &status);
    int bytes = 0, flag = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK(bytes == n);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(nullptr, 0, MPI_BYTE, 0, 4, comm, &request);
    if (tests)
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    else
      MPI_Iprobe(0, 5, comm, &flag, MPI_STATUS_IGNORE);
    CHECK_FALSE(flag);
    probed.steps.wait_for(2);  // without another call
    if (are_read()) CHECK(probed.copied() == probed.before + 1);
    Bytes short_in = empty(10);
    probed.receive();
    MPI_Recv(short_in.data(), 10, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
    CHECK(holds(short_in, 10, 2));
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
}

// The thread that progresses connects to nobody.
TEST_CASE("The first message of a communicator is copied where it is probed for, too") {
  TWO_RANKS_WITH_COUNTERS();
  Probed probed;
  MPI_Comm fresh = MPI_COMM_NULL;
  MPI_Comm_dup(probed.scene.comm, &fresh);
  MPI_Request request = MPI_REQUEST_NULL;
  Bytes large = pattern(1 << 20, 1);
  if (sender()) {
    const Bytes data = pattern(n, 0);
    probed.steps.wait_for(1);
    MPI_Send(data.data(), n, MPI_BYTE, 1, 3, fresh);
    probed.steps.reach(2);
    MPI_Send(large.data(), 1 << 20, MPI_BYTE, 1, 4, probed.scene.comm);
  } else {
    // Something for the thread to wait for.
    large = empty(1 << 20);
    MPI_Irecv(large.data(), 1 << 20, MPI_BYTE, 0, 4, probed.scene.comm, &request);
    const auto pushed = probed.count["unexpected_pushed"];
    int flag = 0;
    probed.steps.reach(1);
    while (flag == 0) MPI_Iprobe(0, 3, fresh, &flag, MPI_STATUS_IGNORE);
    if (interrupts()) probed.steps.wait_for(2);
    if (are_read()) CHECK(probed.count["unexpected_pushed"] == pushed);
    Bytes in = empty(n);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, fresh, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 0));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(large, 1 << 20, 1));
  }
  MPI_Comm_free(&fresh);
  MPI_Barrier(probed.scene.comm);
}

// Nobody else rings for it: when it came nothing waited for it, and the thread slept or parked.
TEST_CASE("The thread copies what a probe has found, whether or not anything else waits") {
  TWO_RANKS_WITH_COUNTERS();
  const bool has_other = GENERATE(true, false);
  CAPTURE(has_other);
  Probed probed;
  MPI_Comm comm = probed.scene.comm;
  Bytes large = empty(1 << 20);
  MPI_Request request = MPI_REQUEST_NULL;
  if (sender()) {
    large = pattern(1 << 20, 1);
    probed.send();
    if (has_other) MPI_Send(large.data(), 1 << 20, MPI_BYTE, 1, 4, comm);
  } else {
    if (has_other) MPI_Irecv(large.data(), 1 << 20, MPI_BYTE, 0, 4, comm, &request);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    probed.steps.reach(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int flag = 0;
    while (flag == 0) MPI_Iprobe(0, 3, comm, &flag, MPI_STATUS_IGNORE);
    if (interrupts()) probed.steps.wait_for(2);
    probed.receive();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (has_other) CHECK(holds(large, 1 << 20, 1));
  }
  MPI_Barrier(comm);
}

TEST_CASE("A matched probe that holds its message does not hold its sender up") {
  TWO_RANKS_WITH_COUNTERS();
  Probed probed;
  MPI_Comm comm = probed.scene.comm;
  if (sender()) {
    probed.send();
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 4, comm);
  } else {
    MPI_Message message = MPI_MESSAGE_NULL;
    Bytes in = empty(n);
    probed.steps.reach(1);
    MPI_Mprobe(0, 3, comm, &message, MPI_STATUS_IGNORE);
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 4, comm, MPI_STATUS_IGNORE);
    MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 0));
  }
  MPI_Barrier(comm);
}

TEST_CASE("A probe that finds a message again and again does not hold its sender up") {
  TWO_RANKS_WITH_COUNTERS();
  Probed probed;
  if (sender()) {
    probed.send();
  } else {
    int flag = 0;
    probed.steps.reach(1);
    while (probed.steps.now() < 2) MPI_Iprobe(0, 3, probed.scene.comm, &flag, MPI_STATUS_IGNORE);
    probed.receive();
  }
  MPI_Barrier(probed.scene.comm);
}

// Behind probes and sends that have waited, too.
TEST_CASE("A message that comes in another call is copied in its turn") {
  TWO_RANKS_WITH_COUNTERS();
  Probed probed;
  MPI_Comm comm = probed.scene.comm;
  const Bytes data = pattern(n, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  if (sender()) {
    Bytes in = empty(n);
    probed.send();
    MPI_Recv(in.data(), n, MPI_BYTE, 1, 3, comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 1));
    MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, comm, &request);
    probed.steps.reach(3);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    int flag = 0;
    probed.steps.reach(1);
    MPI_Probe(0, 3, comm, MPI_STATUS_IGNORE);
    probed.receive();
    MPI_Irecv(nullptr, 0, MPI_BYTE, 0, 4, comm, &request);
    MPI_Send(data.data(), n, MPI_BYTE, 0, 3, comm);
    const auto before = probed.copied();
    probed.steps.wait_for(3);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (are_read() && !interrupts()) CHECK(probed.copied() == before + 1);
    probed.receive(1);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
}

// The last one: it cannot be undone.
TEST_CASE("A message that is probed for comes where the kernel refuses to copy, too") {
  TWO_RANKS_WITH_COUNTERS();
  Probed probed;
  if (sender()) {
    probed.send();
  } else {
    if (!forbid(SYS_process_vm_readv)) WARN("this system knows no filters");
    probed.steps.reach(1);
    MPI_Probe(0, 3, probed.scene.comm, MPI_STATUS_IGNORE);
    probed.receive();
  }
  MPI_Barrier(probed.scene.comm);
}
