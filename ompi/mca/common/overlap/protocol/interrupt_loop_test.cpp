// How the interrupt thread sleeps after what it has found.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/interrupt_loop.hpp"

#include "test/support/catch.hpp"

#include <array>
#include <random>

using overlap::InterruptLoop;
using overlap::Look;
using overlap::Sleep;
using Until = overlap::Sleep::Until;

namespace {

constexpr std::array all_looks{Look::refused, Look::unneeded, Look::moved,
                               Look::stalled, Look::blind,    Look::quiet};
constexpr Sleep nap(std::uint32_t ns) { return {Until::time, ns}; }

}  // namespace

TEST_CASE("a message that comes in while the application computes", "[interrupt][P4.3]") {
  InterruptLoop loop;
  CHECK(loop.next(Look::unneeded) == Sleep{Until::rung, 0});
  loop.rung();  // a receive was posted
  CHECK(loop.next(Look::refused) == nap(50'000));
  CHECK(loop.next(Look::quiet) == Sleep{Until::arrival, 0});
  CHECK(loop.next(Look::moved) == Sleep{Until::again, 0});
  CHECK(loop.next(Look::quiet) == Sleep{Until::arrival, 0});
  CHECK(loop.next(Look::moved) == Sleep{Until::again, 0});  // the last piece
  CHECK(loop.next(Look::unneeded) == Sleep{Until::rung, 0});
}

TEST_CASE("naps double while an MPI thread is inside, up to a limit", "[interrupt][P4.5]") {
  InterruptLoop loop;
  std::uint32_t expected = InterruptLoop::nap_min_ns;
  for (int i = 0; i < 20; ++i) {
    CHECK(loop.next(Look::refused) == nap(expected));
    expected = std::min(expected * 2, InterruptLoop::nap_max_ns);
  }
  CHECK(expected == InterruptLoop::nap_max_ns);
}

TEST_CASE("whatever is new makes the next nap short again", "[interrupt][P4.5]") {
  for (const Look look : {Look::unneeded, Look::moved, Look::quiet}) {
    InterruptLoop loop;
    for (int i = 0; i < 5; ++i) CHECK(loop.next(Look::refused).until == Until::time);
    CHECK(loop.next(look).until != Until::time);
    CHECK(loop.next(Look::refused) == nap(InterruptLoop::nap_min_ns));
  }
}

TEST_CASE("a program that waits at once is woken less and less", "[interrupt][P4.5]") {
  InterruptLoop loop;
  std::uint32_t delay_ns = InterruptLoop::nap_min_ns;
  for (int i = 0; i < 10; ++i) {
    CHECK(loop.ring_delay_ns() == delay_ns);
    loop.rung();
    CHECK(loop.next(i % 2 == 0 ? Look::refused : Look::unneeded).until !=
          (i % 2 == 0 ? Until::rung : Until::time));
    delay_ns = std::min(delay_ns * 2, InterruptLoop::nap_max_ns);
  }
  CHECK(loop.ring_delay_ns() == InterruptLoop::nap_max_ns);
  loop.rung();
  CHECK(loop.next(Look::refused) == nap(InterruptLoop::nap_max_ns));  // nor by short naps
}

TEST_CASE("naps are long while others use the processor of the MPI thread", "[interrupt][P4.5]") {
  InterruptLoop loop;
  loop.set_crowd(InterruptLoop::put_off_max_ns);
  for (int i = 0; i < 3; ++i) CHECK(loop.next(Look::refused) == nap(InterruptLoop::put_off_max_ns));
  CHECK(loop.next(Look::blind) == nap(InterruptLoop::nap_max_ns));  // nobody is inside
  loop.set_crowd(0);
  CHECK(loop.next(Look::moved).until == Until::again);
  CHECK(loop.next(Look::refused) == nap(InterruptLoop::nap_min_ns));
}

TEST_CASE("behind a wake that was put off, naps begin anew", "[interrupt][P4.3]") {
  InterruptLoop loop;
  for (int i = 0; i < 10; ++i) static_cast<void>(loop.next(Look::refused));
  CHECK(loop.next(Look::refused) == nap(InterruptLoop::nap_max_ns));
  loop.was_put_off();
  CHECK(loop.next(Look::refused) == nap(InterruptLoop::nap_min_ns));
}

TEST_CASE("a program that computes is served soon, also after long waits", "[interrupt][P4.3]") {
  InterruptLoop loop;
  for (const Look served : {Look::quiet, Look::moved, Look::stalled}) {
    for (int i = 0; i < 3; ++i) {  // it waits at once
      loop.rung();
      CHECK(loop.next(Look::refused).until == Until::time);
    }
    CHECK(loop.ring_delay_ns() > InterruptLoop::nap_min_ns);
    loop.rung();
    CHECK(loop.next(served).until != Until::time);
    CHECK(loop.ring_delay_ns() == InterruptLoop::nap_min_ns);
    for (int i = 0; i < 10; ++i) CHECK(loop.next(Look::refused).until == Until::time);  // MPI_Wait
    CHECK(loop.ring_delay_ns() == InterruptLoop::nap_min_ns);
  }
}

TEST_CASE("what ends without a word is looked for again, and counts as served", "[interrupt]") {
  InterruptLoop loop;
  loop.rung();
  CHECK(loop.next(Look::blind) == nap(InterruptLoop::nap_min_ns));
  CHECK(loop.next(Look::blind) == nap(2 * InterruptLoop::nap_min_ns));
  CHECK(loop.ring_delay_ns() == InterruptLoop::nap_min_ns);
}

TEST_CASE("a delay that has become longer than the computation is found out", "[interrupt][P4.3]") {
  InterruptLoop loop;
  constexpr std::uint32_t computation_ns = 200'000;
  // Every second message is waited for at once; the others are served if the ring comes in time.
  for (int i = 0; i < 10; ++i) {
    loop.rung();
    static_cast<void>(loop.next(Look::refused));
  }
  CHECK(loop.ring_delay_ns() > computation_ns);
  unsigned served = 0;
  for (unsigned i = 0; i < 10 * InterruptLoop::probe_interval; ++i) {
    const bool in_time = i % 2 == 0 && loop.ring_delay_ns() < computation_ns;
    served += in_time ? 1 : 0;
    loop.rung();
    static_cast<void>(loop.next(in_time ? Look::quiet : Look::refused));
  }
  CHECK(served > 3 * InterruptLoop::probe_interval);
}

TEST_CASE("a descriptor that nobody reads does not keep the thread busy", "[interrupt][P4.12]") {
  InterruptLoop loop;
  for (std::uint32_t i = 0; i < InterruptLoop::stalls_max; ++i)
    CHECK(loop.next(Look::stalled) == Sleep{Until::again, 0});
  CHECK(loop.next(Look::stalled) == nap(InterruptLoop::nap_min_ns));
  CHECK(loop.next(Look::stalled) == nap(2 * InterruptLoop::nap_min_ns));
  CHECK(loop.next(Look::moved) == Sleep{Until::again, 0});
  CHECK(loop.next(Look::stalled) == Sleep{Until::again, 0});  // counted anew
}

TEST_CASE("in any order: one kind of sleep per look, naps in their limits", "[interrupt]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    InterruptLoop loop;
    for (int i = 0; i < 500; ++i) {
      if (random() % 8 == 0) loop.rung();
      if (random() % 8 == 0) loop.was_put_off();
      if (random() % 5 == 0) loop.set_crowd(random() % 2 == 0 ? InterruptLoop::put_off_max_ns : 0);
      CHECK(loop.ring_delay_ns() >= InterruptLoop::nap_min_ns);
      CHECK(loop.ring_delay_ns() <= InterruptLoop::nap_max_ns);
      const Look look = all_looks[random() % all_looks.size()];
      const Sleep sleep = loop.next(look);
      INFO("seed " << seed << ", look " << static_cast<int>(look));
      const bool naps = sleep.until == Until::time;
      CHECK(naps == (sleep.nap_ns != 0));
      if (naps) {
        CHECK(sleep.nap_ns >= InterruptLoop::nap_min_ns);
        CHECK(sleep.nap_ns <=
              (look == Look::refused ? InterruptLoop::put_off_max_ns : InterruptLoop::nap_max_ns));
      }
      if (look == Look::refused || look == Look::blind) CHECK(naps);
      if (look == Look::unneeded) CHECK(sleep.until == Until::rung);
      if (look == Look::moved) CHECK(sleep.until == Until::again);
      if (look == Look::quiet) CHECK(sleep.until == Until::arrival);
    }
  }
}
