// Messages of communicators that are here, gone, or to come.
// SPDX-License-Identifier: BSD-3-Clause
#include "sender_identity.hpp"

#include "message_head.hpp"

#include "test/support/catch.hpp"

namespace overlap::coll_mq {
namespace {

TEST_CASE("senders: the first message shows the birth, others must agree") {
  using enum Senders::Verdict;
  Senders senders;
  CHECK(senders.judge(3, {100, 7}) == unknown);
  senders.add(3, {100, 7});
  CHECK(senders.judge(1, {101, 2}) == unknown);
  senders.add(1, {101, 2});
  CHECK(senders.judge(3, {100, 7}) == same);
  CHECK(senders.judge(3, {100, 6}) == other);
  CHECK(senders.judge(3, {100, 8}) == other);
  CHECK(senders.judge(3, {102, 7}) == other);
  CHECK(senders.judge(1, {101, 2}) == same);
  CHECK(senders.judge(2, {100, 7}) == unknown);
  CHECK(senders.all().size() == 2);
}

TEST_CASE("answers: for the communicator that has asked, whatever its number") {
  Senders senders;
  senders.add(3, {100, 7});
  senders.add(1, {101, 2});
  CHECK(senders.birth_of(3) == Birth{100, 7});
  CHECK(senders.birth_of(1) == Birth{101, 2});
  MessageHead head;
  head.set({MessageKind::ask, 0, Sequence{5}, Sequence{4}});
  CHECK_FALSE(head.is_answer());
  CHECK_FALSE(head.answers(0));
  head.set({MessageKind::tell, 0, Sequence{5}, Sequence{4}});
  head.set_answered(senders.birth_of(3).count);
  CHECK(head.is_answer());
  CHECK(head.answers(7));
  CHECK_FALSE(head.answers(8));  // of the next communicator
}

TEST_CASE("buried: what comes late for a number that is used again") {
  Buried buried;
  Senders first;
  first.add(0, {100, 7});
  first.add(5, {105, 1});
  CHECK_FALSE(buried.holds(4, {100, 7}));
  buried.bury(4, first);
  CHECK(buried.holds(4, {100, 7}));
  CHECK(buried.holds(4, {100, 6}));
  CHECK_FALSE(buried.holds(4, {100, 8}));  // the next one's
  CHECK_FALSE(buried.holds(5, {100, 7}));
  CHECK_FALSE(buried.holds(4, {104, 1}));  // another process at the same rank

  Senders second;
  second.add(0, {100, 9});
  buried.bury(4, second);
  CHECK(buried.holds(4, {100, 8}));
  CHECK(buried.holds(4, {105, 1}));
  CHECK_FALSE(buried.holds(4, {100, 10}));
}

TEST_CASE("buried: counts wrap") {
  Buried buried;
  Senders senders;
  senders.add(0, {100, 0xffffffffU});
  buried.bury(1, senders);
  CHECK(buried.holds(1, {100, 0xfffffff0U}));
  CHECK_FALSE(buried.holds(1, {100, 0}));
}

}  // namespace
}  // namespace overlap::coll_mq
