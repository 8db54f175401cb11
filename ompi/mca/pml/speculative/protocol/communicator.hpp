// Queues and streams of one communicator: posted and unexpected messages with O(1) matching, and
// the order of what each peer sends.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "envelope_table.hpp"
#include "operations.hpp"
#include "replies.hpp"
#include "sent_tags.hpp"
#include "stash.hpp"

namespace overlap::speculative {

struct Communicator;

/// Peer::bound of a peer of whom no first message has come.
inline constexpr std::uint32_t unbound_incarnation = UINT32_MAX;

/// One process as seen from one communicator; made when it is first talked to. What the speculation
/// and reordering need is made when they do: a peer that only ever sends and receives eagerly costs
/// at most 256 bytes.
struct alignas(64) Peer {
  // A message that meets a posted receive touches this line only.
  Communicator* comm = nullptr;
  void* host_data = nullptr;                  ///< the glue's: endpoint and limits
  std::uint32_t expected_sequence = 0;        ///< of the incoming forward stream
  std::uint32_t bound = unbound_incarnation;  ///< the peer's incarnation of this communicator
  Stash forward_stash;
  TagTable<ReceiveOp, &ReceiveOp::link, &ReceiveOp::tag> posted;

  // An eager send touches this one.
  std::int32_t rank = 0;
  std::uint32_t next_sequence = 0;  ///< of the outgoing forward stream
  std::uint32_t told_era = 0;       ///< the last era that this peer was told in this communicator
  std::uint32_t kept_rtrs = 0;
  SentTags sent_tags;
  bool defers = false;       ///< a send to this peer is deferred: whatever follows decides it
  bool watch_eager = false;  ///< an eager send to this peer concerns the hazard control
  bool speculates = true;    ///< the peer has not said that it uses no RTRs
  bool ended = false;        ///< the peer has freed the communicator: nothing of it follows
  std::uint16_t next_reverse = 0;
  std::uint16_t expected_reverse = 0;
  EnvelopeTable<SendEnvelope> send_envelopes;
  EnvelopeTable<ReceiveEnvelope> receive_envelopes;
  Stash reverse_stash;
  Replies replies;

  TagTable<Arrived, &Arrived::by_tag, &Arrived::tag> unexpected;
  List<Arrived, &Arrived::by_peer> unexpected_order;
  List<ReceiveOp, &ReceiveOp::link> posted_any_tag;
};
static_assert(sizeof(Peer) <= 256 - 2 * sizeof(void*));  // its own place in the table, the heap's
static_assert(offsetof(Peer, posted) + sizeof(Peer::posted) == 64);
static_assert(offsetof(Peer, reverse_stash) + sizeof(Peer::reverse_stash) <= 128);

/// One communicator.
struct Communicator {
  /// @param size         processes that can be talked to (the remote group of an intercommunicator)
  /// @param incarnation  0 for a communicator that exists once per job, otherwise a number that no
  ///                     recent communicator with this context had
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
  [[nodiscard]] const Peer* peer_if_known(std::int32_t rank) const noexcept {
    return peers_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }

  /// Put a receive into Recvq. Gives it its place in the order of posting.
  void post(ReceiveOp& op) {
    op.order = next_order_++;
    ++posted_count;
    if (op.source != any_source && op.tag != any_tag) [[likely]] {
      op.peer = &peer(op.source);
      op.peer->posted.insert(op);
    } else {
      post_wild(op);
    }
  }
  void unpost(ReceiveOp& op) noexcept {
    --posted_count;
    if (op.source != any_source && op.tag != any_tag) [[likely]] {
      op.peer->posted.remove(op);
    } else {
      unpost_wild(op);
    }
  }

  /// First posted receive that takes (peer, tag), by MPI's order of posting; it stays posted. O(1)
  /// but for chains of equal hash.
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
  [[nodiscard]] Arrived* find_unexpected(std::int32_t source, std::int32_t tag) noexcept {
    return unexpected_count == 0 ? nullptr : find_among_unexpected(source, tag);
  }

  std::uint16_t context;
  std::uint16_t incarnation;
  bool
      incarnation_is_agreed;  ///< it is the same at all processes: streams are bound from the start
  std::int32_t my_rank;
  std::uint32_t birth = 0;       ///< this process's era when it was made; 0: eras say nothing here
  bool has_predecessor = false;  ///< another communicator had this context before, here
  bool watch_every_eager = false;  ///< what a new peer starts with
  bool speculates = true;          ///< false: neither do its peers, whatever they say
  void* host_data = nullptr;       ///< the glue's: Open MPI's communicator
  std::uint32_t wild_receives = 0;
  std::uint64_t posted_count = 0;
  std::uint64_t unexpected_count = 0;

 private:
  // Calls that few messages need are kept out of the inlined ones above.
  [[gnu::cold, gnu::noinline]] Peer& make_peer(std::int32_t rank);
  [[gnu::noinline]] void post_wild(ReceiveOp& op);
  [[gnu::noinline]] void unpost_wild(ReceiveOp& op) noexcept;
  [[nodiscard]] Arrived* find_among_unexpected(std::int32_t source, std::int32_t tag) noexcept;
  [[nodiscard]] ReceiveOp* find_posted_wild(Peer& peer, std::int32_t tag, ReceiveOp* best) noexcept;

  std::vector<Peer*> peers_;
  std::uint64_t next_order_ = 0;
  TagTable<ReceiveOp, &ReceiveOp::link, &ReceiveOp::tag> posted_any_source_;
  List<ReceiveOp, &ReceiveOp::link> posted_any_;
  TagTable<Arrived, &Arrived::any_by_tag, &Arrived::tag> unexpected_by_tag_;
  List<Arrived, &Arrived::any> unexpected_order_;
};

}  // namespace overlap::speculative
