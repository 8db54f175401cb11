// Peers: found by number and by key, and what one costs that is never talked to.
// SPDX-License-Identifier: BSD-3-Clause
#include "peer_table.hpp"

#include <malloc.h>

#include <algorithm>
#include <random>
#include <unordered_map>

#include "used_peers.hpp"

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

/// As large as the endpoint that btl/ring hands to Open MPI (btl_ring_endpoint.hpp asserts that).
class Peer {
 public:
  Peer(const char* key, std::uint32_t number) : key_(key), number_(number) {}
  [[nodiscard]] const char* key() const noexcept { return key_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

 private:
  const char* key_;
  std::uint32_t number_;
  std::unique_ptr<int> connections_;
};
static_assert(sizeof(Peer) == 24);

Peer& add(PeerTable<Peer>& table, const char* key) {
  return table.add(std::make_unique<Peer>(key, table.next_number()));
}

[[maybe_unused]] std::size_t allocated_bytes() {
  const struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

}  // namespace

// A sanitizer's allocator keeps no statistics.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("PeerTable: a peer that is never talked to costs 64 bytes at most") {
  static const std::vector<char> keys(100000);
  for (const std::size_t count : {1000UL, 1025UL, 10000UL, 100000UL}) {
    const std::size_t before = allocated_bytes();
    PeerTable<Peer> table;
    UsedPeers<Peer> used;
    for (std::size_t i = 0; i < count; ++i) {
      Peer& peer = add(table, &keys[i]);
      if (i + 1 == count) used.add(peer.number(), peer);  // all others have smaller numbers
    }
    CAPTURE(count);
    CHECK((allocated_bytes() - before) / count <= 64);
    CHECK((allocated_bytes() - before) / count >= 32);  // something is counted
  }
}
#endif

TEST_CASE("PeerTable: peers come and go, numbers stay") {
  static const std::vector<char> keys(64);
  PeerTable<Peer> table;
  UsedPeers<Peer> used;
  std::unordered_map<const char*, std::uint32_t> expected;
  std::uint32_t added = 0;
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i) {
    const char* key = &keys[random() % keys.size()];
    Peer* found = table.find(key);
    REQUIRE((found != nullptr) == expected.contains(key));
    if (found == nullptr) {
      Peer& peer = add(table, key);
      REQUIRE(peer.number() == added++);  // never one that was given before
      REQUIRE(used.at(peer.number()) == nullptr);
      expected[key] = peer.number();
      used.add(peer.number(), peer);
    } else {
      REQUIRE(found->number() == expected[key]);
      REQUIRE(used.at(expected[key]) == found);
      used.erase(found->number());
      REQUIRE(table.take(*found).get() == found);
      REQUIRE(used.at(expected[key]) == nullptr);
      expected.erase(key);
    }
    const auto& all = used.by_number();
    REQUIRE(all.size() - std::ranges::count(all, nullptr) == expected.size());
  }
  for (const auto& [key, number] : expected) {
    CHECK(table.find(key)->number() == number);
    CHECK(used.at(number)->key() == key);
  }
  CHECK(used.at(table.next_number()) == nullptr);
}

TEST_CASE("UsedPeers: the first one may have any number, and one that was never used may go") {
  Peer peer("key", 5);
  UsedPeers<Peer> used;
  used.erase(7);
  CHECK(used.at(5) == nullptr);
  used.add(5, peer);
  CHECK(used.at(4) == nullptr);
  CHECK(used.at(5) == &peer);
  CHECK(used.at(6) == nullptr);
}
