// Carries plans out by software: the collectives of one stream at one rank.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ompi/mca/common/overlap/protocol/ring_queue.hpp"

#include "arrivals.hpp"
#include "counter.hpp"
#include "message.hpp"
#include "peer_table.hpp"
#include "plan.hpp"

namespace overlap::coll_mq {

using PlanId = std::uint32_t;  ///< of one Interpreter
using Cookie = std::uint64_t;  ///< the caller's name for a collective: its request

enum class Outcome : std::uint8_t { done, failed };

/// What the caller of Interpreter::advance() does next.
struct Action {
  enum class Kind : std::uint8_t {
    send,      ///< `message` to `peer`; data with the payload `from`, read before the next call
    deliver,   ///< payload that came before its collective goes to `to`
    copy,      ///< `to` = `from`
    reduce,    ///< `to` = `from` op `to`
    finished,  ///< the collective is over; its buffers are the program's again
  };
  Kind kind{};
  Outcome outcome{};                     ///< finished
  std::uint16_t edge = 0;                ///< send: index in Interpreter::peers()
  Rank peer = 0;                         ///< send
  Cookie cookie = 0;                     ///< of the collective; 0 with messages that are not data
  Message message{};                     ///< send
  Place from{};                          ///< send, copy, reduce
  Place to{};                            ///< deliver, copy, reduce
  std::span<const std::byte> payload{};  ///< deliver; gone at the next call
};

/// What has become of a message that has come in.
struct Arrival {
  enum class Kind : std::uint8_t {
    counted,  ///< there is nothing to do with its payload
    deliver,  ///< its payload goes to `to` of the collective `cookie`, now
    kept,     ///< its collective has not begun here; the payload has been copied
    stale,    ///< its collective is over, or it has come before: dropped
    refused,  ///< the sender may not have sent it: a defect; the stream has failed
  };
  Kind kind{};
  Cookie cookie = 0;
  Place to;
};

/// The collectives of a stream at one rank (P6.4): they begin in the order of the calls, the same
/// at all ranks, and several may be under way. A message names its collective and its number, so
/// the order of arrival does not matter.
///
/// Each collective that is under way, or begun by a peer only, has one of `window` slots; one that
/// finds none waits in a list.
///
///   free --start--> running <--> waiting (for messages)
///    ^                 |   <--> stalled (the transport has no room)
///    |                 |   <--> blocked (a peer is too far behind)
///    +--- over <-------+ last task        free again when all before it are over
///
/// After the first collectives of a plan nothing allocates, except for payload that must be kept.
///
/// @thread  one at a time
class Interpreter {
 public:
  struct Counts {
    std::uint64_t kept = 0;      ///< messages that came before their collective began here
    std::uint64_t stale = 0;     ///< messages dropped
    std::uint64_t stalled = 0;   ///< sends that the transport refused
    std::uint64_t blocked = 0;   ///< sends that waited for a peer to catch up
    std::uint64_t deferred = 0;  ///< collectives that waited for a slot
  };

  /// @param window  a power of two of at most 1024, the same at all ranks
  /// @param first   number of the first collective, the same at all ranks
  explicit Interpreter(std::uint32_t window = 64, Sequence first = Sequence{});

  /// Make a plan known; it can be started any number of times.
  [[nodiscard]] PlanId add(Plan plan);
  /// As it was added, but its edges are those of the stream.
  [[nodiscard]] const Plan& plan(PlanId id) const noexcept { return plans_[id]->plan; }
  /// Begin a collective, or as soon as there is a slot. Actions follow.
  void start(PlanId id, Cookie cookie);
  [[nodiscard]] Arrival arrived(Rank peer, const Message& message,
                                std::span<const std::byte> payload = {});
  /// @returns  what to do; nothing: all wait, for messages or for room
  [[nodiscard]] std::optional<Action> advance();
  /// There was no room for the message that advance() has just returned: again after room().
  void retry(const Action& action);
  /// What was refused may be tried again.
  void room();
  /// A peer is lost: all collectives end, failed; later ones as soon as they start.
  void fail();

  /// Will advance() return something?
  [[nodiscard]] bool is_runnable() const noexcept {
    return !runnable_.empty() || peers_.has_control();
  }
  /// Is nothing under way, and nothing to send?
  [[nodiscard]] bool is_idle() const noexcept {
    return oldest_ == next_ && pending_.empty() && peers_.is_idle();
  }
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// Those that plans name or messages came from, [Action::edge].
  [[nodiscard]] std::span<const Rank> peers() const noexcept { return peers_.peers(); }

 private:
  friend struct model::Digest;
  struct Known {
    struct Receives {
      std::uint32_t first = 0;
      std::uint16_t count = 0;
    };
    Plan plan;                       ///< its tasks name the stream's edges
    std::vector<Receives> receives;  ///< [edge of the stream]; shorter: none

    [[nodiscard]] std::uint16_t expected(std::size_t edge) const noexcept {
      return edge < receives.size() ? receives[edge].count : std::uint16_t{0};
    }
    [[nodiscard]] Place place_of(std::uint16_t edge, std::uint16_t step) const noexcept {
      return plan.receives[receives[edge].first + step];
    }
  };
  struct Kept {
    std::uint16_t edge = 0;
    std::uint16_t step = 0;
    std::vector<std::byte> bytes;
  };
  enum class State : std::uint8_t { free, running, waiting, stalled, blocked, over };
  struct Slot {
    State state = State::free;
    bool queued = false;  ///< in runnable_
    const Known* known = nullptr;
    Cookie cookie = 0;
    std::uint32_t task = 0;  ///< the next
    Arrivals arrivals;
    std::vector<Kept> kept;
    std::size_t delivered = 0;  ///< of kept
  };
  struct Pending {
    PlanId id = 0;
    Cookie cookie = 0;
  };

  [[nodiscard]] std::uint32_t index_of(Sequence sequence) const noexcept {
    return sequence.value() & static_cast<std::uint32_t>(slots_.size() - 1);
  }
  [[nodiscard]] Sequence sequence_of(std::uint32_t index) const noexcept;
  void begin(PlanId id, Cookie cookie);
  [[nodiscard]] Arrival on_data(std::uint16_t edge, const Message& message,
                                std::span<const std::byte> payload);
  [[nodiscard]] Arrival refuse();
  void make_runnable(std::uint32_t index);
  void make_runnable(State those_in);
  [[nodiscard]] std::optional<Action> run(std::uint32_t index);
  [[nodiscard]] std::optional<Action> run_task(std::uint32_t index, const Task& task);
  [[nodiscard]] std::optional<Action> run_send(std::uint32_t index, const Task& task);
  [[nodiscard]] Action end(Slot& slot);
  void free_slots();

  bool failed_ = false;
  std::vector<Slot> slots_;  ///< [sequence % window]
  Sequence oldest_;          ///< the first that is not over
  Sequence next_;            ///< the next that begins
  RingQueue<Pending> pending_;
  std::vector<std::shared_ptr<const Known>> plans_;
  PeerTable peers_;
  RingQueue<std::uint32_t> runnable_;  ///< slots to look at
  Counts counts_;
};

}  // namespace overlap::coll_mq
