// What the interrupt thread sleeps on: the descriptors of Open MPI's event loop, and a bell.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/protocol/interrupt_loop.hpp"
#include "opal/mca/common/overlap/node/bell.hpp"
#include "opal/mca/common/overlap/descriptor.hpp"

namespace overlap {

/// Lets a thread sleep in the kernel until a descriptor of the event loop can be served.
///
/// Reading is level-triggered: what nobody has read wakes again. Writing is edge-triggered: a
/// socket is writable nearly always, and only one that was full becomes writable.
///
/// A descriptor's number says little: the kernel gives it away again, and a copy that a child
/// process holds keeps a closed socket in the sets. Where one has gone the sets are made anew.
///
/// Ownership
///   bell_, nap_                        any thread sets them, the interrupt thread sleeps on them
///   readable_, writable_, woken_...    the interrupt thread
///   known_, found_, events_, is_due_   progress lock
class EventWatch {
 public:
  /// @param neighbours  rung by other processes of this node; nullptr, or not open: none
  /// @returns  false when the kernel refuses (no descriptors left); errno says why
  [[nodiscard]] bool open(node::Bell* neighbours = nullptr) noexcept;

  /// Take in the descriptors that the event loop watches now.
  /// @param turned_elsewhere  others have turned the event loop since: a number may stand for
  ///                          another connection than before
  /// @thread  interrupt thread, progress lock held
  void sync(bool turned_elsewhere) noexcept;
  /// Has the event loop got or lost events since sync(): data for sockets? @thread  progress lock
  /// held
  [[nodiscard]] bool has_other_count() const noexcept { return count_events() != events_; }
  /// Does it watch others since? As many events may be others. @thread  progress lock held
  [[nodiscard]] bool has_other_descriptors() noexcept;
  /// Was a timer due at sync()? A connection that comes in makes one. @thread  progress lock held
  [[nodiscard]] bool is_due() const noexcept { return is_due_; }
  /// Can a descriptor be read now? @thread  interrupt thread
  [[nodiscard]] bool is_readable() const noexcept;

  /// @returns  whether the bell has rung @thread  interrupt thread, progress lock NOT held
  /// @param also, network  more descriptors that end a sleep until an arrival; -1: none
  [[nodiscard]] bool sleep(Sleep sleep, int also = -1, int network = -1) noexcept;
  /// Was it readable at the end of the last sleep? @thread  interrupt thread
  [[nodiscard]] bool also_readable() const noexcept { return also_readable_; }
  /// Did a neighbour or the network end the last sleep? @thread  interrupt thread
  [[nodiscard]] bool woken_by_sender() const noexcept { return woken_by_sender_; }
  /// Wake the sleeper after that time, or keep it from its next sleep; the last call counts.
  /// @thread  any
  void ring(std::uint32_t delay_ns) noexcept;
  /// Let a nap that is under way end after that time. @thread  any
  void set_nap(std::uint32_t delay_ns) noexcept;

 private:
  void sync_or_throw(bool turned_elsewhere);
  [[nodiscard]] bool knows(int fd) const noexcept;
  [[nodiscard]] bool try_add_found() noexcept;
  [[nodiscard]] bool open_sets() noexcept;
  bool add(const WatchedDescriptor& each) noexcept;

  Descriptor bell_;
  Descriptor nap_;
  Descriptor readable_;
  Descriptor writable_;
  std::vector<WatchedDescriptor> known_;
  std::vector<WatchedDescriptor> found_;  ///< of one call; kept for its memory
  std::size_t events_ = 0;                ///< of the event loop at the last sync
  bool is_due_ = false;
  node::Bell* neighbours_ = nullptr;
  bool woken_by_sender_ = false;
  bool also_readable_ = false;
};

}  // namespace overlap
