// The kernel module ompi_wake: sleep as one rank of a job, wake another one of the same node.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "opal/mca/common/overlap/descriptor.hpp"

namespace overlap {

/// Why a process cannot use the module.
enum class KernelWakeAbsence : std::uint8_t {
  no_device,      ///< the module is not loaded
  no_permission,  ///< the mode of its device keeps this user out
  other_version,  ///< the module is older or newer, or the device is another one's
  rank_taken,     ///< another file sleeps as that rank of that job
  limit,          ///< more jobs or ranks than the module's parameters allow, or no descriptors left
  system,         ///< anything else: error_number
};

struct KernelWakeUnavailable {
  KernelWakeAbsence why;
  int error_number;
};

/// @returns  one sentence for users, with what they can change
[[nodiscard]] const char* describe(KernelWakeAbsence why) noexcept;

/// Take part in one job's wakes on this node: as a rank that sleeps, or as an observer that wakes
/// others only. Forked children share the file; programs they run do not.
///
/// Ownership: everything lies in the kernel; any thread may call anything at any time.
/// @source  P4.7
class KernelWake {
 public:
  using Opened = std::variant<KernelWake, KernelWakeUnavailable>;

  /// @param job   the same number in all processes of the job on this node; jobs of other users
  ///              may have it too
  /// @param rank  local rank
  [[nodiscard]] static Opened try_open(std::uint64_t job, std::uint32_t rank) noexcept;
  [[nodiscard]] static Opened try_open_observer(std::uint64_t job) noexcept;
  /// The same on a device of another name; flags as in kernel/ompi_wake.h.
  [[nodiscard]] static Opened try_open(const char* device, std::uint64_t job, std::uint32_t rank,
                                       std::uint32_t flags) noexcept;

  /// For poll and epoll: readable while there are wakes that nobody has drained.
  [[nodiscard]] int fd() const noexcept { return file_.get(); }

  /// Take the wakes since the last call; never sleeps. @returns  how many, 0 when there were none
  [[nodiscard]] std::uint64_t drain() const noexcept;

  enum class Woken : std::uint8_t {
    done,    ///< it wakes, or it will find the wake when it looks
    nobody,  ///< no process sleeps as that rank (yet, or any more)
  };
  /// Wake one rank of the same job; this one too.
  [[nodiscard]] Woken wake(std::uint32_t rank) const noexcept;

 private:
  explicit KernelWake(Descriptor file) noexcept : file_(std::move(file)) {}

  Descriptor file_;
};

}  // namespace overlap
