// The software device as pure code: executes the work requests of all its clients in virtual time. No system, no clock.
//
// The way of a request (lane `out` of its poster's queue pair):
//   ring()  fetched into Pair::tasks
//   begin   its turn, its conditions hold, local keys are good: on the wire
//   mark    so many bytes have left; they arrive one latency later
//   arrive  the responder's keys are checked, a receive entry is taken or waited for, bytes are copied; the last byte last
//   retire  one latency later its completion is visible, in order
// Reads and atomics get a response, which takes the same way back in lane `back`.
//
// Waking: next_wake() is the next moment at which something becomes visible to a client. What merely happens on the wire is computed
// later, for its own time, as long as that is within one latency.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "objects.hpp"
#include "regions.hpp"

namespace overlap::fabric::soft {

inline constexpr std::uint32_t read_depth = 16;  ///< reads and atomics under way per queue pair
inline constexpr std::uint64_t message_max_bytes = 1U << 30U;

class Engine {
 public:
  explicit Engine(Host& host) : host_(host), wire_(wire_timers_) {}

  // --- Objects; each lives until it is removed -------------------------------------------------------------------------------
  [[nodiscard]] Client& add_client(std::uint32_t node, const WireSettings& settings, void* host);
  /// The client's process has ended or left: everything of it goes, peers are told.
  void remove_client(Client& client, Time now);
  [[nodiscard]] Completions& add_completions(Client& client, void* host);
  void remove_completions(Completions& completions);
  [[nodiscard]] Receives& add_receives(Client& client, void* host);
  void remove_receives(Receives& receives);
  [[nodiscard]] Pair& add_pair(Client& client, Completions& completions, Receives* receives,
                               void* host);
  /// @param why  what the peer is told
  void remove_pair(Pair& pair, const std::string& why, Time now);
  [[nodiscard]] Regions& regions() noexcept { return regions_; }

  // --- Connections -----------------------------------------------------------------------------------------------------------
  /// Ask a client for a connection; the outcome is an event. @returns  false: the pair is not fresh
  [[nodiscard]] bool connect(Pair& pair, std::uint32_t client, const PrivateData& data);
  /// @returns  false: no such request of this client, or the pair is not fresh
  [[nodiscard]] bool accept(std::uint64_t request, Pair& pair);
  void reject(std::uint64_t request, const Client& client);

  // --- Work ------------------------------------------------------------------------------------------------------------------
  /// The client has posted to this queue pair.
  void ring(Pair& pair, Time now);
  /// A receive queue that take_receive() found empty has entries.
  void receives_posted(Receives& receives, Time now);
  /// Let everything happen up to now, but for the copying of large messages.
  void advance(Time now);
  [[nodiscard]] bool has_backlog() const noexcept { return !backlog_.empty(); }
  /// Copy one piece of a large message.
  void move_piece();
  /// @returns  when advance() must be called again, `never` if only a client can make something happen
  [[nodiscard]] Time next_wake() const noexcept;

  // --- Faults on command -----------------------------------------------------------------------------------------------------
  [[nodiscard]] Pair* find_pair(std::uint32_t number) noexcept;
  [[nodiscard]] Client* find_client(std::uint32_t id) noexcept;
  /// The next request of this queue pair that arrives ends with this status and is not executed.
  void fail_next(Pair& pair, CompletionStatus status) noexcept { pair.fail_next = status; }
  void stall(Pair& pair, bool stalled, Time now);
  void delay(Pair& pair, Time delay_ns) noexcept { pair.delay_ns = delay_ns; }
  void set_link(std::uint32_t node, bool down, Time now);
  template <class Visit>
  void each_pair(Visit&& visit) {
    for (auto& [number, pair] : pairs_) visit(*pair);
  }

 private:
  struct Request {
    Pair* asker = nullptr;
    Client* asked = nullptr;
  };
  struct Moving {
    Pair* pair = nullptr;
    Lane* lane = nullptr;
  };

  // engine.cpp
  void catch_up(Time now);
  void dispatch(Timer& timer);
  void wait(Waiter& waiter, Condition& condition);
  void raise(Condition& condition);
  static void leave(Waiter& waiter) noexcept;

  // engine_connect.cpp
  void tell(Pair& pair, Event::Kind kind, const std::string& why);
  void lose(Pair& pair, const std::string& why);
  void forget_requests_of(const Pair& pair);
  void fit_node(Node& node);

  // engine_send.cpp
  void begin(Pair& pair);
  [[nodiscard]] bool may_start(Pair& pair, const Task& task);
  [[nodiscard]] CompletionStatus check_local(const Pair& pair, const Task& task) const;
  void put_on_wire(Pair& pair, Lane& lane, std::uint64_t task, std::uint64_t bytes,
                   bool towards_peer);
  void mark_reached(Pair& pair, Lane& lane);
  void next_response(Pair& pair);
  void schedule_arrival(Lane& lane);

  // engine_arrive.cpp
  void arrive(Pair& pair);
  void come_back(Pair& pair);
  enum class Admission : std::uint8_t { granted, waits, failed };
  [[nodiscard]] Admission admit(Pair& pair, Task& task);
  [[nodiscard]] Admission admit_receive(Pair& pair, Task& task);
  [[nodiscard]] CompletionStatus check_remote(const Pair& pair, const Task& task) const;
  [[nodiscard]] Copied run_atomic(Pair& pair, Task& task);
  [[nodiscard]] bool move(Pair& pair, Lane& lane);
  enum class Moved : std::uint8_t { done, failed, held };
  [[nodiscard]] Moved move_bytes(Pair& pair, Lane& lane, CompletionStatus& fault);
  [[nodiscard]] Moved move_some(Pair& pair, Lane& lane);
  [[nodiscard]] CompletionStatus find_local(const Pair& pair, const Task& task, std::uint64_t count,
                                            std::array<Piece, gather_limit>& pieces,
                                            std::size_t& found) const;
  [[nodiscard]] CompletionStatus find_remote(const Pair& pair, const Task& task,
                                             std::uint64_t count, Piece& piece) const;
  void moved(Pair& pair, Lane& lane);
  void deliver(Pair& pair, Task& task);
  void answered(Pair& pair, Task& task);

  // engine_complete.cpp
  void fail_task(Pair& pair, Task& task, CompletionStatus status, Time at, Lane* lane);
  void receive_failed(Pair& pair, Task& task, CompletionStatus status);
  void halt(Lane& lane);
  void arm_retire(Pair& pair);
  void retire(Pair& pair);
  void break_pair(Pair& pair, const std::string& why);
  void flush(Pair& pair);
  void report(Pair& pair, const Task& task, CompletionStatus status);
  void push(Completions& completions, Pair& pair, const Completion& completion,
            std::uint32_t position);

  Host& host_;
  TimerHeap visible_timers_;  ///< what a client can see
  TimerHeap wire_timers_;     ///< what shows itself one latency later
  Wire wire_;
  Regions regions_;
  Time clock_ = 0;  ///< of the last thing that happened
  Time latency_min_ns_ = never;
  std::deque<Moving> backlog_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Pair>> pairs_;
  std::unordered_map<Completions*, std::unique_ptr<Completions>> completions_;
  std::unordered_map<Receives*, std::unique_ptr<Receives>> receives_;
  std::unordered_map<std::uint64_t, Request> requests_;
  std::uint32_t next_client_ = 1;
  std::uint32_t next_pair_ = 1;
  std::uint64_t next_request_ = 1;
};

}  // namespace overlap::fabric::soft
