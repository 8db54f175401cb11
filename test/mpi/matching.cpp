// P1.5, P1.6, P1.7: which message lands in which receive: wildcards, order, probes, many tags.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <algorithm>
#include <array>
#include <numeric>

using namespace overlap::test;
using std::chrono::microseconds;

namespace {

std::uint64_t seed_of(int source, int tag, int number) {
  return (static_cast<std::uint64_t>(source) * 100000 + tag) * 1000 + number;
}

void send(std::size_t n, int to, int tag, int number) {
  const Bytes data = pattern(n, seed_of(rank(), tag, number));
  MPI_Send(data.data(), static_cast<int>(n), MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

}  // namespace

TEST_CASE("P1.7 exact receives behind wildcards, large messages, posted before") {
  // every other rank sends 4 messages of tag 1 and 4 of tag 2 to rank 0
  const std::array<std::size_t, 4> sizes{70000, 100, 300000, 5000};
  for (int round = 0; round < 10; ++round) {
    if (rank() == 0) {
      const int others = size() - 1;
      struct Receive {
        int source, tag;
        Bytes data;
      };
      std::vector<Receive> receives;
      // each source sends its tag 2 first: they take the receives with any tag, and tag 1 those
      // from anyone
      for (int i = 0; i < 4; ++i) {
        for (int s = 1; s <= others; ++s) receives.push_back({MPI_ANY_SOURCE, 1, empty(300000)});
        for (int s = 1; s <= others; ++s) receives.push_back({s, MPI_ANY_TAG, empty(300000)});
      }
      std::vector<MPI_Request> requests(receives.size());
      for (std::size_t i = 0; i < receives.size(); ++i)
        MPI_Irecv(receives[i].data.data(), 300000, MPI_BYTE, receives[i].source, receives[i].tag,
                  MPI_COMM_WORLD, &requests[i]);
      for (int s = 1; s <= others; ++s) tell(s);
      std::vector<MPI_Status> statuses(receives.size());
      std::vector<int> next(2 * static_cast<std::size_t>(size()));
      std::size_t done = 0;
      const std::size_t wanted = receives.size();
      while (done < wanted) {
        int index = 0;
        MPI_Status status{};
        int some = 0;
        MPI_Testany(static_cast<int>(wanted), requests.data(), &index, &some, &status);
        if (some != 0 && index != MPI_UNDEFINED) {
          statuses[index] = status;
          ++done;
          if (receives[index].source != MPI_ANY_SOURCE)
            CHECK(status.MPI_SOURCE == receives[index].source);
          if (receives[index].tag != MPI_ANY_TAG) CHECK(status.MPI_TAG == receives[index].tag);
        }
      }
      // message k of (source, tag) is in the k-th receive, in order of posting, that took one of
      // them
      for (std::size_t i = 0; i < wanted; ++i) {
        const int source = statuses[i].MPI_SOURCE, tag = statuses[i].MPI_TAG;
        const int k = next[2 * source + (tag - 1)]++;
        INFO("receive " << i << " source " << source << " tag " << tag << " number " << k);
        REQUIRE(k < 4);
        CHECK(count_of(statuses[i]) == static_cast<int>(sizes[k]));
        CHECK(holds(receives[i].data, sizes[k], seed_of(source, tag, k)));
      }
    } else {
      await(0);
      std::vector<Bytes> data;
      std::array<MPI_Request, 8> requests;
      for (int i = 0; i < 8; ++i) {
        const int tag = i < 4 ? 2 : 1;
        data.push_back(pattern(sizes[i % 4], seed_of(rank(), tag, i % 4)));
        MPI_Isend(data.back().data(), static_cast<int>(sizes[i % 4]), MPI_BYTE, 0, tag,
                  MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("P1.7 a wildcard ahead of exact receives of the same messages") {
  if (!paired()) return;
  for (int wildcard = 0; wildcard < 4; ++wildcard) {
    for (std::size_t n : {std::size_t{200000}, std::size_t{10}}) {
      constexpr int messages = 5;
      if (receiver()) {
        std::vector<Bytes> data(messages);
        std::array<MPI_Request, messages> requests;
        for (int i = 0; i < messages; ++i) {
          data[i] = empty(200100);
          const int source = i == wildcard && wildcard % 2 == 0 ? MPI_ANY_SOURCE : partner();
          const int tag = i == wildcard && wildcard > 0 ? MPI_ANY_TAG : 6;
          MPI_Irecv(data[i].data(), 200100, MPI_BYTE, source, tag, MPI_COMM_WORLD, &requests[i]);
        }
        tell(partner());
        MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < messages; ++i)
          CHECK(holds(data[i], n + i % 2, seed_of(partner(), 6, i)));
      } else {
        await(partner());
        for (int i = 0; i < messages; ++i) send(n + i % 2, partner(), 6, i);
      }
    }
  }
}

TEST_CASE("Field: messages do not overtake each other, mixed sizes and tags") {
  if (!paired()) return;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    // both sides know the traffic
    std::mt19937_64 random(seed);
    constexpr int messages = 60, tags = 3;
    std::vector<int> tag(messages);
    std::vector<std::size_t> bytes(messages);
    for (int i = 0; i < messages; ++i) {
      tag[i] = static_cast<int>(random() % tags);
      bytes[i] = random() % 3 == 0 ? random() % 120000 : random() % 3000;
    }
    const bool posted = seed % 3 == 0;
    if (receiver()) {
      // by tag: all of tag 2, then 1, then 0; or in one go with any tag
      std::vector<int> order(messages);
      std::iota(order.begin(), order.end(), 0);
      const bool any = seed % 2 == 1;
      if (!any)
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tag[a] > tag[b]; });
      std::vector<Bytes> data(messages);
      std::vector<MPI_Request> requests(messages);
      std::vector<MPI_Status> statuses(messages);
      for (int i = 0; i < messages; ++i) {
        data[i] = empty(120000);
        MPI_Irecv(data[i].data(), 120000, MPI_BYTE, partner(), any ? MPI_ANY_TAG : tag[order[i]],
                  MPI_COMM_WORLD, &requests[i]);
        if (!posted && i % 7 == 0) poke(microseconds(20));
      }
      if (posted) tell(partner());
      MPI_Waitall(messages, requests.data(), statuses.data());
      for (int i = 0; i < messages; ++i) {
        INFO("seed " << seed << " receive " << i << " message " << order[i]);
        CHECK(statuses[i].MPI_TAG == tag[order[i]]);
        CHECK(count_of(statuses[i]) == static_cast<int>(bytes[order[i]]));
        CHECK(holds(data[i], bytes[order[i]], seed * 1000 + order[i]));
      }
    } else {
      std::vector<Bytes> data;
      std::vector<MPI_Request> requests(messages);
      for (int i = 0; i < messages; ++i) data.push_back(pattern(bytes[i], seed * 1000 + i));
      if (posted) await(partner());
      for (int i = 0; i < messages; ++i)
        MPI_Isend(data[i].data(), static_cast<int>(bytes[i]), MPI_BYTE, partner(), tag[i],
                  MPI_COMM_WORLD, &requests[i]);
      MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    }
  }
}

TEST_CASE("Field: 10,000 messages of distinct tags, unexpected and posted") {
  if (!paired()) return;
  constexpr int tags = 10000;
  for (bool posted : {false, true}) {
    std::vector<int> values(tags, -1), order(tags);
    std::vector<MPI_Request> requests(tags, MPI_REQUEST_NULL);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(7);
    std::shuffle(order.begin(), order.end(), random);
    const double start = MPI_Wtime();
    if (sender()) {
      if (posted) await(partner());
      for (int i = 0; i < tags; ++i) {
        values[i] = i * 3;
        MPI_Isend(&values[i], 1, MPI_INT, partner(), i, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(tags, requests.data(), MPI_STATUSES_IGNORE);
      if (!posted) tell(partner());
      await(partner());
    } else {
      if (!posted) await(partner());  // everything before it is here, unmatched
      for (int i : order)
        MPI_Irecv(&values[i], 1, MPI_INT, partner(), i, MPI_COMM_WORLD, &requests[i]);
      if (posted) tell(partner());
      MPI_Waitall(tags, requests.data(), MPI_STATUSES_IGNORE);
      int wrong = 0;
      for (int i = 0; i < tags; ++i) wrong += values[i] != i * 3;
      CHECK(wrong == 0);
      tell(partner());
    }
    CHECK(MPI_Wtime() - start < 10);
  }
}
