// The parts that components of a process share.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"

namespace overlap {

const Process* process = nullptr;
std::atomic<int> own_windows{0};  // a hint; orders nothing

}  // namespace overlap
