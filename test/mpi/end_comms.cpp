// Communicators whose last reference goes inside MPI_Finalize while a peer still uses them: what
// that peer cancels must end. Its own main, because nothing may come between rank 0's last call and
// MPI_Finalize.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace {

std::vector<char> buffer(1'000'000);
MPI_Comm freed_late = MPI_COMM_NULL;

/// A copy of MPI_COMM_WORLD on which each side has heard of the other, so that RTRs may be sent.
MPI_Comm used_copy(int partner) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  char in = 0, out = 0;
  MPI_Sendrecv(&out, 1, MPI_BYTE, partner, 9, &in, 1, MPI_BYTE, partner, 9, comm,
               MPI_STATUS_IGNORE);
  return comm;
}

MPI_Request receive_on(MPI_Comm comm, int partner) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, partner, 1, comm, &request);
  return request;
}

/// Poll until the RTR has gone out, cancel, wait. @returns  whether it was cancelled
bool cancel_on(MPI_Comm comm, int partner) {
  MPI_Request request = receive_on(comm, partner);
  for (int i = 0, flag = 0; i < 300; ++i, usleep(1000))
    MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Cancel(&request);
  MPI_Status status{};
  MPI_Wait(&request, &status);
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  return cancelled != 0;
}

int free_it(MPI_Comm, int, void*, void*) { return MPI_Comm_free(&freed_late); }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int partner = rank ^ 1;
  int wrong = 0;
  if (partner < size) {
    // One goes with a cancelled request that nobody waits for, one with an attribute of
    // MPI_COMM_SELF.
    MPI_Comm held = used_copy(partner);
    freed_late = used_copy(partner);
    if (rank % 2 == 0) {
      MPI_Request request = receive_on(held, partner);
      MPI_Cancel(&request);
      MPI_Request_free(&request);
      MPI_Comm_free(&held);
      int key = MPI_KEYVAL_INVALID;
      MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_it, &key, nullptr);
      MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    } else {
      usleep(300000);
      wrong += cancel_on(held, partner) ? 0 : 1;
      wrong += cancel_on(freed_late, partner) ? 0 : 1;
      MPI_Comm_free(&held);
      MPI_Comm_free(&freed_late);
    }
  }
  MPI_Finalize();
  if (wrong != 0) std::fprintf(stderr, "rank %d: %d receives were not cancelled\n", rank, wrong);
  return wrong != 0;
}
