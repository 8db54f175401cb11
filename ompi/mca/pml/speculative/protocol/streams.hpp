// Which communicator of this process a message belongs to, by its stream's identity, and whether it
// is one that has been freed (docs/design/streams.md).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "communicator.hpp"
#include "held_messages.hpp"
#include "host.hpp"

namespace overlap::speculative {

/// A communicator that comes into being.
struct NewCommunicator {
  std::uint16_t context = 0;
  std::int32_t my_rank = 0;
  std::size_t size = 0;  ///< processes that can be talked to (the remote group of an
                         ///< intercommunicator)
  /// The same at all processes before anybody can speak: 0 for MPI_COMM_WORLD, which exists once.
  std::optional<std::uint16_t> agreed_incarnation{};
  bool agreed_by_messages = true;  ///< its processes have agreed on the context by messages that
                                   ///< went through here; false: by other ways (MPI_Comm_spawn)
  bool speculates = true;          ///< false: no RTRs in it, so that a process may end when it has
                                   ///< freed the communicator, though others still use it
  void* host_data = nullptr;       ///< the glue's
};

/// The communicators of a process and the identity of every stream.
class Streams {
 public:
  /// @param process       this process's number, as everybody's Host::process_of says it
  /// @param first_agreed  @see first_agreed_context; above all contexts: there are none
  Streams(Host& host, std::uint64_t process, bool speculation, HeldBound bound,
          std::uint32_t first_agreed);

  [[nodiscard]] Communicator* find(std::uint16_t context) const noexcept {
    return context < communicators_.size() ? communicators_[context].get() : nullptr;
  }
  /// The one that a forward or reverse message is for, as far as its number says.
  [[nodiscard]] Communicator* find(const SequencedHeader& head) const noexcept {
    if (head.context < communicators_.size()) [[likely]]
      return communicators_[head.context].get();
    return find_agreed(head.context, head.incarnation);
  }
  [[nodiscard]] Communicator* find_agreed(std::uint16_t context,
                                          std::uint16_t incarnation) const noexcept;
  Communicator& add(const NewCommunicator& fresh);
  void remove(Communicator& comm);

  enum class Verdict : std::uint8_t {
    pass,   ///< for `peer`
    bound,  ///< the same, and the first of its stream: held messages of it may pass now
    held,   ///< kept until more is known
    stale,  ///< its communicator has been freed
    fault,  ///< cannot be
  };
  struct Admission {
    Verdict verdict;
    Peer* peer = nullptr;
    const char* fault = nullptr;
    std::size_t dropped = 0;  ///< held messages that turned out to be stale
  };
  /// Whose is this forward or reverse message? Asked before anything else in it is used.
  ///
  /// @param prefix  nullptr when the message has none
  /// @param whole   the message with its prefix
  [[nodiscard]] Admission admit(const SequencedHeader& head, const EraPrefix* prefix,
                                const IncomingMessage& whole);
  /// Take the held messages of a communicator, or of one stream, to be admitted again.
  [[nodiscard]] std::vector<HeldMessages::Held> take_held(const Communicator& comm);
  [[nodiscard]] std::vector<HeldMessages::Held> take_held(const StreamIdentity& identity);

  /// Does the next forward message to this peer need a prefix?
  [[nodiscard]] bool must_announce(const Peer& peer) const noexcept {
    return peer.told_era != era_;
  }
  /// The prefix; the peer counts as told.
  [[nodiscard]] EraPrefix announce(Peer& peer) noexcept;

  [[nodiscard]] std::uint32_t era() const noexcept { return era_; }
  /// A message beside these streams has carried the era of its sender.
  void note_era(std::uint32_t era) noexcept { era_ = std::max(era_, era); }
  [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }

 private:
  /// Is it for the communicator with an agreed incarnation that was the last one freed here of this
  /// context? Other ones are long gone, or still to come.
  [[nodiscard]] bool has_ended_as_agreed(const SequencedHeader& head) const noexcept;
  [[nodiscard]] Admission without_communicator(const SequencedHeader& head, bool has_prefix,
                                               const IncomingMessage& whole);
  [[nodiscard]] Admission forward_to(Communicator& comm, const SequencedHeader& head,
                                     const EraPrefix* prefix, const IncomingMessage& whole);
  [[nodiscard]] bool is_dead(const Communicator& comm, std::int32_t source,
                             const EraPrefix& prefix);
  [[nodiscard]] Admission hold(const StreamIdentity& identity, const IncomingMessage& whole);
  [[nodiscard]] bool is_agreed(std::uint16_t context) const noexcept {
    return context >= first_agreed_;
  }
  [[nodiscard]] bool existed(std::uint16_t context) const noexcept {
    return context < existed_.size() && existed_[context];
  }

  Host& host_;
  std::uint64_t process_;
  bool speculation_;
  std::uint32_t era_ = 0;
  std::uint16_t last_incarnation_;
  std::uint32_t first_agreed_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  ///< [context]
  /// From first_agreed_ on, by context and incarnation.
  std::unordered_map<std::uint32_t, std::unique_ptr<Communicator>> agreed_;
  std::vector<bool> existed_;  ///< [context]: at any time until now
  /// Incarnation of the last one that was freed: [context]
  std::unordered_map<std::uint16_t, std::uint16_t> ended_agreed_;
  HeldMessages held_;
  Tombstones tombstones_;
};

}  // namespace overlap::speculative
