// Opening the device, and its events.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_device.hpp"

#include <algorithm>
#include <cstring>

#include "ompi/mca/common/overlap/process.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

#include "coll_mq_communicator.hpp"
#include "coll_mq_device_barriers.hpp"

namespace overlap::coll_mq {

std::unique_ptr<Device>& device = never_destroyed<std::unique_ptr<Device>>();

namespace {

/// A tunable of btl/ring: the network is described there. @returns  nullptr: it is not registered
[[nodiscard]] const void* ring_tunable(const char* name) noexcept {
  const int index = mca_base_var_find("opal", "btl", "ring", name);
  const void* value = nullptr;
  return index >= 0 && mca_base_var_get_value(index, &value, nullptr, nullptr) == OPAL_SUCCESS
             ? value
             : nullptr;
}

template <class T>
void take_ring_tunable(const char* name, T& value) noexcept {
  const void* const found = ring_tunable(name);
  if (found != nullptr) std::memcpy(&value, found, sizeof value);
}

/// Its component may not have been loaded: then nobody has registered the parameter, and what
/// mpirun has put into the environment is read.
[[nodiscard]] std::string ring_text(const char* name) {
  const void* const found = ring_tunable(name);
  const char* text = nullptr;
  if (found != nullptr) {
    std::memcpy(&text, found, sizeof text);
  } else {
    text = std::getenv((std::string("OMPI_MCA_btl_ring_") + name).c_str());
  }
  return text != nullptr ? text : "";
}

/// Is it the software device that btl/ring is told to use?
[[nodiscard]] bool ring_is_soft() {
  constexpr int soft = 2;  // of auto, verbs, soft
  int choice = 0;
  take_ring_tunable("fabric", choice);
  if (ring_tunable("fabric") != nullptr) return choice == soft;
  const char* const text = std::getenv("OMPI_MCA_btl_ring_fabric");
  return text != nullptr && std::string_view(text) == "soft";
}

/// As btl/ring's: both are on the same wire.
[[nodiscard]] fabric::SoftOptions soft_options() {
  fabric::SoftOptions options;
  std::uint32_t node_processes = 1;
  take_ring_tunable("soft_bandwidth", options.bandwidth_mbytes_s);
  take_ring_tunable("soft_latency", options.latency_ns);
  take_ring_tunable("soft_message", options.message_ns);
  take_ring_tunable("soft_node_processes", node_processes);
  options.task_ns = tunables.soft_task;
  options.node = OPAL_PROC_MY_NAME.vpid / std::max(1U, node_processes);
  options.domain = ring_text("soft_domain");
  if (options.domain.empty())
    options.domain = "job" + std::to_string(OPAL_PROC_MY_NAME.jobid >> 16U);
  return options;
}

int poll_device() noexcept {
  int events = 0;
  must_run([&events] {
    if (device != nullptr) events = device->poll();
  });
  return events;
}

}  // namespace

void open_device() {
  // Adapters that verbs reaches have no management queues.
  if (tunables.device == device_choice::off || !ring_is_soft()) return;
  try {
    std::unique_ptr<fabric::Device> fabric = fabric::open_soft(soft_options());
    if (fabric->capabilities().management_queues)
      device = std::make_unique<Device>(std::move(fabric));
  } catch (const std::exception& error) {
    show_message(
        std::string("coll/mq cannot use the device of btl_ring_fabric: ") + error.what() +
        ". The job ends, as the other ranks use it. --mca coll_mq_device off does without.");
    abort_job(1);
  }
}

std::vector<std::byte> device_address() {
  if (device == nullptr) return {};
  const fabric::Address address = device->fabric().address();
  return {address.bytes.data(), address.bytes.data() + address.size_bytes};
}

std::optional<fabric::Address> address_in(std::span<const std::byte> published) {
  fabric::Address address;
  if (published.empty() || published.size() > address.bytes.size()) return std::nullopt;
  std::memcpy(address.bytes.data(), published.data(), published.size());
  address.size_bytes = static_cast<std::uint32_t>(published.size());
  return address;
}

void abort_device(const Communicator& communicator, const std::string& what) {
  show_message(
      "coll/mq: the device cannot carry out the barriers of the communicator with number " +
      std::to_string(communicator.context()) + " at rank " + std::to_string(communicator.self()) +
      " of " + std::to_string(communicator.size()) + ": " + what +
      ". The job ends.\nHas a process, or overlap-softdevice, been killed, or are descriptors or "
      "/dev/shm used up? --mca coll_mq_device off does without the device.");
  abort_job(1);
}

// --- Events ----------------------------------------------------------------------------

void Device::add(Communicator& communicator) {
  all_[communicator.context()] = &communicator;
  process->driver.set_pollable({poll_device, nullptr}, true);
  const std::vector<Request> early = std::exchange(early_, {});
  for (const Request& request : early) {
    if (!answer(request)) early_.push_back(request);
  }
}

void Device::remove(Communicator& communicator) noexcept {
  const auto found = all_.find(communicator.context());
  if (found != all_.end() && found->second == &communicator) all_.erase(found);
  if (all_.empty() && process != nullptr)
    process->driver.set_pollable({poll_device, nullptr}, false);
}

int Device::poll() {
  poll_events();
  int ended = 0;
  for (const auto& [context, communicator] : all_) {
    if (DeviceBarriers* const barriers = communicator->device_barriers()) ended += barriers->poll();
  }
  return ended;
}

void Device::poll_events() {
  fabric::Event event;
  while (fabric_->poll_event(event)) take(event);
}

void Device::take(const fabric::Event& event) {
  if (event.kind == fabric::Event::Kind::connect_request) {
    Request request;
    request.number = event.request;
    if (event.data.size_bytes < sizeof request.introduction) return;
    std::memcpy(&request.introduction, event.data.bytes.data(), sizeof request.introduction);
    if (!answer(request)) early_.push_back(request);
    return;
  }
  if (event.kind == fabric::Event::Kind::peer_lost) last_fault_ = event.why;
  for (const auto& [context, communicator] : all_) {
    DeviceBarriers* const barriers = communicator->device_barriers();
    if (barriers != nullptr && barriers->take(event)) return;
  }
}

/// @returns  false: its communicator has not been made here
bool Device::answer(const Request& request) {
  const auto found = all_.find(request.introduction.context);
  if (found == all_.end()) return false;
  found->second->make_device_barriers().accept(request.introduction.source, request.number);
  return true;
}

}  // namespace overlap::coll_mq
