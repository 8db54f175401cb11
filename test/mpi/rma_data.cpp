// Field: one-sided communication: every call that moves bytes, every kind of window, sizes,
// displacement units; target is a neighbour, this process, nobody.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <cstdio>

using namespace overlap::test;

namespace {

constexpr auto kinds = {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic};

/// A pattern that is another one in each round and for each rank.
std::uint64_t seed_of(std::size_t bytes, int rank) {
  return bytes * 64 + static_cast<std::uint64_t>(rank) + 1;
}

/// The bytes that a window holds: n of the pattern at `offset`, 0xEE around.
void expect_window(Window& window, std::size_t offset, std::size_t n, std::uint64_t seed) {
  CHECK(first_wrong(window.memory + offset, n, seed) == n);
  for (std::size_t i = 0; i < offset; ++i) REQUIRE(window.memory[i] == 0xEE);
  for (std::size_t i = offset + n; i < offset + n + 16; ++i) REQUIRE(window.memory[i] == 0xEE);
}

constexpr std::size_t margin = 16;  ///< bytes before and behind a transfer that stay as they are

void put_and_get_between_fences(Kind kind) {
  for (const std::size_t bytes : window_sizes()) {
    CAPTURE(bytes, name_of(kind));
    Window window(bytes + 2 * margin, kind);
    const int n = static_cast<int>(bytes);
    const Bytes out = pattern(bytes, seed_of(bytes, rank()));
    Bytes in = empty(bytes + margin);
    MPI_Win_fence(0, window.win);
    MPI_Put(out.data(), n, MPI_BYTE, window.right(), window.at(window.right(), margin), n, MPI_BYTE,
            window.win);
    MPI_Win_fence(0, window.win);
    expect_window(window, margin, bytes, seed_of(bytes, window.left()));
    MPI_Get(in.data(), n, MPI_BYTE, window.left(), window.at(window.left(), margin), n, MPI_BYTE,
            window.win);
    MPI_Win_fence(0, window.win);
    const int before_left = (rank() + 2 * size() - 2) % size();
    CHECK(holds(in, bytes, seed_of(bytes, before_left)));
  }
}

void put_and_get_under_locks(Kind kind) {
  for (const std::size_t bytes : window_sizes()) {
    CAPTURE(bytes, name_of(kind));
    Window window(bytes + 2 * margin, kind);
    const int n = static_cast<int>(bytes), right = window.right();
    const Bytes out = pattern(bytes, seed_of(bytes, rank()));
    Bytes in = empty(bytes + margin), again = empty(bytes + margin);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
    MPI_Put(out.data(), n, MPI_BYTE, right, window.at(right, margin), n, MPI_BYTE, window.win);
    MPI_Win_flush(right, window.win);
    MPI_Get(in.data(), n, MPI_BYTE, right, window.at(right, margin), n, MPI_BYTE, window.win);
    MPI_Win_flush(right, window.win);
    CHECK(holds(in, bytes, seed_of(bytes, rank())));
    MPI_Get(again.data(), n, MPI_BYTE, right, window.at(right, margin), n, MPI_BYTE, window.win);
    MPI_Win_unlock(right, window.win);
    CHECK(holds(again, bytes, seed_of(bytes, rank())));
    MPI_Barrier(MPI_COMM_WORLD);
    window.locally([&] { expect_window(window, margin, bytes, seed_of(bytes, window.left())); });
  }
}

void transfers_with_requests(Kind kind) {
  for (const std::size_t bytes : window_sizes()) {
    CAPTURE(bytes, name_of(kind));
    Window window(bytes + 2 * margin, kind);
    const int n = static_cast<int>(bytes), right = window.right();
    const MPI_Aint at = window.at(right, margin);
    Bytes out = pattern(bytes, seed_of(bytes, rank()));
    Bytes in = empty(bytes + margin);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status{};
    MPI_Win_lock_all(0, window.win);
    REQUIRE(MPI_Rput(out.data(), n, MPI_BYTE, right, at, n, MPI_BYTE, window.win, &request) == 0);
    REQUIRE(MPI_Wait(&request, &status) == MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
    std::fill(out.begin(), out.end(), 0x11);  // the request is complete: the buffer is ours
    MPI_Win_flush(right, window.win);
    REQUIRE(MPI_Rget(in.data(), n, MPI_BYTE, right, at, n, MPI_BYTE, window.win, &request) == 0);
    for (int done = 0; done == 0;) MPI_Test(&request, &done, &status);
    CHECK(holds(in, bytes, seed_of(bytes, rank())));  // before any call on the window
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    window.locally([&] { expect_window(window, margin, bytes, seed_of(bytes, window.left())); });
  }
}

/// MPI_Accumulate and MPI_Raccumulate: replace all, then exclusive or with another pattern.
void accumulate_bytes(Kind kind) {
  for (const std::size_t bytes : window_sizes()) {
    CAPTURE(bytes, name_of(kind));
    Window window(bytes + 2 * margin, kind);
    const int n = static_cast<int>(bytes), right = window.right();
    const MPI_Aint at = window.at(right, margin);
    const Bytes first = pattern(bytes, seed_of(bytes, rank()));
    Bytes mask = pattern(bytes, 7);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
    MPI_Accumulate(first.data(), n, MPI_BYTE, right, at, n, MPI_BYTE, MPI_REPLACE, window.win);
    MPI_Raccumulate(mask.data(), n, MPI_BYTE, right, at, n, MPI_BYTE, MPI_BXOR, window.win,
                    &request);
    REQUIRE(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    std::fill(mask.begin(), mask.end(), 0x11);
    MPI_Win_unlock(right, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    const Bytes key = pattern(bytes, 7);
    window.locally([&] {
      for (std::size_t i = 0; i < bytes; ++i) window.memory[margin + i] ^= key[i];
      expect_window(window, margin, bytes, seed_of(bytes, window.left()));
    });
  }
}

/// MPI_Get_accumulate and MPI_Rget_accumulate hand out what was there before.
void get_accumulate_bytes(Kind kind) {
  for (const std::size_t bytes : window_sizes()) {
    CAPTURE(bytes, name_of(kind));
    Window window(bytes + 2 * margin, kind);
    const int n = static_cast<int>(bytes), right = window.right();
    const MPI_Aint at = window.at(right, margin);
    const Bytes first = pattern(bytes, seed_of(bytes, rank())), second = pattern(bytes, 7);
    Bytes was = empty(bytes + margin), then = empty(bytes + margin), last = empty(bytes + margin);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
    MPI_Get_accumulate(first.data(), n, MPI_BYTE, was.data(), n, MPI_BYTE, right, at, n, MPI_BYTE,
                       MPI_REPLACE, window.win);
    MPI_Rget_accumulate(second.data(), n, MPI_BYTE, then.data(), n, MPI_BYTE, right, at, n,
                        MPI_BYTE, MPI_REPLACE, window.win, &request);
    REQUIRE(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(holds(then, bytes, seed_of(bytes, rank())));
    MPI_Get_accumulate(nullptr, 0, MPI_BYTE, last.data(), n, MPI_BYTE, right, at, n, MPI_BYTE,
                       MPI_NO_OP, window.win);
    MPI_Win_unlock(right, window.win);
    CHECK((was == empty(bytes + margin)));
    CHECK(holds(last, bytes, 7));
    MPI_Barrier(MPI_COMM_WORLD);
    window.locally([&] { expect_window(window, margin, bytes, 7); });
  }
}

/// Every rank takes numbers from a counter at the last one, by both calls for one element.
void take_numbers(Kind kind) {
  constexpr int turns = 40;
  CAPTURE(name_of(kind));
  Array<std::int64_t> window(2, 0, kind);
  const int target = size() - 1;
  const std::int64_t one = 1;
  std::int64_t last = -1, swapped_sum = 0, numbers = 0, all_numbers = 0;
  MPI_Win_lock_all(0, window.win);
  for (int turn = 0; turn < turns; ++turn) {
    std::int64_t before = -1;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, window.index(target, 0), MPI_SUM,
                     window.win);
    MPI_Win_flush(target, window.win);
    REQUIRE(before > last);
    last = before;
    numbers += before;
    std::int64_t guess = swapped_sum, found = -1;
    for (;; guess = found) {
      const std::int64_t next = guess + 1;
      MPI_Compare_and_swap(&next, &guess, &found, MPI_INT64_T, target, window.index(target, 1),
                           window.win);
      MPI_Win_flush(target, window.win);
      REQUIRE(found >= swapped_sum);
      if (found == guess) break;
    }
    swapped_sum = guess + 1;
  }
  MPI_Win_unlock_all(window.win);
  MPI_Allreduce(&numbers, &all_numbers, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const std::int64_t count = static_cast<std::int64_t>(turns) * size();
  CHECK(all_numbers == count * (count - 1) / 2);  // each was handed out once
  if (rank() != target) return;
  CHECK(own(window, 0) == count);
  CHECK(own(window, 1) == count);
}

}  // namespace

#define FOR_EVERY_KIND(what, function)                                    \
  TEST_CASE(what ", created window") { function(Kind::create); }          \
  TEST_CASE(what ", allocated window") { function(Kind::allocate); }      \
  TEST_CASE(what ", allocated shared window") { function(Kind::shared); } \
  TEST_CASE(what ", dynamic window") { function(Kind::dynamic); }

FOR_EVERY_KIND("Put and get between fences", put_and_get_between_fences)
FOR_EVERY_KIND("Put and get under locks", put_and_get_under_locks)
FOR_EVERY_KIND("Rput and Rget", transfers_with_requests)
FOR_EVERY_KIND("Accumulate and Raccumulate of bytes", accumulate_bytes)
FOR_EVERY_KIND("Get_accumulate and Rget_accumulate of bytes", get_accumulate_bytes)
FOR_EVERY_KIND("Fetch_and_op and Compare_and_swap", take_numbers)

TEST_CASE("The target is the process itself") {
  for (const Kind kind : kinds) {
    for (const std::size_t bytes : window_sizes()) {
      CAPTURE(bytes, name_of(kind));
      Window window(2 * bytes + 16, kind);
      const int n = static_cast<int>(bytes);
      const Bytes out = pattern(bytes, seed_of(bytes, rank()));
      Bytes in = empty(bytes), was = empty(bytes);
      const std::size_t second = bytes + 8;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, window.win);
      MPI_Put(out.data(), n, MPI_BYTE, rank(), window.at(rank(), 0), n, MPI_BYTE, window.win);
      MPI_Win_flush(rank(), window.win);
      CHECK(first_wrong(window.memory, bytes, seed_of(bytes, rank())) == bytes);
      MPI_Get(in.data(), n, MPI_BYTE, rank(), window.at(rank(), 0), n, MPI_BYTE, window.win);
      // from the window's own memory to another part of it
      MPI_Put(window.memory, n, MPI_BYTE, rank(), window.at(rank(), second), n, MPI_BYTE,
              window.win);
      MPI_Win_flush(rank(), window.win);
      MPI_Get_accumulate(in.data(), n, MPI_BYTE, was.data(), n, MPI_BYTE, rank(),
                         window.at(rank(), second), n, MPI_BYTE, MPI_BXOR, window.win);
      MPI_Win_unlock(rank(), window.win);
      CHECK((in == out));
      CHECK((was == out));
      window.locally([&] {
        CHECK(std::count(window.memory + second, window.memory + second + bytes, 0) == n);
      });
    }
  }
}

TEST_CASE("MPI_PROC_NULL as target: nothing is moved, requests complete") {
  Array<std::int64_t> window(4, 5);
  const std::int64_t out = 1;
  std::int64_t in = 77;
  const auto everything = [&] {
    CHECK(MPI_Put(&out, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win) == 0);
    CHECK(MPI_Get(&in, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win) == 0);
    CHECK(MPI_Accumulate(&out, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM,
                         window.win) == 0);
    CHECK(MPI_Get_accumulate(&out, 1, MPI_INT64_T, &in, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1,
                             MPI_INT64_T, MPI_SUM, window.win) == 0);
    CHECK(MPI_Fetch_and_op(&out, &in, MPI_INT64_T, MPI_PROC_NULL, 0, MPI_SUM, window.win) == 0);
    CHECK(MPI_Compare_and_swap(&out, &out, &in, MPI_INT64_T, MPI_PROC_NULL, 0, window.win) == 0);
  };
  MPI_Win_fence(0, window.win);
  everything();
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  MPI_Win_lock_all(0, window.win);
  everything();
  MPI_Request requests[4];
  MPI_Rput(&out, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win, &requests[0]);
  MPI_Rget(&in, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win, &requests[1]);
  MPI_Raccumulate(&out, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, window.win,
                  &requests[2]);
  MPI_Rget_accumulate(&out, 1, MPI_INT64_T, &in, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T,
                      MPI_SUM, window.win, &requests[3]);
  CHECK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  MPI_Win_unlock_all(window.win);
  CHECK(in == 77);
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t i = 0; i < 4; ++i) CHECK(own(window, i) == 5);
}

TEST_CASE("Displacement units: another one at every rank") {
  constexpr int units[] = {1, 2, 4, 8, 3, 24, 100, 4096};
  constexpr std::size_t bytes = 64 << 10;
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared}) {
    CAPTURE(name_of(kind));
    Window window(bytes, kind, units[rank() % 8]);
    const MPI_Aint step = units[right % 8];  // the target's unit counts
    const Bytes out = pattern(5, seed_of(5, rank()));
    Bytes in = empty(5);
    MPI_Win_fence(0, window.win);
    for (MPI_Aint i = 0; i < 7; ++i)
      MPI_Put(out.data(), 5, MPI_BYTE, right, i * (8 / step + 1), 5, MPI_BYTE, window.win);
    MPI_Win_fence(0, window.win);
    const MPI_Aint mine = units[rank() % 8];
    for (MPI_Aint i = 0; i < 7; ++i)
      CHECK(first_wrong(window.memory + i * (8 / mine + 1) * mine, 5, seed_of(5, left)) == 5);
    MPI_Get(in.data(), 5, MPI_BYTE, right, 6 * (8 / step + 1), 5, MPI_BYTE, window.win);
    MPI_Win_fence(0, window.win);
    CHECK((in == out));
  }
}

TEST_CASE("Windows without memory at some ranks: MPI_BOTTOM, a null pointer, size 0") {
  for (const int without : {0, size() - 1}) {
    std::vector<std::int64_t> memory(static_cast<std::size_t>(size()), -1);
    const bool none = rank() == without && size() > 1;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(none ? MPI_BOTTOM : memory.data(),
                   none ? 0 : static_cast<MPI_Aint>(memory.size() * sizeof memory[0]),
                   sizeof memory[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    const std::int64_t mine = 100 + rank();
    MPI_Win_fence(0, win);
    for (int to = 0; to < size(); ++to) {
      const int n = to == without && size() > 1 ? 0 : 1;
      MPI_Put(&mine, n, MPI_INT64_T, to, n == 0 ? 0 : rank(), n, MPI_INT64_T, win);
    }
    MPI_Win_fence(0, win);
    for (int from = 0; from < size(); ++from)
      CHECK(memory[static_cast<std::size_t>(from)] == (none ? -1 : 100 + from));
    MPI_Win_free(&win);
    std::int64_t* base = nullptr;
    MPI_Win_allocate(none ? 0 : 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    const int to = without == 0 ? size() - 1 : 0;
    std::int64_t before = -1;
    if (rank() == to) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
      *base = 5;
      MPI_Win_unlock(to, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    MPI_Fetch_and_op(&mine, &before, MPI_INT64_T, to, 0, MPI_SUM, win);
    MPI_Win_unlock(to, win);
    CHECK(before >= 5);
    MPI_Win_free(&win);
  }
}

TEST_CASE("Buffers at absolute addresses: MPI_BOTTOM as origin and as place of a result") {
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    CAPTURE(name_of(kind));
    Array<Word> window(2, 5, kind);
    Word words[2] = {3, 4};
    MPI_Aint where[2] = {};
    MPI_Get_address(&words[0], &where[1]);  // the other way round
    MPI_Get_address(&words[1], &where[0]);
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed_block(2, 1, where, MPI_INT64_T, &pair);
    MPI_Type_commit(&pair);
    const Word ones[2] = {1, 1};
    const int to = window.right();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
    MPI_Put(MPI_BOTTOM, 1, pair, to, window.index(to, 0), 2, MPI_INT64_T, window.win);
    MPI_Win_flush(to, window.win);
    words[0] = words[1] = -1;
    MPI_Get(MPI_BOTTOM, 1, pair, to, window.index(to, 0), 2, MPI_INT64_T, window.win);
    MPI_Win_flush(to, window.win);
    CHECK(words[0] == 3);
    CHECK(words[1] == 4);
    words[0] = words[1] = -1;
    MPI_Get_accumulate(ones, 2, MPI_INT64_T, MPI_BOTTOM, 1, pair, to, window.index(to, 0), 2,
                       MPI_INT64_T, MPI_SUM, window.win);
    MPI_Win_unlock(to, window.win);
    CHECK(words[0] == 3);
    CHECK(words[1] == 4);
    MPI_Type_free(&pair);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window, 0) == 5);
    CHECK(own(window, 1) == 4);
  }
}

TEST_CASE("Dynamic window: memory is attached and detached while an epoch is open") {
  constexpr std::size_t regions = 12, bytes = 5000;
  std::vector<Bytes> memory(regions, Bytes(bytes));
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  MPI_Win_lock_all(0, win);
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<MPI_Aint> mine(regions), theirs(regions);
    for (std::size_t i = 0; i < regions; ++i) {
      REQUIRE(MPI_Win_attach(win, memory[i].data(), static_cast<MPI_Aint>(bytes)) == MPI_SUCCESS);
      MPI_Get_address(memory[i].data(), &mine[i]);
    }
    MPI_Sendrecv(mine.data(), regions, MPI_AINT, left, 1, theirs.data(), regions, MPI_AINT, right,
                 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < regions; ++i) {
      const Bytes out = pattern(bytes - i, i + 100U * static_cast<unsigned>(turn + rank()));
      MPI_Put(out.data(), static_cast<int>(out.size()), MPI_BYTE, right,
              MPI_Aint_add(theirs[i], static_cast<MPI_Aint>(i)), static_cast<int>(out.size()),
              MPI_BYTE, win);
      MPI_Win_flush_local(right, win);
    }
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (std::size_t i = 0; i < regions; ++i) {
      const std::uint64_t seed = i + 100U * static_cast<unsigned>(turn + left);
      CHECK(first_wrong(memory[i].data() + i, bytes - i, seed) == bytes - i);
    }
    for (std::size_t i = 0; i < regions; ++i)
      REQUIRE(MPI_Win_detach(win, memory[(i * 5) % regions].data()) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

TEST_CASE("Dynamic window: a rank that has nothing attaches and detaches it") {
  MPI_Win win = MPI_WIN_NULL;
  Word words[2] = {};
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CHECK(MPI_Win_attach(win, &words[1], 0) == MPI_SUCCESS);
  CHECK(MPI_Win_attach(win, words, sizeof words) == MPI_SUCCESS);
  CHECK(MPI_Win_detach(win, words) == MPI_SUCCESS);
  CHECK(MPI_Win_detach(win, &words[1]) == MPI_SUCCESS);
  MPI_Win_free(&win);
}

TEST_CASE("Thousands of small puts and gets end with one flush") {
  constexpr int count = 3000;
  for (const Kind kind : kinds) {
    CAPTURE(name_of(kind));
    Array<int> window(count, -1, kind);
    std::vector<int> out(count), in(count, -2);
    for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = rank() * count + i;
    const int right = window.right();
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      MPI_Put(&out[k], 1, MPI_INT, right, window.index(right, k), 1, MPI_INT, window.win);
    }
    MPI_Win_flush_all(window.win);
    for (int i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      MPI_Get(&in[k], 1, MPI_INT, right, window.index(right, k), 1, MPI_INT, window.win);
    }
    MPI_Win_flush_all(window.win);
    CHECK((in == out));
    MPI_Win_unlock_all(window.win);
  }
}

TEST_CASE("Accumulates of one process to one word take effect in their order", "[stricter]") {
  constexpr int turns = 200;
  Array<std::int64_t> window(1, 0);
  const int right = window.right();
  std::vector<std::int64_t> values(turns), before(turns, -1);
  MPI_Win_lock_all(0, window.win);
  for (int i = 0; i < turns; ++i) {
    const auto k = static_cast<std::size_t>(i);
    values[k] = i + 1;
    if (i % 3 == 0) {
      MPI_Accumulate(&values[k], 1, MPI_INT64_T, right, window.index(right, 0), 1, MPI_INT64_T,
                     MPI_REPLACE, window.win);
      before[k] = i;
    } else if (i % 3 == 1) {
      MPI_Get_accumulate(&values[k], 1, MPI_INT64_T, &before[k], 1, MPI_INT64_T, right,
                         window.index(right, 0), 1, MPI_INT64_T, MPI_REPLACE, window.win);
    } else {
      MPI_Fetch_and_op(&values[k], &before[k], MPI_INT64_T, right, window.index(right, 0),
                       MPI_REPLACE, window.win);
    }
  }
  MPI_Win_unlock_all(window.win);
  for (int i = 0; i < turns; ++i) CHECK(before[static_cast<std::size_t>(i)] == i);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(own(window) == turns);
}
