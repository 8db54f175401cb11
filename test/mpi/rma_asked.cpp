// Small operations that a target which waits in MPI carries out at once (vader): asked in turn, by
// several, of each other, in the order in which they were issued.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <vector>

using namespace overlap::test;

namespace {

constexpr int rounds = 2000;

}  // namespace

TEST_CASE("a target in a barrier is asked, and every kind of operation is right") {
  if (size() < 2) return;
  Array<long> window(16);
  if (rank() == 0) {
    Counters counters;
    MPI_Win_lock_all(0, window.win);
    for (long i = 0; i < rounds; ++i) {
      long old = -1;
      const long three = 3;
      MPI_Fetch_and_op(&three, &old, MPI_LONG, 1, window.index(1, 0), MPI_SUM, window.win);
      MPI_Win_flush(1, window.win);
      CHECK(old == 3 * i);
      long swapped = -1;
      const long next = i + 1;
      MPI_Compare_and_swap(&next, &i, &swapped, MPI_LONG, 1, window.index(1, 1), window.win);
      MPI_Win_flush(1, window.win);
      CHECK(swapped == i);
      const long data[] = {i, -i};
      MPI_Put(data, 2, MPI_LONG, 1, window.index(1, 2), 2, MPI_LONG, window.win);
      MPI_Win_flush(1, window.win);
      MPI_Accumulate(data, 2, MPI_LONG, 1, window.index(1, 2), 2, MPI_LONG, MPI_SUM, window.win);
      long back[] = {0, 0};
      MPI_Win_flush(1, window.win);
      MPI_Get(back, 2, MPI_LONG, 1, window.index(1, 2), 2, MPI_LONG, window.win);
      MPI_Win_flush(1, window.win);
      CHECK(back[0] == 2 * i);
      CHECK(back[1] == -2 * i);
    }
    // With a core for each of the two it is there nearly always; as often as it takes.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const bool asks = size() == 2 && !over_tcp();
    while (asks && counters["asked_operations"] == 0 && std::chrono::steady_clock::now() < end) {
      long old = 0;
      const long one = 1;
      MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, window.index(1, 4), MPI_SUM, window.win);
      MPI_Win_flush(1, window.win);
    }
    MPI_Win_unlock_all(window.win);
    if (asks) CHECK(counters["asked_operations"] > 0);
    if (over_tcp()) CHECK(counters["asked_operations"] == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("all ask one, and each number is given once") {
  Array<long> window(1);
  std::vector<long> got(rounds, -1);
  const long one = 1;
  MPI_Win_lock_all(0, window.win);
  for (std::size_t i = 0; i < got.size(); ++i) {
    MPI_Fetch_and_op(&one, &got[i], MPI_LONG, 0, window.index(0, 0), MPI_SUM, window.win);
    if (i % 7 == 0) MPI_Win_flush(0, window.win);
  }
  MPI_Win_unlock_all(window.win);
  CHECK(std::is_sorted(got.begin(), got.end()));
  std::vector<long> all(got.size() * static_cast<std::size_t>(size()));
  MPI_Allgather(got.data(), rounds, MPI_LONG, all.data(), rounds, MPI_LONG, MPI_COMM_WORLD);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == static_cast<long>(i));
}

TEST_CASE("ranks ask each other at the same time, and computing ones do it themselves") {
  Array<long> window(static_cast<std::size_t>(size()));
  std::vector<long> got(rounds);
  const long one = 1;
  MPI_Win_lock_all(0, window.win);
  for (int i = 0; i < rounds; ++i) {
    const int target = (rank() + 1 + i % size()) % size();
    const auto place = static_cast<std::size_t>(rank());
    MPI_Fetch_and_op(&one, &got[static_cast<std::size_t>(i)], MPI_LONG, target,
                     window.index(target, place), MPI_SUM, window.win);
    if (i % 500 == 0) compute(microseconds(3000));
  }
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  long sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(size()); ++i) sum += own(window, i);
  long total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(total == long{rounds} * size());
}

TEST_CASE("accumulates keep their order, whichever way each one takes") {
  if (size() < 2) return;
  // What fits a request, what the kernel copies, and in fences what goes as a message.
  constexpr int words = 300;
  constexpr long last = 200;
  for (const bool by_fence : {false, true}) {
    CAPTURE(by_fence);
    Array<long> window(words);
    std::vector<std::vector<long>> large;
    std::deque<long> small;
    std::vector<long> old(last);
    if (by_fence) MPI_Win_fence(0, window.win);
    if (rank() == 0) {
      if (!by_fence) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
      for (long i = 1; i <= last; ++i) {
        large.emplace_back(words, i);
        small.push_back(-i);
        MPI_Accumulate(large.back().data(), words, MPI_LONG, 1, window.index(1, 0), words, MPI_LONG,
                       MPI_REPLACE, window.win);
        MPI_Fetch_and_op(&small.back(), &old[static_cast<std::size_t>(i) - 1], MPI_LONG, 1,
                         window.index(1, 5), MPI_REPLACE, window.win);
      }
      if (!by_fence) MPI_Win_unlock(1, window.win);
    }
    if (by_fence) MPI_Win_fence(0, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 1; rank() == 0 && i <= last; ++i)
      CHECK(old[static_cast<std::size_t>(i) - 1] == i);
    if (rank() == 1) {
      CHECK(own(window, 4) == last);
      CHECK(own(window, 5) == -last);
      CHECK(own(window, 6) == last);
    }
  }
}

TEST_CASE("calls of every kind that share a request keep their order and give their results") {
  if (size() < 2) return;
  constexpr int words = 200;
  Array<long> window(words);
  std::vector<long> zeros(words);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    for (long round = 0; round < 20; ++round) {
      CAPTURE(round);
      MPI_Put(zeros.data(), words, MPI_LONG, 1, window.index(1, 0), words, MPI_LONG, window.win);
      MPI_Win_flush(1, window.win);
      // Rows of one kind that are full, and kinds that take turns.
      std::vector<long> sums(words, -1), swapped(words, -1), read(words, -1), last(words, -1);
      const long one = 1;
      for (int i = 0; i < words; ++i)
        MPI_Accumulate(&one, 1, MPI_LONG, 1, window.index(1, i), 1, MPI_LONG, MPI_SUM, window.win);
      for (int i = 0; i < words; ++i) {
        const auto at = static_cast<std::size_t>(i);
        MPI_Fetch_and_op(&one, &sums[at], MPI_LONG, 1, window.index(1, i), MPI_SUM, window.win);
        if (i % 3 == 0)
          MPI_Accumulate(&one, 1, MPI_LONG, 1, window.index(1, i), 1, MPI_LONG, MPI_SUM,
                         window.win);
      }
      const std::vector<long> threes(words, 3);
      for (int i = 0; i < words; ++i) {
        const auto at = static_cast<std::size_t>(i);
        MPI_Compare_and_swap(&round, &threes[at], &swapped[at], MPI_LONG, 1, window.index(1, i),
                             window.win);
        MPI_Get_accumulate(nullptr, 0, MPI_LONG, &last[at], 1, MPI_LONG, 1, window.index(1, i), 1,
                           MPI_LONG, MPI_NO_OP, window.win);
      }
      MPI_Win_flush_local(1, window.win);
      for (int i = 0; i < words; ++i)
        MPI_Get(&read[static_cast<std::size_t>(i)], 1, MPI_LONG, 1, window.index(1, i), 1, MPI_LONG,
                window.win);
      MPI_Win_flush_all(window.win);
      for (int i = 0; i < words; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const long before = i % 3 == 0 ? 3 : 2;
        CHECK(sums[at] == 1);
        CHECK(swapped[at] == before);
        CHECK(last[at] == (before == 3 ? round : 2));
        CHECK(read[at] == last[at]);
      }
      if (round % 5 == 0) compute(microseconds(200));
    }
    MPI_Win_unlock(1, window.win);
  } else if (rank() == 1) {
    // Here now and then only: requests are withdrawn and go another way.
    for (int i = 0; i < 20; ++i) {
      compute(microseconds(300));
      int flag = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what a call has read is not needed any more: its buffers and types may go") {
  if (size() < 2) return;
  Array<long> window(64);
  std::fill_n(window.data(), 64, 0L);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock_all(0, window.win);
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < 32; ++i) {
        MPI_Datatype pair = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(2, MPI_LONG, &pair);
        MPI_Type_commit(&pair);
        long values[2] = {round, i};
        MPI_Request request = MPI_REQUEST_NULL;
        if (i % 2 == 0)
          MPI_Put(values, 1, pair, 1, window.index(1, 2 * i), 1, pair, window.win);
        else
          MPI_Rput(values, 1, pair, 1, window.index(1, 2 * i), 1, pair, window.win, &request);
        MPI_Type_free(&pair);
        if (i % 2 == 0) continue;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        values[0] = values[1] = -1;
      }
      MPI_Win_flush(1, window.win);
      long back[64];
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Rget(back, 64, MPI_LONG, 1, window.index(1, 0), 64, MPI_LONG, window.win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int i = 0; i < 64; ++i) CHECK(back[i] == (i % 2 == 0 ? round : i / 2));
      long first = -1;
      MPI_Rget(&first, 1, MPI_LONG, 1, window.index(1, 0), 1, MPI_LONG, window.win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(first == round);
    }
    MPI_Win_unlock_all(window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("more windows and ranks than rows of calls at a time") {
  constexpr int windows = 10, words = 40;
  std::deque<Array<long>> all;
  for (int i = 0; i < windows; ++i) all.emplace_back(static_cast<std::size_t>(words));
  for (Array<long>& each : all) {
    std::fill_n(each.data(), words, 0L);
    MPI_Win_lock_all(0, each.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const long one = 1;
  for (int word = 0; word < words; ++word) {
    for (Array<long>& each : all) {
      for (int target = 0; target < size(); ++target)
        MPI_Accumulate(&one, 1, MPI_LONG, target, each.index(target, word), 1, MPI_LONG, MPI_SUM,
                       each.win);
    }
  }
  for (Array<long>& each : all) MPI_Win_unlock_all(each.win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (Array<long>& each : all) {
    for (std::size_t i = 0; i < words; ++i) CHECK(own(each, i) == size());
  }
}

TEST_CASE("what is put behind a flush goes before the program makes its next call") {
  if (size() < 2 || over_tcp()) return;
  Array<long> window(1);
  std::fill_n(window.data(), 1, 0L);
  const Shared<std::atomic<long>> seen;
  MPI_Win_lock_all(0, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 1; i <= 100; ++i) {
    if (rank() == 0) {
      MPI_Put(&i, 1, MPI_LONG, 1, window.index(1, 0), 1, MPI_LONG, window.win);
      while (seen->load() != i) sched_yield();
      MPI_Win_flush(1, window.win);
    } else if (rank() == 1) {
      const volatile long* const word = window.data();
      while (*word != i) MPI_Win_sync(window.win);
      seen->store(i);
    }
  }
  MPI_Win_unlock_all(window.win);
}

TEST_CASE("a thread delivers what has been put while the program computes") {
  if (size() < 2 || over_tcp() || !interrupts()) return;
  Array<long> window(16);
  std::fill_n(window.data(), 16, 0L);
  const Shared<std::atomic<long>> seen;
  MPI_Win_lock_all(0, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 1; i <= 20; ++i) {
    if (rank() == 0) {
      for (std::size_t at = 0; at < 16; ++at)
        MPI_Put(&i, 1, MPI_LONG, 1, window.index(1, at), 1, MPI_LONG, window.win);
      while (seen->load() != i) sched_yield();
    } else if (rank() == 1) {
      const volatile long* const words = window.data();
      while (std::count(words, words + 16, i) != 16) MPI_Win_sync(window.win);
      seen->store(i);
    }
  }
  MPI_Win_unlock_all(window.win);
}

TEST_CASE("a call that waits for something else delivers what has been put") {
  if (size() < 2) return;
  Array<long> window(16);
  std::fill_n(window.data(), 16, 0L);
  MPI_Win_lock_all(0, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 1; i <= 200; ++i) {
    if (rank() == 0) {
      // No flush: the other side looks into its own memory.
      for (std::size_t at = 0; at < 16; ++at)
        MPI_Put(&i, 1, MPI_LONG, 1, window.index(1, at), 1, MPI_LONG, window.win);
      MPI_Recv(nullptr, 0, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank() == 1) {
      const volatile long* const words = window.data();
      while (words[0] != i || words[15] != i) MPI_Win_sync(window.win);
      MPI_Send(nullptr, 0, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    }
  }
  MPI_Win_unlock_all(window.win);
}

TEST_CASE("what an owner carries out and what the kernel copies for another rank are apart") {
  if (size() != 3 || over_tcp()) return;
  constexpr int words = 64;  // more than is asked for
  constexpr int turns = 50 * rounds;
  Array<Word> window(words);
  const std::vector<Word> ones(words, 1);
  MPI_Win_lock_all(0, window.win);
  for (int i = 0; rank() != 1 && i < turns; ++i) {
    const int count = rank() == 0 ? 1 : words;
    MPI_Accumulate(ones.data(), count, MPI_INT64_T, 1, window.index(1, 0), count, MPI_INT64_T,
                   MPI_SUM, window.win);
    MPI_Win_flush(1, window.win);
  }
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) CHECK(own(window, 0) == 2 * turns);
}

TEST_CASE("the kernel copies a longer put or get alone, and many are asked for together") {
  if (size() != 2 || over_tcp()) return;
  Array<Word> window(64);
  if (rank() == 0) {
    Counters counters;
    Word words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    Word back[8] = {};
    const auto put_and_flush = [&](int count, int times) {
      for (int i = 0; i < times; ++i)
        MPI_Put(words, count, MPI_INT64_T, 1, window.index(1, 8 * static_cast<std::size_t>(i)),
                count, MPI_INT64_T, window.win);
      MPI_Win_flush(1, window.win);
      return counters["asked_operations"];
    };
    MPI_Win_lock_all(0, window.win);
    bool asks_together = false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!asks_together && std::chrono::steady_clock::now() < end) {
      const auto before = put_and_flush(4, 1);
      const auto asked = put_and_flush(4, 1);
      if (asked == before) continue;  // the other process had no processor just now
      ++words[7];
      const auto after_put = put_and_flush(8, 1);
      if (direct()) CHECK(after_put == asked);
      MPI_Get(back, 8, MPI_INT64_T, 1, window.index(1, 0), 8, MPI_INT64_T, window.win);
      MPI_Win_flush(1, window.win);
      if (direct()) CHECK(counters["asked_operations"] == asked);
      CHECK(std::equal(words, words + 8, back));
      const auto before_many = counters["asked_operations"];
      asks_together = put_and_flush(8, 8) > before_many;
    }
    CHECK(asks_together);
    MPI_Win_unlock_all(window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what the kernel copies does not overtake an accumulate that goes as a message") {
  if (size() < 2) return;
  struct Pair {
    double value;
    int place;
  };
  Array<Pair> window(1);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 1; i <= 20; ++i) {
    if (rank() == 0) {
      const Pair first{-1.0, i};  // with a gap: a message
      const double second = i;
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
      MPI_Accumulate(&first, 1, MPI_DOUBLE_INT, 1, window.index(1, 0), 1, MPI_DOUBLE_INT,
                     MPI_REPLACE, window.win);
      MPI_Accumulate(&second, 1, MPI_DOUBLE, 1, window.index(1, 0), 1, MPI_DOUBLE, MPI_REPLACE,
                     window.win);
      MPI_Win_unlock(1, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1) {
      CHECK(own(window).value == i);
      CHECK(own(window).place == i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE(
    "behind a fence the first operation is no message, and the kernel makes long accumulates") {
  const auto choice = [](const char* name) {
    return set_to("OMPI_MCA_osc_newrma_active_copies", name);
  };
  // Where copies are timed, messages may take less.
  const bool timed = !set_to("OMPI_MCA_mpi_yield_when_idle", "1") && !choice("kernel");
  if (size() < 2 || !direct() || timed || choice("messages")) return;
  constexpr int length = 8192;
  Array<long> window(length);
  const int next = (rank() + 1) % size();
  const int before = (rank() + size() - 1) % size();
  const std::vector<long> ones(length, 1);
  for (int small = 0; small < 4; ++small) {
    std::fill_n(window.data(), length, 0L);
    MPI_Win_fence(0, window.win);
    Counters counters;
    for (int i = 0; i < small; ++i) {
      const long value = 100L * rank() + i;
      MPI_Put(&value, 1, MPI_LONG, next, window.index(next, i), 1, MPI_LONG, window.win);
    }
    CHECK(counters["sent_operations"] == static_cast<std::uint64_t>(std::max(0, small - 1)));
    MPI_Win_fence(0, window.win);
    for (int i = 0; i < small; ++i) CHECK(window[static_cast<std::size_t>(i)] == 100L * before + i);
  }
  std::fill_n(window.data(), length, 0L);
  MPI_Win_fence(0, window.win);
  Counters counters;
  for (int i = 0; i < 3; ++i)
    MPI_Accumulate(ones.data(), length, MPI_LONG, next, window.index(next, 0), length, MPI_LONG,
                   MPI_SUM, window.win);
  CHECK(counters["sent_operations"] == 0);
  MPI_Win_fence(0, window.win);
  CHECK(std::count(window.data(), window.data() + length, 3L) == length);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
}

TEST_CASE("operations of no bytes are done in their call, and nobody hears of them") {
  if (size() < 2) return;
  Array<long> window(1);
  const int right = (rank() + 1) % size();
  long in = 7;
  const auto everything = [&] {
    const MPI_Win win = window.win;
    CHECK(MPI_Put(nullptr, 0, MPI_LONG, right, 0, 0, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Get(&in, 0, MPI_LONG, right, 0, 0, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(nullptr, 0, MPI_LONG, right, 0, 0, MPI_LONG, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(nullptr, 0, MPI_LONG, &in, 0, MPI_LONG, right, 0, 0, MPI_LONG, MPI_SUM,
                             win) == MPI_SUCCESS);
  };
  Counters counters;
  MPI_Win_fence(0, window.win);
  everything();
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  MPI_Win_lock_all(0, window.win);
  everything();
  MPI_Request requests[2];
  MPI_Rput(nullptr, 0, MPI_LONG, right, 0, 0, MPI_LONG, window.win, &requests[0]);
  MPI_Rget(&in, 0, MPI_LONG, right, 0, 0, MPI_LONG, window.win, &requests[1]);
  int done = 0;
  MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
  CHECK(done == 1);
  MPI_Win_unlock_all(window.win);
  CHECK(in == 7);
  CHECK(counters["sent_operations"] == 0);
  CHECK(counters["queued_operations"] == 0);
  CHECK(counters["direct_operations"] == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}
