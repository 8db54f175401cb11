// Field: one-sided communication: random programs against a reference that every rank computes for
// itself. OVERLAP_TEST_SECONDS and OVERLAP_TEST_SEED choose length and seed.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <array>
#include <cstdio>
#include <memory>

using namespace overlap::test;

namespace {

// Each target's memory: one region of bytes per origin, which that origin alone puts to and gets
// from; then words that everybody adds to.
constexpr std::size_t region_bytes = 160 << 10;
constexpr std::size_t sums = 64;

enum class Epoch { fence, post_start, lock_shared, lock_exclusive, lock_all, locks_of_all };
constexpr unsigned epochs = 6;
enum class Call { put, rput, get, rget, replace, exchange, add, fetch_and_add, vector_put, swap };
constexpr unsigned call_kinds = 10;

/// One call of `origin`; positions are relative to its region, or an index of the sums.
struct Operation {
  int origin, target;
  Call call;
  std::size_t at, bytes;
  std::uint64_t seed;
  bool flush;
};

/// One epoch of every rank, the same list at every rank.
struct Round {
  std::uint64_t seed;
  Epoch epoch;
  std::vector<Operation> operations;
};

bool passive(Epoch epoch) { return epoch != Epoch::fence && epoch != Epoch::post_start; }

Round draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Round round{seed, static_cast<Epoch>(random() % epochs), {}};
  const std::size_t count = 1 + random() % (10 * ranks());
  const bool large = random() % 4 == 0;
  // Within an epoch without a flush in between no two calls may meet: each has a place of its own.
  std::vector<std::size_t> next(ranks() * ranks(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    Operation operation{};
    operation.origin = static_cast<int>(random() % ranks());
    operation.target = static_cast<int>(random() % ranks());
    operation.call = static_cast<Call>(random() % call_kinds);
    // requests belong to passive epochs
    if (!passive(round.epoch) && operation.call == Call::rput) operation.call = Call::put;
    if (!passive(round.epoch) && operation.call == Call::rget) operation.call = Call::get;
    operation.seed = random();
    operation.flush = random() % 4 == 0;
    const bool sum = operation.call == Call::add || operation.call == Call::fetch_and_add;
    if (sum) {
      operation.bytes = 1 + random() % 8;  // elements
      operation.at = random() % (sums - operation.bytes);
    } else {
      std::size_t& start = next[static_cast<std::size_t>(operation.origin) * ranks() +
                                static_cast<std::size_t>(operation.target)];
      operation.bytes = operation.call == Call::swap ? 8
                        : large && random() % 3 == 0 ? random() % 70000
                                                     : random() % 3000;
      if (operation.call == Call::vector_put) operation.bytes -= operation.bytes % 12;
      start = (start + random() % 40 + 7) / 8 * 8;
      if (start + operation.bytes > region_bytes) continue;
      operation.at = start;
      start += operation.bytes;
    }
    round.operations.push_back(operation);
  }
  return round;
}

/// What the memory of every rank must hold.
struct Reference {
  std::vector<Bytes> regions;  ///< [target * ranks + origin]
  std::vector<std::array<Word, sums>> words;

  Reference() : regions(ranks() * ranks(), Bytes(region_bytes, 0xEE)), words(ranks()) {
    for (auto& each : words) each.fill(0);
  }
  Bytes& region(int target, int origin) {
    return regions[static_cast<std::size_t>(target) * ranks() + static_cast<std::size_t>(origin)];
  }
};

/// What one of our calls handed out and must have handed out.
struct Result {
  Bytes got, expected;
};

class Player {
 public:
  explicit Player(Kind kind, MPI_Comm comm = MPI_COMM_WORLD)
      : window_(ranks() * region_bytes + sums * sizeof(Word), kind, 1, comm) {
    // groups of all, for post and start
    std::vector<int> all(ranks());
    for (std::size_t i = 0; i < ranks(); ++i) all[i] = static_cast<int>(i);
    everybody_ = std::make_unique<Group>(window_.win, all);
    window_.locally([&] { std::memset(window_.memory + ranks() * region_bytes, 0, sums * 8); });
    MPI_Barrier(comm);
    comm_ = comm;
  }

  /// @returns  how many bytes, words and results are not as the reference has them
  int play(const Round& round) {
    results_.clear();
    buffers_.clear();
    requests_.clear();
    results_.reserve(round.operations.size());
    open(round);
    for (const Operation& operation : round.operations) {
      if (operation.origin == window_.me) start(operation, round.epoch);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    close(round);
    for (const Operation& operation : round.operations) remember(operation);
    MPI_Barrier(comm_);
    return compare();
  }

 private:
  void open(const Round& round) {
    switch (round.epoch) {
      case Epoch::fence: MPI_Win_fence(MPI_MODE_NOPRECEDE, window_.win); return;
      case Epoch::post_start:
        MPI_Win_post(*everybody_, 0, window_.win);
        MPI_Win_start(*everybody_, 0, window_.win);
        return;
      case Epoch::lock_all: MPI_Win_lock_all(0, window_.win); return;
      case Epoch::locks_of_all:
        for (int to = 0; to < size(); ++to) MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window_.win);
        return;
      case Epoch::lock_shared:
      case Epoch::lock_exclusive: return;  // around each call
    }
  }
  void close(const Round& round) {
    switch (round.epoch) {
      case Epoch::fence: MPI_Win_fence(MPI_MODE_NOSUCCEED, window_.win); return;
      case Epoch::post_start:
        MPI_Win_complete(window_.win);
        MPI_Win_wait(window_.win);
        return;
      case Epoch::lock_all: MPI_Win_unlock_all(window_.win); return;
      case Epoch::locks_of_all:
        for (int to = 0; to < size(); ++to) MPI_Win_unlock(to, window_.win);
        return;
      case Epoch::lock_shared:
      case Epoch::lock_exclusive: return;
    }
  }
  void start(const Operation& operation, Epoch epoch) {
    const bool alone = epoch == Epoch::lock_shared || epoch == Epoch::lock_exclusive;
    const int to = operation.target;
    if (alone)
      MPI_Win_lock(epoch == Epoch::lock_shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, to, 0,
                   window_.win);
    call(operation);
    if (alone)
      MPI_Win_unlock(to, window_.win);
    else if (passive(epoch) && operation.flush)
      MPI_Win_flush(to, window_.win);
  }

  Bytes& buffer(std::size_t n, std::uint64_t seed) {
    buffers_.push_back(std::make_unique<Bytes>(pattern(n, seed)));
    return *buffers_.back();
  }
  Result& result(std::size_t n, const Bytes& expected, std::size_t at) {
    results_.push_back({empty(n), Bytes(expected.begin() + static_cast<std::ptrdiff_t>(at),
                                        expected.begin() + static_cast<std::ptrdiff_t>(at + n))});
    return results_.back();
  }

  void call(const Operation& operation) {
    const int to = operation.target, n = static_cast<int>(operation.bytes);
    if (operation.call == Call::add || operation.call == Call::fetch_and_add) return sum(operation);
    const Bytes& now = reference_.region(to, window_.me);
    const MPI_Aint at =
        window_.at(to, static_cast<std::size_t>(window_.me) * region_bytes + operation.at);
    const Bytes& out = buffer(operation.bytes, operation.seed);
    MPI_Request request = MPI_REQUEST_NULL;
    switch (operation.call) {
      case Call::put: MPI_Put(out.data(), n, MPI_BYTE, to, at, n, MPI_BYTE, window_.win); break;
      case Call::rput:
        MPI_Rput(out.data(), n, MPI_BYTE, to, at, n, MPI_BYTE, window_.win, &request);
        break;
      case Call::get:
        MPI_Get(result(operation.bytes, now, operation.at).got.data(), n, MPI_BYTE, to, at, n,
                MPI_BYTE, window_.win);
        break;
      case Call::rget:
        MPI_Rget(result(operation.bytes, now, operation.at).got.data(), n, MPI_BYTE, to, at, n,
                 MPI_BYTE, window_.win, &request);
        break;
      case Call::replace:
        MPI_Accumulate(out.data(), n, MPI_BYTE, to, at, n, MPI_BYTE, MPI_REPLACE, window_.win);
        break;
      case Call::exchange:
        MPI_Get_accumulate(out.data(), n, MPI_BYTE,
                           result(operation.bytes, now, operation.at).got.data(), n, MPI_BYTE, to,
                           at, n, MPI_BYTE, MPI_REPLACE, window_.win);
        break;
      case Call::vector_put: vector_put(out, to, at); break;
      case Call::swap:  // the guess is right
        MPI_Compare_and_swap(out.data(), &now[operation.at],
                             result(8, now, operation.at).got.data(), MPI_INT64_T, to, at,
                             window_.win);
        break;
      case Call::add:
      case Call::fetch_and_add: break;
    }
    if (request != MPI_REQUEST_NULL) requests_.push_back(request);
  }

  /// The first third of the buffer's words goes to every third word, and so on.
  void vector_put(const Bytes& out, int to, MPI_Aint at) {
    const int words = static_cast<int>(out.size() / 4), rows = words / 3;
    MPI_Datatype column = MPI_DATATYPE_NULL, columns = MPI_DATATYPE_NULL;
    MPI_Type_vector(rows, 1, 3, MPI_INT32_T, &column);
    MPI_Type_create_resized(column, 0, 4, &columns);
    MPI_Type_commit(&columns);
    MPI_Put(out.data(), words, MPI_INT32_T, to, at, rows == 0 ? 0 : 3, columns, window_.win);
    MPI_Type_free(&column);
    MPI_Type_free(&columns);
  }

  void sum(const Operation& operation) {
    const int n = static_cast<int>(operation.bytes), to = operation.target;
    Bytes& out = buffer(operation.bytes * sizeof(Word), 0);
    for (std::size_t i = 0; i < operation.bytes; ++i) {
      const Word value = addend(operation, i);
      std::memcpy(&out[i * sizeof value], &value, sizeof value);
    }
    const MPI_Aint at = window_.at(to, ranks() * region_bytes + operation.at * sizeof(Word));
    if (operation.call == Call::add) {
      MPI_Accumulate(out.data(), n, MPI_INT64_T, to, at, n, MPI_INT64_T, MPI_SUM, window_.win);
    } else {
      Bytes& in = buffer(sizeof(Word), 0);  // depends on the others: not compared
      MPI_Fetch_and_op(out.data(), in.data(), MPI_INT64_T, to, at, MPI_SUM, window_.win);
    }
  }
  static Word addend(const Operation& operation, std::size_t i) {
    return static_cast<Word>(operation.seed % 1000003 + i);
  }

  void remember(const Operation& operation) {
    Bytes& region = reference_.region(operation.target, operation.origin);
    const Bytes out = pattern(operation.bytes, operation.seed);
    switch (operation.call) {
      case Call::get:
      case Call::rget: return;
      case Call::add:
      case Call::fetch_and_add: {
        auto& words = reference_.words[static_cast<std::size_t>(operation.target)];
        const std::size_t n = operation.call == Call::add ? operation.bytes : 1;
        for (std::size_t i = 0; i < n; ++i) words[operation.at + i] += addend(operation, i);
        return;
      }
      case Call::vector_put: {
        const std::size_t rows = operation.bytes / 12;
        for (std::size_t i = 0; i < 3 * rows; ++i)
          std::memcpy(&region[operation.at + 4 * (i % rows * 3 + i / rows)], &out[4 * i], 4);
        return;
      }
      case Call::put:
      case Call::rput:
      case Call::replace:
      case Call::exchange:
      case Call::swap:
        std::copy(out.begin(), out.end(),
                  region.begin() + static_cast<std::ptrdiff_t>(operation.at));
    }
  }

  int compare() {
    int wrong = 0;
    for (const Result& each : results_) wrong += each.got == each.expected ? 0 : 1;
    window_.locally([&] {
      for (int origin = 0; origin < size(); ++origin) {
        const Bytes& region = reference_.region(window_.me, origin);
        wrong += std::memcmp(window_.memory + static_cast<std::size_t>(origin) * region_bytes,
                             region.data(), region_bytes) != 0;
      }
      wrong += std::memcmp(window_.memory + ranks() * region_bytes, reference_.words[self()].data(),
                           sums * sizeof(Word)) != 0;
    });
    MPI_Barrier(comm_);
    return wrong;
  }

  Window window_;
  std::unique_ptr<Group> everybody_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Reference reference_;
  std::vector<std::unique_ptr<Bytes>> buffers_;
  std::vector<Result> results_;
  std::vector<MPI_Request> requests_;
};

/// Rounds on one window after another, for a part of OVERLAP_TEST_SECONDS.
void random_programs(Kind kind) {
  const double seconds = static_cast<double>(setting("OVERLAP_TEST_SECONDS", 3)) / 4;
  std::uint64_t seed = static_cast<std::uint64_t>(setting("OVERLAP_TEST_SEED", 1)) * 1000000 +
                       100000 * static_cast<unsigned>(kind);
  const double start = MPI_Wtime();
  int go_on = 1, rounds = 0;
  while (go_on != 0) {
    Player player(kind);
    for (int i = 0; i < 12; ++i, ++seed, ++rounds) {
      const Round round = draw(seed);
      INFO(name_of(kind) << ", seed " << seed << ", epoch " << static_cast<int>(round.epoch));
      REQUIRE(player.play(round) == 0);
    }
    go_on = MPI_Wtime() - start < seconds ? 1 : 0;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank() == 0) std::fprintf(stderr, "  %d rounds\n", rounds);
}

}  // namespace

TEST_CASE("Random epochs, created window") { random_programs(Kind::create); }
TEST_CASE("Random epochs, allocated window") { random_programs(Kind::allocate); }
TEST_CASE("Random epochs, allocated shared window") { random_programs(Kind::shared); }
TEST_CASE("Random epochs, dynamic window") { random_programs(Kind::dynamic); }
