// What processes offer for a window.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_offer.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "opal/mca/common/overlap/never_destroyed.hpp"

#include "protocol/message.hpp"

extern "C" ompi_osc_base_component_t mca_osc_newrma_component;

namespace overlap::newrma {
namespace {

struct Published {
  std::uint32_t priority = 0;
  std::uint32_t version = wire_version;
};

const mca_base_component_t* component() { return &mca_osc_newrma_component.osc_version; }

/// Asked for once for each process. @returns  nullopt: it has no osc/newrma, or another version
std::optional<std::uint32_t> priority_of(const ompi_proc_t& process) {
  static std::mutex lock;  // protects `known`: two threads may make windows
  static auto& known =
      never_destroyed<std::unordered_map<std::uint64_t, std::optional<std::uint32_t>>>();
  const std::scoped_lock locked(lock);
  opal_process_name_t name = process.super.proc_name;
  const auto [place, is_new] =
      known.try_emplace(std::uint64_t{name.jobid} << 32U | name.vpid, std::nullopt);
  if (!is_new) return place->second;
  const std::vector<std::byte> bytes = lookup_published(component(), name);
  Published published;
  if (bytes.size() == sizeof published) {
    std::memcpy(&published, bytes.data(), sizeof published);
    if (published.version == wire_version) place->second = published.priority;
  }
  return place->second;
}

}  // namespace

int publish_priority(std::uint32_t priority) noexcept {
  const Published published{.priority = priority};
  return publish(component(), std::as_bytes(std::span(&published, 1)));
}

Offer offer_of(ompi_communicator_t& comm, std::uint32_t own_priority) {
  Offer least{.priority = own_priority};
  for (int rank = 0; rank < ompi_comm_size(&comm); ++rank) {
    if (rank == ompi_comm_rank(&comm)) continue;
    const std::optional<std::uint32_t> priority = priority_of(*ompi_comm_peer_lookup(&comm, rank));
    if (!priority) return {.priority = 0, .rank_without = rank};
    least.priority = std::min(least.priority, *priority);
  }
  return least;
}

}  // namespace overlap::newrma
