// Connecting: every state with every event, and every interleaving of two processes that both want to.
#include "connect.hpp"

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
constexpr std::array states{S::idle, S::connecting, S::accepting, S::established, S::failed};
constexpr std::array events{E::want,     E::request, E::our_established, E::their_established,
                            E::rejected, E::lost};

/// A cell of the table in connect.hpp; illegal where nothing is written.
struct Cell {
  S next = S::idle;
  A action = A::none;
  bool legal = false;
  Cell() = default;
  Cell(S state, A act = A::none) : next(state), action(act), legal(true) {}
};
const Cell o;
const Cell lost{S::failed, A::report_lost};
// [line of the comment][event]
const Cell table[6][6] = {
    {{S::connecting, A::connect}, {S::accepting, A::accept}, o, o, o, o},
    {S::connecting, {S::connecting, A::reject}, {S::established, A::flush_queue}, o, lost, lost},
    {S::connecting,
     {S::accepting, A::drop_ours_and_accept},
     {S::established, A::flush_queue},
     o,
     S::accepting,
     lost},
    {S::accepting,
     {S::accepting, A::accept},
     o,
     {S::established, A::flush_queue},
     S::accepting,
     lost},
    {S::established, {S::established, A::reject}, o, o, S::established, lost},
    {{S::failed, A::report_lost},
     {S::failed, A::reject},
     S::failed,
     S::failed,
     S::failed,
     S::failed},
};
std::size_t line_of(S state, bool smaller) {
  if (state == S::idle) return 0;
  if (state == S::connecting) return smaller ? 1 : 2;
  return static_cast<std::size_t>(state) + 1;
}

}  // namespace

TEST_CASE("Connect: every state with every event (P2.7)") {
  for (const S state : states) {
    for (std::size_t e = 0; e < events.size(); ++e) {
      for (const bool smaller : {false, true}) {
        CAPTURE(static_cast<int>(state), e, smaller);
        const ConnectStep got = step(state, events[e], smaller);
        const Cell& want = table[line_of(state, smaller)][e];
        CHECK(got.legal == want.legal);
        CHECK(got.next == (want.legal ? want.next : state));
        CHECK(got.action == want.action);
      }
    }
  }
}

namespace {

/// Where one request stands. Requests are numbered by process and attempt; a process drops at most one.
enum class Request : std::uint8_t { none, to_peer, accepted, rejecting, over };

/// Two processes; 0 has the smaller id. Everything under way can happen in any order.
struct World {
  std::array<S, 2> state{S::idle, S::idle};
  std::array<int, 2> wants{0, 0};
  // [process][attempt]: what became of its requests
  std::array<std::array<Request, 2>, 2> request{};
  std::array<std::array<bool, 2>, 2> dropped{};      ///< by its maker
  std::array<std::array<bool, 2>, 2> ours_told{};    ///< `established` reported to the maker
  std::array<std::array<bool, 2>, 2> theirs_told{};  ///< and to the other one
  std::string fault;

  [[nodiscard]] std::string key() const {
    std::string text;
    for (std::size_t p = 0; p < 2; ++p) {
      text += static_cast<char>('a' + static_cast<int>(state[p]));
      text += static_cast<char>('0' + wants[p]);
      for (std::size_t i = 0; i < 2; ++i) {
        text += static_cast<char>('0' + static_cast<int>(request[p][i]));
        text +=
            static_cast<char>('0' + dropped[p][i] + 2 * ours_told[p][i] + 4 * theirs_told[p][i]);
      }
    }
    return text;
  }
  void apply(std::size_t process, E event, std::size_t attempt) {
    const ConnectStep next = step(state[process], event, process == 0);
    const std::size_t other = 1 - process;
    if (!next.legal) fault = "an illegal event";
    state[process] = next.next;
    switch (next.action) {
      case A::connect: {
        const std::size_t mine = request[process][0] == Request::none ? 0 : 1;
        if (request[process][mine] != Request::none) fault = "a third request";
        request[process][mine] = Request::to_peer;
        break;
      }
      case A::drop_ours_and_accept:
        for (std::size_t i = 0; i < 2; ++i)
          dropped[process][i] = request[process][i] != Request::none;
        request[other][attempt] = Request::accepted;
        break;
      case A::accept: request[other][attempt] = Request::accepted; break;
      case A::reject: request[other][attempt] = Request::rejecting; break;
      case A::report_lost: fault = "given up"; break;
      case A::flush_queue:
      case A::none: break;
    }
    if (event == E::request &&
        (next.action == A::accept || next.action == A::drop_ours_and_accept) &&
        dropped[other][attempt]) {
      fault = "a dropped request is accepted";
    }
  }
  /// Every step that could come next.
  [[nodiscard]] std::vector<World> successors() const {
    std::vector<World> all;
    for (std::size_t p = 0; p < 2; ++p) {
      if (wants[p] < 2) {
        all.push_back(*this);
        ++all.back().wants[p];
        all.back().apply(p, E::want, 0);
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const Request now = request[p][i];
        if (now == Request::to_peer) {
          all.push_back(*this);
          all.back().apply(1 - p, E::request, i);
        }
        if (now == Request::rejecting) {
          all.push_back(*this);
          all.back().request[p][i] = Request::over;
          all.back().apply(p, E::rejected, i);
        }
        if (now == Request::rejecting &&
            dropped[p][i]) {  // or it is never told, because the queue pair is gone
          all.push_back(*this);
          all.back().request[p][i] = Request::over;
        }
        if (now == Request::accepted && !ours_told[p][i]) {
          all.push_back(*this);
          all.back().ours_told[p][i] = true;
          all.back().apply(p, E::our_established, i);
        }
        if (now == Request::accepted && !theirs_told[p][i]) {
          all.push_back(*this);
          all.back().theirs_told[p][i] = true;
          all.back().apply(1 - p, E::their_established, i);
        }
      }
    }
    return all;
  }
  [[nodiscard]] std::string find_wrong_end() const {
    int connections = 0;
    for (std::size_t p = 0; p < 2; ++p) {
      if (state[p] != S::established) return "not established";
      for (const Request now : request[p]) connections += now == Request::accepted ? 1 : 0;
    }
    return connections == 1 ? "" : "not exactly one connection";
  }
};

}  // namespace

TEST_CASE("Connect: whatever crosses, the end is exactly one connection (P2.7)") {
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
  CHECK(ends > 1);
  CHECK(seen.size() > 50);
}
