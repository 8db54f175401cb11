// Requests that are answered, withdrawn, and asked for by several.
// SPDX-License-Identifier: BSD-3-Clause
#include "request_slot.hpp"

#include <array>
#include <compare>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

/// A word that is copied with its world.
template <class T>
struct Word {
  T value{};
  [[nodiscard]] T load(std::memory_order) const noexcept { return value; }
  void store(T next, std::memory_order) noexcept { value = next; }
  bool compare_exchange_strong(T& from, T to, std::memory_order, std::memory_order) noexcept {
    if (value != from) return false;
    value = to;
    return true;
  }
  auto operator<=>(const Word&) const = default;
};

/// Every order of the steps of two who ask once and an owner that looks so often: each request is
/// carried out by exactly one side, and no answer is read that belongs to another request.
struct World {
  enum class Step : std::uint8_t { claim, write, post, look, withdraw, read, end };
  struct Asker {
    Step step = Step::claim;
    int by_itself = 0;
    int answer = 0;
    auto operator<=>(const Asker&) const = default;
  };

  RequestSlot<Word> slot;
  int request = 0;
  int answer = 0;
  std::array<Asker, 2> askers;
  int owner_step = 0;  ///< 0: looks, 1: has taken, 2: has carried out
  int looks = 0;
  int taken = 0;
  std::array<int, 2> by_owner{};
  auto operator<=>(const World&) const = default;

  /// @param who  0, 1, or 2: the owner. @param gives_up  of an asker that looks in vain
  /// @returns  false: it has nothing to do
  bool act(std::size_t who, bool gives_up) {
    if (who == 2) return act_owner();
    Asker& each = askers[who];
    switch (each.step) {
      case Step::claim:
        each.step = slot.try_claim() ? Step::write : Step::end;
        if (each.step == Step::end) ++each.by_itself;
        return true;
      case Step::write:
        request = static_cast<int>(who) + 1;
        each.step = Step::post;
        return true;
      case Step::post:
        slot.post();
        each.step = Step::look;
        return true;
      case Step::look:
        if (slot.is_answered()) {
          each.step = Step::read;
        } else if (gives_up) {
          each.step = Step::withdraw;
        } else {
          return false;
        }
        return true;
      case Step::withdraw:
        if (slot.try_withdraw()) {
          ++each.by_itself;
          each.step = Step::end;
          return true;
        }
        each.step = Step::look;
        return slot.is_answered();
      case Step::read:
        each.answer = answer;
        slot.release();
        each.step = Step::end;
        return true;
      case Step::end: return false;
    }
    return false;
  }
  bool act_owner() {
    switch (owner_step) {
      case 0:
        if (looks == 4) return false;
        ++looks;
        if (slot.is_posted() && slot.try_take()) owner_step = 1;
        return true;
      case 1:
        taken = request;
        ++by_owner[static_cast<std::size_t>(taken) - 1];
        answer = taken * 10;
        owner_step = 2;
        return true;
      default:
        slot.answer();
        owner_step = 0;
        return true;
    }
  }
};

/// Look at all worlds that follow. @param check  of those in which nobody can act any more
void explore(const World& world, std::set<World>& seen,
             const std::function<void(const World&)>& check) {
  if (!seen.insert(world).second) return;
  bool over = true;
  for (std::size_t who = 0; who < 3; ++who) {
    for (const bool gives_up : {false, true}) {
      World next = world;
      if (!next.act(who, gives_up)) continue;
      over = false;
      explore(next, seen, check);
    }
  }
  if (over) check(world);
}

TEST_CASE("a request is carried out once, by its owner or by who has asked", "[slot]") {
  std::set<World> seen;
  std::set<int> by_owner;  // how many of the two
  explore({}, seen, [&by_owner](const World& world) {
    for (std::size_t i = 0; i < 2; ++i) {
      const World::Asker& each = world.askers[i];
      REQUIRE(each.step == World::Step::end);
      REQUIRE(each.by_itself + world.by_owner[i] == 1);
      if (each.by_itself == 0) REQUIRE(each.answer == 10 * (static_cast<int>(i) + 1));
    }
    by_owner.insert(world.by_owner[0] + world.by_owner[1]);
  });
  CHECK(seen.size() > 200);
  CHECK(by_owner == std::set<int>{0, 1, 2});
}

TEST_CASE("processes ask, one answers when it likes", "[slot]") {
  constexpr int rounds = 3000;
  struct Shared {
    RequestSlot<> slot;
    int request = 0;
    int answer = 0;
  } shared;
  std::array<std::atomic<int>, 2> served{};
  std::array<int, 2> alone{};
  std::array<int, 2> wrong{};
  std::atomic<bool> over{false};
  std::thread owner([&] {
    while (!over.load()) {
      if (!shared.slot.is_posted() || !shared.slot.try_take()) {
        std::this_thread::yield();
        continue;
      }
      ++served[static_cast<std::size_t>(shared.request % 2)];
      shared.answer = shared.request + 1;
      shared.slot.answer();
    }
  });
  std::vector<std::thread> askers;
  for (std::size_t who = 0; who < 2; ++who) {
    askers.emplace_back([&, who] {
      for (int i = 0; i < rounds; ++i) {
        const int request = 2 * i + static_cast<int>(who);
        if (!shared.slot.try_claim()) {
          ++alone[who];
          continue;
        }
        shared.request = request;
        shared.slot.post();
        bool withdrawn = false;
        for (int turn = 0; !withdrawn && !shared.slot.is_answered(); ++turn) {
          std::this_thread::yield();
          withdrawn = turn > i % 4 && shared.slot.try_withdraw();
        }
        if (withdrawn) {
          ++alone[who];
          continue;
        }
        wrong[who] += shared.answer != request + 1 ? 1 : 0;
        shared.slot.release();
      }
    });
  }
  for (std::thread& each : askers) each.join();
  over = true;
  owner.join();
  for (std::size_t who = 0; who < 2; ++who) {
    CHECK(served[who] + alone[who] == rounds);
    CHECK(wrong[who] == 0);
  }
}

TEST_CASE("an owner that does not come is asked ever more rarely", "[slot]") {
  AskingPace pace;
  const auto until_asked = [&pace] {
    int passed = 0;
    while (!pace.may_ask()) ++passed;
    return passed;
  };
  CHECK(until_asked() == 0);
  CHECK(until_asked() == 0);
  for (const int passed : {1, 3, 7}) {
    pace.note_in_vain();
    CHECK(pace.pause() == static_cast<std::uint32_t>(passed) + 1);
    CHECK_FALSE(pace.is_answered());
    CHECK(until_asked() == passed);
  }
  for (int i = 0; i < 20; ++i) pace.note_in_vain();
  CHECK(until_asked() == static_cast<int>(AskingPace::pause_max) - 1);
  pace.note_answered();
  CHECK(pace.is_answered());
  CHECK(until_asked() == 0);
}

TEST_CASE("what took longer brings the next question nearer", "[slot]") {
  AskingPace pace;
  pace.note_long(5);
  CHECK(pace.may_ask());
  for (int i = 0; i < 3; ++i) pace.note_in_vain();  // seven go by
  pace.note_long(3);
  for (int i = 0; i < 4; ++i) CHECK_FALSE(pace.may_ask());
  CHECK(pace.may_ask());
  pace.note_in_vain();
  pace.note_long(1000);
  CHECK(pace.may_ask());
}

}  // namespace
}  // namespace overlap::newrma
