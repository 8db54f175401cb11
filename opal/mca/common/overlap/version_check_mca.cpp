// Comparison with the Open MPI that is running; needs Open MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/version_check.hpp"

#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/openmpi.hpp"

namespace overlap {

const char* running_version() noexcept { return opal_version_string; }

bool check_running_openmpi(const char* component_name, std::span<const SizeRow> rows) noexcept try {
  std::string fault = version_fault(OVERLAP_OPENMPI_VERSION, running_version());
  if (fault.empty()) fault = size_fault(rows);
  if (fault.empty()) return true;
  show_message(std::string(component_name) + " is not used. " + fault +
               " Configure and build it again with --with-openmpi=DIR naming the Open MPI that "
               "runs your programs, or remove"
               " it from that installation.");
  return false;
} catch (...) {
  return false;
}

}  // namespace overlap
