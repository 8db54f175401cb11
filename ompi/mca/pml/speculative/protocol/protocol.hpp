// The protocol of one process: matching, both rendezvous machines, hazard control and adaptation behind one interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "adaptation.hpp"
#include "communicator.hpp"
#include "counters.hpp"
#include "handle_table.hpp"
#include "hazard_control.hpp"
#include "headers.hpp"
#include "operations.hpp"

namespace overlap::speculative {

struct Config {
  bool speculation = true;  ///< P1.12
  HazardPolicy hazard_policy = HazardPolicy::envelope_sequence;
  AdaptationRules adaptation;
  std::uint64_t rtr_min_bytes = 0;       ///< smaller receives send no RTR
  std::uint32_t mispredictions_max = 4;  ///< in a row, before a receiver mutes itself (P1.9)
  EnvelopeBound envelopes;
};

/// Something the caller must do now that a step has returned. Actions are done in order.
struct Action {
  enum class Kind : std::uint8_t {
    control,  ///< send `header` to `peer`; an RTS, RTR or GRANT gets the memory of its request added
    read,  ///< read receive->take_bytes() from receive->source_memory; answer read_done or read_refused
    write,  ///< write send->take_bytes to send->target; answer write_done, or write_posted and later write_done, or write_refused
            ///< both: where the transport keeps order, see `Chained completion`
    push,   ///< send send->take_bytes as fragments to send->receive; answer push_done
    complete_send,
    complete_receive,  ///< everything about the result is in the receive
    complete_cancelled,
    break_off,  ///< a transfer failed whose DONE was posted already: end the job
  };
  Kind kind;
  std::uint8_t header_bytes = 0;
  Peer* peer = nullptr;
  SendOp* send =
      nullptr;  ///< control: the request that an RTS, RTR-ACK or DONE belongs to; the last two follow its data
  ReceiveOp* receive = nullptr;  ///< control: the request that an RTR or GRANT belongs to
  std::array<std::byte, header_max_bytes> header;
};

/// What the protocol needs done while it looks at a message, because the message is gone afterwards.
class Host {
 public:
  virtual ~Host() = default;
  /// Put `payload` at `offset_bytes` of the receive's buffer; what lies behind the capacity is discarded.
  virtual void deliver(ReceiveOp& receive, std::uint64_t offset_bytes,
                       std::span<const std::byte> payload) = 0;
};

/// All protocol state of a process. No step calls another one through the caller: results are in `actions()`.
///
/// @thread  progress lock held for every call
class Protocol {
 public:
  /// @param counters  outlives the protocol
  Protocol(const Config& config, Host& host, Counters& counters);

  // Sending ------------------------------------------------------------------------------------------------------------------

  /// Take the next place in the forward stream for an eager message. @returns its sequence number for the header
  [[nodiscard]] std::uint16_t eager_sequence(Peer& peer, std::int32_t tag) {
    const std::uint32_t sequence = take_sequence(peer, tag);
    if (peer.watch_eager) [[unlikely]]
      hazard_->eager_sent(peer, tag);
    return static_cast<std::uint16_t>(sequence);
  }
  /// Register an eager send that waits for its SYNC-ACK, which completes it. @returns its handle for the header
  [[nodiscard]] Handle await_sync(SendOp& op);
  /// Start a rendezvous send (P1.2, P1.3). @param op  peer, tag and length_bytes set, idle
  void start_send(SendOp& op);
  /// Is it worth to look for an RTR before a rendezvous send of this envelope (P1.4)? Not once its speculation has stopped (P1.11).
  [[nodiscard]] bool wants_early_progress(Peer& peer, std::int32_t tag) noexcept;

  void write_posted(SendOp& op) { advance(op, SendEvent::write_posted); }
  void write_done(SendOp& op) { advance(op, SendEvent::write_done); }
  void write_refused(SendOp& op) { advance(op, SendEvent::write_refused); }
  void push_done(SendOp& op) { advance(op, SendEvent::push_done); }

  // Receiving ----------------------------------------------------------------------------------------------------------------

  /// Post a receive. @param op  source, tag, capacity_bytes and speculate set, idle
  /// @returns  the eager message that it matches, for the caller to deliver, complete the receive and destroy; otherwise nullptr
  [[nodiscard]] Arrived* post_receive(Communicator& comm, ReceiveOp& op);
  /// Receive a message that a matched probe took. The same results as post_receive.
  [[nodiscard]] Arrived* receive_taken(Arrived& message, ReceiveOp& op);
  /// Oldest unexpected message of (source, tag), not taken.
  [[nodiscard]] Arrived* probe(Communicator& comm, std::int32_t source, std::int32_t tag) noexcept;
  /// Take a message that probe() found out of the queue.
  void take(Arrived& message);
  /// Cancel a receive: complete_cancelled follows now, later, or never (it is matched).
  void cancel(Communicator& comm, ReceiveOp& op);

  void read_done(ReceiveOp& op) { advance(op, ReceiveEvent::read_done); }
  void read_refused(ReceiveOp& op) { advance(op, ReceiveEvent::read_refused); }

  // Chained completion (P1.2, P1.3; architecture.md rule 5) --------------------------------------------------------------------
  //
  // A transport that keeps order takes DONE right behind the data, so that the other side learns of the end while this process
  // computes. Once all of a write or read has been posted: post the header below behind it, then say so here; write_done or
  // read_done follow as ever, and end the request without another DONE. Where the transport refuses DONE nothing is said and DONE
  // goes out after the end. It may reach the other side at any time after the data, before or after the end is known here.

  [[nodiscard]] static DoneHeader done_behind(const SendOp& op) noexcept {
    return done_header(flag::to_receiver, op.receive);
  }
  [[nodiscard]] static DoneHeader done_behind(const ReceiveOp& op) noexcept {
    return done_header(0, op.send);
  }
  /// Instead of write_posted, or after it when the end of the write could be posted only later.
  void write_chained(SendOp& op) {
    ++counters_.done_chained;
    advance(op, SendEvent::write_chained);
  }
  void read_chained(ReceiveOp& op) {
    ++counters_.done_chained;
    advance(op, ReceiveEvent::read_chained);
  }

  // The network --------------------------------------------------------------------------------------------------------------

  /// Fast path for an eager message without acknowledgement.
  /// @returns  true and the matched receive (the caller delivers and completes it), when the message is next in its stream and a
  ///           receive is posted; otherwise false with nothing changed: call on_sequenced
  [[nodiscard]] bool try_match_eager(Communicator& comm, const SequencedHeader& head,
                                     std::uint64_t length_bytes, ReceiveOp*& out) {
    Peer& peer = comm.peer(head.source);
    if (head.sequence != static_cast<std::uint16_t>(peer.expected_sequence) ||
        !peer.forward_stash.empty()) [[unlikely]] {
      return false;
    }
    ReceiveOp* op = comm.find_posted(peer, head.tag);
    if (op == nullptr) return false;
    ++peer.expected_sequence;
    learn_incarnation(peer, head);
    match_eager(*op, peer, head.tag, length_bytes);
    out = op;
    return true;
  }

  /// A message of the forward or reverse stream, header and all. @param message passed find_fault
  /// @param rail  what it came over, kept with the memory that it describes; never looked at
  /// @returns  nullptr, or what is impossible about it; then nothing was changed
  [[nodiscard]] const char* on_sequenced(Communicator& comm, std::span<const std::byte> message,
                                         const void* rail = nullptr);
  /// A targeted message. The same contract.
  [[nodiscard]] const char* on_targeted(std::span<const std::byte> message,
                                        const void* rail = nullptr);

  // ----------------------------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::vector<Action>& actions() noexcept { return actions_; }
  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] bool watches_every_eager() const noexcept { return hazard_->watches_every_eager(); }
  /// Requests that the other side may still name; 0 when nothing is left over.
  [[nodiscard]] std::size_t open_handles() const noexcept {
    return sends_.size() + receives_.size();
  }

 private:
  static std::uint32_t take_sequence(Peer& peer, std::int32_t tag) noexcept {
    const std::uint32_t sequence = peer.next_sequence++;
    peer.sent_tags[sequence % history_messages] = tag;
    return sequence;
  }
  static void learn_incarnation(Peer& peer, const SequencedHeader& head) noexcept {
    peer.incarnation = head.incarnation;
    peer.incarnation_known = true;
  }

  void advance(SendOp& op, SendEvent event);
  void perform(SendOp& op, SendAction action);
  void finish(SendOp& op);
  void advance(ReceiveOp& op, ReceiveEvent event);
  void perform(ReceiveOp& op, ReceiveAction action);
  void finish(ReceiveOp& op, Action::Kind how);
  void check_all_here(ReceiveOp& op);

  void match_eager(ReceiveOp& op, Peer& peer, std::int32_t tag, std::uint64_t length_bytes);
  void match_rts(ReceiveOp& op, Arrived& rts);
  void acknowledge_match(const Arrived& message, bool rtr_out);
  void set_matched(ReceiveOp& op, Peer& peer, std::int32_t tag, std::uint64_t length_bytes);
  void note_misprediction(Peer& peer, std::int32_t tag);

  void try_offer(ReceiveOp& op);
  [[nodiscard]] bool may_offer(const ReceiveOp& op, const ReceiveEnvelope& envelope) const noexcept;
  void take_back_offers(Peer& peer, std::int32_t tag);
  void offer_waiting(Peer& peer, std::int32_t tag, bool restarts);

  [[nodiscard]] const char* on_forward(Peer& peer, std::span<const std::byte> message);
  [[nodiscard]] const char* on_eager(Peer& peer, std::span<const std::byte> message);
  [[nodiscard]] const char* on_rts(Peer& peer, std::span<const std::byte> message);
  bool note_rts_flags(Peer& peer, const RtsHeader& rts);
  [[nodiscard]] const char* on_rtr_ack(Peer& peer, std::span<const std::byte> message);
  [[nodiscard]] const char* on_revoke_ack(Peer& peer, std::span<const std::byte> message);
  void on_reverse(Peer& peer, std::span<const std::byte> message);
  void on_rtr(Peer& peer, std::span<const std::byte> message);
  void on_revoke(Peer& peer, std::span<const std::byte> message);
  void on_rts_ack(Peer& peer, std::span<const std::byte> message);
  [[nodiscard]] const char* on_grant(std::span<const std::byte> message);
  [[nodiscard]] const char* on_frag(std::span<const std::byte> message);
  [[nodiscard]] const char* on_done(const TargetedHeader& head);
  [[nodiscard]] const char* enter_stream(Peer& peer, std::span<const std::byte> message,
                                         bool forward);

  [[nodiscard]] SequencedHeader forward_head(Kind kind, Peer& peer, std::int32_t tag,
                                             std::uint32_t sequence) const noexcept;
  [[nodiscard]] SequencedHeader reverse_head(Kind kind, Peer& peer, std::int32_t tag) noexcept;
  template <class Header>
  Action& emit_control(Peer& peer, const Header& header);
  void emit_rts(SendOp& op, const Start& start, std::uint8_t adaptation_flags);
  [[nodiscard]] static DoneHeader done_header(std::uint8_t flags, Handle target) noexcept {
    return {kind_version(Kind::done), flags, 0, 0, target};
  }
  Action& emit_targeted(Peer& peer, Kind kind, std::uint8_t flags, Handle target);
  Action& emit(Action::Kind kind);

  Config config_;
  Host& host_;
  Counters& counters_;
  std::unique_ptr<HazardControl> hazard_;
  HandleTable<SendOp> sends_;
  HandleTable<ReceiveOp> receives_;
  std::vector<Action> actions_;
  const void* rail_ = nullptr;  ///< of the message being looked at
};

}  // namespace overlap::speculative
