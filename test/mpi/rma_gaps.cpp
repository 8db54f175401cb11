// Blocks with gaps between them on memory that the program has allocated: their owner is asked for
// them, fetches them, or the kernel copies.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <algorithm>
#include <vector>

using namespace overlap::test;

TEST_CASE("blocks of every length, and gaps at one side only") {
  if (size() < 2) return;
  constexpr int words = 4000;
  Array<char> window(words);
  std::fill_n(window.data(), words, char{0});
  int lengths[] = {1, 7, 1700, 3, 64, 65}, places[] = {0, 3, 20, 1800, 1900, 2100};
  MPI_Datatype blocks = MPI_DATATYPE_NULL, bytes = MPI_DATATYPE_NULL;
  MPI_Type_indexed(6, lengths, places, MPI_CHAR, &blocks);
  MPI_Type_vector(900, 1, 2, MPI_CHAR, &bytes);
  MPI_Type_commit(&blocks);
  MPI_Type_commit(&bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 1; rank() == 0 && round <= 20; ++round) {
    CAPTURE(round);
    std::vector<char> out(words), in(words);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<char>(static_cast<int>(i) * 7 + round);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    MPI_Put(out.data(), 1, blocks, 1, window.index(1, 0), 1, blocks, window.win);
    MPI_Put(out.data(), 900, MPI_CHAR, 1, window.index(1, 2200), 1, bytes, window.win);
    MPI_Win_flush(1, window.win);
    MPI_Get(in.data(), 1, blocks, 1, window.index(1, 0), 1, blocks, window.win);
    MPI_Get(in.data() + 2200, 1, bytes, 1, window.index(1, 2200), 1, bytes, window.win);
    MPI_Win_unlock(1, window.win);
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(std::equal(&in[static_cast<std::size_t>(places[i])],
                       &in[static_cast<std::size_t>(places[i] + lengths[i])],
                       &out[static_cast<std::size_t>(places[i])]));
    int wrong = 0;
    for (std::size_t i = 0; i < 900; ++i) wrong += in[2200 + 2 * i] != out[i] ? 1 : 0;
    CHECK(wrong == 0);
    if (round % 3 == 0) compute(microseconds(100));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&bytes);
  MPI_Type_free(&blocks);
}

TEST_CASE("a column of a matrix reaches a target that comes and goes") {
  if (size() < 2) return;
  constexpr int rows = 3000, width = 8;
  Array<long> window(rows * width);
  std::fill_n(window.data(), rows * width, 0L);
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 2, width, MPI_LONG, &column);
  MPI_Type_commit(&column);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long round = 1; round <= 5; ++round) {
    if (rank() == 0) {
      std::vector<long> values(2 * rows);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = round * static_cast<long>(i);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
      MPI_Put(values.data(), 2 * rows, MPI_LONG, 1, window.index(1, 0), 1, column, window.win);
      MPI_Win_flush(1, window.win);
      MPI_Accumulate(values.data(), 2 * rows, MPI_LONG, 1, window.index(1, 0), 1, column, MPI_SUM,
                     window.win);
      MPI_Win_unlock(1, window.win);
    } else if (rank() == 1) {
      compute(microseconds(200 * static_cast<int>(round)));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1) {
      int wrong = 0;
      for (std::size_t i = 0; i < rows * width; ++i) {
        const std::size_t row = i / width, place = i % width;
        const long wanted = place < 2 ? 2 * round * static_cast<long>(2 * row + place) : 0;
        if (own(window, i) != wanted) ++wrong;
      }
      CHECK(wrong == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Type_free(&column);
}

namespace {

/// Rows of a matrix that is wider than they are.
struct Rows {
  static constexpr int count = 4, length = 2500, width = 2502;
  static constexpr int words = count * length, memory_words = count * width;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  Rows() {
    MPI_Datatype row = MPI_DATATYPE_NULL;
    MPI_Type_create_hvector(length, 1, sizeof(long), MPI_LONG, &row);
    MPI_Type_create_resized(row, 0, width * static_cast<MPI_Aint>(sizeof(long)), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&row);
  }
  ~Rows() { MPI_Type_free(&type); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  /// @returns  words that are not factor * their place among the data; gaps have to be -1
  static int wrong(const std::vector<long>& memory, long factor) {
    int count = 0;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::size_t row = i / width, place = i % width;
      const long wanted = place < length ? factor * static_cast<long>(row * length + place) : -1;
      count += memory[i] != wanted ? 1 : 0;
    }
    return count;
  }
};

}  // namespace

TEST_CASE("rows of more than 64 KiB, with a gap behind each") {
  const bool allocates = GENERATE(true, false);
  const int target = GENERATE(0, 1);  // itself, and another one
  if (target >= size()) return;
  INFO("allocated by MPI " << allocates << ", target " << target);
  const Rows rows;
  std::vector<long> created(Rows::memory_words, -1);
  long* memory = created.data();
  MPI_Win win = MPI_WIN_NULL;
  constexpr MPI_Aint bytes = Rows::memory_words * sizeof(long);
  if (allocates)
    MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  else
    MPI_Win_create(memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  std::fill_n(memory, Rows::memory_words, -1L);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    std::vector<long> line(Rows::words), got(Rows::words, -1), matrix(Rows::memory_words, -1);
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<long>(i);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Put(line.data(), Rows::words, MPI_LONG, target, 0, Rows::count, rows.type, win);
    MPI_Win_flush(target, win);
    MPI_Get(got.data(), Rows::words, MPI_LONG, target, 0, Rows::count, rows.type, win);
    MPI_Get(matrix.data(), Rows::count, rows.type, target, 0, Rows::count, rows.type, win);
    MPI_Win_flush(target, win);
    CHECK((got == line));
    CHECK(Rows::wrong(matrix, 1) == 0);
    MPI_Accumulate(line.data(), Rows::words, MPI_LONG, target, 0, Rows::count, rows.type, MPI_SUM,
                   win);
    MPI_Accumulate(matrix.data(), Rows::count, rows.type, target, 0, Rows::count, rows.type,
                   MPI_SUM, win);
    std::vector<long> fetched(Rows::memory_words, -1);
    MPI_Get_accumulate(matrix.data(), Rows::count, rows.type, fetched.data(), Rows::count,
                       rows.type, target, 0, Rows::count, rows.type, MPI_REPLACE, win);
    MPI_Win_flush(target, win);
    CHECK(Rows::wrong(fetched, 3) == 0);
    MPI_Get(fetched.data(), Rows::count, rows.type, target, 0, Rows::count, rows.type, win);
    MPI_Win_unlock(target, win);
    CHECK(Rows::wrong(fetched, 1) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
}

namespace {

template <class Value>
struct Located {
  Value value;
  int index;
  bool operator==(const Located&) const = default;
};

/// Every second element of the target's memory becomes the smaller one, its old ones come back.
template <class Value>
void check_smallest(MPI_Datatype pair, Kind kind, int target) {
  using Each = Located<Value>;
  constexpr std::size_t count = 6000;  // of eight bytes more than 64 KiB with what is between them
  constexpr Each old{10, 7};
  Array<Each> window(2 * count, old, kind);
  MPI_Datatype every_second = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, 1, 2, pair, &every_second);
  MPI_Type_commit(&every_second);
  const auto offered = [](std::size_t i) {
    return Each{static_cast<Value>(i % 3 == 0 ? 5 : 20), static_cast<int>(i)};
  };
  if (rank() == 0) {
    std::vector<Each> line(count), got(count), spread(2 * count);
    for (std::size_t i = 0; i < count; ++i) spread[2 * i] = line[i] = offered(i);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    MPI_Accumulate(line.data(), count, pair, target, window.index(target, 0), 1, every_second,
                   MPI_MINLOC, window.win);
    MPI_Get_accumulate(spread.data(), 1, every_second, got.data(), count, pair, target,
                       window.index(target, 0), 1, every_second, MPI_MAXLOC, window.win);
    MPI_Win_unlock(target, window.win);
    int wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += got[i] != (i % 3 == 0 ? offered(i) : old);
    CHECK(wrong == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target) {
    int wrong = 0;
    window.locally([&] {
      for (std::size_t i = 0; i < count; ++i)
        wrong += window[2 * i] != offered(i) || window[2 * i + 1] != old;
    });
    CHECK(wrong == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&every_second);
}

}  // namespace

TEST_CASE("pairs with gaps in them and between them") {
  const Kind kind = GENERATE(Kind::allocate, Kind::create);
  const int target = GENERATE(0, 1);  // itself, and another one
  if (target >= size()) return;
  INFO("kind " << static_cast<int>(kind) << ", target " << target);
  check_smallest<short>(MPI_SHORT_INT, kind, target);
  check_smallest<int>(MPI_2INT, kind, target);
  check_smallest<double>(MPI_DOUBLE_INT, kind, target);
  check_smallest<long double>(MPI_LONG_DOUBLE_INT, kind, target);
}

namespace {

/// A byte and a word, with gaps that each side has its own of.
MPI_Datatype record(MPI_Aint word_at_bytes, MPI_Aint extent_bytes) {
  int lengths[] = {1, 1};
  MPI_Aint places[] = {0, word_at_bytes};
  MPI_Datatype types[] = {MPI_CHAR, MPI_LONG}, members = MPI_DATATYPE_NULL,
               made = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, places, types, &members);
  MPI_Type_create_resized(members, 0, extent_bytes, &made);
  MPI_Type_commit(&made);
  MPI_Type_free(&members);
  return made;
}

}  // namespace

TEST_CASE("records with gaps at both sides, and not the same") {
  const Kind kind = GENERATE(Kind::allocate, Kind::create);
  const int target = GENERATE(0, 1);  // itself, and another one
  if (target >= size()) return;
  INFO("kind " << static_cast<int>(kind) << ", target " << target);
  constexpr std::size_t count = 9000, there_bytes = 24, here_bytes = 40;
  Array<unsigned char> window(count * there_bytes, 0xEE, kind);
  MPI_Datatype there = record(8, there_bytes), here = record(24, here_bytes);
  if (rank() == 0) {
    const Bytes sent = pattern(count * here_bytes, 1);
    Bytes got = empty(count * here_bytes);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    MPI_Put(sent.data(), count, here, target, window.index(target, 0), count, there, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got.data(), count, here, target, window.index(target, 0), count, there, window.win);
    MPI_Win_unlock(target, window.win);
    int wrong = 0;
    for (std::size_t i = 0; i < count * here_bytes; ++i) {
      const std::size_t at = i % here_bytes;
      const bool is_data = at == 0 || (at >= 24 && at < 32);
      wrong += got[i] != (is_data ? sent[i] : 0xEE) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target) {
    const Bytes sent = pattern(count * here_bytes, 1);
    int wrong = 0;
    window.locally([&] {
      for (std::size_t i = 0; i < count * there_bytes; ++i) {
        const std::size_t at = i % there_bytes, of_record = i / there_bytes * here_bytes;
        const bool is_word = at >= 8 && at < 16;
        const unsigned char wanted = at == 0   ? sent[of_record]
                                     : is_word ? sent[of_record + 24 + (at - 8)]
                                               : 0xEE;
        wrong += window[i] != wanted ? 1 : 0;
      }
    });
    CHECK(wrong == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&there);
  MPI_Type_free(&here);
}
