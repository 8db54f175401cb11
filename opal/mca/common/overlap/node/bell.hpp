// The bell of a process: another process of its node wakes its interrupt thread with it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>

#include "opal/mca/common/overlap/descriptor.hpp"
#include "opal/mca/common/overlap/node/layout.hpp"
#include "opal/mca/common/overlap/wake/kernel_wake.hpp"

namespace overlap::node {

/// A pipe without a name. A futex would be 1.5 us faster, but a thread cannot sleep on one and on
/// sockets at once; an eventfd is as fast, but cannot be opened by another process. Whoever rings
/// has it open for reading as well: a write to a pipe that nobody could read would be a signal
/// (SIGPIPE).
class Bell {
 public:
  Bell() noexcept = default;
  /// Make one and tell others where it is.
  /// @param area  of this process
  /// @param kernel  sleeps there as `rank` of `job`, too: the kernel module's side (P4.7)
  /// @returns  false: the kernel refuses (no descriptors left); errno says why
  [[nodiscard]] bool open(Area& area) noexcept;
  [[nodiscard]] bool open(Area& area, KernelWake kernel, std::uint64_t job,
                          std::uint32_t rank) noexcept;
  /// To sleep on: readable after a ring. -1: not open, or not used
  [[nodiscard]] std::array<int, 2> descriptors() const noexcept {
    return {reading_.get(), kernel_ ? kernel_->fd() : -1};
  }
  /// The end that rings, to hand to the helper. -1: not open
  [[nodiscard]] const Descriptor& ringing() const noexcept { return ringing_; }
  /// Take the rings out. @returns  whether there was one
  [[nodiscard]] bool silence() noexcept;

 private:
  std::optional<KernelWake> kernel_;
  Descriptor reading_;
  Descriptor ringing_;
};

/// The other end of it, in another process.
class BellRope {
 public:
  BellRope() noexcept = default;
  explicit BellRope(Descriptor ringing) noexcept : ringing_(std::move(ringing)) {}
  /// @returns  empty: the process has no bell yet, or another may not ring it
  [[nodiscard]] static BellRope to(const Area& area) noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(ringing_); }
  void ring() const noexcept;
  /// -1: empty
  [[nodiscard]] int descriptor() const noexcept { return ringing_.get(); }

 private:
  Descriptor ringing_;
};

}  // namespace overlap::node
