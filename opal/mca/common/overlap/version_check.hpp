// Is the Open MPI that runs the one these components were built for?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace overlap {

/// One C structure that the components extend or embed: its size as compiled and as the running
/// library says.
struct SizeRow {
  const char* type_name;
  std::size_t compiled_bytes;  ///< sizeof(X)
  std::size_t running_bytes;   ///< X_class.cls_sizeof
};

[[nodiscard]] bool sizes_match(std::span<const SizeRow> rows) noexcept;

/// @returns  empty, or one sentence that names every structure that differs
[[nodiscard]] std::string size_fault(std::span<const SizeRow> rows);

/// @returns  empty when both name the same release, or one sentence for the user
[[nodiscard]] std::string version_fault(std::string_view configured, std::string_view running);

/// Version of the running Open MPI, for instance "4.1.4". (version_check_mca.cpp)
[[nodiscard]] const char* running_version() noexcept;

/// Compare the configured with the running version and the sizes; show one message when they
/// differ. Call first in the component's open function. (version_check_mca.cpp)
/// @param component_name  for the message, for instance "pml/speculative"
[[nodiscard]] bool check_running_openmpi(const char* component_name,
                                         std::span<const SizeRow> rows) noexcept;

}  // namespace overlap
