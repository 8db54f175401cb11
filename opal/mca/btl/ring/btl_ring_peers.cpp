// All peers: who can be reached, and where.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_peers.hpp"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "opal/mca/common/overlap/message.hpp"

#include "protocol/packets.hpp"

#include "btl_ring_module.hpp"

namespace overlap::ring {
namespace {

extern "C" OVERLAP_EXPORT mca_btl_base_component_t mca_btl_ring_component;

/// What a process tells all others at the start.
struct Published {
  std::uint16_t version = layout_version;
  std::uint16_t packet_max_bytes = 0;  ///< of the port
  std::uint32_t address_bytes = 0;
  Network network;
  Secret secret{};
  std::uint32_t channel_bytes = ring::channel_bytes();
  std::uint32_t verbs_mtu = tunables.verbs_mtu;
};
static_assert(sizeof(Published) == 48);

Published published_by(const fabric::Device& device) noexcept {
  Published own;
  own.packet_max_bytes = static_cast<std::uint16_t>(device.capabilities().packet_max_bytes);
  return own;
}

/// Each one's messages must fit into the other one's receive buffers, and the packets of a
/// connection have one size.
bool are_alike(const Published& own, const Published& other) noexcept {
  return other.channel_bytes == own.channel_bytes &&
         have_one_size({own.packet_max_bytes, own.verbs_mtu},
                       {other.packet_max_bytes, other.verbs_mtu});
}

/// Once: a parameter file of some nodes mostly concerns many.
void report_unlike(const opal_proc_t& proc, const Published& own, const Published& other) {
  static std::atomic_flag reported;
  if (reported.test_and_set()) return;
  const auto values = [](const Published& of) {
    return "btl_ring_channel_bytes " + std::to_string(of.channel_bytes) +
           " and btl_ring_verbs_mtu " + std::to_string(of.verbs_mtu);
  };
  show_message("btl/ring does not connect to process " +
                   std::string(OPAL_NAME_PRINT(proc.proc_name)) + " on " + hostname(&proc) +
                   ": that one has " + values(other) + ", this one " + values(own) +
                   ". Give all processes of the job the same values.",
               "btl/ring: unlike values");
}

/// For those who ask: another BTL mostly reaches it.
void report_unreachable(const opal_proc_t& proc) {
  static std::atomic_flag reported;
  if (tunables.verbose < 1 || reported.test_and_set()) return;
  opal_output(
      0,
      "btl/ring: no way to process %s on %s: the ports are of different kinds (InfiniBand, "
      "RoCE), on different InfiniBand subnets, or one has an IPv4 address and the other one "
      "only IPv6",
      OPAL_NAME_PRINT(proc.proc_name), hostname(&proc).c_str());
}

Secret make_secret() {
  Secret secret;
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw std::runtime_error("btl/ring gets no random numbers from the system");
  return secret;
}

}  // namespace

Peers::Peers(fabric::Device& device, const Network& network)
    : device_(device), network_(network), secret_(make_secret()) {}

std::vector<std::byte> Peers::address_bytes() const {
  const fabric::Address address = device_.address();
  Published published = published_by(device_);
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
std::optional<PeerAddress> Peers::find_address(opal_proc_t& proc) const {
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
  if (const Published own = published_by(device_); !are_alike(own, published)) {
    report_unlike(proc, own, published);
    return std::nullopt;
  }
  PeerAddress found;
  found.secret = published.secret;
  found.address.size_bytes = published.address_bytes;
  std::memcpy(found.address.bytes.data(), bytes.data() + sizeof published, published.address_bytes);
  if (!device_.may_reach(found.address)) {
    report_unreachable(proc);
    return std::nullopt;
  }
  return found;
}

Handle* Peers::introduce(opal_proc_t& proc) {
  {
    const std::lock_guard lock(known_mutex_);
    departed_.erase(name_of(proc));
  }
  return handle(proc);
}

Handle* Peers::handle(opal_proc_t& proc) {
  {
    const std::lock_guard lock(known_mutex_);
    if (Handle* known = known_.find(&proc); known != nullptr) return known;
  }
  if (!find_address(proc)) return nullptr;
  const std::lock_guard lock(known_mutex_);
  if (Handle* known = known_.find(&proc); known != nullptr)
    return known;  // another thread was here
  return &known_.add(std::make_unique<Handle>(proc, known_.next_number()));
}

Endpoint& Peers::make_endpoint(Handle& handle) {
  const auto found = find_address(*handle.key());
  if (!found) throw std::runtime_error("btl/ring: the address of a peer is not known any more");
  auto made =
      std::make_unique<Endpoint>(handle, *handle.key(), handle.number(), tunables.send_queue);
  made->where = *found;
  used_.add(handle.number(), *made);
  return handle.set_endpoint(std::move(made));
}

Endpoint* Peers::endpoint_of(const opal_process_name_t& name) {
  opal_proc_t* proc = opal_proc_for_name(name);
  if (proc == nullptr) return nullptr;
  {
    const std::lock_guard lock(known_mutex_);
    if (departed_.contains(name_of(*proc))) return nullptr;
  }
  Handle* const peer = handle(*proc);
  return peer != nullptr ? &endpoint(*peer) : nullptr;
}

Endpoint* Peers::find_known(const opal_process_name_t& name) const noexcept {
  const auto& all = used_.by_number();
  const auto found = std::ranges::find_if(all, [&name](const Endpoint* peer) {
    return peer != nullptr && &peer->proc != opal_proc_local_get() &&
           number_from(peer->proc.proc_name) == number_from(name);
  });
  return found == all.end() ? nullptr : *found;
}

std::vector<Handle*> Peers::used() const {
  std::vector<Handle*> handles;
  for (const Endpoint* peer : used_.by_number())
    if (peer != nullptr) handles.push_back(&peer->handle);
  return handles;
}

void Peers::erase(Handle& handle) noexcept {
  used_.erase(handle.number());
  std::unique_ptr<Handle> gone;  // ends without the mutex
  const std::lock_guard lock(known_mutex_);
  guarded([&]() -> int {
    departed_.insert(name_of(*handle.key()));
    return OPAL_SUCCESS;
  });
  gone = known_.take(handle);
}

}  // namespace overlap::ring
