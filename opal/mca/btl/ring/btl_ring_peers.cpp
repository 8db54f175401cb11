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

std::unique_ptr<fabric::Device> checked(std::unique_ptr<fabric::Device> device) {
  const fabric::Capabilities& able = device->capabilities();
  if (!able.receive_not_ready) {
    throw std::runtime_error(able.name +
                             " is iWARP, which breaks a connection when a message finds no receive "
                             "buffer; choose an InfiniBand or RoCE port (btl_ring_device)");
  }
  if (!able.fork_safe && tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: memory was registered before this component was opened: a process that "
                "forks may read old bytes where it receives (set RDMAV_FORK_SAFE=1)");
  }
  return device;
}

/// A completion queue reserves an entry for each, beside those of one queue pair's requests.
std::uint32_t receive_buffers_max(const fabric::Capabilities& able) noexcept {
  const std::uint32_t entries = able.completion_queue_max;
  const std::uint32_t room = entries > tunables.send_queue ? entries - tunables.send_queue : 1;
  return std::min({std::max(tunables.receive_buffers, tunables.receive_buffers_max),
                   std::max(able.receive_queue_max, tunables.receive_buffers), room});
}

std::unique_ptr<Segment> make_segment(const SegmentShape& shape) {
  remove_stale_segments();
  auto segment = std::make_unique<Segment>(shape);
  remove_at_end(segment->path());
  return segment;
}

}  // namespace

Transport::Transport(std::unique_ptr<fabric::Device> device, const Network& network)
    : device_(checked(std::move(device))),
      network_(network),
      secret_(make_secret()),
      slot_bytes_(round_to_lines(tunables.slot_bytes)),
      channel_bytes_(round_to_lines(tunables.channel_bytes)),
      memory_(*device_, counters().memory_max_bytes, refuse_registration),
      segment_(make_segment({.rings = tunables.polling_set + 1,
                             .ring_slots = tunables.ring_slots,
                             .slot_bytes = slot_bytes_,
                             .buffers = tunables.receive_buffers,
                             .buffer_bytes = channel_bytes_,
                             .buffers_max = receive_buffers_max(capabilities())})),
      completions_(*device_, tunables.send_queue, receive_buffers_max(capabilities())),
      receives_(*device_, memory_, *segment_,
                {.first = tunables.receive_buffers,
                 .max = receive_buffers_max(capabilities()),
                 .buffer_bytes = channel_bytes_}),
      send_buffers_(memory_, {.buffers = tunables.send_buffers,
                              .buffer_bytes = channel_bytes_,
                              .rights = 0,
                              .what = "the buffers of the send/receive channel"}),
      scratch_(memory_, {.buffers = 64,
                         .buffer_bytes = 8,
                         .rights = fabric::access::local_write,
                         .what = "the results of atomic operations"}),
      registrations_(*device_),
      frequent_(*device_, registrations_),
      fragments_(slot_payload_bytes(), channel_payload_bytes()),
      polling_(tunables.polling_set, policy(), order(), tunables.polling_review) {}

Transport::~Transport() {
  finalizing_ = true;
  drop(std::vector(peers_.all().begin(), peers_.all().end()));
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
  for (const HeldMessage& message : std::exchange(endpoint.held, {}))
    receives_.repost(message.buffer);
  for (Connection* connection : {&endpoint.messages, &endpoint.bulk}) {
    drop_queue_pairs(*connection);
    std::erase(backing_off_, connection);
    if (connection->under_way()) --connecting_;
    if (connection->established()) receives_.disconnected();
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

}  // namespace overlap::ring
