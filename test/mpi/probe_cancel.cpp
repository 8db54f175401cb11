// Field: probes and matched probes that take messages out of order; receives that are cancelled
// while their buffer is known to the sender.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

using namespace overlap::test;
using std::chrono::microseconds;

namespace {

const std::array<std::size_t, 6> mixed{300000, 10, 70000, 0, 5000, 4096};

void send_mixed(int tag, std::uint64_t seed) {
  std::vector<Bytes> data;
  std::array<MPI_Request, mixed.size()> requests;
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    data.push_back(pattern(mixed[i], seed + i));
    MPI_Isend(data[i].data(), static_cast<int>(mixed[i]), MPI_BYTE, partner(), tag, MPI_COMM_WORLD,
              &requests[i]);
  }
  MPI_Waitall(mixed.size(), requests.data(), MPI_STATUSES_IGNORE);
}

constexpr int bytes = 200000;

MPI_Request post(Bytes& data, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  data = empty(bytes);
  MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
  return request;
}

bool was_cancelled(const MPI_Status& status) {
  int flag = 0;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

}  // namespace

TEST_CASE("Field: Probe and Iprobe tell the next message and leave it there") {
  if (!paired()) return;
  for (int how = 0; how < 4; ++how) {
    if (sender()) {
      send_mixed(3, 50 + how);
    } else {
      for (std::size_t i = 0; i < mixed.size(); ++i) {
        MPI_Status status{};
        const int source = how % 2 == 0 ? partner() : MPI_ANY_SOURCE,
                  tag = how < 2 ? 3 : MPI_ANY_TAG;
        if (i % 2 == 0) {
          MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
        } else {
          int found = 0;
          while (found == 0) MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, &status);
        }
        CHECK(status.MPI_SOURCE == partner());
        CHECK(status.MPI_TAG == 3);
        CHECK(count_of(status) == static_cast<int>(mixed[i]));
        int found = 0;
        MPI_Iprobe(source, 44, MPI_COMM_WORLD, &found, &status);
        CHECK(found == 0);
        Bytes data = empty(mixed[i]);
        MPI_Recv(data.data(), static_cast<int>(mixed[i]), MPI_BYTE, partner(), 3, MPI_COMM_WORLD,
                 &status);
        CHECK(holds(data, mixed[i], 50 + how + i));
      }
    }
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, partner(), 4, nullptr, 0, MPI_BYTE, partner(), 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

TEST_CASE("Field: a probe in vain, and a probe behind a posted receive") {
  if (!paired()) return;
  int found = 1;
  MPI_Iprobe(partner(), 77, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  CHECK(found == 0);
  for (std::size_t n : {std::size_t{10}, std::size_t{200000}}) {
    if (receiver()) {
      Bytes first, second = empty(n);
      MPI_Request request = post(first, 5);
      tell(partner());
      MPI_Status status{};
      MPI_Probe(partner(), 5, MPI_COMM_WORLD,
                &status);  // the second message: the first one has its receive
      CHECK(count_of(status) == static_cast<int>(n - 1));
      MPI_Recv(second.data(), static_cast<int>(n), MPI_BYTE, partner(), 5, MPI_COMM_WORLD, &status);
      CHECK(holds(second, n - 1, 2));
      MPI_Wait(&request, &status);
      CHECK(holds(first, n, 1));
    } else {
      const Bytes first = pattern(n, 1), second = pattern(n - 1, 2);
      await(partner());
      MPI_Send(first.data(), static_cast<int>(n), MPI_BYTE, partner(), 5, MPI_COMM_WORLD);
      MPI_Send(second.data(), static_cast<int>(n - 1), MPI_BYTE, partner(), 5, MPI_COMM_WORLD);
    }
  }
}

TEST_CASE("Field: Mprobe, Improbe, Mrecv and Imrecv out of order") {
  if (!paired()) return;
  for (int round = 0; round < 12; ++round) {
    if (sender()) {
      send_mixed(8, round * 10);
    } else {
      std::array<MPI_Message, mixed.size()> messages;
      std::array<MPI_Status, mixed.size()> statuses{};
      for (std::size_t i = 0; i < mixed.size(); ++i) {
        const int tag = (round + i) % 3 == 0 ? MPI_ANY_TAG : 8;
        const int source = (round + i) % 4 == 0 ? MPI_ANY_SOURCE : partner();
        if (round % 2 == 0) {
          MPI_Mprobe(source, tag, MPI_COMM_WORLD, &messages[i], &statuses[i]);
        } else {
          int found = 0;
          while (found == 0)
            MPI_Improbe(source, tag, MPI_COMM_WORLD, &found, &messages[i], &statuses[i]);
        }
        CHECK(count_of(statuses[i]) == static_cast<int>(mixed[i]));
      }
      std::array<std::size_t, mixed.size()> order{0, 1, 2, 3, 4, 5};
      std::mt19937 random(static_cast<unsigned>(round));
      std::shuffle(order.begin(), order.end(), random);
      std::array<MPI_Request, mixed.size()> requests;
      std::array<Bytes, mixed.size()> data;
      for (std::size_t i : order) {
        data[i] = empty(mixed[i] + 5);
        const int room = static_cast<int>(data[i].size());
        requests[i] = MPI_REQUEST_NULL;
        if (round % 3 == 0)
          MPI_Mrecv(data[i].data(), room, MPI_BYTE, &messages[i], &statuses[i]);
        else
          MPI_Imrecv(data[i].data(), room, MPI_BYTE, &messages[i], &requests[i]);
        CHECK(messages[i] == MPI_MESSAGE_NULL);
      }
      if (round % 3 != 0) MPI_Waitall(mixed.size(), requests.data(), statuses.data());
      for (std::size_t i = 0; i < mixed.size(); ++i) {
        INFO("round " << round << " message " << i);
        CHECK(statuses[i].MPI_TAG == 8);
        CHECK(count_of(statuses[i]) == static_cast<int>(mixed[i]));
        CHECK(holds(data[i], mixed[i], round * 10 + i));
      }
    }
  }
}

TEST_CASE("Field: a matched probe before large receives of the same envelope") {
  if (!paired()) return;
  for (int round = 0; round < 10; ++round) {
    if (sender()) {
      const Bytes data = pattern(bytes, round);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), 2, MPI_COMM_WORLD, &request);
      await(partner());
      for (int i = 1; i < 3; ++i) {
        const Bytes next = pattern(bytes, round + i);
        MPI_Send(next.data(), bytes, MPI_BYTE, partner(), 2, MPI_COMM_WORLD);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Mprobe(partner(), 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      Bytes taken = empty(bytes), first, second;
      std::array<MPI_Request, 2> requests{post(first, 2), post(second, 2)};
      tell(partner());
      if (round % 2 == 0) MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      MPI_Mrecv(taken.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      CHECK(holds(taken, bytes, round));
      CHECK(holds(first, bytes, round + 1));
      CHECK(holds(second, bytes, round + 2));
    }
  }
}

TEST_CASE("Field: a large receive is cancelled before any send") {
  if (!paired()) return;
  for (int round = 0; round < 10; ++round) {
    if (receiver()) {
      Bytes data;
      MPI_Request request = post(data, 1);
      if (round % 2 == 0) poke(microseconds(100));
      MPI_Cancel(&request);
      MPI_Status status{};
      MPI_Wait(&request, &status);
      CHECK(was_cancelled(status));
      CHECK(holds(data, 0, 0));
      tell(partner());
      Bytes next = empty(bytes);
      MPI_Recv(next.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, &status);
      CHECK(holds(next, bytes, round));
      CHECK(holds(data, 0, 0));
    } else {
      const Bytes data = pattern(bytes, round);
      await(partner());
      MPI_Send(data.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD);
    }
  }
}

TEST_CASE(
    "Field: a receive is cancelled and those of its envelope behind it get the right messages") {
  if (!paired()) return;
  for (int victim = 0; victim < 4; ++victim) {
    for (bool wait_first : {true, false}) {
      if (receiver()) {
        std::array<Bytes, 4> data;
        std::array<MPI_Request, 4> requests;
        for (int i = 0; i < 4; ++i) requests[i] = post(data[i], 1);
        if (victim % 2 == 0) poke(microseconds(200));
        MPI_Cancel(&requests[victim]);
        MPI_Status status{};
        if (wait_first) MPI_Wait(&requests[victim], &status);
        tell(partner());
        if (!wait_first) MPI_Wait(&requests[victim], &status);
        CHECK(was_cancelled(status));
        MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
        int number = 0;
        for (int i = 0; i < 4; ++i) {
          INFO("victim " << victim << " receive " << i << " waited before " << wait_first);
          const int expected = i == victim ? -1 : number++;
          CHECK(holds(data[i], expected < 0 ? 0 : bytes - expected, 10 * victim + expected));
        }
      } else {
        await(partner());
        for (int number = 0; number < 3; ++number) {
          const Bytes out = pattern(static_cast<std::size_t>(bytes - number), 10 * victim + number);
          MPI_Send(out.data(), bytes - number, MPI_BYTE, partner(), 1, MPI_COMM_WORLD);
        }
      }
    }
  }
}

TEST_CASE("Field: cancel races with the send of its message") {
  if (!paired()) return;
  const int rounds = static_cast<int>(setting("OVERLAP_TEST_ROUNDS", 150));
  int cancelled = 0;
  for (int round = 0; round < rounds; ++round) {
    constexpr int messages = 3;
    std::mt19937 random(static_cast<unsigned>(round));
    const int victim = static_cast<int>(random() % messages);
    const auto pause = microseconds(random() % 150);
    const std::size_t n = random() % 4 == 0 ? 100 : bytes - 10;
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, partner(), 4, nullptr, 0, MPI_BYTE, partner(), 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (receiver()) {
      std::vector<Bytes> data(messages + 1);
      std::vector<MPI_Request> requests;
      for (int i = 0; i < messages; ++i) requests.push_back(post(data[i], 1));
      round % 2 == 0 ? compute(pause) : poke(pause);
      MPI_Cancel(&requests[victim]);
      MPI_Status status{};
      MPI_Wait(&requests[victim], &status);
      const bool gone = was_cancelled(status);
      if (gone) {
        ++cancelled;
        CHECK(holds(data[victim], 0, 0));
        requests.push_back(post(data[messages], 1));
      }
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      int number = 0;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (gone && static_cast<int>(i) == victim) continue;
        INFO("round " << round << " victim " << victim << " cancelled " << gone << " receive " << i
                      << " bytes " << n);
        CHECK(holds(data[i], n + number, round * 10 + number));
        ++number;
      }
    } else {
      std::vector<Bytes> data;
      std::array<MPI_Request, messages> requests;
      for (int i = 0; i < messages; ++i) data.push_back(pattern(n + i, round * 10 + i));
      compute(microseconds(75));
      for (int i = 0; i < messages; ++i)
        MPI_Isend(data[i].data(), static_cast<int>(n) + i, MPI_BYTE, partner(), 1, MPI_COMM_WORLD,
                  &requests[i]);
      MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    }
  }
  if (receiver())
    std::fprintf(stderr, "  %d of %d receives were cancelled in time\n", cancelled, rounds);
}
