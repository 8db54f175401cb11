// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/foreign_windows.hpp"

#include "test/support/catch.hpp"

using overlap::has_foreign_windows;

namespace {

/// The components of the framework, as ompi_osc_base_select() goes through them.
class Components {
 public:
  Components() {
    OBJ_CONSTRUCT(&all(), opal_list_t);
    overlap::listen_for_windows();
  }
  ~Components() {
    overlap::stop_listening_for_windows();
    CHECK(opal_list_is_empty(&all()));
    OBJ_DESTRUCT(&all());
  }
  Components(const Components&) = delete;
  Components& operator=(const Components&) = delete;

  static opal_list_t& all() { return ompi_osc_base_framework.framework_components; }
  /// @returns  what the first one answers
  static int ask(ompi_win_t* window) {
    return first().osc_query(window, nullptr, 0, 1, nullptr, nullptr, MPI_WIN_FLAVOR_CREATE);
  }
  /// As ompi_osc_base_finalize().
  static void end() {
    auto* place = opal_list_remove_first(&all());
    component_at(place).osc_finalize();
    OBJ_RELEASE(place);
  }

 private:
  static const ompi_osc_base_component_t& component_at(opal_list_item_t* place) {
    return *reinterpret_cast<const ompi_osc_base_component_t*>(
        reinterpret_cast<mca_base_component_list_item_t*>(place)->cli_component);
  }
  static const ompi_osc_base_component_t& first() {
    return component_at(opal_list_get_first(&all()));
  }
};

/// As MPI_Win_create makes it; without MPI_Init there is no error handler.
ompi_win_t* make_window() {
  ompi_win_t* window = OBJ_NEW(ompi_win_t);
  window->super.s_info = OBJ_NEW(opal_info_t);
  window->error_handler = nullptr;
  return window;
}

}  // namespace

TEST_CASE("Foreign windows: one counts from before its component is chosen until it has gone") {
  const Components components;
  ompi_win_t* window = make_window();
  ompi_win_t* other = make_window();
  CHECK_FALSE(has_foreign_windows());
  CHECK(Components::ask(window) < 0);  // the listener takes none
  CHECK(has_foreign_windows());
  CHECK(Components::ask(window) < 0);  // osc/monitoring asks once more
  CHECK(Components::ask(other) < 0);
  OBJ_RELEASE(window);
  CHECK(has_foreign_windows());
  OBJ_RELEASE(other);
  CHECK_FALSE(has_foreign_windows());
}

TEST_CASE("Foreign windows: our own counts while it may be anybody's") {
  const Components components;
  ompi_win_t* window = make_window();
  static_cast<void>(Components::ask(window));
  CHECK(has_foreign_windows());
  overlap::claim_window(*window);
  CHECK_FALSE(has_foreign_windows());
  OBJ_RELEASE(window);
  CHECK_FALSE(has_foreign_windows());
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
