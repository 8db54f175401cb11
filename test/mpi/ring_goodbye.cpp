// Peers of another job: processes are spawned, talked to and disconnected, and both sides end with
// the other's last message in flight: on a slow wire it comes when the components above the BTL are
// closed.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int rounds = 3, turns = 40, messages = 200;
constexpr int large_bytes = 1 << 20;  // on a connection of its own

/// @param child  spawned by all of `parents`
/// @returns  wrong answers of it
int spawn_and_talk(char* program, MPI_Comm parents, MPI_Comm& child) {
  MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, parents, &child, MPI_ERRCODES_IGNORE);
  int got = -1, wrong = 0;
  for (int i = 0; i < turns; ++i) {
    MPI_Send(&i, 1, MPI_INT, 0, 1, child);
    MPI_Recv(&got, 1, MPI_INT, 0, 1, child, MPI_STATUS_IGNORE);
    wrong += got != i;
  }
  std::vector<char> large(large_bytes, 'l');
  MPI_Send(large.data(), large_bytes, MPI_CHAR, 0, 3, child);
  MPI_Recv(large.data(), large_bytes, MPI_CHAR, 0, 3, child, MPI_STATUS_IGNORE);
  return wrong + (large.back() != 'a' ? 1 : 0);
}

/// The other side of it.
void answer(int rank, MPI_Comm parents) {
  std::vector<char> large(large_bytes);
  MPI_Recv(large.data(), large_bytes, MPI_CHAR, rank, 3, parents, MPI_STATUS_IGNORE);
  large.back() = large.back() == 'l' ? 'a' : 'w';
  MPI_Send(large.data(), large_bytes, MPI_CHAR, rank, 3, parents);
}

int talk_to_child(char* program) {
  MPI_Comm child = MPI_COMM_NULL;
  int wrong = spawn_and_talk(program, MPI_COMM_SELF, child);
  std::vector<int> values(messages, -1);
  std::vector<MPI_Request> requests(messages);
  for (int i = 0; i < messages; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 0, 2, child, &requests[i]);
  MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = 0; i < messages; ++i) wrong += values[i] != i;
  MPI_Comm_disconnect(&child);
  return wrong;
}

void be_child(MPI_Comm parent) {
  int got = -1;
  for (int i = 0; i < turns; ++i) {
    MPI_Recv(&got, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
    MPI_Send(&got, 1, MPI_INT, 0, 1, parent);
  }
  answer(0, parent);
  for (int i = 0; i < messages; ++i) MPI_Send(&i, 1, MPI_INT, 0, 2, parent);
  MPI_Comm_disconnect(&parent);
}

/// The child is spawned by all processes, and says goodbye to more of them than it has send buffers
/// at first.
int talk_to_common_child(char* program) {
  MPI_Comm child = MPI_COMM_NULL;
  const int wrong = spawn_and_talk(program, MPI_COMM_WORLD, child);
  int flag = 0;
  MPI_Comm_disconnect(&child);
  // Who takes the end for a fault ends the job.
  const double end_s = MPI_Wtime() + 1;
  while (MPI_Wtime() < end_s) MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  return wrong;
}

void be_common_child(MPI_Comm parents, int count) {
  int got = -1;
  for (int i = 0; i < turns; ++i) {
    for (int rank = 0; rank < count; ++rank) {
      MPI_Recv(&got, 1, MPI_INT, rank, 1, parents, MPI_STATUS_IGNORE);
      MPI_Send(&got, 1, MPI_INT, rank, 1, parents);
    }
  }
  for (int rank = 0; rank < count; ++rank) answer(rank, parents);
  MPI_Comm_disconnect(&parents);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  int wrong = 0, ranks = 1, parents = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (parent != MPI_COMM_NULL) MPI_Comm_remote_size(parent, &parents);
  if (parents > 1) {
    be_common_child(parent, parents);
  } else if (parents == 1) {
    be_child(parent);
  } else if (ranks > 1) {
    wrong = talk_to_common_child(argv[0]);
  } else {
    for (int round = 0; round < rounds; ++round) wrong += talk_to_child(argv[0]);
    std::printf("%d values wrong\n", wrong);
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
