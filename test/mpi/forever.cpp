// Exchange messages small and large for so many seconds: something to disturb from outside.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  constexpr int large = 300000;
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double end = MPI_Wtime() + (argc > 1 ? std::atof(argv[1]) : 1);
  std::vector<unsigned char> in(large), out(large);
  for (int more = 1; more;) {
    for (int bytes : {8, large}) {
      MPI_Sendrecv(out.data(), bytes, MPI_BYTE, rank ^ 1, 1, in.data(), bytes, MPI_BYTE, rank ^ 1,
                   1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    more = MPI_Wtime() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
