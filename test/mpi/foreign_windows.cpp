// P4.3: windows of other components than osc/newrma. Their components enter BTLs outside the
// progress lock, so an interrupt thread must not: nothing moves until somebody calls MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <optional>

using namespace overlap::test;

namespace {

constexpr int bytes = 24 << 20;  // more than sockets take in
constexpr int tag = 5;

struct Window {
  void* memory = nullptr;
  MPI_Win win = MPI_WIN_NULL;

  // Over tcp no other component takes those of MPI_Win_create: osc/newrma would, at any priority.
  explicit Window(MPI_Comm comm) {
    MPI_Win_allocate(sizeof(long long), 1, MPI_INFO_NULL, comm, &memory, &win);
  }
  ~Window() { MPI_Win_free(&win); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};

/// To processes of other jobs (vader knows those of its own alone).
bool also_over_tcp() {
  return over_tcp() && std::strstr(std::getenv("OMPI_MCA_btl"), "vader") != nullptr;
}

/// One process that runs a hidden test case below.
MPI_Comm spawn_one() {
  char path[4096] = "";
  REQUIRE(realpath("/proc/self/exe", path) != nullptr);
  std::string test = "[spawned]";
  char* arguments[] = {test.data(), nullptr};
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_spawn(path, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  return inter;
}

/// A message whose receiver comes first; then both compute.
/// @returns  at the receiver: whether it has arrived meanwhile
bool arrives_while_computing(Steps& steps, int& step, std::uint64_t seed, bool expected) {
  const Bytes whole = pattern(bytes, seed);
  Bytes data = sender() ? whole : empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  if (receiver()) MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
  { const OutsideMpi turn(steps, step); }
  if (sender()) MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
  bool arrived = false;
  {
    const OutsideMpi computing(steps, step);
    const auto is_there = [&] {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes it
      return data.back() == whole.back() && data == whole;
    };
    if (receiver() && expected) arrived = watch_until(is_there);
    if (receiver() && !expected) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      arrived = is_there();
    }
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (receiver()) CHECK(data == whole);
  return arrived;
}

}  // namespace

TEST_CASE("P4.3: no progress outside MPI beside other components' windows, and again after them") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  const auto check = [&](std::uint64_t seed, bool expected) {
    scene.meet();
    const bool arrived = arrives_while_computing(steps, step, seed, expected);
    if (receiver()) CHECK(arrived == expected);
  };
  check(10, interrupts());
  {
    const Window window(MPI_COMM_WORLD);
    check(20, false);
    check(30, false);
  }
  check(40, interrupts());
}

TEST_CASE("P4.3: nothing moves beside such a window of a process that also has others over TCP") {
  if (!two_ranks() || !interrupts() || !also_over_tcp()) return;
  MPI_Comm child = spawn_one();
  Steps steps;
  int step = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Bytes whole = pattern(bytes, seed);
    Bytes near = sender() ? whole : empty(bytes), far = empty(bytes);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::optional<Window> window;
    if (receiver()) {
      window.emplace(MPI_COMM_SELF);
      MPI_Irecv(near.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(far.data(), bytes, MPI_BYTE, 0, tag, child, &requests[1]);
      MPI_Send(&seed, sizeof seed, MPI_BYTE, 0, tag, child);
    }
    { const OutsideMpi turn(steps, step); }
    if (sender())
      MPI_Isend(near.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &requests[0]);
    {
      const OutsideMpi computing(steps, step);
      const auto are_there = [&] {
        std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes them
        return near.back() == whole.back() && far.back() == whole.back();
      };
      if (receiver()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        CHECK(near.back() != whole.back());
        CHECK(far.back() != whole.back());
        window.reset();
        CHECK(watch_until(are_there));
      }
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (receiver()) CHECK(near == whole);
    if (receiver()) CHECK(far == whole);
  }
  MPI_Comm_disconnect(&child);
}

TEST_CASE("A process that sends over TCP what it is asked for", "[.][spawned]") {
  MPI_Comm parents = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parents);
  REQUIRE(parents != MPI_COMM_NULL);
  for (std::uint64_t seed = 0; seed != 3;) {
    MPI_Recv(&seed, sizeof seed, MPI_BYTE, 1, tag, parents, MPI_STATUS_IGNORE);
    const Bytes data = pattern(bytes, seed);
    MPI_Send(data.data(), bytes, MPI_BYTE, 1, tag, parents);
  }
  MPI_Comm_disconnect(&parents);
}
