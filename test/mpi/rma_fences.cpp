// Active target epochs whose operations go different ways: asked for, as messages, by copies of the
// kernel, in their calls and behind them.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

using namespace overlap::test;

namespace {

/// Is everything that may go as a message to go as one?
bool only_messages() { return set_to("OMPI_MCA_osc_newrma_active_copies", "messages"); }

void replace(const Array<Word>& window, const Word& value, int to, bool fetches, Word& before) {
  if (fetches)
    MPI_Get_accumulate(&value, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, to, window.index(to, 0), 1,
                       MPI_INT64_T, MPI_REPLACE, window.win);
  else
    MPI_Accumulate(&value, 1, MPI_INT64_T, to, window.index(to, 0), 1, MPI_INT64_T, MPI_REPLACE,
                   window.win);
}

}  // namespace

TEST_CASE("accumulates of a fence epoch keep their order, and a third rank reads behind it") {
  constexpr int row = 13, rounds = 1000;
  Array<Word> window(2);
  const int next = (window.right() + 1) % window.ranks;
  std::array<Word, row> values{}, before{};
  int wrong = 0;
  MPI_Win_fence(0, window.win);
  for (int round = 0; round < rounds; ++round) {
    const Word first = round * row + 1;
    for (int i = 0; i < row; ++i) {
      const auto at = static_cast<std::size_t>(i);
      values[at] = first + i;
      replace(window, values[at], window.right(), i % 3 != 0, before[at]);
    }
    put(window, values[0], window.right(), 1);
    MPI_Win_fence(0, window.win);
    wrong += window[0] != first + row - 1 ? 1 : 0;
    for (int i = 0; i < row; ++i)
      wrong += i % 3 != 0 && before[static_cast<std::size_t>(i)] != first + i - 1 ? 1 : 0;
    Word seen = 0;
    get(window, seen, next, 1);
    MPI_Win_fence(0, window.win);
    wrong += seen != first ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("puts, gets and accumulates of all sizes are there behind their fence") {
  constexpr std::size_t longest = 8200;  // words: more than 64 KiB
  const Kind kind = GENERATE(Kind::create, Kind::allocate, Kind::dynamic);
  CAPTURE(name_of(kind));
  Array<Word> window(3 * longest, 0, kind);
  std::vector<Word> out(longest), in(longest);
  const auto at = [&](std::size_t part) { return window.index(window.right(), part * longest); };
  int wrong = 0;
  MPI_Win_fence(0, window.win);
  for (int round = 0; round < 200; ++round) {
    for (const std::size_t words : {1, 7, 255, 256, 1200, 2048, 2049, 8200}) {
      if (words > 300 && round % 8 != 0) continue;
      const int count = static_cast<int>(words);
      for (std::size_t i = 0; i < words; ++i) out[i] = round + static_cast<Word>(i);
      MPI_Put(out.data(), count, MPI_INT64_T, window.right(), at(0), count, MPI_INT64_T,
              window.win);
      MPI_Accumulate(out.data(), count, MPI_INT64_T, window.right(), at(1), count, MPI_INT64_T,
                     MPI_REPLACE, window.win);
      MPI_Win_fence(0, window.win);
      MPI_Get(in.data(), count, MPI_INT64_T, window.right(), at(1), count, MPI_INT64_T, window.win);
      const Word* const mine = window.data();
      wrong += !std::equal(out.begin(), out.begin() + count, mine) ? 1 : 0;
      MPI_Win_fence(0, window.win);
      wrong += !std::equal(out.begin(), out.begin() + count, in.begin()) ? 1 : 0;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("only the first short operation of a fence epoch is asked for") {
  if (size() < 2) return;
  constexpr std::size_t puts = 5;
  const std::size_t words = GENERATE(1, 5);  // 8 and 40 bytes
  const int count = static_cast<int>(words);
  const std::vector<Word> data(words, 7);
  const bool asks = !over_tcp() && !over_ring();
  // Of more ranks than processors one may never be there.
  const bool is_there = size() == 2 && std::thread::hardware_concurrency() > 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const Array<Word> first(1);  // with it Open MPI 5.0 opens the component whose counters these are
  Counters counters;
  int several = 0, goes_on = 1;
  // The owner waits in its fence, but may have lost its processor: as often as it takes.
  for (int attempt = 0; goes_on != 0; ++attempt) {
    Array<Word> window(puts * words);  // a new one asks without a pause
    MPI_Win_fence(0, window.win);
    MPI_Win_fence(0, window.win);
    for (int round = 0; round < 20; ++round) {
      // Beside one that keeps its processor busy the owner gets another one.
      const auto busy = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
      while (attempt >= 4 && rank() == 0 && std::chrono::steady_clock::now() < busy) continue;
      const auto before = counters["asked_operations"];
      for (std::size_t i = 0; i < puts && rank() == 0; ++i)
        MPI_Put(data.data(), count, MPI_INT64_T, 1, window.index(1, i * words), count, MPI_INT64_T,
                window.win);
      several += counters["asked_operations"] > before + 1 ? 1 : 0;
      MPI_Win_fence(0, window.win);
    }
    const bool waits = asks && is_there && rank() == 0 && counters["asked_operations"] == 0;
    const int mine = attempt < 4 || (waits && std::chrono::steady_clock::now() < end) ? 1 : 0;
    MPI_Allreduce(&mine, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  CHECK(several == 0);
  if (rank() == 0 && (!asks || is_there)) CHECK((counters["asked_operations"] > 0) == asks);
}

TEST_CASE("where all may be messages, operations of up to 16 KiB are, and no longer ones") {
  if (size() < 2 || !direct() || !only_messages()) return;
  constexpr std::size_t most = 2048;
  Array<Word> window(2 * most);
  std::vector<Word> data(most + 1, 1);
  // The second one waits for all: behind the first one operations may still wait for their target.
  MPI_Win_fence(0, window.win);
  MPI_Win_fence(0, window.win);
  Counters counters;
  const auto put_words = [&](std::size_t words) {
    const int count = static_cast<int>(words);
    MPI_Put(data.data(), count, MPI_INT64_T, window.right(), window.index(window.right(), 0), count,
            MPI_INT64_T, window.win);
    return counters["sent_operations"];
  };
  CHECK(put_words(9) == 1);  // of fewer its owner may be asked
  CHECK(put_words(most) == 2);
  CHECK(put_words(most + 1) == 2);
  MPI_Win_fence(0, window.win);
}

TEST_CASE("between start and complete puts of up to 16 KiB are messages, open or queued, no gets") {
  if (size() < 2 || !direct() || !only_messages()) return;
  constexpr std::size_t most = 2048;
  Array<Word> window(2 * most);
  std::vector<Word> data(most + 1, 1);
  const Group left(window.win, {window.left()}), right(window.win, {window.right()});
  const auto at = [&](std::size_t word) { return window.index(window.right(), word); };
  Counters counters;
  const bool queued = GENERATE(false, true);
  CAPTURE(queued);
  const auto sent = counters["sent_operations"];
  const auto kept = counters["queued_operations"];
  if (!queued) MPI_Win_post(left, 0, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_start(right, 0, window.win);
  MPI_Put(data.data(), most, MPI_INT64_T, window.right(), at(0), most, MPI_INT64_T, window.win);
  MPI_Put(data.data(), 512, MPI_INT64_T, window.right(), at(most), 512, MPI_INT64_T, window.win);
  MPI_Get(data.data(), 512, MPI_INT64_T, window.right(), at(most + 512), 512, MPI_INT64_T,
          window.win);
  if (queued) {
    CHECK(counters["queued_operations"] == kept + 3);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_post(left, 0, window.win);
  }
  MPI_Win_complete(window.win);
  MPI_Win_wait(window.win);
  CHECK(counters["sent_operations"] == sent + 2);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what has been queued at a fence is there behind the next one, for third ranks, too") {
  constexpr std::size_t words = 512;
  std::vector<Word> out(words), in(words);
  for (int round = 0; round < 20; ++round) {
    Array<Word> window(words);
    for (std::size_t i = 0; i < words; ++i) out[i] = 1000 * window.me + round;
    const int next = (window.right() + 1) % window.ranks;
    MPI_Win_fence(0, window.win);
    MPI_Put(out.data(), words, MPI_INT64_T, window.right(), window.index(window.right(), 0), words,
            MPI_INT64_T, window.win);
    MPI_Win_fence(0, window.win);
    MPI_Get(in.data(), words, MPI_INT64_T, next, window.index(next, 0), words, MPI_INT64_T,
            window.win);
    MPI_Win_fence(0, window.win);
    const std::vector<Word> wanted(words, 1000 * window.right() + round);
    CHECK((in == wanted));
  }
}

TEST_CASE("a fence asks behind a message that has been queued") {
  if (size() < 2 || !direct() || !only_messages()) return;
  constexpr std::size_t words = 512;
  Array<Word> window(words);
  const std::vector<Word> data(words, 1);
  Counters counters;
  if (window.me != 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  MPI_Win_fence(0, window.win);
  const auto asked = counters["flushes_sent"];
  if (window.me == 0) {
    MPI_Put(data.data(), words, MPI_INT64_T, 1, window.index(1, 0), words, MPI_INT64_T, window.win);
    CHECK(counters["queued_operations"] == 1);
  }
  MPI_Win_fence(0, window.win);
  CHECK(counters["sent_operations"] == (window.me == 0 ? 1U : 0U));
  CHECK(counters["flushes_sent"] == asked + (window.me == 0 ? 1 : 0));
}

TEST_CASE("a target that comes late to its fence has all, and the kernel copies what has no room") {
  constexpr std::size_t puts = 4000, words = 1024;
  Array<Word> window(puts * words);
  MPI_Win_fence(0, window.win);
  MPI_Win_fence(0, window.win);
  Counters counters;
  std::vector<Word> data(puts * words);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<Word>(i);
  MPI_Barrier(MPI_COMM_WORLD);
  if (window.me == 0) {
    for (std::size_t i = 0; i < puts; ++i)
      MPI_Put(&data[i * words], words, MPI_INT64_T, 1, window.index(1, i * words), words,
              MPI_INT64_T, window.win);
    if (direct() && only_messages()) {
      CHECK(counters["sent_operations"] > 0);
      CHECK(counters["direct_operations"] > 0);
    }
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  MPI_Win_fence(0, window.win);
  if (window.me == 1) CHECK(std::equal(data.begin(), data.end(), window.data()));
  MPI_Win_fence(0, window.win);
}
