// The lock of a window at one rank: shared or exclusive, fair, in memory that several processes may
// map.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace overlap::newrma {

enum class LockType : std::uint8_t { shared, exclusive };

/// Tickets are served in the order in which they were taken; neighbouring shared ones together.
///
/// Whoever holds a ticket asks now and then whether it is served, so nobody sleeps in here, and the
/// lock knows nothing of its users: a ticket can be taken for a process that does not map it. All
/// zero bytes are a free lock. At most 2^31 tickets at a time.
///
/// Life of a ticket:  take --try_enter--> inside --leave--> gone
///
/// @tparam Atomic  std::atomic, or a model's
template <template <class> class Atomic = std::atomic>
class TicketLock {
 public:
  using Ticket = std::uint32_t;

  /// Stand in the queue. @thread  any, of any process that maps it
  [[nodiscard]] Ticket take() noexcept {
    return next_.fetch_add(1, std::memory_order_seq_cst);  // L3
  }

  /// Enter, if it is this ticket's turn. Not again once it has returned true.
  [[nodiscard]] bool try_enter(Ticket ticket, LockType type) noexcept {
    if (turn_of(type) != ticket) return false;  // L2
    if (type == LockType::shared) let_next_in(ticket);
    return true;
  }

  /// Take a ticket and enter, if nobody is in the way. @returns  nothing: nothing is done
  [[nodiscard]] std::optional<Ticket> try_lock(LockType type) noexcept {
    const Ticket turn = turn_of(type);  // L2
    // Who fails takes the cache line from nobody.
    if (next_.load(std::memory_order_relaxed) != turn) return {};
    // L3: if the ticket whose turn it is has not been taken yet, nobody else moves the turn.
    Ticket next = turn;
    if (!next_.compare_exchange_strong(next, turn + 1, std::memory_order_seq_cst)) return {};
    if (type == LockType::shared) let_next_in(turn);
    return turn;
  }

  /// Leave. @param type  as it was entered
  void leave(LockType type) noexcept {
    // L1: all that this holder has written comes before the next one's entry.
    if (type == LockType::exclusive)
      shared_turn_.store(shared_turn_.load(std::memory_order_relaxed) + 1, turn_order);
    exclusive_turn_.fetch_add(1, std::memory_order_seq_cst);
  }

  /// Has a ticket been taken? Asked behind the entry or the leave that has let it in. If not, who
  /// takes it later finds that it may enter.
  [[nodiscard]] bool is_taken(Ticket ticket) const noexcept {
    // L4, pairs with L3: this thread has written a turn and then looks at the tickets, the other
    // one the other way round. One of the two sees what the other has written.
    return static_cast<std::int32_t>(next_.load(std::memory_order_seq_cst) - ticket) > 0;
  }

  /// Is anybody inside, or in the queue? Asked behind a leave: if not, nobody has been let in.
  [[nodiscard]] bool is_in_use() const noexcept { return is_taken(exclusive_turn()); }

  /// The tickets that may enter now, shared and exclusively; hints.
  [[nodiscard]] Ticket shared_turn() const noexcept {
    return shared_turn_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Ticket exclusive_turn() const noexcept {
    return exclusive_turn_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] Ticket turn_of(LockType type) const noexcept {
    // L2, pairs with L1: what those inside before have written. Behind this one's ticket: L4.
    return (type == LockType::shared ? shared_turn_ : exclusive_turn_)
        .load(std::memory_order_seq_cst);
  }
  /// A shared one lets the next ticket in if that is shared, too. Only who has the turn writes it.
  void let_next_in(Ticket ticket) noexcept {
    // Not by a store: L4.
    static_cast<void>(shared_turn_.exchange(ticket + 1, std::memory_order_seq_cst));
  }

  /// Of a store that must be visible before is_taken() looks (L4). On x86-64 the atomic operation
  /// between the two sees to that.
#if defined(__x86_64__)
  static constexpr std::memory_order turn_order = std::memory_order_release;
#else
  static constexpr std::memory_order turn_order = std::memory_order_seq_cst;
#endif
  Atomic<std::uint32_t> next_{0};
  Atomic<std::uint32_t> shared_turn_{0};     ///< the ticket that may enter shared
  Atomic<std::uint32_t> exclusive_turn_{0};  ///< the same exclusively: so many have left
};

}  // namespace overlap::newrma
