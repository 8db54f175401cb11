// Connecting: every state with every event, and every interleaving of two processes that both want
// to, of which attempts fail, time out and come late.
// SPDX-License-Identifier: BSD-3-Clause
#include "connect.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

using S = ConnectState;
using E = ConnectEvent;
using A = ConnectAction;
constexpr std::array states{S::idle,        S::connecting,  S::accepting,
                            S::backing_off, S::established, S::failed};
constexpr std::array events{
    E::want, E::request, E::stale_request, E::our_established, E::their_established,
    E::lost, E::due,     E::device_failed};

/// A cell of the table in connect.hpp; illegal where nothing is written.
struct Cell {
  S next = S::idle;
  A action = A::none;
  bool legal = false;
  Cell() = default;
  Cell(S state, A act = A::none) : next(state), action(act), legal(true) {}
};

Cell expected(S state, E event, ConnectView view) {
  const Cell failed_attempt =
      view.needed ? Cell{S::backing_off, A::drop_and_wait} : Cell{S::idle, A::drop};
  const Cell o;
  const Cell rejected{state, A::reject};
  const Cell crossing = view.mine_is_smaller ? rejected : Cell{S::accepting, A::drop_and_accept};
  const Cell flush{S::established, A::flush_queue};
  const Cell report{S::failed, A::report_lost};
  const Cell accepted{S::accepting, A::accept};
  const Cell again = view.needed ? Cell{S::connecting, A::connect} : Cell{S::idle};
  // [state][event], in the order of `states` and `events`
  const Cell table[6][8] = {
      {{S::connecting, A::connect}, accepted, rejected, o, o, o, o, o},
      {S::connecting, crossing, rejected, flush, o, failed_attempt, o, report},
      {S::accepting,
       {S::accepting, A::drop_and_accept},
       rejected,
       o,
       flush,
       failed_attempt,
       o,
       report},
      {S::backing_off, accepted, rejected, o, o, o, again, o},
      {S::established, rejected, rejected, o, o, report, o, o},
      {report, rejected, rejected, o, o, S::failed, o, o},
  };
  return table[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

}  // namespace

TEST_CASE("Connect: every state with every event (P2.7)") {
  for (const S state : states) {
    for (const E event : events) {
      for (const ConnectView view :
           {ConnectView{false, false}, {false, true}, {true, false}, {true, true}}) {
        CAPTURE(static_cast<int>(state), static_cast<int>(event), view.mine_is_smaller,
                view.needed);
        const ConnectStep got = step(state, event, view);
        const Cell want = expected(state, event, view);
        CHECK(got.legal == want.legal);
        CHECK(got.next == (want.legal ? want.next : state));
        CHECK(got.action == want.action);
      }
    }
  }
}

TEST_CASE("Connect: a peer that does not answer is asked again until it does (P2.7)") {
  S state = S::idle;
  const auto take = [&](E event, bool needed) {
    const ConnectStep next = step(state, event, {true, needed});
    REQUIRE(next.legal);
    state = next.next;
    return next.action;
  };
  CHECK(take(E::want, true) == A::connect);
  for (int i = 0; i < 100; ++i) {
    CHECK(take(E::lost, true) == A::drop_and_wait);
    CHECK(take(E::want, true) == A::none);  // more to send changes nothing
    CHECK(take(E::due, true) == A::connect);
  }
  CHECK(take(E::our_established, true) == A::flush_queue);
  CHECK(state == S::established);
}

TEST_CASE("Connect: an attempt ahead of its use fails without a trace (P2.7)") {
  S state = S::idle;
  for (const E event : {E::want, E::lost, E::request, E::lost, E::want}) {
    const ConnectStep next = step(state, event, {true, false});
    REQUIRE(next.legal);
    REQUIRE(next.action != A::report_lost);
    state = next.next;
  }
  CHECK(state == S::connecting);
}

TEST_CASE("Connect: queue pairs that are refused for good end the connection in bounded time") {
  std::uint64_t ms = 0;
  for (std::uint32_t failures = 1; failures < refusals_max; ++failures)
    ms += back_off_ms(failures, 0);
  CHECK(ms > 10'000);
  CHECK(ms < 40'000);
}

TEST_CASE("Connect: the time between two attempts doubles, has a limit and differs") {
  std::set<std::uint32_t> different;
  for (std::uint32_t salt = 0; salt < 64; ++salt) {
    std::uint32_t floor = back_off_first_ms * 3 / 4;
    for (std::uint32_t failures = 1; failures < 40; ++failures) {
      const std::uint32_t got = back_off_ms(failures, salt);
      CAPTURE(salt, failures);
      CHECK(got >= floor);
      CHECK(got < std::max(floor * 2, 20U));
      floor = std::min(floor * 2, back_off_last_ms * 3 / 4);
    }
    different.insert(back_off_ms(9, salt));
  }
  CHECK(different.size() > 48);
  CHECK(back_off_ms(0xffffffff, 7) < back_off_last_ms * 5 / 4);
}

namespace {

/// One request and what became of it. Its maker and its taker hold a queue pair for it or do not
/// any more.
struct Attempt {
  enum class Where : std::uint8_t { to_peer, rejecting, accepted, over };
  Where where = Where::to_peer;
  bool maker_holds = true;
  bool taker_holds = false;
  bool maker_told = false;  ///< that it is established
  bool taker_told = false;
};

enum class Want : std::uint8_t { no, ahead_of_use, needed };

struct Process {
  S state = S::idle;
  Want want = Want::no;
  std::size_t newest_seen = 0;  ///< requests of the peer, the newest that came
  int early_dues = 1;           ///< how often its clock may come before what is in flight
  std::vector<Attempt> attempts;
};

/// Two processes; 0 has the smaller id. Everything in flight can happen in any order.
struct World {
  std::array<Process, 2> process;
  int time_outs = 2;
  std::string fault;

  [[nodiscard]] std::string key() const {
    std::string text = std::to_string(time_outs);
    for (const Process& each : process) {
      text += '|';
      text += static_cast<char>('a' + static_cast<int>(each.state));
      text += static_cast<char>('0' + static_cast<int>(each.want));
      text += std::to_string(each.newest_seen) + std::to_string(each.early_dues);
      for (const Attempt& attempt : each.attempts) {
        text += static_cast<char>('A' + static_cast<int>(attempt.where));
        text += static_cast<char>('0' + attempt.maker_holds + 2 * attempt.taker_holds +
                                  4 * attempt.maker_told + 8 * attempt.taker_told);
      }
    }
    return text;
  }

  /// `who` destroys the queue pair that it has.
  void give_up(std::size_t who) {
    const auto check = [&](const Attempt& attempt) {
      if (attempt.maker_told || attempt.taker_told) fault = "an established connection is torn";
    };
    for (Attempt& mine : process[who].attempts) {
      if (mine.maker_holds) check(mine);
      mine.maker_holds = false;
    }
    for (Attempt& theirs : process[1 - who].attempts) {
      if (theirs.taker_holds) check(theirs);
      theirs.taker_holds = false;
    }
  }

  /// @param number  of the peer's request, for events that are one
  void apply(std::size_t who, E event, std::size_t number = 0) {
    Process& self = process[who];
    std::vector<Attempt>& theirs = process[1 - who].attempts;
    const ConnectStep next = step(self.state, event, {who == 0, self.want == Want::needed});
    if (!next.legal) fault = "an illegal event";
    self.state = next.next;
    switch (next.action) {
      case A::connect:
        self.attempts.emplace_back();
        if (self.attempts.size() > 8) fault = "it goes on for ever";
        break;
      case A::drop_and_accept: give_up(who); [[fallthrough]];
      case A::accept:
        theirs[number].where = Attempt::Where::accepted;
        theirs[number].taker_holds = true;
        break;
      case A::reject: theirs[number].where = Attempt::Where::rejecting; break;
      case A::drop:
      case A::drop_and_wait: give_up(who); break;
      case A::report_lost: fault = "the peer is given up"; break;
      case A::flush_queue:
      case A::none: break;
    }
  }

  template <class Change>
  void add(std::vector<World>& all, Change&& change) const {
    all.push_back(*this);
    change(all.back());
  }

  /// What can become of request `i` of process p next.
  void add_steps_of(std::size_t p, std::size_t i, std::vector<World>& all) const {
    using W = Attempt::Where;
    const Attempt& now = process[p].attempts[i];
    const auto that = [p, i](World& world) -> Attempt& { return world.process[p].attempts[i]; };
    if (now.where == W::to_peer) {
      add(all, [&](World& next) {
        Process& taker = next.process[1 - p];
        const bool stale = i + 1 < taker.newest_seen;
        taker.newest_seen = std::max(taker.newest_seen, i + 1);
        next.apply(1 - p, stale ? E::stale_request : E::request, i);
      });
      if (!now.maker_holds)  // it is lost on the way
        add(all, [&](World& next) { that(next).where = W::over; });
    }
    if (now.where == W::rejecting) {
      add(all, [&](World& next) {
        that(next).where = W::over;
        if (now.maker_holds) next.apply(p, E::lost);
      });
    }
    if (now.where == W::accepted && now.maker_holds && now.taker_holds && !now.maker_told) {
      add(all, [&](World& next) {
        that(next).maker_told = true;
        next.apply(p, E::our_established);
      });
    }
    if (now.where == W::accepted && now.maker_told && !now.taker_told && now.taker_holds) {
      add(all, [&](World& next) {
        that(next).taker_told = true;
        next.apply(1 - p, E::their_established);
      });
    }
    // One side has given it up: the other one is told.
    if (now.where == W::accepted && now.maker_holds != now.taker_holds) {
      add(all, [&](World& next) {
        that(next).where = W::over;
        next.apply(now.maker_holds ? p : 1 - p, E::lost);
      });
    }
    if ((now.where == W::to_peer || now.where == W::accepted) && now.maker_holds &&
        !now.maker_told && time_outs > 0) {
      add(all, [&](World& next) {
        --next.time_outs;
        next.apply(p, E::lost);
      });
    }
  }

  /// Every step that could come next.
  [[nodiscard]] std::vector<World> successors() const {
    std::vector<World> all;
    for (std::size_t p = 0; p < 2; ++p) {
      for (const Want want : {Want::ahead_of_use, Want::needed}) {
        if (process[p].want >= want) continue;
        add(all, [&](World& next) {
          next.process[p].want = want;
          next.apply(p, E::want);
        });
      }
      for (std::size_t i = 0; i < process[p].attempts.size(); ++i) add_steps_of(p, i, all);
      if (process[p].state == S::backing_off && process[p].early_dues > 0) {
        add(all, [&](World& next) {
          --next.process[p].early_dues;
          next.apply(p, E::due);
        });
      }
    }
    if (!all.empty()) return all;
    for (std::size_t p = 0; p < 2; ++p) {
      if (process[p].state == S::backing_off) add(all, [&](World& next) { next.apply(p, E::due); });
    }
    return all;
  }

  [[nodiscard]] std::string find_wrong_end() const {
    int connections = 0;
    for (std::size_t p = 0; p < 2; ++p) {
      if (process[p].state != S::established) return "not established";
      for (const Attempt& attempt : process[p].attempts) {
        connections += attempt.maker_holds && attempt.taker_holds && attempt.taker_told ? 1 : 0;
        if (attempt.maker_holds != attempt.taker_holds) return "a queue pair is left";
      }
    }
    return connections == 1 ? "" : "not exactly one connection";
  }
};

}  // namespace

TEST_CASE("Connect: whatever crosses, fails or comes late, the end is one connection (P2.7)") {
  std::vector<World> open{{}};
  std::set<std::string> seen;
  int ends = 0;
  while (!open.empty()) {
    const World world = open.back();
    open.pop_back();
    CAPTURE(world.key());
    REQUIRE(world.fault == "");
    if (!seen.insert(world.key()).second) continue;
    const std::vector<World> next = world.successors();
    if (next.empty()) {
      ++ends;
      REQUIRE(world.find_wrong_end() == "");
    }
    open.insert(open.end(), next.begin(), next.end());
  }
  CHECK(ends > 10);
  CHECK(seen.size() > 5000);
}
