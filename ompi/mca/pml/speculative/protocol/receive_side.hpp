// The receiver's half of the protocol: posting, matching, and the messages for receivers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cancellation.hpp"
#include "communicator.hpp"
#include "config.hpp"
#include "counters.hpp"
#include "hazard_control.hpp"
#include "headers.hpp"
#include "host.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "receive_machine.hpp"
#include "unexpected_messages.hpp"

namespace overlap::speculative {

/// The receives of a process. The messages that it is given are next in their stream, or name no
/// handle that is stale.
class ReceiveSide {
 public:
  /// The arguments outlive the object.
  ReceiveSide(const Config& config, Host& host, Counters& counters, HazardControl& hazard,
              Outbox& outbox, UnexpectedMessages& unexpected)
      : config_(config),
        host_(host),
        counters_(counters),
        outbox_(outbox),
        unexpected_(unexpected),
        machine_(config.hazard_policy, counters, outbox),
        offers_(config, counters, hazard, outbox, machine_),
        cancellation_(host, unexpected, machine_, offers_) {}

  /// As Protocol's.
  [[nodiscard]] Arrived* post(Communicator& comm, ReceiveOp& op);
  [[nodiscard]] Arrived* receive_taken(Arrived& message, ReceiveOp& op);
  void take(Arrived& message);
  void expect_receive() noexcept { ++expecting_; }
  void expect_no_longer() noexcept { --expecting_; }
  [[nodiscard]] bool has_left() const noexcept { return !left_.empty(); }
  void take_left();
  void note_found(Arrived& message);
  void cancel(Communicator& comm, ReceiveOp& op) { cancellation_.cancel(comm, op); }
  void advance(ReceiveOp& op, ReceiveEvent event) { machine_.advance(op, event); }
  /// A posted receive gets an eager message: it leaves its queue; the caller delivers and
  /// completes.
  void match_eager(ReceiveOp& op, Peer& peer, std::int32_t tag, std::uint64_t length_bytes) {
    peer.comm->unpost(op);
    if (op.handle != 0) [[unlikely]]
      drop_offer(op, peer, tag);
    op.state = ReceiveState::idle;
    ReceiveMachine::set_matched(op, peer, tag, length_bytes);
  }
  /// The communicator is about to be removed.
  void forget(const Communicator& comm);

  void on_eager(Peer& peer, std::span<const std::byte> message);
  void on_rts(Peer& peer, std::span<const std::byte> message, const void* rail);
  void on_stream_end(Peer& peer);
  /// @returns  nullptr, or what is impossible about the message; the same for the next three
  [[nodiscard]] const char* on_rtr_ack(Peer& peer, std::span<const std::byte> message);
  [[nodiscard]] const char* on_revoke_ack(Peer& peer, std::int32_t tag) {
    return cancellation_.on_revoke_ack(peer, tag);
  }
  [[nodiscard]] const char* on_frag(std::span<const std::byte> message);
  [[nodiscard]] const char* on_done(const DoneHeader& done);

  [[nodiscard]] bool is_stale(Handle receive) const noexcept { return machine_.is_stale(receive); }
  [[nodiscard]] std::size_t open_handles() const noexcept { return machine_.open_handles(); }

 private:
  [[gnu::noinline]] Arrived* receive_unexpected(Arrived& message, ReceiveOp& op);
  [[gnu::cold]] void drop_offer(ReceiveOp& op, Peer& peer, std::int32_t tag);
  [[nodiscard]] bool just_missed(const ReceiveOp& op, const Arrived& message) const noexcept;
  void match_rts(ReceiveOp& op, const Arrived& rts);
  void take_at_once(Arrived& rts);
  template <class Concerns>
  void drop_left(Concerns&& concerns);

  const Config& config_;
  Host& host_;
  Counters& counters_;
  Outbox& outbox_;
  UnexpectedMessages& unexpected_;
  ReceiveMachine machine_;
  Offers offers_;
  Cancellation cancellation_;
  unsigned expecting_ = 0;  ///< calls that a receive is likely to follow
  static constexpr std::size_t left_max = 16;
  std::vector<Arrived*> left_;   ///< for that receive; oldest first
  std::size_t left_before_ = 0;  ///< of them, in front of the last turn
};

}  // namespace overlap::speculative
