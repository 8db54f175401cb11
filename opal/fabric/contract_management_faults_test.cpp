// What management queues refuse, and what ends a list that cannot go on.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_management.hpp"

#include <array>

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

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
