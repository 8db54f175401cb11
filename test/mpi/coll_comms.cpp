// Field: barriers on communicators that come and go: duplicates, parts, intercommunicators, freed
// with one outstanding.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

using namespace overlap::test;

namespace {

int rounds() { return static_cast<int>(setting("OVERLAP_TEST_ROUNDS", 60)); }

void skew(std::mt19937& random) {
  if (random() % 8 == 0) compute(std::chrono::microseconds(random() % 300));
}

/// One barrier of a communicator whose members are `members`, blocking or not.
bool one_barrier(MPI_Comm comm, Board& board, std::span<const int> members, std::uint64_t number,
                 bool blocking, std::size_t row = 0) {
  board.enter(number, row);
  if (blocking) {
    MPI_Barrier(comm);
  } else {
    MPI_Request request;
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return board.entered(number, row, members);
}

}  // namespace

TEST_CASE("Freed with a barrier outstanding; the number is used again at once") {
  Board board;
  std::mt19937 random(static_cast<unsigned>(rank()));
  for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(rounds()); ++round) {
    MPI_Comm comm;
    MPI_Request requests[3];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    skew(random);
    board.enter(round);
    for (MPI_Request& each : requests) MPI_Ibarrier(comm, &each);
    MPI_Comm_free(&comm);
    skew(random);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    REQUIRE(board.entered(round));
  }
}

TEST_CASE("Several freed with barriers outstanding, waited for in another order") {
  Board board;
  for (std::uint64_t round = 1; round <= 20; ++round) {
    std::vector<MPI_Request> requests(8);
    board.enter(round);
    for (MPI_Request& each : requests) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      MPI_Ibarrier(comm, &each);
      MPI_Comm_free(&comm);
    }
    std::mt19937 random(static_cast<unsigned>(rank()) + static_cast<unsigned>(round));
    std::shuffle(requests.begin(), requests.end(), random);
    for (MPI_Request& each : requests) MPI_Wait(&each, MPI_STATUS_IGNORE);
    REQUIRE(board.entered(round));
  }
}

TEST_CASE("A root frees the communicator before its broadcasts are received, and makes another") {
  // Rank 1 answers the root for the first communicator, when the root has the second one with the
  // same number, of which rank 2 is the member that rank 1 was of the first.
  if (size() < 3 || rank() > 2) return;
  const auto pair = [](int other) {
    MPI_Group world, both;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int members[] = {0, other};
    MPI_Group_incl(world, 2, members, &both);
    MPI_Comm comm;
    MPI_Comm_create_group(MPI_COMM_WORLD, both, other, &comm);
    MPI_Group_free(&both);
    MPI_Group_free(&world);
    return comm;
  };
  const auto let_go = [](int to) { MPI_Send(nullptr, 0, MPI_INT, to, 9, MPI_COMM_WORLD); };
  const auto wait_for = [](int from) {
    MPI_Recv(nullptr, 0, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  if (rank() < 2) {
    MPI_Comm first = pair(1);
    if (rank() == 1) wait_for(0);
    // Less than the window, so that the root need not wait, but enough to be asked.
    const auto window = static_cast<int>(setting("OMPI_MCA_coll_mq_window", 64));
    for (int i = 0; i < window - 1 - window / 20; ++i) {
      int value = rank() == 0 ? i : -1;
      MPI_Request request;
      MPI_Ibcast(&value, 1, MPI_INT, 0, first, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      REQUIRE(value == i);
    }
    MPI_Comm_free(&first);
    if (rank() == 1) let_go(0);
  }
  if (rank() == 1) return;
  MPI_Comm second = pair(2);
  if (rank() == 0) {
    let_go(1);
    wait_for(1);
    let_go(2);
  } else {
    wait_for(0);
  }
  for (int i = 0; i < 100; ++i) {
    int mine = rank() + i, sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, second, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(sum == 2 + 2 * i);
  }
  MPI_Comm_free(&second);
}

TEST_CASE("A barrier at one rank, a broadcast at the other: the barrier reports it") {
  // A device's barrier sees no messages of other collectives.
  if (!mq_is_chosen() || device_is_used() || size() < 2 || rank() > 1) return;
  MPI_Comm pair;
  MPI_Group world, both;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int members[] = {0, 1};
  MPI_Group_incl(world, 2, members, &both);
  MPI_Comm_create_group(MPI_COMM_WORLD, both, 7, &pair);
  MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
  const auto meet = [] {
    MPI_Sendrecv(nullptr, 0, MPI_INT, 1 - rank(), 8, nullptr, 0, MPI_INT, 1 - rank(), 8,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  if (rank() == 1) {
    std::vector<char> two_segments(16384);
    MPI_Request request;
    MPI_Ibcast(two_segments.data(), 16384, MPI_CHAR, 1, pair, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 10; ++i) meet();
  if (rank() == 0) CHECK(MPI_Barrier(pair) != MPI_SUCCESS);
  meet();
  MPI_Group_free(&both);
  MPI_Group_free(&world);
  MPI_Comm_free(&pair);
}

TEST_CASE("Random parts of the job, each with barriers of its own") {
  Board board;
  std::mt19937 same(11);
  std::mt19937 random(static_cast<unsigned>(rank()));
  std::uint64_t number = 0;
  for (int round = 0; round < rounds(); ++round) {
    int color = 0;
    for (int r = 0; r < size(); ++r) {
      const int chosen = static_cast<int>(same() % 3);
      if (r == rank()) color = chosen;
    }
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, color == 2 ? MPI_UNDEFINED : color,
                   round % 2 == 0 ? rank() : -rank(), &part);
    const std::uint64_t before = number;
    number += 10;
    if (part == MPI_COMM_NULL) continue;
    const std::vector<int> members = members_of(part);
    for (std::uint64_t i = 1; i <= 10; ++i) {
      skew(random);
      REQUIRE(one_barrier(part, board, members, before + i, i % 2 == 0));
    }
    MPI_Comm_free(&part);
  }
}

TEST_CASE("Communicators progress independently") {
  Board board(2);
  MPI_Comm one, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    // The even ranks start the one first, the odd ranks the other.
    MPI_Request requests[2];
    board.enter(i, 0);
    board.enter(i, 1);
    const bool even = rank() % 2 == 0;
    MPI_Ibarrier(even ? one : other, &requests[even ? 0 : 1]);
    if (i % 2 == 0) poke(std::chrono::microseconds(20));
    MPI_Ibarrier(even ? other : one, &requests[even ? 1 : 0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    REQUIRE(board.entered(i, 0));
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    REQUIRE(board.entered(i, 1));
  }
  MPI_Comm_free(&one);
  MPI_Comm_free(&other);
}

TEST_CASE("One communicator's barriers end while another one's wait for a late rank") {
  if (size() < 2) return;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Request waiting = MPI_REQUEST_NULL;
  if (rank() != 0) MPI_Ibarrier(comm, &waiting);
  for (int i = 0; i < 50; ++i) MPI_Barrier(MPI_COMM_WORLD);
  int done = 0;
  if (rank() != 0) {
    MPI_Test(&waiting, &done, MPI_STATUS_IGNORE);
    CHECK(done == 0);
  }
  Board::meet();
  if (rank() == 0) MPI_Ibarrier(comm, &waiting);
  MPI_Wait(&waiting, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

TEST_CASE("Intercommunicators: who is in one group waits for the other") {
  if (size() < 2) return;
  Board board;
  for (int first : {1, size() / 2, size() - 1}) {
    if (first == 0) continue;
    const bool low = rank() < first;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, low ? 0 : 1, rank(), &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? first : 0, 9, &inter);
    const std::vector<int> others = members_of(inter, true);
    board.enter(0);
    Board::meet();
    std::mt19937 random(static_cast<unsigned>(rank()));
    for (std::uint64_t i = 1; i <= 100; ++i) {
      skew(random);
      REQUIRE(one_barrier(inter, board, others, i, i % 2 == 0));
    }
    MPI_Request last;
    board.enter(101);
    MPI_Ibarrier(inter, &last);
    MPI_Comm_free(&inter);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    REQUIRE(board.entered(101, 0, others));
    Board::meet();
  }
}

TEST_CASE("A communicator of one, and of oneself") {
  MPI_Request request;
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Ibarrier(MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm alone;
  MPI_Comm_split(MPI_COMM_WORLD, rank(), 0, &alone);
  MPI_Barrier(alone);
  MPI_Ibarrier(alone, &request);
  MPI_Comm_free(&alone);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

TEST_CASE("Many communicators at the same time") {
  Board board;
  std::vector<MPI_Comm> comms(50);
  std::vector<MPI_Request> requests(comms.size());
  for (MPI_Comm& each : comms) MPI_Comm_dup(MPI_COMM_WORLD, &each);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    board.enter(i);
    for (std::size_t c = 0; c < comms.size(); ++c) {
      const std::size_t at = rank() % 2 == 0 ? c : comms.size() - 1 - c;
      MPI_Ibarrier(comms[at], &requests[at]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    REQUIRE(board.entered(i));
  }
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
}
