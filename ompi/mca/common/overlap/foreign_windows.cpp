// Windows of other components than osc/newrma.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/foreign_windows.hpp"

#include "ompi/mca/common/overlap/process.hpp"

namespace overlap {

std::atomic<int> ForeignWindows::count_{0};

/// Alone changes how many there are.
class WindowListener {
 public:
  /// @param by  1 or -1
  static void count(int by) noexcept {
    if (process == nullptr) {  // no PML of ours: a unit test
      ForeignWindows::count_ += by;
      return;
    }
    // With the first one the interrupt thread cannot wake others any more, which calls have left to
    // it. With the end of the last one it may go on, and nobody else will tell it.
    const LeavingEntry entry(process->interrupts);
    ForeignWindows::count_ += by;
    // osc/rdma has processes added to BTLs, and the BML gives opal_progress their functions again.
    process->driver.adopt_btls();
  }
};

namespace {

/// Components hear of the end of their own windows alone; but a window is an object, whose class
/// says what runs at its end, or when its making fails.
opal_class_t& announced_class() noexcept {
  static opal_class_t announced = [] {
    opal_class_t made{};
    made.cls_name = "window of another component";
    made.cls_parent = OBJ_CLASS(ompi_win_t);
    made.cls_destruct = [](opal_object_t*) { WindowListener::count(-1); };
    made.cls_sizeof = sizeof(ompi_win_t);
    return made;
  }();
  opal_class_initialize(&announced);
  return announced;
}

opal_class_t*& class_of(ompi_win_t& win) noexcept { return win.super.s_base.obj_class; }

int hear_of(ompi_win_t* win, void**, std::size_t, int, ompi_communicator_t*, opal_info_t*,
            int) noexcept {
  // A component that has been chosen may ask all others once more (osc/monitoring).
  if (class_of(*win) != &announced_class()) {
    WindowListener::count(1);
    class_of(*win) = &announced_class();
  }
  return OMPI_ERR_NOT_SUPPORTED;
}

mca_base_component_list_item_t* place = nullptr;  // among the components; MPI_Init and MPI_Finalize

int forget_place() noexcept {  // the framework has taken all out, and frees them
  place = nullptr;
  return OMPI_SUCCESS;
}

ompi_osc_base_component_t listener = {
    .osc_version = {OMPI_OSC_BASE_VERSION_3_0_0, .mca_component_name = "overlap_listener",
                    .mca_component_major_version = OMPI_MAJOR_VERSION,
                    .mca_component_minor_version = OMPI_MINOR_VERSION,
                    .mca_component_release_version = OMPI_RELEASE_VERSION,
                    .mca_open_component = nullptr, .mca_close_component = nullptr,
                    .mca_query_component = nullptr, .mca_register_component_params = nullptr,
                    .mca_component_flags = 0, .reserved = {}},
    .osc_data = {},
    .osc_init = [](bool, bool) noexcept -> int { return OMPI_SUCCESS; },
    .osc_query = hear_of,
    .osc_select = nullptr,
    .osc_finalize = forget_place};

}  // namespace

void listen_for_windows() noexcept {
  if (place != nullptr) return;
  place = OBJ_NEW(mca_base_component_list_item_t);
  if (place == nullptr) end_without_memory();
  place->cli_component = &listener.osc_version;
  // In front: before others have been asked.
  opal_list_prepend(&ompi_osc_base_framework.framework_components, &place->super);
}

void stop_listening_for_windows() noexcept {
  if (place == nullptr) return;
  opal_list_remove_item(&ompi_osc_base_framework.framework_components, &place->super);
  OBJ_RELEASE(place);
  place = nullptr;
}

void claim_window(ompi_win_t& win) noexcept {
  class_of(win) = OBJ_CLASS(ompi_win_t);
  WindowListener::count(-1);
}

}  // namespace overlap
