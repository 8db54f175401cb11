// Which windows have non-blocking epochs: those whose module belongs to osc/newrma.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"
#include "ompi/mca/osc/newrma/nonblocking.h"

namespace overlap {

/// How a module of osc/newrma begins.
struct NonblockingModule {
  ompi_osc_base_module_t super;
  const overlap_nonblocking_calls* calls;
};

/// Find the calls of a module. Runs no code of the module's component, and reads nothing behind
/// Open MPI's part of a module before its owner is known.
///
/// @returns  null: another component's module, or of a version that has fewer calls
/// @thread   any
[[nodiscard]] const overlap_nonblocking_calls* find_nonblocking_calls(
    const ompi_osc_base_module_t* module) noexcept;

}  // namespace overlap
