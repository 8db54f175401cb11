// Which receives of an envelope are known to have no RTR out that names memory.
// SPDX-License-Identifier: BSD-3-Clause
#include "memory_free.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "communicator.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

constexpr std::int32_t tag = 5;

/// The receives of one envelope, and how many were looked at.
struct Receives {
  Receives() {
    for (std::int32_t other = 0; other < 40; ++other) add(other, ReceiveState::queued);
  }
  ~Receives() {
    for (auto& op : all) {
      if (op->link.linked()) posted.remove(*op);
    }
  }
  Receives(const Receives&) = delete;
  Receives& operator=(const Receives&) = delete;

  ReceiveOp& add(std::int32_t of, ReceiveState state) {
    ReceiveOp& op = *all.emplace_back(std::make_unique<ReceiveOp>());
    op.tag = of;
    op.order = all.size();
    op.state = state;
    op.names_memory = false;
    posted.insert(op);
    return op;
  }
  ReceiveOp& offer(bool names_memory = false) {
    ReceiveOp& op = add(tag, ReceiveState::queued);
    offer(op, names_memory);
    return op;
  }
  void offer(ReceiveOp& op, bool names_memory) {
    op.state = ReceiveState::offered;
    op.names_memory = names_memory;
    range.offered(op.order);
  }
  bool from_on(ReceiveOp& op) {
    return range.from_on(op, posted, [this](const ReceiveOp& each) {
      ++looks;
      return each.state != ReceiveState::queued && each.names_memory;
    });
  }
  /// The same by walking over all of them.
  bool walked(ReceiveOp& op) {
    for (ReceiveOp* each = &op; each != nullptr; each = posted.find_after(*each)) {
      if (each->state != ReceiveState::queued && each->names_memory) return false;
    }
    return true;
  }

  std::vector<std::unique_ptr<ReceiveOp>> all;
  TagTable<ReceiveOp, &ReceiveOp::link, &ReceiveOp::tag> posted;
  MemoryFreeRange range;
  std::size_t looks = 0;
};

}  // namespace

TEST_CASE("Memory-free range: thousands of receives are cancelled, each is looked at once") {
  constexpr std::size_t count = 4096;
  Receives receives;
  std::vector<ReceiveOp*> cancelled;
  for (std::size_t i = 0; i < count; ++i) cancelled.push_back(&receives.offer());
  SECTION("the oldest first") {}
  SECTION("the youngest first") { std::reverse(cancelled.begin(), cancelled.end()); }
  SECTION("in any order") { std::shuffle(cancelled.begin(), cancelled.end(), std::mt19937(1)); }
  SECTION("every other one, the youngest first") {
    std::reverse(cancelled.begin(), cancelled.end());
    std::stable_partition(cancelled.begin(), cancelled.end(),
                          [](const ReceiveOp* op) { return op->order % 2 == 0; });
  }
  for (ReceiveOp* op : cancelled) {
    REQUIRE(receives.from_on(*op));
    receives.posted.remove(*op);
  }
  CHECK(receives.looks <= 2 * count);
}

TEST_CASE("Memory-free range: a new receive for each that is cancelled costs one look") {
  constexpr std::size_t count = 1000;
  Receives receives;
  std::vector<ReceiveOp*> waiting;
  for (std::size_t i = 0; i < count; ++i) waiting.push_back(&receives.offer());
  for (std::size_t i = 0; i < count; ++i) {
    ReceiveOp& fresh = receives.offer();
    ReceiveOp& gone = i % 2 == 0 ? fresh : *waiting[i];
    REQUIRE(receives.from_on(gone));
    receives.posted.remove(gone);
  }
  CHECK(receives.looks <= 3 * count);
}

TEST_CASE("Memory-free range: an RTR that names memory stops those before it, not those after") {
  Receives receives;
  ReceiveOp& before = receives.offer();
  ReceiveOp& names = receives.offer(true);
  ReceiveOp& after = receives.offer();
  CHECK_FALSE(receives.from_on(before));
  CHECK_FALSE(receives.from_on(names));
  CHECK(receives.from_on(after));
  CHECK_FALSE(receives.from_on(before));
  receives.posted.remove(names);  // its message has come
  CHECK(receives.from_on(before));
}

TEST_CASE("Memory-free range: a receive that was known gets an RTR again") {
  Receives receives;
  ReceiveOp& first = receives.offer();
  ReceiveOp& second = receives.add(tag, ReceiveState::queued);
  CHECK(receives.from_on(first));
  receives.offer(second, true);
  CHECK_FALSE(receives.from_on(first));
}

TEST_CASE("Memory-free range: the same answer as a walk over all receives") {
  std::mt19937 random(1);
  for (int walk = 0; walk < 300; ++walk) {
    Receives receives;
    std::vector<ReceiveOp*> here;
    const unsigned one_in = 2 + random() % 20;
    for (int i = 0; i < 200; ++i) {
      const unsigned what = random() % 8;
      ReceiveOp* const op = here.empty() ? nullptr : here[random() % here.size()];
      if (what < 3) {
        ReceiveOp& fresh = receives.add(tag, ReceiveState::queued);
        if (what < 2) receives.offer(fresh, random() % one_in == 0);
        here.push_back(&fresh);
      } else if (op == nullptr) {
        continue;
      } else if (what == 3) {
        receives.offer(*op, random() % one_in == 0);
      } else if (what == 4) {
        op->state = ReceiveState::queued;  // taken back
      } else if (what == 5) {
        op->names_memory = false;  // it could not be registered
      } else if (what == 6) {
        receives.posted.remove(*op);
        std::erase(here, op);
      } else {
        REQUIRE(receives.from_on(*op) == receives.walked(*op));
      }
    }
  }
}
