// The transport as a whole, and its peers.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"

#include <sys/random.h>

#include <cstdlib>

namespace overlap::ring {
namespace {

extern "C" OVERLAP_EXPORT mca_btl_base_component_t mca_btl_ring_component;

/// What a process tells all others at the start.
struct Published {
  std::uint16_t version = layout_version;
  std::uint16_t reserved = 0;
  std::uint32_t address_bytes = 0;
  Network network;
  Secret secret{};
};
static_assert(sizeof(Published) == 40);

Secret make_secret() {
  Secret secret;
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw std::runtime_error("btl/ring gets no random numbers from the system");
  return secret;
}

constexpr std::uint32_t round_to_lines(std::uint32_t bytes) noexcept {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

SetPolicy policy() noexcept {
  return tunables.polling_policy == polling_policy_choice::traffic ? SetPolicy::traffic
                                                                   : SetPolicy::first;
}

PollOrder order() noexcept {
  switch (tunables.polling_order) {
    case polling_order_choice::sequential: return PollOrder::sequential;
    case polling_order_choice::circular: return PollOrder::circular;
    case polling_order_choice::recent: return PollOrder::recent;
  }
  return PollOrder::sequential;
}

}  // namespace

Transport::Transport(std::unique_ptr<fabric::Device> device, const Network& network)
    : device_(std::move(device)),
      network_(network),
      secret_(make_secret()),
      slot_bytes_(round_to_lines(tunables.slot_bytes)),
      channel_bytes_(round_to_lines(tunables.channel_bytes)),
      send_memory_(nullptr, [](std::byte*) {}),
      receive_pool_(tunables.receive_buffers, receive_buffers_max()),
      scratch_(nullptr, [](std::byte*) {}),
      fragments_(slot_payload_bytes(), channel_payload_bytes()),
      polling_(tunables.polling_set, policy(), order(), tunables.polling_review) {
  if (!capabilities().receive_not_ready) {
    throw std::runtime_error(capabilities().name +
                             " is iWARP, which breaks a connection when a message finds no receive "
                             "buffer; choose an InfiniBand or RoCE port (btl_ring_device)");
  }
  if (!capabilities().fork_safe && tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: memory was registered before this component was opened: a process that "
                "forks may read old bytes where it receives (set RDMAV_FORK_SAFE=1)");
  }
  remove_stale_segments();
  segment_ = std::make_unique<Segment>(SegmentShape{tunables.polling_set + 1, tunables.ring_slots,
                                                    slot_bytes_, tunables.receive_buffers,
                                                    channel_bytes_, receive_buffers_max()});
  remove_at_end(segment_->path());
  receives_ = device_->make_receive_queue(receive_buffers_max());
  registrations_ = std::make_unique<RegistrationCache>(*device_);
  frequent_ = std::make_unique<FrequentBuffers>(*device_, *registrations_);
}

Transport::~Transport() {
  finalizing_ = true;
  drop(std::vector(peers_.all().begin(), peers_.all().end()));
  registrations_.reset();
  for (ReceiveChunk& chunk : receive_chunks_) device_->deregister_memory(chunk.region);
  device_->deregister_memory(send_region_);
  device_->deregister_memory(scratch_region_);
  receives_.reset();
  completions_.clear();
}

std::vector<std::byte> Transport::address_bytes() const {
  const fabric::Address address = device_->address();
  Published published;
  published.network = network_;
  published.secret = secret_;
  published.address_bytes = address.size_bytes;
  std::vector<std::byte> bytes(sizeof published + address.size_bytes);
  std::memcpy(bytes.data(), &published, sizeof published);
  std::memcpy(bytes.data() + sizeof published, address.bytes.data(), address.size_bytes);
  return bytes;
}

/// What a process has told all others, with the bytes of its address.
/// @returns  nullopt when it does not run this BTL, or with another fabric
std::optional<PeerAddress> Transport::find_address(opal_proc_t& proc) const {
  const std::vector<std::byte> bytes =
      lookup_published(&mca_btl_ring_component.btl_version, proc.proc_name);
  Published published;
  if (bytes.size() < sizeof published) return std::nullopt;
  std::memcpy(&published, bytes.data(), sizeof published);
  if (published.version != layout_version || published.network != network_ ||
      bytes.size() != sizeof published + published.address_bytes ||
      published.address_bytes > fabric::address_max_bytes) {
    return std::nullopt;
  }
  PeerAddress found;
  found.secret = published.secret;
  found.address.size_bytes = published.address_bytes;
  std::memcpy(found.address.bytes.data(), bytes.data() + sizeof published, published.address_bytes);
  if (!device_->may_reach(found.address)) return std::nullopt;
  return found;
}

/// @returns  nullptr when the process cannot be reached
Handle* Transport::handle(opal_proc_t& proc) {
  if (Handle* known = peers_.find(&proc); known != nullptr) return known;
  if (!find_address(proc)) return nullptr;
  return &peers_.add(std::make_unique<Handle>(proc, peers_.next_number()));
}

Endpoint& Transport::make_endpoint(Handle& handle) {
  const auto found = find_address(*handle.key());
  if (!found) throw std::runtime_error("btl/ring: the address of a peer is not known any more");
  auto made =
      std::make_unique<Endpoint>(handle, *handle.key(), handle.number(), tunables.send_queue);
  made->where = *found;
  return handle.set_endpoint(std::move(made));
}

/// Give everything back that a peer has, except its number.
void Transport::release_endpoint(Endpoint& endpoint) noexcept {
  endpoint.lost = endpoint.reported = true;  // callbacks that send find no way
  if (endpoint.in != nullptr) close_incoming(endpoint);
  end_outgoing(endpoint);
  fail_bulk(endpoint);
  for (Fragment* fragment : std::exchange(endpoint.waiting, {})) finish(*fragment, OPAL_ERROR);
  for (const HeldMessage& message : std::exchange(endpoint.held, {})) repost(message.buffer);
  for (Connection* connection : {&endpoint.messages, &endpoint.bulk}) {
    drop_queue_pairs(*connection);
    std::erase(backing_off_, connection);
    if (connection->under_way()) --connecting_;
    if (connection->established()) receive_pool_.disconnected();
    connection->state = ConnectState::failed;
  }
  forget_retired(endpoint, true);
}

void Transport::drop(std::span<Handle* const> peers) noexcept {
  const int rc = guarded([&]() -> int {
    std::vector<Endpoint*> used;
    for (const Handle* peer : peers) {
      if (peer != nullptr && peer->endpoint() != nullptr) used.push_back(peer->endpoint());
    }
    part(used);
    for (Endpoint* endpoint : used) release_endpoint(*endpoint);
    // What was posted to them has been reported with the end of their queue pairs: the owners are
    // told while the endpoints are there.
    while (poll_completions() > 0 || serve_done() > 0) {}
    for (Endpoint* endpoint : used) busy_.remove(endpoint);
    return OPAL_SUCCESS;
  });
  if (rc != OPAL_SUCCESS) return;  // no memory: they stay, unused
  for (Handle* peer : peers) {
    if (peer == nullptr) continue;
    guarded([&]() -> int {
      departed_.insert(name_of(*peer->key()));
      return OPAL_SUCCESS;
    });
    peers_.erase(*peer);
  }
}

void Transport::count_memory(std::int64_t bytes) noexcept {
  memory_bytes_ += bytes;
  counters().memory_max_bytes =
      std::max(counters().memory_max_bytes, static_cast<std::uint64_t>(memory_bytes_));
}

}  // namespace overlap::ring
