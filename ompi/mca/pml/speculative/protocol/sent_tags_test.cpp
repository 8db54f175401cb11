// What a sender remembers of its last messages, and what a peer costs before it is asked to.
// SPDX-License-Identifier: BSD-3-Clause
#include "sent_tags.hpp"

#include "communicator.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("Sent tags: counted from the first that is remembered to the last") {
  SentTags tags;
  CHECK(tags.count(5, 10, 10) == 0U);  // nothing was sent since
  CHECK_FALSE(tags.count(5, 9, 10));   // nothing is remembered
  tags.start(10);
  tags.start(3);  // once only
  CHECK_FALSE(tags.count(5, 9, 10));
  std::uint32_t next = 10;
  for (const std::int32_t tag : {5, 6, 5, no_message_tag}) tags.note(next++, tag);
  CHECK(tags.count(5, 10, next) == 2U);
  CHECK(tags.count(5, 11, next) == 1U);
  CHECK(tags.count(6, 10, next) == 1U);
  CHECK_FALSE(tags.count(5, 9, next));
  while (next < 11 + history_messages) tags.note(next++, 7);
  CHECK(tags.count(5, 11, next) == 1U);
  CHECK_FALSE(tags.count(5, 10, next));  // overwritten
}

TEST_CASE("Sent tags: sequence numbers wrap at 2^32") {
  SentTags tags;
  std::uint32_t next = UINT32_MAX - 1;
  tags.start(next);
  for (int i = 0; i < 4; ++i) tags.note(next++, 5);
  CHECK(next == 2);
  CHECK(tags.count(5, UINT32_MAX - 1, next) == 4U);
  CHECK(tags.count(5, 0, next) == 2U);
}
