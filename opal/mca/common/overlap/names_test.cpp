// Edit distance and nearest name.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/names.hpp"
#include "test/support/catch.hpp"

#include <array>

using overlap::edit_distance;
using overlap::nearest_name;

TEST_CASE("edit distance counts typing errors", "[names]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("slots", "slots") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("slots", "slot") == 1);    // left out
  CHECK(edit_distance("slots", "slotts") == 1);  // added
  CHECK(edit_distance("slots", "slats") == 1);   // wrong
  CHECK(edit_distance("slots", "sltos") == 1);   // swapped
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
}

TEST_CASE("the nearest name is near", "[names]") {
  const std::array<std::string_view, 3> known{"ring_slots", "slot_bytes", "priority"};
  CHECK(nearest_name("ring_slot", known) == "ring_slots");
  CHECK(nearest_name("slots_byte", known) == "slot_bytes");
  CHECK(nearest_name("piroirty", known) == "priority");
  CHECK_FALSE(nearest_name("colour", known).has_value());
  CHECK_FALSE(nearest_name("ring", {}).has_value());
}

TEST_CASE("of equally near names the first is taken", "[names]") {
  const std::array<std::string_view, 2> known{"send_depth", "sent_depth"};
  CHECK(nearest_name("senx_depth", known) == "send_depth");
}

TEST_CASE("a list names whole components, and none when it keeps some out", "[names]") {
  CHECK(overlap::is_named("speculative", "speculative"));
  CHECK(overlap::is_named("ob1,speculative", "speculative"));
  CHECK(overlap::is_named("self,ring,tcp", "ring"));
  CHECK_FALSE(overlap::is_named("self,string,tcp", "ring"));
  CHECK_FALSE(overlap::is_named("speculative2", "speculative"));
  CHECK_FALSE(overlap::is_named("^speculative", "speculative"));
  CHECK_FALSE(overlap::is_named("", "speculative"));
  CHECK_FALSE(overlap::is_named(nullptr, "speculative"));
}
