// Show a message to the user through Open MPI's help system: framed, and once per job however many ranks send it.
#pragma once

#include <string>

namespace overlap {

/// Show text under a topic of help-overlap.txt. Equal topics of several ranks are shown once, with a count.
/// @param topic  "bad-tunable", "unknown-tunable" or "wrong-openmpi"
void show_message(const char* topic, const std::string& text) noexcept;

}  // namespace overlap
