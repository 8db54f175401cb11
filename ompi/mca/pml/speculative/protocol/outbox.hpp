// What a step of the protocol leaves for its caller to do, and the headers of numbered messages.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "communicator.hpp"
#include "headers.hpp"
#include "operations.hpp"
#include "streams.hpp"

namespace overlap::speculative {

/// Something the caller must do now that a step has returned. Actions are done in order.
struct Action {
  enum class Kind : std::uint8_t {
    control,  ///< send `message` to `peer`, encoded with the memory of its request where it
              ///< describes memory
    read,     ///< read receive->take_bytes() from receive->source_memory; answer read_done or
              ///< read_refused
    write,    ///< write send->take_bytes to send->target; answer write_done, or write_posted and
              ///< later write_done, or write_refused both: where the transport keeps order, see
              ///< `Chained completion`
    push,     ///< send send->take_bytes as fragments to send->receive; answer push_done
    complete_send,
    complete_receive,  ///< everything about the result is in the receive
    complete_cancelled,
    break_off,  ///< a transfer failed whose DONE was posted already: end the job
  };
  Kind kind;
  Peer* peer = nullptr;
  SendOp* send = nullptr;  ///< control: the request that an RTS, RTR-ACK or DONE belongs to; the
                           ///< last two follow its data
  ReceiveOp* receive = nullptr;  ///< control: the request that an RTR, GRANT, DONE or SYNC-ACK
                                 ///< belongs to; it is not complete before the last two have left
  ControlMessage message;
};

/// The actions of a process in order. Each control message takes its place in its stream here.
class Outbox {
 public:
  explicit Outbox(Streams& streams) : streams_(streams) {}

  [[nodiscard]] std::vector<Action>& actions() noexcept { return actions_; }

  /// Take the next place in the forward stream. @param tag  of the message that gets it
  static std::uint32_t take_sequence(Peer& peer, std::int32_t tag) noexcept {
    const std::uint32_t sequence = peer.next_sequence++;
    peer.sent_tags.note(sequence, tag);
    return sequence;
  }
  /// @param sequence  a place that was taken
  [[nodiscard]] static SequencedHeader forward_head(Kind kind, const Peer& peer, std::int32_t tag,
                                                    std::uint32_t sequence) noexcept {
    SequencedHeader head;
    write_forward_head(head, kind, peer, tag, sequence);
    return head;
  }
  /// The same where it is to lie: by two stores, since a BTL's load of all of it waits for each.
  static void write_forward_head(SequencedHeader& out, Kind kind, const Peer& peer,
                                 std::int32_t tag, std::uint32_t sequence) noexcept {
    const Communicator& comm = *peer.comm;
    const auto place = static_cast<std::uint16_t>(sequence);
    if constexpr (std::endian::native != std::endian::little) {
      out = {kind_version(kind), 0, comm.context, comm.my_rank, tag, place, comm.incarnation};
      return;
    }
    const std::array<std::uint64_t, 2> words{
        kind_version(kind) | std::uint64_t{comm.context} << 16U |
            std::uint64_t{static_cast<std::uint32_t>(comm.my_rank)} << 32U,
        static_cast<std::uint32_t>(tag) | std::uint64_t{place} << 32U |
            std::uint64_t{comm.incarnation} << 48U};
    std::memcpy(&out, &words, sizeof out);
  }
  /// Takes the next place in the reverse stream.
  [[nodiscard]] static SequencedHeader reverse_head(Kind kind, Peer& peer,
                                                    std::int32_t tag) noexcept;

  /// @returns  the last action, for the caller to add its request
  Action& emit(Action::Kind kind);
  template <class Header>
  Action& emit_control(Peer& peer, const Header& header) {
    return actions_.emplace_back(control_action(peer, header));
  }
  Action& emit_targeted(Peer& peer, Kind kind, std::uint8_t flags, Handle target);
  /// A control message that is not among the actions: the caller sends it. The peer counts as told
  /// what its prefix says.
  template <class Header>
  [[nodiscard]] Action control_action(Peer& peer, const Header& header) {
    static_assert(sizeof header <= header_max_bytes);
    Action action;
    action.kind = Action::Kind::control;
    action.peer = &peer;
    action.message.header_bytes = sizeof header;
    std::memcpy(action.message.header.data(), &header, sizeof header);
    if (is_forward(action.message.kind()) && streams_.must_announce(peer)) {
      action.message.with_prefix = true;
      action.message.prefix = streams_.announce(peer);
    }
    return action;
  }

 private:
  Streams& streams_;
  std::vector<Action> actions_;
};

}  // namespace overlap::speculative
