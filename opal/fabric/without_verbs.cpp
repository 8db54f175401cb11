// In place of verbs/ where libibverbs or librdmacm was missing at build time.
#include "fabric.hpp"

namespace overlap::fabric {
namespace {

constexpr const char* not_built =
    "verbs was not built in: libibverbs or librdmacm was missing (Debian: libibverbs-dev "
    "librdmacm-dev)";

}  // namespace

bool have_verbs() noexcept { return false; }

bool find_verbs(const VerbsOptions&, std::string& why) noexcept {
  try {
    why = not_built;
  } catch (...) {}
  return false;
}

std::unique_ptr<Device> open_verbs(const VerbsOptions&) {
  throw Error(Error::Kind::no_device, not_built);
}

}  // namespace overlap::fabric
