// A helper's loop on a clock of the test.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/lookout.hpp"

#include <string>
#include <vector>

#include "test/support/catch.hpp"

namespace {

using overlap::progressd::Lookout;
using overlap::progressd::Patience;
using overlap::progressd::Pause;
using overlap::progressd::Sight;
using overlap::progressd::Taken;

struct FakeClient {
  bool armed = false;
  bool watched = false;
  Taken left = Taken::nothing;
  bool waits = true;
  std::uint32_t turns = 0;
  std::uint64_t wakes = 0;
  Sight sight;
};

struct FakeHost {
  std::vector<FakeClient> all = std::vector<FakeClient>(1);
  std::uint64_t now = 0;
  bool called = false;
  std::string shown;

  std::size_t clients() const { return all.size(); }
  Sight& sight(std::size_t i) { return all[i].sight; }
  std::uint64_t now_ns() const { return now; }
  bool is_armed(std::size_t i) const { return all[i].armed; }
  std::uint64_t wakes(std::size_t i) const { return all[i].wakes; }
  std::uint32_t turns(std::size_t i) const { return all[i].turns; }
  void watch(std::size_t i) { all[i].watched = true; }
  void unwatch(std::size_t i) { all[i].watched = false; }
  Taken take(std::size_t i) { return std::exchange(all[i].left, Taken::nothing); }
  bool is_still_waited_for(std::size_t i) const { return all[i].waits; }
  bool wake(std::size_t i) {
    all[i].wakes += all[i].armed ? 1 : 0;
    return std::exchange(all[i].armed, false);
  }
  void show_awake() { shown = "awake"; }
  void show_napping() { shown = "napping"; }
  void show_sleeping() { shown = "sleeping"; }
  bool is_called() const { return called; }
};

constexpr Patience patience{.spin_ns = 1000,
                            .linger_ns = 100,
                            .nap_min_ns = 10,
                            .nap_max_ns = 40,
                            .naps_ns = 100,
                            .second_look_ns = 20};

struct Scene {
  FakeHost host;
  Lookout<FakeHost> lookout{host, patience};
  FakeClient& client = host.all[0];

  /// @returns  what the last one of some rounds has answered
  Pause rounds(int count, std::uint64_t each_ns) {
    Pause last;
    for (int i = 0; i < count; ++i) {
      host.now += each_ns;
      last = lookout.round();
    }
    return last;
  }
  void arm_and_watch() {
    client.armed = true;
    rounds(2, 1);
    REQUIRE(client.watched);
  }
};

}  // namespace

TEST_CASE("a helper without clients sleeps", "[helper][P4.12]") {
  Scene scene;
  scene.host.all.clear();
  CHECK(scene.rounds(1, 1).kind == Pause::Kind::sleep);
  CHECK(scene.host.shown == "sleeping");
}

TEST_CASE("an armed client is watched", "[helper][P4.1]") {
  Scene scene;
  CHECK(scene.rounds(1, 1).kind == Pause::Kind::sleep);
  CHECK_FALSE(scene.client.watched);
  scene.lookout.roused();
  scene.client.armed = true;
  CHECK(scene.rounds(2, 1).kind == Pause::Kind::none);
  CHECK(scene.client.watched);
  CHECK(scene.host.shown == "awake");
}

TEST_CASE("a helper to which nothing comes naps, longer and longer, then sleeps",
          "[helper][P4.12]") {
  Scene scene;
  scene.arm_and_watch();
  CHECK(scene.rounds(1, 900).kind == Pause::Kind::none);
  std::vector<std::uint64_t> naps;
  Pause pause = scene.rounds(1, 200);
  for (; pause.kind == Pause::Kind::nap; pause = scene.rounds(1, pause.nap_ns)) {
    CHECK_FALSE(scene.client.watched);
    CHECK(scene.host.shown == "napping");
    naps.push_back(pause.nap_ns);
  }
  CHECK(naps == std::vector<std::uint64_t>{10, 20, 40, 40});
  CHECK(pause.kind == Pause::Kind::sleep);
  CHECK(scene.lookout.tally().sleeps == 1);
  scene.lookout.roused();
  scene.rounds(1, 1);
  CHECK(scene.client.watched);
}

TEST_CASE("a helper that naps looks again when a client has been woken or arms itself",
          "[helper]") {
  for (const bool woken : {true, false}) {
    Scene scene;
    scene.arm_and_watch();
    REQUIRE(scene.rounds(1, 2000).kind == Pause::Kind::nap);
    if (woken) {
      scene.client.wakes += 1;
    } else {
      scene.client.armed = false;
      REQUIRE(scene.rounds(1, 10).kind != Pause::Kind::none);
      scene.client.armed = true;
    }
    CHECK(scene.rounds(2, 1).kind == Pause::Kind::none);
    CHECK(scene.client.watched);
  }
}

TEST_CASE("nobody armed: it sleeps soon", "[helper][P4.12]") {
  Scene scene;
  scene.arm_and_watch();
  scene.client.armed = false;
  CHECK(scene.rounds(1, 50).kind == Pause::Kind::none);
  CHECK(scene.rounds(1, 100).kind == Pause::Kind::sleep);
  CHECK_FALSE(scene.client.watched);
}

TEST_CASE("a client that arms itself while the helper goes to sleep is seen", "[helper]") {
  Scene scene;
  struct Late : FakeHost {
    void show_sleeping() {
      FakeHost::show_sleeping();
      all[0].armed = true;
    }
  } late;
  Lookout<Late> lookout(late, patience);
  CHECK(lookout.round().kind == Pause::Kind::none);
  CHECK(late.shown == "awake");
  late.now += 1;
  CHECK(lookout.round().kind == Pause::Kind::none);
}

TEST_CASE("what it waits for wakes a client, at the second look", "[helper][P4.5]") {
  Scene scene;
  scene.arm_and_watch();
  scene.client.left = Taken::wanted;
  scene.rounds(2, 1);
  CHECK(scene.client.wakes == 0);
  scene.rounds(1, 20);
  CHECK(scene.client.wakes == 1);
  CHECK_FALSE(scene.client.armed);
  CHECK(scene.lookout.tally().wakes == 1);
}

TEST_CASE("nobody is woken in vain", "[helper][P4.5]") {
  Scene scene;
  scene.arm_and_watch();
  SECTION("an MPI thread polls") {
    scene.client.left = Taken::wanted;
    scene.rounds(1, 1);
    scene.client.turns += 2;
    scene.rounds(3, 20);
    CHECK(scene.lookout.tally().polled == 1);
  }
  SECTION("nobody waits any more") {
    scene.client.left = Taken::wanted;
    scene.rounds(1, 1);
    scene.client.waits = false;
    scene.rounds(3, 20);
    CHECK(scene.lookout.tally().obsolete == 1);
  }
  SECTION("nobody has waited") {
    scene.client.left = Taken::unwanted;
    scene.rounds(3, 20);
    CHECK(scene.lookout.tally().unwanted == 1);
  }
  CHECK(scene.client.wakes == 0);
  CHECK(scene.client.armed);
}

TEST_CASE("a turn that may have begun before the arrival is not enough", "[helper][P4.5]") {
  Scene scene;
  scene.arm_and_watch();
  scene.client.turns = UINT32_MAX;  // it wraps
  scene.client.left = Taken::wanted;
  scene.rounds(1, 1);
  scene.client.turns += 1;
  scene.rounds(2, 20);
  CHECK(scene.client.wakes == 1);
}

TEST_CASE("a helper that ends wakes those for whom something was left", "[helper]") {
  for (const bool seen : {true, false}) {
    Scene scene;
    scene.arm_and_watch();
    scene.client.left = Taken::wanted;
    if (seen) scene.rounds(1, 1);
    scene.lookout.retire_all();
    CHECK_FALSE(scene.client.watched);
    CHECK(scene.client.wakes == 1);
  }
}
