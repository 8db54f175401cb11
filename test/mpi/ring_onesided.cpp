// One-sided calls: puts, gets and atomic operations as osc/rdma makes them of a BTL's. Right on every BTL.
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

/// Every rank adds to two words of rank 0, by fetch-and-add and by compare-and-swap; the value that is handed out is nobody else's.
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
