// Objects of a library that exit() leaves alone.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace overlap {

/// Open MPI loads the components in MPI_Init, so exit() destroys their objects in front of those
/// that the program has made before, whose destructors, or handlers of atexit(), may call MPI; and
/// other threads may be in MPI meanwhile. What holds more than a little memory is emptied when its
/// component is closed, as the library may go then.
template <class T>
[[nodiscard]] T& never_destroyed() {
  return *new T();
}

}  // namespace overlap
