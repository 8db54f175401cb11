// Field: one-sided communication: derived datatypes at both sides. What must arrive is computed
// with MPI_Pack and MPI_Unpack, which move nothing between processes.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <array>
#include <functional>
#include <memory>

using namespace overlap::test;

namespace {

/// A datatype that is freed with its last owner.
class Type {
 public:
  explicit Type(MPI_Datatype type) : type_(type) { MPI_Type_commit(&type_); }
  ~Type() { MPI_Type_free(&type_); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_;
};

/// `count` elements of `type` have the same signature as every other layout of the list.
struct Layout {
  const char* name;
  std::shared_ptr<Type> type;
  int count;
};

Layout layout(const char* name, MPI_Datatype type, int count = 1) {
  return {name, std::make_shared<Type>(type), count};
}

MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent) {
  MPI_Datatype result = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(type, lower, extent, &result);
  return result;
}

/// Layouts of 24 ints.
std::vector<Layout> layouts_of_ints() {
  std::vector<Layout> all;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  all.push_back({"24 MPI_INT", nullptr, 24});
  MPI_Type_contiguous(12, MPI_INT, &type);
  all.push_back(layout("contiguous, two of them", type, 2));
  MPI_Type_vector(6, 4, 7, MPI_INT, &type);
  all.push_back(layout("vector", type));
  MPI_Type_vector(4, 1, 3, MPI_INT, &type);
  all.push_back(layout("vector of single elements, six of them", type, 6));
  MPI_Type_create_hvector(8, 3, 25, MPI_INT, &type);
  all.push_back(layout("hvector, not aligned", type));
  const int lengths[] = {5, 1, 0, 10, 8}, at[] = {40, 3, 30, 10, 25};
  MPI_Type_indexed(5, lengths, at, MPI_INT, &type);
  all.push_back(layout("indexed, not in the order of addresses", type));
  const int blocks[] = {9, 0, 3, 6};
  MPI_Type_create_indexed_block(4, 3, blocks, MPI_INT, &type);
  all.push_back(layout("indexed_block, two of them", type, 2));
  const int back_lengths[] = {12, 12};
  const MPI_Aint back[] = {0, -100};
  MPI_Type_create_hindexed(2, back_lengths, back, MPI_INT, &type);
  all.push_back(layout("hindexed, negative displacement", type));
  const MPI_Aint far[] = {-64, 200, 72};
  MPI_Type_create_hindexed_block(3, 8, far, MPI_INT, &type);
  all.push_back(layout("hindexed_block", type));
  const int sizes[] = {5, 6, 7}, part[] = {2, 3, 4}, start[] = {2, 1, 3};
  MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_INT, &type);
  all.push_back(layout("subarray", type));
  MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_FORTRAN, MPI_INT, &type);
  all.push_back(layout("subarray, Fortran's order", type));
  all.push_back(layout("resized, negative lower bound, 24 of them", resized(MPI_INT, -8, 20), 24));
  all.push_back(layout("resized, elements overtake each other", resized(MPI_INT, 4, -12), 24));
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Type_vector(3, 1, 2, MPI_INT, &row);
  const MPI_Aint row_at[] = {8, 120, 60};
  const MPI_Datatype row_types[] = {row, row, MPI_INT};
  MPI_Datatype mixed = MPI_DATATYPE_NULL;
  const int two[] = {2, 1, 3};
  MPI_Type_create_struct(3, two, row_at, row_types, &mixed);
  MPI_Type_free(&row);
  all.push_back(layout("struct of vectors, two of them", resized(mixed, 0, 160), 2));
  MPI_Type_free(&mixed);
  MPI_Type_vector(6, 4, 7, MPI_INT, &row);
  MPI_Type_dup(row, &type);
  MPI_Type_free(&row);
  all.push_back(layout("duplicate", type));
  return all;
}

/// Layouts of (int, double, char) repeated four times.
std::vector<Layout> layouts_of_records() {
  std::vector<Layout> all;
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  const int ones[] = {1, 1, 1};
  const auto add = [&](const char* name, std::array<MPI_Aint, 3> at, MPI_Aint lower,
                       MPI_Aint extent) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(3, ones, at.data(), types, &type);
    all.push_back(layout(name, resized(type, lower, extent), 4));
    MPI_Type_free(&type);
  };
  add("struct as C lays it out", {0, 8, 16}, 0, 24);
  add("struct packed", {0, 4, 12}, 0, 13);
  add("struct backwards", {16, 8, 0}, 0, 24);
  add("struct, negative lower bound", {-16, 0, 9}, -24, 40);
  return all;
}

MPI_Datatype plain(const Layout& each) { return each.type ? *each.type : MPI_INT; }

constexpr std::size_t arena = 8192;   ///< bytes; what a layout touches lies around its middle
constexpr std::size_t middle = 4096;  ///< of the arena

/// What `to` holds after the elements `from_layout` of `from` have gone to `to_layout`.
Bytes moved(const Bytes& from, const Layout& from_layout, Bytes to, const Layout& to_layout) {
  int bytes = 0, at = 0;
  MPI_Pack_size(from_layout.count, plain(from_layout), MPI_COMM_SELF, &bytes);
  Bytes packed(static_cast<std::size_t>(bytes));
  MPI_Pack(from.data() + middle, from_layout.count, plain(from_layout), packed.data(), bytes, &at,
           MPI_COMM_SELF);
  const int used = at;
  at = 0;
  MPI_Unpack(packed.data(), used, &at, to.data() + middle, to_layout.count, plain(to_layout),
             MPI_COMM_SELF);
  return to;
}

Bytes contents(Window& window) {
  Bytes now(arena);
  window.locally([&] { std::copy_n(window.memory, arena, now.begin()); });
  return now;
}
void set(Window& window, const Bytes& bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  window.locally([&] { std::copy(bytes.begin(), bytes.end(), window.memory); });
  MPI_Barrier(MPI_COMM_WORLD);
}

/// For each pair of layouts: `act` at every rank under a lock of its right neighbour, then `check`.
using Each = std::function<void(Window&, const Layout& origin, const Layout& target)>;
void for_all_pairs(const std::vector<Layout>& layouts, Kind kind, const Each& each) {
  Window window(arena, kind);
  for (const Layout& origin : layouts) {
    for (const Layout& target : layouts) {
      CAPTURE(origin.name, target.name, name_of(kind));
      each(window, origin, target);
    }
  }
}

void put_pair(Window& window, const Layout& origin, const Layout& target) {
  const int right = window.right();
  set(window, pattern(arena, 1));
  const Bytes out = pattern(arena, 10 + static_cast<unsigned>(rank()));
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
  MPI_Put(out.data() + middle, origin.count, plain(origin), right, window.at(right, middle),
          target.count, plain(target), window.win);
  MPI_Win_unlock(right, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  const Bytes sent = pattern(arena, 10 + static_cast<unsigned>(window.left()));
  CHECK((contents(window) == moved(sent, origin, pattern(arena, 1), target)));
}

void get_pair(Window& window, const Layout& origin, const Layout& target) {
  const int right = window.right();
  set(window, pattern(arena, 20 + static_cast<unsigned>(rank())));
  Bytes in = pattern(arena, 2);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
  MPI_Rget(in.data() + middle, origin.count, plain(origin), right, window.at(right, middle),
           target.count, plain(target), window.win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_unlock(right, window.win);
  const Bytes theirs = pattern(arena, 20 + static_cast<unsigned>(right));
  CHECK((in == moved(theirs, target, pattern(arena, 2), origin)));
}

/// Ints that can be added without overflow, in every place where a layout may have one.
Bytes small_numbers(unsigned seed) {
  Bytes bytes(arena);
  std::mt19937 random(seed);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() % 64);
  return bytes;
}

/// `before` plus what `operand` holds there; a layout never has two ints in one place.
Bytes added(const Bytes& before, const Bytes& operand, const Layout& where) {
  const Layout flat{"", nullptr, 24};
  Bytes a = moved(before, where, Bytes(arena), flat), b = moved(operand, where, Bytes(arena), flat);
  for (std::size_t i = middle; i < middle + 24 * sizeof(int); i += sizeof(int)) {
    int x = 0, y = 0;
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    x += y;
    std::memcpy(&a[i], &x, sizeof x);
  }
  return moved(a, flat, before, where);
}

void accumulate_pair(Window& window, const Layout& origin, const Layout& target) {
  const int right = window.right();
  const Bytes before = small_numbers(1), out = small_numbers(30 + static_cast<unsigned>(rank()));
  set(window, before);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
  MPI_Accumulate(out.data() + middle, origin.count, plain(origin), right, window.at(right, middle),
                 target.count, plain(target), MPI_SUM, window.win);
  MPI_Win_unlock(right, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  const Bytes sent = small_numbers(30 + static_cast<unsigned>(window.left()));
  CHECK((contents(window) == added(before, moved(sent, origin, Bytes(arena), target), target)));
}

/// The result goes to a third layout.
void get_accumulate_pair(Window& window, const Layout& origin, const Layout& target) {
  static const auto* const layouts = new std::vector<Layout>(layouts_of_ints());  // until the end
  static std::size_t turn = 0;
  const Layout& result = (*layouts)[turn++ % layouts->size()];
  CAPTURE(result.name);
  const int right = window.right();
  const Bytes before = small_numbers(1), out = small_numbers(30 + static_cast<unsigned>(rank()));
  Bytes was = pattern(arena, 3);
  set(window, before);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
  MPI_Get_accumulate(out.data() + middle, origin.count, plain(origin), was.data() + middle,
                     result.count, plain(result), right, window.at(right, middle), target.count,
                     plain(target), MPI_SUM, window.win);
  MPI_Win_unlock(right, window.win);
  CHECK((was == moved(before, target, pattern(arena, 3), result)));
  MPI_Barrier(MPI_COMM_WORLD);
  const Bytes sent = small_numbers(30 + static_cast<unsigned>(window.left()));
  CHECK((contents(window) == added(before, moved(sent, origin, Bytes(arena), target), target)));
}

}  // namespace

#define FOR_EVERY_KIND(what, layouts, function)                                                   \
  TEST_CASE(what ", created window") { for_all_pairs(layouts, Kind::create, function); }          \
  TEST_CASE(what ", allocated window") { for_all_pairs(layouts, Kind::allocate, function); }      \
  TEST_CASE(what ", allocated shared window") { for_all_pairs(layouts, Kind::shared, function); } \
  TEST_CASE(what ", dynamic window") { for_all_pairs(layouts, Kind::dynamic, function); }

FOR_EVERY_KIND("Put between all layouts of ints", layouts_of_ints(), put_pair)
FOR_EVERY_KIND("Get between all layouts of ints", layouts_of_ints(), get_pair)
FOR_EVERY_KIND("Accumulate between all layouts of ints", layouts_of_ints(), accumulate_pair)
FOR_EVERY_KIND("Get_accumulate between all layouts of ints", layouts_of_ints(), get_accumulate_pair)
FOR_EVERY_KIND("Put between all layouts of records", layouts_of_records(), put_pair)
FOR_EVERY_KIND("Get between all layouts of records", layouts_of_records(), get_pair)

TEST_CASE("Accumulate with MPI_REPLACE between layouts of ints") {
  const auto replace = [](Window& window, const Layout& origin, const Layout& target) {
    const int right = window.right();
    set(window, pattern(arena, 1));
    const Bytes out = pattern(arena, 10 + static_cast<unsigned>(rank()));
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
    MPI_Accumulate(out.data() + middle, origin.count, plain(origin), right,
                   window.at(right, middle), target.count, plain(target), MPI_REPLACE, window.win);
    MPI_Win_unlock(right, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    const Bytes sent = pattern(arena, 10 + static_cast<unsigned>(window.left()));
    CHECK((contents(window) == moved(sent, origin, pattern(arena, 1), target)));
  };
  for_all_pairs(layouts_of_ints(), Kind::create, replace);
}

namespace {

/// Every second int of a large array here, every third there: far more than one message.
void large(Kind kind) {
  constexpr int count = 200000;
  Array<int> window(3 * count, -1, kind);
  const int right = window.right();
  MPI_Datatype second = MPI_DATATYPE_NULL, third = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, 1, 2, MPI_INT, &second);
  MPI_Type_vector(count, 1, 3, MPI_INT, &third);
  MPI_Type_commit(&second);
  MPI_Type_commit(&third);
  std::vector<int> out(2 * count), in(2 * count, -2);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = rank() * 1000003 + static_cast<int>(i);
  const MPI_Aint first = window.index(right, 0);
  MPI_Win_lock_all(0, window.win);
  MPI_Put(out.data(), 1, second, right, first, 1, third, window.win);
  MPI_Win_flush(right, window.win);
  MPI_Accumulate(out.data(), 1, second, right, first, 1, third, MPI_SUM, window.win);
  MPI_Win_flush(right, window.win);
  MPI_Get(in.data(), 1, second, right, first, 1, third, window.win);
  MPI_Type_free(&second);  // legal: the call has it
  MPI_Type_free(&third);
  MPI_Win_unlock_all(window.win);
  int wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wrong += in[i] != (i % 2 == 0 ? 2 * out[i] : -2);
  CHECK(wrong == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  window.locally([&] {
    for (std::size_t i = 0; i < 3 * count; ++i) {
      const int value = 2 * (window.left() * 1000003 + static_cast<int>(i / 3 * 2));
      wrong += window[i] != (i % 3 == 0 ? value : -1);
    }
  });
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("Strided transfers of 800 kB, types freed at once, created window") {
  large(Kind::create);
}
TEST_CASE("Strided transfers of 800 kB, types freed at once, allocated window") {
  large(Kind::allocate);
}
TEST_CASE("Strided transfers of 800 kB, types freed at once, dynamic window") {
  large(Kind::dynamic);
}

TEST_CASE("Types without elements, counts of zero") {
  Window window(64);
  MPI_Datatype none = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  const Bytes out = pattern(64, 1);
  const int right = window.right();
  MPI_Win_fence(0, window.win);
  MPI_Put(out.data(), 5, none, right, 0, 0, MPI_INT, window.win);
  MPI_Put(out.data(), 0, MPI_INT, right, 64, 3, none, window.win);
  MPI_Accumulate(out.data(), 0, MPI_INT, right, 0, 2, none, MPI_SUM, window.win);
  MPI_Win_fence(0, window.win);
  for (std::size_t i = 0; i < 64; ++i) REQUIRE(window.memory[i] == 0xEE);
  MPI_Type_free(&none);
}

TEST_CASE("Displacements of types are relative to the target's displacement, in its units") {
  constexpr int unit = 16;
  Window window(arena, Kind::create, unit);
  const MPI_Aint back[] = {-48, 32};
  MPI_Datatype around = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed_block(2, 8, back, MPI_BYTE, &around);
  MPI_Type_commit(&around);
  const Bytes out = pattern(32, 4);
  MPI_Win_fence(0, window.win);
  MPI_Put(out.data(), 32, MPI_BYTE, window.right(), 100, 2, around, window.win);
  MPI_Win_fence(0, window.win);
  const Bytes expected = pattern(32, 4);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(around, &lower, &extent);
  CHECK(extent == 88);
  for (std::size_t k = 0; k < 4; ++k) {
    const MPI_Aint at = 100 * unit + static_cast<MPI_Aint>(k / 2) * extent + back[k % 2];
    CHECK(std::memcmp(window.memory + at, &expected[8 * k], 8) == 0);
  }
  MPI_Type_free(&around);
}
