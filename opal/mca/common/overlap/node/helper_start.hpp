// Starting the helper of a node from a process that needs it first.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace overlap::node {

enum class HelperStart : std::uint8_t {
  runs,    ///< one runs now, this one or another one
  failed,  ///< it has ended with an error, or cannot be executed
  unknown  ///< not within 0.2 s, or other code of this process has collected its exit status
};

/// Start `program --exit-when-idle` and wait until it can be asked, which is when its detached copy
/// listens, after some ten milliseconds. It inherits no descriptor and no blocked signal of this
/// process, and ends one second after its last client.
///
/// @param program  ompi-progressd, by its path or to be found in PATH
/// @param which  see helper_socket_name()
/// @thread  any; starts a process, as posix_spawn does
[[nodiscard]] HelperStart start_helper(const std::string& program, const std::string& which = {});

}  // namespace overlap::node
