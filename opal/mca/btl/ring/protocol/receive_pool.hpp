// How many receive buffers the send/receive channel has: more when senders have nearly used them
// up.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap::ring {

/// Sizes a pool of buffers that all peers share.
///
/// A sender that finds no buffer waits and sends again (receiver not ready), on iWARP it loses its
/// connection. How many are left the device does not say at no cost; but messages that are taken
/// one after the other without the completion queue being empty were waiting there. When those were
/// so many that no more than a quarter of the pool was left, it doubles; and it never has less than
/// a few for each connection.
class ReceivePool {
 public:
  static constexpr std::uint32_t per_connection = 4;

  /// @param first  buffers to begin with  @param max  at least `first`
  ReceivePool(std::uint32_t first, std::uint32_t max) noexcept
      : first_(first), max_(std::max(first, max)) {}

  void connected() noexcept { ++connections_; }
  void disconnected() noexcept { --connections_; }
  /// A message has been taken from the completion queue.
  void taken() noexcept { ++run_; }
  /// The completion queue was empty.
  void drained() noexcept { run_ = 0; }

  /// Buffers to add now, often 0. Answer with grown() or stop().
  [[nodiscard]] std::uint32_t wanted() const noexcept {
    std::uint64_t target =
        std::max<std::uint64_t>({first_, size_, std::uint64_t{per_connection} * connections_});
    if (size_ > 0 && run_ >= size_ - size_ / 4) target = std::uint64_t{size_} * 2;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(target, max_)) - size_;
  }
  void grown(std::uint32_t buffers) noexcept {
    size_ += buffers;
    run_ = 0;
  }
  /// There is no memory for more.
  void stop() noexcept { first_ = max_ = size_; }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  std::uint32_t first_;
  std::uint32_t max_;
  std::uint32_t size_ = 0;
  std::uint32_t connections_ = 0;
  std::uint32_t run_ = 0;
};

}  // namespace overlap::ring
