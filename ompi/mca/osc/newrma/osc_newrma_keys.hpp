// Keys with which a BTL accesses the memory of a window.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <span>

#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/registration.hpp"

#include "osc_newrma_memory.hpp"

namespace overlap::newrma {

/// The rail over which puts and gets to a process go without a message for each: there is one, and
/// it also carries the messages, so that none overtakes a put. @returns  nullptr: there is none
[[nodiscard]] Rail* transfer_rail(Endpoint& endpoint) noexcept;
/// Does that rail want a key of the target (an adapter does, the kernel's copy does not)?
[[nodiscard]] inline bool needs_key(const Rail& rail) noexcept {
  return rail.btl().btl_register_mem != nullptr;
}

/// This rank's memory, registered for the accesses of one other rank. The BTL's cache makes one
/// registration of those for several ranks.
class ExposedMemory {
 public:
  /// @returns  the key for that rank; empty: the memory cannot be registered
  [[nodiscard]] std::span<const std::byte> expose(Endpoint& endpoint, const WindowMemory& memory);
  /// Has that rank been told?
  [[nodiscard]] bool told() const noexcept { return told_; }
  void drop() noexcept { registration_.drop(); }

 private:
  Registration registration_;
  bool told_ = false;
};

}  // namespace overlap::newrma
