// Names that users give: which components a list selects, which known name was probably meant.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace overlap {

/// Number of typing errors between two names: one letter left out, added, wrong, or two neighbours
/// swapped.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// @returns  the candidate with the fewest errors, the first of equals; nothing when more than a
/// third of the
///           longer name is wrong
[[nodiscard]] std::optional<std::string_view> nearest_name(
    std::string_view given, std::span<const std::string_view> candidates);

/// Does a framework's parameter (pml, btl) name a component? A list that begins with ^ keeps
/// components out and names none. @param list  separated by commas; may be null
[[nodiscard]] bool is_named(const char* list, std::string_view component) noexcept;

}  // namespace overlap
