// A client of a helper: its area, its bell, and what the helper remembers of it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "opal/mca/common/overlap/node/area_file.hpp"
#include "opal/mca/common/overlap/node/bell.hpp"
#include "opal/mca/common/overlap/node/helper_socket.hpp"
#include "opal/mca/common/overlap/node/wake.hpp"
#include "opal/tools/progressd/lookout.hpp"
#include "opal/tools/progressd/placement.hpp"

namespace overlap::progressd {

/// Every word of its area is the client's to write and may be garbage at any time.
///
/// Ownership
///   hello .. area   written before any thread but the server's knows the client
///   the rest        the watcher's thread
class Client {
 public:
  /// @param attached  what came with hello: the area, and maybe the end of a pipe that rings
  /// @returns  nullptr: that is no area
  [[nodiscard]] static std::shared_ptr<Client> of(const node::Peer& peer,
                                                  const node::HelperRequest& hello,
                                                  node::Attached attached);

  node::Peer peer;
  node::HelperRequest hello;
  Binding binding;
  std::size_t watcher = 0;
  node::MappedArea area;

  Sight sight;

  [[nodiscard]] bool is_armed() const noexcept {
    return area->doze.load(std::memory_order_seq_cst) == node::Doze::armed;  // N4
  }
  /// Let arrivals be left here, if they could be answered by a ring.
  void watch(std::uint32_t now_ms, std::uint32_t ahead_ms) noexcept;
  void unwatch() noexcept;
  [[nodiscard]] Taken take() noexcept;
  [[nodiscard]] bool is_still_waited_for() const noexcept;
  /// @returns  whether it was asleep, and has been rung
  bool wake() noexcept;
  /// @thread  any
  [[nodiscard]] bool is_watched() const noexcept {
    return watched_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] bool can_ring() noexcept;

  node::BellRope rope_;
  std::uint64_t tried_inode_ = 0;  ///< of the bell that could not be opened
  unsigned tries_ = 0;
  std::atomic<bool> watched_{false};
  std::uint32_t published_ms_ = 0;
  std::array<node::Envelope, node::arrivals_max> kept_{};
  std::size_t kept_count_ = 0;
};

}  // namespace overlap::progressd
