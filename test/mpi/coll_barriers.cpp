// Field: barriers, checked by their meaning: nobody leaves before the last has entered.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

#include <mpi-ext.h>

#include <deque>

using namespace overlap::test;

namespace {

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
constexpr auto init_barrier = MPIX_Barrier_init;
#define HAVE_PERSISTENT_BARRIERS
#elif MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
constexpr auto init_barrier = MPI_Barrier_init;
#define HAVE_PERSISTENT_BARRIERS
#endif

long barriers(long otherwise) { return setting("OVERLAP_TEST_BARRIERS", otherwise); }

/// Now and then somebody comes late.
void skew(std::mt19937& random, unsigned of) {
  if (random() % of == 0) compute(std::chrono::microseconds(random() % 200));
}

}  // namespace

TEST_CASE("Barriers that block, one behind the other") {
  Board board;
  // Ranks that share processors take longer for each.
  const long all = barriers(size() <= 2 ? 100000 : size() <= 4 ? 20000 : 5000);
  long wrong = 0;
  for (long i = 1; i <= all; ++i) {
    board.enter(static_cast<std::uint64_t>(i));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!board.entered(static_cast<std::uint64_t>(i))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("Barriers that block, with skewed ranks") {
  Board board;
  std::mt19937 random(static_cast<unsigned>(rank()));
  long wrong = 0;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    skew(random, 3);
    board.enter(i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!board.entered(i)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("Barriers that do not block: tested, waited for, waited for later") {
  Board board;
  std::mt19937 random(static_cast<unsigned>(rank()));
  long wrong = 0;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    skew(random, 20);
    board.enter(i);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (i % 3 == 0) skew(random, 2);
    int done = i % 3 == 1 ? 0 : 1;
    while (done == 0) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (i % 3 != 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL);
    if (!board.entered(i)) ++wrong;
  }
  CHECK(wrong == 0);
}

// Open MPI's own modules set some of it only.
TEST_CASE("An ended barrier leaves an empty status") {
  if (!mq_is_chosen()) return;
  MPI_Request request;
  MPI_Status status;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  int count = -1, cancelled = -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(count == 0);
  CHECK(cancelled == 0);
}

TEST_CASE("Pipelined barriers: more under way than any window has room for") {
  Board board;
  for (const std::size_t depth : {3U, 64U, 300U}) {
    std::deque<MPI_Request> under_way;
    std::uint64_t ended = 0, entered = 0;
    long wrong = 0;
    std::mt19937 random(static_cast<unsigned>(rank()) + 7);
    Board::meet();
    board.enter(0);
    Board::meet();
    const auto end_one = [&] {
      MPI_Wait(&under_way.front(), MPI_STATUS_IGNORE);
      under_way.pop_front();
      if (!board.entered(++ended)) ++wrong;
    };
    while (entered < 3 * depth + 100) {
      skew(random, 50);
      board.enter(++entered);
      under_way.emplace_back();
      MPI_Ibarrier(MPI_COMM_WORLD, &under_way.back());
      while (under_way.size() >= depth) end_one();
    }
    while (!under_way.empty()) end_one();
    CHECK(wrong == 0);
  }
}

TEST_CASE("Barriers in the order of the calls, ended in another") {
  Board board;
  std::vector<MPI_Request> requests(40);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    board.enter(i + 1);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
  }
  for (std::size_t left = requests.size(); left > 0; --left) {
    MPI_Wait(&requests[left - 1], MPI_STATUS_IGNORE);
    CHECK(board.entered(left));
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

TEST_CASE("Blocking and non-blocking ones of a communicator mix") {
  Board board;
  std::mt19937 same(3);
  std::mt19937 random(static_cast<unsigned>(rank()) + 1);
  std::vector<MPI_Request> requests;
  long wrong = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    skew(random, 40);
    board.enter(i);
    if (same() % 3 == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (!board.entered(i)) ++wrong;
    } else {
      requests.emplace_back();
      MPI_Ibarrier(MPI_COMM_WORLD, &requests.back());
    }
    if (requests.size() == 30) {
      MPI_Waitall(30, requests.data(), MPI_STATUSES_IGNORE);
      if (!board.entered(i)) ++wrong;
      requests.clear();
    }
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  CHECK(wrong == 0);
}

TEST_CASE("Beside point-to-point messages") {
  Board board;
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const std::size_t n = i % 5 == 0 ? 200000 : 100 * i;
    const Bytes out = pattern(n, i + static_cast<std::uint64_t>(rank()));
    Bytes in = empty(n);
    MPI_Request requests[3];
    MPI_Irecv(in.data(), static_cast<int>(n), MPI_BYTE, left, 5, MPI_COMM_WORLD, &requests[0]);
    board.enter(i);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out.data(), static_cast<int>(n), MPI_BYTE, right, 5, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    REQUIRE(board.entered(i));
    REQUIRE(holds(in, n, i + static_cast<std::uint64_t>(left)));
  }
}

TEST_CASE("Beside one-sided operations") {
  Board board;
  std::uint64_t* memory = nullptr;
  MPI_Win win;
  MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  *memory = 0;
  MPI_Win_fence(0, win);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    MPI_Request request;
    board.enter(i);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    const std::uint64_t one = 1;
    MPI_Accumulate(&one, 1, MPI_UINT64_T, (rank() + 1) % size(), 0, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(board.entered(i));
    REQUIRE(*memory == i);
    MPI_Win_fence(0, win);
  }
  MPI_Win_free(&win);
}

TEST_CASE("A barrier may be neither freed nor cancelled") {
  if (!mq_is_chosen()) return;
  const ErrorsReturn world(MPI_COMM_WORLD);
  MPI_Request request;
  Board::meet();
  if (rank() != 0) Board::meet();  // rank 0 is late
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  CHECK(MPI_Cancel(&request) != MPI_SUCCESS);
  if (rank() == 0) Board::meet();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
}

#ifdef HAVE_PERSISTENT_BARRIERS
TEST_CASE("Persistent barriers are started again and again") {
  Board board(2);
  MPI_Request requests[2];
  for (MPI_Request& each : requests) init_barrier(MPI_COMM_WORLD, MPI_INFO_NULL, &each);
  std::mt19937 random(static_cast<unsigned>(rank()) + 5);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    skew(random, 50);
    board.enter(i, 0);
    MPI_Start(&requests[0]);
    if (i % 2 == 0) {
      board.enter(i / 2, 1);
      MPI_Start(&requests[1]);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      REQUIRE(board.entered(i / 2, 1));
    }
    if (i % 7 == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    REQUIRE(board.entered(i, 0));
    REQUIRE(requests[0] != MPI_REQUEST_NULL);
  }
  MPI_Status status;
  int done = 0;
  MPI_Test(&requests[0], &done, &status);  // inactive
  CHECK(done == 1);
  for (MPI_Request& each : requests) MPI_Request_free(&each);
}

// Open MPI's own modules do not hold the communicator.
TEST_CASE("A persistent barrier outlives its communicator's handle") {
  if (!mq_is_chosen()) return;
  Board board;
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  init_barrier(comm, MPI_INFO_NULL, &request);
  MPI_Comm_free(&comm);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    board.enter(i);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(board.entered(i));
  }
  MPI_Request_free(&request);
}
#endif

TEST_CASE("The component under test makes them") {
  if (!mq_is_chosen() || size() < 2) return;
  const MqCount blocking("barriers"), nonblocking("nonblocking"), sent("messages_sent");
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(blocking.value() == 1);
  CHECK(nonblocking.value() == 1);
  CHECK(sent.value() >= 2);
}
