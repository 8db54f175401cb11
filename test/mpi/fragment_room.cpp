// Messages in fragments where the BTL's room for them runs out: what must go on all the same.
//
// Programs like these stood still for ever, or for as long as another process computed.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <algorithm>
#include <csignal>

using namespace overlap::test;

namespace {

/// A column of a matrix: goes in fragments through every BTL.
class Column {
 public:
  explicit Column(int rows) {
    MPI_Type_vector(rows, 1, 2, MPI_DOUBLE, &type_);
    MPI_Type_commit(&type_);
  }
  ~Column() { MPI_Type_free(&type_); }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  operator MPI_Datatype() const { return type_; }  // NOLINT: as an argument of MPI's calls

 private:
  MPI_Datatype type_{};
};

constexpr int rows = 40000;  // 320 KB, ten fragments of vader, which has 72 of them

/// Rank 0 has sent so many columns to rank 2, which has asked for them and is outside MPI now.
class Held {
 public:
  Held(int count, Steps& steps, int& step)
      : requests_(static_cast<std::size_t>(count), MPI_REQUEST_NULL) {
    if (rank() == 0) {
      for (MPI_Request& each : requests_)
        MPI_Isend(data_.data(), 1, column_, 2, 3, MPI_COMM_WORLD, &each);
      steps.reach(step + 1);
      steps.wait_for(step + 2);
    } else if (rank() == 2) {
      in_.assign(requests_.size(), std::vector<double>(rows));
      for (std::size_t i = 0; i < in_.size(); ++i)
        MPI_Irecv(in_[i].data(), rows, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, &requests_[i]);
      steps.wait_for(step + 1);
      poke(microseconds(50000));
      steps.reach(step + 2);
    } else if (rank() == 1) {
      steps.wait_for(step + 2);
    }
    step += 2;
  }
  void finish() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (const std::vector<double>& each : in_) CHECK(each == std::vector<double>(rows, 7));
  }

 private:
  Column column_{rows};
  const std::vector<double> data_ = std::vector<double>(2 * rows, 7);
  std::vector<MPI_Request> requests_;
  std::vector<std::vector<double>> in_;
};

}  // namespace

TEST_CASE("Everybody sends to everybody, with calls that wait and calls that do not") {
  if (size() < 3) return;
  const Column column(rows / 2);
  constexpr std::size_t messages = 21;  // to each; the last one by MPI_Send
  const auto peers = static_cast<std::size_t>(size());
  for (int round = 0; round < 15; ++round) {
    std::vector<std::vector<double>> out, in(peers * messages, std::vector<double>(rows / 2));
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < peers * messages; ++i)
      out.emplace_back(rows, rank() * 10000.0 + round * 100 + static_cast<double>(i % messages));
    const auto at = [&](int peer, std::size_t i) {
      return static_cast<std::size_t>(peer) * messages + i;
    };
    const auto next = [&](int distance) { return (rank() + distance) % size(); };
    for (int d = 1; d < size(); ++d)
      for (std::size_t i = 0; i < messages; ++i)
        MPI_Irecv(in[at(next(d), i)].data(), rows / 2, MPI_DOUBLE, next(d), static_cast<int>(i),
                  MPI_COMM_WORLD, &requests.emplace_back());
    for (std::size_t i = 0; i + 1 < messages; ++i)
      for (int d = 1; d < size(); ++d)
        MPI_Isend(out[at(next(d), i)].data(), 1, column, next(d), static_cast<int>(i),
                  MPI_COMM_WORLD, &requests.emplace_back());
    for (int d = 1; d < size(); ++d)
      MPI_Send(out[at(next(d), messages - 1)].data(), 1, column, next(d), messages - 1,
               MPI_COMM_WORLD);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (int d = 1; d < size(); ++d)
      for (std::size_t i = 0; i < messages; ++i)
        CHECK(in[at(next(d), i)] == std::vector<double>(rows / 2, next(d) * 10000.0 + round * 100 +
                                                                      static_cast<double>(i)));
  }
}

TEST_CASE("A call that waits ends beside a message to the same rank that has no room") {
  // With RTRs the columns have taken all room before the call.
  if (size() < 3 || is("shared_memory", "always")) return;
  Steps steps;
  int step = 0;
  for (const int count : {18, 26, 40}) {
    CAPTURE(count);
    MPI_Barrier(MPI_COMM_WORLD);
    Held held(count, steps, step);
    const Column column(rows);
    std::vector<double> first(2 * rows, 1), second(2 * rows, 2);
    MPI_Request request;
    if (rank() == 0) {
      MPI_Isend(first.data(), 1, column, 1, 5, MPI_COMM_WORLD, &request);
      MPI_Send(second.data(), 1, column, 1, 4, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank() == 1) {
      std::vector<double> one(rows), two(rows);
      compute(microseconds(20000));
      MPI_Irecv(one.data(), rows, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &request);
      MPI_Recv(two.data(), rows, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      steps.reach(step + 1);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(one == std::vector<double>(rows, 1));
      CHECK(two == std::vector<double>(rows, 2));
    } else if (rank() == 2) {
      steps.wait_for(step + 1);
    }
    ++step;
    held.finish();
  }
}

TEST_CASE("A message for a process in MPI_Recv does not wait for another one that computes") {
  if (size() < 3) return;
  Steps steps;
  constexpr int long_rows = 4000000;
  const Column column(rows), long_column(long_rows);
  MPI_Request request;
  if (rank() == 0) {
    const std::vector<double> small(2 * rows, 1), large(2 * std::size_t{long_rows}, 2);
    MPI_Isend(small.data(), 1, column, 2, 3, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(large.data(), 1, long_column, 1, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank() == 1) {
    std::vector<double> in(long_rows);
    MPI_Irecv(in.data(), long_rows, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    poke(microseconds(5000));
    steps.reach(1);
    steps.wait_for(2);  // outside MPI, most likely in the middle of the message
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == std::vector<double>(long_rows, 2));
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 2) {
      std::vector<double> in(rows);
      steps.wait_for(1);
      MPI_Recv(in.data(), rows, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(in == std::vector<double>(rows, 1));
      steps.reach(2);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("A receive does not wait for its sender, who has messages without room to take") {
  if (size() < 3 || !direct()) return;
  constexpr int n = 1 << 20;
  constexpr std::size_t messages = 3000;
  Steps steps;
  std::vector<double> small(messages, 5);
  std::vector<MPI_Request> requests(messages, MPI_REQUEST_NULL);
  Bytes data = rank() == 1 ? pattern(n, 3) : empty(n);
  if (rank() == 0) {
    MPI_Probe(1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < messages; ++i)
      MPI_Isend(&small[i], 1, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, &requests[i]);
    MPI_Recv(data.data(), n, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    steps.reach(1);
    CHECK(holds(data, n, 3));
    MPI_Waitall(static_cast<int>(messages), requests.data(), MPI_STATUSES_IGNORE);
  } else if (rank() == 1) {
    MPI_Isend(data.data(), n, MPI_BYTE, 0, 4, MPI_COMM_WORLD, requests.data());
    steps.wait_for(1);
    for (double& each : small) {
      each = 0;
      MPI_Recv(&each, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(requests.data(), MPI_STATUS_IGNORE);
    CHECK(small == std::vector<double>(messages, 5));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("A receive does not wait for a third process that holds the room") {
  // All fragments are held by messages to rank 2, which is outside MPI, while rank 1 is in MPI_Send
  // and has messages without room to take.
  if (size() < 3 || !direct()) return;
  constexpr int n = 1 << 20;
  constexpr int small = 3500;  // not through a fast box
  Steps steps;
  const Bytes piece = pattern(small, 5);
  Bytes data = rank() == 1 ? pattern(n, 3) : empty(n);
  const auto send_to = [&](int to, std::size_t count, std::vector<MPI_Request>& requests) {
    for (std::size_t i = 0; i < count; ++i)
      MPI_Isend(piece.data(), small, MPI_BYTE, to, 5, MPI_COMM_WORLD, &requests.emplace_back());
  };
  const auto take = [&](std::size_t count) {
    Bytes in = empty(small);
    for (std::size_t i = 0; i < count; ++i) {
      MPI_Recv(in.data(), small, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      REQUIRE(holds(in, small, 5));
    }
  };
  constexpr std::size_t to_second = 3000, to_first = 500;
  if (rank() == 0) {
    std::vector<MPI_Request> requests;
    send_to(2, to_second, requests);
    send_to(1, to_first, requests);
    steps.reach(1);
    MPI_Recv(data.data(), n, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    steps.reach(2);
    CHECK(holds(data, n, 3));
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  } else if (rank() == 1) {
    steps.wait_for(1);
    MPI_Send(data.data(), n, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    take(to_first);
  } else if (rank() == 2) {
    steps.wait_for(2);
    take(to_second);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("A copy ends in the call that begins it where nobody else could go on with it") {
  if (!direct() || interrupts()) return;
  constexpr int n = 8 << 20;
  Steps steps;
  Bytes data = rank() == 0 ? pattern(n, 3) : empty(n);
  if (rank() == 0) {
    MPI_Send(data.data(), n, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    steps.reach(1);
  } else if (rank() == 1) {
    MPI_Request request;
    MPI_Irecv(data.data(), n, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &request);
    const Bytes untouched = empty(1);
    yield_until([&] {
      int is_there = 0;
      MPI_Iprobe(0, 9, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
      return data[0] != untouched[0];
    });
    steps.wait_for(1);  // outside MPI
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(data, n, 3));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("MPI_Send does not wait for a message in fragments of another process") {
  if (size() < 3) return;
  constexpr int large_rows = 2 << 20;  // 16 MiB
  struct Scenery {
    std::atomic<int> pid;  ///< of rank 1
    double in[large_rows];
  };
  const Shared<Scenery> shared;
  Steps steps;
  const Column column(large_rows);
  Bytes small = rank() == 0 ? pattern(1 << 16, 3) : empty(1 << 16);
  const int small_bytes = static_cast<int>(small.size());
  if (rank() == 0) {
    MPI_Request request;
    MPI_Irecv(shared->in, large_rows, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, &request);
    steps.reach(1);
    MPI_Send(small.data(), small_bytes, MPI_BYTE, 2, 5, MPI_COMM_WORLD);
    steps.reach(2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(std::ranges::all_of(shared->in, [](double each) { return each == 7; }));
  } else if (rank() == 1) {
    const std::vector<double> data(std::size_t{2} * large_rows, 7);
    shared->pid.store(getpid());
    steps.wait_for(1);
    compute(microseconds(20000));  // rank 0 is in MPI_Send by then
    MPI_Send(data.data(), 1, column, 0, 4, MPI_COMM_WORLD);
  } else if (rank() == 2) {
    // In the middle of the large message its sender is halted.
    const std::atomic_ref<double> first(shared->in[0]);
    yield_until([&first] { return first.load() != 0; });
    REQUIRE(kill(shared->pid.load(), SIGSTOP) == 0);
    MPI_Recv(small.data(), small_bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    steps.wait_for(2);
    REQUIRE(kill(shared->pid.load(), SIGCONT) == 0);
    CHECK(holds(small, small.size(), 3));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("A copy that needs no room does not wait behind fragments that have none") {
  if (size() < 3 || set_to("OMPI_MCA_btl_vader_single_copy_mechanism", "none")) return;
  constexpr int n = 8 << 20;
  Steps steps;
  int step = 0;
  Held held(40, steps, step);
  const Column column(rows);
  std::vector<double> strided(2 * rows, 1), in(rows);
  Bytes data = rank() == 1 ? pattern(n, 3) : empty(n);
  MPI_Request request;
  if (rank() == 0) {
    MPI_Isend(strided.data(), 1, column, 1, 5, MPI_COMM_WORLD, &request);
    MPI_Recv(data.data(), n, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    steps.reach(step + 1);
    CHECK(holds(data, n, 3));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank() == 1) {
    MPI_Irecv(in.data(), rows, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &request);
    poke(microseconds(50000));  // asks for it
    MPI_Send(data.data(), n, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == std::vector<double>(rows, 1));
  } else if (rank() == 2) {
    steps.wait_for(step + 1);
  }
  held.finish();
}
