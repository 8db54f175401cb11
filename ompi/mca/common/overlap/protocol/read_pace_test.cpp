// Who is asked to read, and how soon again.
// SPDX-License-Identifier: BSD-3-Clause
#include "read_pace.hpp"

#include <random>

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

TEST_CASE("ReadPace: who is late now and then is asked ever less often, too") {
  ReadPace pace;
  for (int i = 0; i < 20; ++i) {
    for (int in_time = 0; in_time < 3; ++in_time) read(pace, false);
    read(pace, true);
    static_cast<void>(pushed_before_read(pace));
  }
  read(pace, true);
  CHECK(pushed_before_read(pace) == 1024);
}

TEST_CASE("ReadPace: who is in time again is trusted soon, however late it has been before") {
  ReadPace pace;
  const auto make_late = [&pace] {
    for (int i = 0; i < 10; ++i) {
      read(pace, true);
      static_cast<void>(pushed_before_read(pace));
    }
  };
  const auto pause_behind = [&](int in_time) {
    make_late();
    for (int i = 0; i < in_time; ++i) read(pace, false);
    read(pace, true);
    return pushed_before_read(pace);
  };
  CHECK(pause_behind(128) == 1024);  // 512, and twice that
  CHECK(pause_behind(2 * 128 - 1) == 1024);
  CHECK(pause_behind(2 * 128) == 512);
  CHECK(pause_behind(4 * 128) == 128);
  CHECK(pause_behind(6 * 128) == 8);
}

TEST_CASE("ReadPace: who computes now and then is mostly not waited for") {
  const int every = GENERATE(3, 5, 8);
  const std::uint16_t messages = GENERATE(1, 2, 4);
  ReadPace pace;
  int waited = 0, lates = 0;
  for (int i = 0; i < 100'000; ++i) {
    const bool late = i % every == 0;
    lates += late ? 1 : 0;
    if (!pace.may_read(messages)) continue;
    waited += late ? 1 : 0;
    pace.end(late);
  }
  CAPTURE(every, messages, waited);
  CHECK(waited <= lates / 2);
}

TEST_CASE("ReadPace: who loses its processor now and then is mostly asked") {
  std::mt19937 random{7};  // NOLINT: the same each time
  ReadPace pace;
  for (int i = 0; i < 10; ++i) {
    read(pace, true);
    static_cast<void>(pushed_before_read(pace));
  }
  int asked = 0;
  constexpr int rounds = 100'000;
  for (int i = 0; i < rounds; ++i) {
    if (!pace.may_read()) continue;
    ++asked;
    pace.end(random() % 300 == 0);
  }
  CHECK(asked >= rounds * 8 / 10);
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
