// Who uses the device: clients and their queues, from their making to their removal.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "objects.hpp"

namespace overlap::fabric::soft {

/// Owner of all clients, completion queues, receive queues, queue pairs and management queues.
/// Removing one only frees it: what it means for peers is the engine's affair
/// (Engine::remove_client, remove_pair).
class Directory {
 public:
  explicit Directory(Wire& wire) noexcept : wire_(wire) {}

  [[nodiscard]] Client& add_client(std::uint32_t node, const WireSettings& settings, void* host,
                                   const RetrySettings& retry = {});
  /// Also frees its completion and receive queues. Precondition: it has no queue pairs
  void remove_client(Client& client);
  [[nodiscard]] Client* find_client(std::uint32_t id) noexcept;

  [[nodiscard]] Completions& add_completions(Client& client, void* host);
  void remove_completions(Completions& completions) { completions_.erase(&completions); }
  [[nodiscard]] Receives& add_receives(Client& client, void* host);
  void remove_receives(Receives& receives) { receives_.erase(&receives); }

  [[nodiscard]] Pair& add_pair(Client& client, Completions& completions, Receives* receives,
                               void* host);
  void remove_pair(Pair& pair) { pairs_.erase(pair.number); }
  [[nodiscard]] Manager& add_manager(Client& client, void* host);
  void remove_manager(Manager& manager) { managers_.erase(&manager); }
  [[nodiscard]] std::vector<Manager*> managers_of(const Client& client);
  [[nodiscard]] Pair* find_pair(std::uint32_t number) noexcept;
  [[nodiscard]] std::vector<Pair*> pairs_of(const Client& client);
  template <class Visit>
  void each_pair(Visit&& visit) {
    for (auto& [number, pair] : pairs_) visit(*pair);
  }

  /// @returns  the lowest of all clients' latencies, `never` without clients
  [[nodiscard]] Time latency_min_ns() const noexcept { return latency_min_ns_; }

 private:
  void fit_node(Node& node);

  Wire& wire_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Client>> clients_;
  std::unordered_map<Completions*, std::unique_ptr<Completions>> completions_;
  std::unordered_map<Receives*, std::unique_ptr<Receives>> receives_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Pair>> pairs_;
  std::unordered_map<Manager*, std::unique_ptr<Manager>> managers_;
  std::uint32_t next_client_ = 1;
  std::uint32_t next_pair_ = 1;
  Time latency_min_ns_ = never;
};

}  // namespace overlap::fabric::soft
