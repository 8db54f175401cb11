// Which ranks of a communicator would let osc/newrma make a window, and how gladly.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstdint>

namespace overlap::newrma {

/// Let all processes know this one's priority. Before Open MPI exchanges what has been published.
[[nodiscard]] int publish_priority(std::uint32_t priority) noexcept;

/// The least priority among the ranks of a communicator: each process selects the component of a
/// window by itself, and ranks with different ones would wait for each other for ever.
struct Offer {
  std::uint32_t priority = 0;
  int rank_without = -1;  ///< one without it, or with another version; -1: none
};
/// @thread  MPI thread
[[nodiscard]] Offer offer_of(ompi_communicator_t& comm, std::uint32_t own_priority);

}  // namespace overlap::newrma
