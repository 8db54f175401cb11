// The lock under which the transport is entered.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <optional>

#include "opal/mca/common/overlap/progress_lock.hpp"

namespace overlap::ring {

/// Entry into the transport by any caller: callbacks of upper layers that send, the progress driver
/// inside the progress lock, and components that know of no lock (osc/rdma, ob1). Where there are
/// threads it is the progress lock, and no second one below it: the transport calls the upper layer
/// back (what a lost peer has sent last, the ends of operations), which takes that lock, and its
/// callers hold it. With one thread it costs one test.
///
/// Order: progress lock, the lock of the BML, the mutex in Peers. So what the BML calls with its
/// own held (add_procs) takes no Guard.
class Guard {
 public:
  Guard() noexcept {
    if (opal_using_threads()) entered_.emplace(progress_lock);
  }

 private:
  std::optional<NestedGuard> entered_;
};

}  // namespace overlap::ring
