// Events that a thread finds and only another thread may handle.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace overlap::ring {

/// Events of connections that the interrupt thread leaves to MPI threads, oldest first: those of a
/// process that it does not know, and failures. The order matters for each process alone: one
/// stranger holds up nobody else.
///
/// @thread  Guard held
template <class Event>
class LeftEvents {
 public:
  /// @param process  whose connection it is about; nullopt: nobody's that is known
  void leave(Event&& event, std::optional<std::uint64_t> process) {
    events_.push_back({std::move(event), process});
  }
  /// Must an event of this process wait, too, for one that came before it?
  [[nodiscard]] bool holds_up(std::optional<std::uint64_t> process) const noexcept {
    return process && std::ranges::any_of(events_, [process](const Entry& each) {
             return each.process == process;
           });
  }
  /// @returns  the oldest; nullopt: there is none
  [[nodiscard]] std::optional<Event> take() {
    if (events_.empty()) return std::nullopt;
    std::optional<Event> oldest(std::move(events_.front().event));
    events_.pop_front();
    return oldest;
  }

 private:
  struct Entry {
    Event event;
    std::optional<std::uint64_t> process;
  };
  std::deque<Entry> events_;
};

}  // namespace overlap::ring
