// The parts that components of a process share.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"

namespace overlap {

const Process* process = nullptr;
std::atomic<int> own_windows{0};  // a hint; orders nothing

namespace {

std::vector<RegisterReceiver>& receivers() {
  static std::vector<RegisterReceiver> all;
  return all;
}

}  // namespace

void add_receiver(RegisterReceiver registers) { receivers().push_back(registers); }

void remove_receiver(RegisterReceiver registers) noexcept { std::erase(receivers(), registers); }

int register_added_receivers() {
  for (const RegisterReceiver registers : receivers()) {
    if (const int rc = registers(); rc != OMPI_SUCCESS) return rc;
  }
  return OMPI_SUCCESS;
}

}  // namespace overlap
