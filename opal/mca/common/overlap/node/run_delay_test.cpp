// The kernel's account of who waits for a processor.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/run_delay.hpp"
#include "test/support/catch.hpp"

#include <climits>
#include <unistd.h>

using namespace overlap::node;

TEST_CASE("run delay: the second of three numbers") {
  CHECK(run_delay_in("1520 77 3\n") == 77);
  CHECK(run_delay_in("0 0 1") == 0);
  CHECK(run_delay_in("1 18446744073709551615 2") == UINT64_MAX);
  for (const char* other : {"", "1", "1 ", "1 2", "1 x 2", "1 -2 3", "1 99999999999999999999 2"})
    CHECK_FALSE(run_delay_in(other));
}

TEST_CASE("run delay: of a thread of this process, and of no other") {
  RunDelay none;
  CHECK_FALSE(none.ns());
  CHECK_FALSE(none.open(INT_MAX));
  RunDelay own;
  if (!own.open(gettid())) {
    WARN("the kernel keeps no account: nothing is tested");
    return;
  }
  const auto first = own.ns();
  for (int i = 0; i < 100; ++i) usleep(1);
  REQUIRE((first && own.ns()));
  CHECK(*own.ns() >= *first);
}
