// Requests of one-sided communication: of operations (MPI_Rput) and of epochs (MPIX_Win_iunlock).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <vector>

#include "ompi/mca/common/overlap/protocol/request_life.hpp"

#include "protocol/epochs.hpp"

namespace overlap::newrma {

/// To whom this rank's operations, and the notices that end its epochs, must have gone out of this
/// process before a call, or its request, ends: afterwards the process may leave MPI, and targets
/// wait for what had no room.
enum class Leaves : std::uint8_t { none, to_target, to_group, all };

/// What a call waits for. Its `happened` may be read without the progress lock.
struct WaitedEvent : Event {
  Leaves leaves = Leaves::none;
  Rank target = 0;          ///< of Leaves::to_target
  std::vector<Rank> group;  ///< of Leaves::to_group
  /// E1 set under the lock (release) -> E2 read by who waits (acquire): what was done before.
  std::atomic<bool> has_happened{false};
  struct WindowRequest* request = nullptr;  ///< completed then, if there is one
};

/// The first member is what MPI knows.
///
/// @thread  progress lock held, but where said otherwise
struct WindowRequest {
  ompi_request_t ompi;
  RequestLife life;
  WaitedEvent event;

  /// @returns  an active one. Throws std::bad_alloc.
  [[nodiscard]] static WindowRequest& make(ompi_win_t& win);
  /// What it stands for has ended: an MPI thread completes it.
  /// @param error  OMPI_SUCCESS, or what MPI_Wait returns
  void end(int error = OMPI_SUCCESS);
};

}  // namespace overlap::newrma
