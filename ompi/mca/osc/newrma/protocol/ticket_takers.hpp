// Who has taken the tickets of a lock, so that whoever lets the next one in can wake its process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ticket_lock.hpp"

namespace overlap::newrma {

/// Beside a TicketLock, in the same memory. A taker that may not enter notes itself and looks again
/// before it may sleep; whoever has let a ticket in that has been taken asks for its taker
/// afterwards. One of the two sees the other. All zero bytes are an empty one.
///
/// Of more tickets than there are places the older are forgotten: their takers are woken by nobody.
///
/// @tparam Atomic  std::atomic, or a model's that begins with zero
template <template <class> class Atomic = std::atomic, std::size_t places = 32>
class TicketTakers {
 public:
  using Ticket = std::uint32_t;

  /// @param rank  at least 0
  void note(Ticket ticket, std::int32_t rank) noexcept {
    // K1, pairs with K2: whichever comes second in the place sees the first, and what its side did
    // before: the noted taker, or the turn that was passed on.
    static_cast<void>(place(ticket).exchange(entry(ticket, rank), std::memory_order_acq_rel));
  }

  /// After the ticket has been let in. @returns  nullopt: nobody has noted itself yet
  [[nodiscard]] std::optional<std::int32_t> taker_of(Ticket ticket) noexcept {
    const std::uint64_t found = place(ticket).fetch_add(0, std::memory_order_acq_rel);  // K2
    const auto rank = static_cast<std::int32_t>(static_cast<std::uint32_t>(found) - 1);
    if (rank < 0 || found != entry(ticket, rank)) return std::nullopt;
    return rank;
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t entry(Ticket ticket, std::int32_t rank) noexcept {
    return std::uint64_t{ticket} << 32U | (static_cast<std::uint32_t>(rank) + 1);
  }
  [[nodiscard]] Atomic<std::uint64_t>& place(Ticket ticket) noexcept {
    return places_[ticket % places];
  }

  std::array<Atomic<std::uint64_t>, places> places_{};
};

}  // namespace overlap::newrma
