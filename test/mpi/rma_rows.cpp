// Rows of small puts and accumulates that share messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

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

namespace {

enum class Epoch : std::uint8_t { lock_all, fence, post_and_start };

void begin(const Window& window, Epoch epoch, MPI_Group left, MPI_Group right) {
  if (epoch == Epoch::lock_all) MPI_Win_lock_all(0, window.win);
  if (epoch == Epoch::fence) MPI_Win_fence(0, window.win);
  if (epoch != Epoch::post_and_start) return;
  MPI_Win_post(left, 0, window.win);
  MPI_Win_start(right, 0, window.win);
}

void end(const Window& window, Epoch epoch) {
  if (epoch == Epoch::lock_all) MPI_Win_unlock_all(window.win);
  if (epoch == Epoch::fence) MPI_Win_fence(0, window.win);
  if (epoch != Epoch::post_and_start) return;
  MPI_Win_complete(window.win);
  MPI_Win_wait(window.win);
}

MPI_Group only(int rank) {
  MPI_Group all = MPI_GROUP_NULL, one = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &rank, &one);
  MPI_Group_free(&all);
  return one;
}

}  // namespace

TEST_CASE("rows begin behind other operations and end before them") {
  const auto epoch = GENERATE(Epoch::lock_all, Epoch::fence, Epoch::post_and_start);
  const Kind kind = GENERATE(Kind::create, Kind::dynamic);
  CAPTURE(static_cast<int>(epoch), name_of(kind));
  constexpr std::size_t row = 20, rounds = 50;  // puts of a row, behind words with gaps
  constexpr std::size_t words = 2 * row + row;
  Array<Word> window(rounds * words, 0, kind);
  MPI_Group left = only(window.left()), right = only(window.right());
  MPI_Datatype spread = MPI_DATATYPE_NULL;
  MPI_Type_vector(row, 1, 2, MPI_INT64_T, &spread);
  MPI_Type_commit(&spread);
  const int to = window.right();
  std::vector<Word> values(rounds * row), got(rounds, -1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Word>(i) + 1;
  begin(window, epoch, left, right);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t first = round * words;
    const Word* const value = &values[round * row];
    MPI_Put(value, row, MPI_INT64_T, to, window.index(to, first), 1, spread, window.win);
    for (std::size_t i = 0; i < row; ++i) put(window, value[i], to, first + 2 * row + i);
    for (std::size_t i = 0; i < row; ++i) add(window, value[i], to, first + 2 * i + 1);
    if (epoch == Epoch::lock_all && round % 3 == 0) MPI_Win_flush(to, window.win);
    MPI_Fetch_and_op(value, &got[round], MPI_INT64_T, to, window.index(to, first + 1), MPI_SUM,
                     window.win);
  }
  end(window, epoch);
  MPI_Barrier(MPI_COMM_WORLD);
  int wrong = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const Word* const value = &values[round * row];
    wrong += got[round] != value[0] ? 1 : 0;
    window.locally([&] {
      const Word* const there = window.data() + round * words;
      for (std::size_t i = 0; i < row; ++i) {
        wrong += there[2 * i] != value[i] || there[2 * row + i] != value[i] ? 1 : 0;
        wrong += there[2 * i + 1] != (i == 0 ? 2 : 1) * value[i] ? 1 : 0;
      }
    });
  }
  CHECK(wrong == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&spread);
  MPI_Group_free(&left);
  MPI_Group_free(&right);
}
