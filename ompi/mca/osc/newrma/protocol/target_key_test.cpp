// A key that is asked for, offered, refused.
// SPDX-License-Identifier: BSD-3-Clause
#include "target_key.hpp"

#include <array>
#include <functional>

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

using Answer = TargetKey::Answer;

constexpr std::array<std::byte, 2> some_key{std::byte{7}, std::byte{9}};
constexpr std::array<std::byte, 2> other_key{std::byte{1}, std::byte{2}};

struct Waiter final : KeyWaiter {
  int told = 0;
  std::function<void()> then;

  void key_came() override {
    ++told;
    if (then) then();
  }
};

bool is_some_key(const TargetKey& key) {
  return std::ranges::equal(key.bytes(), std::span(some_key));
}

TEST_CASE("target key: the first asks, others wait, all are told once") {
  TargetKey key;
  Waiter first, second, third;
  CHECK(key.want(first) == Answer::ask);
  CHECK(key.want(second) == Answer::wait);
  CHECK(key.bytes().empty());
  key.take(some_key);
  CHECK(is_some_key(key));
  CHECK((first.told == 1 && second.told == 1));
  CHECK(key.want(third) == Answer::ready);
  CHECK(third.told == 0);
}

TEST_CASE("target key: offered before anybody asks") {
  TargetKey key;
  key.take(some_key);
  Waiter waiter;
  CHECK(key.want(waiter) == Answer::ready);
  CHECK(waiter.told == 0);
}

TEST_CASE("target key: offered while the question is on its way, the answer changes nothing") {
  TargetKey key;
  Waiter waiter;
  CHECK(key.want(waiter) == Answer::ask);
  key.take(some_key);
  const std::byte* const place = key.bytes().data();
  key.take(other_key);
  CHECK(is_some_key(key));
  CHECK(key.bytes().data() == place);
  CHECK(waiter.told == 1);
}

TEST_CASE("target key: refused, for good") {
  TargetKey key;
  Waiter first, second;
  CHECK(key.want(first) == Answer::ask);
  key.take({});
  CHECK(first.told == 1);
  CHECK(key.want(second) == Answer::refused);
  key.take(some_key);
  CHECK(key.want(second) == Answer::refused);
  CHECK(second.told == 0);
}

TEST_CASE("target key: one that is told starts others") {
  TargetKey key;
  Waiter first, second, later;
  Answer answer{};
  first.then = [&] { answer = key.want(later); };
  CHECK(key.want(first) == Answer::ask);
  CHECK(key.want(second) == Answer::wait);
  key.take(some_key);
  CHECK(answer == Answer::ready);
  CHECK((second.told == 1 && later.told == 0));
}

}  // namespace
}  // namespace overlap::newrma
