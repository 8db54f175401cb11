// Envelope table: bounded, forgets what may be forgotten, and nothing else.
// SPDX-License-Identifier: BSD-3-Clause
#include "envelope_table.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("Envelope table: the oldest forgettable envelope makes room (P1.11)") {
  EnvelopeTable<SendEnvelope> table;
  const EnvelopeBound bound{4, true};
  for (int tag = 0; tag < 4; ++tag) REQUIRE(table.get(tag, bound) != nullptr);
  table.find(0)->kept.push_back({});  // may not be forgotten
  REQUIRE(table.get(4, bound) != nullptr);
  CHECK(table.size() == 4);
  CHECK(table.find(0) != nullptr);
  CHECK(table.find(1) == nullptr);
  CHECK(table.find(2) != nullptr);
}

TEST_CASE("Envelope table: full of what must be remembered, it refuses") {
  EnvelopeTable<ReceiveEnvelope> table;
  const EnvelopeBound bound{16, true};
  for (int tag = 0; tag < 16; ++tag) table.get(tag, bound)->revokes_out = 1;
  CHECK(table.get(16, bound) == nullptr);
  CHECK(table.get(3, bound) != nullptr);
  table.find(0)->revokes_out = 0;
  bool found = false;
  for (int tries = 0; tries < 3 && !found; ++tries)
    found = table.get(16, bound) != nullptr;  // it looks at a few at a time
  CHECK(found);
  CHECK(table.size() == 16);
}

TEST_CASE("Envelope table: without leave to forget, a tag that found no room never finds room") {
  EnvelopeTable<SendEnvelope> table;
  const EnvelopeBound bound{2, false};
  REQUIRE(table.get(1, bound) != nullptr);
  REQUIRE(table.get(2, bound) != nullptr);
  for (int i = 0; i < 100; ++i) CHECK(table.get(3, bound) == nullptr);
  CHECK(table.get(1, bound) != nullptr);
}

TEST_CASE("Envelope table: every state that the other side counts on is kept (P1.8)") {
  SendEnvelope send;
  CHECK(send.forgettable());
  send.eager_flag = true;
  CHECK_FALSE(send.forgettable());
  send = {};
  send.awaiting_rtrs = 1;
  CHECK_FALSE(send.forgettable());
  send = {};
  send.hazard_epoch = 1;
  CHECK_FALSE(send.forgettable());
  send = {};
  send.phase = SendEnvelope::Phase::draining;
  CHECK_FALSE(send.forgettable());
  ReceiveEnvelope receive;
  CHECK(receive.forgettable());
  receive.hazard_stopped = true;
  CHECK_FALSE(receive.forgettable());
}
