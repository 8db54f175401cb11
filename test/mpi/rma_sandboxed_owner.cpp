// A sandbox forbids the owner of a window's memory the kernel's copies, not those who access it:
// what it would fetch comes in another way.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "sandbox.hpp"
#include "scene.hpp"

#include <numeric>
#include <vector>

using namespace overlap::test;

// It cannot be undone.
TEST_CASE("An owner that cannot fetch blocks is asked for a few at a time") {
#if !defined(__x86_64__)
  WARN("only x86-64 says how to count refused system calls");
#else
  if (size() != 2) return;
  constexpr int origin = 0, owner = 1, rounds = 20;
  constexpr std::size_t rows = 2000, width = 8;
  if (rank() == owner && !count_refusals()) {
    WARN("this system knows no filters");
    return;
  }
  Array<Word> window(rows * width, 0);
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 2, width, MPI_INT64_T, &column);
  MPI_Type_commit(&column);
  std::vector<Word> values(2 * rows);
  std::iota(values.begin(), values.end(), 1);
  // An owner that has no processor fetches nothing.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int times = 0, goes_on = 1;
  while (goes_on != 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == origin) {
      MPI_Win_lock_all(0, window.win);
      for (int i = 0; i < rounds; ++i) {
        MPI_Accumulate(values.data(), 2 * rows, MPI_INT64_T, owner, window.index(owner, 0), 1,
                       column, MPI_SUM, window.win);
        MPI_Win_flush(owner, window.win);
      }
      MPI_Win_unlock_all(window.win);
    }
    times += rounds;
    goes_on = refused == 0 && std::chrono::steady_clock::now() < end ? 1 : 0;
    MPI_Bcast(&goes_on, 1, MPI_INT, owner, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == owner) {
    CHECK(refused > 0);
    CHECK(refused <= times + 2);  // once each, and what a BTL asks
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < rows * width; ++i) {
      const std::size_t row = i / width, place = i % width;
      const Word wanted = place < 2 ? times * static_cast<Word>(2 * row + place + 1) : 0;
      wrong += own(window, i) != wanted ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
  MPI_Type_free(&column);
#endif
}
