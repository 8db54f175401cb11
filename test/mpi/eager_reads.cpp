// Messages that could go eagerly through shared memory, and are read by their receiver instead: how
// their data comes, and that no sender waits for a receive.
//
// Runs with pml/speculative only; what it expects follows the OMPI_MCA_ variables that mpirun hands
// on.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <fstream>
#include <string>
#include <vector>

using namespace overlap::test;

namespace {

constexpr int rounds = 50;

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

// The first one: nothing that has been written has made pushes the faster way yet.
TEST_CASE("Sends behind sends are pushed where ways are measured") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Counters count;
  const Bytes data = pattern(n, 1);  // not written again, so that reads are fast
  Bytes in = empty(n);
  for (int i = 0; i < 10 * rounds; ++i) {
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
    MPI_Recv(in.data(), n, MPI_BYTE, sender() ? 1 : 0, 3, scene.comm, MPI_STATUS_IGNORE);
    if (receiver()) MPI_Send(data.data(), n, MPI_BYTE, 0, 3, scene.comm);
  }
  MPI_Barrier(scene.comm);
  const auto before = count["rts_eager_sized"];
  for (int i = 0; i < 4 * rounds; ++i) {
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
    if (receiver()) MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
  }
  CHECK(holds(in, n, 1));
  const auto read = count["rts_eager_sized"] - before;
  if (sender()) CHECK((are_read() ? read == 4 * rounds : read <= 1));  // the first may be an answer
}

// In front of those whose receivers are late: who has been is not asked to read.
TEST_CASE("Who sends one after the other does not wait for who has sent a stream before") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384, stream = 200, messages = 100;
  Scene scene;
  Counters count;
  const Bytes data = pattern(n, 1);
  Bytes in = empty(n);
  for (int i = 0; i < stream; ++i) {
    if (receiver()) MPI_Send(data.data(), n, MPI_BYTE, 0, 3, scene.comm);
    if (sender()) MPI_Recv(in.data(), n, MPI_BYTE, 1, 3, scene.comm, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(scene.comm);
  const auto before = count["rts_eager_sized"];
  for (int i = 0; i < messages; ++i) {
    if (sender()) {
      MPI_Request request;
      MPI_Isend(data.data(), n, MPI_BYTE, 1, 4, scene.comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      std::this_thread::sleep_for(microseconds(500));
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 4, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, 1));
      in = empty(n);
    }
  }
  if (sender() && !are_read()) CHECK(count["rts_eager_sized"] - before <= 2);
}

TEST_CASE("Several at a time, to who sends as many, go one way all and both ways by turns") {
  TWO_RANKS_WITH_COUNTERS();
  // More than those for which a receiver that was late in the last test case is not asked to read.
  constexpr int n = 16384, several = 4, exchanges = 600;
  Scene scene;
  Counters count;
  const int other = sender() ? 1 : 0;
  std::vector<Bytes> data, in(several, empty(n));
  for (int i = 0; i < several; ++i) data.push_back(pattern(n, i));
  std::vector<MPI_Request> requests(2 * several);
  int all = 0, none = 0;
  for (int round = 0; round < exchanges; ++round) {
    const auto before = count["rts_eager_sized"];
    for (int i = 0; i < several; ++i)
      MPI_Irecv(in[i].data(), n, MPI_BYTE, other, i, scene.comm, &requests[several + i]);
    for (int i = 0; i < several; ++i)
      MPI_Isend(data[i].data(), n, MPI_BYTE, other, i, scene.comm, &requests[i]);
    const auto read = count["rts_eager_sized"] - before;
    MPI_Waitall(2 * several, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < several; ++i) CHECK(holds(in[i], n, i));
    all += read == several ? 1 : 0;
    none += read == 0 ? 1 : 0;
    in.assign(several, empty(n));
  }
  // A process that finds its peer in the middle of the next exchange may take it for two.
  CHECK(all + none >= exchanges * 9 / 10);
  if (are_read()) CHECK(none == 0);
  if (never_read()) CHECK(all == 0);
  if (!are_read() && !never_read()) {
    CHECK(all > 0);
    CHECK(none > 0);
  }
}

TEST_CASE("Messages from 4 KiB to the eager limit are read, as the parameter says") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters count;
  for (const int n : {4095, 4096, 8192, 16384, 28672}) {
    CAPTURE(n);
    const auto before = count["rts_eager_sized"];
    if (sender() || receiver()) CHECK(alternate(scene.comm, n));
    const auto read = count["rts_eager_sized"] - before;
    if (n < 4096 || never_read()) CHECK(read == 0);
    if (n >= 4096 && are_read()) CHECK(read == rounds);
  }
}

TEST_CASE("What is not contiguous or is buffered is not read") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Counters count;
  MPI_Datatype halves;
  MPI_Type_vector(n, 1, 2, MPI_BYTE, &halves);
  MPI_Type_commit(&halves);
  const Bytes data = pattern(2 * n, 7);
  Bytes in = empty(n), other_in = empty(2 * n);
  std::vector<char> attached(n + MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  for (int i = 0; i < rounds; ++i) {
    if (sender()) {
      MPI_Send(data.data(), 1, halves, 1, 3, scene.comm);
      MPI_Bsend(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
    } else {
      MPI_Recv(other_in.data(), 1, halves, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, 7));
    }
    MPI_Barrier(scene.comm);
  }
  void* detached = nullptr;
  int detached_bytes = 0;
  MPI_Buffer_detach(&detached, &detached_bytes);
  CHECK(count["rts_eager_sized"] == 0);
  MPI_Type_free(&halves);
}

TEST_CASE("Windows, exchanges and persistent sends of messages that are read") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384, window = 16;
  Scene scene;
  Counters count;
  const int other = sender() ? 1 : 0;
  std::vector<Bytes> data, in(window, empty(n));
  for (int i = 0; i < window; ++i) data.push_back(pattern(n, i));
  std::vector<MPI_Request> sends(window), receives(window), starts(window);
  for (int i = 0; i < window; ++i)
    MPI_Send_init(data[i].data(), n, MPI_BYTE, other, i, scene.comm, &starts[i]);
  for (const bool persistent : {false, true}) {
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < window; ++i) {
        in[i] = empty(n);
        MPI_Irecv(in[i].data(), n, MPI_BYTE, other, i, scene.comm, &receives[i]);
      }
      if (persistent) MPI_Startall(window, starts.data());
      for (int i = 0; i < window && !persistent; ++i)
        MPI_Isend(data[i].data(), n, MPI_BYTE, other, i, scene.comm, &sends[i]);
      MPI_Waitall(window, receives.data(), MPI_STATUSES_IGNORE);
      MPI_Waitall(window, persistent ? starts.data() : sends.data(), MPI_STATUSES_IGNORE);
      for (int i = 0; i < window; ++i) CHECK(holds(in[i], n, i));
    }
  }
  for (MPI_Request& each : starts) MPI_Request_free(&each);
  if (are_read()) CHECK(count["rts_eager_sized"] == 2 * window * rounds);
  if (never_read()) CHECK(count["rts_eager_sized"] == 0);
}

TEST_CASE("A synchronous send that is read ends behind its match") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Steps steps;
  for (int i = 0; i < 5; ++i) {
    if (sender()) {
      const Bytes data = pattern(n, i);
      MPI_Request request;
      MPI_Issend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
      // Its receiver has looked at what has come, without a receive for it.
      MPI_Recv(nullptr, 0, MPI_BYTE, 1, 4, scene.comm, MPI_STATUS_IGNORE);
      int ended = 1;
      for (int look = 0; look < 100; ++look) MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
      CHECK(ended == 0);
      MPI_Send(nullptr, 0, MPI_BYTE, 1, 5, scene.comm);
      if (ended == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      Bytes in = empty(n);
      MPI_Probe(0, 3, scene.comm, MPI_STATUS_IGNORE);
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 4, scene.comm);
      MPI_Recv(nullptr, 0, MPI_BYTE, 0, 5, scene.comm, MPI_STATUS_IGNORE);
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, i));
    }
  }
}

TEST_CASE("A sender waits for a receiver that computes now and then only") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384, messages = 200;
  Scene scene;
  Counters count;
  for (int i = 0; i < messages; ++i) {
    const Bytes data = pattern(n, i);
    Bytes in = empty(n);
    if (sender()) {
      MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
      MPI_Recv(nullptr, 0, MPI_BYTE, 1, 4, scene.comm, MPI_STATUS_IGNORE);
    } else {
      std::this_thread::sleep_for(microseconds(500));
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, i));
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 4, scene.comm);
    }
  }
  if (sender() && !are_read()) CHECK(count["rts_eager_sized"] <= messages / 10);
}

TEST_CASE("Who sends several at a time waits for a receiver that computes now and then only") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384, several = 2, exchanges = 200;
  Scene scene;
  Counters count;
  const int other = sender() ? 1 : 0;
  const Bytes data = pattern(n, 1);
  std::vector<Bytes> in(several, empty(n));
  std::vector<MPI_Request> requests(several);
  const auto send_all = [&] {
    for (MPI_Request& each : requests)
      MPI_Isend(data.data(), n, MPI_BYTE, other, 3, scene.comm, &each);
    MPI_Waitall(several, requests.data(), MPI_STATUSES_IGNORE);
  };
  for (int i = 0; i < exchanges; ++i) {
    if (sender()) send_all();
    if (receiver()) std::this_thread::sleep_for(microseconds(500));
    for (Bytes& each : in) {
      MPI_Recv(each.data(), n, MPI_BYTE, other, 3, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(each, n, 1));
    }
    if (receiver()) send_all();
    in.assign(several, empty(n));
  }
  if (sender() && !are_read()) CHECK(count["rts_eager_sized"] <= several * exchanges / 10);
}

TEST_CASE("A receive with gaps needs no call of a sender that has left MPI") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 8192;
  Scene scene;
  Steps steps;
  MPI_Datatype halves;
  MPI_Type_vector(n, 1, 2, MPI_BYTE, &halves);
  MPI_Type_commit(&halves);
  for (const bool synchronous : {false, true}) {
    const int base = synchronous ? 2 : 0;
    if (sender()) {
      const Bytes data = pattern(n, base);
      MPI_Request request;
      (synchronous ? MPI_Issend : MPI_Isend)(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
      steps.reach(base + 1);
      steps.wait_for(base + 2);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      Bytes in = empty(2 * n), packed = empty(n);
      steps.wait_for(base + 1);
      MPI_Recv(in.data(), 1, halves, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      steps.reach(base + 2);
      for (int i = 0; i < n; ++i)
        packed[static_cast<std::size_t>(i)] = in[2 * static_cast<std::size_t>(i)];
      CHECK(holds(packed, n, base));
      CHECK(in[1] == empty(1)[0]);
    }
  }
  MPI_Type_free(&halves);
}

TEST_CASE("Two processes that both send first are not held up") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  Counters count;
  const int other = sender() ? 1 : 0;
  for (int i = 0; i < rounds; ++i) {
    CHECK(alternate(scene.comm, n, 5));
    const Bytes data = pattern(n, i);
    Bytes in = empty(n);
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

/// Both sides send at the same time, again and again.
void meet(MPI_Comm comm) {
  constexpr int n = 16384;
  const int other = sender() ? 1 : 0;
  const Bytes data = pattern(n, 1);
  for (int i = 0; i < rounds; ++i) {
    CHECK(alternate(comm, n, 5));
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

TEST_CASE("Two messages that meet are not held up") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  meet(scene.comm);
}

TEST_CASE("A message on a communicator that its receiver has not used is not held up") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 16384;
  Scene scene;
  for (int i = 0; i < 20; ++i) {
    CHECK(alternate(scene.comm, n, 5));
    MPI_Comm fresh = MPI_COMM_NULL;
    MPI_Comm_dup(scene.comm, &fresh);
    const Bytes data = pattern(n, i);
    Bytes in = empty(n);
    if (sender()) MPI_Send(data.data(), n, MPI_BYTE, 1, 4, fresh);
    MPI_Barrier(scene.comm);
    if (receiver()) {
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 4, fresh, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, i));
    }
    MPI_Comm_free(&fresh);
  }
}

TEST_CASE("A message that is longer than its receive is truncated") {
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

namespace {

/// Memory that this process reads, and the kernel reads for nobody else. @returns  nullptr: none
const void* unreadable_page() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[vvar]") != std::string::npos)
      return reinterpret_cast<const void*>(std::stoull(line, nullptr, 16));
  }
  return nullptr;
}

}  // namespace

TEST_CASE("Memory that the kernel does not read says nothing of other memory") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int n = 4096, large = 1 << 20;
  Scene scene;
  Counters count;
  const Bytes data = pattern(large, 1);
  const void* const page = unreadable_page();
  if (sender() && page == nullptr) WARN("there is no [vvar]");
  for (int i = 0; i < 10; ++i) {
    Bytes in = empty(large), small = empty(n);
    MPI_Barrier(scene.comm);
    if (sender()) {
      MPI_Send(page != nullptr ? page : data.data(), n, MPI_BYTE, 1, 3, scene.comm);
      MPI_Request request;
      MPI_Isend(data.data(), large, MPI_BYTE, 1, 4, scene.comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(small.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      const auto before = count["get_bytes"];
      MPI_Request request;
      MPI_Irecv(in.data(), large, MPI_BYTE, 0, 4, scene.comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(in, large, 1));
      if (are_read()) CHECK(count["get_bytes"] - before == large);
    }
  }
}

// The last one: it cannot be undone.
TEST_CASE("Two messages that meet are not held up where the kernel refuses to copy") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters count;
  CHECK(alternate(scene.comm, 16384));
  const auto before = count["unexpected_pushed"];
  const bool forbidden = !receiver() || forbid(SYS_process_vm_readv);
  if (!forbidden) WARN("this system knows no filters");
  MPI_Barrier(scene.comm);
  constexpr int n = 16384;
  if (sender()) {
    MPI_Send(pattern(n, 1).data(), n, MPI_BYTE, 1, 3, scene.comm);
  } else {
    Bytes in = empty(n);
    int flag = 0;
    MPI_Probe(0, 3, scene.comm, MPI_STATUS_IGNORE);
    MPI_Iprobe(0, 5, scene.comm, &flag, MPI_STATUS_IGNORE);  // it is received later
    MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 1));
    if (are_read() && forbidden) CHECK(count["unexpected_pushed"] == before + 1);
  }
  meet(scene.comm);
}
