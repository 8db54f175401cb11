// Requests that have ended, are the last to hold their communicator, and are collected within
// MPI_Finalize, which need not progress before its processes have gone. Its own main, because
// nothing may come between the calls and MPI_Finalize.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <span>

namespace {

/// On a communicator over which everybody has sent, so that its end is told to all.
void leave_cancelled(std::span<char> buffers) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  for (char& each : buffers) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&each, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);  // nothing ends in the call then
  // MPI_Finalize lets go of a communicator once more, whoever holds it.
  static std::array<char, 5> buffers;
  leave_cancelled(std::span(buffers).first(1));
  leave_cancelled(std::span(buffers).subspan(1));
  MPI_Finalize();
  return 0;
}
