// One-sided calls: puts, gets and atomic operations as osc/rdma makes them of a BTL's. Right on
// every BTL.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

TEST_CASE("puts and gets of many sizes arrive whole under fence") {
  constexpr std::size_t largest = 300001;
  Bytes memory(largest), other(largest);
  MPI_Win window;
  MPI_Win_create(memory.data(), largest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  std::uint64_t seed = 1;
  for (std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{63}, std::size_t{4096},
                            std::size_t{65537}, largest}) {
    const auto value = [&](int of) { return seed * 1000 + static_cast<std::uint64_t>(of); };
    fill(other.data(), bytes, value(rank()));
    MPI_Win_fence(0, window);
    MPI_Put(other.data(), static_cast<int>(bytes), MPI_BYTE, right, 0, static_cast<int>(bytes),
            MPI_BYTE, window);
    MPI_Win_fence(0, window);
    REQUIRE(first_wrong(memory.data(), bytes, value(left)) == bytes);
    MPI_Win_fence(0, window);
    MPI_Get(other.data(), static_cast<int>(bytes), MPI_BYTE, right, 0, static_cast<int>(bytes),
            MPI_BYTE, window);
    MPI_Win_fence(0, window);
    REQUIRE(first_wrong(other.data(), bytes, value(rank())) == bytes);  // what we had put there
    ++seed;
  }
  MPI_Win_free(&window);
}

namespace {

/// Every rank adds to two words of rank 0, by fetch-and-add and by compare-and-swap; the value that
/// is handed out is nobody else's.
void add_up(MPI_Win window, long long* word) {
  constexpr int times = 200;
  word[0] = word[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  const long long one = 1;
  std::vector<bool> seen(static_cast<std::size_t>(times) * size());
  for (int i = 0; i < times; ++i) {
    long long before = -1;
    MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    REQUIRE(before >= 0);
    REQUIRE(before < static_cast<long long>(seen.size()));
    REQUIRE_FALSE(
        seen[static_cast<std::size_t>(before)]);  // each value is handed out once; here to us
    seen[static_cast<std::size_t>(before)] = true;
    for (bool swapped = false; !swapped;) {
      long long expected = 0, got = -1;
      MPI_Fetch_and_op(&one, &expected, MPI_LONG_LONG, 0, 1, MPI_NO_OP, window);
      MPI_Win_flush(0, window);
      const long long wanted = expected + 1;
      MPI_Compare_and_swap(&wanted, &expected, &got, MPI_LONG_LONG, 0, 1, window);
      MPI_Win_flush(0, window);
      swapped = got == expected;
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    CHECK(word[0] == static_cast<long long>(times) * size());
    CHECK(word[1] == static_cast<long long>(times) * size());
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

TEST_CASE("atomic operations of all ranks on one word add up") {
  MPI_Win window;
  SECTION("memory that the library has allocated: a node's processes share it") {
    long long* word = nullptr;
    MPI_Win_allocate(2 * sizeof(long long), sizeof(long long), MPI_INFO_NULL, MPI_COMM_WORLD, &word,
                     &window);
    add_up(window, word);
    MPI_Win_free(&window);
  }
  SECTION("the program's own memory: through the BTL") {
    alignas(64) long long word[2];
    MPI_Win_create(word, sizeof word, sizeof(long long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    add_up(window, word);
    MPI_Win_free(&window);
  }
}

namespace {

using Word = std::int64_t;

/// One operation on one word: what MPI_Accumulate and its relatives make of `before` and `operand`.
struct Operation {
  const char* name;
  MPI_Op op;
  Word before;
  Word operand;
  Word after;
};

std::vector<Operation> every_operation() {
  return {{"max", MPI_MAX, -5, 7, 7},          {"min", MPI_MIN, 9, -2, -2},
          {"sum", MPI_SUM, 40, 2, 42},         {"product", MPI_PROD, 6, -7, -42},
          {"replace", MPI_REPLACE, 3, 11, 11}, {"band", MPI_BAND, 12, 10, 8},
          {"bor", MPI_BOR, 12, 10, 14},        {"bxor", MPI_BXOR, 12, 10, 6},
          {"land", MPI_LAND, 1, 0, 0},         {"lor", MPI_LOR, 0, 4, 1},
          {"lxor", MPI_LXOR, 1, 1, 0}};
}

/// A window of words of this process, which its left neighbour alone works on.
template <class Type>
struct Words {
  Words() : memory(4) {
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(Type)), sizeof(Type),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  ~Words() { MPI_Win_free(&window); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  /// What the right neighbour's word holds.
  Type read(int target, MPI_Aint index) const {
    Type value{};
    const MPI_Datatype type = sizeof(Type) == 8 ? MPI_INT64_T : MPI_INT32_T;
    MPI_Get(&value, 1, type, target, index, 1, type, window);
    MPI_Win_flush(target, window);
    return value;
  }

  std::vector<Type> memory;
  MPI_Win window{};
};

/// Every operation by every call that makes one, on words of `Type` of the right neighbour.
template <class Type>
void apply_every_operation(MPI_Datatype type) {
  Words<Type> words;
  const int right = (rank() + 1) % size();
  MPI_Win_lock_all(0, words.window);
  for (const Operation& each : every_operation()) {
    for (MPI_Aint index : {MPI_Aint{0}, MPI_Aint{3}}) {
      CAPTURE(each.name, index, sizeof(Type));
      const auto before = static_cast<Type>(each.before), operand = static_cast<Type>(each.operand),
                 after = static_cast<Type>(each.after);
      const auto reset = [&] {
        MPI_Put(&before, 1, type, right, index, 1, type, words.window);
        MPI_Win_flush(right, words.window);
      };
      reset();
      MPI_Accumulate(&operand, 1, type, right, index, 1, type, each.op, words.window);
      MPI_Win_flush(right, words.window);
      CHECK(words.read(right, index) == after);

      reset();
      Type got{};
      MPI_Fetch_and_op(&operand, &got, type, right, index, each.op, words.window);
      MPI_Win_flush(right, words.window);
      CHECK(got == before);
      CHECK(words.read(right, index) == after);

      reset();
      got = Type{};
      MPI_Get_accumulate(&operand, 1, type, &got, 1, type, right, index, 1, type, each.op,
                         words.window);
      MPI_Win_flush(right, words.window);
      CHECK(got == before);
      CHECK(words.read(right, index) == after);
    }
  }
  const Type zero{}, one{1}, two{2};
  MPI_Put(&one, 1, type, right, 1, 1, type, words.window);
  MPI_Win_flush(right, words.window);
  Type got{};
  MPI_Compare_and_swap(&two, &zero, &got, type, right, 1, words.window);
  MPI_Win_flush(right, words.window);
  CHECK(got == one);
  CHECK(words.read(right, 1) == one);
  MPI_Compare_and_swap(&two, &one, &got, type, right, 1, words.window);
  MPI_Win_flush(right, words.window);
  CHECK(got == one);
  CHECK(words.read(right, 1) == two);
  MPI_Win_unlock_all(words.window);
}

}  // namespace

// Adapters add and swap words of eight bytes; everything else has to be done by other means.
TEST_CASE("every operation on one word, also those that no adapter has") {
  SECTION("eight bytes") { apply_every_operation<std::int64_t>(MPI_INT64_T); }
  SECTION("four bytes, every second one not aligned to eight") {
    apply_every_operation<std::int32_t>(MPI_INT32_T);
  }
}

TEST_CASE("all ranks at once put the largest of their values into one word") {
  Words<Word> words;
  words.memory[0] = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, words.window);
  for (int i = 0; i < 20; ++i) {
    const Word mine = 100 * i + rank();
    MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_MAX, words.window);
    MPI_Win_flush(0, words.window);
    CHECK(words.read(0, 0) >= mine);
  }
  MPI_Win_unlock_all(words.window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, words.window);
    CHECK(words.memory[0] == 100 * 19 + size() - 1);
    MPI_Win_unlock(0, words.window);
  }
}
