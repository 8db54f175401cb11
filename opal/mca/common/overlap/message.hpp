// Show a message to the user, framed as Open MPI's help texts are.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace overlap {

/// Write text and the host's name to stderr. Of the processes of a job on one node only the first
/// to report a text reports it.
/// @param same  texts with the same value count as the same text; empty: the text itself
///
/// Not opal_show_help: with 4.1.4's mpirun it lost messages in up to a third of the runs that ended
/// soon after, Open MPI's own messages too ("ORTE_ERROR_LOG: Data unpack would read past end of
/// buffer ... show_help.c").
void show_message(const std::string& text, const std::string& same = {}) noexcept;

}  // namespace overlap
