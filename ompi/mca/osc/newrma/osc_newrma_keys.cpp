// Memory registered for the accesses of others.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_keys.hpp"

namespace overlap::newrma {

std::span<const std::byte> ExposedMemory::key_for(Endpoint& endpoint, const WindowMemory& memory) {
  constexpr std::size_t key_max_bytes = 128;
  constexpr std::uint32_t access =
      MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_READ | MCA_BTL_REG_FLAG_REMOTE_WRITE;
  const Rail* const rail = transfer_rail(endpoint);
  if (rail == nullptr || memory.flavor() == Flavor::dynamic || memory.own_bytes() == 0) return {};
  const auto [found, is_new] = registrations_.try_emplace(&rail->btl());
  const std::uint32_t lasting = rail->capability != nullptr ? rail->capability->lasting_flag : 0;
  if (is_new && !found->second.expose(endpoint, memory.own(), memory.own_bytes(), access | lasting,
                                      key_max_bytes))
    return {};
  return found->second.key();
}

}  // namespace overlap::newrma
