// All peers: who can be reached, and where.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "protocol/introduction.hpp"
#include "protocol/peer_table.hpp"

#include "btl_ring_endpoint.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {

/// What two processes must have in common to reach each other.
struct Network {
  fabric_choice fabric = fabric_choice::auto_;
  std::uint64_t domain = 0;  ///< soft: of which device process

  friend bool operator==(const Network&, const Network&) = default;
};

/// The peers that Open MPI knows, by process and by number. What is needed to talk to one is made
/// on first use.
///
/// @thread  Guard held
class Peers {
 public:
  /// @param device  outlives it
  /// @throws std::runtime_error  one sentence for users
  Peers(fabric::Device& device, const Network& network);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// What this process tells all others at the start: its address and the secret.
  [[nodiscard]] std::vector<std::byte> address_bytes() const;
  /// Others show it in a request.
  [[nodiscard]] const Secret& secret() const noexcept { return secret_; }

  /// @returns  nullptr when the process cannot be reached
  [[nodiscard]] Handle* handle(opal_proc_t& proc);
  [[nodiscard]] Endpoint& endpoint(Handle& handle) {
    return handle.endpoint() != nullptr ? *handle.endpoint() : make_endpoint(handle);
  }
  /// The endpoint of a process that asks for a connection. @returns  nullptr: not with that one
  [[nodiscard]] Endpoint* endpoint_of(const opal_process_name_t& name);
  /// The same, of processes with an endpoint alone, without this one. Asks nobody.
  [[nodiscard]] Endpoint* find_known(const opal_process_name_t& name) const noexcept;
  /// @param number  of a peer that is there and was used
  [[nodiscard]] Endpoint& at(std::uint32_t number) const noexcept {
    return *table_.at(number)->endpoint();
  }
  /// @returns  nullptr where there is none (any more)
  [[nodiscard]] Endpoint* find(std::uint32_t number) const noexcept {
    const Handle* handle = table_.at(number);
    return handle != nullptr ? handle->endpoint() : nullptr;
  }
  /// In no order; a change ends it.
  [[nodiscard]] std::span<Handle* const> all() const noexcept { return table_.all(); }

  /// Give a peer up: no connection is made to it any more.
  void erase(Handle& handle) noexcept;
  /// A process that was given up may be asked for again (MPI_Comm_connect).
  void welcome(const opal_proc_t& proc) noexcept { departed_.erase(name_of(proc)); }

 private:
  [[nodiscard]] static std::uint64_t name_of(const opal_proc_t& proc) noexcept {
    return number_from(proc.proc_name);
  }
  [[nodiscard]] std::optional<PeerAddress> find_address(opal_proc_t& proc) const;
  [[nodiscard]] Endpoint& make_endpoint(Handle& handle);

  fabric::Device& device_;
  Network network_;
  Secret secret_;
  PeerTable<Handle> table_;
  std::unordered_set<std::uint64_t> departed_;  ///< names of processes that were given up
};

}  // namespace overlap::ring
