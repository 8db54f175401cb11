// The transport as a whole, and its peers.
#include "btl_ring.hpp"

#include <cstdlib>

namespace overlap::ring {
namespace {

extern "C" OVERLAP_EXPORT mca_btl_base_component_t mca_btl_ring_component;

/// What a process tells all others at the start.
struct Published {
  std::uint16_t version = layout_version;
  std::uint16_t zero = 0;
  std::uint32_t address_bytes = 0;
  Network network;
};
static_assert(sizeof(Published) == 24);

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

std::unique_ptr<std::byte[], void (*)(std::byte*)> allocate_lines(std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096;
  auto* memory = static_cast<std::byte*>(
      std::aligned_alloc(page_bytes, (bytes + page_bytes - 1) / page_bytes * page_bytes));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* p) { std::free(p); }};
}

Transport::Transport(std::unique_ptr<fabric::Device> device, const Network& network)
    : device_(std::move(device)),
      network_(network),
      slot_bytes_(round_to_lines(tunables.slot_bytes)),
      channel_bytes_(round_to_lines(tunables.channel_bytes)),
      send_memory_(nullptr, [](std::byte*) {}),
      scratch_(nullptr, [](std::byte*) {}),
      polling_(tunables.polling_set, policy(), order(), tunables.polling_review) {
  remove_stale_segments();
  segment_ = std::make_unique<Segment>(SegmentShape{tunables.polling_set + 1, tunables.ring_slots,
                                                    slot_bytes_, tunables.receive_buffers,
                                                    channel_bytes_});
  remove_at_end(segment_->path());
  completions_ = device_->make_completion_queue(
      std::min(capabilities().completion_queue_max, completion_entries()));
  receives_ = device_->make_receive_queue(tunables.receive_buffers);
  mca_rcache_base_resources_t resources{};
  static char name[] = "ring";
  resources.cache_name = name;
  resources.reg_data = this;
  resources.sizeof_reg = sizeof(CachedRegistration);
  resources.register_mem = cache_register;
  resources.deregister_mem = cache_deregister;
  cache_ = mca_rcache_base_module_create("grdma", this, &resources);
  if (cache_ == nullptr)
    throw std::runtime_error(
        "btl/ring: Open MPI's registration cache (rcache/grdma) is not available");
}

/// Enough for every receive buffer and for the signalled requests of as many busy peers as the polling set has.
std::uint32_t Transport::completion_entries() const noexcept {
  return tunables.receive_buffers + tunables.send_buffers + 2 * tunables.polling_set * 16 + 1024;
}

Transport::~Transport() {
  finalizing_ = true;
  std::vector<Endpoint*> all;
  for (const auto& endpoint : endpoints_) all.push_back(endpoint.get());
  drop(all);
  if (cache_ != nullptr) mca_rcache_base_module_destroy(cache_);
  device_->deregister_memory(receive_region_);
  device_->deregister_memory(send_region_);
  device_->deregister_memory(scratch_region_);
  receives_.reset();
  completions_.reset();
  for (auto* spare : {&free_small_, &free_large_}) {
    for (Fragment* fragment : *spare) std::free(fragment);
  }
}

std::vector<std::byte> Transport::address_bytes() const {
  const fabric::Address address = device_->address();
  Published published;
  published.network = network_;
  published.address_bytes = address.size_bytes;
  std::vector<std::byte> bytes(sizeof published + address.size_bytes);
  std::memcpy(bytes.data(), &published, sizeof published);
  std::memcpy(bytes.data() + sizeof published, address.bytes.data(), address.size_bytes);
  return bytes;
}

/// The endpoint of a process, made on first use. @returns nullptr when it does not run this BTL, or with another fabric
Endpoint* Transport::endpoint(opal_proc_t& proc) {
  if (const auto found = by_proc_.find(&proc); found != by_proc_.end()) return found->second;
  const std::vector<std::byte> bytes =
      lookup_published(&mca_btl_ring_component.btl_version, proc.proc_name);
  Published published;
  if (bytes.size() < sizeof published) return nullptr;
  std::memcpy(&published, bytes.data(), sizeof published);
  if (published.version != layout_version || published.network != network_ ||
      bytes.size() != sizeof published + published.address_bytes ||
      published.address_bytes > fabric::address_max_bytes) {
    return nullptr;
  }
  auto made = std::make_unique<Endpoint>(proc, static_cast<std::uint32_t>(endpoints_.size()),
                                         tunables.send_queue);
  made->address.size_bytes = published.address_bytes;
  std::memcpy(made->address.bytes.data(), bytes.data() + sizeof published, published.address_bytes);
  endpoints_.push_back(std::move(made));
  by_proc_[&proc] = endpoints_.back().get();
  return endpoints_.back().get();
}

/// Give everything back that a peer has, except its number.
void Transport::release_endpoint(Endpoint& endpoint) noexcept {
  if (endpoint.in != nullptr) close_incoming(endpoint);
  end_outgoing(endpoint);
  fail_bulk(endpoint);
  for (Fragment* fragment : std::exchange(endpoint.waiting, {})) finish(*fragment, OPAL_ERROR);
  for (const HeldMessage& message : std::exchange(endpoint.held, {})) repost(message.buffer);
  for (Connection* connection : {&endpoint.messages, &endpoint.bulk}) {
    for (auto* queue_pair : {&connection->queue_pair, &connection->mirror}) {
      if (*queue_pair != nullptr) by_queue_pair_.erase((*queue_pair)->number());
      queue_pair->reset();
    }
    connection->replaced.reset();
    connection->state = ConnectState::failed;
  }
  forget_retired(endpoint, true);
  std::erase(busy_, &endpoint);
}

void Transport::drop(std::span<Endpoint* const> peers) noexcept {
  part(peers);
  for (Endpoint* endpoint : peers) {
    if (endpoint == nullptr) continue;
    release_endpoint(*endpoint);
    guarded([&]() -> int {
      departed_.insert(name_of(endpoint->proc));
      return OPAL_SUCCESS;
    });
    by_proc_.erase(&endpoint->proc);
    endpoints_[endpoint->number].reset();
  }
}

void Transport::count_memory(std::int64_t bytes) noexcept {
  memory_bytes_ += bytes;
  counters().memory_max_bytes =
      std::max(counters().memory_max_bytes, static_cast<std::uint64_t>(memory_bytes_));
}

}  // namespace overlap::ring
