// RTRs that have outlived their receives; fragments that come before their RTR-ACK.
// SPDX-License-Identifier: BSD-3-Clause
#include "ghosts.hpp"

#include "communicator.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

std::vector<std::byte> of_bytes(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

}  // namespace

TEST_CASE("Ghosts: only those that a sender can still use count for their envelope", "[P1.7]") {
  Ghosts ghosts;
  Peer mine;
  Peer other;
  CHECK(ghosts.empty());
  Ghost& ghost = ghosts.add(mine, 5);
  CHECK(ghost.peer == &mine);
  CHECK(ghost.tag == 5);
  ghost.state = ReceiveState::ghost;
  CHECK(ghosts.any(mine, 5));
  CHECK_FALSE(ghosts.any(mine, 6));
  CHECK_FALSE(ghosts.any(other, 5));
  ghost.state = ReceiveState::collecting;
  CHECK_FALSE(ghosts.any(mine, 5));
  CHECK_FALSE(ghosts.empty());
  ghosts.remove(ghost);
  CHECK(ghosts.empty());
}

TEST_CASE("Ghosts: a visit of one envelope meets its ghosts in their order", "[P1.7]") {
  Ghosts ghosts;
  Peer mine;
  Peer other;
  Ghost* all[] = {&ghosts.add(mine, 5), &ghosts.add(mine, 5), &ghosts.add(mine, 6),
                  &ghosts.add(other, 5)};
  const auto of = [&](const Peer& peer, std::int32_t tag) {
    std::vector<Ghost*> met;
    ghosts.for_each_of(peer, tag, [&](Ghost& ghost) { met.push_back(&ghost); });
    return met;
  };
  CHECK(of(mine, 5) == std::vector{all[0], all[1]});
  CHECK(of(mine, 6) == std::vector{all[2]});
  CHECK(of(other, 6).empty());
  ghosts.remove(*all[0]);
  CHECK(of(mine, 5) == std::vector{all[1]});
  std::size_t count = 0;
  ghosts.for_each([&](Ghost&) { ++count; });
  CHECK(count == 3);
}

TEST_CASE("Ghosts: one that a receive waits for frees its message, others leave it", "[P1.7]") {
  for (const bool matched : {false, true}) {
    CAPTURE(matched);
    ArrivedPool pool;
    Ghosts ghosts;
    Peer mine;
    ReceiveOp receive;
    Ghost& ghost = ghosts.add(mine, 5);
    ghost.message = pool.make(64);
    if (matched) ghost.receive = &receive;
    Arrived* message = ghost.message;
    ghosts.remove(ghost);
    CHECK(pool.kept_bytes() == (matched ? 64 : 0));
    if (!matched) Arrived::destroy(message);
  }
}

TEST_CASE("Early fragments: all of a message fit, one byte more does not") {
  EarlyFragments early;
  const auto half = of_bytes(50, 1);
  const auto byte = of_bytes(1, 2);
  CHECK(early.put(7, 0, half, 100));
  CHECK_FALSE(early.put(7, 50, of_bytes(51, 3), 100));
  CHECK(early.put(7, 50, half, 100));
  CHECK_FALSE(early.put(7, 100, byte, 100));
  CHECK(early.put(8, 0, byte, 100));  // another message

  const auto taken = early.take(7);
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].offset_bytes == 0);
  CHECK(taken[1].offset_bytes == 50);
  CHECK(taken[1].payload == half);
  CHECK(early.take(7).empty());
  CHECK_FALSE(early.empty());
  CHECK(early.take(8).size() == 1);
  CHECK(early.empty());
}
