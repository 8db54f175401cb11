// Whether an operation takes less as a message than by a copy of the kernel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "ompi/mca/common/overlap/protocol/near_least.hpp"

namespace overlap::newrma {

/// What a short copy of the kernel takes on this machine.
///
/// In an epoch that its target takes part in, an operation can go as a message: two copies through
/// shared memory, and a fence asks whether they have been made. That takes about as long on all
/// machines. A call that pins a page of another process takes 0.4 us on some and 2.5 us on others
/// (virtual machines), and so it is timed.
///
/// @thread  progress lock held
class CopyCost {
 public:
  /// Of more the bytes take longer than the call.
  static constexpr std::uint64_t timed_max_bytes = 2048;

  /// Is the next copy of so many bytes to be timed?
  [[nodiscard]] bool times_next(std::uint64_t bytes) noexcept {
    if (bytes > timed_max_bytes) return false;
    return samples_ < first_samples || copies_++ % timed_one_in == 0 || is_dear(bytes);
  }
  void took(std::uint64_t ns) noexcept {
    const auto now = static_cast<float>(ns);
    if (samples_ >= first_samples) {
      call_ns_ = near_least(call_ns_, now);
    } else {
      call_ns_ = samples_++ == 0 ? now : std::min(call_ns_, now);
    }
  }

  /// Does a message of so many bytes take less?
  [[nodiscard]] bool is_dear(std::uint64_t bytes) const noexcept {
    return samples_ >= first_samples &&
           call_ns_ > message_ns + static_cast<float>(bytes) * second_copy_ns_per_byte;
  }
  /// The same, for an operation that goes that way then. Now and then one is copied for the time.
  [[nodiscard]] bool sends(std::uint64_t bytes) noexcept {
    return is_dear(bytes) && ++messages_ % copied_one_in != 0;
  }

 private:
  /// The question and its answer, and what a message costs both sides.
  static constexpr float message_ns = 1200;
  static constexpr float second_copy_ns_per_byte = 0.125;
  static constexpr std::uint32_t first_samples = 4;
  static constexpr std::uint32_t timed_one_in = 8, copied_one_in = 64;

  float call_ns_ = 0;
  std::uint32_t samples_ = 0;  ///< the first ones
  std::uint32_t copies_ = 0;
  std::uint32_t messages_ = 0;
};

}  // namespace overlap::newrma
