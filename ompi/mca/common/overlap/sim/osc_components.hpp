// Open MPI's framework of one-sided communication, as far as a listener sees of it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/foreign_windows.hpp"
#include "test/support/catch.hpp"

namespace overlap::sim {

/// The components of the framework, as ompi_osc_base_select() goes through them.
class Components {
 public:
  Components() {
    OBJ_CONSTRUCT(&all(), opal_list_t);
    listen_for_windows();
  }
  ~Components() {
    stop_listening_for_windows();
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
inline ompi_win_t* make_window() {
  ompi_win_t* window = OBJ_NEW(ompi_win_t);
  window->super.s_info = OBJ_NEW(opal_info_t);
  window->error_handler = nullptr;
  return window;
}

}  // namespace overlap::sim
