// In place of verbs/ where libibverbs or librdmacm was missing at build time.
// SPDX-License-Identifier: BSD-3-Clause
#include "fabric.hpp"

namespace overlap::fabric {
namespace {

constexpr const char* not_built =
    "verbs was not built in: libibverbs or librdmacm was missing (Debian: libibverbs-dev "
    "librdmacm-dev)";

}  // namespace

bool have_verbs() noexcept { return false; }

std::unique_ptr<Device> try_open_verbs(const VerbsOptions&, std::string& why) {
  why = not_built;
  return nullptr;
}

std::unique_ptr<Device> open_verbs(const VerbsOptions&) {
  throw Error(Error::Kind::no_device, not_built);
}

}  // namespace overlap::fabric
