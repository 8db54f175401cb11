// The lock of a window at one rank: shared or exclusive, fair, in memory that several processes may
// map.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace overlap::newrma {

/// A guest shares, too, but stands in no queue: it passes exclusive ones that wait.
enum class LockType : std::uint8_t { shared, exclusive, guest };

/// Tickets are served in the order in which they were taken; neighbouring shared ones together.
/// Guests wait only for an exclusive one that is inside, and keep the next ones out: for processes
/// that hold another lock, for which somebody in the queue may wait.
///
/// Whoever holds a ticket asks now and then whether it is served, so nobody sleeps in here, and the
/// lock knows nothing of its users: a ticket can be taken for a process that does not map it. All
/// zero bytes are a free lock. At most 2^30 tickets and guests at a time.
///
/// Life of a ticket:  take --try_enter--> inside --leave--> gone
///
/// @tparam Atomic  std::atomic, or a model's
template <template <class> class Atomic = std::atomic>
class TicketLock {
 public:
  using Ticket = std::uint32_t;

  /// Stand in the queue, or come as a guest, who has no ticket. @thread  any, of any process that
  /// maps it
  [[nodiscard]] Ticket take(LockType type = LockType::shared) noexcept {
    if (type != LockType::guest) return next_.fetch_add(1, std::memory_order_seq_cst);  // L3
    // L5, pairs with L6: no exclusive one enters any more.
    state_.fetch_add(one_guest, std::memory_order_seq_cst);
    return 0;
  }

  /// Enter, if it is this ticket's turn. Not again once it has returned true.
  [[nodiscard]] bool try_enter(Ticket ticket, LockType type) noexcept {
    // L2, pairs with L1: what those inside before have written. Behind this one's ticket: L4.
    if (type == LockType::guest) return (state_.load(std::memory_order_seq_cst) & inside) == 0;
    if (type == LockType::exclusive) return try_enter_alone(ticket);
    if (!is_turn(ticket, type)) return false;
    let_next_in(ticket);
    return true;
  }

  /// Is nobody in the way of one that comes now? A hint.
  [[nodiscard]] bool may_enter(LockType type) const noexcept {
    return is_turn(next_.load(std::memory_order_seq_cst), type);
  }
  /// Take a ticket if nobody is in the way. @returns  nothing: nothing is done
  [[nodiscard]] std::optional<Ticket> try_take(LockType type) noexcept {
    // Who fails takes the cache line from nobody.
    const Ticket next = next_.load(std::memory_order_seq_cst);
    if (!is_turn(next, type)) return {};
    // L3: as the ticket has not been taken, nobody else has moved its turn.
    Ticket taken = next;
    if (!next_.compare_exchange_strong(taken, next + 1, std::memory_order_seq_cst)) return {};
    return next;
  }
  /// Of an exclusive ticket whose turn it is, and that a guest keeps out: leave the queue.
  void give_up() noexcept {
    pass_shared_turn();
    state_.fetch_add(one_left, std::memory_order_seq_cst);
  }

  /// Leave. @param type  as it was entered
  /// @returns  guests that have been let in
  std::uint32_t leave(LockType type) noexcept {
    // L1: all that this holder has written comes before the next one's entry.
    if (type == LockType::exclusive) {
      pass_shared_turn();
      return guests_in(state_.fetch_add(one_left - inside, std::memory_order_seq_cst));
    }
    const std::uint64_t gone = type == LockType::guest ? 0 - one_guest : one_left;
    state_.fetch_add(gone, std::memory_order_seq_cst);
    return 0;
  }

  /// Has a ticket been taken? Asked behind the entry or the leave that has let it in. If not, who
  /// takes it later finds that it may enter.
  [[nodiscard]] bool is_taken(Ticket ticket) const noexcept {
    // L4, pairs with L3: this thread has written a turn and then looks at the tickets, the other
    // one the other way round. One of the two sees what the other has written.
    return static_cast<std::int32_t>(next_.load(std::memory_order_seq_cst) - ticket) > 0;
  }
  /// Is anybody inside, a guest, or in the queue? Asked behind a leave: if not, nobody has been let
  /// in.
  [[nodiscard]] bool is_in_use() const noexcept {
    const std::uint64_t state = state_.load(std::memory_order_relaxed);
    return state != turn_of(next_.load(std::memory_order_seq_cst));  // L4
  }

  /// The tickets that may enter now, shared and exclusively; hints.
  [[nodiscard]] Ticket shared_turn() const noexcept {
    return shared_turn_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Ticket exclusive_turn() const noexcept {
    const std::uint64_t state = state_.load(std::memory_order_relaxed);
    const Ticket next = next_.load(std::memory_order_relaxed);
    // The state has one bit less of it.
    return next - static_cast<Ticket>((turn_of(next) - state + inside) / one_left);
  }

 private:
  /// In state_: guests; an exclusive one is inside; and what each one adds that leaves its ticket.
  static constexpr std::uint64_t one_guest = 1;
  static constexpr std::uint64_t inside = std::uint64_t{1} << 32U;
  static constexpr std::uint64_t one_left = 2 * inside;

  /// With which an exclusive one may enter: all before it have left, and there are no guests.
  [[nodiscard]] static constexpr std::uint64_t turn_of(Ticket ticket) noexcept {
    return one_left * ticket;
  }
  [[nodiscard]] static constexpr std::uint32_t guests_in(std::uint64_t state) noexcept {
    return static_cast<std::uint32_t>(state);
  }
  [[nodiscard]] bool is_turn(Ticket ticket, LockType type) const noexcept {
    return type == LockType::exclusive ? state_.load(std::memory_order_seq_cst) == turn_of(ticket)
                                       : shared_turn_.load(std::memory_order_seq_cst) == ticket;
  }
  [[nodiscard]] bool try_enter_alone(Ticket ticket) noexcept {
    if (!is_turn(ticket, LockType::exclusive)) return false;  // L2
    std::uint64_t turn = turn_of(ticket);
    // L6, pairs with L5: either the guest sees that this one is inside, or this one sees the guest.
    return state_.compare_exchange_strong(turn, turn + inside, std::memory_order_seq_cst);
  }
  /// A shared one lets the next ticket in if that is shared, too. Only who has the turn writes it.
  void let_next_in(Ticket ticket) noexcept {
    // Not by a store: L4.
    static_cast<void>(shared_turn_.exchange(ticket + 1, std::memory_order_seq_cst));
  }
  /// The same of an exclusive one.
  void pass_shared_turn() noexcept {
    shared_turn_.store(shared_turn_.load(std::memory_order_relaxed) + 1, turn_order);
  }

  /// Of a store that must be visible before is_taken() looks (L4). On x86-64 the atomic operation
  /// between the two sees to that.
#if defined(__x86_64__)
  static constexpr std::memory_order turn_order = std::memory_order_release;
#else
  static constexpr std::memory_order turn_order = std::memory_order_seq_cst;
#endif
  Atomic<std::uint32_t> next_{0};
  Atomic<std::uint32_t> shared_turn_{0};  ///< the ticket that may enter shared
  Atomic<std::uint64_t> state_{0};
};

}  // namespace overlap::newrma
