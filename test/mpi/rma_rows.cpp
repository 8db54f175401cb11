// Rows of small puts and accumulates that share messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <random>

using namespace overlap::test;

namespace {

/// What one rank does to its neighbour, rows of small writes of one kind, and what they leave.
struct Rows {
  static constexpr std::size_t writes = 3000, places = 16;
  std::array<std::int32_t, places> sums{}, most{};
  std::array<double, places> doubles{};
  std::array<std::array<char, 3>, writes> letters{};

  /// @param apply  called with (kind of write, number of it, place, value)
  template <class Apply>
  static void for_each(int rank, Apply&& apply) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    for (std::size_t i = 0; i < writes;) {
      const unsigned kind = random() % 4;
      for (std::size_t left = 1 + random() % 60; left > 0 && i < writes; --left, ++i)
        apply(kind, i, random() % places, static_cast<std::int32_t>(random() % 100));
    }
  }
  void write(unsigned kind, std::size_t i, std::size_t place, std::int32_t value) {
    switch (kind) {
      case 0: sums[place] += value; break;
      case 1: most[place] = std::max(most[place], value); break;
      case 2: doubles[place] += value; break;
      default: letters[i] = {static_cast<char>(value), 'x', static_cast<char>(place)};
    }
  }
  static void send(const Window& window, int to, unsigned kind, std::size_t i, std::size_t place,
                   std::int32_t value) {
    const auto at = [&](std::size_t offset) { return window.at(to, offset); };
    const double wide = value;
    const std::array<char, 3> letter = {static_cast<char>(value), 'x', static_cast<char>(place)};
    switch (kind) {
      case 0:
        MPI_Accumulate(&value, 1, MPI_INT32_T, to, at(offsetof(Rows, sums) + 4 * place), 1,
                       MPI_INT32_T, MPI_SUM, window.win);
        break;
      case 1:
        MPI_Accumulate(&value, 1, MPI_INT32_T, to, at(offsetof(Rows, most) + 4 * place), 1,
                       MPI_INT32_T, MPI_MAX, window.win);
        break;
      case 2:
        MPI_Accumulate(&wide, 1, MPI_DOUBLE, to, at(offsetof(Rows, doubles) + 8 * place), 1,
                       MPI_DOUBLE, MPI_SUM, window.win);
        break;
      default:
        MPI_Put(letter.data(), 3, MPI_CHAR, to, at(offsetof(Rows, letters) + 3 * i), 3, MPI_CHAR,
                window.win);
    }
  }
};

}  // namespace

TEST_CASE("rows of small puts and accumulates, of several kinds") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic}) {
    CAPTURE(name_of(kind));
    Window window(sizeof(Rows), kind);
    window.locally([&] { std::memset(window.memory, 0, sizeof(Rows)); });
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    Rows::for_each(rank(), [&](auto... write) { Rows::send(window, window.right(), write...); });
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    Rows expected;
    Rows::for_each(window.left(), [&](auto... write) { expected.write(write...); });
    window.locally([&] {
      const auto& there = *reinterpret_cast<const Rows*>(window.memory);
      CHECK((there.sums == expected.sums));
      CHECK((there.most == expected.most));
      CHECK((there.doubles == expected.doubles));
      CHECK((there.letters == expected.letters));
    });
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
