// The parts that components of a process share.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"

namespace overlap {

const Process* process = nullptr;

}  // namespace overlap
