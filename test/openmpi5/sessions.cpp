// MPI sessions: communicators made from groups, which no two processes number alike, and MPI_Init
// beside and between sessions. Its own main, because there is no MPI_Init before the first one.
// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int failures = 0;

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      ++failures;                                                                  \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                              \
  } while (false)

const std::vector<int> sizes_bytes{0, 1, 1000, 9000, 100'000, 3'000'000};

int rank_in(MPI_Comm comm) {
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

MPI_Group group_of(MPI_Session session, const char* set) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group_from_session_pset(session, set, &group);
  return group;
}

MPI_Comm comm_from(MPI_Group group, const std::string& tag) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_create_from_group(group, tag.c_str(), MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  return comm;
}

std::vector<char> payload(int bytes, int sender, int seed) {
  return std::vector<char>(static_cast<std::size_t>(bytes),
                           static_cast<char>('a' + (sender + seed) % 20));
}

/// Everybody sends to the next one; receives are posted before, or behind, the messages.
void pass_around(MPI_Comm comm, int bytes, bool posted_early, int seed) {
  const int rank = rank_in(comm), size = size_of(comm);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const std::vector<char> out = payload(bytes, rank, seed);
  std::vector<char> in(out.size(), '-');
  MPI_Request requests[2];
  const auto post = [&] {
    MPI_Irecv(in.data(), bytes, MPI_CHAR, seed % 2 == 0 ? before : MPI_ANY_SOURCE, seed, comm,
              &requests[0]);
  };
  const auto send = [&] { MPI_Isend(out.data(), bytes, MPI_CHAR, next, seed, comm, &requests[1]); };
  posted_early ? post() : send();
  MPI_Barrier(comm);
  posted_early ? send() : post();
  MPI_Status statuses[2];
  MPI_Waitall(2, requests, statuses);
  EXPECT(statuses[0].MPI_SOURCE == before);
  EXPECT(in == payload(bytes, before, seed));
}

void exchange(MPI_Comm comm, int seed) {
  for (const int bytes : sizes_bytes) {
    pass_around(comm, bytes, true, seed);
    pass_around(comm, bytes, false, seed + 1);
  }
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  EXPECT(sum == size_of(comm));
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// The first ranks have more communicators of their own: what comes next has other indices there.
std::vector<MPI_Comm> lonely_ones(MPI_Session session, int rank) {
  std::vector<MPI_Comm> comms;
  MPI_Group self = group_of(session, "mpi://SELF");
  for (int i = 0; i < 3 - rank; ++i) comms.push_back(comm_from(self, "self " + std::to_string(i)));
  MPI_Group_free(&self);
  return comms;
}

void test_derived(MPI_Comm comm) {
  MPI_Comm twin = MPI_COMM_NULL, part = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &twin);
  MPI_Comm_split(comm, rank_in(comm) % 2, 0, &part);
  exchange(twin, 2);
  exchange(part, 4);
  exchange(comm, 6);
  MPI_Comm_free(&twin);
  MPI_Comm_free(&part);
}

void test_window(MPI_Comm comm) {
  const int rank = rank_in(comm), size = size_of(comm);
  int* memory = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int)) * size, sizeof(int), MPI_INFO_NULL, comm,
                   &memory, &win);
  for (int i = 0; i < size; ++i) memory[i] = -1;
  MPI_Win_fence(0, win);
  for (int i = 0; i < size; ++i) MPI_Put(&rank, 1, MPI_INT, i, rank, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < size; ++i) EXPECT(memory[i] == i);
  MPI_Win_free(&win);
}

/// A receive that nobody answers is cancelled, and the next communicator of the same group takes
/// the place of the freed one: nothing of the one may be taken for the other's.
void test_turnover(MPI_Group group) {
  for (int round = 0; round < 100; ++round) {
    MPI_Comm comm = comm_from(group, "turnover");
    std::vector<char> unused(200'000);
    MPI_Request request;
    pass_around(comm, 100, round % 3 == 0, round);
    MPI_Irecv(unused.data(), 200'000, MPI_CHAR, (rank_in(comm) + 1) % size_of(comm), 1000, comm,
              &request);
    MPI_Cancel(&request);
    MPI_Status status;
    MPI_Wait(&request, &status);
    int cancelled = 0;
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT(cancelled != 0);
    MPI_Comm_free(&comm);
  }
}

/// The even ranks and the odd ones.
void test_intercommunicator(MPI_Group all, int rank, int size) {
  std::vector<int> mine, others;
  for (int i = 0; i < size; ++i) (i % 2 == rank % 2 ? mine : others).push_back(i);
  MPI_Group local = MPI_GROUP_NULL, remote = MPI_GROUP_NULL;
  MPI_Group_incl(all, static_cast<int>(mine.size()), mine.data(), &local);
  MPI_Group_incl(all, static_cast<int>(others.size()), others.data(), &remote);
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Intercomm_create_from_groups(local, 0, remote, 0, "between", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                   &inter);
  if (rank == 0) {
    for (int i = 0; i < static_cast<int>(others.size()); ++i) MPI_Send(&i, 1, MPI_INT, i, 5, inter);
  } else if (rank % 2 == 1) {
    int got = -1;
    MPI_Recv(&got, 1, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE);
    EXPECT(got == rank_in(inter));
  }
  MPI_Barrier(inter);
  MPI_Comm_free(&inter);
  MPI_Group_free(&local);
  MPI_Group_free(&remote);
}

void test_session(const char* name) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group all = group_of(session, "mpi://WORLD");
  int rank = -1, size = 0;
  MPI_Group_rank(all, &rank);
  MPI_Group_size(all, &size);
  std::vector<MPI_Comm> lonely = lonely_ones(session, rank);
  MPI_Comm comm = comm_from(all, name);
  EXPECT(comm != MPI_COMM_NULL);
  exchange(comm, 0);
  test_derived(comm);
  test_window(comm);
  test_turnover(all);
  test_intercommunicator(all, rank, size);
  for (MPI_Comm& each : lonely) MPI_Comm_free(&each);
  exchange(comm, 8);
  MPI_Comm_free(&comm);
  MPI_Group_free(&all);
  MPI_Session_finalize(&session);
}

/// Requests that have ended and nobody has collected are the last to hold a communicator.
void test_left_requests() {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
  MPI_Info_free(&info);
  MPI_Group all = group_of(session, "mpi://WORLD");
  MPI_Comm comm = comm_from(all, "left"), twin = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &twin);
  std::vector<char> unused(1000);
  for (int i = 0; i < 64; ++i) {
    MPI_Request request;
    MPI_Irecv(unused.data(), 1000, MPI_CHAR, MPI_ANY_SOURCE, i, i % 2 == 0 ? comm : twin, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  MPI_Comm_free(&twin);
  MPI_Comm_free(&comm);
  MPI_Group_free(&all);
  MPI_Session_finalize(&session);
}

}  // namespace

int main(int argc, char** argv) {
  test_session("first");
  MPI_Init(&argc, &argv);
  exchange(MPI_COMM_WORLD, 0);
  test_session("beside MPI_Init");
  MPI_Finalize();
  test_session("behind MPI_Finalize");
  test_left_requests();
  return failures != 0;
}
