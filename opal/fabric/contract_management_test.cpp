// The rules of management_queue.hpp: whatever provider has management queues keeps all of them, one
// without refuses them.
//
// A relay: what a sends to b lets the device of b send to c. Quiet is never waited for: where
// nothing must happen, something behind it that does happen shows that it has not.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_expect.hpp"

#include <poll.h>

#include <array>
#include <map>

#include "management_queue.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

namespace {

[[nodiscard]] bool has_management() {
  Endpoint a(0);
  return a.device->capabilities().management_queues;
}

void join(Endpoint& a, QueuePair& from, Endpoint& b, QueuePair& to) {
  REQUIRE(a.device->connect(from, b.device->address(), PrivateData{}) == Status::done);
  REQUIRE(b.device->accept(b.next_event_from(a).request, to) == Status::done);
  REQUIRE(a.next_event().kind == Event::Kind::established);
  REQUIRE(b.next_event().kind == Event::Kind::established);
}

[[nodiscard]] Task write_to(QueuePair& pair, std::uint64_t id = 1) {
  Task task;
  task.kind = Task::Kind::write_immediate;
  task.queue_pair = &pair;
  task.request = request(Opcode::write_with_immediate, {}, true, id);
  return task;
}
[[nodiscard]] Task send_to(QueuePair& pair) {
  Task task = write_to(pair);
  task.kind = Task::Kind::send;
  task.request.opcode = Opcode::send;
  return task;
}
[[nodiscard]] Task wait_for(CompletionQueue& queue, std::uint32_t count = 1, bool last = true,
                            QueuePair* pair = nullptr) {
  Task task;
  task.kind = Task::Kind::wait;
  task.queue = &queue;
  task.count = count;
  task.last = last;
  task.queue_pair = pair;
  return task;
}
[[nodiscard]] Task enable(QueuePair& pair, std::uint32_t count = 1,
                          Task::Kind kind = Task::Kind::send_enable) {
  Task task;
  task.kind = kind;
  task.queue_pair = &pair;
  task.count = count;
  return task;
}
[[nodiscard]] Task receive_at(QueuePair& pair, std::uint64_t id) {
  Task task;
  task.kind = Task::Kind::receive;
  task.queue_pair = &pair;
  task.request.id = id;
  return task;
}

void post(ManagementQueue& queue, std::uint64_t id, std::initializer_list<Task> tasks) {
  REQUIRE(queue.post(id, {tasks.begin(), tasks.size()}).status == Status::done);
}
void expect_refused(ManagementQueue& queue, std::initializer_list<Task> tasks, std::size_t bad,
                    Status status = Status::bad_argument) {
  const Posted posted = queue.post(99, {tasks.begin(), tasks.size()});
  CHECK(posted.status == status);
  CHECK(posted.task == bad);
}

[[nodiscard]] Completion next_list(ManagementQueue& queue) {
  Completion completion;
  await("a list", [&] { return queue.completions().poll({&completion, 1}) == 1; });
  return completion;
}
[[nodiscard]] bool is_quiet(ManagementQueue& queue) {
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

}  // namespace

// --- Making ----------------------------------------------------------------------------

TEST_CASE("A device without management queues refuses them", "[contract][management]") {
  Endpoint a(0);
  if (has_management()) {
    REQUIRE(a.device->capabilities().management_queue_max >= 64);
    REQUIRE_THROWS_AS(a.device->make_management_queue(0), Error);
    REQUIRE_THROWS_AS(
        a.device->make_management_queue(a.device->capabilities().management_queue_max + 1), Error);
    return;
  }
  REQUIRE_THROWS_AS(a.device->make_management_queue(8), Error);
  REQUIRE_THROWS_AS(a.device->make_counting_queue(), Error);
  REQUIRE_THROWS_AS(a.device->make_queue_pair({.completions = a.completions.get(),
                                               .receives = a.receives.get(),
                                               .managed_sends = true}),
                    Error);
  REQUIRE_THROWS_AS(a.device->make_queue_pair({.completions = a.completions.get(),
                                               .receive_completions = a.completions.get(),
                                               .receives = a.receives.get()}),
                    Error);
}

TEST_CASE("Managed receives are one queue pair's alone", "[contract][management]") {
  if (!has_management()) return;
  Endpoint a(0);
  auto plain = a.make_pair();
  const QueuePairOptions options{
      .completions = a.completions.get(), .receives = a.receives.get(), .managed_receives = true};
  REQUIRE_THROWS_AS(a.device->make_queue_pair(options), Error);
  plain.reset();
  auto managed = a.device->make_queue_pair(options);
  REQUIRE_THROWS_AS(a.make_pair(), Error);
}

// --- Waits and enables -----------------------------------------------------------------

TEST_CASE("A send leaves when the wait before its enable is over", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  post(*relay.queue, 77, {relay.numbered(1), wait_for(*relay.from_a), enable(*relay.bc)});
  // What needs no wait is not held back by another queue's.
  post(*relay.other, 78, {receive_at(*relay.ba, 9)});
  expect(next_list(*relay.other), 78);
  REQUIRE(is_quiet(*relay.queue));
  REQUIRE(relay.c.is_quiet());
  relay.signal_b();
  const Completion list = next_list(*relay.queue);
  expect(list, 77);
  REQUIRE(list.opcode == Opcode::wait);
  REQUIRE(relay.next_at_c() == 1);
  REQUIRE(relay.c.is_quiet());
}

TEST_CASE("A managed send that is posted alone stays until all are enabled",
          "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  for (std::uint32_t i = 1; i <= 3; ++i)
    REQUIRE(relay.bc->post(relay.numbered(i).request) == Status::done);
  post(*relay.queue, 1, {enable(*relay.bc, 2)});
  expect(next_list(*relay.queue), 1);
  REQUIRE(relay.next_at_c() == 1);
  REQUIRE(relay.next_at_c() == 2);
  // Everything that was enabled before is behind it in the same queue.
  contract::post(*relay.cb, request(Opcode::write_with_immediate, {}, true, 5));
  expect(relay.c.next_completion(), 5);
  REQUIRE(relay.c.is_quiet());
  post(*relay.queue, 2, {relay.numbered(4), enable(*relay.bc, 0)});
  REQUIRE(relay.next_at_c() == 3);
  REQUIRE(relay.next_at_c() == 4);
  expect(next_list(*relay.queue), 2);
}

TEST_CASE("Waits are relative to what was committed", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  // The same base: one message is enough for the first, two for both.
  post(*relay.queue, 1, {wait_for(*relay.from_a, 1, false)});
  post(*relay.queue, 2, {wait_for(*relay.from_a, 2, false)});
  post(*relay.queue, 3, {wait_for(*relay.from_a, 1, true)});  // commits 2
  post(*relay.queue, 4, {wait_for(*relay.from_a, 1, true)});
  relay.signal_b();
  expect(next_list(*relay.queue), 1);
  REQUIRE(is_quiet(*relay.queue));
  relay.signal_b();
  expect(next_list(*relay.queue), 2);
  expect(next_list(*relay.queue), 3);
  post(*relay.other, 5, {receive_at(*relay.ba, 9)});
  expect(next_list(*relay.other), 5);
  REQUIRE(is_quiet(*relay.queue));
  relay.signal_b();
  expect(next_list(*relay.queue), 4);
}

TEST_CASE("What was counted before a wait is posted is enough for it", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  relay.signal_b();
  relay.signal_b();
  Completion nothing;
  REQUIRE(relay.from_a->poll({&nothing, 1}) == 0);
  post(*relay.queue, 1, {wait_for(*relay.from_a, 2)});
  expect(next_list(*relay.queue), 1);
}

TEST_CASE("Enables count from what was enabled before", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  post(*relay.queue, 1,
       {relay.numbered(1), relay.numbered(2), relay.numbered(3), enable(*relay.bc, 1),
        wait_for(*relay.from_a), enable(*relay.bc, 2)});
  REQUIRE(relay.next_at_c() == 1);
  relay.signal_b();
  REQUIRE(relay.next_at_c() == 2);
  REQUIRE(relay.next_at_c() == 3);
  expect(next_list(*relay.queue), 1);
  // Without a commit the next one has the same base.
  Task first = enable(*relay.bc, 1);
  first.last = false;
  post(*relay.queue, 2, {relay.numbered(4), relay.numbered(5), first, enable(*relay.bc, 2)});
  REQUIRE(relay.next_at_c() == 4);
  REQUIRE(relay.next_at_c() == 5);
  expect_refused(*relay.queue, {enable(*relay.bc, 1)}, 0);
}

TEST_CASE("A wait in a send queue holds back what is behind it", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  auto bc = relay.b.make_pair();
  auto cb = relay.c.make_pair();
  join(relay.b, *bc, relay.c, *cb);
  Task before = write_to(*bc);
  Task behind = write_to(*bc, 2);
  before.request.immediate = 1;
  behind.request.immediate = 2;
  post(*relay.queue, 1, {before, wait_for(*relay.from_a, 1, true, bc.get()), behind});
  expect(next_list(*relay.queue), 1);  // it has nothing to wait for itself
  REQUIRE(relay.next_at_c() == 1);
  expect(relay.b.next_completion(), 1);
  REQUIRE(relay.b.is_quiet());
  REQUIRE(relay.c.is_quiet());
  relay.signal_b();
  REQUIRE(relay.next_at_c() == 2);
  expect(relay.b.next_completion(), 2);
}

TEST_CASE("Receives are posted by lists, managed ones when they are enabled",
          "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  auto receives = relay.b.device->make_receive_queue(8);
  auto arrived = relay.b.device->make_counting_queue();
  auto ba = relay.b.device->make_queue_pair({.completions = relay.b.completions.get(),
                                             .receive_completions = arrived.get(),
                                             .receives = receives.get(),
                                             .managed_receives = true});
  auto ab = relay.a.make_pair();
  join(relay.a, *ab, relay.b, *ba);
  contract::post(*ab, request(Opcode::send, {}, true, 1));
  post(*relay.queue, 1,
       {receive_at(*ba, 10), receive_at(*ba, 11), wait_for(*relay.from_a),
        enable(*ba, 1, Task::Kind::receive_enable), wait_for(*arrived)});
  expect_refused(*relay.other, {enable(*ba, 2, Task::Kind::receive_enable)}, 0);
  REQUIRE(relay.a.is_quiet());
  contract::post(*relay.ab, request(Opcode::write_with_immediate, {}, true, 2));
  expect(relay.a.next_completion(), 2);  // the other one finds no receive entry
  expect(next_list(*relay.queue), 1);
  expect(relay.a.next_completion(), 1);
  // A list posts to a queue pair whose receives are not managed, too.
  post(*relay.queue, 2, {receive_at(*relay.ba, 12)});
  expect(next_list(*relay.queue), 2);
}

TEST_CASE("A list's completion wakes who sleeps, messages that it waits for do not",
          "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  const int descriptor = relay.b.device->arrival_descriptor();
  if (descriptor < 0) return;
  pollfd sleeper{descriptor, POLLIN, 0};
  post(*relay.queue, 1, {wait_for(*relay.from_a, 2)});
  REQUIRE(is_quiet(*relay.queue));
  relay.b.device->arm_arrivals();
  relay.signal_b();
  REQUIRE(::poll(&sleeper, 1, 0) == 0);
  relay.signal_b();
  REQUIRE(::poll(&sleeper, 1, patience_s * 1000) == 1);
  expect(next_list(*relay.queue), 1);
}

// --- Refusals --------------------------------------------------------------------------

TEST_CASE("A list with a bad task is refused as a whole", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  CompletionQueue& queue = *relay.from_a;
  expect_refused(*relay.queue, {}, 0);
  expect_refused(*relay.queue, {relay.numbered(1), wait_for(queue), enable(*relay.bc, 2)}, 2);
  expect_refused(*relay.queue, {relay.numbered(2), wait_for(queue), enable(*relay.ba)}, 2);
  expect_refused(*relay.queue, {relay.numbered(3), wait_for(queue, 0)}, 1);
  // Nothing of them was posted, and no index has moved.
  post(*relay.queue, 1, {relay.numbered(4), wait_for(queue), enable(*relay.bc)});
  relay.signal_b();
  REQUIRE(relay.next_at_c() == 4);
  expect(next_list(*relay.queue), 1);
  expect_refused(*relay.queue, {enable(*relay.bc, 1)}, 0);
}

TEST_CASE("Tasks that make no sense are refused", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  CompletionQueue& queue = *relay.from_a;
  Task no_pair = relay.numbered(1);
  no_pair.queue_pair = nullptr;
  Task no_queue = wait_for(queue);
  no_queue.queue = nullptr;
  Task wrong_send = send_to(*relay.bc);
  wrong_send.request.opcode = Opcode::write;
  Task wrong_write = write_to(*relay.bc);
  wrong_write.request.opcode = Opcode::send;
  Task unsignalled = write_to(*relay.bc);
  unsignalled.request.signalled = false;
  const std::array bad{no_pair,
                       no_queue,
                       wrong_send,
                       wrong_write,
                       unsignalled,  // nobody would count it
                       wait_for(*relay.b.completions),
                       wait_for(queue, 1U << 23U),
                       enable(*relay.ba),
                       enable(*relay.bc, 1, Task::Kind::receive_enable)};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    expect_refused(*relay.queue, {wait_for(queue), bad[i]}, 1);
  }
  // A queue pair that is not connected.
  auto fresh = relay.b.make_pair();
  expect_refused(*relay.queue, {write_to(*fresh)}, 0);
  // A wait is no work request.
  REQUIRE(relay.ba->post(request(Opcode::wait, {})) == Status::bad_argument);
}

TEST_CASE("A full management queue has room when its lists have been polled",
          "[contract][management]") {
  if (!has_management()) return;
  Relay relay(128, 2);
  CompletionQueue& queue = *relay.from_a;
  expect_refused(*relay.queue, {wait_for(queue), wait_for(queue), wait_for(queue)}, 2);
  post(*relay.queue, 1, {wait_for(queue)});
  expect_refused(*relay.queue, {wait_for(queue), wait_for(queue)}, 1, Status::retry_queue_full);
  post(*relay.queue, 2, {relay.numbered(1)});  // a list takes one entry at least
  expect_refused(*relay.queue, {relay.numbered(2)}, 0, Status::retry_queue_full);
  relay.signal_b();
  expect(next_list(*relay.queue), 1);
  expect(next_list(*relay.queue), 2);
  post(*relay.queue, 3, {wait_for(queue), enable(*relay.bc)});
  relay.signal_b();
  expect(next_list(*relay.queue), 3);
  REQUIRE(relay.next_at_c() == 1);
}

TEST_CASE("A wait further ahead than its index can say has to come later",
          "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  constexpr std::uint32_t most = (1U << 23U) - 1;
  post(*relay.queue, 1, {wait_for(*relay.from_a, most)});
  expect_refused(*relay.queue, {wait_for(*relay.from_a, 1)}, 0, Status::retry_queue_full);
  REQUIRE(is_quiet(*relay.queue));
}

TEST_CASE("A send queue without room refuses the list", "[contract][management]") {
  if (!has_management()) return;
  Relay relay(4);
  const auto send = [&] { return relay.numbered(1); };
  expect_refused(*relay.queue, {send(), send(), send(), send(), send()}, 4,
                 Status::retry_queue_full);
  post(*relay.queue, 1, {send(), send(), send(), send(), enable(*relay.bc, 0)});
  expect(next_list(*relay.queue), 1);
  for (int i = 0; i < 4; ++i) REQUIRE(relay.next_at_c() == 1);
  // Nobody polls their completions: they are free when they have been counted.
  post(*relay.queue, 2, {wait_for(*relay.to_c, 4)});
  expect(next_list(*relay.queue), 2);
  post(*relay.queue, 3, {send(), send(), send(), send(), enable(*relay.bc, 0)});
  expect(next_list(*relay.queue), 3);
}

// --- Failure and teardown --------------------------------------------------------------

TEST_CASE("A peer that goes fails the list that waits for it, and flushes the others",
          "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  post(*relay.queue, 1, {relay.numbered(1), wait_for(*relay.from_a), enable(*relay.bc)});
  post(*relay.queue, 2, {relay.numbered(2), enable(*relay.bc)});
  relay.ab.reset();
  REQUIRE(relay.b.next_event().kind == Event::Kind::peer_lost);
  const Completion first = next_list(*relay.queue);
  REQUIRE(first.id == 1);
  REQUIRE(first.status != CompletionStatus::success);
  expect(next_list(*relay.queue), 2, CompletionStatus::flushed);
  expect_refused(*relay.queue, {wait_for(*relay.from_a)}, 0, Status::broken);
  REQUIRE(relay.c.is_quiet());
  // Another management queue is as good as before. Its enables stand for those that were flushed.
  post(*relay.other, 3, {relay.numbered(3), enable(*relay.bc), wait_for(*relay.to_c, 3)});
  expect(next_list(*relay.other), 3);
  REQUIRE(relay.next_at_c() == 1);
  REQUIRE(relay.next_at_c() == 2);
  REQUIRE(relay.next_at_c() == 3);
}

TEST_CASE("A failed send fails who waits for it, with its status", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  Memory memory(*relay.b.device, 4096);
  Task bad = relay.numbered(1);
  bad.request.gather_count = 1;
  bad.request.gather[0] = memory.part(0, 8);
  bad.request.remote_address = memory.address(0);
  bad.request.remote_key = 0x7fffffff;
  post(*relay.queue, 1, {bad, enable(*relay.bc), wait_for(*relay.to_c)});
  expect(next_list(*relay.queue), 1, CompletionStatus::remote_access_error);
  // Nobody polls the completion: the owner is told, as the peer is.
  REQUIRE(relay.b.next_event().kind == Event::Kind::peer_lost);
  REQUIRE(relay.c.next_event().kind == Event::Kind::peer_lost);
}

TEST_CASE("A management queue is destroyed with a list that waits", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  post(*relay.queue, 1, {relay.numbered(1), wait_for(*relay.from_a), enable(*relay.bc)});
  relay.queue.reset();
  relay.signal_b();
  post(*relay.other, 2, {receive_at(*relay.ba, 9)});
  expect(next_list(*relay.other), 2);
  REQUIRE(relay.c.is_quiet());
  // Indices are absolute: the next enable stands for the one that was never executed, too.
  post(*relay.other, 3, {relay.numbered(2), enable(*relay.bc)});
  expect(next_list(*relay.other), 3);
  REQUIRE(relay.next_at_c() == 1);
  REQUIRE(relay.next_at_c() == 2);
}

// --- Much of it ------------------------------------------------------------------------

TEST_CASE("Enables go on past the width of their index", "[contract][management]") {
  if (!has_management()) return;
  Relay relay;
  constexpr std::uint32_t per_list = 100;
  std::uint32_t number = 0;
  for (std::uint32_t list = 0; list < 700; ++list) {
    std::vector<Task> tasks;
    for (std::uint32_t i = 0; i < per_list; ++i) tasks.push_back(relay.numbered(number + i));
    tasks.push_back(enable(*relay.bc, list % 2 == 0 ? per_list : 0));
    tasks.push_back(wait_for(*relay.to_c, per_list));
    REQUIRE(relay.queue->post(list, tasks).status == Status::done);
    for (std::uint32_t i = 0; i < per_list; ++i, ++number) {
      REQUIRE(relay.next_at_c() == number);
      REQUIRE(relay.c.receives->post(0, nullptr, 0, 0) == Status::done);
    }
    expect(next_list(*relay.queue), list);
  }
}

TEST_CASE("Barriers between four devices end when the last one has entered",
          "[contract][management]") {
  if (!has_management()) return;
  constexpr std::uint32_t ranks = 4;
  constexpr std::uint32_t barriers = 100;
  struct Edge {
    std::unique_ptr<CompletionQueue> arrived;
    std::unique_ptr<QueuePair> pair;
  };
  struct Rank {
    explicit Rank(std::uint32_t node)
        : end(node, 4 * barriers),
          sent(end.device->make_counting_queue()),
          queue(end.device->make_management_queue(64)) {
      for (std::uint32_t i = 0; i < 2 * barriers; ++i)
        REQUIRE(end.receives->post(i, nullptr, 0, 0) == Status::done);
    }
    Endpoint end;
    std::unique_ptr<CompletionQueue> sent;
    std::map<std::uint32_t, Edge> edges;
    std::unique_ptr<ManagementQueue> queue;
  };
  std::vector<std::unique_ptr<Rank>> all;
  for (std::uint32_t r = 0; r < ranks; ++r) all.push_back(std::make_unique<Rank>(r));
  for (std::uint32_t bit = 1; bit < ranks; bit *= 2) {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      Edge& edge = all[r]->edges[bit];
      edge.arrived = all[r]->end.device->make_counting_queue();
      edge.pair = all[r]->end.device->make_queue_pair({.completions = all[r]->sent.get(),
                                                       .receive_completions = edge.arrived.get(),
                                                       .receives = all[r]->end.receives.get(),
                                                       .managed_sends = true});
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if ((r & bit) != 0) continue;
      join(all[r]->end, *all[r]->edges[bit].pair, all[r ^ bit]->end,
           *all[r ^ bit]->edges[bit].pair);
    }
  }
  for (std::uint32_t barrier = 0; barrier < barriers; ++barrier) {
    for (std::uint32_t i = 0; i < ranks; ++i) {
      for (auto& rank : all) REQUIRE(is_quiet(*rank->queue));
      Rank& rank = *all[(i + barrier) % ranks];
      std::vector<Task> tasks;
      for (auto& [bit, edge] : rank.edges) {
        tasks.push_back(write_to(*edge.pair));
        tasks.push_back(enable(*edge.pair));
        tasks.push_back(wait_for(*edge.arrived));
      }
      REQUIRE(rank.queue->post(barrier, tasks).status == Status::done);
    }
    for (auto& rank : all) expect(next_list(*rank->queue), barrier);
  }
}
