// The software device as pure code: executes the work requests of all its clients in virtual time.
// No system, no clock.
//
// The way of a request (lane `out` of its poster's queue pair), and the type that does each step:
//   fetch    out of the send queue into Pair::tasks                                  Requester
//   begin    its turn, its conditions hold, local keys are good: on the wire         Requester
//   mark     so many bytes have left; they arrive one latency later                  Lanes, Wire
//   arrive   the responder's keys are checked, a receive entry is taken or awaited   Admission
//   move     bytes are copied; the last byte last                                    DataMover
//   deliver  the receiver's completion                                               Delivery
//   retire   one latency later the poster's completion is visible, in order          Retirement
// Management queues enable the first of these steps, and wait for the last ones: Management.
// Reads and atomics get a response, which takes the same way back in lane `back`.
//
// Waking: next_wake() is the next moment at which something becomes visible to a client. What
// merely happens on the wire is computed later, for its own time, as long as that is within one
// latency.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "access_check.hpp"
#include "admission.hpp"
#include "arrivals.hpp"
#include "completion_queues.hpp"
#include "connections.hpp"
#include "data_mover.hpp"
#include "delivery.hpp"
#include "directory.hpp"
#include "failures.hpp"
#include "lanes.hpp"
#include "management.hpp"
#include "regions.hpp"
#include "requester.hpp"
#include "retirement.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

/// Puts the parts together and lets time pass. Each part owns one thing and knows only the parts
/// above it in the list of members; back up leads Steps alone.
class Engine final : private Steps {
 public:
  explicit Engine(Host& host);

  /// Makes clients and queues, and finds them; their ends are here.
  [[nodiscard]] Directory& directory() noexcept { return directory_; }
  [[nodiscard]] Regions& regions() noexcept { return regions_; }
  /// The client's process has ended or left: everything of it goes, peers are told.
  void remove_client(Client& client, Time now);
  /// @param why  what the peer is told
  void remove_pair(Pair& pair, const std::string& why, Time now);
  void remove_manager(Manager& manager, Time now);
  /// Who waits for it has waited in vain.
  void remove_completions(Completions& completions, Time now);

  /// As in Connections.
  [[nodiscard]] bool connect(Pair& pair, std::uint32_t client, const PrivateData& data, Time now);
  [[nodiscard]] bool accept(std::uint64_t request, Pair& pair);
  void reject(std::uint64_t request, const Client& client);

  /// The client has posted to this queue pair.
  void ring(Pair& pair, Time now);
  /// The client has posted to this management queue.
  void ring(Manager& manager, Time now);
  /// A receive queue that take_receive() found empty has entries.
  void receives_posted(Receives& receives, Time now);
  /// Let everything happen up to now, but for the copying of large messages.
  void advance(Time now);
  [[nodiscard]] bool has_backlog() const noexcept { return lanes_.has_backlog(); }
  /// Copy one piece of a large message.
  void move_piece() { arrivals_.move_backlog(); }
  /// @returns  when advance() must be called again, `never` if only a client can make something
  /// happen
  [[nodiscard]] Time next_wake() const noexcept;

  /// Faults on command that take effect at once; the others are fields of PairFaults and Client.
  void stall(Pair& pair, bool stalled, Time now);
  void set_link(std::uint32_t node, bool down, Time now);

 private:
  void catch_up(Time now);
  void dispatch(const Timer& timer);
  void break_overrun();
  void go_on(Pair& pair, Stage stage) override;
  void go_on(Manager& manager) override;

  Host& host_;
  Schedule schedule_;
  Wire wire_;
  Regions regions_;
  Directory directory_;
  Connections connections_;
  AccessCheck access_;
  DataMover mover_;
  CompletionQueues queues_;
  Lanes lanes_;
  Retirement retirement_;
  Failures failures_;
  Admission admission_;
  Delivery delivery_;
  Arrivals arrivals_;
  Requester requester_;
  Management management_;
};

}  // namespace overlap::fabric::soft
