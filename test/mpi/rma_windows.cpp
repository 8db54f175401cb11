// Field: one-sided communication: windows as objects: attributes, info, names, groups, shared
// memory, many of them, communicators of all sorts.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <memory>

using namespace overlap::test;

namespace {

constexpr auto kinds = {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic};

int flavor_of(Kind kind) {
  switch (kind) {
    case Kind::create: return MPI_WIN_FLAVOR_CREATE;
    case Kind::allocate: return MPI_WIN_FLAVOR_ALLOCATE;
    case Kind::shared: return MPI_WIN_FLAVOR_SHARED;
    case Kind::dynamic: return MPI_WIN_FLAVOR_DYNAMIC;
  }
  return 0;
}

template <class Value>
Value* attribute(MPI_Win win, int key) {
  void* value = nullptr;
  int found = 0;
  MPI_Win_get_attr(win, key, &value, &found);
  REQUIRE(found != 0);
  return static_cast<Value*>(value);
}

/// Every rank of the window's group puts its rank into its right neighbour's word.
void exercise(Array<Word>& window, Word offset = 0) {
  const Word mine = offset + window.me;
  MPI_Win_fence(0, window.win);
  MPI_Put(&mine, 1, MPI_INT64_T, window.right(), window.index(window.right(), 0), 1, MPI_INT64_T,
          window.win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  CHECK(window[0] == offset + window.left());
}

/// The same under a lock, without a collective call.
void exercise_passively(Array<Word>& window, std::size_t at, Word value) {
  Word back = -1;
  const int to = window.right();
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
  MPI_Put(&value, 1, MPI_INT64_T, to, window.index(to, at), 1, MPI_INT64_T, window.win);
  MPI_Win_flush(to, window.win);
  MPI_Get(&back, 1, MPI_INT64_T, to, window.index(to, at), 1, MPI_INT64_T, window.win);
  MPI_Win_unlock(to, window.win);
  CHECK(back == value);
}

}  // namespace

TEST_CASE("Attributes of windows") {
  for (const Kind kind : kinds) {
    CAPTURE(name_of(kind));
    const std::size_t bytes = 64U + 8U * static_cast<unsigned>(rank());
    Window window(bytes, kind, 4);
    CHECK(*attribute<int>(window.win, MPI_WIN_CREATE_FLAVOR) == flavor_of(kind));
    const int model = *attribute<int>(window.win, MPI_WIN_MODEL);
    CHECK((model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE));
    if (kind == Kind::dynamic) {
      CHECK(attribute<void>(window.win, MPI_WIN_BASE) == MPI_BOTTOM);
      CHECK(*attribute<MPI_Aint>(window.win, MPI_WIN_SIZE) == 0);
      CHECK(*attribute<int>(window.win, MPI_WIN_DISP_UNIT) == 1);
    } else {
      CHECK(attribute<void>(window.win, MPI_WIN_BASE) == window.memory);
      CHECK(*attribute<MPI_Aint>(window.win, MPI_WIN_SIZE) == static_cast<MPI_Aint>(bytes));
      CHECK(*attribute<int>(window.win, MPI_WIN_DISP_UNIT) == 4);
    }
  }
}

namespace {
int deleted = 0;
int count_deletion(MPI_Win, int, void* value, void*) {
  deleted += *static_cast<int*>(value);
  return MPI_SUCCESS;
}
}  // namespace

TEST_CASE("The program's own attributes go with the window") {
  int key = MPI_KEYVAL_INVALID, value = 3, found = 0;
  deleted = 0;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deletion, &key, nullptr);
  {
    Array<Word> window(1);
    MPI_Win_set_attr(window.win, key, &value);
    CHECK(*attribute<int>(window.win, key) == 3);
    exercise(window);
  }
  CHECK(deleted == 3);
  {
    Array<Word> window(1);
    void* nothing = nullptr;
    MPI_Win_get_attr(window.win, key, &nothing, &found);
    CHECK(found == 0);
  }
  MPI_Win_free_keyval(&key);
}

TEST_CASE("Names, groups, error handlers, handles of Fortran") {
  for (const Kind kind : kinds) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    MPI_Win_set_name(window.win, "a window of ours");
    MPI_Win_get_name(window.win, name, &length);
    CHECK(std::string(name) == "a window of ours");
    CHECK(length == 16);
    MPI_Group of_window = MPI_GROUP_NULL, of_world = MPI_GROUP_NULL;
    int same = -1;
    MPI_Win_get_group(window.win, &of_window);
    MPI_Comm_group(MPI_COMM_WORLD, &of_world);
    MPI_Group_compare(of_window, of_world, &same);
    CHECK(same == MPI_IDENT);
    MPI_Group_free(&of_window);
    MPI_Group_free(&of_world);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Win_get_errhandler(window.win, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(window.win)) == window.win);
  }
}

TEST_CASE("Info: what is asked for does not change what is right") {
  const char* keys[][2] = {{"no_locks", "true"},
                           {"accumulate_ordering", "none"},
                           {"accumulate_ordering", "rar,war"},
                           {"accumulate_ops", "same_op"},
                           {"accumulate_ops", "same_op_no_op"},
                           {"same_size", "true"},
                           {"same_disp_unit", "true"},
                           {"no such key", "whatever"}};
  for (const auto& [key, value] : keys) {
    CAPTURE(key, value);
    MPI_Info info = MPI_INFO_NULL, back = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    Word* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    REQUIRE(MPI_Win_allocate(16, 8, info, MPI_COMM_WORLD, &memory, &win) == MPI_SUCCESS);
    memory[0] = memory[1] = 0;
    const Word one = 1;
    for (int turn = 1; turn <= 3; ++turn) {
      MPI_Win_fence(0, win);
      for (int to = 0; to < size(); ++to)
        MPI_Accumulate(&one, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, MPI_SUM, win);
      MPI_Win_fence(0, win);
      CHECK(memory[1] == turn * size());
      CHECK(memory[0] == 0);
    }
    REQUIRE(MPI_Win_set_info(win, info) == MPI_SUCCESS);
    REQUIRE(MPI_Win_get_info(win, &back) == MPI_SUCCESS);
    CHECK(back != MPI_INFO_NULL);
    MPI_Info_free(&back);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
  }
}

namespace {

/// Rank r has r + 1 words, except `without`, which has none.
void shared_windows(bool contiguous, int without) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", contiguous ? "false" : "true");
  const auto words = [&](int of) { return of == without ? 0 : of + 1; };
  Word* mine = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_allocate_shared(8 * words(rank()), 8, info, MPI_COMM_WORLD, &mine, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < words(rank()); ++i) mine[i] = 100 * rank() + i;
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  const Word* next = nullptr;
  for (int r = 0; r < size(); ++r) {
    MPI_Aint bytes = -1;
    int unit = -1;
    Word* theirs = nullptr;
    REQUIRE(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs) == MPI_SUCCESS);
    CHECK(bytes == 8 * words(r));
    CHECK(unit == 8);
    if (words(r) == 0) continue;
    if (r == rank()) CHECK(theirs == mine);
    if (contiguous && next != nullptr) CHECK(theirs == next);
    next = theirs + words(r);
    for (int i = 0; i < words(r); ++i) CHECK(theirs[i] == 100 * r + i);
  }
  // MPI_PROC_NULL: the lowest rank that has memory
  MPI_Aint bytes = -1;
  int unit = -1;
  Word *first = nullptr, *lowest = nullptr;
  const int lowest_rank = without == 0 ? 1 : 0;
  if (lowest_rank < size()) {
    REQUIRE(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first) == MPI_SUCCESS);
    CHECK(bytes == 8 * words(lowest_rank));
    CHECK(unit == 8);
    CHECK(first[0] == 100 * lowest_rank);
    MPI_Win_shared_query(win, lowest_rank, &bytes, &unit, &lowest);
    CHECK(first == lowest);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // a store there is a put
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  Word* theirs = nullptr;
  MPI_Win_shared_query(win, right, &bytes, &unit, &theirs);
  if (words(right) > 0) theirs[0] = 7000 + rank();
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  if (words(rank()) > 0) {
    Word got = -1;
    CHECK(mine[0] == 7000 + left);
    MPI_Get(&got, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(rank(), win);
    CHECK(got == 7000 + left);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
}

}  // namespace

TEST_CASE("Shared window: contiguous") { shared_windows(true, -1); }
TEST_CASE("Shared window: not contiguous", "[stricter]") { shared_windows(false, -1); }
TEST_CASE("Shared window: rank 0 has no memory") { shared_windows(true, 0); }
TEST_CASE("Shared window: the last rank has no memory") { shared_windows(true, size() - 1); }
TEST_CASE("Shared window: not contiguous, rank 0 has no memory", "[stricter]") {
  shared_windows(false, 0);
}

// Intel's PRK (MPISHM/Transpose) do this, and run with Open MPI's own component.
TEST_CASE("Shared window: locked although its no_locks says that nobody will") {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  Word* mine = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  REQUIRE(MPI_Win_allocate_shared(8, 8, info, MPI_COMM_WORLD, &mine, &win) == MPI_SUCCESS);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CHECK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win) == MPI_SUCCESS);
  *mine = rank();
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  Word got = -1;
  MPI_Get(&got, 1, MPI_INT64_T, (rank() + 1) % size(), 0, 1, MPI_INT64_T, win);
  MPI_Win_flush_all(win);
  CHECK(got == (rank() + 1) % size());
  CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
}

TEST_CASE("Shared window: a spin on a word that another process stores") {
  if (size() < 2) return;
  Array<Word> window(1, 0, Kind::shared);
  MPI_Win_lock_all(0, window.win);
  MPI_Aint bytes = 0;
  int unit = 0;
  volatile Word* turn = nullptr;  // of rank 0: whose turn it is
  MPI_Win_shared_query(window.win, 0, &bytes, &unit, &turn);
  for (int round = 0; round < 20; ++round) {
    while (*turn != round * size() + rank()) {
      MPI_Win_sync(window.win);
      poke(std::chrono::microseconds(1));
    }
    MPI_Win_sync(window.win);
    *turn = *turn + 1;
    MPI_Win_sync(window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(window.win);
  CHECK(*turn == 20 * size());
  MPI_Win_unlock_all(window.win);
}

TEST_CASE("Many windows at a time, all of them in use") {
  constexpr std::size_t count = 24;
  std::vector<std::unique_ptr<Array<Word>>> windows;
  for (std::size_t i = 0; i < count; ++i)
    windows.push_back(std::make_unique<Array<Word>>(2, -1, kinds.begin()[i % 4]));
  for (auto& each : windows) MPI_Win_lock_all(0, each->win);
  for (std::size_t i = 0; i < count; ++i) {
    const Word mine = 100 * static_cast<Word>(i) + rank();
    Array<Word>& window = *windows[(i * 7) % count];
    const int to = window.right();
    MPI_Accumulate(&mine, 1, MPI_INT64_T, to, window.index(to, 1), 1, MPI_INT64_T, MPI_REPLACE,
                   window.win);
    MPI_Win_flush_local(to, window.win);
  }
  for (auto& each : windows) MPI_Win_unlock_all(each->win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t i = 0; i < count; ++i) {
    Array<Word>& window = *windows[(i * 7) % count];
    CHECK(own(window, 0) == -1);
    CHECK(own(window, 1) == 100 * static_cast<Word>(i) + window.left());
  }
}

TEST_CASE("Windows are freed and made again while another one has operations in flight") {
  constexpr std::size_t turns = 30;
  Array<Word> lasting(turns, -1);
  std::vector<Word> out(turns);
  MPI_Win_lock_all(0, lasting.win);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    out[turn] = 10 * static_cast<Word>(turn) + rank();
    MPI_Put(&out[turn], 1, MPI_INT64_T, lasting.right(), lasting.index(lasting.right(), turn), 1,
            MPI_INT64_T, lasting.win);
    Array<Word> brief(4, 0, kinds.begin()[turn % 4]);
    exercise(brief, static_cast<Word>(turn));
    if (turn % 2 == 0) exercise_passively(brief, 2, 5);
  }
  MPI_Win_unlock_all(lasting.win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t turn = 0; turn < turns; ++turn)
    CHECK(own(lasting, turn) == 10 * static_cast<Word>(turn) + lasting.left());
}

TEST_CASE("Many windows one after the other") {
  const long count = setting("OVERLAP_TEST_WINDOWS", size() == 2 ? 200 : 50);
  for (long i = 0; i < count; ++i) {
    Array<Word> window(1, 0, i % 2 == 0 ? Kind::create : Kind::allocate);
    exercise(window, i);
  }
}

TEST_CASE("Two windows over the same memory") {
  std::vector<Word> memory(2, -1);
  MPI_Win first = MPI_WIN_NULL, second = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), 16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &first);
  MPI_Win_create(memory.data(), 16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &second);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  const Word mine = rank(), other = 50 + rank();
  MPI_Win_fence(0, first);
  MPI_Win_fence(0, second);
  MPI_Put(&mine, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, first);
  MPI_Put(&other, 1, MPI_INT64_T, right, 1, 1, MPI_INT64_T, second);
  MPI_Win_fence(0, second);
  MPI_Win_fence(0, first);
  CHECK(memory[0] == left);
  CHECK(memory[1] == 50 + left);
  MPI_Win_free(&first);
  MPI_Win_free(&second);
}

TEST_CASE("Dynamic window: data of several attached ranges, at every rank alike", "[stricter]") {
  MPI_Win win = MPI_WIN_NULL;
  std::vector<Word> first(4, 1), between(4, 1), second(4, 1);
  const std::vector<Word> data{7, 8};
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, first.data(), sizeof(Word) * 4);
  MPI_Win_attach(win, second.data(), sizeof(Word) * 4);
  MPI_Aint places[2];
  MPI_Get_address(first.data(), &places[0]);
  MPI_Get_address(second.data(), &places[1]);
  std::vector<MPI_Aint> all(2 * static_cast<std::size_t>(size()));
  MPI_Allgather(places, 2, MPI_AINT, all.data(), 2, MPI_AINT, MPI_COMM_WORLD);
  const int last = size() - 1;
  for (int to = 0; rank() == last && to < size(); ++to) {
    const int ones[2] = {1, 1};
    MPI_Datatype both;
    MPI_Type_create_hindexed(2, ones, &all[2 * static_cast<std::size_t>(to)], MPI_INT64_T, &both);
    MPI_Type_commit(&both);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    CHECK(MPI_Put(data.data(), 2, MPI_INT64_T, to, 0, 1, both, win) == MPI_SUCCESS);
    MPI_Win_unlock(to, win);
    MPI_Type_free(&both);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK((first[0] == 7 && second[0] == 8));
  CHECK(between == std::vector<Word>(4, 1));
  MPI_Win_detach(win, first.data());
  MPI_Win_detach(win, second.data());
  MPI_Win_free(&win);
}

TEST_CASE("Memory of MPI_Alloc_mem in a created window") {
  Word* memory = nullptr;
  MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory, 1 << 20, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  const std::vector<Word> mine(1 << 16, rank() + 3);
  MPI_Win_fence(0, win);
  MPI_Put(mine.data(), 1 << 16, MPI_INT64_T, right, 1 << 16, 1 << 16, MPI_INT64_T, win);
  MPI_Win_fence(0, win);
  CHECK(std::count(memory + (1 << 16), memory + (1 << 17), left + 3) == 1 << 16);
  MPI_Win_free(&win);
  MPI_Free_mem(memory);
}

namespace {

void on_communicator(MPI_Comm comm) {
  for (const Kind kind : kinds) {
    CAPTURE(name_of(kind));
    Array<Word> window(3, -1, kind, comm);
    exercise(window, 20);
    MPI_Barrier(comm);
    exercise_passively(window, 1, 5 + window.me);
    MPI_Barrier(comm);
    CHECK(own(window, 1) == 5 + window.left());
  }
}

}  // namespace

TEST_CASE("Window of a part of the processes, while the others have theirs") {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &part);
  Array<Word> everybody(2, -1);
  MPI_Win_lock_all(0, everybody.win);
  on_communicator(part);
  MPI_Win_unlock_all(everybody.win);
  MPI_Comm_free(&part);
}

TEST_CASE("Window of processes in another order") {
  MPI_Comm backwards = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &backwards);
  on_communicator(backwards);
  MPI_Comm_free(&backwards);
}

TEST_CASE("Window of one process alone") { on_communicator(MPI_COMM_SELF); }

TEST_CASE("Window of the two sides of an intercommunicator") {
  if (size() < 2) return;
  MPI_Comm side = MPI_COMM_NULL, between = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  const int mine = rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, mine, rank(), &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - mine, 4, &between);
  MPI_Intercomm_merge(between, 1 - mine, &merged);  // the odd ones come first
  on_communicator(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&side);
}

TEST_CASE("A window outlives its communicator") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared}) {
    CAPTURE(name_of(kind));
    MPI_Comm brief = MPI_COMM_NULL, after = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &brief);
    Word memory[1] = {-1}, *at = memory;
    MPI_Win win = MPI_WIN_NULL;
    if (kind == Kind::create) MPI_Win_create(memory, 8, 8, MPI_INFO_NULL, brief, &win);
    if (kind == Kind::allocate) MPI_Win_allocate(8, 8, MPI_INFO_NULL, brief, &at, &win);
    if (kind == Kind::shared) MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, brief, &at, &win);
    MPI_Comm_free(&brief);
    MPI_Comm_dup(MPI_COMM_WORLD, &after);  // may get the same number
    const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
    const Word mine = 30 + rank();
    Word in = -1;
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, win);
    MPI_Sendrecv(&mine, 1, MPI_INT64_T, right, 0, &in, 1, MPI_INT64_T, left, 0, after,
                 MPI_STATUS_IGNORE);
    MPI_Win_fence(0, win);
    CHECK(*at == 30 + left);
    CHECK(in == 30 + left);
    MPI_Win_free(&win);
    MPI_Comm_free(&after);
  }
}

TEST_CASE("Window: its memory is freed before the window is") {
  constexpr std::size_t bytes = std::size_t{4} << 20;  // returned to the kernel at once
  void* const memory = std::malloc(bytes);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const int right = (rank() + 1) % size();
  Bytes data(5000, 3);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
  MPI_Put(data.data(), 5000, MPI_BYTE, right, 0, 5000, MPI_BYTE, win);
  MPI_Win_unlock(right, win);
  MPI_Barrier(MPI_COMM_WORLD);
  std::free(memory);
  CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
}
