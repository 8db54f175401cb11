// What a program leaves behind when it calls MPI_Finalize: the job ends all the same, and nobody is
// sent anything that has left.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <unistd.h>

#include <array>

using namespace overlap::test;

TEST_CASE("Field: communicators that nobody frees") {
  for (int i = 0; i < 20; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
  }
}

TEST_CASE("Field: sends whose requests are freed, received late") {
  constexpr int count = 40, bytes = 4000;
  static Bytes all = empty(count * bytes);  // MPI reads it until MPI_Finalize
  if (sender()) {
    for (int i = 0; i < count; ++i) {
      unsigned char* data = all.data() + i * bytes;
      fill(data, bytes, static_cast<std::uint64_t>(i));
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data, bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
  } else if (receiver()) {
    usleep(300000);
    Bytes in = empty(bytes);
    for (int i = 0; i < count; ++i) {
      MPI_Recv(in.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(holds(in, bytes, static_cast<std::uint64_t>(i)));
    }
  }
}

// Last: the sender meets the cancels inside MPI_Finalize.
TEST_CASE("Field: receives that are cancelled before a late sender looks") {
  constexpr int count = 500, bytes = 200000;
  static Bytes buffer = empty(bytes);
  if (sender()) {
    tell(partner());
    usleep(200000);
  } else if (receiver()) {
    await(partner());
    int cancelled = 0;
    for (int i = 0; i < count; ++i) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(buffer.data(), bytes, MPI_BYTE, partner(), 10 + i, MPI_COMM_WORLD, &request);
      MPI_Cancel(&request);
      MPI_Status status{};
      MPI_Wait(&request, &status);
      int flag = 0;
      MPI_Test_cancelled(&status, &flag);
      cancelled += flag;
    }
    CHECK(cancelled == count);
  }
}
