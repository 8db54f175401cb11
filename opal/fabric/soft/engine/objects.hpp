// What the engine keeps of clients, queues and work requests under way.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "host.hpp"
#include "wire.hpp"

namespace overlap::fabric::soft {

struct Condition;

/// Which step of a queue pair waits.
enum class Stage : std::uint8_t {
  start,   ///< its next task may not start yet
  arrive,  ///< what has arrived may not be executed yet
};

/// A step of one queue that stands still until a condition is raised. In at most one condition's list.
struct Waiter {
  Pair* pair = nullptr;
  Stage stage = Stage::start;
  Condition* on = nullptr;
};

/// Something of one queue that tasks of the same or of other queues can wait for. Whoever changes it calls Engine::raise, which looks
/// at every waiter again; a waiter that still may not go waits anew.
struct Condition {
  std::vector<Waiter*> waiters;
};

/// One process that uses the device.
struct Client {
  std::uint32_t id = 0;
  std::uint32_t node_number = 0;
  Node* node = nullptr;
  WireSettings wire;
  void* host = nullptr;
};

struct Completions {
  Client* client = nullptr;
  void* host = nullptr;
  std::uint64_t count = 0;  ///< entries ever made
  Condition counted;        ///< raised when `count` grows
};

struct Receives {
  Client* client = nullptr;
  void* host = nullptr;
  Condition posted;  ///< raised when a queue that was found empty has entries again
};

/// One work request from its fetching to its completion.
struct Task {
  Submission submission;
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< have come over the wire
  std::uint64_t moved_bytes = 0;      ///< have been copied
  bool admitted = false;              ///< the responder has checked it; Receive entry taken
  bool done = false;
  CompletionStatus status = CompletionStatus::success;
  Time done_at = never;  ///< when its poster may know
  Receive receive;
  std::uint64_t old_value = 0;  ///< of an atomic

  [[nodiscard]] const WorkRequest& request() const noexcept { return submission.request; }
  /// Does the answer carry data? Such tasks take part in fences.
  [[nodiscard]] bool is_read() const noexcept;
  [[nodiscard]] bool is_atomic() const noexcept;
  [[nodiscard]] bool takes_receive() const noexcept;
};

/// Bytes of a task that reach the other end at a time.
struct Arrival {
  Time at = 0;
  std::uint64_t task = 0;
  std::uint64_t bytes = 0;
};

/// One direction of a queue pair's traffic: requests with their data, or responses with theirs.
struct Lane {
  Lane(Alarm flow_alarm, Alarm arrival_alarm, Pair& owner) noexcept
      : flow(flow_alarm, owner), timer(arrival_alarm, owner) {}

  Flow flow;                     ///< at most one message of a lane is on the wire
  std::deque<Arrival> arrivals;  ///< on their way, in order
  Timer timer;                   ///< of the first arrival
  std::uint64_t task = 0;        ///< the one whose bytes are being copied
  bool moving = false;           ///< piece by piece; later arrivals wait
};

/// A queue pair. `peer` is set while connecting is over and the other side exists.
///
///   state        connect      ask accepted  accept       reject   peer gone    error completion
///   fresh        asking       -             established  -        -            -
///   asking       -            established   -            failed   failed       -
///   established  -            -             -            -        failed       failed
///   failed       -            -             -            -        -            -
///   '-' is refused or cannot happen
enum class PairState : std::uint8_t { fresh, asking, established, failed };

struct Pair {
  explicit Pair(std::uint32_t number) noexcept
      : number(number),
        out(Alarm::request, Alarm::arrive, *this),
        back(Alarm::response, Alarm::come_back, *this),
        start_timer(Alarm::start, *this),
        retire_timer(Alarm::retire, *this) {}

  std::uint32_t number;
  Client* client = nullptr;
  Completions* completions = nullptr;
  Receives* receives = nullptr;
  void* host = nullptr;

  PairState state = PairState::fresh;
  Pair* peer = nullptr;
  WireSettings wire;  ///< the slower of both ends

  std::deque<Task> tasks;  ///< fetched and not completed; the first has number `retired`
  std::uint64_t retired = 0;
  std::uint64_t started = 0;  ///< number of the next task to start
  std::uint32_t reads_under_way = 0;
  bool failing = false;  ///< a task has failed: nothing behind it is executed
  Lane out;
  Lane back;
  std::deque<std::uint64_t> responses;  ///< tasks whose response waits for `back.flow`
  Timer start_timer;
  Timer retire_timer;

  Waiter start_waiter{this, Stage::start};
  Waiter arrive_waiter{this, Stage::arrive};
  Condition reads_ended;  ///< a read or atomic has ended: fences and the depth of reads wait for it
  Condition resumed;      ///< the stall is over

  // Faults on command.
  bool stalled = false;
  Time delay_ns = 0;
  CompletionStatus fail_next = CompletionStatus::success;

  [[nodiscard]] std::uint64_t end() const noexcept { return retired + tasks.size(); }
  [[nodiscard]] Task& task(std::uint64_t number) noexcept { return tasks[number - retired]; }
};

}  // namespace overlap::fabric::soft
