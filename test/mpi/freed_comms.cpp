// Communicators that are freed while messages, RTRs or cancels of theirs are in flight, and others
// that get their context id afterwards.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <unistd.h>

using namespace overlap::test;

namespace {
constexpr int large = 1 << 20;
}

TEST_CASE("A message that nobody received does not reach the next communicator") {
  for (int turn = 0; turn < 150; ++turn) {
    const std::size_t n = turn % 3 == 0 ? 16 : turn % 3 == 1 ? 900 : 9000;
    MPI_Comm first, second;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    if (sender()) {
      const Bytes left_over = pattern(n, 1);
      std::vector<MPI_Request> requests(1 + turn % 5);
      for (MPI_Request& request : requests)
        MPI_Isend(left_over.data(), static_cast<int>(std::min<std::size_t>(n, 900)), MPI_BYTE,
                  partner(), 1, first, &request);
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Comm_free(&first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    if (sender()) {
      const Bytes fresh = pattern(n, 2 + static_cast<std::uint64_t>(turn));
      MPI_Send(fresh.data(), static_cast<int>(n), MPI_BYTE, partner(), 1, second);
    } else if (receiver()) {
      Bytes in = empty(n);
      MPI_Status status;
      MPI_Recv(in.data(), static_cast<int>(n), MPI_BYTE, MPI_ANY_SOURCE, 1, second, &status);
      INFO("turn " << turn);
      REQUIRE(count_of(status) == static_cast<int>(n));
      REQUIRE(holds(in, n, 2 + static_cast<std::uint64_t>(turn)));
    }
    MPI_Comm_free(&second);
  }
}

TEST_CASE("A receive whose sender has freed the communicator can be cancelled") {
  for (const bool warm : {false, true}) {
    for (int turn = 0; turn < 10; ++turn) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      // A first message makes the receiver speculate from then on.
      if (warm && sender()) MPI_Send(&turn, 1, MPI_INT, partner(), 2, comm);
      if (sender()) {
        if (turn % 2 == 0) poke(std::chrono::milliseconds(2));  // its RTR arrives before the free
        MPI_Comm_free(&comm);
        tell(partner());
        continue;
      }
      if (receiver()) {
        int value = 0;
        if (warm) MPI_Recv(&value, 1, MPI_INT, partner(), 2, comm, MPI_STATUS_IGNORE);
        Bytes in = empty(large);
        MPI_Request request;
        MPI_Irecv(in.data(), large, MPI_BYTE, partner(), 3, comm, &request);
        await(partner());
        MPI_Cancel(&request);
        MPI_Status status;
        MPI_Wait(&request, &status);
        int cancelled = 0;
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled == 1);
        CHECK(holds(in, 0, 0));
      }
      MPI_Comm_free(&comm);
    }
  }
}

TEST_CASE("Both sides free a communicator with receives cancelled and messages never received") {
  for (int turn = 0; turn < 60; ++turn) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (paired()) {
      Bytes in = empty(large), out = pattern(large, 5);
      MPI_Request never, some[2];
      MPI_Irecv(in.data(), large, MPI_BYTE, partner(), 9, comm, &never);
      int got = -1;
      MPI_Irecv(&got, 1, MPI_INT, partner(), 4, comm, &some[0]);
      MPI_Isend(&turn, 1, MPI_INT, partner(), 4, comm, &some[1]);
      MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
      CHECK(got == turn);
      MPI_Request lost;  // received by nobody
      MPI_Isend(out.data(), 100, MPI_BYTE, partner(), 8, comm, &lost);
      MPI_Wait(&lost, MPI_STATUS_IGNORE);
      MPI_Cancel(&never);
      MPI_Wait(&never, MPI_STATUS_IGNORE);
      CHECK(holds(in, 0, 0));
    }
    MPI_Comm_free(&comm);
  }
}

TEST_CASE("A message that a matched probe has taken outlives its communicator") {
  for (const std::size_t n : {std::size_t{8}, std::size_t{large}}) {
    for (const bool blocking : {true, false}) {
      CAPTURE(n, blocking);
      MPI_Comm comm, next;
      MPI_Request request = MPI_REQUEST_NULL;
      const Bytes data = pattern(n, 5);
      Bytes in = empty(n);
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      if (sender())
        MPI_Isend(data.data(), static_cast<int>(n), MPI_BYTE, partner(), 3, comm, &request);
      else if (receiver())
        MPI_Mprobe(partner(), 3, comm, &message, MPI_STATUS_IGNORE);
      MPI_Comm_free(&comm);
      MPI_Comm_dup(MPI_COMM_WORLD, &next);
      if (receiver()) {
        // What was the communicator's is something else now.
        std::vector<Bytes> others;
        for (std::size_t bytes = 64; bytes < 4096; bytes += 16) others.emplace_back(bytes, 0xEE);
        if (blocking) {
          MPI_Mrecv(in.data(), static_cast<int>(n), MPI_BYTE, &message, &status);
        } else {
          MPI_Imrecv(in.data(), static_cast<int>(n), MPI_BYTE, &message, &request);
          MPI_Wait(&request, &status);
        }
        CHECK(status.MPI_SOURCE == partner());
        CHECK(status.MPI_TAG == 3);
        CHECK(count_of(status) == static_cast<int>(n));
        CHECK(holds(in, n, 5));
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Comm_free(&next);
    }
  }
}
