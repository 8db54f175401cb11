// The sender's half of the protocol: eager headers, rendezvous sends, and the messages for senders.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "communicator.hpp"
#include "config.hpp"
#include "counters.hpp"
#include "deferred_sends.hpp"
#include "handle_table.hpp"
#include "hazard_control.hpp"
#include "headers.hpp"
#include "host.hpp"
#include "outbox.hpp"

namespace overlap::speculative {

/// The sends of a process that have started, and the handles by which receivers name them. The
/// messages that it is given are next in their stream, or name no handle that is stale.
class SendSide {
 public:
  /// The arguments outlive the object.
  SendSide(const Config& config, Host& host, Counters& counters, HazardControl& hazard,
           Outbox& outbox)
      : config_(config),
        host_(host),
        counters_(counters),
        hazard_(hazard),
        outbox_(outbox),
        deferred_(config.patience, counters) {}

  /// As Protocol's, without prefix.
  void write_eager_header(SequencedHeader& out, Peer& peer, std::int32_t tag) {
    write_eager_head(out, Kind::eager, peer, tag);
  }
  void write_eager_sync_header(EagerSyncHeader& out, SendOp& op);
  void start(SendOp& op, std::uint64_t now_ns);
  void expire(std::uint64_t now_ns);
  [[nodiscard]] bool has_deferred() const noexcept { return !deferred_.empty(); }
  void advance(SendOp& op, SendEvent event);

  void on_rtr(Peer& peer, std::span<const std::byte> message, const void* rail);
  void on_revoke(Peer& peer, std::span<const std::byte> message);
  void on_rts_ack(Peer& peer, std::span<const std::byte> message);
  /// @returns  nullptr, or what is impossible about the message; the same for the next two
  [[nodiscard]] const char* on_grant(std::span<const std::byte> message, const void* rail);
  [[nodiscard]] const char* on_done(const DoneHeader& done);
  [[nodiscard]] const char* on_sync_ack(const TargetedHeader& ack);

  [[nodiscard]] bool is_stale(Handle send) const noexcept { return sends_.is_stale(send); }
  [[nodiscard]] std::size_t open_handles() const noexcept { return sends_.size(); }

 private:
  void write_eager_head(SequencedHeader& out, Kind kind, Peer& peer, std::int32_t tag) {
    if (peer.defers) [[unlikely]]
      decide_deferred(peer);
    const std::uint32_t sequence = Outbox::take_sequence(peer, tag);
    if (peer.watch_eager) [[unlikely]]
      hazard_.eager_sent(peer, tag);
    Outbox::write_forward_head(out, kind, peer, tag, sequence);
  }
  void decide_deferred(const Peer& peer);
  void decide(SendOp& op);
  void send_rts(SendOp& op, const Start& start, std::uint8_t adaptation_flags);
  void send_rtr_ack(SendOp& op, std::uint8_t flags);
  void perform(SendOp& op, SendAction action);
  void finish(SendOp& op);
  static void note_just_missed(const SendOp& op, std::uint8_t flags) noexcept;

  const Config& config_;
  Host& host_;
  Counters& counters_;
  HazardControl& hazard_;
  Outbox& outbox_;
  HandleTable<SendOp> sends_;
  DeferredSends deferred_;
};

}  // namespace overlap::speculative
