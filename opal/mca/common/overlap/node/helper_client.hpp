// A process's side of the helper of its node (P4.1).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "opal/mca/common/overlap/node/area_file.hpp"
#include "opal/mca/common/overlap/node/helper_protocol.hpp"
#include "opal/mca/common/overlap/node/helper_socket.hpp"
#include "opal/mca/common/overlap/node/wake.hpp"

namespace overlap::node {

/// A connection to the helper. Nothing here blocks, except await_answer() for as long as it is
/// told, and nothing is an error: without a helper, senders wake this process themselves.
///
///   none --ask--> asked --welcome--> served --end--> gone
///     \             \--refused, end--> refused, gone
///      \--nobody there--> absent
///
/// When a helper has gone the caller says stop_watching() of its own area and looks for messages
/// once: what was handed on to the helper is found by that.
///
/// @thread  one: the thread that is woken
class HelperClient {
 public:
  enum class State : std::uint8_t {
    none,     ///< not asked
    asked,    ///< the answer has not come
    served,   ///< it watches this process, or will
    absent,   ///< this user runs none on this node, or it has no time
    refused,  ///< it does not serve this process: refusal() says why
    gone      ///< it has ended
  };
  /// What the helper shows to users of this process.
  struct Self {
    std::uint64_t job = 0;
    std::int32_t local_rank = 0;
  };

  HelperClient() noexcept = default;
  HelperClient(const HelperClient&) = delete;
  HelperClient& operator=(const HelperClient&) = delete;
  ~HelperClient() { leave(); }

  /// Connect and say hello.
  /// @param ringing  the end of this process's bell that rings; none: the area tells where it is
  /// @param which  see helper_socket_name()
  State ask(const Self& self, const MappedArea& area, const Descriptor& ringing,
            const std::string& which = {}) noexcept;
  /// The descriptor is readable: has the answer come, has the helper gone?
  State look() noexcept;
  /// Wait for the answer. @returns  asked: it has not come in time
  State await_answer(int timeout_ms) noexcept;
  /// Disconnect. The helper takes what has been left for it and wakes this process if it must.
  void leave() noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] Refusal refusal() const noexcept { return refusal_; }
  /// To sleep on beside the bell: readable when look() has something to find. -1: not connected
  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  /// After this process has armed itself, before it sleeps: wake the helper if it sleeps. While the
  /// helper is awake this is one load.
  void nudge() noexcept {
    if (page_ == nullptr) return;
    full_fence();  // between N1 and N2
    if (page_->state.load(std::memory_order_relaxed) == HelperState::sleeping) nudge_slow();  // N2
  }

 private:
  State end(State state) noexcept;
  State take_page(Attached& attached) noexcept;
  void nudge_slow() noexcept;

  Descriptor socket_;
  const HelperPage* page_ = nullptr;  ///< mapped for reading
  State state_ = State::none;
  Refusal refusal_ = Refusal::none;
};

}  // namespace overlap::node
