// Peers that may sleep although a message that they wait for lies in their ring.
// SPDX-License-Identifier: BSD-3-Clause
#include "wake_ups.hpp"

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"

namespace {

using namespace overlap::ring;

struct Peer {
  WakeUp wake;
  bool returned = false;  ///< every slot of its ring
};
using Wakes = WakeUps<Peer>;

constexpr std::uint64_t start = 1'000'000;
constexpr std::uint64_t patience = Wakes::patience_ns;

struct Bench {
  Peer first, second;
  Wakes wakes;
  std::vector<const Peer*> woken;
  bool has_room = true;

  void serve(std::uint64_t now, bool at_once = false) {
    woken.clear();
    wakes.serve(
        now, at_once, [](const Peer& peer) { return peer.returned; },
        [this](Peer& peer) {
          if (has_room) woken.push_back(&peer);
          return has_room;
        });
  }
};

/// A sender and a receiver, step by step, and a network that keeps the order of each direction. No
/// clock: any time may pass between two steps.
struct Model {
  enum class Step : std::uint8_t {
    send,
    serve_early,
    serve_late,
    leave,
    hear,
    say,
    arm,
    poll,
    rise,
    arrive
  };
  static constexpr std::array steps{Step::send, Step::serve_early, Step::serve_late, Step::leave,
                                    Step::hear, Step::say,         Step::arm,        Step::poll,
                                    Step::rise, Step::arrive};
  enum class Receiver : std::uint8_t { working, armed, asleep };

  explicit Model(bool any_word_proves) : any_word_proves(any_word_proves) {}

  [[nodiscard]] bool can(Step step) const {
    switch (step) {
      case Step::send: return !sent;
      case Step::serve_early:
      case Step::serve_late: return inside && !wakes.empty();
      case Step::leave: return sent && inside;  // the thread takes its turn
      case Step::hear: return !to_sender.empty();
      case Step::say: return !said && receiver == Receiver::working;
      case Step::arm: return !seen && receiver == Receiver::working;
      case Step::poll: return receiver == Receiver::armed;
      case Step::rise: return receiver == Receiver::asleep && rung;
      case Step::arrive: return !to_receiver.empty();
    }
    return false;
  }
  void take(Step step) {
    switch (step) {
      case Step::send:
        sent = true;
        wakes.note_sent(peer, start);
        to_receiver += 'm';
        return;
      case Step::serve_early: return serve(start + patience - 1, false);
      case Step::serve_late: return serve(start + patience, false);
      case Step::leave: inside = false; return serve(start, true);
      case Step::hear:
        peer.returned = peer.returned || to_sender.front() == 'c' || (any_word_proves && sent);
        to_sender.erase(0, 1);
        return;
      case Step::say:
        said = true;
        to_sender += 's';
        return;
      case Step::arm:
        notify = true;
        rung = false;
        receiver = Receiver::armed;
        return;
      case Step::poll:
        receiver = in_ring ? Receiver::working : Receiver::asleep;
        if (!in_ring) return;
        seen = true;
        to_sender += 'c';
        return;
      case Step::rise: receiver = Receiver::working; return;
      case Step::arrive:
        if (to_receiver.front() == 'm')
          in_ring = true;
        else if (std::exchange(notify, false))
          rung = true;
        to_receiver.erase(0, 1);
        return;
    }
  }
  void serve(std::uint64_t now, bool at_once) {
    wakes.serve(
        now, at_once, [](const Peer& each) { return each.returned; },
        [this](Peer&) {
          to_receiver += 'w';
          return true;
        });
  }
  [[nodiscard]] std::string state() const {
    std::string text = to_receiver + "|" + to_sender + "|";
    for (const bool each : {sent, inside, said, notify, rung, in_ring, seen, peer.returned,
                            peer.wake.due, wakes.empty()})
      text += each ? '1' : '0';
    return text + static_cast<char>('0' + static_cast<int>(receiver));
  }

  bool any_word_proves;
  Peer peer;
  Wakes wakes;
  bool sent = false, inside = true;  ///< the sender; inside MPI
  std::string to_receiver, to_sender;
  Receiver receiver = Receiver::working;
  bool said = false, notify = false, rung = false, in_ring = false, seen = false;
};

using Path = std::vector<Model::Step>;

/// Follow every path. @returns  one that ends while the message lies there
std::optional<Path> find_lost(bool any_word_proves) {
  std::set<std::string> known;
  std::vector<Path> open{{}};
  while (!open.empty()) {
    const Path path = open.back();
    open.pop_back();
    const auto run = [&](std::optional<Model::Step> last) {
      auto model = std::make_unique<Model>(any_word_proves);
      for (const Model::Step step : path) model->take(step);
      if (last) model->take(*last);
      return model;
    };
    const auto here = run(std::nullopt);
    bool goes_on = false;
    for (const Model::Step step : Model::steps) {
      if (!here->can(step)) continue;
      const std::string state = run(step)->state();
      goes_on = goes_on || state != here->state();
      if (!known.insert(state).second) continue;
      open.push_back(path);
      open.back().push_back(step);
    }
    if (!goes_on && !here->seen) return path;
  }
  REQUIRE(known.size() > 50);
  return std::nullopt;
}

}  // namespace

TEST_CASE("In no order of steps is a message slept over", "[ring][wake_ups]") {
  CHECK_FALSE(find_lost(false));
}

TEST_CASE("What a peer has said earlier and arrives later proves nothing", "[ring][wake_ups]") {
  CHECK(find_lost(true));  // the planted fault is found
}

TEST_CASE("A peer that has given its slots back is not woken", "[ring][wake_ups]") {
  Bench bench;
  bench.wakes.note_sent(bench.first, start);
  bench.first.returned = true;
  bench.serve(start + patience);
  CHECK(bench.woken.empty());
  CHECK(bench.wakes.empty());
}

TEST_CASE("One that has not is woken once, when its sender pauses", "[ring][wake_ups]") {
  Bench bench;
  bench.wakes.note_sent(bench.first, start);
  bench.wakes.note_sent(bench.first, start + patience / 2);
  bench.serve(start + patience);
  CHECK(bench.woken.empty());
  bench.serve(start + patience / 2 + patience);
  CHECK(bench.woken == std::vector<const Peer*>{&bench.first});
  CHECK(bench.wakes.empty());
  bench.serve(start + 3 * patience);
  CHECK(bench.woken.empty());
  bench.wakes.note_sent(bench.first, start + 3 * patience);  // anew
  bench.serve(start + 4 * patience);
  CHECK(bench.woken.size() == 1);
}

TEST_CASE("A sender that does not pause wakes it all the same", "[ring][wake_ups]") {
  Bench bench;
  std::uint64_t now = start;
  for (; now < start + Wakes::patience_max_ns; now += patience / 2) {
    bench.wakes.note_sent(bench.first, now);
    bench.serve(now);
    CHECK(bench.woken.empty());
  }
  bench.serve(now);
  CHECK(bench.woken.size() == 1);
}

TEST_CASE("A thread of a process that computes does not wait", "[ring][wake_ups]") {
  Bench bench;
  bench.wakes.note_sent(bench.first, start);
  bench.wakes.note_sent(bench.second, start);
  bench.serve(start, true);
  CHECK(bench.woken == std::vector<const Peer*>{&bench.first, &bench.second});
}

TEST_CASE("A message that wakes anyway is enough", "[ring][wake_ups]") {
  Bench bench;
  bench.wakes.note_sent(bench.first, start);
  Wakes::note_woken(bench.first);
  bench.serve(start, true);
  CHECK(bench.woken.empty());
  CHECK(bench.wakes.empty());
}

TEST_CASE("Without room it is tried again", "[ring][wake_ups]") {
  Bench bench;
  bench.has_room = false;
  bench.wakes.note_sent(bench.first, start);
  bench.wakes.note_sent(bench.second, start);
  bench.serve(start + patience);
  CHECK_FALSE(bench.wakes.empty());
  bench.second.returned = bench.has_room = true;
  bench.serve(start + patience);
  CHECK(bench.woken == std::vector<const Peer*>{&bench.first});
  CHECK(bench.wakes.empty());
}

TEST_CASE("A peer that goes is forgotten", "[ring][wake_ups]") {
  Bench bench;
  bench.wakes.note_sent(bench.first, start);
  bench.wakes.note_sent(bench.second, start);
  bench.wakes.remove(bench.first);
  bench.serve(start, true);
  CHECK(bench.woken == std::vector<const Peer*>{&bench.second});
}

TEST_CASE("peers together leave half of a sleeper's receive buffers", "[wake_ups]") {
  for (const std::uint32_t buffers : {1U, 8U, 128U, 4096U})
    for (std::size_t peers = 1; peers < 3000; peers = peers * 3 / 2 + 1) {
      CAPTURE(buffers, peers);
      const std::uint32_t each = unwoken_max(buffers, peers);
      CHECK(each >= 1);
      CHECK(each <= 15);
      CHECK((each == 1 || each * peers <= buffers / 2));
    }
}

TEST_CASE("every so many messages into receive buffers one wakes", "[wake_ups]") {
  Bench bench;
  bench.wakes.set_unwoken_max(3);
  const auto row = [&](Peer& peer, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += bench.wakes.must_wake(peer) ? 'w' : '.';
    return text;
  };
  CHECK(row(bench.first, 9) == "...w...w.");
  CHECK(row(bench.second, 5) == "...w.");
  Wakes::note_woken(bench.first);
  CHECK(row(bench.first, 4) == "...w");
}
