// Field: one-sided communication: calls that MPI does not allow return the error class that it
// names for them, and the window works on afterwards. The error handler of the window returns.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <initializer_list>
#include <limits>

using namespace overlap::test;

namespace {

/// A window of a few words that returns errors, with every call that moves one word.
class Faulty : public Array<Word> {
 public:
  static constexpr std::size_t words = 8;
  explicit Faulty(Kind kind = Kind::create) : Array<Word>(words, 0, kind) {
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  }

  /// Epochs of all kinds with data, as if nothing had happened.
  void expect_works() {
    MPI_Barrier(MPI_COMM_WORLD);
    const Word mine = 10 + rank(), other = 20 + rank(), third = 30 + rank();
    REQUIRE(MPI_Win_fence(0, win) == MPI_SUCCESS);
    put(*this, mine, right(), 0);
    REQUIRE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS);
    CHECK((*this)[0] == 10 + left());
    const Group from(win, {left()}), to(win, {right()});
    REQUIRE(MPI_Win_post(from, 0, win) == MPI_SUCCESS);
    REQUIRE(MPI_Win_start(to, 0, win) == MPI_SUCCESS);
    put(*this, other, right(), 1);
    REQUIRE(MPI_Win_complete(win) == MPI_SUCCESS);
    REQUIRE(MPI_Win_wait(win) == MPI_SUCCESS);
    CHECK((*this)[1] == 20 + left());
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win) == MPI_SUCCESS);
    put(*this, third, right(), 2);
    REQUIRE(MPI_Win_unlock(right(), win) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(*this, 2) == 30 + left());
    for (std::size_t i = 3; i < words; ++i) CHECK(own(*this, i) == 0);  // nothing else was written
    MPI_Barrier(MPI_COMM_WORLD);
  }

  /// What each call that communicates returns, with `to` as target.
  std::vector<int> every_call(int to, MPI_Aint at = 3) {
    return {MPI_Put(&out_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, win),
            MPI_Get(&in_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, win),
            MPI_Accumulate(&out_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, MPI_SUM, win),
            MPI_Get_accumulate(&out_, 1, MPI_INT64_T, &in_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T,
                               MPI_SUM, win),
            MPI_Fetch_and_op(&out_, &in_, MPI_INT64_T, to, at, MPI_SUM, win),
            MPI_Compare_and_swap(&out_, &out_, &in_, MPI_INT64_T, to, at, win)};
  }
  std::vector<int> every_call_with_request(int to, MPI_Aint at = 3) {
    MPI_Request request = MPI_REQUEST_NULL;  // an error makes none
    return {MPI_Rput(&out_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, win, &request),
            MPI_Rget(&in_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, win, &request),
            MPI_Raccumulate(&out_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, MPI_SUM, win, &request),
            MPI_Rget_accumulate(&out_, 1, MPI_INT64_T, &in_, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T,
                                MPI_SUM, win, &request)};
  }

 private:
  Word out_ = 99, in_ = -1;
};

// No epoch, or another one, is open.
constexpr auto sync_error = {MPI_ERR_RMA_SYNC};
// Two synchronizations that exclude each other: MPI names both classes.
constexpr auto conflict = {MPI_ERR_RMA_SYNC, MPI_ERR_RMA_CONFLICT};
constexpr auto range_error = {MPI_ERR_RMA_RANGE, MPI_ERR_DISP};
constexpr auto rank_error = {MPI_ERR_RANK};
// The target exists and is no target of this epoch.
constexpr auto not_a_target = {MPI_ERR_RMA_SYNC, MPI_ERR_RANK};

}  // namespace

TEST_CASE("Access without an epoch") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic}) {
    CAPTURE(name_of(kind));
    Faulty window(kind);
    expect(window.every_call(window.right(), window.index(window.right(), 3)), sync_error);
    expect(window.every_call_with_request(window.right(), window.index(window.right(), 3)),
           sync_error);
    window.expect_works();
  }
}

TEST_CASE("Calls with a request in an active target epoch") {
  Faulty window;
  MPI_Win_fence(0, window.win);
  expect(window.every_call_with_request(window.right()), sync_error);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  window.expect_works();
}

TEST_CASE("Unlock without a lock") {
  Faulty window;
  expect(MPI_Win_unlock(window.right(), window.win), sync_error);
  expect(MPI_Win_unlock_all(window.win), sync_error);
  window.expect_works();
}

TEST_CASE("Unlock, unlock_all: of something else than what is locked") {
  if (size() < 2) return;
  Faulty window;
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  expect(MPI_Win_unlock(rank(), window.win), sync_error);
  expect(MPI_Win_unlock_all(window.win), sync_error);
  CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
  MPI_Win_lock_all(0, window.win);
  expect(MPI_Win_unlock(rank(), window.win), sync_error);
  CHECK(MPI_Win_unlock_all(window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Flush without a lock") {
  Faulty window;
  expect(MPI_Win_flush(window.right(), window.win), sync_error);
  expect(MPI_Win_flush_local(window.right(), window.win), sync_error);
  expect(MPI_Win_flush_all(window.win), sync_error);
  expect(MPI_Win_flush_local_all(window.win), sync_error);
  window.expect_works();
}

TEST_CASE("A second lock of the same target") {
  Faulty window;
  for (const int type : {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE}) {
    MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
    expect(MPI_Win_lock(type, window.right(), 0, window.win), conflict);
    CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
    expect(MPI_Win_unlock(window.right(), window.win), sync_error);  // it was locked once
    MPI_Barrier(MPI_COMM_WORLD);
  }
  window.expect_works();
}

TEST_CASE("Lock_all and lock exclude each other") {
  Faulty window;
  MPI_Win_lock_all(0, window.win);
  expect(MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win), conflict);
  expect(MPI_Win_lock_all(0, window.win), conflict);
  CHECK(MPI_Win_unlock_all(window.win) == MPI_SUCCESS);
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  expect(MPI_Win_lock_all(0, window.win), conflict);
  CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Fence while a lock is held") {
  Faulty window;
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  expect(MPI_Win_fence(0, window.win), conflict);
  CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
  MPI_Win_lock_all(0, window.win);
  expect(MPI_Win_fence(0, window.win), conflict);
  CHECK(MPI_Win_unlock_all(window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Lock and start in a fence epoch that has operations") {
  Faulty window;
  const Word zero = 0;
  const Group to(window.win, {window.right()});
  MPI_Win_fence(0, window.win);
  put(window, zero, window.right(), 4);
  expect(MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win), conflict);
  expect(MPI_Win_lock_all(0, window.win), conflict);
  expect(MPI_Win_start(to, 0, window.win), conflict);
  CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Complete without start, wait and test without post") {
  Faulty window;
  int done = 0;
  expect(MPI_Win_complete(window.win), sync_error);
  expect(MPI_Win_wait(window.win), sync_error);
  expect(MPI_Win_test(window.win, &done), sync_error);
  window.expect_works();
}

TEST_CASE("A second start, a second post") {
  Faulty window;
  const Group from(window.win, {window.left()}), to(window.win, {window.right()});
  MPI_Win_post(from, 0, window.win);
  expect(MPI_Win_post(from, 0, window.win), conflict);
  MPI_Win_start(to, 0, window.win);
  expect(MPI_Win_start(to, 0, window.win), conflict);
  CHECK(MPI_Win_complete(window.win) == MPI_SUCCESS);
  expect(MPI_Win_complete(window.win), sync_error);
  CHECK(MPI_Win_wait(window.win) == MPI_SUCCESS);
  expect(MPI_Win_wait(window.win), sync_error);
  window.expect_works();
}

TEST_CASE("Lock and fence between start and complete") {
  Faulty window;
  const Group from(window.win, {window.left()}), to(window.win, {window.right()});
  MPI_Win_post(from, 0, window.win);
  MPI_Win_start(to, 0, window.win);
  expect(MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win), conflict);
  expect(MPI_Win_lock_all(0, window.win), conflict);
  expect(MPI_Win_fence(0, window.win), conflict);
  CHECK(MPI_Win_complete(window.win) == MPI_SUCCESS);
  CHECK(MPI_Win_wait(window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Target outside of the group of start") {
  if (size() < 2) return;
  Faulty window;
  const Group from(window.win, {window.left()}), to(window.win, {window.right()});
  MPI_Win_post(from, 0, window.win);
  MPI_Win_start(to, 0, window.win);
  expect(window.every_call(rank()), not_a_target);
  CHECK(MPI_Win_complete(window.win) == MPI_SUCCESS);
  CHECK(MPI_Win_wait(window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Target that is not locked while another one is") {
  if (size() < 2) return;
  Faulty window;
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  expect(window.every_call(rank()), not_a_target);
  expect(window.every_call_with_request(rank()), not_a_target);
  expect(MPI_Win_flush(rank(), window.win), not_a_target);
  CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("Ranks that do not exist") {
  Faulty window;
  for (const int to : {size(), -77, 1 << 30}) {
    CAPTURE(to);
    expect(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win), rank_error);
    expect(MPI_Win_unlock(to, window.win), {MPI_ERR_RANK, MPI_ERR_RMA_SYNC});
    MPI_Win_lock_all(0, window.win);
    expect(window.every_call(to), rank_error);
    expect(MPI_Win_flush(to, window.win), rank_error);
    MPI_Win_unlock_all(window.win);
  }
  window.expect_works();
}

// Where the origin does not know the size the error may come with the flush.
TEST_CASE("Displacement outside of the window") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared}) {
    Faulty window(kind);
    const int to = window.right();
    MPI_Aint far = 1;
    far <<= 40;
    Word words[Faulty::words + 1] = {};
    for (const auto& [at, count] : {std::pair<MPI_Aint, int>{Faulty::words, 1},
                                    {Faulty::words - 1, 2},
                                    {-1, 1},
                                    {far, 1},
                                    {std::numeric_limits<MPI_Aint>::max() - 3, 1},
                                    {0, static_cast<int>(Faulty::words) + 1}}) {
      CAPTURE(name_of(kind), at, count);
      MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
      const auto ends = [&](int code) {
        const int flushed = MPI_Win_flush(to, window.win);
        expect(code != MPI_SUCCESS ? code : flushed, range_error);
      };
      ends(MPI_Put(words, count, MPI_INT64_T, to, at, count, MPI_INT64_T, window.win));
      ends(MPI_Get(words, count, MPI_INT64_T, to, at, count, MPI_INT64_T, window.win));
      ends(MPI_Accumulate(words, count, MPI_INT64_T, to, at, count, MPI_INT64_T, MPI_SUM,
                          window.win));
      ends(MPI_Get_accumulate(words, count, MPI_INT64_T, words, count, MPI_INT64_T, to, at, count,
                              MPI_INT64_T, MPI_NO_OP, window.win));
      if (count == 1) {
        ends(MPI_Fetch_and_op(words, words + 1, MPI_INT64_T, to, at, MPI_SUM, window.win));
        ends(MPI_Compare_and_swap(words, words, words + 1, MPI_INT64_T, to, at, window.win));
      }
      MPI_Win_unlock(to, window.win);
    }
    window.expect_works();
  }
}

TEST_CASE("A call that fails behind a fence begins no epoch") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared}) {
    CAPTURE(name_of(kind));
    Faulty window(kind);
    MPI_Win_fence(0, window.win);
    expect(window.every_call(window.right(), Faulty::words), range_error);
    CHECK(MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
    window.expect_works();
  }
}

TEST_CASE("Own memory that is not attached") {
  Faulty window(Kind::dynamic);
  Word own = 5, word = 7;
  MPI_Aint at = 0;
  MPI_Get_address(&own, &at);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, window.win);
  expect(MPI_Put(&word, 1, MPI_INT64_T, rank(), at, 1, MPI_INT64_T, window.win),
         {MPI_ERR_RMA_RANGE, MPI_ERR_RMA_ATTACH});
  expect(MPI_Accumulate(&word, 1, MPI_INT64_T, rank(), at, 1, MPI_INT64_T, MPI_SUM, window.win),
         {MPI_ERR_RMA_RANGE, MPI_ERR_RMA_ATTACH});
  MPI_Win_unlock(rank(), window.win);
  CHECK(own == 5);
  window.expect_works();
}

TEST_CASE("Memory of another rank that is not attached") {
  if (!on_one_node(MPI_COMM_WORLD)) return;  // only its owner knows there
  Faulty window(Kind::dynamic);
  const int to = window.right();
  Word own = 5, word = 7, result = 0;
  MPI_Aint at = 0, there = 0;
  MPI_Get_address(&own, &at);
  MPI_Sendrecv(&at, 1, MPI_AINT, window.left(), 0, &there, 1, MPI_AINT, to, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  const auto errors = {MPI_ERR_RMA_RANGE, MPI_ERR_RMA_ATTACH};
  const auto every_call = [&](MPI_Aint place) {
    expect(MPI_Put(&word, 1, MPI_INT64_T, to, place, 1, MPI_INT64_T, window.win), errors);
    expect(MPI_Get(&word, 1, MPI_INT64_T, to, place, 1, MPI_INT64_T, window.win), errors);
    expect(MPI_Accumulate(&word, 1, MPI_INT64_T, to, place, 1, MPI_INT64_T, MPI_SUM, window.win),
           errors);
    expect(MPI_Fetch_and_op(&word, &result, MPI_INT64_T, to, place, MPI_SUM, window.win), errors);
  };
  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
  every_call(there);
  MPI_Win_unlock(to, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_attach(window.win, &own, sizeof own);
  MPI_Win_fence(0, window.win);
  MPI_Put(&word, 1, MPI_INT64_T, to, there, 1, MPI_INT64_T, window.win);
  MPI_Win_fence(0, window.win);
  CHECK(own == 7);
  MPI_Win_detach(window.win, &own);
  MPI_Barrier(MPI_COMM_WORLD);
  every_call(there);
  MPI_Win_fence(0, window.win);
  CHECK(own == 7);
  window.expect_works();
}

TEST_CASE("Operations that a datatype does not have") {
  Faulty window;
  const int to = window.right();
  const double out = 0;
  double in = 0;
  MPI_Op own_op = MPI_OP_NULL;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own_op);
  const auto op_error = {MPI_ERR_OP, MPI_ERR_TYPE};
  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
  expect(MPI_Accumulate(&out, 1, MPI_DOUBLE, to, 3, 1, MPI_DOUBLE, MPI_BAND, window.win), op_error);
  expect(MPI_Accumulate(&out, 1, MPI_INT64_T, to, 3, 1, MPI_INT64_T, MPI_MAXLOC, window.win),
         op_error);
  expect(MPI_Accumulate(&out, 1, MPI_2INT, to, 3, 1, MPI_2INT, MPI_SUM, window.win), op_error);
  expect(MPI_Accumulate(&out, 1, MPI_C_FLOAT_COMPLEX, to, 3, 1, MPI_C_FLOAT_COMPLEX, MPI_MAX,
                        window.win),
         op_error);
  expect(MPI_Accumulate(&out, 1, MPI_DOUBLE, to, 3, 1, MPI_DOUBLE, own_op, window.win), op_error);
  expect(MPI_Get_accumulate(&out, 1, MPI_DOUBLE, &in, 1, MPI_DOUBLE, to, 3, 1, MPI_DOUBLE, MPI_LXOR,
                            window.win),
         op_error);
  expect(MPI_Fetch_and_op(&out, &in, MPI_DOUBLE, to, 3, MPI_BOR, window.win), op_error);
  expect(MPI_Fetch_and_op(&out, &in, MPI_DOUBLE, to, 3, own_op, window.win), op_error);
  expect(MPI_Compare_and_swap(&out, &out, &in, MPI_DOUBLE, to, 3, window.win),
         {MPI_ERR_OP, MPI_ERR_TYPE, MPI_ERR_ARG});
  MPI_Win_unlock(to, window.win);
  MPI_Op_free(&own_op);
  window.expect_works();
}

TEST_CASE("Datatypes that do not fit the call") {
  Faulty window;
  const int to = window.right();
  const int lengths[] = {1, 1};
  const MPI_Aint at[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype mixed = MPI_DATATYPE_NULL, raw = MPI_DATATYPE_NULL, pair = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, at, types, &mixed);
  MPI_Type_commit(&mixed);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Type_contiguous(1, MPI_INT, &raw);  // not committed
  const Word out[2] = {};
  Word in[2] = {};
  const auto type_error = {MPI_ERR_TYPE, MPI_ERR_OP, MPI_ERR_ARG};
  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
  expect(MPI_Accumulate(out, 1, mixed, to, 3, 1, mixed, MPI_SUM, window.win), type_error);
  expect(MPI_Fetch_and_op(out, in, pair, to, 3, MPI_SUM, window.win), type_error);
  expect(MPI_Compare_and_swap(out, out, in, pair, to, 3, window.win), type_error);
  expect(MPI_Put(out, 1, raw, to, 3, 1, MPI_INT, window.win), {MPI_ERR_TYPE});
  expect(MPI_Put(out, 1, MPI_INT, to, 3, 1, raw, window.win), {MPI_ERR_TYPE});
  expect(MPI_Put(out, -1, MPI_INT, to, 3, 1, MPI_INT, window.win), {MPI_ERR_COUNT});
  expect(MPI_Get(in, 1, MPI_INT, to, 3, -1, MPI_INT, window.win), {MPI_ERR_COUNT});
  MPI_Win_unlock(to, window.win);
  MPI_Type_free(&mixed);
  MPI_Type_free(&raw);
  MPI_Type_free(&pair);
  window.expect_works();
}

TEST_CASE("Groups with processes that are not of the window") {
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() == 0 ? 0 : 1, 0, &alone);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  {
    Array<Word> window(1, 0, Kind::create, alone);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    expect(MPI_Win_post(all, 0, window.win), {size() > 1 ? MPI_ERR_GROUP : MPI_SUCCESS});
    expect(MPI_Win_start(all, 0, window.win), {size() > 1 ? MPI_ERR_GROUP : MPI_SUCCESS});
    if (size() > 1) {
      expect(MPI_Win_wait(window.win), sync_error);
      expect(MPI_Win_complete(window.win), sync_error);
    } else {
      CHECK(MPI_Win_complete(window.win) == MPI_SUCCESS);
      CHECK(MPI_Win_wait(window.win) == MPI_SUCCESS);
    }
  }
  MPI_Group_free(&all);
  MPI_Comm_free(&alone);
}

TEST_CASE("Lock types and assertions that do not exist") {
  Faulty window;
  expect(MPI_Win_lock(77, window.right(), 0, window.win), {MPI_ERR_LOCKTYPE});
  expect(MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 1 << 20, window.win), {MPI_ERR_ASSERT});
  expect(MPI_Win_fence(1 << 20, window.win), {MPI_ERR_ASSERT});
  window.expect_works();
}

TEST_CASE("A window is freed while this process holds a lock: it stays") {
  Faulty window;
  MPI_Win same = window.win;
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  expect(MPI_Win_free(&same), sync_error);
  CHECK(same == window.win);
  CHECK(MPI_Win_unlock(window.right(), window.win) == MPI_SUCCESS);
  MPI_Win_lock_all(0, window.win);
  expect(MPI_Win_free(&same), sync_error);
  CHECK(same == window.win);
  CHECK(MPI_Win_unlock_all(window.win) == MPI_SUCCESS);
  window.expect_works();
}

TEST_CASE("A window is freed in a fence epoch that has operations: it stays") {
  Faulty window;
  MPI_Win same = window.win;
  const Word mine = 10 + rank();
  MPI_Win_fence(0, window.win);
  put(window, mine, window.right(), 0);
  expect(MPI_Win_free(&same), sync_error);
  CHECK(same == window.win);
  MPI_Win_fence(0, window.win);
  CHECK(window[0] == 10 + window.left());
  window.expect_works();
}

TEST_CASE("Calls that belong to another kind of window") {
  Faulty created, allocated(Kind::allocate);
  MPI_Aint bytes = 0;
  int unit = 0;
  void* memory = nullptr;
  Word word = 0;
  for (Faulty* window : {&created, &allocated}) {
    expect(MPI_Win_attach(window->win, &word, sizeof word), {MPI_ERR_RMA_FLAVOR, MPI_ERR_WIN});
    expect(MPI_Win_detach(window->win, &word), {MPI_ERR_RMA_FLAVOR, MPI_ERR_WIN});
  }
  expect(MPI_Win_shared_query(created.win, 0, &bytes, &unit, &memory), {MPI_ERR_RMA_FLAVOR});
  created.expect_works();
  allocated.expect_works();
}

TEST_CASE("Windows that cannot be made") {
  const ErrorsReturn errors(MPI_COMM_WORLD);
  Word memory[2] = {};
  MPI_Win win = MPI_WIN_NULL;
  expect(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), {MPI_ERR_SIZE});
  expect(MPI_Win_create(memory, 16, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
         {MPI_ERR_DISP, MPI_ERR_ARG});
  expect(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), {MPI_ERR_SIZE});
  Faulty().expect_works();
}
