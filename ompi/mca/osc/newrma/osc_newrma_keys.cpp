// Memory registered for the accesses of others.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_keys.hpp"

#include <utility>

namespace overlap::newrma {

Rail* transfer_rail(Endpoint& endpoint) noexcept {
  if (endpoint.memory_rails().size() != 1 || endpoint.eager_rails().size() != 1) return nullptr;
  Rail& rail = endpoint.memory_rails().front();
  return &rail.btl() == &endpoint.eager_rails().front().btl() ? &rail : nullptr;
}

std::span<const std::byte> ExposedMemory::expose(Endpoint& endpoint, const WindowMemory& memory) {
  constexpr std::size_t key_max_bytes = 128;
  constexpr std::uint32_t access =
      MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_READ | MCA_BTL_REG_FLAG_REMOTE_WRITE;
  if (std::exchange(told_, true)) return registration_.key();
  if (memory.flavor() == Flavor::dynamic || memory.own_bytes() == 0 ||
      !registration_.expose(endpoint, memory.own(), memory.own_bytes(), access, key_max_bytes))
    return {};
  return registration_.key();
}

}  // namespace overlap::newrma
