// Field: one-sided communication: every predefined operation on every predefined datatype that MPI
// allows, by every call that makes one, against the same operation in C++.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <complex>
#include <functional>

using namespace overlap::test;

namespace {

/// Operations as MPI 3.1 groups them by the datatypes they allow (section 5.9.2).
enum Group_of_types { order = 1, arithmetic = 2, logical = 4, bits = 8, location = 16 };

struct Operation {
  const char* name;
  MPI_Op op;
  int group;  ///< 0: every type
};

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = {
      {"MAX", MPI_MAX, order},          {"MIN", MPI_MIN, order},
      {"SUM", MPI_SUM, arithmetic},     {"PROD", MPI_PROD, arithmetic},
      {"LAND", MPI_LAND, logical},      {"LOR", MPI_LOR, logical},
      {"LXOR", MPI_LXOR, logical},      {"BAND", MPI_BAND, bits},
      {"BOR", MPI_BOR, bits},           {"BXOR", MPI_BXOR, bits},
      {"MAXLOC", MPI_MAXLOC, location}, {"MINLOC", MPI_MINLOC, location},
      {"REPLACE", MPI_REPLACE, 0},      {"NO_OP", MPI_NO_OP, 0}};
  return all;
}

/// Value and index, as the C structures of the pair types.
template <class Value>
struct Pair {
  Value value;
  int index;
  bool operator==(const Pair&) const = default;
};

template <class Type>
struct Traits {
  static constexpr bool pair = false, complex = false;
  static Type make(unsigned i) { return static_cast<Type>(i); }
};
template <class Value>
struct Traits<Pair<Value>> {
  static constexpr bool pair = true, complex = false;
  static Pair<Value> make(unsigned i) {
    return {static_cast<Value>(i % 3), static_cast<int>(i * 7 % 5)};  // equal values too
  }
};
template <class Real>
struct Traits<std::complex<Real>> {
  static constexpr bool pair = false, complex = true;
  static std::complex<Real> make(unsigned i) {
    return {static_cast<Real>(i), static_cast<Real>(i % 3)};
  }
};

/// `before` and `operand` combined: what the target's element is afterwards.
template <class Type>
Type combine(MPI_Op op, const Type& before, const Type& operand) {
  if (op == MPI_REPLACE) return operand;
  if (op == MPI_NO_OP) return before;
  if constexpr (Traits<Type>::pair) {
    if (before.value == operand.value) return {before.value, std::min(before.index, operand.index)};
    const bool greater = operand.value > before.value;
    return greater == (op == MPI_MAXLOC) ? operand : before;
  } else {
    if (op == MPI_SUM) return static_cast<Type>(before + operand);
    if (op == MPI_PROD) return static_cast<Type>(before * operand);
    if constexpr (!Traits<Type>::complex) {
      if (op == MPI_MAX) return std::max(before, operand);
      if (op == MPI_MIN) return std::min(before, operand);
      const bool a = before != 0, b = operand != 0;
      if (op == MPI_LAND) return static_cast<Type>(a && b);
      if (op == MPI_LOR) return static_cast<Type>(a || b);
      if (op == MPI_LXOR) return static_cast<Type>(a != b);
      if constexpr (std::is_integral_v<Type>) {
        if (op == MPI_BAND) return static_cast<Type>(before & operand);
        if (op == MPI_BOR) return static_cast<Type>(before | operand);
        if (op == MPI_BXOR) return static_cast<Type>(before ^ operand);
      }
    }
  }
  return before;
}

enum class Call { accumulate, get_accumulate, raccumulate, rget_accumulate, fetch_and_op };
constexpr auto calls = {Call::accumulate, Call::get_accumulate, Call::raccumulate,
                        Call::rget_accumulate, Call::fetch_and_op};

/// One operation per slot of the right neighbour's memory: `length` elements each.
struct Slot {
  const Operation* operation;
  Call call;
};

std::vector<Slot> slots_for(int groups) {
  std::vector<Slot> slots;
  for (const Operation& operation : operations()) {
    if (operation.group != 0 && (operation.group & groups) == 0) continue;
    for (const Call call : calls) {
      // MPI_NO_OP only where something is fetched
      if (operation.op == MPI_NO_OP && (call == Call::accumulate || call == Call::raccumulate))
        continue;
      slots.push_back({&operation, call});
    }
  }
  return slots;
}

template <class Type>
struct Batch {
  Array<Type>& window;
  MPI_Datatype type;
  int length;

  /// Make the call of `slot` on elements [at, at + length).
  MPI_Request start(const Slot& slot, const Type* operand, Type* fetched, std::size_t at) const {
    const int to = window.right(), n = length;
    const MPI_Aint where = window.index(to, at);
    const MPI_Op op = slot.operation->op;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (slot.call) {
      case Call::accumulate:
        MPI_Accumulate(operand, n, type, to, where, n, type, op, window.win);
        break;
      case Call::raccumulate:
        MPI_Raccumulate(operand, n, type, to, where, n, type, op, window.win, &request);
        break;
      case Call::get_accumulate:
        MPI_Get_accumulate(operand, n, type, fetched, n, type, to, where, n, type, op, window.win);
        break;
      case Call::rget_accumulate:
        MPI_Rget_accumulate(operand, n, type, fetched, n, type, to, where, n, type, op, window.win,
                            &request);
        break;
      case Call::fetch_and_op:
        MPI_Fetch_and_op(operand, fetched, type, to, where, op, window.win);
        break;
    }
    return request;
  }
};

/// Every operation of `groups` by every call on `length` elements; fetch_and_op on the first one.
template <class Type>
void every_operation(const char* name, MPI_Datatype type, int groups, int length) {
  if (type == MPI_DATATYPE_NULL) return;  // this Open MPI has been built without it
  const std::vector<Slot> slots = slots_for(groups);
  const std::size_t n = static_cast<std::size_t>(length), all = slots.size() * n;
  const bool flags = groups == logical;  // 0 and 1 only
  std::vector<Type> before(all), operand(all), fetched(all, Traits<Type>::make(9)), after(all);
  for (std::size_t i = 0; i < all; ++i) {
    before[i] = Traits<Type>::make(static_cast<unsigned>(flags ? i % 2 : i % 6));
    operand[i] = Traits<Type>::make(static_cast<unsigned>(flags ? i / 2 % 2 : (i * 5 + 1) % 8));
  }
  Array<Type> window(all);
  const int right = window.right(), count = static_cast<int>(all);
  const Batch<Type> batch{window, type, length};
  MPI_Win_lock_all(0, window.win);
  MPI_Put(before.data(), count, type, right, 0, count, type, window.win);
  MPI_Win_flush(right, window.win);
  std::vector<MPI_Request> requests;
  for (std::size_t s = 0; s < slots.size(); ++s)
    requests.push_back(batch.start(slots[s], &operand[s * n], &fetched[s * n], s * n));
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  MPI_Win_flush(right, window.win);
  MPI_Get(after.data(), count, type, right, 0, count, type, window.win);
  MPI_Win_unlock_all(window.win);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    const bool fetches = slot.call != Call::accumulate && slot.call != Call::raccumulate;
    std::size_t wrong_after = 0, wrong_fetched = 0;
    for (std::size_t i = s * n; i < (s + 1) * n; ++i) {
      const bool touched = slot.call != Call::fetch_and_op || i == s * n;
      const Type expected =
          touched ? combine(slot.operation->op, before[i], operand[i]) : before[i];
      const Type handed = touched && fetches ? before[i] : Traits<Type>::make(9);
      wrong_after += after[i] == expected ? 0 : 1;
      wrong_fetched += fetched[i] == handed ? 0 : 1;
    }
    INFO(name << " MPI_" << slot.operation->name << " call " << static_cast<int>(slot.call)
              << " of " << length << ": elements wrong at the target, in the result");
    CHECK(wrong_after == 0);
    CHECK(wrong_fetched == 0);
  }
}

template <class Type>
void short_and_long(const char* name, MPI_Datatype type, int groups) {
  for (const int length : {1, 37, 3000}) every_operation<Type>(name, type, groups, length);
}

#define EVERY(Type, type, groups) short_and_long<Type>(#type, type, groups)

constexpr int c_integer = order | arithmetic | logical | bits;
constexpr int fortran_integer = order | arithmetic | bits;
constexpr int multi_language = fortran_integer;
constexpr int floating = order | arithmetic;

}  // namespace

TEST_CASE("Every operation: C integers") {
  EVERY(signed char, MPI_SIGNED_CHAR, c_integer);
  EVERY(unsigned char, MPI_UNSIGNED_CHAR, c_integer);
  EVERY(short, MPI_SHORT, c_integer);
  EVERY(unsigned short, MPI_UNSIGNED_SHORT, c_integer);
  EVERY(int, MPI_INT, c_integer);
  EVERY(unsigned, MPI_UNSIGNED, c_integer);
  EVERY(long, MPI_LONG, c_integer);
  EVERY(unsigned long, MPI_UNSIGNED_LONG, c_integer);
  EVERY(long long, MPI_LONG_LONG_INT, c_integer);
  EVERY(unsigned long long, MPI_UNSIGNED_LONG_LONG, c_integer);
}

TEST_CASE("Every operation: C integers of fixed width") {
  EVERY(std::int8_t, MPI_INT8_T, c_integer);
  EVERY(std::int16_t, MPI_INT16_T, c_integer);
  EVERY(std::int32_t, MPI_INT32_T, c_integer);
  EVERY(std::int64_t, MPI_INT64_T, c_integer);
  EVERY(std::uint8_t, MPI_UINT8_T, c_integer);
  EVERY(std::uint16_t, MPI_UINT16_T, c_integer);
  EVERY(std::uint32_t, MPI_UINT32_T, c_integer);
  EVERY(std::uint64_t, MPI_UINT64_T, c_integer);
}

TEST_CASE("Every operation: floating point") {
  EVERY(float, MPI_FLOAT, floating);
  EVERY(double, MPI_DOUBLE, floating);
  EVERY(long double, MPI_LONG_DOUBLE, floating);
}

TEST_CASE("Every operation: complex") {
  EVERY(std::complex<float>, MPI_C_FLOAT_COMPLEX, arithmetic);
  EVERY(std::complex<double>, MPI_C_DOUBLE_COMPLEX, arithmetic);
  EVERY(std::complex<long double>, MPI_C_LONG_DOUBLE_COMPLEX, arithmetic);
}

TEST_CASE("Every operation: complex types of C++") {
  EVERY(std::complex<float>, MPI_CXX_FLOAT_COMPLEX, arithmetic);
  EVERY(std::complex<double>, MPI_CXX_DOUBLE_COMPLEX, arithmetic);
  EVERY(std::complex<long double>, MPI_CXX_LONG_DOUBLE_COMPLEX, arithmetic);
}

TEST_CASE("Every operation: logical") {
  EVERY(unsigned char, MPI_C_BOOL, logical);
  EVERY(unsigned char, MPI_CXX_BOOL, logical);
}

TEST_CASE("Every operation: bytes, characters") {
  EVERY(unsigned char, MPI_BYTE, bits);
  EVERY(char, MPI_CHAR, 0);  // printable characters: replaced only
  EVERY(wchar_t, MPI_WCHAR, 0);
}

TEST_CASE("Every operation: addresses, offsets, counts") {
  EVERY(MPI_Aint, MPI_AINT, multi_language);
  EVERY(MPI_Offset, MPI_OFFSET, multi_language);
  EVERY(MPI_Count, MPI_COUNT, multi_language);
}

TEST_CASE("Every operation: pairs without a gap between elements") {
  EVERY(Pair<float>, MPI_FLOAT_INT, location);
  EVERY(Pair<int>, MPI_2INT, location);
}

TEST_CASE("Every operation: pairs of short and int, with a gap", "[stricter]") {
  EVERY(Pair<short>, MPI_SHORT_INT, location);
}

TEST_CASE("Every operation: pairs of long and int, with a gap", "[stricter]") {
  EVERY(Pair<long>, MPI_LONG_INT, location);
}

TEST_CASE("Every operation: pairs of double and int, with a gap", "[stricter]") {
  EVERY(Pair<double>, MPI_DOUBLE_INT, location);
}

TEST_CASE("Every operation: pairs of long double and int, with a gap", "[stricter]") {
  EVERY(Pair<long double>, MPI_LONG_DOUBLE_INT, location);
}

TEST_CASE("Every operation: Fortran's integers and logical") {
  int bytes = 0;  // a datatype without a Fortran compiler behind it has no size
  if (MPI_Type_size(MPI_INTEGER, &bytes) != MPI_SUCCESS || bytes != sizeof(int)) return;
  EVERY(int, MPI_INTEGER, fortran_integer);
  EVERY(std::int8_t, MPI_INTEGER1, fortran_integer);
  EVERY(std::int16_t, MPI_INTEGER2, fortran_integer);
  EVERY(std::int32_t, MPI_INTEGER4, fortran_integer);
  EVERY(std::int64_t, MPI_INTEGER8, fortran_integer);
  EVERY(int, MPI_LOGICAL, logical);
  EVERY(char, MPI_CHARACTER, 0);
}

TEST_CASE("Every operation: Fortran's real and complex numbers") {
  int bytes = 0;
  if (MPI_Type_size(MPI_REAL, &bytes) != MPI_SUCCESS || bytes != sizeof(float)) return;
  EVERY(float, MPI_REAL, floating);
  EVERY(float, MPI_REAL4, floating);
  EVERY(double, MPI_REAL8, floating);
  EVERY(double, MPI_DOUBLE_PRECISION, floating);
  EVERY(std::complex<float>, MPI_COMPLEX, arithmetic);
  EVERY(std::complex<double>, MPI_DOUBLE_COMPLEX, arithmetic);
}

namespace {

/// Right value found: swapped; wrong one: left alone. Both hand out what was there.
template <class Type>
void swap_one(const char* name, MPI_Datatype type) {
  INFO(name);
  Array<Type> window(3, Type{1});
  const int right = window.right();
  const Type zero{0}, one{1};
  Type got[2] = {Type{1}, Type{0}};
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window.win);
  MPI_Compare_and_swap(&zero, &one, &got[1], type, right, window.index(right, 1), window.win);
  MPI_Compare_and_swap(&zero, &zero, &got[0], type, right, window.index(right, 2), window.win);
  MPI_Win_unlock(right, window.win);
  CHECK(got[1] == one);
  CHECK(got[0] == one);
  MPI_Barrier(MPI_COMM_WORLD);
  window.locally([&] {
    CHECK(window[0] == one);
    CHECK(window[1] == zero);
    CHECK(window[2] == one);
  });
}

#define SWAP(Type, type) swap_one<Type>(#type, type)

}  // namespace

TEST_CASE("Types of a precision or range that only the origin has made") {
  Array<double> window(1, 1.0);
  Array<std::int64_t> numbers(1, 1);
  const int to = window.right();
  MPI_Datatype real = MPI_DATATYPE_NULL, integer = MPI_DATATYPE_NULL;
  if (rank() % 2 == 0) {
    MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real);
    MPI_Type_create_f90_integer(18, &integer);
    MPI_Type_c2f(integer);  // Fortran has a handle, this rank alone a number
    const double half = 0.5;
    double before = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
    MPI_Accumulate(&half, 1, real, to, 0, 1, real, MPI_SUM, window.win);
    MPI_Fetch_and_op(&half, &before, real, to, 0, MPI_SUM, window.win);
    MPI_Win_unlock(to, window.win);
    CHECK(before == 1.5);
    const std::int64_t one = 1, two = 2;
    std::int64_t found = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, numbers.win);
    MPI_Compare_and_swap(&two, &one, &found, integer, to, 0, numbers.win);
    MPI_Win_unlock(to, numbers.win);
    CHECK(found == 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(own(window) == (window.left() % 2 == 0 ? 2.0 : 1.0));
  CHECK(own(numbers) == (window.left() % 2 == 0 ? 2 : 1));
}

TEST_CASE("Compare_and_swap whose result takes the place of what it compares with", "[stricter]") {
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    Array<std::int64_t> window(2, 5, kind);
    for (const int to : {window.me, window.right()}) {
      CAPTURE(name_of(kind), to == window.me);
      const std::int64_t nine = 9;
      std::int64_t found[2] = {4, 4}, seen[2] = {0, 0};
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
      for (const int i : {0, 1}) {
        MPI_Compare_and_swap(&nine, &found[i], &found[i], MPI_INT64_T, to, window.index(to, i),
                             window.win);
        MPI_Win_flush(to, window.win);
        MPI_Get(&seen[i], 1, MPI_INT64_T, to, window.index(to, i), 1, MPI_INT64_T, window.win);
        MPI_Win_flush(to, window.win);
      }
      MPI_Win_unlock(to, window.win);
      CHECK((found[0] == 5 && found[1] == 5));
      CHECK((seen[0] == 5 && seen[1] == 5));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Compare_and_swap on every type that has one") {
  SWAP(signed char, MPI_SIGNED_CHAR);
  SWAP(unsigned char, MPI_UNSIGNED_CHAR);
  SWAP(short, MPI_SHORT);
  SWAP(unsigned short, MPI_UNSIGNED_SHORT);
  SWAP(int, MPI_INT);
  SWAP(unsigned, MPI_UNSIGNED);
  SWAP(long, MPI_LONG);
  SWAP(unsigned long, MPI_UNSIGNED_LONG);
  SWAP(long long, MPI_LONG_LONG);
  SWAP(unsigned long long, MPI_UNSIGNED_LONG_LONG);
  SWAP(std::int8_t, MPI_INT8_T);
  SWAP(std::uint16_t, MPI_UINT16_T);
  SWAP(std::int32_t, MPI_INT32_T);
  SWAP(std::uint64_t, MPI_UINT64_T);
  SWAP(unsigned char, MPI_C_BOOL);
  SWAP(unsigned char, MPI_BYTE);
  SWAP(MPI_Aint, MPI_AINT);
  SWAP(MPI_Offset, MPI_OFFSET);
  SWAP(MPI_Count, MPI_COUNT);
}

namespace {

/// All ranks add to all elements of all ranks at once: atomic per element, whatever its size.
template <class Type>
void add_at_once(const char* name, MPI_Datatype type, Kind kind) {
  INFO(name << " " << name_of(kind));
  constexpr int turns = 12, count = 5;
  Array<Type> window(count, Type{0}, kind);
  const std::vector<Type> one(count, Type{1});
  std::vector<Type> got(count, Type{0});
  MPI_Win_lock_all(0, window.win);
  for (int turn = 0; turn < turns; ++turn) {
    for (int to = 0; to < size(); ++to) {
      const MPI_Aint first = window.index(to, 0);
      if (turn % 3 == 0) {
        MPI_Accumulate(one.data(), count, type, to, first, count, type, MPI_SUM, window.win);
        continue;
      }
      for (int i = 0; i < count && turn % 3 == 1; ++i)
        MPI_Fetch_and_op(&one[0], &got[0], type, to, window.index(to, static_cast<std::size_t>(i)),
                         MPI_SUM, window.win);
      if (turn % 3 == 2)
        MPI_Get_accumulate(one.data(), count, type, got.data(), count, type, to, first, count, type,
                           MPI_SUM, window.win);
      MPI_Win_flush_local(to, window.win);
    }
  }
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t i = 0; i < count; ++i)
    CHECK(own(window, i) == static_cast<Type>(turns * size()));
}

}  // namespace

TEST_CASE("Additions of all ranks at once are atomic for every size of element") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic}) {
    add_at_once<unsigned char>("1 byte", MPI_UINT8_T, kind);
    add_at_once<std::uint16_t>("2 bytes", MPI_UINT16_T, kind);
    add_at_once<std::uint32_t>("4 bytes", MPI_UINT32_T, kind);
    add_at_once<std::uint64_t>("8 bytes", MPI_UINT64_T, kind);
    add_at_once<double>("double", MPI_DOUBLE, kind);
    add_at_once<float>("float", MPI_FLOAT, kind);
    add_at_once<long double>("long double", MPI_LONG_DOUBLE, kind);
    add_at_once<std::complex<double>>("complex", MPI_C_DOUBLE_COMPLEX, kind);
  }
}
