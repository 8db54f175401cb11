// Keys with which a BTL accesses the memory of a window.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <span>
#include <unordered_map>

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
/// Does the kernel copy between these two processes of a node, without a key? Adapters that connect
/// processes of a node do not.
[[nodiscard]] bool kernel_copies(Endpoint& endpoint) noexcept;

/// This rank's memory, registered once with each BTL by which others access it.
///
/// Programs may free the memory before the window: the registration must not belong to the BTL's
/// cache, which ends the job then.
class ExposedMemory {
 public:
  /// @param endpoint  of a rank that accesses it; is there as long as this
  /// @returns  the key for that rank; empty: the memory cannot be registered
  [[nodiscard]] std::span<const std::byte> key_for(Endpoint& endpoint, const WindowMemory& memory);

 private:
  std::unordered_map<const mca_btl_base_module_t*, Registration> registrations_;
};

}  // namespace overlap::newrma
