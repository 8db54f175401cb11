// Making, finding and freeing of clients and queues.
// SPDX-License-Identifier: BSD-3-Clause
#include "directory.hpp"

#include <algorithm>

namespace overlap::fabric::soft {

Client& Directory::add_client(std::uint32_t node, const WireSettings& settings, void* host,
                              const RetrySettings& retry) {
  auto client = std::make_unique<Client>();
  client->id = next_client_++;
  client->node_number = node;
  client->node = &wire_.node(node);
  client->wire = settings;
  client->retry = retry;
  client->host = host;
  Client& added = *client;
  clients_.emplace(added.id, std::move(client));
  fit_node(*added.node);
  return added;
}

void Directory::remove_client(Client& client) {
  std::erase_if(completions_, [&](const auto& entry) { return entry.second->client == &client; });
  std::erase_if(receives_, [&](const auto& entry) { return entry.second->client == &client; });
  Node& node = *client.node;
  clients_.erase(client.id);
  fit_node(node);
}

Client* Directory::find_client(std::uint32_t id) noexcept {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second.get();
}

Completions& Directory::add_completions(Client& client, void* host) {
  auto made = std::make_unique<Completions>();
  made->client = &client;
  made->host = host;
  Completions& completions = *made;
  completions_.emplace(&completions, std::move(made));
  return completions;
}

Receives& Directory::add_receives(Client& client, void* host) {
  auto made = std::make_unique<Receives>();
  made->client = &client;
  made->host = host;
  Receives& receives = *made;
  receives_.emplace(&receives, std::move(made));
  return receives;
}

Pair& Directory::add_pair(Client& client, Completions& completions, Receives* receives,
                          void* host) {
  auto made = std::make_unique<Pair>(next_pair_++);
  made->client = &client;
  made->completions = &completions;
  made->receive_completions = &completions;
  made->receives = receives;
  made->host = host;
  Pair& pair = *made;
  pairs_.emplace(pair.number, std::move(made));
  return pair;
}

Pair* Directory::find_pair(std::uint32_t number) noexcept {
  const auto found = pairs_.find(number);
  return found == pairs_.end() ? nullptr : found->second.get();
}

std::vector<Pair*> Directory::pairs_of(const Client& client) {
  std::vector<Pair*> own;
  for (auto& [number, pair] : pairs_) {
    if (pair->client == &client) own.push_back(pair.get());
  }
  return own;
}

Manager& Directory::add_manager(Client& client, void* host) {
  auto made = std::make_unique<Manager>();
  made->client = &client;
  made->host = host;
  Manager& manager = *made;
  managers_.emplace(&manager, std::move(made));
  return manager;
}

std::vector<Manager*> Directory::managers_of(const Client& client) {
  std::vector<Manager*> own;
  for (auto& [key, manager] : managers_) {
    if (manager->client == &client) own.push_back(manager.get());
  }
  return own;
}

/// A node's link is as fast as its fastest client's.
void Directory::fit_node(Node& node) {
  latency_min_ns_ = never;
  node.bytes_per_ns = 0;
  for (auto& [id, client] : clients_) {
    latency_min_ns_ = std::min(latency_min_ns_, client->wire.latency_ns);
    if (client->node == &node)
      node.bytes_per_ns = std::max(node.bytes_per_ns, client->wire.bytes_per_ns);
  }
}

}  // namespace overlap::fabric::soft
