// Capabilities: found by module, replaced, withdrawn.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/capability.hpp"

#include <array>

#include "test/support/catch.hpp"

using namespace overlap;

namespace {

/// The list only compares addresses of modules.
const mca_btl_base_module_t* module_at(const char& place) {
  return reinterpret_cast<const mca_btl_base_module_t*>(&place);
}

}  // namespace

TEST_CASE("Capability: a BTL without one, with one, with another one, and withdrawn") {
  const std::array<char, 2> places{};
  const auto* ring = module_at(places[0]);
  const auto* other = module_at(places[1]);
  const BtlCapability first{.chained_max_bytes = 16};
  const BtlCapability second{.puts_end_at_peer = true};
  CHECK(find_capability(ring) == nullptr);
  offer_capability(ring, &first);
  CHECK(find_capability(ring) == &first);
  CHECK(find_capability(other) == nullptr);
  offer_capability(ring, &second);
  CHECK(find_capability(ring) == &second);
  offer_capability(other, &first);
  withdraw_capability(ring);
  CHECK(find_capability(ring) == nullptr);
  CHECK(find_capability(other) == &first);
  withdraw_capability(ring);  // nothing to withdraw
  withdraw_capability(other);
  CHECK(find_capability(other) == nullptr);
}

TEST_CASE("Capability: what is not said is not offered") {
  const BtlCapability nothing;
  CHECK(nothing.send_behind == nullptr);
  CHECK(nothing.chained_max_bytes == 0);
  CHECK_FALSE(nothing.puts_end_at_peer);
  CHECK(nothing.in_place_min_bytes == 0);
}
