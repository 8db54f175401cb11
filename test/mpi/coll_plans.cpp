// Field: which plan a collective has that does not block: the messages of the first rank of four.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

#include <functional>

using namespace overlap::test;

namespace {

std::uint64_t messages_of(const std::function<void(MPI_Request&)>& start) {
  const MqCount sent("messages_sent");
  MPI_Request request = MPI_REQUEST_NULL;
  start(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return sent.value();
}

}  // namespace

// Sizes change places, so that a plan made for one is not taken for the other.
TEST_CASE("Among four ranks small ones have one step, larger and blocking ones two") {
  if (!mq_is_chosen() || device_is_used() || size() != 4) return;
  const char* const straight_max = std::getenv("OMPI_MCA_coll_mq_straight_max");
  const bool is_straight = straight_max == nullptr || std::atoi(straight_max) >= 4;
  const std::uint64_t one_step = is_straight ? 3 : 2;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<int> in(2000), out(2000);
  for (int turn = 0; turn < 3; ++turn) {
    CAPTURE(turn, is_straight);
    const auto broadcast = [&](int count) {
      return messages_of(
          [&](MPI_Request& request) { MPI_Ibcast(in.data(), count, MPI_INT, 0, comm, &request); });
    };
    const auto reduce_to_all = [&](int count) {
      return messages_of([&](MPI_Request& request) {
        MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm, &request);
      });
    };
    const auto exchange = [&](int count) {
      return messages_of([&](MPI_Request& request) {
        MPI_Ialltoall(in.data(), count, MPI_INT, out.data(), count, MPI_INT, comm, &request);
      });
    };
    const auto barrier = [&](bool blocks) {
      return messages_of([&](MPI_Request& request) {
        if (blocks)
          MPI_Barrier(comm);
        else
          MPI_Ibarrier(comm, &request);
      });
    };
    const std::uint64_t counted[] = {broadcast(1),     broadcast(500), barrier(true),
                                     reduce_to_all(1), barrier(false), reduce_to_all(500),
                                     exchange(1),      broadcast(256), reduce_to_all(256)};
    const std::uint64_t expected[] = {one_step, 2,        2,        one_step, one_step,
                                      2,        one_step, one_step, one_step};
    for (std::size_t i = 0; i < std::size(expected); ++i) {
      CAPTURE(i);
      CHECK((rank() != 0 || counted[i] == expected[i]));
    }
    Board::meet(comm);
  }
  MPI_Comm_free(&comm);
}
