// Field: communicators that come and go, intercommunicators, dynamic processes, collectives and
// one-sided calls above this PML.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

using namespace overlap::test;

namespace {

constexpr int bytes = 100000;

/// A large message from everybody to the next rank, received early; the same tag in every
/// communicator.
void ring(MPI_Comm comm, std::uint64_t seed) {
  int me = 0, ranks = 0;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &ranks);
  const int next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
  const Bytes out = pattern(bytes, seed + me);
  Bytes in = empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(in.data(), bytes, MPI_BYTE, previous, 1, comm, &request);
  MPI_Send(out.data(), bytes, MPI_BYTE, next, 1, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(holds(in, bytes, seed + previous));
}

/// Large messages both ways between rank k of each group.
void across(MPI_Comm inter, std::uint64_t mine, std::uint64_t theirs) {
  int me = 0, remote = 0;
  MPI_Comm_rank(inter, &me);
  MPI_Comm_remote_size(inter, &remote);
  if (me >= remote) return;
  const Bytes out = pattern(bytes, mine + me);
  Bytes in = empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(in.data(), bytes, MPI_BYTE, me, 1, inter, &request);
  MPI_Send(out.data(), bytes, MPI_BYTE, me, 1, inter);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(holds(in, bytes, theirs + me));
}

}  // namespace

TEST_CASE("Field: communicators are made and freed in a loop, their contexts used again") {
  for (int round = 0; round < 40; ++round) {
    MPI_Comm dup = MPI_COMM_NULL, split = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(dup, rank() / 2, -rank(), &split);
    ring(split, round * 100);
    ring(dup, round * 100 + 50);
    MPI_Comm_free(&dup);
    ring(split, round * 100 + 70);
    MPI_Comm_free(&split);
  }
}

TEST_CASE("Field: a large receive is cancelled on a communicator that its sender has freed") {
  if (!paired()) return;
  for (int round = 0; round < 5; ++round) {
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() / 2, rank(), &dup);
    ring(dup, round);
    const int other = 1 - rank() % 2;
    Bytes data = empty(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (receiver()) MPI_Irecv(data.data(), bytes, MPI_BYTE, other, 2, dup, &request);
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, partner(), 4, nullptr, 0, MPI_BYTE, partner(), 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (receiver()) {
      compute(std::chrono::milliseconds(20));
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(data, 0, 0));
    }
    MPI_Comm_free(&dup);
    // both are past it
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, partner(), 4, nullptr, 0, MPI_BYTE, partner(), 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

TEST_CASE("Field: intercommunicators") {
  if (size() < 2) return;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  const int side = rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 9, &inter);
  for (int round = 0; round < 5; ++round) across(inter, side * 1000, (1 - side) * 1000);
  MPI_Intercomm_merge(inter, side, &merged);
  ring(merged, 5);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST_CASE("Field: collectives, small and large") {
  const int ranks = size();
  for (int n : {1, 100, 3000, 70000}) {
    std::vector<int> mine(n), all(static_cast<std::size_t>(n) * ranks), result(n),
        spread(static_cast<std::size_t>(n) * ranks);
    for (int i = 0; i < n; ++i) mine[i] = rank() * 7 + i;
    INFO("count " << n);
    int wrong = 0;
    for (int root = 0; root < ranks; ++root) {
      std::vector<int> data = rank() == root ? mine : std::vector<int>(n);
      MPI_Bcast(data.data(), n, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; i < n; ++i) wrong += data[i] != root * 7 + i;
    }
    MPI_Allreduce(mine.data(), result.data(), n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) wrong += result[i] != 7 * ranks * (ranks - 1) / 2 + ranks * i;
    MPI_Reduce(mine.data(), result.data(), n, MPI_INT, MPI_MAX, ranks - 1, MPI_COMM_WORLD);
    for (int i = 0; rank() == ranks - 1 && i < n; ++i) wrong += result[i] != 7 * (ranks - 1) + i;
    MPI_Allgather(mine.data(), n, MPI_INT, all.data(), n, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r)
      for (int i = 0; i < n; ++i) wrong += all[static_cast<std::size_t>(r) * n + i] != r * 7 + i;
    MPI_Alltoall(all.data(), n, MPI_INT, spread.data(), n, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r)
      for (int i = 0; i < n; ++i)
        wrong += spread[static_cast<std::size_t>(r) * n + i] != rank() * 7 + i;
    std::vector<int> gathered(all.size());
    MPI_Gather(mine.data(), n, MPI_INT, gathered.data(), n, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank() == 0) wrong += gathered != all;
    MPI_Scatter(gathered.data(), n, MPI_INT, result.data(), n, MPI_INT, 0, MPI_COMM_WORLD);
    wrong += result != mine;
    MPI_Scan(mine.data(), result.data(), n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i)
      wrong += result[i] != 7 * rank() * (rank() + 1) / 2 + (rank() + 1) * i;
    MPI_Reduce_scatter_block(all.data(), result.data(), n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) wrong += result[i] != ranks * (rank() * 7 + i);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(mine.data(), result.data(), n, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += result[0] != 0;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(wrong == 0);
  }
}

TEST_CASE("Field: one-sided calls, fence and lock") {
  // Open MPI has no one-sided component for tcp alone, whatever the PML.
  const char* btls = std::getenv("OMPI_MCA_btl");
  if (btls != nullptr && std::string(btls).find("vader") == std::string::npos) return;
  Bytes window = empty(2 * bytes);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(window.data(), static_cast<MPI_Aint>(window.size()), 1, MPI_INFO_NULL,
                 MPI_COMM_WORLD, &win);
  const int next = (rank() + 1) % size(), previous = (rank() + size() - 1) % size();
  const Bytes out = pattern(bytes, rank());
  Bytes in = empty(bytes);
  MPI_Win_fence(0, win);
  MPI_Put(out.data(), bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  MPI_Get(in.data(), bytes, MPI_BYTE, previous, 0, bytes, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  CHECK(first_wrong(window.data(), bytes, previous) == bytes);
  CHECK(holds(in, bytes, (previous + size() - 1) % size()));
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
  MPI_Put(out.data(), bytes, MPI_BYTE, next, bytes, bytes, MPI_BYTE, win);
  MPI_Win_unlock(next, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
  MPI_Get(in.data(), bytes, MPI_BYTE, next, bytes, bytes, MPI_BYTE, win);
  MPI_Win_unlock(next, win);
  CHECK(holds(in, bytes, rank()));
  MPI_Win_free(&win);
}

TEST_CASE("Field: connect and accept") {
  if (size() < 2) return;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  const int side = rank() % 2;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm_split(MPI_COMM_WORLD, side, rank(), &half);
  if (rank() == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (side == 0)
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
  else
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
  across(inter, side * 1000, (1 - side) * 1000);
  MPI_Comm_disconnect(&inter);
  if (rank() == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

namespace {

/// Two children, each of which runs a hidden test case below.
MPI_Comm spawn_two(std::string test = "[spawned]") {
  char path[4096] = "";
  REQUIRE(realpath("/proc/self/exe", path) != nullptr);
  char* arguments[] = {test.data(), nullptr};
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_spawn(path, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  return inter;
}

}  // namespace

TEST_CASE("Field: spawned processes") {
  MPI_Comm inter = spawn_two();
  across(inter, 0, 1000);
  MPI_Comm_disconnect(&inter);
}

TEST_CASE("Field: spawned processes end while their parents still disconnect") {
  MPI_Comm inter = spawn_two();
  across(inter, 0, 1000);
  // Deleted behind the barrier of MPI_Comm_disconnect, before the communicator is.
  const auto linger = [](MPI_Comm, int, void*, void*) {
    usleep(1'000'000);
    return MPI_SUCCESS;
  };
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, linger, &key, nullptr);
  MPI_Comm_set_attr(inter, key, nullptr);
  MPI_Comm_disconnect(&inter);
  MPI_Comm_free_keyval(&key);
}

TEST_CASE("Field: a spawned process", "[.][spawned]") {
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  REQUIRE(parent != MPI_COMM_NULL);
  across(parent, 1000, 0);
  MPI_Comm_disconnect(&parent);
}

TEST_CASE("Field: spawned processes cancel while their parents disconnect") {
  MPI_Comm inter = spawn_two("[canceller]");
  across(inter, 0, 1000);
  MPI_Comm_disconnect(&inter);
}

TEST_CASE("Field: a spawned process that cancels", "[.][canceller]") {
  constexpr int bytes = 1'000'000;
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  REQUIRE(parent != MPI_COMM_NULL);
  across(parent, 1000, 0);
  Bytes buffer = empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(buffer.data(), bytes, MPI_BYTE, rank(), 7, parent, &request);
  for (int i = 0, flag = 0; i < 200; ++i, usleep(1000))  // an RTR, if any, goes out
    MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&parent);
}
