// Random traffic against a reference: content and order per (source, tag). OVERLAP_TEST_SECONDS and
// OVERLAP_TEST_SEED choose length and seed.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <cstdio>

using namespace overlap::test;
using std::chrono::microseconds;

namespace {

constexpr int tags = 3;
constexpr std::size_t bytes_max = 300 << 10;

/// One message of a round; every rank draws the same list.
struct Message {
  int source, to, tag;
  std::size_t bytes;
  bool synchronous;
};

struct Round {
  std::vector<Message> messages;
  std::vector<bool> posted_before;  ///< by rank: receives first
  std::vector<bool> wildcards;      ///< by rank: some receives take any tag of a source
  std::uint64_t seed;
};

Round draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Round round{{}, {}, {}, seed};
  const int ranks = size();
  const std::size_t messages = 1 + random() % (8 * static_cast<unsigned>(ranks));
  const unsigned large_share = random() % 5;
  for (std::size_t i = 0; i < messages; ++i) {
    Message message{};
    message.source = static_cast<int>(random() % ranks);
    message.to = static_cast<int>(random() % ranks);
    message.tag = static_cast<int>(random() % tags);
    message.bytes = random() % 5 < large_share ? random() % (bytes_max + 1) : random() % 6000;
    message.synchronous = random() % 8 == 0;
    round.messages.push_back(message);
  }
  for (int r = 0; r < ranks; ++r) {
    round.posted_before.push_back(random() % 2 == 0);
    round.wildcards.push_back(random() % 4 == 0);
  }
  return round;
}

/// What one receive must get: the reference matcher for receives that are posted in the order of
/// the messages of their source.
struct Receive {
  std::size_t message;
  Bytes data;
};

void play(const Round& round, MPI_Comm comm, std::mt19937_64& private_random) {
  std::vector<Bytes> out;
  std::vector<MPI_Request> requests;
  std::vector<Receive> receives;
  std::vector<MPI_Request> receive_requests;
  const auto& messages = round.messages;
  out.reserve(messages.size());

  auto post_all = [&](bool late) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].to != rank()) continue;
      const std::size_t slack = private_random() % 3 == 0 ? private_random() % 20000 : 0;
      receives.push_back({i, empty(messages[i].bytes + slack)});
      // any tag of this source: the k-th receive gets the k-th message whatever its tag
      const int tag =
          round.wildcards[rank()] && private_random() % 3 == 0 ? MPI_ANY_TAG : messages[i].tag;
      receive_requests.push_back(MPI_REQUEST_NULL);
      MPI_Irecv(receives.back().data.data(), static_cast<int>(receives.back().data.size()),
                MPI_BYTE, messages[i].source, tag, comm, &receive_requests.back());
      if (late && private_random() % 4 == 0) MPI_Wait(&receive_requests.back(), MPI_STATUS_IGNORE);
    }
  };
  auto send_all = [&] {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& message = messages[i];
      if (message.source != rank()) continue;
      out.push_back(pattern(message.bytes, round.seed * 1000 + i));
      requests.push_back(MPI_REQUEST_NULL);
      (message.synchronous ? MPI_Issend : MPI_Isend)(
          out.back().data(), static_cast<int>(message.bytes), MPI_BYTE, message.to, message.tag,
          comm, &requests.back());
      if (private_random() % 6 == 0) poke(microseconds(private_random() % 30));
    }
  };
  if (round.posted_before[rank()]) {
    post_all(false);
    send_all();
  } else {
    send_all();
    if (private_random() % 2 == 0)
      poke(microseconds(private_random() % 300));
    else
      compute(microseconds(private_random() % 300));
    post_all(true);
  }
  MPI_Waitall(static_cast<int>(receive_requests.size()), receive_requests.data(),
              MPI_STATUSES_IGNORE);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (const Receive& receive : receives) {
    const Message& message = messages[receive.message];
    INFO("seed " << round.seed << " message " << receive.message << " from " << message.source
                 << " tag " << message.tag << " bytes " << message.bytes << " posted before "
                 << round.posted_before[rank()] << " wildcards " << round.wildcards[rank()]);
    REQUIRE(holds(receive.data, message.bytes, round.seed * 1000 + receive.message));
  }
}

}  // namespace

TEST_CASE("Field: random traffic arrives complete and in order", "[short]") {
  const double seconds = static_cast<double>(setting("OVERLAP_TEST_SECONDS", 3));
  std::uint64_t seed = static_cast<std::uint64_t>(setting("OVERLAP_TEST_SEED", 1)) * 1000000;
  std::mt19937_64 private_random(seed + rank());
  MPI_Comm second = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  const double start = MPI_Wtime();
  int go_on = 1;
  std::size_t rounds = 0;
  while (go_on != 0) {
    for (int i = 0; i < 10; ++i, ++seed, ++rounds)
      play(draw(seed), seed % 3 == 0 ? second : MPI_COMM_WORLD, private_random);
    go_on = MPI_Wtime() - start < seconds ? 1 : 0;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&second);
  if (rank() == 0) std::fprintf(stderr, "  %zu rounds\n", rounds);
  CHECK(rounds > 0);
}
