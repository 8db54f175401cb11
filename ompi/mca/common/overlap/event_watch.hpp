// What the interrupt thread sleeps on: the descriptors of Open MPI's event loop, and a bell.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/protocol/interrupt_loop.hpp"

namespace overlap {

/// A file descriptor of this process, closed with its owner.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Lets a thread sleep in the kernel until a descriptor of the event loop can be served.
///
/// Reading is level-triggered: what nobody has read wakes again. Writing is edge-triggered: a
/// socket is writable nearly always, and only one that was full becomes writable.
///
/// Ownership
///   bell_                    any thread rings, the interrupt thread sleeps on it
///   readable_, writable_     the interrupt thread
///   known_, found_, events_  progress lock
class EventWatch {
 public:
  /// @returns  false when the kernel refuses (no descriptors left); errno says why
  [[nodiscard]] bool open() noexcept;

  /// Take in the descriptors that the event loop watches now.
  /// @thread  interrupt thread, progress lock held
  void sync() noexcept {
    if (is_stale()) sync_changed();
  }
  /// Has the event loop got or lost events since sync(): connections, data for sockets?
  /// @thread  progress lock held
  [[nodiscard]] bool is_stale() const noexcept { return count_events() != events_; }
  /// Can a descriptor be read now? @thread  interrupt thread
  [[nodiscard]] bool is_readable() const noexcept;

  /// @returns  whether the bell has rung @thread  interrupt thread, progress lock NOT held
  [[nodiscard]] bool sleep(Sleep sleep) noexcept;
  /// Wake the sleeper after that time, or keep it from its next sleep; the last call counts.
  /// @thread  any
  void ring(std::uint32_t delay_ns) noexcept;

 private:
  void sync_changed() noexcept;
  void add(int fd) noexcept;

  Descriptor bell_;
  Descriptor readable_;
  Descriptor writable_;
  std::vector<int> known_;
  std::vector<int> found_;  ///< sync_changed only; kept for its memory
  std::size_t events_ = 0;  ///< of the event loop at the last sync
};

}  // namespace overlap
