// P4: an adapter wakes the thread of a process that computes (rank 0), whatever its peer is like:
// rank 1 may have other parameters or windows of other components.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <optional>

using namespace overlap::test;

namespace {

constexpr int length = 1 << 20;
constexpr int tag = 5;

/// Look at memory until the message is there, without any call of MPI.
/// @returns  false when it was not within 30 seconds
bool watch(const Bytes& data, std::uint64_t seed) {
  const Bytes expected = pattern(data.size(), seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes it
    if (data == expected) return true;
    std::this_thread::sleep_for(microseconds(200));
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// A window, unused, of whatever component.
class UnusedWindow {
 public:
  explicit UnusedWindow(MPI_Comm comm) {
    MPI_Win_create(memory_, sizeof memory_, 1, MPI_INFO_NULL, comm, &win_);
  }
  ~UnusedWindow() { MPI_Win_free(&win_); }
  UnusedWindow(const UnusedWindow&) = delete;
  UnusedWindow& operator=(const UnusedWindow&) = delete;
  void fence() { MPI_Win_fence(0, win_); }

 private:
  char memory_[64] = {};
  MPI_Win win_ = MPI_WIN_NULL;
};

/// One message to a receiver that computes until it is there.
/// @param before    what the receiver does between its receive and its computation
/// @param computes  the sender computes, too
template <class Before>
void exchange(std::uint64_t seed, Before&& before, bool computes) {
  Steps steps;
  Bytes data = rank() == 1 ? pattern(length, seed) : empty(length);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank() == 0) {
    MPI_Irecv(data.data(), length, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    before();
    std::this_thread::sleep_for(microseconds(20000));  // its thread sleeps
    steps.reach(1);
    CHECK(watch(data, seed));
    steps.reach(2);
  } else {
    before();
    steps.wait_for(1);
    MPI_Isend(data.data(), length, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
    if (computes) steps.wait_for(2);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void nothing() {}

/// Both have talked so often that each has a ring for the other.
void meet() {
  const int other = 1 - rank();
  for (int i = 0, got = 0; i < 300; ++i)
    MPI_Sendrecv(&i, 1, MPI_INT, other, tag + 1, &got, 1, MPI_INT, other, tag + 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

}  // namespace

// First: a process that has once run out of receive buffers has more of them.
TEST_CASE("P4.3: small messages leave room for the one that wakes") {
  REQUIRE(size() == 2);
  meet();
  constexpr int count = 300;  // a ring has 100 slots, a process 128 receive buffers
  std::vector<Bytes> small(count, pattern(1024, 3));
  std::vector<MPI_Request> requests(count, MPI_REQUEST_NULL);
  const auto send_small = [&] {
    if (rank() == 0) return;
    std::this_thread::sleep_for(microseconds(100000));  // the receiver's thread sleeps
    for (std::size_t i = 0; i < requests.size(); ++i)
      MPI_Isend(small[i].data(), 1024, MPI_BYTE, 0, tag + 2, MPI_COMM_WORLD, &requests[i]);
  };
  exchange(1, send_small, false);
  for (Bytes& each : small)
    if (rank() == 0)
      MPI_Recv(each.data(), 1024, MPI_BYTE, 1, tag + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
}

TEST_CASE("P4.3: a sender wakes a receiver that computes") {
  REQUIRE(size() == 2);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) exchange(seed, nothing, seed % 2 == 0);
}

TEST_CASE("P4.3: a sender with a window of its own wakes a receiver that computes") {
  REQUIRE(size() == 2);
  MPI_Barrier(MPI_COMM_WORLD);
  std::optional<UnusedWindow> window;
  if (rank() == 1) window.emplace(MPI_COMM_SELF);
  for (std::uint64_t seed = 11; seed <= 14; ++seed) exchange(seed, nothing, seed % 2 == 0);
}

TEST_CASE("P4.3: a thread goes on when the last window has gone") {
  REQUIRE(size() == 2);
  exchange(21, nothing, false);
  const auto use_window = [] {
    UnusedWindow window(MPI_COMM_WORLD);
    window.fence();
    if (rank() == 0) std::this_thread::sleep_for(microseconds(50000));
    window.fence();
  };
  exchange(22, use_window, false);
}
