// The life of a request: the story, and every order of the events that may come.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/request_life.hpp"

#include <set>
#include <string>
#include <vector>

#include "test/support/catch.hpp"

using overlap::RequestLife;
using Phase = RequestLife::Phase;

TEST_CASE("A request is released once, by whoever needs it last") {
  RequestLife life;
  life.start();
  life.hold();
  CHECK_FALSE(life.end());
  CHECK(life.phase() == Phase::held);
  CHECK_FALSE(life.free());
  CHECK(life.let_go());
  CHECK(life.phase() == Phase::queued);
  life.take();
  CHECK(life.finish());
}

TEST_CASE("A persistent request may be started again by its own completion callback") {
  RequestLife life;
  CHECK(life.can_start());
  life.start();
  CHECK_FALSE(life.can_start());
  CHECK(life.end());
  CHECK_FALSE(life.can_start());
  life.take();
  CHECK(life.can_start());
  life.start();
  CHECK(life.end());  // and that turn ends before the thread of the first one is done
  CHECK_FALSE(life.finish());
  CHECK(life.phase() == Phase::queued);
  CHECK_FALSE(life.free());
  life.take();
  CHECK(life.finish());
}

TEST_CASE("A free during completion leaves the release to the completing thread") {
  RequestLife life;
  life.start();
  CHECK(life.end());
  life.take();
  CHECK_FALSE(life.free());
  CHECK(life.finish());
}

namespace {

/// What has happened to one request, as the rest of the world sees it.
struct World {
  RequestLife life;
  int queued = 0;
  int threads = 0;
  int starts = 0;
  int completions = 0;  ///< ends that were handed to the queue or completed at once
  bool freed = false;
  bool released = false;
};

enum class Event { start, hold, let_go, end, end_at_once, take, finish, free };

bool possible(const World& w, Event event) {
  if (w.released) return false;
  const Phase phase = w.life.phase();
  switch (event) {
    case Event::start:
      return w.starts < 3 && !w.freed && (phase == Phase::idle || phase == Phase::completing);
    case Event::hold: return phase == Phase::active && w.life.holds() < 3;
    case Event::let_go: return w.life.holds() > 0;
    case Event::end: return phase == Phase::active;
    case Event::end_at_once: return phase == Phase::active && !w.freed;
    case Event::take: return w.queued > 0;
    case Event::finish: return w.threads > 0;
    case Event::free: return !w.freed;
  }
  return false;
}

void apply(World& w, Event event) {
  switch (event) {
    case Event::start:
      w.life.start();
      ++w.starts;
      break;
    case Event::hold: w.life.hold(); break;
    case Event::let_go:
      if (w.life.let_go()) ++w.queued, ++w.completions;
      break;
    case Event::end:
      if (w.life.end()) ++w.queued, ++w.completions;
      break;
    case Event::end_at_once:
      if (w.life.end_at_once()) ++w.completions;
      break;
    case Event::take:
      w.life.take();
      --w.queued;
      ++w.threads;
      break;
    case Event::finish:
      w.released = w.life.finish();
      --w.threads;
      break;
    case Event::free:
      w.released = w.life.free();
      w.freed = true;
      break;
  }
}

std::string key(const World& w) {
  std::string text;
  for (const int part :
       {static_cast<int>(w.life.phase()), static_cast<int>(w.life.holds()), w.queued, w.threads,
        w.starts, w.completions, w.freed ? 1 : 0, w.released ? 1 : 0}) {
    text += std::to_string(part) + ",";
  }
  return text;
}

}  // namespace

TEST_CASE("Every order of events: completed once per start, released once and last") {
  std::set<std::string> seen;
  std::vector<World> open{World{}};
  int ends = 0;
  while (!open.empty()) {
    const World now = open.back();
    open.pop_back();
    if (!seen.insert(key(now)).second) continue;
    REQUIRE(now.completions <= now.starts);
    if (now.released) {
      REQUIRE(now.freed);
      REQUIRE(now.queued == 0);
      REQUIRE(now.threads == 0);
      REQUIRE(now.life.holds() == 0);
      REQUIRE(now.completions == now.starts);
      ++ends;
      continue;
    }
    bool any = false;
    for (const Event event : {Event::start, Event::hold, Event::let_go, Event::end,
                              Event::end_at_once, Event::take, Event::finish, Event::free}) {
      if (!possible(now, event)) continue;
      any = true;
      World next = now;
      apply(next, event);
      open.push_back(next);
    }
    REQUIRE(any);  // nothing is left over: a request that is not released can still be freed
  }
  CHECK(ends > 0);
  CHECK(seen.size() > 100);
}
