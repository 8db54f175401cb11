// Two processes that answer each other with messages that could go eagerly through shared memory:
// how their data comes, and that no sender waits for a receive.
//
// Runs with pml/speculative only; what it expects follows the OMPI_MCA_ variables that mpirun hands
// on.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr int rounds = 50;

/// Where processes share cores nobody waits for a copy instead of sending.
bool may_be_read() { return direct() && !set_to("OMPI_MCA_mpi_yield_when_idle", "1"); }
bool are_read() { return is("blocking_copy", "read") && may_be_read(); }
bool never_read() { return is("blocking_copy", "fragments") || !may_be_read(); }

/// Send and receive by turns. @returns  whether all data was right
bool alternate(MPI_Comm comm, int n, int count = rounds) {
  bool ok = true;
  for (int i = 0; i < count; ++i) {
    const Bytes data = pattern(n, n + i);
    Bytes in = empty(n);
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, 1, 3, comm);
    MPI_Recv(in.data(), n, MPI_BYTE, sender() ? 1 : 0, 3, comm, MPI_STATUS_IGNORE);
    if (receiver()) MPI_Send(data.data(), n, MPI_BYTE, 0, 3, comm);
    ok = ok && holds(in, n, n + i);
  }
  return ok;
}

}  // namespace

TEST_CASE("Answers are read by their receivers, as the parameter says") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters count;
  for (const int n : {4095, 4096, 8192, 16384, 28672}) {
    CAPTURE(n);
    const auto before = count["rts_eager_sized"];
    if (sender() || receiver()) CHECK(alternate(scene.comm, n));
    const auto read = count["rts_eager_sized"] - before;
    // A round is seen first; the sides of a smaller size before leave nothing behind.
    if (n < 4096 || never_read()) CHECK(read == 0);
    if (n >= 4096 && are_read()) CHECK(read >= rounds - 2);
  }
}

TEST_CASE("What is not contiguous is not read, and neither are messages without answers") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Counters count;
  MPI_Datatype halves;
  MPI_Type_vector(n, 1, 2, MPI_BYTE, &halves);
  MPI_Type_commit(&halves);
  const Bytes data = pattern(2 * n, 7);
  Bytes in = empty(2 * n);
  const int other = sender() ? 1 : 0;
  for (int i = 0; i < rounds; ++i) {
    if (sender()) MPI_Send(data.data(), 1, halves, other, 3, scene.comm);
    MPI_Recv(in.data(), 1, halves, other, 3, scene.comm, MPI_STATUS_IGNORE);
    if (receiver()) MPI_Send(data.data(), 1, halves, other, 3, scene.comm);
  }
  for (int i = 0; i < rounds; ++i) {
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, other, 3, scene.comm);
    if (receiver()) MPI_Recv(in.data(), n, MPI_BYTE, other, 3, scene.comm, MPI_STATUS_IGNORE);
  }
  in = empty(n);
  for (int i = 0; i < rounds; ++i)
    MPI_Sendrecv(data.data(), n, MPI_BYTE, other, 3, in.data(), n, MPI_BYTE, other, 3, scene.comm,
                 MPI_STATUS_IGNORE);
  CHECK(holds(in, n, 7));
  CHECK(count["rts_eager_sized"] <= 1);  // the first behind the rounds may be an answer
  MPI_Type_free(&halves);
}

TEST_CASE("Two processes that both send first, behind many rounds, are not held up") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Counters count;
  const int other = sender() ? 1 : 0;
  for (int i = 0; i < rounds; ++i) {
    CHECK(alternate(scene.comm, n, 5));
    const Bytes data = pattern(n, i);
    Bytes in = empty(n);
    // Each side's last call was MPI_Recv, or is one more round away from it.
    if (receiver()) MPI_Recv(in.data(), n, MPI_BYTE, other, 4, scene.comm, MPI_STATUS_IGNORE);
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, other, 4, scene.comm);
    MPI_Send(data.data(), n, MPI_BYTE, other, 5, scene.comm);
    MPI_Recv(in.data(), n, MPI_BYTE, other, 5, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, i));
    MPI_Send(data.data(), n, MPI_BYTE, other, 6, scene.comm);
    MPI_Recv(in.data(), n, MPI_BYTE, other, 6, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, i));
  }
  if (are_read()) CHECK(count["rts_eager_sized"] > 0);
}

namespace {

/// Both sides send an answer at the same time, again and again.
void meet(MPI_Comm comm) {
  constexpr int n = 16384;
  const int other = sender() ? 1 : 0;
  const Bytes data = pattern(n, 1);
  for (int i = 0; i < rounds; ++i) {
    CHECK(alternate(comm, n, 5));
    // Both sides' last call with data was MPI_Recv, and rounds have gone before.
    Bytes in = empty(n);
    MPI_Request request = MPI_REQUEST_NULL;
    if (receiver()) MPI_Recv(in.data(), n, MPI_BYTE, other, 4, comm, MPI_STATUS_IGNORE);
    if (sender()) {
      MPI_Send(data.data(), n, MPI_BYTE, other, 4, comm);
      MPI_Recv(in.data(), n, MPI_BYTE, other, 5, comm, MPI_STATUS_IGNORE);
    } else {
      MPI_Isend(data.data(), n, MPI_BYTE, other, 5, comm, &request);
    }
    MPI_Send(data.data(), n, MPI_BYTE, other, 6, comm);
    MPI_Recv(in.data(), n, MPI_BYTE, other, 6, comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 1));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

}  // namespace

TEST_CASE("Two answers that meet are not held up") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters count;
  meet(scene.comm);
  if (are_read()) CHECK(count["unexpected_copied"] > 0);
}

TEST_CASE("An answer on a communicator that its receiver has not used is not held up") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  for (int i = 0; i < 20; ++i) {
    CHECK(alternate(scene.comm, n, 5));
    MPI_Comm fresh = MPI_COMM_NULL;
    MPI_Comm_dup(scene.comm, &fresh);
    const Bytes data = pattern(n, i);
    Bytes in = empty(n);
    // Its last call with data was MPI_Recv.
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, 1, 4, fresh);
    MPI_Barrier(scene.comm);
    if (receiver()) {
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 4, fresh, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, i));
    }
    MPI_Comm_free(&fresh);
  }
}

TEST_CASE("An answer that is probed for has been copied, and keeps its place") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Counters count;
  CHECK(alternate(scene.comm, n));
  if (sender()) {
    const Bytes data = pattern(n, 1), last = pattern(10, 2);
    MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
    MPI_Send(last.data(), 10, MPI_BYTE, 1, 3, scene.comm);
    Bytes in = empty(n);
    MPI_Recv(in.data(), n, MPI_BYTE, 1, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 3));
  } else {
    const auto before = count["unexpected_copied"];
    MPI_Status status;
    MPI_Probe(0, 3, scene.comm, &status);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK(bytes == n);
    if (are_read()) CHECK(count["unexpected_copied"] == before + 1);
    Bytes in = empty(n), short_in = empty(10);
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Recv(short_in.data(), 10, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 1));
    CHECK(holds(short_in, 10, 2));
    const Bytes data = pattern(n, 3);
    MPI_Send(data.data(), n, MPI_BYTE, 0, 3, scene.comm);
  }
}

TEST_CASE("An answer that is longer than its receive is truncated") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  const ErrorsReturn errors_return(scene.comm);
  CHECK(alternate(scene.comm, n));
  if (sender()) {
    const Bytes data = pattern(n, 1);
    MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
  } else {
    Bytes in = empty(n);
    const int rc = MPI_Recv(in.data(), 5000, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(error_class(rc) == MPI_ERR_TRUNCATE);
    CHECK(holds(in, 5000, 1));
  }
}

// The last one: it cannot be undone.
TEST_CASE("Two answers that meet are not held up where the kernel refuses to copy") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  CHECK(alternate(scene.comm, 16384));
  if (receiver() && !forbid(SYS_process_vm_readv)) WARN("this system knows no filters");
  meet(scene.comm);
}
