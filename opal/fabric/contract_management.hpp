// What the tests of management_queue.hpp's rules share: tasks by name, a relay of three devices.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contract_expect.hpp"

#include <initializer_list>
#include <memory>

#include "management_queue.hpp"

namespace overlap::fabric::contract {

[[nodiscard]] inline bool has_management() {
  Endpoint a(0);
  return a.device->capabilities().management_queues;
}

inline void join(Endpoint& a, QueuePair& from, Endpoint& b, QueuePair& to) {
  REQUIRE(a.device->connect(from, b.device->address(), PrivateData{}) == Status::done);
  REQUIRE(b.device->accept(b.next_event_from(a).request, to) == Status::done);
  REQUIRE(a.next_event().kind == Event::Kind::established);
  REQUIRE(b.next_event().kind == Event::Kind::established);
}

[[nodiscard]] inline Task write_to(QueuePair& pair, std::uint64_t id = 1) {
  Task task;
  task.kind = Task::Kind::write_immediate;
  task.queue_pair = &pair;
  task.request = request(Opcode::write_with_immediate, {}, true, id);
  return task;
}
[[nodiscard]] inline Task send_to(QueuePair& pair) {
  Task task = write_to(pair);
  task.kind = Task::Kind::send;
  task.request.opcode = Opcode::send;
  return task;
}
[[nodiscard]] inline Task wait_for(CompletionQueue& queue, std::uint32_t count = 1,
                                   bool last = true, QueuePair* pair = nullptr) {
  Task task;
  task.kind = Task::Kind::wait;
  task.queue = &queue;
  task.count = count;
  task.last = last;
  task.queue_pair = pair;
  return task;
}
[[nodiscard]] inline Task enable(QueuePair& pair, std::uint32_t count = 1,
                                 Task::Kind kind = Task::Kind::send_enable) {
  Task task;
  task.kind = kind;
  task.queue_pair = &pair;
  task.count = count;
  return task;
}
[[nodiscard]] inline Task receive_at(QueuePair& pair, std::uint64_t id) {
  Task task;
  task.kind = Task::Kind::receive;
  task.queue_pair = &pair;
  task.request.id = id;
  return task;
}

inline void post(ManagementQueue& queue, std::uint64_t id, std::initializer_list<Task> tasks) {
  REQUIRE(queue.post(id, {tasks.begin(), tasks.size()}).status == Status::done);
}
inline void expect_refused(ManagementQueue& queue, std::initializer_list<Task> tasks,
                           std::size_t bad, Status status = Status::bad_argument) {
  const Posted posted = queue.post(99, {tasks.begin(), tasks.size()});
  CHECK(posted.status == status);
  CHECK(posted.task == bad);
}

[[nodiscard]] inline Completion next_list(ManagementQueue& queue) {
  Completion completion;
  await("a list", [&] { return queue.completions().poll({&completion, 1}) == 1; });
  return completion;
}
[[nodiscard]] inline bool is_quiet(ManagementQueue& queue) {
  Completion completion;
  return queue.completions().poll({&completion, 1}) == 0;
}

/// a -> b -> c; b counts what comes from a, its sends to c are managed.
struct Relay {
  explicit Relay(std::uint32_t send_entries = 128, std::uint32_t entries = 64)
      : queue(b.device->make_management_queue(entries)), other(b.device->make_management_queue(8)) {
    ab = a.make_pair();
    ba = b.device->make_queue_pair({.completions = b.completions.get(),
                                    .receive_completions = from_a.get(),
                                    .receives = b.receives.get()});
    bc = b.device->make_queue_pair({.completions = to_c.get(),
                                    .receive_completions = from_c.get(),
                                    .receives = b.receives.get(),
                                    .send_queue_entries = send_entries,
                                    .managed_sends = true});
    cb = c.make_pair();
    join(a, *ab, b, *ba);
    join(b, *bc, c, *cb);
    for (std::uint64_t i = 0; i < 200; ++i) {
      REQUIRE(b.receives->post(i, nullptr, 0, 0) == Status::done);
      REQUIRE(c.receives->post(i, nullptr, 0, 0) == Status::done);
    }
  }

  /// One message from a has arrived at b.
  void signal_b() {
    contract::post(*ab, request(Opcode::write_with_immediate, {}, true, 1));
    expect(a.next_completion(), 1);
  }
  /// Take what has arrived at c. @returns  its immediate
  std::uint32_t next_at_c() {
    const Completion completion = c.next_completion();
    REQUIRE(completion.opcode == Opcode::receive);
    return completion.immediate;
  }
  /// A send to c with its number as the immediate.
  [[nodiscard]] Task numbered(std::uint32_t number) const {
    Task task = write_to(*bc);
    task.request.immediate = number;
    return task;
  }

  Endpoint a{0};
  Endpoint b{1};
  Endpoint c{2};
  std::unique_ptr<CompletionQueue> from_a = b.device->make_counting_queue();
  std::unique_ptr<CompletionQueue> from_c = b.device->make_counting_queue();
  std::unique_ptr<CompletionQueue> to_c = b.device->make_counting_queue();
  std::unique_ptr<QueuePair> ab;
  std::unique_ptr<QueuePair> ba;
  std::unique_ptr<QueuePair> bc;
  std::unique_ptr<QueuePair> cb;
  std::unique_ptr<ManagementQueue> queue;
  std::unique_ptr<ManagementQueue> other;
};

}  // namespace overlap::fabric::contract
