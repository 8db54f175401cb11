// Windows of other components, as far as this one hears of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

namespace overlap::newrma {

/// A window is being made, and its component is not chosen yet: until claim() or the window's end
/// no second thread calls BTLs. @thread  MPI thread, progress lock NOT held
void announce(ompi_win_t& win) noexcept;
/// This component makes it. @thread  MPI thread, progress lock NOT held
void claim(ompi_win_t& win) noexcept;

}  // namespace overlap::newrma
