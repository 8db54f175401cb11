// Field: a receive is cancelled while its sender makes no MPI call, and MPI_Wait returns all the
// same; what the sender has sent, or sends later, reaches the next receive that matches.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <array>

using namespace overlap::test;

namespace {

constexpr int bytes = 300'000;
constexpr int tag = 3;

/// Does a cancel wait for the sender's answer here? Where others write into a receive's memory.
bool waits_for_sender() {
  return is("cancel", "sender") || (!over_tcp() && direct() && !without_rtrs()) || over_ring();
}

MPI_Request post(Bytes& data, int from_tag = tag) {
  data = empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), from_tag, MPI_COMM_WORLD, &request);
  return request;
}

/// @returns  whether it was cancelled
bool cancel_and_wait(MPI_Request& request) {
  MPI_Cancel(&request);
  MPI_Status status{};
  MPI_Wait(&request, &status);
  int flag = 0;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

/// Messages of the envelope before, so that nothing is the first of its kind.
void warm_up() {
  Bytes data = pattern(bytes, 1);
  if (sender()) {
    await(partner());
    MPI_Send(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD);
  } else {
    MPI_Request request = post(data);
    poke(microseconds(1000));
    tell(partner());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

void send_each(int count) {
  for (int i = 0; i < count; ++i) {
    const Bytes data = pattern(static_cast<std::size_t>(bytes - i), 40 + static_cast<unsigned>(i));
    MPI_Send(data.data(), bytes - i, MPI_BYTE, partner(), tag, MPI_COMM_WORLD);
  }
}

bool holds_message(const Bytes& data, int i) {
  return holds(data, static_cast<std::size_t>(bytes - i), 40 + static_cast<unsigned>(i));
}

}  // namespace

TEST_CASE("Field: the sender is outside MPI until the receiver's MPI_Wait has returned") {
  if (waits_for_sender()) return;
  Steps steps;
  warm_up();
  if (receiver()) {
    Bytes data;
    MPI_Request request = post(data);
    poke(microseconds(2000));  // the RTR is out
    CHECK(cancel_and_wait(request));
    data.assign(bytes, 0x11);  // the buffer is the caller's again
    steps.reach(1);
    std::array<Bytes, 2> next;
    for (int i = 0; i < 2; ++i) {
      MPI_Request matching = post(next[i]);
      MPI_Wait(&matching, MPI_STATUS_IGNORE);
      CHECK(holds_message(next[i], i));
    }
    CHECK(data == Bytes(bytes, 0x11));
  } else if (sender()) {
    steps.wait_for(1);
    send_each(2);
  }
}

TEST_CASE("Field: the sender has used the RTR, and leaves MPI, before the receive is cancelled") {
  if (waits_for_sender()) return;
  Steps steps;
  int base = 0;
  for (const bool probes : {false, true}) {
    warm_up();
    if (receiver()) {
      Bytes data;
      MPI_Request request = post(data);
      poke(microseconds(2000));
      tell(partner());
      steps.wait_for(base + 1);  // its message is on the way, or waits for room
      const bool cancelled = cancel_and_wait(request);
      if (cancelled) data.assign(bytes, 0x11);
      steps.reach(base + 2);
      if (!cancelled) {
        CHECK(holds_message(data, 0));
      } else {
        Bytes next = empty(bytes);
        if (probes) {
          MPI_Message message = MPI_MESSAGE_NULL;
          MPI_Status status{};
          MPI_Mprobe(partner(), tag, MPI_COMM_WORLD, &message, &status);
          CHECK(count_of(status) == bytes);
          MPI_Mrecv(next.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        } else {
          MPI_Recv(next.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
        }
        CHECK(holds_message(next, 0));
        CHECK(data == Bytes(bytes, 0x11));
      }
    } else if (sender()) {
      await(partner());
      poke(microseconds(2000));  // the RTR is here
      const Bytes data = pattern(bytes, 40);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
      steps.reach(base + 1);
      steps.wait_for(base + 2);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    base += 2;
  }
}

TEST_CASE("Field: receives behind a cancelled one get the messages that its RTR was used for") {
  if (waits_for_sender()) return;
  Steps steps;
  for (int victim = 0; victim < 3; ++victim) {
    warm_up();
    if (receiver()) {
      std::array<Bytes, 3> data;
      std::array<MPI_Request, 3> requests;
      for (int i = 0; i < 3; ++i) requests[i] = post(data[i]);
      poke(microseconds(2000));
      CHECK(cancel_and_wait(requests[victim]));
      data[victim].assign(bytes, 0x11);
      steps.reach(victim + 1);
      MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
      Bytes last;
      MPI_Request matching = post(last);
      MPI_Wait(&matching, MPI_STATUS_IGNORE);
      int number = 0;
      for (int i = 0; i < 3; ++i) {
        INFO("victim " << victim << " receive " << i);
        if (i != victim) CHECK(holds_message(data[i], number++));
      }
      CHECK(holds_message(last, number));
      CHECK(data[victim] == Bytes(bytes, 0x11));
    } else if (sender()) {
      steps.wait_for(victim + 1);
      send_each(3);
    }
  }
}

TEST_CASE("Field: a synchronous send does not end before a receive has matched it") {
  if (waits_for_sender()) return;
  Steps steps;
  warm_up();
  if (receiver()) {
    Bytes data;
    MPI_Request request = post(data);
    poke(microseconds(2000));
    tell(partner());
    steps.wait_for(1);
    const bool cancelled = cancel_and_wait(request);
    poke(microseconds(20'000));
    if (cancelled) CHECK(steps.now() == 1);
    Bytes next = empty(bytes);
    if (cancelled)
      MPI_Recv(next.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds_message(cancelled ? next : data, 0));
  } else if (sender()) {
    await(partner());
    poke(microseconds(2000));
    const Bytes data = pattern(bytes, 40);
    steps.reach(1);
    MPI_Ssend(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD);
    steps.reach(2);
  }
}

TEST_CASE("Field: communicators with cancelled receives are freed") {
  if (waits_for_sender()) return;
  for (int round = 0; round < 5; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (receiver()) {
      Bytes data = empty(bytes);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Recv(data.data(), 1, MPI_BYTE, partner(), tag, comm, MPI_STATUS_IGNORE);
      MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), tag, comm, &request);
      poke(microseconds(500));
      CHECK(cancel_and_wait(request));
    } else if (sender()) {
      const char byte = 0;
      MPI_Send(&byte, 1, MPI_BYTE, partner(), tag, comm);
    }
    MPI_Comm_free(&comm);
  }
}
