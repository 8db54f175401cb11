// How long a thread has waited for a processor, by the kernel's account.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "opal/mca/common/overlap/descriptor.hpp"

namespace overlap::node {

/// The second number of a line of /proc/PID/task/TID/schedstat: ns on a run queue without running.
/// @returns  nullopt: it is not such a line
[[nodiscard]] std::optional<std::uint64_t> run_delay_in(std::string_view schedstat) noexcept;

class RunDelay {
 public:
  /// @param thread  of this process
  /// @returns  false: the kernel keeps no account
  [[nodiscard]] bool open(int thread) noexcept;
  /// Since the thread began. @returns  nullopt: not open, or the thread has ended
  [[nodiscard]] std::optional<std::uint64_t> ns() const noexcept;

 private:
  Descriptor file_;
};

}  // namespace overlap::node
