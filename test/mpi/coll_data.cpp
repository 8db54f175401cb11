// Field: collectives with data that do not block, against results computed at each rank.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <cstring>

using namespace overlap::test;

namespace {

/// Sizes in bytes around the limits of a segment, a BTL and the component.
const std::vector<std::size_t> sizes = {0,     1,     64,    4000,  4096,  8191,  8192,  8193,
                                        20000, 32768, 40000, 65535, 65536, 65537, 200000};

void wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

/// A duplicate of MPI_COMM_WORLD, freed at the end.
class Comm {
 public:
  Comm() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
  ~Comm() { MPI_Comm_free(&comm_); }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  operator MPI_Comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// n elements with as much room between them.
MPI_Datatype spread(int n) {
  MPI_Datatype type;
  MPI_Type_vector(n, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

}  // namespace

TEST_CASE("Broadcasts of all sizes from all roots") {
  const Comm comm;
  for (int root = 0; root < size(); ++root) {
    for (const std::size_t n : sizes) {
      Bytes data = rank() == root ? pattern(n, n + static_cast<std::size_t>(root)) : empty(n);
      MPI_Request request;
      MPI_Ibcast(data.data(), static_cast<int>(n), MPI_BYTE, root, comm, &request);
      wait(request);
      REQUIRE(holds(data, n, n + static_cast<std::size_t>(root)));
    }
  }
}

TEST_CASE("Many broadcasts at the same time, from one root, that is ahead") {
  const Comm comm;
  constexpr std::size_t count = 300, n = 5000;
  std::vector<Bytes> data(count);
  std::vector<MPI_Request> requests(count);
  if (rank() != 0) compute(std::chrono::microseconds(2000 * rank()));
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = rank() == 0 ? pattern(n, i) : empty(n);
    MPI_Ibcast(data[i].data(), n, MPI_BYTE, 0, comm, &requests[i]);
  }
  MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < count; ++i) REQUIRE(holds(data[i], n, i));
}

TEST_CASE("A root that broadcasts and leaves, again and again") {
  // Nobody answers it: it is held by the window, asks and is told.
  for (int round = 0; round < 10; ++round) {
    const Comm comm;
    for (std::uint64_t i = 0; i < 200; ++i) {
      std::uint64_t value = rank() == 0 ? i * 7 : 0;
      MPI_Request request;
      MPI_Ibcast(&value, 1, MPI_UINT64_T, 0, comm, &request);
      wait(request);
      REQUIRE(value == i * 7);
    }
  }
}

TEST_CASE("Broadcasts of data with gaps, of another type at the root") {
  const Comm comm;
  for (const int n : {1, 100, 1025, 9000, 30000}) {
    MPI_Datatype gaps = spread(n);
    std::vector<int> data(static_cast<std::size_t>(2 * n), -1);
    MPI_Request request;
    for (int root = 0; root < std::min(size(), 3); ++root) {
      std::fill(data.begin(), data.end(), -1);
      if (rank() == root) {  // dense
        for (int i = 0; i < n; ++i) data[static_cast<std::size_t>(i)] = i * 3 + root;
        MPI_Ibcast(data.data(), n, MPI_INT, root, comm, &request);
      } else {
        MPI_Ibcast(data.data(), 1, gaps, root, comm, &request);
      }
      wait(request);
      long wrong = 0;
      for (int i = 0; rank() != root && i < n; ++i) {
        if (data[static_cast<std::size_t>(2 * i)] != i * 3 + root) ++wrong;
        if (data[static_cast<std::size_t>(2 * i) + 1] != -1) ++wrong;
      }
      REQUIRE(wrong == 0);
    }
    // The type may be freed at once.
    if (rank() == 0) std::fill(data.begin(), data.end(), 5);
    MPI_Ibcast(data.data(), 1, gaps, 0, comm, &request);
    MPI_Type_free(&gaps);
    wait(request);
    REQUIRE(data[0] == 5);
  }
}

namespace {

template <class T>
bool equal(const T& a, const T& b) {
  return a == b;
}

template <class T>
struct Pair {
  T value;
  int index;
};
template <class T>
bool equal(const Pair<T>& a, const Pair<T>& b) {
  return a.value == b.value && a.index == b.index;
}

/// Small enough that every order of operands has the same result.
template <class T>
T make(int of, int i) {
  return static_cast<T>((of * 7 + i * 3) % 3 + 1);
}
template <>
char make(int of, int i) {
  return static_cast<char>((of + i) % 2);
}  // of bool
template <>
Pair<float> make(int of, int i) {
  return {static_cast<float>((of + i) % 3), of};
}
template <>
Pair<double> make(int of, int i) {
  return {static_cast<double>((of + i) % 3), of};
}
template <>
Pair<long> make(int of, int i) {
  return {(of + i) % 3, of};
}
template <>
Pair<int> make(int of, int i) {
  return {(of + i) % 3, of};
}
template <>
Pair<short> make(int of, int i) {
  return {static_cast<short>((of + i) % 3), of};
}
template <>
Pair<long double> make(int of, int i) {
  return {static_cast<long double>((of + i) % 3), of};
}

template <class T>
std::vector<T> vector_of(int of, int count) {
  std::vector<T> made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = make<T>(of, i);
  return made;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i])) return false;
  return true;
}

template <class T>
long reduce_all(MPI_Comm comm, MPI_Datatype type, std::span<const MPI_Op> ops,
                std::span<const int> counts) {
  long wrong = 0;
  int root = 0;
  for (const MPI_Op op : ops) {
    for (const int count : counts) {
      const std::vector<T> mine = vector_of<T>(rank(), count);
      std::vector<T> expected = vector_of<T>(size() - 1, count);
      for (int r = size() - 2; r >= 0; --r) {
        const std::vector<T> left = vector_of<T>(r, count);
        MPI_Reduce_local(left.data(), expected.data(), count, type, op);
      }
      root = (root + 1) % size();
      std::vector<T> to_all(mine.size()), in_place = mine, to_root(mine.size()), at_root = mine;
      MPI_Request requests[4];
      MPI_Iallreduce(mine.data(), to_all.data(), count, type, op, comm, &requests[0]);
      MPI_Iallreduce(MPI_IN_PLACE, in_place.data(), count, type, op, comm, &requests[1]);
      MPI_Ireduce(mine.data(), rank() == root ? to_root.data() : nullptr, count, type, op, root,
                  comm, &requests[2]);
      MPI_Ireduce(rank() == root ? MPI_IN_PLACE : static_cast<const void*>(at_root.data()),
                  rank() == root ? at_root.data() : nullptr, count, type, op, root, comm,
                  &requests[3]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      if (!same(to_all, expected) || !same(in_place, expected)) ++wrong;
      if (rank() == root && (!same(to_root, expected) || !same(at_root, expected))) ++wrong;
      if (rank() != root && !same(at_root, mine)) ++wrong;
    }
  }
  return wrong;
}

const MPI_Op arithmetic[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
const MPI_Op sums[] = {MPI_SUM, MPI_PROD};
const MPI_Op logical[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
const MPI_Op bitwise[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
const MPI_Op places[] = {MPI_MINLOC, MPI_MAXLOC};
const int few[] = {1, 5, 1000};

template <class T>
long integers(MPI_Comm comm, MPI_Datatype type) {
  return reduce_all<T>(comm, type, arithmetic, few) + reduce_all<T>(comm, type, logical, few) +
         reduce_all<T>(comm, type, bitwise, few);
}

}  // namespace

TEST_CASE("Reductions: every operation on every type that it takes") {
  const Comm comm;
  CHECK(integers<signed char>(comm, MPI_SIGNED_CHAR) == 0);
  CHECK(integers<unsigned char>(comm, MPI_UNSIGNED_CHAR) == 0);
  CHECK(integers<short>(comm, MPI_SHORT) == 0);
  CHECK(integers<unsigned short>(comm, MPI_UNSIGNED_SHORT) == 0);
  CHECK(integers<int>(comm, MPI_INT) == 0);
  CHECK(integers<unsigned>(comm, MPI_UNSIGNED) == 0);
  CHECK(integers<long>(comm, MPI_LONG) == 0);
  CHECK(integers<unsigned long>(comm, MPI_UNSIGNED_LONG) == 0);
  CHECK(integers<long long>(comm, MPI_LONG_LONG) == 0);
  CHECK(integers<unsigned long long>(comm, MPI_UNSIGNED_LONG_LONG) == 0);
  CHECK(integers<std::int8_t>(comm, MPI_INT8_T) == 0);
  CHECK(integers<std::uint8_t>(comm, MPI_UINT8_T) == 0);
  CHECK(integers<std::int16_t>(comm, MPI_INT16_T) == 0);
  CHECK(integers<std::uint16_t>(comm, MPI_UINT16_T) == 0);
  CHECK(integers<std::int32_t>(comm, MPI_INT32_T) == 0);
  CHECK(integers<std::uint32_t>(comm, MPI_UINT32_T) == 0);
  CHECK(integers<std::int64_t>(comm, MPI_INT64_T) == 0);
  CHECK(integers<std::uint64_t>(comm, MPI_UINT64_T) == 0);
  CHECK(reduce_all<MPI_Aint>(comm, MPI_AINT, arithmetic, few) == 0);
  CHECK(reduce_all<MPI_Offset>(comm, MPI_OFFSET, arithmetic, few) == 0);
  CHECK(reduce_all<MPI_Count>(comm, MPI_COUNT, arithmetic, few) == 0);
  CHECK(reduce_all<float>(comm, MPI_FLOAT, arithmetic, few) == 0);
  CHECK(reduce_all<double>(comm, MPI_DOUBLE, arithmetic, few) == 0);
  CHECK(reduce_all<long double>(comm, MPI_LONG_DOUBLE, arithmetic, few) == 0);
  CHECK(reduce_all<std::complex<float>>(comm, MPI_C_FLOAT_COMPLEX, sums, few) == 0);
  CHECK(reduce_all<std::complex<double>>(comm, MPI_C_DOUBLE_COMPLEX, sums, few) == 0);
  CHECK(reduce_all<unsigned char>(comm, MPI_BYTE, bitwise, few) == 0);
  CHECK(reduce_all<char>(comm, MPI_C_BOOL, logical, few) == 0);
  CHECK(reduce_all<Pair<float>>(comm, MPI_FLOAT_INT, places, few) == 0);
  CHECK(reduce_all<Pair<double>>(comm, MPI_DOUBLE_INT, places, few) == 0);
  CHECK(reduce_all<Pair<long>>(comm, MPI_LONG_INT, places, few) == 0);
  CHECK(reduce_all<Pair<int>>(comm, MPI_2INT, places, few) == 0);
  CHECK(reduce_all<Pair<short>>(comm, MPI_SHORT_INT, places, few) == 0);
  CHECK(reduce_all<Pair<long double>>(comm, MPI_LONG_DOUBLE_INT, places, few) == 0);
}

TEST_CASE("Reductions of all sizes") {
  const Comm comm;
  std::vector<int> counts;
  for (const std::size_t n : sizes) counts.push_back(static_cast<int>(n / sizeof(double)));
  CHECK(reduce_all<double>(comm, MPI_DOUBLE, sums, counts) == 0);
}

TEST_CASE("All ranks get the same bits where the order of operands matters") {
  // max(a, b) and max(b, a) differ in what is not a number and in the sign of zero.
  const Comm comm;
  for (int odd = 0; odd < size(); ++odd) {
    const double mine[] = {rank() == odd ? std::nan("") : rank(), rank() == odd ? -0.0 : 0.0};
    for (const MPI_Op op : {MPI_MAX, MPI_MIN}) {
      for (const bool in_place : {false, true}) {
        std::array<double, 2> result{mine[0], mine[1]};
        MPI_Request request;
        MPI_Iallreduce(in_place ? MPI_IN_PLACE : mine, result.data(), 2, MPI_DOUBLE, op, comm,
                       &request);
        wait(request);
        std::array<double, 2> first = result;
        MPI_Bcast(first.data(), 2, MPI_DOUBLE, 0, comm);
        REQUIRE(std::memcmp(first.data(), result.data(), sizeof first) == 0);
      }
    }
  }
}

namespace {

/// a op b = a + b * 1000 modulo a prime, by position: neither commutative nor of a predefined type.
void compose(void* left, void* right, int* count, MPI_Datatype*) {
  struct Map {
    std::uint32_t factor, term;
  };
  constexpr std::uint64_t prime = 1000003;
  const auto* a = static_cast<const Map*>(left);
  auto* b = static_cast<Map*>(right);
  for (int i = 0; i < *count; ++i) {
    b[i] = {
        static_cast<std::uint32_t>(std::uint64_t{a[i].factor} * b[i].factor % prime),
        static_cast<std::uint32_t>((std::uint64_t{b[i].factor} * a[i].term + b[i].term) % prime)};
  }
}

}  // namespace

TEST_CASE("A program's own operation, in the order of the ranks") {
  const Comm comm;
  MPI_Op op;
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_UINT32_T, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(compose, 0, &op);
  const auto of = [](int r) {
    return std::array<std::uint32_t, 2>{static_cast<std::uint32_t>(r + 2),
                                        static_cast<std::uint32_t>(r * r + 1)};
  };
  auto expected = of(size() - 1);
  int one = 1;
  for (int r = size() - 2; r >= 0; --r) {
    auto left = of(r);
    compose(left.data(), expected.data(), &one, nullptr);
  }
  const auto mine = of(rank());
  std::array<std::uint32_t, 2> result{};
  MPI_Request request;
  MPI_Iallreduce(mine.data(), result.data(), 1, type, op, comm, &request);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  wait(request);
  CHECK(result == expected);
}

TEST_CASE("All-to-all and all-gather of small and large blocks") {
  const Comm comm;
  const auto ranks = static_cast<std::size_t>(size());
  const auto seed = [&](std::size_t from, std::size_t to, std::size_t n) {
    return from * 1000 + to * 10 + n;
  };
  for (const std::size_t n : {0U, 1U, 8U, 100U, 1000U, 5000U, 9001U, 40000U}) {
    CAPTURE(n);
    const auto me = static_cast<std::size_t>(rank());
    Bytes out(n * ranks);
    for (std::size_t to = 0; to < ranks; ++to) fill(out.data() + to * n, n, seed(me, to, n));
    Bytes in = empty(n * ranks), in_place = out, gathered = empty(n * ranks),
          gathered_in_place = empty(n * ranks);
    fill(gathered_in_place.data() + me * n, n, seed(me, 0, n));
    const int count = static_cast<int>(n);
    MPI_Request requests[4];
    MPI_Ialltoall(out.data(), count, MPI_BYTE, in.data(), count, MPI_BYTE, comm, &requests[0]);
    MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in_place.data(), count, MPI_BYTE, comm,
                  &requests[1]);
    MPI_Iallgather(out.data(), count, MPI_BYTE, gathered.data(), count, MPI_BYTE, comm,
                   &requests[2]);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered_in_place.data(), count, MPI_BYTE,
                   comm, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    long wrong = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
      wrong += first_wrong(in.data() + from * n, n, seed(from, me, n)) != n;
      wrong += first_wrong(in_place.data() + from * n, n, seed(from, me, n)) != n;
      wrong += first_wrong(gathered.data() + from * n, n, seed(from, 0, n)) != n;
      wrong += first_wrong(gathered_in_place.data() + from * n, n, seed(from, 0, n)) != n;
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("All-to-all and all-gather of blocks with gaps") {
  const Comm comm;
  const auto ranks = static_cast<std::size_t>(size());
  constexpr int n = 50;
  MPI_Datatype gaps = spread(n);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(gaps, &lower, &extent);
  const std::size_t stride = static_cast<std::size_t>(extent) / sizeof(int);
  std::vector<int> out(stride * ranks + 1, -1), in(n * ranks, -1), back(stride * ranks + 1, -1);
  for (std::size_t to = 0; to < ranks; ++to)
    for (std::size_t i = 0; i < n; ++i)
      out[to * stride + 2 * i] = rank() * 10000 + static_cast<int>(to * 100 + i);
  MPI_Request request;
  MPI_Ialltoall(out.data(), 1, gaps, in.data(), n, MPI_INT, comm, &request);
  wait(request);
  long wrong = 0;
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t i = 0; i < n; ++i)
      wrong +=
          in[from * n + i] != static_cast<int>(from) * 10000 + rank() * 100 + static_cast<int>(i);
  CHECK(wrong == 0);
  MPI_Ialltoall(in.data(), n, MPI_INT, back.data(), 1, gaps, comm, &request);
  wait(request);
  CHECK(back == out);
  MPI_Iallgather(out.data(), 1, gaps, in.data(), n, MPI_INT, comm, &request);
  wait(request);
  wrong = 0;
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t i = 0; i < n; ++i)
      wrong += in[from * n + i] != static_cast<int>(from) * 10000 + static_cast<int>(i);
  CHECK(wrong == 0);
  MPI_Type_free(&gaps);
}

TEST_CASE("All kinds mixed, many at the same time, with skewed ranks") {
  const Comm comm;
  std::mt19937 same(17), random(static_cast<unsigned>(rank()));
  for (int round = 0; round < 30; ++round) {
    const std::size_t count = 1 + same() % 20;
    std::vector<MPI_Request> requests(count);
    std::vector<std::vector<int>> in(count), out(count);
    std::vector<int> kind(count), root(count), n(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (random() % 16 == 0) compute(std::chrono::microseconds(random() % 300));
      kind[i] = static_cast<int>(same() % 5);
      root[i] = static_cast<int>(same() % static_cast<unsigned>(size()));
      const unsigned most = same() % 4 == 0 ? 4000 : 600;
      n[i] = 1 + static_cast<int>(same() % most);
      const auto words = static_cast<std::size_t>(n[i]);
      in[i].assign(words * static_cast<std::size_t>(size()), rank() + 1);
      out[i].assign(words * static_cast<std::size_t>(size()), -1);
      switch (kind[i]) {
        case 0: MPI_Ibarrier(comm, &requests[i]); break;
        case 1: MPI_Ibcast(in[i].data(), n[i], MPI_INT, root[i], comm, &requests[i]); break;
        case 2:
          MPI_Iallreduce(in[i].data(), out[i].data(), n[i], MPI_INT, MPI_SUM, comm, &requests[i]);
          break;
        case 3:
          MPI_Ireduce(in[i].data(), out[i].data(), n[i], MPI_INT, MPI_SUM, root[i], comm,
                      &requests[i]);
          break;
        default:
          MPI_Ialltoall(in[i].data(), n[i], MPI_INT, out[i].data(), n[i], MPI_INT, comm,
                        &requests[i]);
      }
    }
    MPI_Waitall(static_cast<int>(count), requests.data(), MPI_STATUSES_IGNORE);
    const int sum = size() * (size() + 1) / 2;
    long wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto words = static_cast<std::size_t>(n[i]);
      for (std::size_t w = 0; w < words; ++w) {
        if (kind[i] == 1) wrong += in[i][w] != root[i] + 1;
        if (kind[i] == 2 || (kind[i] == 3 && rank() == root[i])) wrong += out[i][w] != sum;
        for (std::size_t r = 0; kind[i] == 4 && r < static_cast<std::size_t>(size()); ++r)
          wrong += out[i][r * words + w] != static_cast<int>(r) + 1;
      }
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("Communicators whose numbers are agreed on by these collectives carry messages") {
  // Ranks make unlike numbers of communicators in between; a number is used again.
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < (rank() * 5 + round) % 7; ++i) {
      MPI_Comm alone;
      MPI_Comm_dup(MPI_COMM_SELF, &alone);
      MPI_Comm_free(&alone);
    }
    const Comm comm;
    int in = -1;
    const int out = rank() * 100 + round;
    const int left = (rank() + size() - 1) % size();
    MPI_Sendrecv(&out, 1, MPI_INT, (rank() + 1) % size(), 3, &in, 1, MPI_INT, left, 3, comm,
                 MPI_STATUS_IGNORE);
    REQUIRE(in == left * 100 + round);
  }
}

TEST_CASE("The component under test makes the small ones, and others the rest") {
  if (!mq_is_chosen() || size() < 2) return;
  const Comm comm;
  const MqCount made("nonblocking"), others("fallbacks");
  std::vector<double> in(20000, 1.0), out(20000);
  MPI_Request request;
  MPI_Ibcast(in.data(), 100, MPI_DOUBLE, 0, comm, &request);
  wait(request);
  MPI_Iallreduce(in.data(), out.data(), 100, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait(request);
  MPI_Ireduce(in.data(), out.data(), 100, MPI_DOUBLE, MPI_SUM, 0, comm, &request);
  wait(request);
  MPI_Ialltoall(in.data(), 10, MPI_DOUBLE, out.data(), 10, MPI_DOUBLE, comm, &request);
  wait(request);
  MPI_Iallgather(in.data(), 10, MPI_DOUBLE, out.data(), 10, MPI_DOUBLE, comm, &request);
  wait(request);
  CHECK(made.value() == 5);
  CHECK(others.value() == 0);
  MPI_Ibcast(in.data(), 20000, MPI_DOUBLE, 0, comm, &request);
  wait(request);
  MPI_Iallreduce(in.data(), out.data(), 20000, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait(request);
  CHECK(made.value() == 5);
  CHECK(others.value() == 2);
}
