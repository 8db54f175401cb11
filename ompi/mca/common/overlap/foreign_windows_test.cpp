// Windows that are announced, chosen and freed, as the framework goes about it.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/foreign_windows.hpp"

#include "ompi/mca/common/overlap/sim/osc_components.hpp"
#include "test/support/catch.hpp"

using overlap::ForeignWindows;
using overlap::sim::Components;
using overlap::sim::make_window;

TEST_CASE("Foreign windows: one counts from before its component is chosen until it has gone") {
  const Components components;
  ompi_win_t* window = make_window();
  ompi_win_t* other = make_window();
  CHECK_FALSE(ForeignWindows::any());
  CHECK(Components::ask(window) < 0);  // the listener takes none
  CHECK(ForeignWindows::any());
  CHECK(Components::ask(window) < 0);  // osc/monitoring asks once more
  CHECK(Components::ask(other) < 0);
  OBJ_RELEASE(window);
  CHECK(ForeignWindows::any());
  OBJ_RELEASE(other);
  CHECK_FALSE(ForeignWindows::any());
}

TEST_CASE("Foreign windows: our own counts while it may be anybody's") {
  const Components components;
  ompi_win_t* window = make_window();
  static_cast<void>(Components::ask(window));
  CHECK(ForeignWindows::any());
  overlap::claim_window(*window);
  CHECK_FALSE(ForeignWindows::any());
  OBJ_RELEASE(window);
  CHECK_FALSE(ForeignWindows::any());
}

TEST_CASE("Foreign windows: MPI_Finalize ends the framework before or after the listener") {
  { const Components components; }
  const Components components;
  overlap::listen_for_windows();  // once is enough
  CHECK(opal_list_get_size(&Components::all()) == 1);
  Components::end();
  CHECK(opal_list_is_empty(&Components::all()));
  overlap::listen_for_windows();  // an MPI session after the last one
  CHECK(opal_list_get_size(&Components::all()) == 1);
}
