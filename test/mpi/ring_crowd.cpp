// P2.6: more peers than a polling set holds, and all of them leave at once. The exit status of the
// job is part of the test.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

TEST_CASE(
    "every rank exchanges short messages with every other, and nobody takes the end for a fault") {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<int> out(ranks), in(ranks);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < ranks; ++i) out[i] = rank() * 1000 + static_cast<int>(i) + round;
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < ranks; ++i)
      REQUIRE(in[i] == static_cast<int>(i) * 1000 + rank() + round);
  }
}
