// Parameters and counters of what the components share (common_overlap_*).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

namespace overlap::common {

#define OVERLAP_TUNABLES_FILE "ompi/mca/common/overlap/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

/// @thread  progress lock held for every change
struct Counters {
  std::uint64_t interrupt_turns = 0;
  std::uint64_t interrupt_turns_empty = 0;
  std::uint64_t interrupt_rings = 0;
  std::uint64_t interrupt_left = 0;
  std::uint64_t interrupt_copies = 0;
  std::uint64_t early_kept = 0;
  std::uint64_t wakes_rung = 0;
  std::uint64_t wakes_handed_on = 0;
  std::uint64_t wakes_futile = 0;
};

/// One per process, whichever components are loaded; MPI_T reads the counters by address.
extern Tunables tunables;
extern Counters counters;

/// No component, but Open MPI names parameters and what is published after one: common_overlap.
[[nodiscard]] const mca_base_component_t& name_bearer();

/// Register parameters and counters; in the register function of each component that uses them.
/// @param user  that component; ompi_info, which knows nothing of common_overlap, lists the
///              parameters as synonyms of its own
/// @returns  OPAL_SUCCESS or Open MPI's error
[[nodiscard]] int register_settings(const mca_base_component_t& user) noexcept;
/// Check the parameters; in the open function. Shows one message that names everything wrong.
/// @returns  OPAL_SUCCESS or OPAL_ERR_BAD_PARAM
[[nodiscard]] int check_settings() noexcept;
/// Ask for the counters' table in MPI_Finalize. Once per process.
void request_settings_report();

/// Is asynchronous progress switched on? A program may switch it at run time. @thread  any
[[nodiscard]] inline bool progress_is_on() noexcept {
  return std::atomic_ref(tunables.progress).load(std::memory_order_relaxed) != progress_choice::off;
}

}  // namespace overlap::common
