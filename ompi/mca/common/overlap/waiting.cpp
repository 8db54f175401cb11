// Naps of calls that wait.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/waiting.hpp"

namespace overlap {

Naps& own_naps() noexcept {
  thread_local Naps naps;
  return naps;
}

}  // namespace overlap
