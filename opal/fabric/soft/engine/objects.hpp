// What the engine keeps of clients, queues and work requests under way.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "host.hpp"
#include "waiting.hpp"
#include "wire.hpp"

namespace overlap::fabric::soft {

/// How long one process's queue pairs try again. As on an adapter, the time between two tries for
/// a receive entry is the receiver's, the rest the sender's.
struct RetrySettings {
  static constexpr std::uint32_t for_ever = 7;

  Time receive_retry_ns = 640'000;           ///< between two tries for a receive entry
  std::uint32_t receive_retries = for_ever;  ///< after the first try
  Time answer_ns = 8'589'934'592;  ///< without an answer so long: 4.096 us * 2^18, eight times
};

/// One process that uses the device.
struct Client {
  std::uint32_t id = 0;
  std::uint32_t node_number = 0;
  Node* node = nullptr;
  Time task_ns = 0;  ///< each wait and enable takes so long
  WireSettings wire;
  RetrySettings retry;
  void* host = nullptr;

  // Faults on command: the next connection requests to this client.
  std::uint32_t lose_requests = 0;  ///< so many do not arrive
  Time request_delay_ns = 0;        ///< later by so much; lost ones: the asker learns it after this
};

struct Completions {
  Client* client = nullptr;
  void* host = nullptr;
  bool overrun = false;  ///< an entry was lost: nothing is reported through it any more

  // Of a counting queue, which has no entries.
  bool counting = false;
  std::uint64_t counted = 0;                            ///< successful completions
  CompletionStatus broken = CompletionStatus::success;  ///< the first other one
  Condition moved;  ///< raised when it has counted, or has broken
};

struct Receives {
  Client* client = nullptr;
  void* host = nullptr;
  Condition posted;  ///< raised when a queue that was found empty has entries again
  bool managed = false;
  std::uint64_t taken = 0;        ///< entries
  std::uint64_t enabled_end = 0;  ///< entries below it may be taken, where it is managed
};

/// One work request from its fetching to its completion.
struct Task {
  Submission submission;
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< have come over the wire
  std::uint64_t moved_bytes = 0;      ///< have been copied
  bool charged = false;               ///< a wait that is over: its time has begun
  bool admitted = false;              ///< the responder has checked it; Receive entry taken
  bool holds_receive = false;         ///< `receive` is taken and not yet reported
  bool done = false;
  CompletionStatus status = CompletionStatus::success;
  Time done_at = never;  ///< when its poster may know
  Receive receive;
  std::uint64_t old_value = 0;  ///< of an atomic

  [[nodiscard]] const WorkRequest& request() const noexcept { return submission.request; }
  /// Does the answer carry data? Such tasks take part in fences.
  [[nodiscard]] bool is_read() const noexcept;
  [[nodiscard]] bool is_atomic() const noexcept;
  /// Do its bytes go where a receive entry says?
  [[nodiscard]] bool is_plain_send() const noexcept;
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

/// Faults on command of one queue pair.
struct PairFaults {
  bool stalled = false;  ///< set by Engine::stall()
  Time delay_ns = 0;     ///< requests arrive so much later
  Time tear_ns = 0;      ///< the last byte of a message arrives so much after the others
  /// The next request that arrives ends with this status and is not executed.
  CompletionStatus fail_next = CompletionStatus::success;
};

struct Pair {
  explicit Pair(std::uint32_t number) noexcept
      : number(number),
        out(Alarm::request, Alarm::arrive, *this),
        back(Alarm::response, Alarm::come_back, *this),
        start_timer(Alarm::start, *this),
        retire_timer(Alarm::retire, *this),
        again_timer(Alarm::try_again, *this),
        give_up_timer(Alarm::give_up, *this) {}

  std::uint32_t number;
  Client* client = nullptr;
  Completions* completions = nullptr;
  Completions* receive_completions = nullptr;
  Receives* receives = nullptr;
  void* host = nullptr;
  unsigned remote_rights = access::any;  ///< what the peer may do

  PairState state = PairState::fresh;
  Pair* peer = nullptr;
  WireSettings wire;  ///< the slower of both ends

  bool managed = false;           ///< its sends wait for an enable
  std::uint64_t enabled_end = 0;  ///< tasks with lower numbers may be fetched, where it is managed

  std::deque<Task> tasks;  ///< fetched and not completed; the first has number `retired`
  std::uint64_t retired = 0;
  std::uint64_t started = 0;  ///< number of the next task to start
  std::uint32_t outstanding_reads = 0;
  bool failing = false;  ///< a task has failed: nothing behind it is executed
  Lane out;
  Lane back;
  std::deque<std::uint64_t> responses;  ///< tasks whose response waits for `back.flow`
  Timer start_timer;
  Timer retire_timer;
  Timer again_timer;
  Timer give_up_timer;           ///< armed while a link that it needs is down
  Time not_ready_since = never;  ///< first try of the message that finds no receive entry

  Waiter start_waiter{this, Stage::start};
  Waiter arrive_waiter{this, Stage::arrive};
  Condition reads_ended;  ///< a read or atomic has ended: fences and the depth of reads wait for it
  Condition resumed;      ///< the stall is over

  PairFaults faults;

  [[nodiscard]] std::uint64_t end() const noexcept { return retired + tasks.size(); }
  [[nodiscard]] Task& task(std::uint64_t number) noexcept { return tasks[number - retired]; }
};

/// A management queue.
///
///   idle --posted--> waiting | executing --time is over--> idle, waiting or executing: the next
///     waiting --the queue has counted enough--> executing;  --it breaks--> failed
///     failed: flushes what is posted
enum class ManagerState : std::uint8_t { idle, waiting, executing, failed };

struct Manager {
  Manager() noexcept : timer(*this) {}

  Client* client = nullptr;
  void* host = nullptr;

  ManagerState state = ManagerState::idle;
  Command head;                  ///< unless idle: what it waits for or executes
  Completions* queue = nullptr;  ///< while it waits
  Time ready_at = 0;             ///< the head does not begin before
  Time rung_at = 0;              ///< last doorbell
  Timer timer;                   ///< while it executes
  Waiter waiter{nullptr, Stage::start, this};
};

/// Report an event of a queue pair to its client.
void tell(Host& host, Pair& pair, Event::Kind kind, const std::string& why);

}  // namespace overlap::fabric::soft
