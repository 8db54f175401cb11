// Messages put together and taken apart again.
// SPDX-License-Identifier: BSD-3-Clause
#include "bundle.hpp"

#include <algorithm>
#include <random>

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

using Message = std::vector<std::byte>;

std::vector<Message> taken_apart(std::span<const std::byte> bytes, bool whole = true) {
  std::vector<Message> messages;
  const bool ends = Bundle::for_each(bytes, [&messages](std::span<const std::byte> each) {
    messages.emplace_back(each.begin(), each.end());
  });
  REQUIRE(ends == whole);
  return messages;
}

}  // namespace

TEST_CASE("A bundle gives its messages back in their order") {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t room_bytes = random() % 3000;
    Bundle bundle(room_bytes);
    std::vector<Message> sent;
    for (;;) {
      Message message(random() % 200);
      std::ranges::generate(message, [&random] { return static_cast<std::byte>(random()); });
      if (!bundle.has_room(message.size())) break;
      std::ranges::copy(message, bundle.add(message.size()).begin());
      sent.push_back(message);
    }
    REQUIRE(bundle.messages() == sent.size());
    REQUIRE(bundle.bytes().size() <= room_bytes);
    REQUIRE(taken_apart(bundle.bytes()) == sent);
    if (sent.size() == 1) REQUIRE(std::ranges::equal(bundle.message(), sent.front()));
  }
}

TEST_CASE("The last message of a bundle grows while there is room") {
  Bundle bundle(100);
  REQUIRE(!bundle.can_extend(0));
  REQUIRE(bundle.last().empty());
  std::ranges::fill(bundle.add(10), std::byte{1});
  std::ranges::fill(bundle.add(4), std::byte{2});
  for (int i = 0; i < 2; ++i) {
    REQUIRE(bundle.can_extend(7));
    std::ranges::fill(bundle.extend(7), std::byte{3});
  }
  bundle.last().front() = std::byte{9};
  REQUIRE(bundle.can_extend(100 - 8 - 10 - 8 - 18));
  REQUIRE(!bundle.can_extend(100 - 8 - 10 - 8 - 18 + 1));
  Message grown(18, std::byte{3});
  std::fill_n(grown.begin(), 4, std::byte{2});
  grown.front() = std::byte{9};
  REQUIRE(bundle.messages() == 2);
  REQUIRE(taken_apart(bundle.bytes()) == std::vector<Message>{Message(10, std::byte{1}), grown});
}

TEST_CASE("A bundle for which there is no memory stays as it is") {
  constexpr std::uint64_t too_many_bytes = std::uint64_t{1} << 63U;  // no vector takes them
  Bundle bundle(100);
  REQUIRE_THROWS(bundle.add(too_many_bytes));
  REQUIRE(bundle.messages() == 0);
  REQUIRE(!bundle.can_extend(0));
  std::ranges::fill(bundle.add(3), std::byte{1});
  REQUIRE_THROWS(bundle.add(too_many_bytes));
  REQUIRE_THROWS(bundle.extend(too_many_bytes));
  REQUIRE(bundle.last().size() == 3);
  REQUIRE(taken_apart(bundle.bytes()) == std::vector<Message>{Message(3, std::byte{1})});
}

TEST_CASE("A bundle that is cut off gives the messages in front of the cut") {
  Bundle bundle(1000);
  for (std::uint64_t bytes : {5, 0, 9}) {
    std::ranges::fill(bundle.add(bytes), std::byte{1});
  }
  const std::span<const std::byte> whole = bundle.bytes();
  for (std::size_t left = 0; left < whole.size(); ++left) {
    const bool at_end = left == 0 || left == 8 + 5 || left == 8 + 5 + 8;
    const std::size_t messages = (left >= 8 + 5 ? 1 : 0) + (left >= 8 + 5 + 8 ? 1 : 0);
    REQUIRE(taken_apart(whole.first(left), at_end).size() == messages);
  }
}

TEST_CASE("A bundle without room takes nothing") {
  REQUIRE(!Bundle().has_room(0));
  REQUIRE(!Bundle(7).has_room(0));
  Bundle bundle(9);
  REQUIRE(!bundle.has_room(2));
  REQUIRE(bundle.has_room(1));
  static_cast<void>(bundle.add(1));
  REQUIRE(!bundle.has_room(0));
}

constexpr unsigned at_once = 2;

TEST_CASE("The first operations of a turn go at once, the others wait") {
  BurstPace pace(at_once);
  for (const std::uint32_t turn : {0U, 2U, 5U, 0xffffffffU, 1U}) {
    for (unsigned i = 0; i < at_once; ++i) REQUIRE(!pace.holds(turn));
    for (int i = 0; i < 5; ++i) REQUIRE(pace.holds(turn));
  }
}

TEST_CASE("A row of operations goes on over the turns of its own calls") {
  BurstPace pace(at_once);
  std::uint32_t turn = 0xfffffffeU;
  for (unsigned i = 0; i < 3 * at_once; ++i) static_cast<void>(pace.holds(turn));
  for (int i = 0; i < 10; ++i) REQUIRE(pace.holds(++turn));
  ++turn;
  REQUIRE(!pace.holds(++turn));  // the program has waited in between
}

TEST_CASE("Single operations with turns between them never wait") {
  BurstPace pace(at_once);
  for (std::uint32_t turn = 0; turn < 10; ++turn) REQUIRE(!pace.holds(turn));
}

TEST_CASE("A row that the program has waited for begins anew") {
  BurstPace pace(at_once);
  for (unsigned i = 0; i < at_once + 1; ++i) static_cast<void>(pace.holds(7));
  for (int round = 0; round < 3; ++round) {
    pace.restart();
    for (unsigned i = 0; i < at_once; ++i) REQUIRE(!pace.holds(7));
    REQUIRE(pace.holds(7));
  }
}

TEST_CASE("A row has ended when a turn has brought no more") {
  BurstPace pace(at_once);
  for (unsigned i = 0; i < at_once + 1; ++i) static_cast<void>(pace.holds(7));
  REQUIRE(!pace.has_ended());
  REQUIRE(pace.holds(8));
  REQUIRE(!pace.has_ended());
  REQUIRE(pace.has_ended());
}

}  // namespace overlap::newrma
