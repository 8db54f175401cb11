// Random and exhaustive simulations of programs with blocking and non-blocking epochs.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_model.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::newrma;
using namespace overlap::newrma::model;

/// SplitMix64 (Steele, Lea and Flood, 2014).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<std::size_t>((z ^ (z >> 31)) % n);
  }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

/// Makes programs phase by phase: executed phase by phase with blocking calls none can hang, so
/// none may with calls that wait later or never.
class Author {
 public:
  explicit Author(std::uint64_t seed, Rank count, Reorder reorder) : dice_(seed) {
    program_.count = count;
    program_.reorder = reorder;
    program_.steps.resize(static_cast<std::size_t>(count));
    fences_.resize(static_cast<std::size_t>(count));
    for (Rank a = 0; a < count; ++a)
      for (Rank b = 0; b < count; ++b)
        if (dice_.one_in(3)) program_.maps.insert({a, b});
  }

  Program write(std::size_t phases) {
    for (std::size_t i = 0; i < phases; ++i) {
      switch (dice_.below(4)) {
        case 0: fence(dice_.one_in(3)); break;
        case 1: post_to_wait(); break;
        case 2: locks(any_rank()); break;
        default: lock_all(any_rank()); break;
      }
      for (Rank r = 0; r < program_.count; ++r)
        if (dice_.one_in(4)) add(r, {.what = Do::await});
    }
    return std::move(program_);
  }

  void fence(bool is_last) {
    ++fence_;
    const bool ends_nothing = std::ranges::all_of(fences_, [](Plan* each) { return !each; });
    const bool no_precede = ends_nothing && dice_.one_in(2);
    for (Rank r = 0; r < program_.count; ++r) {
      Plan*& open = fences_[static_cast<std::size_t>(r)];
      Plan* next = is_last ? nullptr : &plan(EpochKind::fence, r);
      if (next != nullptr) next->fence = fence_;
      add(r, {.what = Do::fence,
              .plan = open,
              .next = next,
              .no_precede = no_precede,
              .blocks = blocks()});
      open = next;
    }
    if (is_last) return;
    bool is_used = false;
    for (Rank r = 0; r < program_.count; ++r)
      is_used = operations(*fences_[static_cast<std::size_t>(r)], any_ranks(2)) || is_used;
    if (is_used) {
      fence(dice_.one_in(2));  // what is used must end before another kind begins
    } else {
      for (Plan*& open : fences_) open = nullptr;  // dropped, or another fence ends it
    }
  }

  void post_to_wait() {
    std::map<Rank, std::vector<Rank>> targets, origins;
    for (Rank a = 0; a < program_.count; ++a)
      for (const Rank b : any_ranks(2)) {
        targets[a].push_back(b);
        origins[b].push_back(a);
      }
    std::map<std::pair<Rank, Rank>, std::size_t> nth;
    for (const auto& [a, all] : targets)
      for (const Rank b : all) nth[{a, b}] = ++pairs_[{a, b}];
    for (Rank r = 0; r < program_.count; ++r) {
      Plan* exposure = origins[r].empty() ? nullptr : &plan(EpochKind::exposure, r, origins[r]);
      Plan* access = targets[r].empty() ? nullptr : &plan(EpochKind::access, r, targets[r]);
      if (exposure != nullptr) {
        for (const Rank a : origins[r]) exposure->nth[a] = nth[{a, r}];
        add(r, {.what = Do::post, .plan = exposure});
      }
      if (access != nullptr) {
        for (const Rank b : targets[r]) access->nth[b] = nth[{r, b}];
        add(r, {.what = Do::start, .plan = access});
        operations(*access, targets[r]);
        if (dice_.one_in(4)) add(r, {.what = Do::await});
        add(r, {.what = Do::complete, .plan = access, .blocks = blocks()});
      } else if (exposure != nullptr && dice_.one_in(3)) {
        locks(r);
      }
      if (exposure != nullptr && dice_.one_in(4))
        add(r, {.what = Do::test, .plan = exposure});
      else if (exposure != nullptr)
        add(r, {.what = Do::wait, .plan = exposure, .blocks = blocks()});
    }
  }

  /// One lock, or several whose calls do not wait while any is held.
  void locks(Rank r) {
    const std::vector<Rank> targets = any_ranks(3);
    std::vector<Plan*> plans;
    const bool is_alone = targets.size() == 1;
    for (const Rank target : targets) {
      Plan& one = plan(EpochKind::lock, r, {target});
      one.type = dice_.one_in(2) ? LockType::exclusive : LockType::shared;
      one.no_check = dice_.one_in(8);
      add(r, {.what = Do::lock, .plan = &one, .target = target, .blocks = is_alone && blocks()});
      plans.push_back(&one);
    }
    for (Plan* each : plans) {
      operations(*each, each->group);
      if (dice_.one_in(2)) flush(r, each->group[0], is_alone);
      if (dice_.one_in(2)) operations(*each, each->group);
    }
    if (dice_.one_in(3) && !plans.empty()) flush(r, -1, is_alone);
    for (Plan* each : plans)
      add(r, {.what = Do::unlock,
              .plan = each,
              .target = each->group[0],
              .blocks = each == plans.back() && blocks()});
  }

  /// One that locks all, and accesses those ranks one after the other.
  void lock_all_for(Rank r, const std::vector<Rank>& targets) {
    Plan& all = plan(EpochKind::lock_all, r);
    add(r, {.what = Do::lock_all, .plan = &all, .blocks = blocks(), .local = dice_.one_in(2)});
    for (const Rank target : targets) {
      operation(all, target);
      if (dice_.one_in(2)) flush(r, dice_.one_in(2) ? -1 : target, true);
    }
    add(r, {.what = Do::flush_all, .blocks = true});
    add(r, {.what = Do::unlock_all, .plan = &all, .blocks = true});
  }

  /// One that locks those ranks, holds all, and unlocks them in any order.
  /// @param types  of which each lock has one
  void lock_each(Rank r, const std::vector<Rank>& targets, const std::vector<LockType>& types) {
    std::vector<Plan*> plans;
    for (const Rank target : targets) {
      Plan& one = plan(EpochKind::lock, r, {target});
      one.type = types[dice_.below(types.size())];
      add(r, {.what = Do::lock, .plan = &one, .target = target, .blocks = dice_.one_in(2)});
      operation(one, target);
      if (dice_.one_in(2)) add(r, {.what = Do::flush, .target = target, .blocks = true});
      plans.push_back(&one);
    }
    if (dice_.one_in(2)) add(r, {.what = Do::flush, .target = targets.back(), .blocks = true});
    while (!plans.empty()) {
      const auto next = plans.begin() + static_cast<std::ptrdiff_t>(dice_.below(plans.size()));
      add(r, {.what = Do::unlock, .plan = *next, .target = (*next)->group[0], .blocks = true});
      plans.erase(next);
    }
  }

  Program take() { return std::move(program_); }

  void lock_all(Rank r) {
    Plan& all = plan(EpochKind::lock_all, r);
    all.no_check = dice_.one_in(8);
    add(r, {.what = Do::lock_all, .plan = &all, .blocks = blocks(), .local = dice_.one_in(2)});
    for (int i = 0; i < 2; ++i) {
      operations(all, any_ranks(2));
      if (dice_.one_in(2)) flush(r, dice_.one_in(2) ? -1 : any_rank(), true);
    }
    add(r, {.what = Do::unlock_all, .plan = &all, .blocks = blocks()});
  }

 private:
  Plan& plan(EpochKind kind, Rank rank, std::vector<Rank> group = {}) {
    program_.plans.push_back({});
    Plan& made = program_.plans.back();
    made.kind = kind;
    made.rank = rank;
    made.group = std::move(group);
    return made;
  }
  void add(Rank rank, const Step& step) {
    program_.steps[static_cast<std::size_t>(rank)].push_back(step);
  }
  bool blocks() { return dice_.one_in(2); }
  Rank any_rank() {
    return static_cast<Rank>(dice_.below(static_cast<std::size_t>(program_.count)));
  }
  std::vector<Rank> any_ranks(std::size_t one_in) {
    std::vector<Rank> some;
    for (Rank r = 0; r < program_.count; ++r)
      if (dice_.one_in(one_in)) some.push_back(r);
    return some;
  }
  void flush(Rank r, Rank target, bool may_block) {
    add(r, {.what = target < 0 ? Do::flush_all : Do::flush,
            .target = target,
            .blocks = may_block && blocks(),
            .local = dice_.one_in(3)});
  }
  void operation(Plan& plan, Rank target) {
    program_.ops.emplace_back();
    ModelOp& op = program_.ops.back();
    op.plan = &plan;
    op.target = target;
    op.mode = static_cast<Mode>(dice_.below(3));
    plan.ops.push_back(&op);
    add(plan.rank, {.what = Do::op, .plan = &plan, .target = target, .op = &op});
  }
  bool operations(Plan& plan, const std::vector<Rank>& targets) {
    bool any = false;
    for (const Rank target : targets)
      for (std::size_t left = dice_.below(3); left != 0; --left) {
        operation(plan, target);
        any = true;
      }
    return any;
  }

  Dice dice_;
  Program program_;
  std::vector<Plan*> fences_;
  std::size_t fence_ = 0;
  std::map<std::pair<Rank, Rank>, std::size_t> pairs_;
};

Reorder reorder_of(std::size_t bits) {
  return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
}

std::string simulate(Program program, std::uint64_t seed, Plant plant = Plant::none) {
  Dice dice(seed + 1);
  return World(
             program, [&dice](std::size_t n) { return dice.below(n); }, plant)
      .run();
}

std::string simulate(std::uint64_t seed, std::size_t reorder_bits, Plant plant = Plant::none) {
  const auto count = static_cast<Rank>(1 + seed % 5);
  return simulate(Author(seed, count, reorder_of(reorder_bits)).write(1 + seed % 9), seed, plant);
}

/// Follow every path of choices, at most `paths_max`. @returns  the first fault
std::string explore(const std::function<Program()>& write, std::size_t paths_max,
                    std::size_t& paths) {
  struct Choice {
    std::size_t taken, of;
  };
  std::vector<Choice> path;
  for (paths = 1;; ++paths) {
    Program program = write();
    std::size_t depth = 0;
    const auto choose = [&](std::size_t n) {
      if (n == 1) return std::size_t{0};
      if (depth == path.size()) path.push_back({0, n});
      return path[depth++].taken;
    };
    std::string fault = World(program, choose).run();
    if (!fault.empty()) return fault;
    while (!path.empty() && ++path.back().taken == path.back().of) path.pop_back();
    if (path.empty() || paths == paths_max) return {};
  }
}

}  // namespace

TEST_CASE("random programs of one to five ranks", "[epochs][model]") {
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::string fault = simulate(seed, 0);
    if (fault.empty()) continue;
    FAIL("seed " << seed << ": " << fault);
  }
}

TEST_CASE("random programs that permit reordering", "[epochs][model]") {
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::string fault = simulate(seed, seed / 5 % 16);
    if (fault.empty()) continue;
    FAIL("seed " << seed << ": " << fault);
  }
}

// Each of those holds one lock and waits for another.
TEST_CASE("locks of all, and locks of one rank each, wait for nobody for ever", "[epochs][model]") {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Author author(seed, 4, {});
    for (std::uint64_t round = 0; round < 1 + seed % 2; ++round) {
      author.lock_all_for(0, {2, 3});
      author.lock_all_for(1, {3, 2});
      author.lock_each(2, {static_cast<Rank>(2 + seed / 2 % 2)}, {LockType::exclusive});
      author.lock_each(3, {static_cast<Rank>(3 - seed / 2 % 2)}, {LockType::exclusive});
    }
    CAPTURE(seed);
    CHECK(simulate(author.take(), seed) == "");
  }
}

TEST_CASE("who asks for locks in ascending order waits for nobody for ever", "[epochs][model]") {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Author author(seed, 3, {});
    for (Rank r = 0; r < 3; ++r) {
      const bool is_mixed = seed % 4 == 3;
      const bool is_writer = is_mixed || (seed >> static_cast<unsigned>(r + 2)) % 2 != 0;
      std::vector<LockType> types;
      if (is_writer) types.push_back(LockType::exclusive);
      if (is_mixed || !is_writer) types.push_back(LockType::shared);
      author.lock_each(r, {0, 1, 2}, types);
    }
    CAPTURE(seed);
    CHECK(simulate(author.take(), seed) == "");
  }
}

TEST_CASE(
    "shared locks in any order beside exclusive ones of one rank each wait for nobody for ever",
    "[epochs][model]") {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Author author(seed, 4, {});
    author.lock_each(0, {2, 3}, {LockType::shared});
    author.lock_each(1, {3, 2}, {LockType::shared});
    author.lock_each(2, {2}, {LockType::exclusive});
    author.lock_each(3, {3}, {LockType::exclusive});
    CAPTURE(seed);
    CHECK(simulate(author.take(), seed) == "");
  }
}

TEST_CASE("every interleaving of small programs", "[epochs][model]") {
  std::size_t all = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::size_t paths = 0;
    const auto write = [seed] {
      Author author(seed, 2, reorder_of(seed % 16));
      return author.write(1);
    };
    CAPTURE(seed);
    CHECK(explore(write, 2000, paths) == "");
    all += paths;
  }
  CHECK(all > 1000);
}

TEST_CASE("planted faults are noticed", "[epochs][model]") {
  for (const Plant plant :
       {Plant::drop_notice, Plant::repeat_notice, Plant::swap_pair, Plant::grant_early,
        Plant::flush_early, Plant::apply_late, Plant::unlock_early}) {
    int noticed = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed)
      if (!simulate(seed, 0, plant).empty()) ++noticed;
    CAPTURE(static_cast<int>(plant));
    CHECK(noticed > 0);
  }
}
