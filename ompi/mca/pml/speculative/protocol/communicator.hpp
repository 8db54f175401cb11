// Queues and streams of one communicator: posted and unexpected messages with O(1) matching, and the order of what each peer sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "envelope_table.hpp"
#include "operations.hpp"

namespace overlap::speculative {

struct Communicator;

/// Tags of the last messages sent to a peer, by sequence number: tells how many of an envelope went out since a given one
/// without a counter per envelope on the eager path.
inline constexpr std::uint32_t history_messages = 256;
inline constexpr std::int32_t no_message_tag =
    INT32_MIN;  ///< a sequence number that no message has (REVOKE-ACK)

/// Messages that came before their turn, by sequence number.
using Stash = std::map<std::uint16_t, std::vector<std::byte>>;

/// One process as seen from one communicator. Everything here exists once the peer has been talked to.
struct Peer {
  Communicator* comm = nullptr;
  std::int32_t rank = 0;
  void* host_data = nullptr;  ///< the glue's: endpoint and limits

  // Outgoing forward stream.
  std::uint32_t next_sequence = 0;
  bool watch_eager = false;  ///< an eager send to this peer concerns the hazard control
  std::array<std::int32_t, history_messages> sent_tags;
  // Incoming forward stream.
  std::uint32_t expected_sequence = 0;
  std::uint16_t incarnation = 0;  ///< the peer's, of this communicator
  bool incarnation_known = false;
  Stash forward_stash;
  // Reverse streams.
  std::uint16_t next_reverse = 0;
  std::uint16_t expected_reverse = 0;
  Stash reverse_stash;

  TagTable<ReceiveOp, &ReceiveOp::link, &ReceiveOp::tag> posted;
  List<ReceiveOp, &ReceiveOp::link> posted_any_tag;
  TagTable<Arrived, &Arrived::by_tag, &Arrived::tag> unexpected;
  List<Arrived, &Arrived::by_peer> unexpected_order;

  EnvelopeTable<SendEnvelope> send_envelopes;
  EnvelopeTable<ReceiveEnvelope> receive_envelopes;
  std::uint32_t kept_rtrs = 0;
};

/// One communicator.
struct Communicator {
  /// @param size         processes that can be talked to (the remote group of an intercommunicator)
  /// @param incarnation  0 for a communicator that exists once per job, otherwise a number that no recent communicator with this
  ///                     context had
  Communicator(std::uint16_t context, std::int32_t my_rank, std::size_t size,
               std::uint16_t incarnation);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// The peer, made on first use. @param rank  in [0, size)
  [[nodiscard]] Peer& peer(std::int32_t rank) {
    Peer* known = peers_[static_cast<std::size_t>(rank)];
    return known != nullptr ? *known : make_peer(rank);
  }
  [[nodiscard]] Peer* peer_if_known(std::int32_t rank) noexcept {
    return peers_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }

  /// Put a receive into Recvq. Gives it its place in the order of posting.
  void post(ReceiveOp& op);
  void unpost(ReceiveOp& op) noexcept;

  /// First posted receive that takes (peer, tag), by MPI's order of posting; it stays posted. O(1) but for chains of equal hash.
  [[nodiscard]] ReceiveOp* find_posted(Peer& peer, std::int32_t tag) noexcept {
    ReceiveOp* best = peer.posted.find(tag);
    if (wild_receives == 0) [[likely]]
      return best;
    return find_posted_wild(peer, tag, best);
  }

  /// Is a receive posted that takes (peer, tag) and other envelopes too?
  [[nodiscard]] bool wildcard_matches(Peer& peer, std::int32_t tag) noexcept {
    return wild_receives != 0 && find_posted_wild(peer, tag, nullptr) != nullptr;
  }

  void store(Arrived& arrived);
  void take(Arrived& arrived) noexcept;

  /// Oldest unexpected message that a receive of (source, tag) takes; wildcards allowed.
  [[nodiscard]] Arrived* find_unexpected(std::int32_t source, std::int32_t tag) noexcept;

  std::uint16_t context;
  std::uint16_t incarnation;
  std::int32_t my_rank;
  bool watch_every_eager = false;  ///< what a new peer starts with
  std::uint32_t wild_receives = 0;
  std::uint64_t posted_count = 0;
  std::uint64_t unexpected_count = 0;

 private:
  Peer& make_peer(std::int32_t rank);
  [[nodiscard]] ReceiveOp* find_posted_wild(Peer& peer, std::int32_t tag, ReceiveOp* best) noexcept;

  std::vector<Peer*> peers_;
  std::uint64_t next_order_ = 0;
  TagTable<ReceiveOp, &ReceiveOp::link, &ReceiveOp::tag> posted_any_source_;
  List<ReceiveOp, &ReceiveOp::link> posted_any_;
  TagTable<Arrived, &Arrived::any_by_tag, &Arrived::tag> unexpected_by_tag_;
  List<Arrived, &Arrived::any> unexpected_order_;
};

}  // namespace overlap::speculative
