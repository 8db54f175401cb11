// Large messages through shared memory whose sender sits in MPI_Send: how their data comes, and
// that no call returns while another one still pushes data to it.
//
// Runs with pml/speculative only; what it expects follows the OMPI_MCA_ variables that mpirun hands
// on.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

namespace {

const std::vector<int> sizes{40000, 65537, 300001, 1 << 20, 5000000};

bool by_fragments() { return is("blocking_copy", "fragments"); }
bool measured() {
  return !by_fragments() && !is("blocking_copy", "read") &&
         !set_to("OMPI_MCA_mpi_yield_when_idle", "1");
}

/// How messages have come, by the counters of both sides.
class Ways {
 public:
  /// One more, of n bytes.
  void check(std::uint64_t n, bool fragments) {
    CAPTURE(n, fragments);
    sum_bytes_ += n;
    if (receiver()) CHECK(count_["get_bytes"] == (fragments ? 0 : sum_bytes_));
    if (sender()) CHECK(count_["pipelined_bytes"] == (fragments ? sum_bytes_ : 0));
  }

 private:
  Counters count_;
  std::uint64_t sum_bytes_ = 0;
};

}  // namespace

TEST_CASE("From MPI_Send to MPI_Recv data comes as the parameter says") {
  TWO_RANKS_WITH_COUNTERS();
  if (measured()) return;
  Scene scene;
  Ways ways;
  enum class How { send, synchronous, matched_probe, late_receiver };
  for (const How how : {How::send, How::synchronous, How::matched_probe, How::late_receiver}) {
    for (const int n : sizes) {
      CAPTURE(static_cast<int>(how), n);
      if (sender()) {
        const Bytes data = pattern(n, n);
        (how == How::synchronous ? MPI_Ssend : MPI_Send)(data.data(), n, MPI_BYTE, 1, 3,
                                                         scene.comm);
      } else {
        if (how == How::late_receiver) compute(microseconds(2000));
        Bytes in = empty(n);
        if (how == How::matched_probe) {
          MPI_Message message;
          MPI_Mprobe(0, 3, scene.comm, &message, MPI_STATUS_IGNORE);
          MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        } else {
          MPI_Recv(in.data(), n, MPI_BYTE, MPI_ANY_SOURCE, 3, scene.comm, MPI_STATUS_IGNORE);
        }
        CHECK(holds(in, n, n));
      }
      ways.check(n, by_fragments());
    }
  }
}

TEST_CASE("Where one side does not wait, the receiver reads") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Ways ways;
  enum class How { send, receive, buffered };
  for (const How how : {How::send, How::receive, How::buffered}) {
    for (const int n : sizes) {
      CAPTURE(static_cast<int>(how), n);
      if (sender()) {
        const Bytes data = pattern(n, n);
        if (how == How::receive) {
          MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
        } else if (how == How::send) {
          MPI_Request request;
          MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
          Bytes buffer(static_cast<std::size_t>(n) + MPI_BSEND_OVERHEAD);
          int bytes = static_cast<int>(buffer.size());
          MPI_Buffer_attach(buffer.data(), bytes);
          MPI_Bsend(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
          void* detached = nullptr;
          MPI_Buffer_detach(&detached, &bytes);
        }
      } else {
        Bytes in = empty(n);
        if (how == How::receive) {
          MPI_Request request;
          MPI_Irecv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
          MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
        }
        CHECK(holds(in, n, n));
      }
      ways.check(n, false);
    }
  }
}

TEST_CASE("A buffer that is too small, and data with gaps on either side") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 300000;
  Scene scene;
  const ErrorsReturn errors_return(scene.comm);
  MPI_Datatype halves;
  MPI_Type_vector(n / 2, 1, 2, MPI_BYTE, &halves);
  MPI_Type_commit(&halves);
  if (sender()) {
    const Bytes data = pattern(n, 5);
    MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
    MPI_Send(data.data(), 1, halves, 1, 4, scene.comm);
    MPI_Send(data.data(), n / 2, MPI_BYTE, 1, 5, scene.comm);
  } else {
    const Bytes all = pattern(n, 5);
    Bytes in = empty(n);
    MPI_Status status;
    const int rc = MPI_Recv(in.data(), n / 3, MPI_BYTE, 0, 3, scene.comm, &status);
    CHECK(error_class(rc) == MPI_ERR_TRUNCATE);
    CHECK(holds(in, n / 3, 5));
    in = empty(n);
    CHECK(MPI_Recv(in.data(), n, MPI_BYTE, 0, 4, scene.comm, &status) == MPI_SUCCESS);
    CHECK(count_of(status) == n / 2);
    for (int i = 0; i < n / 2; ++i) REQUIRE(in[i] == all[2 * i]);
    in = empty(n);
    CHECK(MPI_Recv(in.data(), 1, halves, 0, 5, scene.comm, &status) == MPI_SUCCESS);
    for (int i = 0; i < n / 2; ++i) REQUIRE(in[2 * i] == all[i]);
  }
  MPI_Type_free(&halves);
}

TEST_CASE("Where it is measured, the first messages of a size go both ways") {
  TWO_RANKS_WITH_COUNTERS();
  if (!measured()) return;
  constexpr int n = 200000, messages = 6;
  Scene scene;
  Counters count;
  for (int i = 0; i < messages; ++i) {
    Bytes data = sender() ? pattern(n, i) : empty(n);
    sender() ? MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm)
             : MPI_Recv(data.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(data, n, i));
  }
  // Three each, unless one way was held up so long that it counts as far slower.
  const std::uint64_t mine = count[receiver() ? "get_bytes" : "pipelined_bytes"];
  std::uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK(mine >= n);
  CHECK(all == messages * std::uint64_t{n});
}

TEST_CASE("MPI_Send does not return in the middle of a message of who waits for this process") {
  TWO_RANKS_WITH_COUNTERS();
  Counters count;
  int begun = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const int small = sizes[static_cast<std::size_t>(turn) % 2] + turn;
    const int large = sizes[static_cast<std::size_t>(turn / 2) % sizes.size()] + turn;
    const bool receives_large = rank() == turn % 2;
    const int out_bytes = receives_large ? small : large;
    const int in_bytes = receives_large ? large : small;
    CAPTURE(turn, out_bytes, in_bytes);
    const Bytes data = pattern(out_bytes, turn);
    Bytes in = empty(in_bytes);
    MPI_Request request;
    MPI_Irecv(in.data(), in_bytes, MPI_BYTE, partner(), 3, MPI_COMM_WORLD, &request);
    const std::uint64_t before_bytes = count["get_bytes"];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(data.data(), out_bytes, MPI_BYTE, partner(), 3, MPI_COMM_WORLD);
    // No other call yet. Where nothing has come, the other one's RTS has not been seen in time.
    if (in != empty(in_bytes)) ++begun;
    const bool in_the_middle = in != empty(in_bytes) && !holds(in, in_bytes, turn);
    // Only this process's thread may have begun it: it goes on, and reads.
    if (in_the_middle) REQUIRE(watch_until([&] { return holds(in, in_bytes, turn); }));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(in, in_bytes, turn));
    const std::uint64_t got_bytes = count["get_bytes"] - before_bytes;
    if (in_the_middle) CHECK(got_bytes == static_cast<std::uint64_t>(in_bytes));
  }
  if (begun == 0) WARN("no message came while MPI_Send waited");
}

TEST_CASE("A message does not wait for room that another process holds which computes") {
  if (size() < 3) return;
  constexpr int held_bytes = 30000, n = 1 << 20;
  int turn = 0;
  Steps steps;
  for (const int held : {8, 30, 60, 68, 70, 71, 72, 73, 74, 76, 100, 300}) {
    ++turn;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) {
      const Bytes small = pattern(held_bytes, 1), large = pattern(n, turn);
      std::vector<MPI_Request> requests(held);
      for (MPI_Request& each : requests)
        MPI_Isend(small.data(), held_bytes, MPI_BYTE, 2, 3, MPI_COMM_WORLD, &each);
      MPI_Send(large.data(), n, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
      MPI_Waitall(held, requests.data(), MPI_STATUSES_IGNORE);
    } else if (rank() == 1) {
      Bytes in = empty(n);
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, turn));
      steps.reach(turn);
    } else if (rank() == 2) {
      CAPTURE(held);
      steps.wait_for(turn);  // outside MPI, with the messages in front of it
      Bytes in = empty(held_bytes);
      for (int i = 0; i < held; ++i) {
        MPI_Recv(in.data(), held_bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(in, held_bytes, 1));
      }
    }
  }
}

TEST_CASE("A message does not wait for room that others take while its call waits") {
  if (size() < 3) return;
  constexpr int columns = 40000, n = (1 << 20) + 700;
  Steps steps;
  MPI_Datatype strided;
  MPI_Type_vector(columns, 1, 2, MPI_DOUBLE, &strided);
  MPI_Type_commit(&strided);
  int step = 0;
  for (const int held : {4, 17, 18, 19, 26, 40}) {
    CAPTURE(held);
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<MPI_Request> requests(static_cast<std::size_t>(held));
    if (rank() == 0) {
      // Fragments of these go out where the answers of rank 2 are seen: in MPI_Send.
      const std::vector<double> data(2 * columns, held);
      for (MPI_Request& each : requests)
        MPI_Isend(data.data(), 1, strided, 2, 3, MPI_COMM_WORLD, &each);
      steps.reach(step + 1);
      steps.wait_for(step + 2);
      const Bytes large = pattern(n, held);
      MPI_Send(large.data(), n, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
      MPI_Waitall(held, requests.data(), MPI_STATUSES_IGNORE);
    } else if (rank() == 1) {
      steps.wait_for(step + 2);
      compute(microseconds(20000));  // rank 0 has pushed what it can by then
      Bytes in = empty(n);
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, held));
      steps.reach(step + 3);
    } else if (rank() == 2) {
      std::vector<std::vector<double>> in(requests.size(), std::vector<double>(columns));
      for (std::size_t i = 0; i < in.size(); ++i)
        MPI_Irecv(in[i].data(), columns, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, &requests[i]);
      steps.wait_for(step + 1);
      poke(microseconds(50000));  // answers them
      steps.reach(step + 2);
      steps.wait_for(step + 3);  // outside MPI, with fragments in front of it
      MPI_Waitall(held, requests.data(), MPI_STATUSES_IGNORE);
      for (const std::vector<double>& each : in) CHECK(each == std::vector<double>(columns, held));
    }
    step += 3;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&strided);
}
