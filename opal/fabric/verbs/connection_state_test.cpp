// Tests: the table of connection states, whole; one story; random lives.
// SPDX-License-Identifier: BSD-3-Clause
#include "connection_state.hpp"

#include <random>
#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::fabric::verbs;
using S = ConnectionState;
using E = ConnectionEvent;
using A = ConnectionAction;

namespace {

constexpr int states = 7;
constexpr int events = 10;

/// One cell of the table in connection_state.hpp: next state, action; a cell without is illegal.
struct Cell {
  S now;
  E event;
  S next;
  A action;
};

const std::vector<Cell>& legal_cells() {
  static const std::vector<Cell> cells = {
      {S::fresh, E::connect_called, S::resolving_address, A::resolve_address},
      {S::fresh, E::accept_called, S::accepting, A::send_answer},
      {S::resolving_address, E::address_resolved, S::resolving_route, A::resolve_route},
      {S::resolving_address, E::failed, S::ended, A::report_unreachable},
      {S::resolving_route, E::route_resolved, S::connecting, A::send_request},
      {S::resolving_route, E::failed, S::ended, A::report_unreachable},
      {S::connecting, E::response, S::connecting, A::finish},
      {S::connecting, E::established, S::established, A::report_established},
      {S::connecting, E::data_arrived, S::established, A::report_established},
      {S::connecting, E::rejected, S::ended, A::report_rejected},
      {S::connecting, E::failed, S::ended, A::report_unreachable},
      {S::connecting, E::disconnected, S::ended, A::report_unreachable},
      {S::accepting, E::established, S::established, A::report_established},
      {S::accepting, E::data_arrived, S::established, A::report_established},
      {S::accepting, E::rejected, S::ended, A::report_unreachable},
      {S::accepting, E::failed, S::ended, A::report_unreachable},
      {S::accepting, E::disconnected, S::ended, A::report_unreachable},
      {S::established, E::established, S::established, A::none},
      {S::established, E::data_arrived, S::established, A::none},
      {S::established, E::rejected, S::ended, A::report_lost},
      {S::established, E::failed, S::ended, A::report_lost},
      {S::established, E::disconnected, S::ended, A::report_lost},
      {S::ended, E::address_resolved, S::ended, A::none},
      {S::ended, E::route_resolved, S::ended, A::none},
      {S::ended, E::response, S::ended, A::none},
      {S::ended, E::established, S::ended, A::none},
      {S::ended, E::data_arrived, S::ended, A::none},
      {S::ended, E::rejected, S::ended, A::none},
      {S::ended, E::failed, S::ended, A::none},
      {S::ended, E::disconnected, S::ended, A::none},
  };
  return cells;
}

}  // namespace

TEST_CASE("the table of connection states, cell by cell", "[verbs]") {
  for (int s = 0; s < states; ++s) {
    for (int e = 0; e < events; ++e) {
      const auto now = static_cast<S>(s);
      const auto event = static_cast<E>(e);
      const ConnectionStep got = step(now, event);
      const Cell* expected = nullptr;
      for (const Cell& cell : legal_cells()) {
        if (cell.now == now && cell.event == event) expected = &cell;
      }
      INFO("state " << s << ", event " << e);
      REQUIRE(got.legal == (expected != nullptr));
      CHECK(got.next == (expected != nullptr ? expected->next : now));
      CHECK(got.action == (expected != nullptr ? expected->action : A::none));
    }
  }
}

TEST_CASE("a connection is made, used and lost", "[verbs]") {
  S state = S::fresh;
  std::vector<A> actions;
  for (const E event : {E::connect_called, E::address_resolved, E::route_resolved, E::response,
                        E::established, E::disconnected, E::failed}) {
    const ConnectionStep next = step(state, event);
    REQUIRE(next.legal);
    state = next.next;
    actions.push_back(next.action);
  }
  CHECK(state == S::ended);
  CHECK(actions == std::vector<A>{A::resolve_address, A::resolve_route, A::send_request, A::finish,
                                  A::report_established, A::report_lost, A::none});
}

TEST_CASE("whatever happens, a connection is reported once and ends at most once", "[verbs]") {
  std::mt19937 random(GENERATE(range(1U, 51U)));
  S state = S::fresh;
  int established = 0;
  int ends = 0;
  for (int turn = 0; turn < 300; ++turn) {
    const ConnectionStep next = step(state, static_cast<E>(random() % events));
    state = next.next;
    established += next.action == A::report_established ? 1 : 0;
    const bool before = next.action == A::report_unreachable || next.action == A::report_rejected;
    ends += before || next.action == A::report_lost ? 1 : 0;
    if (before) REQUIRE(established == 0);
    if (next.action == A::report_lost) REQUIRE(established == 1);
    REQUIRE(established <= 1);
    REQUIRE(ends <= 1);
    REQUIRE((ends == 1) == (state == S::ended));
  }
}
