// P1, Field: every point-to-point call and mode; P1.1 to P1.3 with sizes around the limits, early
// and late receives.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <cstdlib>

using namespace overlap::test;
using std::chrono::microseconds;

namespace {

enum class Mode { standard, synchronous, buffered, ready };
enum class Form { blocking, nonblocking, persistent };

void send(Mode mode, Form form, const Bytes& data, int tag) {
  const void* from = data.data();
  const int n = static_cast<int>(data.size());
  const int to = partner();
  MPI_Comm comm = MPI_COMM_WORLD;
  if (form == Form::blocking) {
    switch (mode) {
      case Mode::standard: MPI_Send(from, n, MPI_BYTE, to, tag, comm); break;
      case Mode::synchronous: MPI_Ssend(from, n, MPI_BYTE, to, tag, comm); break;
      case Mode::buffered: MPI_Bsend(from, n, MPI_BYTE, to, tag, comm); break;
      case Mode::ready: MPI_Rsend(from, n, MPI_BYTE, to, tag, comm); break;
    }
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const bool once = form == Form::nonblocking;
  switch (mode) {
    case Mode::standard:
      (once ? MPI_Isend : MPI_Send_init)(from, n, MPI_BYTE, to, tag, comm, &request);
      break;
    case Mode::synchronous:
      (once ? MPI_Issend : MPI_Ssend_init)(from, n, MPI_BYTE, to, tag, comm, &request);
      break;
    case Mode::buffered:
      (once ? MPI_Ibsend : MPI_Bsend_init)(from, n, MPI_BYTE, to, tag, comm, &request);
      break;
    case Mode::ready:
      (once ? MPI_Irsend : MPI_Rsend_init)(from, n, MPI_BYTE, to, tag, comm, &request);
      break;
  }
  if (!once) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (!once) MPI_Request_free(&request);
}

/// Attached buffer for buffered sends.
struct Attached {
  explicit Attached(std::size_t n) : space(n) {
    MPI_Buffer_attach(space.data(), static_cast<int>(n));
  }
  ~Attached() {
    void* at = nullptr;
    int n = 0;
    MPI_Buffer_detach(&at, &n);  // waits until everything has left
  }
  Bytes space;
};

void check_status(const MPI_Status& status, std::size_t n, int source, int tag) {
  CHECK(status.MPI_SOURCE == source);
  CHECK(status.MPI_TAG == tag);
  CHECK(count_of(status) == static_cast<int>(n));
}

}  // namespace

TEST_CASE("P1.1 P1.2 P1.3 every mode and form, sizes around the limits, early and late receives") {
  Attached buffer(8 << 20);
  std::uint64_t seed = 1;
  for (Mode mode : {Mode::standard, Mode::synchronous, Mode::buffered, Mode::ready}) {
    for (Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
      for (std::size_t n : sizes_around_limits()) {
        for (bool early : {true, false}) {
          if (!early && mode == Mode::ready) continue;
          ++seed;
          const int tag = 5;
          if (sender()) {
            const Bytes data = pattern(n, seed);
            if (early) await(partner());
            send(mode, form, data, tag);
            if (mode != Mode::buffered) CHECK(holds(data, n, seed));
          } else if (receiver()) {
            Bytes data = empty(n);
            MPI_Status status{};
            if (early) {
              MPI_Request request = MPI_REQUEST_NULL;
              MPI_Irecv(data.data(), static_cast<int>(n), MPI_BYTE, partner(), tag, MPI_COMM_WORLD,
                        &request);
              tell(partner());
              MPI_Wait(&request, &status);
            } else {
              if (n % 2 == 0) poke(microseconds(50));
              MPI_Recv(data.data(), static_cast<int>(n), MPI_BYTE, partner(), tag, MPI_COMM_WORLD,
                       &status);
            }
            check_status(status, n, partner(), tag);
            INFO("mode " << static_cast<int>(mode) << " form " << static_cast<int>(form) << " n "
                         << n << " early " << early);
            CHECK(holds(data, n, seed));
          }
        }
      }
    }
  }
}

TEST_CASE("Field: a synchronous send ends only after its receive began") {
  for (std::size_t n : {std::size_t{0}, std::size_t{100}, std::size_t{200000}}) {
    if (sender()) {
      const Bytes data = pattern(n, n);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Issend(data.data(), static_cast<int>(n), MPI_BYTE, partner(), 1, MPI_COMM_WORLD,
                 &request);
      int done = 0;
      for (int i = 0; i < 200; ++i) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK(done == 0);
        if (done != 0) break;
      }
      tell(partner());
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (receiver()) {
      await(partner());
      Bytes data = empty(n);
      MPI_Recv(data.data(), static_cast<int>(n), MPI_BYTE, partner(), 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      CHECK(holds(data, n, n));
    }
  }
}

TEST_CASE("Field: persistent requests restarted many times with Startall") {
  constexpr int requests = 6;
  const std::size_t sizes[requests] = {0, 100, 4096, 4097, 70000, 262144};
  const int rounds = static_cast<int>(setting("OVERLAP_TEST_ROUNDS", 150));
  if (!paired()) return;
  std::vector<Bytes> out, in;
  std::vector<MPI_Request> all(2 * requests, MPI_REQUEST_NULL);
  for (int i = 0; i < requests; ++i) {
    out.push_back(Bytes(sizes[i]));
    in.push_back(empty(sizes[i]));
  }
  for (int i = 0; i < requests; ++i) {
    const int n = static_cast<int>(sizes[i]);
    MPI_Recv_init(in[i].data(), n, MPI_BYTE, partner(), i % 2, MPI_COMM_WORLD, &all[i]);
    (i % 3 == 2 ? MPI_Ssend_init : MPI_Send_init)(out[i].data(), n, MPI_BYTE, partner(), i % 2,
                                                  MPI_COMM_WORLD, &all[requests + i]);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < requests; ++i) {
      fill(out[i].data(), sizes[i], rank() * 100000 + round * 10 + i);
      std::fill(in[i].begin(), in[i].end(), 0xEE);
    }
    MPI_Startall(2 * requests, all.data());
    std::vector<MPI_Status> statuses(2 * requests);
    MPI_Waitall(2 * requests, all.data(), statuses.data());
    for (int i = 0; i < requests; ++i) {
      CHECK(count_of(statuses[i]) == static_cast<int>(sizes[i]));
      CHECK(holds(in[i], sizes[i], partner() * 100000 + round * 10 + i));
    }
  }
  for (MPI_Request& request : all) MPI_Request_free(&request);
}

TEST_CASE("MPI_Start of a request that is under way ends no program") {
  // ob1 posts it twice, and the next message goes astray.
  if (!paired() || !over_pml("speculative")) return;
  const ErrorsReturn returned(MPI_COMM_WORLD);
  int value = -1;
  const int own = rank();
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Recv_init(&value, 1, MPI_INT, partner(), 14, MPI_COMM_WORLD, &receive);
  MPI_Start(&receive);
  CHECK(error_class(MPI_Start(&receive)) == MPI_ERR_REQUEST);
  MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), 15, nullptr, 0, MPI_INT, partner(), 15,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // nothing comes before both have done that
  MPI_Send(&own, 1, MPI_INT, partner(), 14, MPI_COMM_WORLD);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  CHECK(value == partner());
  MPI_Request_free(&receive);
}

TEST_CASE("Field: Sendrecv and Sendrecv_replace") {
  if (!paired()) return;
  for (std::size_t n : sizes_around_limits()) {
    const Bytes out = pattern(n, rank() + n);
    Bytes in = empty(n);
    MPI_Status status{};
    MPI_Sendrecv(out.data(), static_cast<int>(n), MPI_BYTE, partner(), 9, in.data(),
                 static_cast<int>(n), MPI_BYTE, partner(), 9, MPI_COMM_WORLD, &status);
    check_status(status, n, partner(), 9);
    CHECK(holds(in, n, partner() + n));
    Bytes both = out;
    MPI_Sendrecv_replace(both.data(), static_cast<int>(n), MPI_BYTE, partner(), 9, partner(), 9,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(both, n, partner() + n));
  }
  int in = 5;
  MPI_Status status{};
  MPI_Sendrecv(&in, 1, MPI_INT, MPI_PROC_NULL, 0, &in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
               &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  CHECK(count_of(status) == 0);
}

TEST_CASE("Field: self sends [short]", "[short]") {
  for (std::size_t n : sizes_around_limits()) {
    for (bool early : {true, false}) {
      const Bytes out = pattern(n, n);
      Bytes in = empty(n + 3);
      MPI_Request requests[2];
      auto receive = [&] {
        MPI_Irecv(in.data(), static_cast<int>(n + 3), MPI_BYTE, rank(), 4, MPI_COMM_WORLD,
                  &requests[0]);
      };
      if (early) receive();
      (n % 2 == 0 ? MPI_Isend : MPI_Issend)(out.data(), static_cast<int>(n), MPI_BYTE, rank(), 4,
                                            MPI_COMM_WORLD, &requests[1]);
      if (!early) receive();
      MPI_Status statuses[2];
      MPI_Waitall(2, requests, statuses);
      check_status(statuses[0], n, rank(), 4);
      CHECK(holds(in, n, n));
    }
  }
}
