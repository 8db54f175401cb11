// All peers: who can be reached, and where.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "protocol/introduction.hpp"
#include "protocol/peer_table.hpp"
#include "protocol/used_peers.hpp"

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
/// @thread  Guard held; introduce() any
///
/// Ownership
///   known_, departed_  known_mutex_
///   used_              Guard
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

  /// A process that Open MPI has come to know, or asks for again (MPI_Comm_connect). Enters nothing
  /// but known_mutex_: the BML holds its own lock meanwhile, which others take under the progress
  /// lock. @returns  nullptr when it cannot be reached. @thread  any
  [[nodiscard]] Handle* introduce(opal_proc_t& proc);
  /// The same; who was given up stays so.
  [[nodiscard]] Handle* handle(opal_proc_t& proc);
  [[nodiscard]] Endpoint& endpoint(Handle& handle) {
    return handle.endpoint() != nullptr ? *handle.endpoint() : make_endpoint(handle);
  }
  /// The endpoint of a process that asks for a connection. @returns  nullptr: not with that one
  [[nodiscard]] Endpoint* endpoint_of(const opal_process_name_t& name);
  /// The same, of processes with an endpoint alone, without this one. Asks nobody.
  [[nodiscard]] Endpoint* find_known(const opal_process_name_t& name) const noexcept;
  /// @param number  of a peer that is there and was used
  [[nodiscard]] Endpoint& at(std::uint32_t number) const noexcept { return *used_.at(number); }
  /// @returns  nullptr where there is none (any more)
  [[nodiscard]] Endpoint* find(std::uint32_t number) const noexcept { return used_.at(number); }
  /// Those that were used.
  [[nodiscard]] std::vector<Handle*> used() const;

  /// Give a peer up: no connection is made to it any more.
  void erase(Handle& handle) noexcept;

 private:
  [[nodiscard]] static std::uint64_t name_of(const opal_proc_t& proc) noexcept {
    return number_from(proc.proc_name);
  }
  [[nodiscard]] std::optional<PeerAddress> find_address(opal_proc_t& proc) const;
  [[nodiscard]] Endpoint& make_endpoint(Handle& handle);

  fabric::Device& device_;
  Network network_;
  Secret secret_;
  UsedPeers<Endpoint> used_;
  std::mutex known_mutex_;  ///< nothing is entered below it
  PeerTable<Handle> known_;
  std::unordered_set<std::uint64_t> departed_;  ///< names of processes that were given up
};

}  // namespace overlap::ring
