// The protocol of one process behind one interface: its communicators, the order of what comes from
// the network, and the two sides that get it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "communicator.hpp"
#include "config.hpp"
#include "counters.hpp"
#include "hazard_control.hpp"
#include "headers.hpp"
#include "host.hpp"
#include "operations.hpp"
#include "outbox.hpp"
#include "receive_side.hpp"
#include "send_side.hpp"
#include "streams.hpp"
#include "unexpected_messages.hpp"

namespace overlap::speculative {

/// All protocol state of a process. No step calls another one through the caller: results are in
/// `actions()`.
///
///   Protocol            communicators, admission of messages to their streams, dispatch
///     SendSide          sends and their handles
///       DeferredSends   those that wait a little for an RTR
///     ReceiveSide       posting and matching
///       Cancellation    ghosts of cancelled receives, where fragments go
///       Offers          when RTRs go out
///       ReceiveMachine  steps of receives and their handles
///     Outbox            actions, places in the outgoing streams
///
/// Each type uses only types that stand below it: there is no way back but the results.
///
/// @thread  progress lock held for every call
class Protocol {
 public:
  /// @param counters  outlives the protocol
  Protocol(const Config& config, Host& host, Counters& counters);
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  // Communicators -----------------------------------------------------------------------

  /// A communicator exists from now on. Call take_early once its peers can be reached.
  Communicator& add_communicator(const NewCommunicator& fresh);
  /// Is there one with this agreed incarnation?
  [[nodiscard]] bool has_agreed(std::uint16_t context, std::uint16_t incarnation) const noexcept {
    return streams_.find_agreed(context, incarnation) != nullptr;
  }
  /// Look at the messages that came for it before. @returns  nullptr, or what is impossible about
  /// one of them
  [[nodiscard]] const char* take_early(Communicator& comm);
  /// The last messages of a communicator that is about to be removed: control actions, for the
  /// caller to do before it calls remove_communicator. Nothing of it is in use any more.
  [[nodiscard]] std::vector<Action> end_streams(Communicator& comm);
  void remove_communicator(Communicator& comm);

  /// Communicators are agreed on by messages of collectives beside this protocol, too: these carry
  /// the era of their sender.
  [[nodiscard]] std::uint32_t era() const noexcept { return streams_.era(); }
  void note_era(std::uint32_t era) noexcept { streams_.note_era(era); }

  // Sending -----------------------------------------------------------------------------

  /// Header of an eager message, which takes the next place in the forward stream.
  [[nodiscard]] Prefixed<SequencedHeader> eager_header(Peer& peer, std::int32_t tag) {
    Prefixed<SequencedHeader> made;
    sending_.write_eager_header(made.header, peer, tag);
    add_prefix(made, peer);
    return made;
  }
  /// The same for an eager send that waits for its SYNC-ACK, which completes it.
  /// @param op  peer and tag set
  [[nodiscard]] Prefixed<EagerSyncHeader> eager_sync_header(SendOp& op) {
    Prefixed<EagerSyncHeader> made;
    sending_.write_eager_sync_header(made.header, op);
    add_prefix(made, *op.peer);
    return made;
  }
  /// Start a rendezvous send (P1.2, P1.3). Afterwards it may be deferred: an RTR is expected at any
  /// moment (P1.14). The caller polls and calls expire until it no longer is, which takes no longer
  /// than Config::patience allows, before it lets its own caller leave MPI.
  ///
  /// @param op  peer, tag and length_bytes set, idle
  /// @param now_ns  of a steady clock; 0: never defer
  void start_send(SendOp& op, std::uint64_t now_ns = 0) { sending_.start(op, now_ns); }
  /// Start the deferred sends whose time is over.
  void expire(std::uint64_t now_ns) { sending_.expire(now_ns); }
  [[nodiscard]] bool has_deferred() const noexcept { return sending_.has_deferred(); }
  /// Is it worth to look for an RTR before a rendezvous send of this envelope (P1.4)? Not once its
  /// speculation has stopped (P1.11).
  [[nodiscard]] bool wants_early_progress(Peer& peer, std::int32_t tag) noexcept;
  /// The same before a large receive is posted: for an RTS.
  [[nodiscard]] bool wants_early_progress(Communicator& comm, const ReceiveOp& op) noexcept;
  /// Is an RTR of this very envelope at hand?
  [[nodiscard]] static bool has_rtr(Peer& peer, std::int32_t tag) noexcept;

  void write_posted(SendOp& op) { sending_.advance(op, SendEvent::write_posted); }
  void write_done(SendOp& op) { sending_.advance(op, SendEvent::write_done); }
  void write_refused(SendOp& op) { sending_.advance(op, SendEvent::write_refused); }
  void push_done(SendOp& op) { sending_.advance(op, SendEvent::push_done); }

  // Receiving ---------------------------------------------------------------------------

  /// Post a receive. @param op  source, tag, capacity_bytes and speculate set, idle
  /// @returns  the eager message that it matches, for the caller to deliver, complete the receive
  /// and destroy; otherwise nullptr
  [[nodiscard]] Arrived* post_receive(Communicator& comm, ReceiveOp& op) {
    return receiving_.post(comm, op);
  }
  /// Receive a message that a matched probe took. The same results as post_receive.
  [[nodiscard]] Arrived* receive_taken(Arrived& message, ReceiveOp& op) {
    return receiving_.receive_taken(message, op);
  }
  /// Oldest unexpected message of (source, tag), not taken.
  [[nodiscard]] Arrived* probe(Communicator& comm, std::int32_t source, std::int32_t tag) noexcept {
    return comm.find_unexpected(source, tag);
  }
  /// A call begins, or ends, that a receive is likely to follow: a probe, or a send that waits. An
  /// RTS of an eager size that comes meanwhile is not copied at once, to be copied once more by its
  /// receive, but left to it for a turn.
  void expect_receive() noexcept { receiving_.expect_receive(); }
  void expect_no_longer() noexcept { receiving_.expect_no_longer(); }
  /// Has something been left that no receive has taken?
  [[nodiscard]] bool has_left() const noexcept { return receiving_.has_left(); }
  /// At the end of each turn while there is: what had been left before the turn is taken, as it
  /// would have been at once. Its sender waits.
  void take_left() { receiving_.take_left(); }
  /// A probe has found it, which may have been left: for long if it is found again and again.
  void note_found(Arrived& message) { receiving_.note_found(message); }
  /// Take a message that probe() found out of the queue.
  void take(Arrived& message) { receiving_.take(message); }
  /// Cancel a receive: complete_cancelled follows now, later, or never (it is matched). It follows
  /// now unless the receive is matched already, or an RTR is out that names memory: then when the
  /// sender has confirmed.
  void cancel(Communicator& comm, ReceiveOp& op) { receiving_.cancel(comm, op); }

  void read_done(ReceiveOp& op) { receiving_.advance(op, ReceiveEvent::read_done); }
  void read_refused(ReceiveOp& op) { receiving_.advance(op, ReceiveEvent::read_refused); }

  // Chained completion (P1.2, P1.3; architecture.md rule 5) -----------------------------
  //
  // A transport that keeps order takes DONE right behind the data, so that the other side learns of
  // the end while this process computes. Once all of a write or read has been posted: post the
  // header below behind it, then say so here; write_done or read_done follow as ever, and end the
  // request without another DONE. Where the transport refuses DONE nothing is said and DONE goes
  // out after the end. It may reach the other side at any time after the data, before or after the
  // end is known here.

  [[nodiscard]] static DoneHeader done_behind(const SendOp& op) noexcept { return done_header(op); }
  [[nodiscard]] static DoneHeader done_behind(const ReceiveOp& op) noexcept {
    return done_header(op);
  }
  /// Instead of write_posted, or after it when the end of the write could be posted only later.
  void write_chained(SendOp& op) {
    ++counters_.done_chained;
    sending_.advance(op, SendEvent::write_chained);
  }
  void read_chained(ReceiveOp& op) {
    ++counters_.done_chained;
    receiving_.advance(op, ReceiveEvent::read_chained);
  }

  // The network -------------------------------------------------------------------------

  /// Fast path for an eager message without acknowledgement.
  /// @returns  true and the matched receive (the caller delivers and completes it), when the
  /// message is next in its stream and a receive is posted; otherwise false with nothing changed:
  /// call on_message
  [[nodiscard]] bool try_match_eager(const SequencedHeader& head, std::uint64_t length_bytes,
                                     ReceiveOp*& out) {
    Communicator* comm = streams_.find(head);
    if (comm == nullptr || static_cast<std::uint32_t>(head.source) >= comm->size()) [[unlikely]]
      return false;
    Peer* peer = comm->peer_if_known(head.source);
    if (peer == nullptr || head.incarnation != peer->bound ||
        head.sequence != static_cast<std::uint16_t>(peer->expected_sequence) ||
        !peer->forward_stash.empty()) [[unlikely]] {
      return false;
    }
    ReceiveOp* op = comm->find_posted(*peer, head.tag);
    if (op == nullptr) return false;
    ++peer->expected_sequence;
    receiving_.match_eager(*op, *peer, head.tag, length_bytes);
    out = op;
    return true;
  }

  /// Does the host have an endpoint of the process that this message comes from (Peer::host_data)?
  /// If not, on_message may make it connect, or ask which process a rank is (Host::process_of).
  /// @param message  passed find_fault
  [[nodiscard]] bool knows_sender(std::span<const std::byte> message) const noexcept;
  /// @param message  not of a kind that names a request
  /// @returns  who has sent it; nullptr: its communicator is not there
  [[nodiscard]] Peer* sender_of(std::span<const std::byte> message);

  /// A message, prefix and header and all. What belongs to a freed communicator or to a request
  /// that has ended is dropped and counted. @param message  passed find_fault
  /// @param rail  what it came over, kept with the memory that it describes; never looked at
  /// @returns  nullptr, or what is impossible about it; then nothing was changed
  [[nodiscard]] const char* on_message(std::span<const std::byte> message,
                                       const void* rail = nullptr);

  // -------------------------------------------------------------------------------------

  [[nodiscard]] std::vector<Action>& actions() noexcept { return outbox_.actions(); }
  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const Streams& streams() const noexcept { return streams_; }
  /// Requests that the other side may still name; 0 when nothing is left over.
  [[nodiscard]] std::size_t open_handles() const noexcept {
    return sending_.open_handles() + receiving_.open_handles();
  }

 private:
  /// What the peer must be told before the message goes in front of its header.
  template <class Header>
  void add_prefix(Prefixed<Header>& made, Peer& peer) {
    made.with_prefix = streams_.must_announce(peer);
    if (made.with_prefix) [[unlikely]]
      made.prefix = streams_.announce(peer);
  }

  /// @returns  nullptr: it is not there, or has no such source
  [[nodiscard]] Communicator* communicator_of(const SequencedHeader& head) const noexcept;
  [[nodiscard]] const char* on_sequenced(std::span<const std::byte> whole, const void* rail);
  [[nodiscard]] const char* on_targeted(std::span<const std::byte> message, const void* rail);
  [[nodiscard]] const char* admit_again(std::vector<HeldMessages::Held> held);
  void drop_stale(std::span<const std::byte> message);
  [[nodiscard]] const char* on_forward(Peer& peer, std::span<const std::byte> message,
                                       const void* rail);
  void on_reverse(Peer& peer, std::span<const std::byte> message, const void* rail);
  [[nodiscard]] const char* enter_stream(Peer& peer, std::span<const std::byte> message,
                                         const void* rail, bool forward);

  Config config_;
  Counters& counters_;
  UnexpectedMessages unexpected_;  // before the communicators: their messages return to it
  Streams streams_;
  std::unique_ptr<HazardControl> hazard_;
  Outbox outbox_;
  SendSide sending_;
  ReceiveSide receiving_;
};

}  // namespace overlap::speculative
