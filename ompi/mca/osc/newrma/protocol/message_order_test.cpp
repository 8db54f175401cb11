// Messages that come in another order than they were sent in.
// SPDX-License-Identifier: BSD-3-Clause
#include "message_order.hpp"

#include <algorithm>
#include <random>
#include <string>

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

std::vector<std::byte> message_of(std::uint32_t number) {
  return std::vector<std::byte>(number % 5 + 1, static_cast<std::byte>(number));
}

/// Hand messages over as a channel does. @returns  the first byte of each one that was handled
std::vector<unsigned> handle(MessageOrder& order, const std::vector<std::uint32_t>& arriving) {
  std::vector<unsigned> handled;
  for (const std::uint32_t number : arriving) {
    const std::vector<std::byte> message = message_of(number);
    if (!order.is_next(number, message)) continue;
    handled.push_back(std::to_integer<unsigned>(message.front()));
    while (const auto kept = order.take_next()) {
      handled.push_back(std::to_integer<unsigned>(kept->front()));
    }
  }
  return handled;
}

}  // namespace

TEST_CASE("Message order: in turn, nothing is kept") {
  MessageOrder order;
  CHECK(handle(order, {0, 1, 2, 3}) == std::vector<unsigned>{0, 1, 2, 3});
}

TEST_CASE("Message order: any arrival order of 50 messages") {
  std::vector<std::uint32_t> numbers(50);
  std::vector<unsigned> sorted;
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i;
    sorted.push_back(i);
  }
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(seed));
    MessageOrder order;
    CAPTURE(seed);
    CHECK(handle(order, numbers) == sorted);
  }
}

TEST_CASE("Message order: one that has been handled, or is kept already, is not handled again") {
  MessageOrder order;
  CHECK(handle(order, {0, 2, 2, 0, 1, 1, 2, 3}) == std::vector<unsigned>{0, 1, 2, 3});
}

TEST_CASE("Message order: one that comes while another is being handled waits for its end") {
  MessageOrder order;
  const auto arrive = [&](std::uint32_t number) {
    return order.is_next(number, message_of(number));
  };
  REQUIRE(arrive(0));
  CHECK(!arrive(1));  // inside the handling of 0
  CHECK(!arrive(3));
  const auto second = order.take_next();
  REQUIRE(second);
  CHECK(*second == message_of(1));
  CHECK(!arrive(2));  // inside that of 1
  CHECK(order.take_next() == message_of(2));
  CHECK(order.take_next() == message_of(3));
  CHECK(!order.take_next());
  CHECK(arrive(4));
}

}  // namespace overlap::newrma
