// Tunables without Open MPI: expansion, range checks, unknown names, texts.
// SPDX-License-Identifier: BSD-3-Clause
#define OVERLAP_TUNABLES_FILE "opal/mca/common/overlap/tunables_example.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"
#include "opal/mca/common/overlap/contains.hpp"

#include <limits>

namespace {

using namespace overlap;

constexpr std::string_view prefix = "pml_example_";

struct Table {
  Tunables values;
  std::array<TunableRow, 7> rows = tunable_rows(values);

  const TunableRow& operator[](std::string_view name) const {
    for (const TunableRow& row : rows)
      if (name == row.name) return row;
    FAIL("no row " << name);
    return rows[0];
  }
};

/// A row that stands alone, to be spoilt.
TunableRow good_row() {
  static std::uint32_t storage = 1;
  return {"good", TunableType::u32, 1, 0, 2, "things", 1, "Good.", "", &storage};
}

}  // namespace

TEST_CASE("a table becomes a struct with defaults", "[tunables]") {
  const Tunables values;
  CHECK(values.ring_slots == 100);
  CHECK(values.limit_bytes == 65536);
  CHECK(values.priority == -5);
  CHECK(values.speculation);
  CHECK(values.hazard_control == hazard_control_choice::envelope_sequence);
  static_assert(std::is_same_v<decltype(values.ring_slots), std::uint32_t>);
  static_assert(std::is_same_v<decltype(values.limit_bytes), std::uint64_t>);
  static_assert(std::is_same_v<decltype(values.priority), std::int32_t>);
  static_assert(std::is_same_v<decltype(values.speculation), bool>);
}

TEST_CASE("a table becomes rows over that struct", "[tunables]") {
  Table table;
  REQUIRE(table.rows.size() == 7);
  CHECK(table["ring_slots"].storage == &table.values.ring_slots);
  CHECK(choice_names(table["hazard_control"]) ==
        std::vector<std::string>{"eager_flag", "envelope_sequence"});
  CHECK(table["hazard_control"].max == 1);
  CHECK(table["hazard_control"].default_value == 1);
  CHECK(choice_names(table["fabric"]) == std::vector<std::string>{"auto", "verbs"});
  CHECK(table.values.fabric == fabric_choice::auto_);
  CHECK(stored_text(table["device"]).empty());
  CHECK(allowed_text(table["device"]) == "text");
  table.values.device = "mlx5_0:1";
  CHECK(stored_text(table["device"]) == "mlx5_0:1");
  CHECK(check_value("", table["device"]).empty());
  CHECK(table_fault(table.rows).empty());
  for (const TunableRow& row : table.rows) CHECK(check_value(prefix, row).empty());
}

TEST_CASE("values are written as users write them", "[tunables]") {
  Table table;
  CHECK(stored_text(table["ring_slots"]) == "100");
  CHECK(stored_text(table["priority"]) == "-5");
  CHECK(stored_text(table["speculation"]) == "true");
  CHECK(stored_text(table["hazard_control"]) == "envelope_sequence");
  table.values.limit_bytes = std::numeric_limits<std::uint64_t>::max();
  CHECK(stored_text(table["limit_bytes"]) == "18446744073709551615");
  CHECK(allowed_text(table["ring_slots"]) == "5 .. 4096 slots");
  CHECK(allowed_text(table["priority"]) == "-10 .. 100");
  CHECK(allowed_text(table["speculation"]) == "true | false");
  CHECK(allowed_text(table["hazard_control"]) == "eager_flag | envelope_sequence");
  CHECK(help_text(table["ring_slots"]) ==
        "Eager buffers per peer in each direction. [level 5; default 100 slots; allowed 5 .. 4096 "
        "slots]");
}

TEST_CASE("limits belong to the range", "[tunables]") {
  Table table;
  const auto fault = [&](std::uint32_t slots) {
    table.values.ring_slots = slots;
    return check_value(prefix, table["ring_slots"]);
  };
  CHECK(fault(5).empty());
  CHECK(fault(4096).empty());
  CHECK_THAT(fault(4), contains("too small"));
  CHECK(fault(4097) ==
        "pml_example_ring_slots is 4097, too large; allowed: 5 .. 4096 slots. Set it to one of "
        "these, for instance "
        "\"--mca pml_example_ring_slots 100\" (the default), or remove the setting.");
}

TEST_CASE("other types are checked too", "[tunables]") {
  Table table;
  table.values.priority = -11;
  table.values.limit_bytes = std::numeric_limits<std::uint64_t>::max();
  table.values.hazard_control = static_cast<hazard_control_choice>(7);
  CHECK_THAT(check_value(prefix, table["priority"]), contains("is -11, too small"));
  CHECK_THAT(check_value(prefix, table["limit_bytes"]),
             contains("is 18446744073709551615, too large"));
  CHECK_THAT(check_value(prefix, table["hazard_control"]), contains("is 7, too large"));
}

TEST_CASE("text that Open MPI would bend is refused", "[tunables]") {
  Table table;
  const auto fault = [&](const char* name, std::string_view given) {
    return check_text(prefix, table[name], given);
  };

  for (const char* good : {"5", "4096", "0x10", "010", " 7 ", "+8", "1k", "4K"})
    CHECK(fault("ring_slots", good).empty());
  for (const char* bad : {"abc", "12abc", "1kb", "1.5", "-", "0x", "k", "08", "--5", "1 2"})
    CHECK_THAT(fault("ring_slots", bad), contains("which is no number") && contains(bad));
  CHECK_THAT(fault("ring_slots", "4294967301"), contains("too large"));  // 2^32 + 5 would become 5
  CHECK_THAT(fault("ring_slots", "1m"), contains("is 1m, too large"));
  CHECK_THAT(fault("ring_slots", "-5"), contains("is -5, too small"));
  CHECK_THAT(fault("limit_bytes", "99999999999999999999999"), contains("too large"));
  CHECK_THAT(fault("limit_bytes", "17179869184g"), contains("too large"));  // 2^64 would become 0
  CHECK(fault("limit_bytes", "1024g").empty());
  CHECK(fault("priority", "-10").empty());
  CHECK_THAT(fault("priority", "-11"), contains("too small"));
}

TEST_CASE("a choice is a name or its number", "[tunables]") {
  Table table;
  const auto fault = [&](std::string_view given) {
    return check_text(prefix, table["hazard_control"], given);
  };
  CHECK(fault("eager_flag").empty());
  CHECK(fault("1").empty());
  CHECK_THAT(fault("2"), contains("no choice"));
  CHECK_THAT(fault("eager"), contains("\"eager\"") && contains("eager_flag | envelope_sequence"));
}

TEST_CASE("an empty setting and a flag are left to Open MPI", "[tunables]") {
  Table table;
  CHECK(check_text(prefix, table["ring_slots"], "").empty());
  CHECK(check_text(prefix, table["speculation"], "perhaps").empty());
}

TEST_CASE("unknown names get the nearest known one", "[tunables]") {
  Table table;
  const std::array<std::string_view, 8> environment{
      "HOME=/root",
      "OMPI_MCA_pml=example",
      "OMPI_MCA_pml_example_ring_slots=7",
      "OMPI_MCA_pml_example_rings_lots=7",
      "OMPI_MCA_pml_example_colour=red",
      "OMPI_MCA_pml_example_verbose=1",
      "OMPI_MCA_pml_exam_ring_slot=7",
      "OMPI_MCA_pml_example_hazard=",
  };
  const std::array<std::string_view, 1> also{"pml_example_verbose"};
  const auto sentences = unknown_names(prefix, table.rows, environment, also);
  REQUIRE(sentences.size() == 3);
  CHECK(sentences[0] ==
        "There is no tunable pml_example_rings_lots; the setting has no effect. Did you mean "
        "pml_example_ring_slots?");
  CHECK(sentences[1] == "There is no tunable pml_example_colour; the setting has no effect.");
  CHECK_THAT(sentences[2], contains("pml_example_hazard;"));
}

TEST_CASE("a bad table is found out", "[tunables]") {
  const auto fault = [](auto spoil) {
    std::array<TunableRow, 1> rows{good_row()};
    spoil(rows[0]);
    return table_fault(rows);
  };
  CHECK(fault([](TunableRow&) {}).empty());
  CHECK_THAT(fault([](TunableRow& row) { row.help = "no stop"; }), contains("one sentence"));
  CHECK_THAT(fault([](TunableRow& row) { row.help = "One. Two."; }), contains("one sentence"));
  CHECK_THAT(fault([](TunableRow& row) { row.level = 10; }), contains("level"));
  CHECK_THAT(fault([](TunableRow& row) { row.min = 3; }), contains("min above max"));
  CHECK_THAT(fault([](TunableRow& row) { row.default_value = 3; }), contains("default outside"));
  CHECK_THAT(fault([](TunableRow& row) { row.storage = nullptr; }), contains("storage"));
  CHECK_THAT(fault([](TunableRow& row) { row.max = 1LL << 32; }), contains("u32 cannot hold"));
  CHECK_THAT(fault([](TunableRow& row) { row.type = TunableType::flag; }), contains("flag"));
  const std::array<TunableRow, 2> twice{good_row(), good_row()};
  CHECK(table_fault(twice) == "good is there twice");
}

TEST_CASE("README and man page rows", "[tunables]") {
  Table table;
  const std::span<const TunableRow> rows(table.rows);
  CHECK(render_markdown(prefix, rows.first(1)) ==
        "| tunable | default | allowed | level | what it does |\n"
        "|---|---|---|---|---|\n"
        "| `pml_example_ring_slots` | 100 | 5 .. 4096 slots | 5 | Eager buffers per peer in each "
        "direction. |\n");
  CHECK_THAT(render_markdown(prefix, rows), contains("eager_flag \\| envelope_sequence"));
  CHECK(render_man(prefix, rows.subspan(2, 1)) ==
        ".TP\n.B pml_example_priority\nPriority of this component.\nDefault \\-5; allowed \\-10 .. "
        "100; level 2.\n");
}
