// When waiting for send buffers counts as hopeless.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/btl/ring/protocol/buffer_shortage.hpp"

#include "test/support/catch.hpp"

using overlap::ring::BufferShortage;

namespace {

constexpr std::uint64_t patience = BufferShortage::patience_passes;
constexpr std::uint64_t limit = 100000;

constexpr std::uint64_t never = limit + 1;
constexpr std::uint64_t short_pass_ns = 1, long_pass_ns = 10 * BufferShortage::patience_ns;

/// A process with a clock.
struct Waiter {
  BufferShortage shortage{32};
  std::uint64_t now_ns = 12345;
  std::uint64_t pass_ns = short_pass_ns;

  bool wait() { return shortage.note_wait(now_ns); }
  void pass() {
    shortage.note_pass();
    now_ns += pass_ns;
  }
  /// Passes with somebody waiting in each, until it is hopeless; `returned` buffers come back in
  /// each `every` passes.
  std::uint64_t until_hopeless(std::uint64_t every = never, unsigned returned = 0) {
    for (std::uint64_t pass_number = 0; pass_number < limit; ++pass_number) {
      if (pass_number % every == every - 1) {
        for (unsigned i = 0; i < returned; ++i) shortage.note_returned();
      }
      if (wait()) return pass_number;
      pass();
    }
    return limit;
  }
};

}  // namespace

TEST_CASE("BufferShortage: hopeless when nothing comes back for a while") {
  Waiter waiter;
  CHECK(waiter.until_hopeless() == patience);
  waiter.shortage.note_attempt(true);
  CHECK(waiter.until_hopeless() == patience);
}

TEST_CASE("BufferShortage: a program that computes between its passes has few of them") {
  Waiter waiter{.pass_ns = long_pass_ns};
  CHECK(waiter.until_hopeless() == BufferShortage::least_passes);
  waiter.shortage.note_attempt(true);
  CHECK(waiter.until_hopeless() == BufferShortage::least_passes);
  waiter.pass_ns = BufferShortage::patience_ns / 50;
  waiter.shortage.note_attempt(true);
  CHECK(waiter.until_hopeless() == 50);
}

TEST_CASE("BufferShortage: many attempts in one pass are one wait") {
  Waiter waiter;
  for (int i = 0; i < 10000; ++i) {
    waiter.now_ns += long_pass_ns;
    CHECK_FALSE(waiter.wait());
  }
}

TEST_CASE("BufferShortage: waiting helps where a block comes back meanwhile") {
  Waiter waiter;
  CHECK(waiter.until_hopeless(patience / 4, 8) == limit);
  waiter.pass_ns = long_pass_ns;
  CHECK(waiter.until_hopeless(1, 8) == limit);
}

TEST_CASE("BufferShortage: one buffer that goes round does not help") {
  Waiter waiter;
  CHECK(waiter.until_hopeless(patience / 4, 1) == patience);
}

TEST_CASE("BufferShortage: what has come back once says nothing of the time that follows") {
  Waiter waiter;
  CHECK_FALSE(waiter.wait());
  for (unsigned i = 0; i < 32; ++i) waiter.shortage.note_returned();
  CHECK(waiter.until_hopeless() == 2 * patience);
  // Nor does it where nobody waits in between.
  for (unsigned i = 0; i < 32; ++i) waiter.shortage.note_returned();
  for (int i = 0; i < 2; ++i) waiter.pass();
  CHECK(waiter.until_hopeless() == patience);
}

TEST_CASE("BufferShortage: a time without waiting begins anew") {
  Waiter waiter;
  for (std::uint64_t pass = 0; pass < 10 * patience; ++pass) {
    if (pass % patience != 0) CHECK_FALSE(waiter.wait());
    waiter.pass();
  }
  // Buffers are taken all the time, and a burst finds none: not hopeless at once.
  for (std::uint64_t pass = 0; pass < 10 * patience; ++pass) waiter.pass();
  CHECK(waiter.until_hopeless() == patience);
  waiter.now_ns += long_pass_ns;
  waiter.pass();
  waiter.pass();
  CHECK(waiter.until_hopeless() == patience);
}

TEST_CASE("BufferShortage: a refused attempt is repeated seldom") {
  constexpr std::uint64_t refused = BufferShortage::patience_refused;
  Waiter waiter;
  CHECK(waiter.until_hopeless() == patience);
  waiter.shortage.note_attempt(false);
  CHECK(waiter.until_hopeless() == refused * patience);
  waiter.pass_ns = BufferShortage::patience_ns / 10;
  waiter.shortage.note_attempt(false);
  CHECK(waiter.until_hopeless() == 10 * refused);
  waiter.shortage.note_attempt(true);
  CHECK(waiter.until_hopeless() == 10);
}
