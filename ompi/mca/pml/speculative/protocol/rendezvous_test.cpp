// Rendezvous machines: a story, every state with every event, and a seeded walk.
// SPDX-License-Identifier: BSD-3-Clause
#include "rendezvous.hpp"

#include <array>
#include <random>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

using S = SendState;
using R = ReceiveState;
constexpr std::array all_send_states{S::idle,    S::deferred, S::waiting, S::unannounced,
                                     S::writing, S::chained,  S::pushing};
constexpr std::array all_send_events{
    SendEvent::defer,      SendEvent::no_rtr,        SendEvent::rtr_memory,
    SendEvent::rtr_push,   SendEvent::done,          SendEvent::grant_memory,
    SendEvent::grant_push, SendEvent::write_posted,  SendEvent::write_chained,
    SendEvent::write_done, SendEvent::write_refused, SendEvent::push_done};
constexpr std::array all_receive_states{R::idle,    R::queued,    R::offered, R::revoking,
                                        R::reading, R::chained,   R::granted, R::incoming,
                                        R::ghost,   R::collecting};
constexpr std::array all_receive_events{
    ReceiveEvent::post,         ReceiveEvent::offer,        ReceiveEvent::take_back,
    ReceiveEvent::eager,        ReceiveEvent::rts,          ReceiveEvent::rts_nothing,
    ReceiveEvent::rtr_ack,      ReceiveEvent::read_chained, ReceiveEvent::read_done,
    ReceiveEvent::read_refused, ReceiveEvent::all_here,     ReceiveEvent::cancel,
    ReceiveEvent::revoked,      ReceiveEvent::cancel_alone, ReceiveEvent::redirected,
    ReceiveEvent::collected,    ReceiveEvent::haunt,        ReceiveEvent::gather};

/// A cell of the table in rendezvous.hpp; illegal where nothing is written.
struct SendCell {
  S next = S::idle;
  SendAction action = SendAction::none;
  bool legal = false;
  SendCell() = default;
  SendCell(S state, SendAction act) : next(state), action(act), legal(true) {}
};
struct ReceiveCell {
  R next = R::idle;
  ReceiveAction action = ReceiveAction::none;
  bool legal = false;
  ReceiveCell() = default;
  ReceiveCell(R state, ReceiveAction act) : next(state), action(act), legal(true) {}
};

using A = SendAction;
const SendCell o;
// [state][event], in the order of the comment.
const SendCell send_table[7][12] = {
    {{S::deferred, A::none},
     {S::waiting, A::send_rts},
     {S::unannounced, A::start_write},
     {S::pushing, A::send_rtr_ack_and_push},
     o,
     o,
     o,
     o,
     o,
     o,
     o,
     o},
    {o,
     {S::waiting, A::send_rts},
     {S::unannounced, A::start_write},
     {S::pushing, A::send_rtr_ack_and_push},
     o,
     o,
     o,
     o,
     o,
     o,
     o,
     o},
    {o,
     o,
     o,
     o,
     {S::idle, A::complete},
     {S::writing, A::start_write},
     {S::pushing, A::start_push},
     o,
     o,
     o,
     o,
     o},
    {o,
     o,
     o,
     o,
     o,
     o,
     o,
     {S::writing, A::send_rtr_ack},
     {S::chained, A::send_rtr_ack},
     {S::idle, A::send_rtr_ack_done},
     {S::pushing, A::send_rtr_ack_and_push},
     o},
    {o,
     o,
     o,
     o,
     o,
     o,
     o,
     {S::writing, A::none},
     {S::chained, A::none},
     {S::idle, A::send_done},
     {S::pushing, A::start_push},
     o},
    {o, o, o, o, o, o, o, o, o, {S::idle, A::complete}, {S::chained, A::break_off}, o},
    {o, o, o, o, o, o, o, o, o, o, o, {S::idle, A::complete}},
};

using B = ReceiveAction;
const ReceiveCell x;
const ReceiveCell eager{R::idle, B::complete};
const ReceiveCell rts{R::reading, B::start_read};
const ReceiveCell nothing{R::idle, B::send_done};
const ReceiveCell into{R::incoming, B::none};
const ReceiveCell gone{R::idle, B::complete_cancelled};
const ReceiveCell receive_table[10][18] = {
    {{R::queued, B::none},
     x,
     x,
     eager,
     rts,
     nothing,
     x,
     x,
     x,
     x,
     x,
     x,
     x,
     x,
     x,
     into,
     {R::ghost, B::none},
     {R::collecting, B::send_grant}},
    {x, {R::offered, B::send_rtr}, x, eager, rts, nothing, x, x, x, x, x, gone, x, x, into, x, x},
    {x,
     x,
     {R::queued, B::none},
     eager,
     rts,
     nothing,
     into,
     x,
     x,
     x,
     x,
     {R::revoking, B::send_revoke},
     x,
     {R::idle, B::revoke_and_cancel},
     into,
     x,
     x},
    {x, x, x, eager, rts, nothing, into, x, x, x, x, x, gone, x, x, x, x},
    {x,
     x,
     x,
     x,
     x,
     x,
     x,
     {R::chained, B::none},
     {R::idle, B::send_done},
     {R::granted, B::send_grant},
     x,
     x,
     x,
     x,
     x,
     x,
     x},
    {x,
     x,
     x,
     x,
     x,
     x,
     x,
     x,
     {R::idle, B::complete},
     {R::chained, B::break_off},
     x,
     x,
     x,
     x,
     x,
     x,
     x},
    {x, x, x, x, x, x, x, x, x, x, {R::idle, B::complete}, x, x, x, x, x, x},
    {x, x, x, x, x, x, x, x, x, x, {R::idle, B::complete}, x, x, x, x, x, x},
    {x, x, x, x, x, x, {R::collecting, B::none}, x, x, x, x, x, {R::idle, B::none}, x, x, x, x},
    {x, x, x, x, x, x, x, x, x, x, {R::idle, B::none}, x, x, x, x, x, x},
};

bool completes(SendAction action) {
  return action == A::complete || action == A::send_done || action == A::send_rtr_ack_done;
}
bool completes(ReceiveAction action) {
  return action == B::complete || action == B::send_done || action == B::complete_cancelled ||
         action == B::revoke_and_cancel;
}

}  // namespace

TEST_CASE("Rendezvous: the story of one early receive and its send (P1.3)") {
  R receive = R::idle;
  const auto receiver = [&receive](ReceiveEvent event, ReceiveAction expected) {
    const ReceiveStep next = step(receive, event);
    REQUIRE(next.legal);
    CHECK(next.action == expected);
    receive = next.next;
  };
  S send = S::idle;
  const auto sender = [&send](SendEvent event, SendAction expected) {
    const SendStep next = step(send, event);
    REQUIRE(next.legal);
    CHECK(next.action == expected);
    send = next.next;
  };
  receiver(ReceiveEvent::post, B::none);
  receiver(ReceiveEvent::offer, B::send_rtr);
  sender(SendEvent::rtr_memory, A::start_write);
  sender(SendEvent::write_posted, A::send_rtr_ack);
  receiver(ReceiveEvent::rtr_ack, B::none);
  sender(SendEvent::write_done, A::send_done);
  receiver(ReceiveEvent::all_here, B::complete);
  CHECK(send == S::idle);
  CHECK(receive == R::idle);
}

TEST_CASE("Rendezvous: DONE behind the data leaves nothing to tell at the end (P1.2, P1.3)") {
  CHECK(step(S::unannounced, SendEvent::write_chained).action == A::send_rtr_ack);
  CHECK(step(S::chained, SendEvent::write_done).action == A::complete);
  CHECK(step(R::reading, ReceiveEvent::read_chained).action == B::none);
  CHECK(step(R::chained, ReceiveEvent::read_done).action == B::complete);
}

TEST_CASE("Rendezvous: every state of a send with every event (P1.2, P1.3)") {
  for (std::size_t s = 0; s < all_send_states.size(); ++s) {
    for (std::size_t e = 0; e < all_send_events.size(); ++e) {
      CAPTURE(s, e);
      const SendStep got = step(all_send_states[s], all_send_events[e]);
      const SendCell& want = send_table[s][e];
      CHECK(got.legal == want.legal);
      CHECK(got.next == (want.legal ? want.next : all_send_states[s]));
      CHECK(got.action == want.action);
    }
  }
}

TEST_CASE("Rendezvous: every state of a receive with every event (P1.2, P1.3)") {
  for (std::size_t s = 0; s < all_receive_states.size(); ++s) {
    for (std::size_t e = 0; e < all_receive_events.size(); ++e) {
      CAPTURE(s, e);
      const ReceiveStep got = step(all_receive_states[s], all_receive_events[e]);
      const ReceiveCell& want = receive_table[s][e];
      CHECK(got.legal == want.legal);
      CHECK(got.next == (want.legal ? want.next : all_receive_states[s]));
      CHECK(got.action == want.action);
    }
  }
}

TEST_CASE("Rendezvous: on every way back to idle a request completes exactly once (P1.10)") {
  std::mt19937 random(2009);
  int lives = 0;
  for (int walk = 0; walk < 2000; ++walk) {
    S send = S::idle;
    int completions = 0;
    for (int i = 0; i < 40; ++i) {
      const S before = send;
      const SendStep next = step(send, all_send_events[random() % all_send_events.size()]);
      send = next.next;
      if (!next.legal) continue;
      if (before == S::idle) completions = 0;
      completions += completes(next.action) ? 1 : 0;
      if (send == S::idle) {
        REQUIRE(completions == 1);
        ++lives;
      } else {
        REQUIRE(completions == 0);
      }
    }
    R receive = R::idle;
    completions = 0;
    for (int i = 0; i < 60; ++i) {
      const R before = receive;
      const ReceiveEvent event = all_receive_events[random() % all_receive_events.size()];
      // A ghost is nobody's request.
      if (event == ReceiveEvent::haunt || event == ReceiveEvent::gather) continue;
      const ReceiveStep next = step(receive, event);
      receive = next.next;
      if (!next.legal) continue;
      if (before == R::idle) completions = 0;
      completions += completes(next.action) ? 1 : 0;
      if (receive == R::idle) {
        REQUIRE(completions == 1);
        ++lives;
      } else {
        REQUIRE(completions == 0);
      }
    }
  }
  CHECK(lives > 10000);
}
