// Windows of other components, as far as this one hears of them.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_foreign.hpp"

#include "ompi/mca/common/overlap/foreign_windows.hpp"
#include "ompi/mca/common/overlap/process.hpp"

namespace overlap::newrma {
namespace {

void end_announced() noexcept {
  if (process == nullptr) {  // MPI_Finalize, of what the program has left
    foreign_windows.end();
    return;
  }
  // The interrupt thread may go on, and nobody else will tell it.
  const LeavingEntry entry(process->interrupts);
  foreign_windows.end();
}

/// Open MPI tells components when their own windows end, and nobody when others' do; but a window
/// is an object, whose class says what runs at its end, or when its making fails.
opal_class_t& announced_class() noexcept {
  static opal_class_t announced = [] {
    opal_class_t made{};
    made.cls_name = "window announced to osc/newrma";
    made.cls_parent = OBJ_CLASS(ompi_win_t);
    made.cls_destruct = [](opal_object_t*) { end_announced(); };
    made.cls_sizeof = sizeof(ompi_win_t);
    return made;
  }();
  opal_class_initialize(&announced);
  return announced;
}

opal_class_t*& class_of(ompi_win_t& win) noexcept { return win.super.s_base.obj_class; }

}  // namespace

void announce(ompi_win_t& win) noexcept {
  // A component that has been chosen may ask all others once more (osc/monitoring).
  if (class_of(win) == &announced_class()) return;
  {
    const Entry entry;
    foreign_windows.begin();
  }
  class_of(win) = &announced_class();
}

void claim(ompi_win_t& win) noexcept {
  class_of(win) = OBJ_CLASS(ompi_win_t);
  end_announced();
}

}  // namespace overlap::newrma
