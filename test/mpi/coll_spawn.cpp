// Field: barriers with the processes of another job.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

using namespace overlap::test;

namespace {

/// A child that shall differ from its parents has an argument that says so.
const bool is_without = [] {
  std::FILE* const file = std::fopen("/proc/self/cmdline", "r");
  char text[4096] = "";
  const std::size_t bytes = file != nullptr ? std::fread(text, 1, sizeof text - 1, file) : 0;
  if (file != nullptr) std::fclose(file);
  const bool without = std::string(text, bytes).find("[without]") != std::string::npos;
  if (without) setenv("OMPI_MCA_coll_mq_priority", "0", 1);
  return without;
}();

/// Two children, each of which runs a hidden test case below.
MPI_Comm spawn_two(std::string test) {
  char path[4096] = "";
  REQUIRE(realpath("/proc/self/exe", path) != nullptr);
  char* arguments[] = {test.data(), nullptr};
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_spawn(path, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  return inter;
}

/// Barriers of both groups, and of a communicator that both make.
void meet_across(MPI_Comm inter, bool parents) {
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, parents ? 0 : 1, &merged);
  {
    Board board(1, merged);
    for (std::uint64_t i = 1; i <= 50; ++i) {
      MPI_Request request;
      board.enter(i);
      if (i % 4 == 0) compute(std::chrono::microseconds(100 * rank()));
      switch (i % 4) {
        case 0: MPI_Barrier(merged); break;
        case 1: MPI_Ibarrier(merged, &request); break;
        case 2: MPI_Barrier(inter); break;
        default: MPI_Ibarrier(inter, &request); break;
      }
      if (i % 2 == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
      // Across an intercommunicator the standard asks for the other group only.
      if (i % 4 < 2) REQUIRE(board.entered(i));
    }
    Board::meet(merged);
  }
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&inter);
}

void meet_parents() {
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  REQUIRE(parent != MPI_COMM_NULL);
  meet_across(parent, false);
}

}  // namespace

TEST_CASE("Spawned processes") { meet_across(spawn_two("[spawned]"), true); }
TEST_CASE("A spawned process", "[.][spawned]") { meet_parents(); }

TEST_CASE("Spawned processes that were not told to use this component") {
  meet_across(spawn_two("[without]"), true);
}
TEST_CASE("A spawned process that was not", "[.][without]") {
  REQUIRE(is_without);
  CHECK_FALSE(mq_is_chosen());
  meet_parents();
}
