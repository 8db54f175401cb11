// Objects of a library that exit() leaves alone.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <new>

namespace overlap {

/// Open MPI loads the components in MPI_Init, so exit() destroys their objects in front of those
/// that the program has made before, whose destructors, or handlers of atexit(), may call MPI; and
/// other threads may be in MPI meanwhile. They go with their library. What holds more than a little
/// memory is emptied when its component is closed.
/// @tparam Use  one object for each place that calls this
template <class T, class Use = decltype([] {})>
[[nodiscard]] T& never_destroyed() {
  alignas(T) static std::byte memory[sizeof(T)];
  return *new (memory) T();
}

}  // namespace overlap
