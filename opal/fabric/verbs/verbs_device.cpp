// One RDMA device through libibverbs: what it can do, and its memory.
// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include <algorithm>
#include <array>
#include <optional>

#include "convert.hpp"
#include "queues.hpp"

namespace overlap::fabric {
namespace verbs {
namespace {

/// Forked children. From Linux 5.12 on the kernel copies pinned pages at fork, and this call sees
/// that and does nothing. Before, a parent that writes to a registered page after a fork would go
/// on with a copy that the device does not know; libibverbs then keeps registered pages out of
/// children, from this call on.
/// @returns  false: it has failed (somebody has registered memory before); the process runs on
/// without that care, as it would have without us
bool be_ready_for_fork() noexcept {
  static const int status = ibv_fork_init();
  return status == 0;
}

/// Make a small queue pair with less and less room for inline data until the device agrees; there
/// is no way to ask for the limit. Also where a memlock limit that is too small is noticed: before
/// anything depends on the device.
void probe(Core& core, std::uint32_t inline_bytes) {
  const std::string& name = core.capabilities.name;
  alignas(4096) static std::array<std::byte, 4096> page;
  const Handle<ibv_mr, ibv_dereg_mr> region(
      ibv_reg_mr(core.domain.get(), page.data(), page.size(), IBV_ACCESS_LOCAL_WRITE));
  if (region == nullptr) throw failure("cannot register memory with " + name, errno);
  VerbsCompletionQueue completions(
      core, std::min<std::uint32_t>(16, core.capabilities.completion_queue_max));
  VerbsReceiveQueue receives(core,
                             std::min<std::uint32_t>(16, core.capabilities.receive_queue_max));
  const std::uint32_t entries = std::min<std::uint32_t>(128, core.capabilities.send_queue_max);
  for (;; inline_bytes /= 2) {
    ibv_qp_init_attr attributes =
        queue_pair_attributes(completions.device_queue(), receives.device_queue(), entries,
                              core.capabilities.gather_max, inline_bytes);
    const DeviceQueuePair queue_pair(ibv_create_qp(core.domain.get(), &attributes));
    if (queue_pair != nullptr) {
      core.capabilities.inline_max_bytes = attributes.cap.max_inline_data;
      return;
    }
    if (inline_bytes == 0) throw failure("cannot make a queue pair on " + name, errno);
  }
}

Capabilities describe(const Port& port) {
  Capabilities can;
  can.gather_max =
      static_cast<std::uint32_t>(std::clamp<int>(port.device.max_sge, 1, gather_limit));
  can.message_max_bytes = port.attributes.max_msg_sz;
  can.send_queue_max = static_cast<std::uint32_t>(port.device.max_qp_wr);
  can.receive_queue_max = static_cast<std::uint32_t>(port.device.max_srq_wr);
  can.completion_queue_max = static_cast<std::uint32_t>(port.device.max_cqe);
  can.atomics =
      port.device.atomic_cap == IBV_ATOMIC_HCA || port.device.atomic_cap == IBV_ATOMIC_GLOB;
  can.atomics_global = port.device.atomic_cap == IBV_ATOMIC_GLOB;
  can.receive_not_ready = port.transport != Transport::iwarp;
  can.packet_max_bytes = mtu_bytes(port.attributes.active_mtu);
  can.bandwidth_mbytes_s =
      rate_mbytes_s(port.attributes.active_speed, port.attributes.active_width);
  // Nothing tells the latency; this ranks the kinds of networks.
  can.latency_us = port.transport == Transport::infiniband ? 1
                   : port.transport == Transport::roce     ? 2
                                                           : 5;
  can.name = port.name();
  return can;
}

ProtectionDomain make_domain(const Port& port) {
  ProtectionDomain domain(ibv_alloc_pd(port.context.get()));
  if (domain == nullptr) throw failure("cannot use " + port.name(), errno);
  return domain;
}

class VerbsDevice final : public Device {
 public:
  VerbsDevice(Port port, const VerbsOptions& options, bool fork_safe)
      : core_(std::move(port), options) {
    core_.capabilities.fork_safe = fork_safe;
    probe(core_, options.inline_bytes);
  }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override {
    return core_.capabilities;
  }
  [[nodiscard]] Address address() const override { return core_.connector.address(); }
  [[nodiscard]] bool may_reach(const Address& peer) const noexcept override {
    return core_.connector.may_reach(peer);
  }

  [[nodiscard]] Status register_memory(void* address, std::size_t bytes, unsigned rights,
                                       const Backing&, MemoryRegion& region) noexcept override {
    if (address == nullptr || bytes == 0 || (rights & ~access::any) != 0)
      return Status::bad_argument;
    const unsigned flags =
        access_flags(rights, core_.capabilities.atomics, core_.port.transport == Transport::iwarp);
    ibv_mr* made = ibv_reg_mr(core_.domain.get(), address, bytes, static_cast<int>(flags));
    if (made == nullptr) return Status::refused;
    region = {address, bytes, made->lkey, made->rkey, made};
    return Status::done;
  }

  void deregister_memory(MemoryRegion& region) noexcept override {
    if (region.provider != nullptr) (void)ibv_dereg_mr(static_cast<ibv_mr*>(region.provider));
    region = {};
  }

  [[nodiscard]] std::unique_ptr<CompletionQueue> make_completion_queue(
      std::uint32_t entries) override {
    return std::make_unique<VerbsCompletionQueue>(core_, entries);
  }
  [[nodiscard]] std::unique_ptr<ReceiveQueue> make_receive_queue(std::uint32_t entries) override {
    return std::make_unique<VerbsReceiveQueue>(core_, entries);
  }
  [[nodiscard]] std::unique_ptr<QueuePair> make_queue_pair(
      const QueuePairOptions& options) override {
    if (options.completions == nullptr || options.receives == nullptr) {
      throw Error(Error::Kind::bad_option,
                  "a queue pair needs a completion queue and a receive queue");
    }
    if (options.receive_completions != nullptr || options.managed_sends ||
        options.managed_receives) {
      throw Error(Error::Kind::bad_option,
                  core_.capabilities.name + " has no queue pairs for management queues");
    }
    auto made = std::make_unique<VerbsQueuePair>(
        core_, static_cast<VerbsCompletionQueue&>(*options.completions),
        static_cast<VerbsReceiveQueue&>(*options.receives), options.send_queue_entries);
    made->connection().remote_rights = options.remote_rights;
    return made;
  }

  [[nodiscard]] Status connect(QueuePair& queue_pair, const Address& peer,
                               const PrivateData& data) noexcept override {
    return core_.connector.connect(static_cast<VerbsQueuePair&>(queue_pair).connection(), peer,
                                   data);
  }
  [[nodiscard]] Status accept(std::uint64_t request, QueuePair& queue_pair) noexcept override {
    return core_.connector.accept(request, static_cast<VerbsQueuePair&>(queue_pair).connection());
  }
  void reject(std::uint64_t request) noexcept override { core_.connector.reject(request); }
  [[nodiscard]] bool poll_event(Event& event) override { return core_.connector.poll(event); }

  [[nodiscard]] int arrival_descriptor() const noexcept override {
    return core_.arrivals.descriptor();
  }
  void arm_arrivals() noexcept override { core_.arrivals.arm(); }

 private:
  Core core_;
};

}  // namespace

Core::Core(Port opened, const VerbsOptions& options)
    : port(std::move(opened)),
      arrivals(CompletionChannel(ibv_create_comp_channel(port.context.get())),
               std::array{port.channel->fd, port.context->async_fd}),
      domain(make_domain(port)),
      capabilities(describe(port)),
      connector(port, options, capabilities.atomics) {
  if (capabilities.receive_queue_max == 0) {
    throw Error(Error::Kind::no_device,
                capabilities.name + " has no shared receive queues, which are needed");
  }
}

}  // namespace verbs

bool have_verbs() noexcept { return true; }

std::unique_ptr<Device> try_open_verbs(const VerbsOptions& options, std::string& why) {
  std::optional<verbs::Port> port;
  try {
    port = verbs::find_port(options);
  } catch (const Error& error) {
    why = error.what();
    return nullptr;
  }
  const bool fork_safe = verbs::be_ready_for_fork();
  return std::make_unique<verbs::VerbsDevice>(std::move(*port), options, fork_safe);
}

std::unique_ptr<Device> open_verbs(const VerbsOptions& options) {
  const bool fork_safe = verbs::be_ready_for_fork();
  return std::make_unique<verbs::VerbsDevice>(verbs::find_port(options), options, fork_safe);
}

}  // namespace overlap::fabric
