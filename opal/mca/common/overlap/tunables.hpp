// Tunables: one table per component becomes MCA registration, range check, man page and README
// rows.
//
// The table is a file tunables.def of rows
//   X(name, type, default, min, max, unit, level, "One sentence, ends with a full stop.")
//     type: u32 u64 i32 flag
//   X_CHOICE(name, default, level, "One sentence, ends with a full stop.", first, second, ...)
//   X_TEXT(name, level, "One sentence, ends with a full stop.")
//     empty by default
// and tunables_expand.hpp turns it into a struct with the values and a function that lists its
// rows. A choice that is a word of C++ is written with an underscore behind it (auto_), which users
// do not see.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct mca_base_component_2_1_0_t;  // Open MPI's mca_base_component_t in 4.1.x and 5.0.x

namespace overlap {

enum class TunableType : std::uint8_t { u32, u64, i32, flag, choice, text };

/// One tunable. Limits are inclusive; a u64 goes up to 2^63 - 1.
struct TunableRow {
  const char* name;
  TunableType type;
  std::int64_t default_value;  ///< choice: index of the name
  std::int64_t min;
  std::int64_t max;
  const char* unit;     ///< "" for none
  int level;            ///< 1-3 who runs programs, 4-6 who tunes, 7-9 who develops
  const char* help;     ///< one sentence, ends with a full stop
  const char* choices;  ///< choice: "first, second, ..."; else ""
  void* storage;  ///< std::uint32_t, std::uint64_t, std::int32_t, bool, an int-based enum, or const
                  ///< char* (text; null is empty)
};

/// Number of names in "first, second, ...".
[[nodiscard]] constexpr std::int64_t count_choices(std::string_view names) noexcept {
  std::int64_t count = names.empty() ? 0 : 1;
  for (char c : names) count += c == ',';
  return count;
}

// --- pure part -------------------------------------------------------------------------

/// Names of a choice in order of their values.
[[nodiscard]] std::vector<std::string> choice_names(const TunableRow& row);

/// "0 .. 4096 slots", "true | false", "first | second".
[[nodiscard]] std::string allowed_text(const TunableRow& row);

/// A value as a user writes it.
[[nodiscard]] std::string value_text(const TunableRow& row, std::int64_t value);

/// The value now in the row's storage as a user writes it.
[[nodiscard]] std::string stored_text(const TunableRow& row);

/// The help sentence with level, default, range and unit appended, for ompi_info.
[[nodiscard]] std::string help_text(const TunableRow& row);

/// Check the value in the row's storage against the range.
/// @returns  empty, or what is wrong with it and what to change
[[nodiscard]] std::string check_value(std::string_view prefix, const TunableRow& row);

/// Check a value as the user wrote it; finds what Open MPI's conversion hides (text that is no
/// number, wrap-around).
/// @param prefix  "<framework>_<component>_"
/// @param given   for instance "64k"; suffixes k, m, g are Open MPI's
/// @returns  empty, or what is wrong with it and what to change
[[nodiscard]] std::string check_text(std::string_view prefix, const TunableRow& row,
                                     std::string_view given);

/// What is wrong with the text of a choice that Open MPI has refused.
[[nodiscard]] std::string choice_fault(std::string_view prefix, const TunableRow& row,
                                       std::string_view given);

/// Find environment variables that look like tunables of this component but are none.
/// @param environment  "NAME=value" each
/// @param also_known   full names without OMPI_MCA_ that others registered
/// @returns  one sentence per unknown name, with the nearest known name
[[nodiscard]] std::vector<std::string> unknown_names(
    std::string_view prefix, std::span<const TunableRow> rows,
    std::span<const std::string_view> environment,
    std::span<const std::string_view> also_known = {});

/// Check that a table is well formed: sentences, levels, defaults inside limits, no name twice.
/// @returns  empty, or the first thing that is wrong
[[nodiscard]] std::string table_fault(std::span<const TunableRow> rows);

[[nodiscard]] std::string render_markdown(std::string_view prefix,
                                          std::span<const TunableRow> rows);
[[nodiscard]] std::string render_man(std::string_view prefix, std::span<const TunableRow> rows);

// --- Open MPI part (tunables_mca.cpp) --------------------------------------------------

/// Register every row with the MCA; call in the component's register function. A flag or choice
/// with an unknown value keeps its default for now, and check_tunables fails; for a flag Open MPI
/// has told the user.
/// @param changeable  storage of the rows that a program may write through MPI_T while it runs
/// @returns  OPAL_SUCCESS or Open MPI's error
[[nodiscard]] int register_tunables(const mca_base_component_2_1_0_t* component,
                                    std::span<const TunableRow> rows,
                                    std::span<const void* const> changeable = {}) noexcept;

/// Let each row of `component`, registered before, be set under `user`'s name, too.
/// @returns  the same
[[nodiscard]] int register_synonyms(const mca_base_component_2_1_0_t& component,
                                    std::span<const TunableRow> rows,
                                    const mca_base_component_2_1_0_t& user) noexcept;

/// Check all registered values and look for unknown names; call in the component's open function.
/// Shows one message that names everything wrong.
/// @returns  OPAL_SUCCESS (unknown names only warn) or OPAL_ERR_BAD_PARAM
[[nodiscard]] int check_tunables(const mca_base_component_2_1_0_t* component,
                                 std::span<const TunableRow> rows) noexcept;

}  // namespace overlap
