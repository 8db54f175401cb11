// Keys with which a BTL accesses the memory of a window.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <span>
#include <unordered_map>

#include "ompi/mca/common/overlap/kernel_copy.hpp"
#include "ompi/mca/common/overlap/registration.hpp"

#include "osc_newrma_memory.hpp"

namespace overlap::newrma {

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
