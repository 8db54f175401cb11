// P2.6: a receiver that computes takes no more messages once its buffers are full. Those to others
// go on (MPI's rule of progress).
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

TEST_CASE("Messages to receivers that compute leave buffers to those for another one") {
  REQUIRE(size() >= 4);
  constexpr int messages = 600, bytes = 1000;
  const int last = size() - 1;
  Scene scene;
  Steps steps;
  int number = 0;
  // Everybody has met.
  for (int i = 0; i < 3; ++i) MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, scene.comm);
  const Bytes out = pattern(bytes, 1);
  if (rank() == 0) {
    std::vector<MPI_Request> requests;
    for (int i = 0; i < messages; ++i) {
      for (int to = 1; to < last; ++to) {
        requests.emplace_back();
        MPI_Isend(out.data(), bytes, MPI_BYTE, to, 1, scene.comm, &requests.back());
      }
    }
    int flag = 0;
    for (int i = 0; i < 20000; ++i) MPI_Iprobe(1, 9, scene.comm, &flag, MPI_STATUS_IGNORE);
    MPI_Send(&number, 1, MPI_INT, last, 2, scene.comm);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  } else if (rank() == last) {
    MPI_Recv(&number, 1, MPI_INT, 0, 2, scene.comm, MPI_STATUS_IGNORE);
    steps.reach(1);
  } else {
    steps.wait_for(1);
    for (int i = 0; i < messages; ++i) {
      Bytes in = empty(bytes);
      MPI_Recv(in.data(), bytes, MPI_BYTE, 0, 1, scene.comm, MPI_STATUS_IGNORE);
      REQUIRE(holds(in, bytes, 1));
    }
  }
  MPI_Barrier(scene.comm);
}
