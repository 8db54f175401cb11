// When waiting for send buffers counts as hopeless.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/btl/ring/protocol/buffer_shortage.hpp"

#include "test/support/catch.hpp"

using overlap::ring::BufferShortage;

namespace {

constexpr std::uint64_t patience = BufferShortage::patience_passes;
constexpr std::uint64_t limit = 100000;

/// Passes with somebody waiting in each, until it is hopeless; `returned` buffers come back in each
/// `every` passes.
std::uint64_t passes_until_hopeless(BufferShortage& shortage, std::uint64_t every = limit + 1,
                                    unsigned returned = 0) {
  for (std::uint64_t pass = 0; pass < limit; ++pass) {
    if (pass % every == every - 1) {
      for (unsigned i = 0; i < returned; ++i) shortage.note_returned();
    }
    if (shortage.note_wait()) return pass;
    shortage.note_pass();
  }
  return limit;
}

}  // namespace

TEST_CASE("BufferShortage: hopeless when nothing comes back for a while") {
  BufferShortage shortage(32);
  CHECK(passes_until_hopeless(shortage) == patience);
  shortage.note_attempt(true);
  CHECK(passes_until_hopeless(shortage) == patience);
}

TEST_CASE("BufferShortage: many attempts in one pass are one wait") {
  BufferShortage shortage(32);
  for (int i = 0; i < 10000; ++i) CHECK_FALSE(shortage.note_wait());
}

TEST_CASE("BufferShortage: waiting helps where a block comes back meanwhile") {
  BufferShortage shortage(32);
  CHECK(passes_until_hopeless(shortage, patience / 4, 8) == limit);
}

TEST_CASE("BufferShortage: one buffer that goes round does not help") {
  BufferShortage shortage(32);
  CHECK(passes_until_hopeless(shortage, patience / 4, 1) == patience);
}

TEST_CASE("BufferShortage: a time without waiting begins anew") {
  BufferShortage shortage(32);
  for (std::uint64_t pass = 0; pass < 10 * patience; ++pass) {
    if (pass % patience != 0) CHECK_FALSE(shortage.note_wait());
    shortage.note_pass();
  }
  // Buffers are taken all the time, and a burst finds none: not hopeless at once.
  for (std::uint64_t pass = 0; pass < 10 * patience; ++pass) shortage.note_pass();
  CHECK(passes_until_hopeless(shortage) == patience);
}

TEST_CASE("BufferShortage: a refused attempt is repeated seldom") {
  BufferShortage shortage(32);
  CHECK(passes_until_hopeless(shortage) == patience);
  shortage.note_attempt(false);
  CHECK(passes_until_hopeless(shortage) == BufferShortage::refused_passes);
  shortage.note_attempt(true);
  CHECK(passes_until_hopeless(shortage) == patience);
}
