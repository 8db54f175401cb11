// Whether an operation takes less as a message than by a copy of the kernel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "ompi/mca/common/overlap/protocol/near_least.hpp"

namespace overlap::newrma {

/// What a copy of the kernel takes on this machine, apart from its bytes.
///
/// In a fence epoch an operation can go as a message: two copies through shared memory, and the
/// fence asks whether they have been made. That takes about a microsecond more than a fence alone.
/// The kernel, which pins pages of another process, takes 0.4 us on some machines and 2.5 us on
/// others (virtual ones), and so it is timed.
///
/// @thread  progress lock held
class CopyCost {
 public:
  /// Longer ones never go as messages, and are not timed: their bytes take longer than the call.
  static constexpr std::uint64_t max_bytes = std::uint64_t{1} << 14U;

  /// Is the next copy of so many bytes to be timed? One that is_dear() always is.
  [[nodiscard]] bool times_next(std::uint64_t bytes) noexcept {
    if (bytes > max_bytes) return false;
    return samples_ < first_samples || copies_++ % timed_one_in == 0 || is_dear(bytes);
  }
  void took(std::uint64_t bytes, std::uint64_t ns) noexcept {
    const float now =
        std::max(0.0F, static_cast<float>(ns) - static_cast<float>(bytes) * copy_ns_per_byte);
    if (samples_ >= first_samples) {
      call_ns_ = near_least(call_ns_, now);
    } else {
      call_ns_ = samples_++ == 0 ? now : std::min(call_ns_, now);
    }
  }

  /// Does a message take less? @param calls  of the kernel, for such an operation
  [[nodiscard]] bool is_dear(std::uint64_t bytes, int calls = 1) const noexcept {
    return bytes <= max_bytes && samples_ >= first_samples &&
           call_ns_ * static_cast<float>(calls) >
               message_ns + static_cast<float>(bytes) * second_copy_ns_per_byte;
  }
  /// For each one that goes as a message for that. @returns  whether it is copied all the same, so
  /// that it is seen when the kernel is slow no longer: one in 64
  [[nodiscard]] bool tries_copy() noexcept { return ++messages_ % copied_one_in == 0; }

 private:
  /// The question and its answer, and what a message costs both sides.
  static constexpr float message_ns = 1200;
  static constexpr float second_copy_ns_per_byte = 0.125, copy_ns_per_byte = 0.0625;
  static constexpr std::uint32_t first_samples = 8;
  static constexpr std::uint32_t timed_one_in = 8, copied_one_in = 64;

  float call_ns_ = 0;
  std::uint32_t samples_ = 0;  ///< the first ones
  std::uint32_t copies_ = 0;
  std::uint32_t messages_ = 0;
};

}  // namespace overlap::newrma
