// What has ended and is not complete towards MPI yet; only MPI threads complete it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <vector>

namespace overlap {

/// Requests whose protocol has ended. Protocol code and BTL callbacks append, in whatever call and
/// thread they run; drain() completes them one after the other.
///
/// Completing runs somebody else's callback (of a collective, of one-sided communication), which
/// may communicate, and drops references whose last one takes a communicator along. Both happen
/// here only: inside progress and inside calls that wait, never inside isend, irecv, start, free or
/// probe, never under the lock, and in one place for every kind of request. What ends where neither
/// can be needs no queue.
///
/// Ownership
///   ring_, first_, count_   progress lock
class CompletionQueue {
 public:
  /// Complete one request: called without the lock, by an MPI thread. The request belongs to the
  /// callee from then on.
  using Complete = void (*)(ompi_request_t& request) noexcept;

  /// @param complete  for requests that are appended without a function of their own
  explicit CompletionQueue(Complete complete) noexcept : complete_(complete) {}

  /// @thread  progress lock held; throws std::bad_alloc
  void append(ompi_request_t& request) { append(request, complete_); }
  void append(ompi_request_t& request, Complete complete);
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// Complete what is in the queue, and what callbacks add to it.
  ///
  /// One at a time, so that a callback that waits for a later entry finds it here.
  /// @returns  requests completed
  /// @thread   MPI threads only, progress lock NOT held
  std::size_t drain() noexcept;
  /// Is this thread inside drain()?
  [[nodiscard]] static bool draining() noexcept;

 private:
  struct Entry {
    ompi_request_t* request = nullptr;
    Complete complete = nullptr;
  };
  [[nodiscard]] Entry pop() noexcept;

  Complete complete_;
  std::vector<Entry> ring_;  // [a power of two]
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace overlap
