// Whether an operation takes less as a message than by a copy of the kernel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "ompi/mca/common/overlap/protocol/near_least.hpp"

namespace overlap::newrma {

/// What a copy of a byte by the kernel takes on this machine.
///
/// In an active target epoch an operation can go as a message: two copies through shared memory,
/// and a fence asks whether they have been made. That takes about a microsecond more than the end
/// of an epoch alone. The kernel, which pins pages of another process, takes 0.4 us on some
/// machines and 2.5 us on others (virtual ones). So now and then a byte is read for the time.
///
/// @thread  progress lock held
class CopyCost {
 public:
  /// Longer ones never go as messages: their bytes take longer than the call.
  static constexpr std::uint64_t max_bytes = std::uint64_t{1} << 14U;

  /// Before each look at is_dear(). @returns  whether a copy is to be timed, at first several
  [[nodiscard]] bool wants_sample() noexcept {
    return samples_ < first_samples || ++looks_ % sampled_one_in == 0;
  }
  void took(std::uint64_t ns) noexcept {
    const auto now = static_cast<float>(ns);
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

 private:
  /// The question and its answer, and what a message costs both sides.
  static constexpr float message_ns = 1200;
  static constexpr float second_copy_ns_per_byte = 0.125;
  static constexpr std::uint32_t first_samples = 8, sampled_one_in = 64;

  float call_ns_ = 0;
  std::uint32_t samples_ = 0;  ///< the first ones
  std::uint32_t looks_ = 0;    ///< behind those
};

}  // namespace overlap::newrma
