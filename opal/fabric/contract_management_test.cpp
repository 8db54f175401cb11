// The rules of management_queue.hpp: whatever provider has management queues keeps all of them, one
// without refuses them. Refusals and failures: contract_management_faults_test.cpp.
//
// A relay: what a sends to b lets the device of b send to c. Quiet is never waited for: where
// nothing must happen, something behind it that does happen shows that it has not.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_management.hpp"

#include <poll.h>

#include <array>
#include <map>

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

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
