// Sends for which a BTL has no room: they arrive although their communicator is freed, they are
// complete only when they need their process no more, and they take no memory here.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace overlap::test;

namespace {

int packs;  ///< calls of opal_convertor_pack

}  // namespace

/// Counts, and does what Open MPI's own does.
extern "C" int opal_convertor_pack(void* convertor, void* pieces, void* count, void* packed_bytes) {
  using Pack = int (*)(void*, void*, void*, void*);
  static const auto pack = reinterpret_cast<Pack>(dlsym(RTLD_NEXT, "opal_convertor_pack"));
  ++packs;
  return pack(convertor, pieces, count, packed_bytes);
}

namespace {

constexpr int bytes = 4000;

/// Resident memory of this process, KiB.
long resident_kib() {
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * 4;
}

/// A file by which rank `of` says something without MPI.
std::string file_of(int of) {
  return "/tmp/overlap-back-pressure-" + std::to_string(getppid()) + "-" + std::to_string(of);
}

/// Receive `count` messages of pattern `seed` + i, in order.
void receive_all(int count, std::uint64_t seed, MPI_Comm comm) {
  for (int i = 0; i < count; ++i) {
    Bytes data = empty(bytes);
    MPI_Status status;
    MPI_Recv(data.data(), bytes, MPI_BYTE, partner(), 3, comm, &status);
    REQUIRE(count_of(status) == bytes);
    REQUIRE(holds(data, bytes, seed + static_cast<std::uint64_t>(i)));
  }
}

/// Outside MPI until the partner has said that it has everything.
bool partner_says_so() {
  const std::string file = file_of(partner());
  for (int i = 0; i < 600 && access(file.c_str(), F_OK) != 0; ++i) usleep(50000);
  return unlink(file.c_str()) == 0;
}
void say_so() { std::fclose(std::fopen(file_of(rank()).c_str(), "w")); }

/// Send `count` messages in some way, all complete at the end.
using SendAll = void (*)(const Bytes& data, int size_bytes, int count);

void send_blocking(const Bytes& data, int size_bytes, int count) {
  for (int i = 0; i < count; ++i)
    MPI_Send(data.data(), size_bytes, MPI_BYTE, partner(), 6, MPI_COMM_WORLD);
}

void send_together(const Bytes& data, int size_bytes, int count) {
  std::vector<MPI_Request> requests(count);
  for (MPI_Request& each : requests)
    MPI_Isend(data.data(), size_bytes, MPI_BYTE, partner(), 6, MPI_COMM_WORLD, &each);
  MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
}

/// Every other byte, so that a BTL has to pack.
void send_strided(const Bytes& data, int size_bytes, int count) {
  Bytes spread(2 * data.size());
  for (std::size_t i = 0; i < data.size(); ++i) spread[2 * i] = data[i];
  MPI_Datatype type;
  MPI_Type_vector(size_bytes, 1, 2, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < count; ++i) MPI_Send(spread.data(), 1, type, partner(), 6, MPI_COMM_WORLD);
  MPI_Type_free(&type);
}

void send_persistent(const Bytes& data, int size_bytes, int count) {
  std::vector<MPI_Request> requests(count);
  for (MPI_Request& each : requests)
    MPI_Send_init(data.data(), size_bytes, MPI_BYTE, partner(), 6, MPI_COMM_WORLD, &each);
  MPI_Startall(count, requests.data());
  MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  for (MPI_Request& each : requests) MPI_Request_free(&each);
}

}  // namespace

TEST_CASE("Whatever their sender does afterwards, messages whose sends are complete arrive") {
  const SendAll send_all = GENERATE(send_blocking, send_together, send_strided, send_persistent);
  // Larger ones need BTLs that take more than their eager limit at once.
  const int size_bytes = GENERATE(1, 8, 2000, 12000);
  const int count = size_bytes > 4000 ? 100 : 1000;
  CAPTURE(size_bytes);
  if (sender()) {
    send_all(pattern(static_cast<std::size_t>(size_bytes), 8), size_bytes, count);
    CHECK(partner_says_so());
  } else if (receiver()) {
    Bytes in = empty(static_cast<std::size_t>(size_bytes));
    compute(std::chrono::milliseconds(5));
    for (int i = 0; i < count; ++i) {
      MPI_Recv(in.data(), size_bytes, MPI_BYTE, partner(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      REQUIRE(holds(in, in.size(), 8));
    }
    say_so();
  }
}

TEST_CASE("Strided messages without room are packed once, however often there is none") {
  constexpr int count = 300, elements = 900;
  MPI_Datatype type;
  MPI_Type_vector(elements, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  std::vector<int> data(2 * elements);
  for (int i = 0; i < elements; ++i) data[2 * i] = i;
  if (sender()) {
    std::vector<MPI_Request> requests(count);
    const int before = packs;
    for (MPI_Request& each : requests)
      MPI_Isend(data.data(), 1, type, partner(), 7, MPI_COMM_WORLD, &each);
    for (int i = 0, done = 0; i < 5000; ++i)
      MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE);
    say_so();
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    CHECK(packs - before >= count);  // it is counted
    CHECK(packs - before <= 2 * count);
  } else if (receiver()) {
    CHECK(partner_says_so());  // outside MPI so far
    for (int i = 0; i < count; ++i) {
      std::vector<int> in(elements, -1);
      MPI_Recv(in.data(), elements, MPI_INT, partner(), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int at = 0; at < elements; ++at) REQUIRE(in[at] == at);
    }
  }
  MPI_Type_free(&type);
}

TEST_CASE("Messages sent on a communicator arrive although their sender frees it") {
  constexpr int count = 900;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (sender()) {
    std::vector<Bytes> data;
    std::vector<MPI_Request> requests(count);
    for (int i = 0; i < count; ++i) data.push_back(pattern(bytes, 100 + i));
    for (int i = 0; i < count; ++i)
      MPI_Isend(data[i].data(), bytes, MPI_BYTE, partner(), 3, comm, &requests[i]);
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    for (Bytes& each : data) std::memset(each.data(), 0, each.size());
  } else if (receiver()) {
    compute(std::chrono::milliseconds(50));
    receive_all(count, 100, comm);
  }
  MPI_Comm_free(&comm);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("Both sides send, wait and free a communicator with little room") {
  for (int turn = 0; turn < 5; ++turn) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (paired()) {
      constexpr int count = 300;
      std::vector<Bytes> out, in;
      std::vector<MPI_Request> requests;
      for (int i = 0; i < count; ++i) {
        in.push_back(empty(bytes));
        out.push_back(pattern(bytes, static_cast<std::uint64_t>(i + rank())));
      }
      requests.resize(2 * count);
      for (int i = 0; i < count; ++i)
        MPI_Irecv(in[i].data(), bytes, MPI_BYTE, partner(), 3, comm, &requests[2 * i]);
      for (int i = 0; i < count; ++i)
        MPI_Isend(out[i].data(), bytes, MPI_BYTE, partner(), 3, comm, &requests[2 * i + 1]);
      MPI_Waitall(2 * count, requests.data(), MPI_STATUSES_IGNORE);
      for (int i = 0; i < count; ++i)
        REQUIRE(holds(in[i], bytes, static_cast<std::uint64_t>(i + partner())));
    }
    MPI_Comm_free(&comm);
  }
}

TEST_CASE("A flood of isends to a receiver that computes costs no memory here") {
  constexpr int count = 20000;
  const Bytes data = pattern(bytes, 7);
  Bytes in = empty(bytes);
  // Empty messages first: the requests that as many active sends need are there afterwards.
  for (const int size_bytes : {0, bytes}) {
    if (sender()) {
      const long before_kib = resident_kib();
      std::vector<MPI_Request> requests(count);
      for (int i = 0; i < count; ++i)
        MPI_Isend(data.data(), size_bytes, MPI_BYTE, partner(), 4, MPI_COMM_WORLD, &requests[i]);
      const long after_kib = resident_kib();
      MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
      // 80 MB of payload; buffers of BTLs and no copies of it.
      if (size_bytes > 0) CHECK(after_kib - before_kib < 30000);
    } else if (receiver()) {
      compute(std::chrono::milliseconds(300));
      for (int i = 0; i < count; ++i) {
        MPI_Recv(in.data(), size_bytes, MPI_BYTE, partner(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i % 1000 == 0) REQUIRE(holds(in, static_cast<std::size_t>(size_bytes), 7));
        std::fill(in.begin(), in.end(), 0xEE);
      }
    }
  }
}

TEST_CASE("Non-contiguous messages in fragments wait for room, again and again, and arrive") {
  constexpr int count = 80, blocks = 4096, block = 8, stride = 16;
  MPI_Datatype type;
  MPI_Type_vector(blocks, block, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<std::vector<int>> data(count, std::vector<int>(blocks * stride, -1));
    std::vector<MPI_Request> requests(count, MPI_REQUEST_NULL);
    const auto value = [turn](int i, int at) { return 7 * at + 13 * i + turn; };
    if (receiver()) {
      for (int i = 0; i < count; ++i)
        MPI_Irecv(data[i].data(), 1, type, partner(), i, MPI_COMM_WORLD, &requests[i]);
      tell(partner());
      poke(std::chrono::milliseconds(20));  // answers what has been announced, then computes
      compute(std::chrono::milliseconds(100));
    } else if (sender()) {
      await(partner());
      for (int i = 0; i < count; ++i) {
        for (int at = 0; at < blocks * stride; ++at) data[i][at] = value(i, at);
        MPI_Isend(data[i].data(), 1, type, partner(), i, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    if (!receiver()) continue;
    int wrong = 0;
    for (int i = 0; i < count; ++i)
      for (int at = 0; at < blocks * stride; ++at)
        wrong += data[i][at] != (at % stride < block && at / stride < blocks ? value(i, at) : -1);
    CHECK(wrong == 0);
  }
  MPI_Type_free(&type);
}

TEST_CASE("Buffered messages have left the process when their buffer is detached") {
  constexpr int count = 300, size_bytes = 30000;
  if (sender()) {
    Bytes attached(static_cast<std::size_t>(count) * (size_bytes + MPI_BSEND_OVERHEAD));
    MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
    const Bytes data = pattern(size_bytes, 3);
    for (int i = 0; i < count; ++i)
      MPI_Bsend(data.data(), size_bytes, MPI_BYTE, partner(), 5, MPI_COMM_WORLD);
    void* detached = nullptr;
    int detached_bytes = 0;
    MPI_Buffer_detach(&detached, &detached_bytes);
    CHECK(partner_says_so());
  } else if (receiver()) {
    for (int i = 0; i < count; ++i) {
      Bytes data = empty(size_bytes);
      MPI_Recv(data.data(), size_bytes, MPI_BYTE, partner(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      REQUIRE(holds(data, size_bytes, 3));
    }
    say_so();
  }
}

TEST_CASE("A buffered send without room returns at once and arrives") {
  constexpr int count = 1500;
  Bytes attached(static_cast<std::size_t>(count) * (bytes + MPI_BSEND_OVERHEAD));
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  if (sender()) {
    for (int i = 0; i < count; ++i) {
      Bytes data = pattern(bytes, 500 + static_cast<std::uint64_t>(i));
      MPI_Bsend(data.data(), bytes, MPI_BYTE, partner(), 3, MPI_COMM_WORLD);
      std::memset(data.data(), 0, data.size());
    }
    tell(partner());
  } else if (receiver()) {
    await(partner());
    receive_all(count, 500, MPI_COMM_WORLD);
  }
  void* detached = nullptr;
  int detached_bytes = 0;
  MPI_Buffer_detach(&detached, &detached_bytes);
  CHECK(detached == attached.data());
}

TEST_CASE("Blocking and synchronous sends among a flood arrive in order") {
  constexpr int count = 600;
  if (sender()) {
    std::vector<Bytes> data;
    for (int i = 0; i < count; ++i) data.push_back(pattern(bytes, 900 + i));
    std::vector<MPI_Request> requests(count, MPI_REQUEST_NULL);
    for (int i = 0; i < count; ++i) {
      if (i % 50 == 49)
        MPI_Send(data[i].data(), bytes, MPI_BYTE, partner(), 3, MPI_COMM_WORLD);
      else if (i % 50 == 24)
        MPI_Issend(data[i].data(), bytes, MPI_BYTE, partner(), 3, MPI_COMM_WORLD, &requests[i]);
      else
        MPI_Isend(data[i].data(), bytes, MPI_BYTE, partner(), 3, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  } else if (receiver()) {
    compute(std::chrono::milliseconds(20));
    receive_all(count, 900, MPI_COMM_WORLD);
  }
}
