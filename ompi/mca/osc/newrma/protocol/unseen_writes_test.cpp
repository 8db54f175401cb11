// Unit tests: writes by messages that the target has or has not confirmed.
// SPDX-License-Identifier: BSD-3-Clause
#include "unseen_writes.hpp"

#include "test/support/catch.hpp"

using overlap::newrma::UnseenWrites;

TEST_CASE("A write is unseen until a question behind it is answered") {
  UnseenWrites writes;
  CHECK_FALSE(writes.any());
  writes.note_write();
  CHECK(writes.any());
  writes.note_question();
  CHECK(writes.any());
  writes.note_answer();
  CHECK_FALSE(writes.any());
}

TEST_CASE("An answer to a question before a write does not confirm it") {
  UnseenWrites writes;
  writes.note_question();
  writes.note_write();
  writes.note_answer();
  CHECK(writes.any());
  writes.note_question();
  writes.note_write();
  writes.note_answer();
  CHECK(writes.any());
  writes.note_question();
  writes.note_answer();
  CHECK_FALSE(writes.any());
}
