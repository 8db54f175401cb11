// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/foreign_windows.hpp"

#include "test/support/catch.hpp"

using overlap::ForeignWindows;

TEST_CASE("Foreign windows: possible where nobody announces them") {
  ForeignWindows windows;
  CHECK(windows.possible());
  windows.will_be_announced();
  CHECK_FALSE(windows.possible());
}

TEST_CASE("Foreign windows: one counts from before its component is chosen to its end") {
  ForeignWindows windows;
  windows.will_be_announced();
  windows.begin();
  CHECK(windows.possible());  // it may be anybody's
  windows.begin();            // by another thread
  windows.end();
  CHECK(windows.possible());
  windows.end();
  CHECK_FALSE(windows.possible());
}
