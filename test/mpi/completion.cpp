// P1.8, P1.10: receives larger than their message, truncation; completion in every form; requests
// freed while they are active.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <algorithm>

using namespace overlap::test;
using std::chrono::microseconds;

namespace {

constexpr int large = 1 << 20;

/// Send sizes[i] as message i of one envelope; all receives have 1 MiB and are posted before, or
/// one by one.
void mixed_run(const std::vector<std::size_t>& sizes, int tag, std::uint64_t seed, bool preposted,
               bool blocking_sends) {
  const int n = static_cast<int>(sizes.size());
  std::vector<MPI_Request> requests(n, MPI_REQUEST_NULL);
  std::vector<Bytes> data(n);
  if (sender()) {
    for (int i = 0; i < n; ++i) data[i] = pattern(sizes[i], seed * 1000 + i);
    if (preposted) await(partner());
    for (int i = 0; i < n; ++i) {
      const int bytes = static_cast<int>(sizes[i]);
      if (blocking_sends)
        MPI_Send(data[i].data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD);
      else
        MPI_Isend(data[i].data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; ++i) CHECK(holds(data[i], sizes[i], seed * 1000 + i));
  } else if (receiver()) {
    for (Bytes& buffer : data) buffer = empty(large);
    std::vector<MPI_Status> statuses(n);
    for (int i = 0; i < n; ++i) {
      MPI_Irecv(data[i].data(), large, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &requests[i]);
      if (!preposted) MPI_Wait(&requests[i], &statuses[i]);
    }
    if (preposted) {
      tell(partner());
      MPI_Waitall(n, requests.data(), statuses.data());
    }
    for (int i = 0; i < n; ++i) {
      INFO("seed " << seed << " message " << i << " of " << n << " size " << sizes[i]
                   << " preposted " << preposted << " blocking " << blocking_sends);
      CHECK(count_of(statuses[i]) == static_cast<int>(sizes[i]));
      CHECK(holds(data[i], sizes[i], seed * 1000 + i));
    }
  }
}

}  // namespace

TEST_CASE("P1.8 one small message into a receive of 1 MiB") {
  for (std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{4000}, std::size_t{5000}, std::size_t{70000}})
    for (bool preposted : {true, false}) mixed_run({n}, 1, n, preposted, true);
}

TEST_CASE(
    "P1.8 eager and rendezvous messages of one envelope in turn, all receives posted before") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 12; ++i) sizes.push_back((i + seed) % 2 == 0 ? 100 + i : 200000 + i);
    mixed_run(sizes, 2, seed, true, seed % 2 == 0);
  }
}

TEST_CASE("P1.6 P1.8 P1.9 eager and rendezvous messages of one envelope, many seeds") {
  const auto seeds = static_cast<std::uint64_t>(setting("OVERLAP_TEST_SEEDS", 40));
  for (std::uint64_t seed = 100; seed < 100 + seeds; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::size_t> sizes;
    const std::size_t messages = 1 + random() % 10;
    const unsigned share = random() % 4;
    for (std::size_t i = 0; i < messages; ++i)
      sizes.push_back(random() % 4 <= share ? random() % 4000 : 5000 + random() % 300000);
    mixed_run(sizes, 3 + static_cast<int>(seed % 2), seed, random() % 4 != 0, random() % 2 == 0);
  }
}

TEST_CASE("Field: a message longer than its receive is truncated and its sender completes") {
  ErrorsReturn errors(MPI_COMM_WORLD);
  for (std::size_t sent :
       {std::size_t{100}, std::size_t{5000}, std::size_t{300000}, std::size_t{large}}) {
    for (std::size_t room :
         {std::size_t{0}, std::size_t{50}, std::size_t{4500}, std::size_t{100000}}) {
      if (room >= sent) continue;
      for (bool early : {true, false}) {
        INFO("sent " << sent << " room " << room << " early " << early);
        if (sender()) {
          const Bytes data = pattern(sent, sent), next = pattern(sent, sent + 1);
          if (early) await(partner());
          CHECK(MPI_Send(data.data(), static_cast<int>(sent), MPI_BYTE, partner(), 7,
                         MPI_COMM_WORLD) == MPI_SUCCESS);
          CHECK(MPI_Send(next.data(), static_cast<int>(sent), MPI_BYTE, partner(), 7,
                         MPI_COMM_WORLD) == MPI_SUCCESS);
        } else if (receiver()) {
          Bytes data = empty(room + 64), next = empty(sent);
          MPI_Status status{};
          int code = MPI_SUCCESS;
          if (early) {
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Irecv(data.data(), static_cast<int>(room), MPI_BYTE, partner(), 7, MPI_COMM_WORLD,
                      &request);
            tell(partner());
            code = MPI_Wait(&request, &status);
          } else {
            code = MPI_Recv(data.data(), static_cast<int>(room), MPI_BYTE, partner(), 7,
                            MPI_COMM_WORLD, &status);
          }
          CHECK(error_class(code) == MPI_ERR_TRUNCATE);
          CHECK(std::all_of(data.begin() + static_cast<std::ptrdiff_t>(room), data.end(),
                            [](unsigned char b) { return b == 0xEE; }));
          // what comes behind is not disturbed
          MPI_Recv(next.data(), static_cast<int>(sent), MPI_BYTE, partner(), 7, MPI_COMM_WORLD,
                   &status);
          CHECK(holds(next, sent, sent + 1));
        }
      }
    }
  }
}

TEST_CASE("Field: Waitany, Waitsome, Testany, Testall, Testsome with small and large messages") {
  if (!paired()) return;
  constexpr int n = 16;
  for (int how = 0; how < 5; ++how) {
    std::vector<Bytes> out(n), in(n);
    std::vector<MPI_Request> requests(2 * n);
    auto bytes = [](int i) { return static_cast<std::size_t>(i % 2 == 0 ? i * 10 : 10000 * i); };
    for (int i = 0; i < n; ++i) {
      in[i] = empty(200000);
      out[i] = pattern(bytes(i), rank() * 100 + i);
    }
    for (int i = 0; i < n; ++i)
      MPI_Irecv(in[i].data(), 200000, MPI_BYTE, partner(), i, MPI_COMM_WORLD, &requests[i]);
    for (int i = n; i-- > 0;)
      MPI_Isend(out[i].data(), static_cast<int>(bytes(i)), MPI_BYTE, partner(), i, MPI_COMM_WORLD,
                &requests[n + i]);
    std::vector<int> ended(2 * n), counts(n, -1);
    auto end = [&](int index, const MPI_Status& status) {
      ++ended[index];
      if (index < n) counts[index] = count_of(status);
    };
    for (int left = 2 * n; left > 0;) {
      int some = 0, index = MPI_UNDEFINED, done = 0;
      std::vector<int> indices(2 * n);
      std::vector<MPI_Status> statuses(2 * n);
      switch (how) {
        case 0:
          MPI_Waitany(2 * n, requests.data(), &index, statuses.data());
          end(index, statuses[0]);
          --left;
          break;
        case 1:
          MPI_Testany(2 * n, requests.data(), &index, &done, statuses.data());
          if (done != 0) end(index, statuses[0]), --left;
          break;
        case 2: [[fallthrough]];
        case 3:
          (how == 2 ? MPI_Waitsome : MPI_Testsome)(2 * n, requests.data(), &some, indices.data(),
                                                   statuses.data());
          for (int i = 0; i < some; ++i) end(indices[i], statuses[i]), --left;
          break;
        default:
          MPI_Testall(2 * n, requests.data(), &done, statuses.data());
          for (int i = 0; done != 0 && i < 2 * n; ++i) end(i, statuses[i]), --left;
      }
    }
    INFO("how " << how);
    CHECK(std::all_of(ended.begin(), ended.end(), [](int times) { return times == 1; }));
    for (int i = 0; i < n; ++i) {
      CHECK(counts[i] == static_cast<int>(bytes(i)));
      CHECK(holds(in[i], bytes(i), partner() * 100 + i));
    }
  }
}

TEST_CASE("Field: active requests that are freed complete all the same") {
  if (!paired()) return;
  for (std::size_t n : {std::size_t{100}, std::size_t{5000}, std::size_t{500000}}) {
    for (int round = 0; round < 20; ++round) {
      const Bytes out = pattern(n, rank() * 100 + round);
      Bytes in = empty(n);
      MPI_Request request = MPI_REQUEST_NULL;
      if (round % 2 == 0) {
        MPI_Irecv(in.data(), static_cast<int>(n), MPI_BYTE, partner(), 3, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
      }
      MPI_Isend(out.data(), static_cast<int>(n), MPI_BYTE, partner(), 3, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      if (round % 2 == 0) {
        // no request to ask: the bytes tell (it is the only way that MPI leaves). Each is read
        // once: memcmp reads a byte that differs again and says "equal" when it has arrived
        // meanwhile.
        const Bytes expected = pattern(n, partner() * 100 + round);
        const volatile unsigned char* arriving = in.data();
        const double limit = MPI_Wtime() + 20;
        std::size_t good = 0;
        while (good < n && MPI_Wtime() < limit) {
          while (good < n && arriving[good] == expected[good]) ++good;
          if (good < n) poke(microseconds(20));
        }
      } else {
        MPI_Recv(in.data(), static_cast<int>(n), MPI_BYTE, partner(), 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      }
      CHECK(holds(in, n, partner() * 100 + round));
      // both sides are past this round: the freed send has been read
      MPI_Sendrecv(nullptr, 0, MPI_BYTE, partner(), 4, nullptr, 0, MPI_BYTE, partner(), 4,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}
