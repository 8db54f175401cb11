// Two processes that exchange messages, in turns and side by side; and who is not paused for.
// SPDX-License-Identifier: BSD-3-Clause
#include "exchange_pace.hpp"

#include <queue>

#include "test/support/catch.hpp"

using namespace overlap;

namespace {

/// What one process does, in ns: a message takes its receiver longer than its sender.
constexpr std::uint64_t latency_ns = 300, send_ns = 200, receive_ns = 500, poll_ns = 20;

/// Rounds of a receive, a send and a wait for the receive. A poll takes messages until there is
/// none, as those of BTLs do.
struct Process {
  bool may_pause;
  std::uint64_t now_ns;
  ExchangePace pace{};
  SendRuns runs{};
  std::queue<std::uint64_t> arrivals_ns{};  ///< of messages that have not been polled
  int ahead = 0;                            ///< messages that no receive has taken
  bool waits = false;
  bool received = false;
  int rounds = 0;
  int found = 0;  ///< receives whose message was there: rounds that waited for nothing
  int pauses = 0;

  void begin_round(Process& other) {
    runs.note_receive();
    received = ahead > 0;
    if (received) {
      --ahead;
      ++found;
      pace.note_ahead([this] { return now_ns; });
    }
    now_ns += send_ns;
    other.arrivals_ns.push(now_ns + latency_ns);
    if (may_pause && pace.pauses_behind_send(runs.note_send(), [this] { return now_ns; })) {
      ++pauses;
      now_ns += ExchangePace::pause_ns(1024);
    }
    waits = !received;
    if (!waits) ++rounds;
  }
  void step(Process& other) {
    if (!waits) {
      begin_round(other);
    } else if (!arrivals_ns.empty() && arrivals_ns.front() <= now_ns) {
      arrivals_ns.pop();
      now_ns += receive_ns;
      if (received) ++ahead;
      received = true;
    } else if (received) {
      waits = false;
      ++rounds;
    } else {
      now_ns += poll_ns;
    }
  }
};

/// Two processes, one of them interrupted once while it waits.
struct Exchange {
  Process one, other;
  bool interrupted = false;

  explicit Exchange(bool may_pause)
      : one{may_pause, 1'000'000'000}, other{may_pause, 1'000'000'000} {}
  void run(int rounds) {
    while (one.rounds < rounds || other.rounds < rounds) {
      if (!interrupted && one.rounds == 10 && one.waits) {
        interrupted = true;
        one.now_ns += 3000;
      }
      one.now_ns <= other.now_ns ? one.step(other) : other.step(one);
    }
  }
  [[nodiscard]] int found() const { return one.found + other.found; }
  [[nodiscard]] int pauses() const { return one.pauses + other.pauses; }
};

/// A process to which messages come ahead of their receives.
struct Late {
  ExchangePace pace{};
  SendRuns runs{};
  std::uint64_t now_ns = 1'000'000'000;

  void receive() { runs.note_receive(); }
  void receive_ahead(std::uint64_t later_ns = 1000) {
    receive();
    now_ns += later_ns;
    pace.note_ahead([this] { return now_ns; });
  }
  /// @returns  whether it pauses
  bool send(std::uint64_t later_ns = 0) {
    now_ns += later_ns;
    return pace.pauses_behind_send(runs.note_send(), [this] { return now_ns; });
  }
  /// @returns  of so many messages, each ahead of its receive and answered, pauses
  int serve(int count, std::uint64_t apart_ns = 1000) {
    int pauses = 0;
    for (int i = 0; i < count; ++i) {
      receive_ahead(apart_ns);
      pauses += send() ? 1 : 0;
    }
    return pauses;
  }
};

}  // namespace

TEST_CASE("ExchangePace: a pause ends turns") {
  constexpr int rounds = 10000;
  Exchange in_turns(false);
  in_turns.run(rounds);
  REQUIRE(in_turns.found() > rounds / 2);
  Exchange paused(true);
  paused.run(rounds);
  CHECK(paused.found() < 20);
  CHECK(paused.pauses() > 0);
  CHECK(paused.pauses() < 20);
  CHECK(paused.one.now_ns < in_turns.one.now_ns);
}

TEST_CASE("ExchangePace: only messages ahead of their receives within 10 us are paused for") {
  Late process;
  SECTION("far apart") { CHECK(process.serve(1000, 10'001) == 0); }
  SECTION("close") { CHECK(process.serve(1000, 10'000) > 0); }
  SECTION("long before the send") {
    process.receive_ahead();
    process.receive_ahead();
    CHECK_FALSE(process.send(10'001));
  }
  SECTION("shortly before the send") {
    process.receive_ahead();
    process.receive_ahead();
    CHECK(process.send(10'000));
  }
}

TEST_CASE("ExchangePace: where pauses do not help there are fewer and fewer") {
  Late process;
  CHECK(process.serve(10000) <= 20);
  CHECK(process.serve(10000) <= 10);
  CHECK(process.serve(10000) >= 9);  // and some, because programs change
}

TEST_CASE("ExchangePace: who sends several messages in a row is not paused for") {
  Late process;
  const int run = GENERATE(2, 3, 4);
  int pauses = 0;
  for (int i = 0; i < 10000; ++i) {
    for (int k = 0; k < run; ++k) process.receive_ahead();
    for (int k = 0; k < run; ++k) pauses += process.send() ? 1 : 0;
  }
  CHECK(pauses > 0);
  CHECK(pauses <= 20);
}

TEST_CASE("ExchangePace: nor who sends to several processes in a row") {
  Late process;
  ExchangePace other;
  int pauses = 0;
  for (int i = 0; i < 10000; ++i) {
    process.receive_ahead();
    process.receive();
    pauses += process.send() ? 1 : 0;
    static_cast<void>(other.pauses_behind_send(process.runs.note_send(), [] { return 0; }));
    process.receive();
  }
  CHECK(pauses <= 20);
}

TEST_CASE("ExchangePace: a pause that helps is made again at the next occasion") {
  Late process;
  process.serve(100);
  bool paused = false;
  for (int i = 0; i < 2000 && !paused; ++i) paused = process.serve(1) > 0;
  REQUIRE(paused);
  process.receive();
  CHECK_FALSE(process.send());  // nothing came ahead: it has helped
  CHECK(process.serve(1) == 1);
}

TEST_CASE("ExchangePace: without messages ahead of their receives there is no pause") {
  Late process;
  for (int i = 0; i < 100; ++i) {
    process.receive();
    CHECK_FALSE(process.send());
  }
  CHECK(process.serve(1) == 0);  // the first one
}

TEST_CASE("ExchangePace: messages of 1000 to 4095 bytes, for a microsecond at most") {
  CHECK_FALSE(ExchangePace::concerns(999));
  CHECK(ExchangePace::concerns(1000));
  CHECK(ExchangePace::concerns(4095));
  CHECK_FALSE(ExchangePace::concerns(4096));
  CHECK(ExchangePace::pause_ns(1000) >= 400);
  CHECK(ExchangePace::pause_ns(4095) <= 1200);
}
