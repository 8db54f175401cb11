// Show a message to the user through Open MPI's help system: framed, once per job however many ranks send it.
#pragma once

#include <string_view>

namespace overlap {

enum class Severity : unsigned char { error, warning };

/// Show text under a framed header.
/// @param about  what equal messages of other ranks have in common, for instance "tunables of pml/speculative"
void show_message(Severity severity, const char* about, std::string_view text) noexcept;

}  // namespace overlap
