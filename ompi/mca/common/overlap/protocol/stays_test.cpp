// What an MPI thread that stays inside MPI is taken for.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/stays.hpp"

#include "test/support/catch.hpp"

using overlap::InterruptLoop;
using overlap::Stays;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t us = 1'000;

/// A thread, its clocks, and what it says.
class Thread {
 public:
  /// Inside MPI, on its processor. @returns  what its last word has answered
  std::uint32_t stay(std::uint64_t ns) {
    std::uint32_t by_ns = 0;
    for (std::uint64_t gone = 0; gone < ns; gone += 20 * us) by_ns = say(20 * us, 20 * us, 16);
    return by_ns;
  }
  /// Inside, while others have the processor for `lost` of every `slice`.
  std::uint32_t stay_preempted(std::uint64_t ns, std::uint64_t slice, std::uint64_t lost) {
    std::uint32_t by_ns = 0;
    for (std::uint64_t gone = 0; gone < ns; gone += slice) {
      by_ns = stay(slice - lost);
      by_ns = say(lost, 0, 16);
    }
    return by_ns;
  }
  void compute(std::uint64_t ns) { advance(ns, ns); }
  void compute_preempted(std::uint64_t ns) { advance(2 * ns, ns); }
  void sleep(std::uint64_t ns) {
    advance(ns, 0);
    ++usage_.sleeps;
  }
  void leave() {
    stays.leave(now_ns_, turns_, [this] { return usage_; });
  }
  /// In a call that waits.
  std::uint32_t nap(std::uint64_t ns) {
    usage_.napped_ns += ns;
    return say(ns + 20 * us, 20 * us, 16);
  }
  /// The same, that the system has not counted.
  void nap_without_sleep() { --usage_.sleeps; }
  void become_another() { usage_ = {.thread = this + 1, .processor_ns = 7, .sleeps = 7}; }
  /// Calls and turns with data, and not so many in a row that it says so.
  void move_data(std::uint64_t ns) {
    advance(ns, ns);
    turns_ += static_cast<std::uint32_t>(ns / (40 * us));
  }
  std::uint32_t say(std::uint64_t wall_ns, std::uint64_t used_ns, std::uint32_t turns) {
    advance(wall_ns, used_ns);
    turns_ += turns;
    return stays.note(now_ns_, turns_, [this] {
      ++questions;
      return usage_;
    });
  }
  [[nodiscard]] std::uint32_t crowd_ns() const { return stays.crowd_ns(now_ns_); }

  Stays stays;
  unsigned questions = 0;

 private:
  void advance(std::uint64_t wall_ns, std::uint64_t used_ns) {
    now_ns_ += wall_ns;
    usage_.processor_ns += used_ns;
  }

  std::uint64_t now_ns_ = 1'000 * ms;
  std::uint32_t turns_ = UINT32_MAX - 100;
  Stays::Usage usage_{.thread = this, .processor_ns = 5 * ms, .sleeps = 3};
};

}  // namespace

TEST_CASE("wakes are put off by as long as a thread has been inside", "[interrupt][P4.5]") {
  Thread thread;
  CHECK(thread.stay(20 * us) == InterruptLoop::nap_min_ns);
  const std::uint32_t by_ns = thread.stay(300 * us);
  CHECK(by_ns >= 280 * us);
  CHECK(by_ns <= 320 * us);
  CHECK(thread.stay(10 * ms) == InterruptLoop::nap_max_ns);
  CHECK(thread.crowd_ns() == 0);
}

TEST_CASE("a computation ends a stay, however it is spent", "[interrupt][P4.3]") {
  for (const std::uint64_t computation : {2200 * us, 4 * ms, 30 * ms}) {
    for (const int how : {0, 1, 2, 3}) {
      Thread thread;
      for (int i = 0; i < 5; ++i) {
        thread.stay(3 * ms);
        if (how == 0) thread.compute(computation);
        if (how == 1) thread.compute_preempted(computation);
        if (how == 2) thread.sleep(computation);
        if (how == 3) thread.become_another();
        const std::uint32_t by_ns = thread.stay(200 * us);
        INFO(computation << " ns, " << how);
        if (how != 3 || i == 0) CHECK(by_ns <= 240 * us);
        CHECK(thread.crowd_ns() == 0);
      }
    }
  }
}

TEST_CASE("a call with new work ends a stay", "[interrupt][P4.3]") {
  Thread thread;
  thread.stay(3 * ms);
  thread.leave();
  CHECK(thread.stay(100 * us) <= 120 * us);
}

TEST_CASE("many calls before a computation do not hide it", "[interrupt][P4.3]") {
  Thread thread;
  for (int i = 0; i < 20; ++i) {
    thread.stay_preempted(8 * ms, 4 * ms, 2 * ms);
    for (int call = 0; call < 100; ++call) {
      thread.move_data(40 * us);
      thread.leave();
    }
    thread.compute_preempted(3 * ms);
    CHECK(thread.stay(60 * us) <= 80 * us);
    CHECK(thread.crowd_ns() == 0);
  }
}

TEST_CASE("who loses the processor to others puts wakes off by more and more",
          "[interrupt][P4.5]") {
  Thread thread;
  thread.stay(1 * ms);
  std::uint32_t before = InterruptLoop::nap_max_ns;
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t by_ns = thread.stay_preempted(24 * ms, 8 * ms, 4 * ms);
    CHECK(by_ns > before);
    CHECK(by_ns == thread.crowd_ns());
    before = by_ns;
  }
  CHECK(thread.stay_preempted(100 * ms, 8 * ms, 4 * ms) == InterruptLoop::put_off_max_ns);
  SECTION("until it computes") {
    thread.compute_preempted(4 * ms);
    CHECK(thread.stay(100 * us) <= 120 * us);
    CHECK(thread.crowd_ns() == 0);
  }
  SECTION("until it has had its processor for some time") {
    CHECK(thread.stay(Stays::remembered_ns + 30 * ms) == InterruptLoop::nap_max_ns);
    CHECK(thread.crowd_ns() == 0);
  }
}

TEST_CASE("much data is no computation, and shows a crowd", "[interrupt][P4.5]") {
  Thread thread;
  thread.stay(1 * ms);
  for (int i = 0; i < 10; ++i) {
    thread.move_data(4 * ms);
    thread.stay(40 * us);
  }
  CHECK(thread.crowd_ns() == 0);
  for (int i = 0; i < 20; ++i) {
    thread.move_data(4 * ms);
    thread.stay_preempted(4 * ms, 4 * ms, 3900 * us);
  }
  CHECK(thread.crowd_ns() == InterruptLoop::put_off_max_ns);
}

TEST_CASE("a call that naps while it waits is inside, on a processor that nobody else needs",
          "[interrupt][P4.5]") {
  Thread thread;
  std::uint32_t by_ns = 0;
  for (int i = 0; i < 1000; ++i) by_ns = thread.nap(100 * us);
  CHECK(by_ns == InterruptLoop::nap_max_ns);
  CHECK(thread.crowd_ns() == 0);
}

TEST_CASE("a nap that ended before it slept is no computation", "[interrupt][P4.5]") {
  Thread thread;
  thread.stay(30 * ms);
  thread.nap_without_sleep();
  CHECK(thread.stay(300 * us) == InterruptLoop::nap_max_ns);
}

TEST_CASE("a lost time slice now and then is no crowd", "[interrupt][P4.5]") {
  Thread thread;
  for (int i = 0; i < 20; ++i) {
    thread.stay(30 * ms);
    thread.say(4 * ms, 0, 16);
  }
  CHECK(thread.crowd_ns() == 0);
}

TEST_CASE("the system is seldom asked", "[interrupt]") {
  Thread thread;
  thread.stay(100 * ms);
  CHECK(thread.questions <= 501);
}
