// Exchange messages small and large for so many seconds: something to disturb from outside. With a
// second argument even ranks only send, small messages without a pause. Says when they have begun.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  constexpr int large = 300000;
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double end = MPI_Wtime() + (argc > 1 ? std::atof(argv[1]) : 1);
  const bool one_way = argc > 2;
  std::vector<unsigned char> in(large), out(large);
  bool begun = false;
  for (int more = 1; more;) {
    if (one_way && rank % 2 == 0) {
      MPI_Send(out.data(), 8, MPI_BYTE, rank ^ 1, 1, MPI_COMM_WORLD);
    } else if (one_way) {
      MPI_Recv(in.data(), 8, MPI_BYTE, rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (int bytes : {8, large}) {
        MPI_Sendrecv(out.data(), bytes, MPI_BYTE, rank ^ 1, 1, in.data(), bytes, MPI_BYTE, rank ^ 1,
                     1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    more = MPI_Wtime() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!begun) std::fputs("exchanging\n", stderr);
    begun = true;
  }
  MPI_Finalize();
}
