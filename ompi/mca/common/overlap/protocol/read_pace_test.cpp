// Who is asked to read, and how soon again.
// SPDX-License-Identifier: BSD-3-Clause
#include "read_pace.hpp"

#include "test/support/catch.hpp"

using namespace overlap;

namespace {

/// @returns  how many messages are pushed before the next one may be read
int pushed_before_read(ReadPace& pace) {
  int pushed = 0;
  while (!pace.may_read()) REQUIRE(++pushed <= 10000);
  return pushed;
}

void read(ReadPace& pace, bool late) {
  REQUIRE(pace.may_read());
  pace.end(late);
}

}  // namespace

TEST_CASE("ReadPace: who is late again and again is asked less and less often") {
  ReadPace pace;
  for (int wanted = 8; wanted <= 1024; wanted *= 2) {
    read(pace, true);
    CHECK(pushed_before_read(pace) == wanted);
  }
  read(pace, true);
  CHECK(pushed_before_read(pace) == 1024);
}

TEST_CASE("ReadPace: who is late now and then is trusted again as slowly") {
  ReadPace pace;
  for (int i = 0; i < 20; ++i) {
    for (int in_time = 0; in_time < 3; ++in_time) read(pace, false);
    read(pace, true);
    static_cast<void>(pushed_before_read(pace));
  }
  read(pace, true);
  CHECK(pushed_before_read(pace) == 1024);
  for (int i = 0; i < 1024; ++i) read(pace, false);
  read(pace, true);
  CHECK(pushed_before_read(pace) == 1024);  // 512, and twice that
  for (int i = 0; i < 2048; ++i) read(pace, false);
  read(pace, true);
  CHECK(pushed_before_read(pace) <= 512);
}

TEST_CASE("ReadPace: who is in time is always asked") {
  ReadPace pace;
  for (int i = 0; i < 5000; ++i) read(pace, false);
  read(pace, true);
  CHECK(pushed_before_read(pace) == 8);
}

TEST_CASE("ReadPace: who may not read is not asked for a long time, and needs help") {
  ReadPace pace;
  CHECK_FALSE(pace.has_read());
  read(pace, false);
  CHECK(pace.has_read());
  REQUIRE(pace.may_read());
  pace.refuse();
  CHECK_FALSE(pace.has_read());
  CHECK(pushed_before_read(pace) == 1024);
}
