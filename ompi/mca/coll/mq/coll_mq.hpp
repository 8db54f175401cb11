// coll/mq: its tunables and counters.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

namespace overlap::coll_mq {

#define OVERLAP_TUNABLES_FILE "ompi/mca/coll/mq/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

extern Tunables tunables;
/// As Open MPI knows the component.
[[nodiscard]] const mca_base_component_t* component() noexcept;

/// Counted for all communicators together. @thread  progress lock held
struct Counters {
  std::uint64_t communicators = 0;
  std::uint64_t barriers = 0;
  std::uint64_t nonblocking = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_early = 0;
  std::uint64_t messages_stale = 0;
  std::uint64_t thread_messages = 0;
  std::uint64_t thread_ended = 0;
  std::uint64_t left = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t device_barriers = 0;
};
extern Counters counters;

}  // namespace overlap::coll_mq
