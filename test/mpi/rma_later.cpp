// P5.5: copies within a node wait for what goes to other nodes. For a job of two nodes.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr std::size_t large = (std::size_t{1} << 20) + 5;

struct Places {
  int neighbour = -1;  ///< on this node
  int stranger = -1;   ///< on another one
};

Places look_around() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int first = rank();
  MPI_Bcast(&first, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  std::vector<int> firsts(ranks());
  MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  Places places;
  for (int other = 0; other < size(); ++other) {
    if (firsts[static_cast<std::size_t>(other)] != first)
      places.stranger = other;
    else if (other != rank())
      places.neighbour = other;
  }
  return places;
}

}  // namespace

TEST_CASE("P5.5: a large put within the node is copied behind one to another node") {
  const Places places = look_around();
  if (places.neighbour < 0 || places.stranger < 0) return;
  Window window(large, Kind::allocate);
  MPI_Barrier(MPI_COMM_WORLD);
  const Bytes near = pattern(large, 1), far = pattern(large, 2);
  Bytes back(large, 0);
  const int bytes = static_cast<int>(large);
  if (rank() == 0) {
    Counters counters;
    MPI_Win_lock_all(0, window.win);
    MPI_Put(near.data(), bytes, MPI_BYTE, places.neighbour, 0, bytes, MPI_BYTE, window.win);
    CHECK(counters["direct_operations"] == 0);
    MPI_Put(far.data(), bytes, MPI_BYTE, places.stranger, 0, bytes, MPI_BYTE, window.win);
    MPI_Win_flush_all(window.win);
    CHECK(counters["direct_operations"] == 1);
    CHECK(counters["later_operations"] == 1);
    MPI_Get(back.data(), bytes, MPI_BYTE, places.neighbour, 0, bytes, MPI_BYTE, window.win);
    MPI_Win_unlock_all(window.win);
    CHECK(back == near);
    MPI_Win_lock(MPI_LOCK_SHARED, places.stranger, 0, window.win);
    MPI_Get(back.data(), bytes, MPI_BYTE, places.stranger, 0, bytes, MPI_BYTE, window.win);
    MPI_Win_unlock(places.stranger, window.win);
    CHECK(back == far);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P5.5: small ones and accumulates are made at once") {
  const Places places = look_around();
  if (places.neighbour < 0 || places.stranger < 0) return;
  Array<Word> window(8, 3, Kind::allocate);
  if (rank() == 0) {
    Counters counters;
    const Word four = 4;
    MPI_Win_lock(MPI_LOCK_SHARED, places.neighbour, 0, window.win);
    put(window, four, places.neighbour, 0);
    add(window, four, places.neighbour, 1);
    CHECK(counters["direct_operations"] == 2);
    MPI_Win_unlock(places.neighbour, window.win);
    CHECK(counters["later_operations"] == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int first_neighbour = rank() == 0 ? places.neighbour : -1;
  int watched = first_neighbour;
  MPI_Bcast(&watched, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank() == watched) CHECK((own(window, 0) == 4 && own(window, 1) == 7));
}
