// P5.6: operations go on while their processes compute; nobody calls MPI in between.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <sys/mman.h>

using namespace overlap::test;

namespace {

constexpr std::size_t sizes[] = {8, 5000, 200000};
constexpr int origin = 0, target = 1;

/// Look at memory until a message is there, byte by byte, without any call of MPI.
/// @returns  false when it was not within 30 seconds
bool watch(const unsigned char* memory, std::size_t bytes, std::uint64_t seed) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const Bytes expected = pattern(bytes, seed);
  do {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes it
    if (std::memcmp(memory, expected.data(), bytes) == 0) return true;
    std::this_thread::sleep_for(microseconds(200));
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

MPI_Group partner_group() {
  MPI_Group world = MPI_GROUP_NULL, other = MPI_GROUP_NULL;
  const int rank_there = 1 - rank();
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &rank_there, &other);
  MPI_Group_free(&world);
  return other;
}

void put(const Bytes& data, Window& window) {
  const int bytes = static_cast<int>(data.size());
  MPI_Put(data.data(), bytes, MPI_BYTE, target, window.at(target, 0), bytes, MPI_BYTE, window.win);
}

/// Both have talked to each other: the first connection is made in MPI calls.
void meet(Window& window) {
  MPI_Win_fence(0, window.win);
  put(Bytes(8), window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
}

}  // namespace

TEST_CASE("P5.6: a put and its flush need no call of a target that computes") {
  if (size() != 2 || !interrupts()) return;
  Window window(sizes[2]);
  meet(window);
  Steps steps;
  int step = 0;
  for (const std::size_t bytes : sizes) {
    CAPTURE(bytes);
    const Bytes data = pattern(bytes, bytes + 1);
    if (rank() == origin) {
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
      steps.wait_for(step + 1);
      put(data, window);
      MPI_Win_flush(target, window.win);
      steps.reach(step + 2);
      steps.wait_for(step + 3);
      MPI_Win_unlock(target, window.win);
    } else {
      MPI_Barrier(MPI_COMM_SELF);
      steps.reach(step + 1);
      steps.wait_for(step + 2);
      CHECK(watch(window.memory, bytes, bytes + 1));
      steps.reach(step + 3);
    }
    step += 3;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("P5.6: a put that waits for its target goes out while the origin computes") {
  if (size() != 2 || !interrupts()) return;
  Window window(sizes[2]);
  meet(window);
  Steps steps;
  int step = 0;
  MPI_Group other = partner_group();
  for (const std::size_t bytes : sizes) {
    CAPTURE(bytes);
    const Bytes data = pattern(bytes, bytes + 2);
    if (rank() == origin) {
      MPI_Win_start(other, 0, window.win);
      put(data, window);
      steps.reach(step + 1);
      steps.wait_for(step + 2);  // without MPI until it has arrived
      MPI_Win_complete(window.win);
    } else {
      steps.wait_for(step + 1);
      MPI_Win_post(other, 0, window.win);
      CHECK(watch(window.memory, bytes, bytes + 2));
      steps.reach(step + 2);
      MPI_Win_wait(window.win);
    }
    step += 2;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Group_free(&other);
}

TEST_CASE("P5.6: a row of small puts goes out while the origin computes and its thread sleeps") {
  if (size() != 2 || !interrupts()) return;
  constexpr std::size_t row = 30;
  Window window(row);
  meet(window);
  Steps steps;
  int step = 0;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    CAPTURE(round);
    const Bytes data = pattern(row, round);
    if (rank() == origin) {
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
      MPI_Win_flush(target, window.win);
      std::this_thread::sleep_for(microseconds(20000));
      for (std::size_t i = 0; i < row; ++i)
        MPI_Put(&data[i], 1, MPI_BYTE, target, window.at(target, i), 1, MPI_BYTE, window.win);
      steps.reach(step + 1);
      steps.wait_for(step + 2);  // without MPI until they have arrived
      MPI_Win_unlock(target, window.win);
    } else {
      steps.wait_for(step + 1);
      CHECK(watch(window.memory, row, round));
      steps.reach(step + 2);
    }
    step += 2;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("P5.6: a put that waits for its target wakes a thread that naps") {
  if (size() != 2 || !interrupts() || over_tcp()) return;
  Window window(sizes[0]);
  meet(window);
  MPI_Group other = partner_group();
  const Bytes data = pattern(sizes[0], 1);
  MPI_Barrier(MPI_COMM_WORLD);
  Counters counters;
  // A process that stays in MPI lets its thread nap, and the window itself has rung once at most.
  // Two cores may be busy with others: not every call finds it napping, and where two processes
  // never sleep, not in every thousand rounds are there five.
  unsigned long long rung = 0;
  int go_on = 1;
  for (int round = 0; round < 10 * 1000 && go_on != 0; ++round) {
    if (round % 1000 == 0) rung = counters["interrupt_rings"];
    if (rank() == origin) {
      MPI_Recv(nullptr, 0, MPI_BYTE, target, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Win_start(other, 0, window.win);
      put(data, window);
      compute(microseconds(300));
      MPI_Win_complete(window.win);
      go_on = counters["interrupt_rings"] - rung < 5 ? 1 : 0;
    } else {
      compute(microseconds(1000));
      MPI_Send(nullptr, 0, MPI_BYTE, origin, 0, MPI_COMM_WORLD);
      compute(microseconds(100));
      MPI_Win_post(other, 0, window.win);
      MPI_Win_wait(window.win);
    }
    MPI_Bcast(&go_on, 1, MPI_INT, origin, MPI_COMM_WORLD);
  }
  CHECK(go_on == 0);
  MPI_Group_free(&other);
}

TEST_CASE("P5.6: memory may be unmapped behind an unlock, whoever has ended the operation") {
  if (size() != 2 || !interrupts()) return;
  constexpr std::size_t bytes = 300000;
  Window window(bytes);
  meet(window);
  // The thread ends some of so many; Open MPI ends a job that unmaps what is registered.
  for (int round = 0; round < 300; ++round) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    std::memset(memory, round, bytes);
    const int to = 1 - rank();
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
    if (round % 3 == 2)
      MPI_Get(memory, bytes, MPI_BYTE, to, window.at(to, 0), bytes, MPI_BYTE, window.win);
    else
      MPI_Put(memory, bytes, MPI_BYTE, to, window.at(to, 0), bytes, MPI_BYTE, window.win);
    compute(microseconds(200 * (round % 7)));
    MPI_Win_unlock(to, window.win);
    REQUIRE(munmap(memory, bytes) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P5.6: a put in a fence epoch goes out when the target comes to the fence") {
  if (size() != 2 || !interrupts()) return;
  Window window(sizes[2]);
  meet(window);
  Steps steps;
  int step = 0;
  for (const std::size_t bytes : sizes) {
    CAPTURE(bytes);
    const Bytes data = pattern(bytes, bytes + 3);
    if (rank() == origin) {
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
      put(data, window);
      steps.reach(step + 1);
      steps.wait_for(step + 2);
    } else {
      steps.wait_for(step + 1);
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
      CHECK(watch(window.memory, bytes, bytes + 3));
      steps.reach(step + 2);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    step += 2;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("P5.6: a put that waits for a lock goes out when it is given back") {
  if (size() != 2 || !interrupts()) return;
  Window window(sizes[2]);
  meet(window);
  Steps steps;
  int step = 0;
  for (const std::size_t bytes : sizes) {
    for (int holder : {target, origin}) {
      CAPTURE(bytes, holder);
      const Bytes data = pattern(bytes, bytes + 4 + static_cast<unsigned>(holder));
      const bool waits = rank() != holder;
      const int to = holder;  // the holder's own memory
      if (!waits) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
        steps.reach(step + 1);
        steps.wait_for(step + 2);
        MPI_Win_unlock(to, window.win);
        CHECK(watch(window.memory, bytes, bytes + 4 + static_cast<unsigned>(holder)));
        steps.reach(step + 3);
      } else {
        steps.wait_for(step + 1);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
        const int count = static_cast<int>(bytes);
        MPI_Put(data.data(), count, MPI_BYTE, to, window.at(to, 0), count, MPI_BYTE, window.win);
        steps.reach(step + 2);
        steps.wait_for(step + 3);
        MPI_Win_unlock(to, window.win);
      }
      step += 3;
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

TEST_CASE("P5.6: what has gone is confirmed while the origin computes, and closing asks nobody") {
  if (size() != 2 || !interrupts()) return;
  Window window(sizes[2]);
  meet(window);
  Steps steps;
  int step = 0;
  // An adapter's writes are confirmed by their completions.
  const std::uint64_t questions = over_ring() ? 0 : 1;
  // Larger ones may be copied by the kernel, and need no answer.
  for (const std::size_t bytes : {sizes[0], std::size_t{1000}}) {
    CAPTURE(bytes);
    const Bytes data = pattern(bytes, bytes + 5);
    if (rank() == origin) {
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
      Counters counters;
      put(data, window);
      steps.reach(step + 1);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (counters["flushes_sent"] < questions && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(microseconds(200));
      CHECK(counters["flushes_sent"] == questions);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
      CHECK(counters["flushes_sent"] == questions);
    } else {
      steps.wait_for(step + 1);
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
      CHECK(watch(window.memory, bytes, bytes + 5));
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    }
    step += 1;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
