// Keys are a place in the table and how often it was used.
// SPDX-License-Identifier: BSD-3-Clause
#include "regions.hpp"

namespace overlap::fabric::soft {

std::uint32_t Regions::add(const Region& region) {
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(places_.size());
    places_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  places_[index].region = region;
  return index << generation_bits | places_[index].generation;
}

void Regions::remove(std::uint32_t key) noexcept {
  const std::uint32_t index = key >> generation_bits;
  Place& place = places_[index];
  place.region = Region{};
  if (++place.generation == 0) place.generation = 1;
  try {
    free_.push_back(index);
  } catch (...) {  // the place is lost, nothing else
  }
}

const Region* Regions::own(std::uint32_t key, std::uint32_t client) const noexcept {
  const std::uint32_t index = key >> generation_bits;
  if (index >= places_.size()) return nullptr;
  const Place& place = places_[index];
  if (place.generation != (key & ((1U << generation_bits) - 1)) || place.region.client != client ||
      client == 0)
    return nullptr;
  return &place.region;
}

const Region* Regions::find(std::uint32_t key, std::uint32_t client, std::uint64_t address,
                            std::uint64_t bytes, unsigned rights) const noexcept {
  const Region* region = own(key, client);
  if (region == nullptr || !region->covers(address, bytes) || (region->rights & rights) != rights)
    return nullptr;
  return region;
}

std::vector<std::uint32_t> Regions::keys(std::uint32_t client) const {
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    if (places_[i].region.client == client)
      keys.push_back(i << generation_bits | places_[i].generation);
  }
  return keys;
}

}  // namespace overlap::fabric::soft
