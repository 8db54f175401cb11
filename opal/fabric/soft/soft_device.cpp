// The Device interface on a software device: memory, queues, connections, events.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/access_check.hpp"
#include "soft_management.hpp"

namespace overlap::fabric {

std::unique_ptr<Device> open_soft(const SoftOptions& options) {
  return std::make_unique<soft::SoftDevice>(options);
}

}  // namespace overlap::fabric

namespace overlap::fabric::soft {
namespace {

constexpr std::uint32_t send_queue_max = 16384;
constexpr std::uint32_t receive_queue_max = 65536;
constexpr std::uint32_t completion_queue_max = 1U << 20U;
constexpr std::uint32_t management_queue_max = 16384;
constexpr std::size_t domain_max_bytes = 64;  // the socket's whole name has 107

/// @returns  the same options. @throws Error(bad_option)
const SoftOptions& check(const SoftOptions& options) {
  const auto fail = [](const std::string& text) { throw Error(Error::Kind::bad_option, text); };
  if (options.bandwidth_mbytes_s == 0)
    fail("the software device's bandwidth is 0 MB/s; give at least 1");
  if (options.bandwidth_mbytes_s > 1'000'000)
    fail("the software device's bandwidth is over 1000000 MB/s");
  if (options.latency_ns > 1'000'000'000) fail("the software device's latency is over one second");
  if (options.message_ns > 1'000'000'000)
    fail("the software device's time per message is over one second");
  if (options.task_ns > 1'000'000'000)
    fail("the software device's time per task is over one second");
  if (options.inline_bytes > inline_max_bytes)
    fail("the software device takes at most 128 bytes with a work request");
  if (options.receive_retry_ns > 1'000'000'000)
    fail("the software device's time between tries for a receive entry is over one second");
  if (options.receive_retry_count > RetrySettings::for_ever)
    fail("the software device's number of tries for a receive entry is over 7 (for ever)");
  if (options.answer_timeout_ms == 0 || options.answer_timeout_ms > 86'400'000)
    fail("the software device's time for an answer is 0 or over one day");
  if (options.device_timeout_ms == 0) fail("the software device process needs time to answer");
  if (options.domain.size() > domain_max_bytes)
    fail("the software device's domain is longer than 64 characters");
  return options;
}

}  // namespace

// --- Opening ---------------------------------------------------------------------------

SoftDevice::SoftDevice(const SoftOptions& options)
    : link_(check(options), *this),
      doorbell_(link_.welcome()),
      instance_(link_.welcome().instance),
      client_(link_.welcome().client) {
  capabilities_.inline_max_bytes = options.inline_bytes;
  capabilities_.gather_max = gather_limit;
  capabilities_.message_max_bytes = message_max_bytes;
  capabilities_.send_queue_max = send_queue_max;
  capabilities_.receive_queue_max = receive_queue_max;
  capabilities_.completion_queue_max = completion_queue_max;
  capabilities_.atomics = true;
  capabilities_.atomics_global = false;  // only in memory that the device has mapped
  capabilities_.receive_not_ready = true;
  capabilities_.management_queues = true;
  capabilities_.management_queue_max = management_queue_max;
  capabilities_.bandwidth_mbytes_s = static_cast<std::uint32_t>(options.bandwidth_mbytes_s);
  capabilities_.latency_us = static_cast<std::uint32_t>((options.latency_ns + 999) / 1000);
  capabilities_.name = "soft:" + options.domain + ":" + std::to_string(options.node);
}

SoftDevice::~SoftDevice() = default;

// --- Memory ----------------------------------------------------------------------------

Status SoftDevice::register_memory(void* address, std::size_t bytes, unsigned rights,
                                   const Backing& backing, MemoryRegion& region) noexcept {
  if (bytes == 0 || address == nullptr || (rights & ~access::any) != 0) return Status::bad_argument;
  if (link_.lost()) return Status::broken;
  // Asks only whether everything is mapped: for memory that is not a file's nothing is written
  // anywhere.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  if (::msync(reinterpret_cast<void*>(start),
              reinterpret_cast<std::uintptr_t>(address) + bytes - start, MS_ASYNC) != 0) {
    errno = EFAULT;
    return Status::refused;
  }
  Message message;
  message.ask = Ask::register_memory;
  message.numbers[0] = rights;
  message.values = {reinterpret_cast<std::uintptr_t>(address), bytes, backing.offset_bytes};
  Message reply;
  const int failure =
      link_.ask(message, reply, &backing.descriptor, backing.descriptor >= 0 ? 1 : 0);
  if (failure == EPIPE) return Status::broken;
  if (failure != 0) {
    errno = failure;
    return Status::refused;
  }
  region = {address, bytes, reply.numbers[0], reply.numbers[0], this};
  return Status::done;
}

void SoftDevice::deregister_memory(MemoryRegion& region) noexcept {
  if (region.provider == nullptr) return;
  // The reply comes when the device has let go of it.
  link_.drop(Ask::deregister, region.local_key);
  region = MemoryRegion{};
}

// --- Making ----------------------------------------------------------------------------

std::unique_ptr<CompletionQueue> SoftDevice::make_completion_queue(std::uint32_t entries) {
  if (entries == 0 || entries > completion_queue_max)
    throw Error(Error::Kind::bad_option, "completion queue entries: 1 to 1048576");
  return std::make_unique<SoftCompletionQueue>(*this, entries);
}

std::unique_ptr<ReceiveQueue> SoftDevice::make_receive_queue(std::uint32_t entries) {
  if (entries == 0 || entries > receive_queue_max)
    throw Error(Error::Kind::bad_option, "receive queue entries: 1 to 65536");
  return std::make_unique<SoftReceiveQueue>(*this, entries);
}

std::unique_ptr<QueuePair> SoftDevice::make_queue_pair(const QueuePairOptions& options) {
  if (options.completions == nullptr)
    throw Error(Error::Kind::bad_option, "a queue pair needs a completion queue");
  if (options.send_queue_entries == 0 || options.send_queue_entries > send_queue_max) {
    throw Error(Error::Kind::bad_option, "send queue entries: 1 to 16384");
  }
  if (options.managed_receives && options.receives == nullptr)
    throw Error(Error::Kind::bad_option, "managed receives need a receive queue");
  return std::make_unique<SoftQueuePair>(*this, options);
}

std::unique_ptr<CompletionQueue> SoftDevice::make_counting_queue() {
  return std::make_unique<SoftCompletionQueue>(*this, 1, true);
}

std::unique_ptr<ManagementQueue> SoftDevice::make_management_queue(std::uint32_t entries) {
  if (entries == 0 || entries > management_queue_max)
    throw Error(Error::Kind::bad_option, "management queue entries: 1 to 16384");
  return std::make_unique<SoftManagementQueue>(*this, entries);
}

std::uint32_t SoftDevice::enter(SoftQueuePair& pair) {
  const auto free = std::find(pairs_.begin(), pairs_.end(), nullptr);
  const auto cookie = static_cast<std::uint32_t>(free - pairs_.begin());
  if (free == pairs_.end()) {
    pairs_.push_back(&pair);
  } else {
    *free = &pair;
  }
  return cookie;
}

void SoftDevice::leave(std::uint32_t cookie, std::uint32_t number) noexcept {
  const QueuePair* pair = pairs_[cookie];
  pairs_[cookie] = nullptr;
  if (number != 0)
    std::erase_if(events_, [&](const Event& event) { return event.queue_pair == pair; });
}

SoftQueuePair* SoftDevice::find(std::uint32_t cookie, std::uint32_t number) noexcept {
  if (cookie >= pairs_.size() || pairs_[cookie] == nullptr || pairs_[cookie]->number() != number)
    return nullptr;
  return pairs_[cookie];
}

// --- Connections -----------------------------------------------------------------------

namespace {

/// What an Address holds.
struct Place {
  std::uint64_t instance;
  std::uint32_t client;
  std::uint32_t zero;
};
static_assert(sizeof(Place) == 16 && sizeof(Place) <= address_max_bytes);

}  // namespace

Address SoftDevice::address() const {
  const Place place{instance_, client_, 0};
  Address address;
  std::memcpy(address.bytes.data(), &place, sizeof(place));
  address.size_bytes = sizeof(place);
  return address;
}

bool SoftDevice::may_reach(const Address& peer) const noexcept {
  Place place{};
  if (peer.size_bytes != sizeof(place)) return false;
  std::memcpy(&place, peer.bytes.data(), sizeof(place));
  return place.instance == instance_;
}

Status SoftDevice::status_of(int failure) const noexcept {
  if (failure == 0) return Status::done;
  return failure == EPIPE ? Status::broken : Status::bad_argument;
}

Status SoftDevice::begin_connecting(const Message& message, SoftQueuePair& pair) noexcept {
  if (link_.lost() || pair.state() == SoftQueuePair::State::broken) return Status::broken;
  if (!pair.belongs_to(*this) || pair.state() != SoftQueuePair::State::fresh)
    return Status::bad_argument;
  Message reply;
  const Status status = status_of(link_.ask(message, reply));
  if (status == Status::done && pair.state() == SoftQueuePair::State::fresh)
    pair.set_state(SoftQueuePair::State::asking);
  return status;
}

Status SoftDevice::connect(QueuePair& queue_pair, const Address& peer,
                           const PrivateData& data) noexcept {
  if (peer.size_bytes != sizeof(Place) || data.size_bytes > private_max_bytes)
    return Status::bad_argument;
  Place place{};
  std::memcpy(&place, peer.bytes.data(), sizeof(place));
  Message message;
  message.ask = Ask::connect;
  message.numbers[0] = queue_pair.number();
  message.numbers[1] = place.client;
  message.values[0] = place.instance;
  message.data_bytes = data.size_bytes;
  message.data = data.bytes;
  return begin_connecting(message, static_cast<SoftQueuePair&>(queue_pair));
}

Status SoftDevice::accept(std::uint64_t request, QueuePair& queue_pair) noexcept {
  Message message;
  message.ask = Ask::accept;
  message.numbers[0] = queue_pair.number();
  message.values[0] = request;
  return begin_connecting(message, static_cast<SoftQueuePair&>(queue_pair));
}

void SoftDevice::reject(std::uint64_t request) noexcept {
  Message message;
  message.ask = Ask::reject;
  message.values[0] = request;
  Message reply;
  static_cast<void>(link_.ask(message, reply));
}

// --- Events ----------------------------------------------------------------------------

bool SoftDevice::poll_event(Event& event) {
  if (events_.empty() && !link_.lost()) {
    const std::uint32_t count = doorbell_.events();
    if (count != events_seen_ || ++empty_polls_ % polls_per_look == 0) {
      events_seen_ = count;
      link_.look_for_end();
    }
  }
  if (events_.empty()) return false;
  event = std::move(events_.front());
  events_.pop_front();
  auto* pair = static_cast<SoftQueuePair*>(event.queue_pair);
  switch (event.kind) {
    case Event::Kind::connect_request: break;
    case Event::Kind::established: pair->set_state(SoftQueuePair::State::established); break;
    case Event::Kind::rejected:
    case Event::Kind::unreachable:
    case Event::Kind::peer_lost: pair->set_state(SoftQueuePair::State::broken); break;
  }
  return true;
}

void SoftDevice::arm_arrivals() noexcept {
  if (doorbell_.arm_arrivals()) return;
  link_.look_for_end();
  // Else it stays readable: the device process is just ending, and its other socket is next.
  if (link_.lost()) doorbell_.silence_arrivals();
}

void SoftDevice::take_event(const Message& message) {
  Event event;
  event.kind = static_cast<Event::Kind>(message.numbers[0]);
  event.request = message.values[0];
  event.data.bytes = message.data;
  event.data.size_bytes = std::min<std::uint32_t>(message.data_bytes, private_max_bytes);
  event.why = message.text.data();
  if (message.numbers[1] != 0) {
    const auto pair =
        std::find_if(pairs_.begin(), pairs_.end(), [&](const SoftQueuePair* candidate) {
          return candidate != nullptr && candidate->number() == message.numbers[1];
        });
    if (pair == pairs_.end()) return;  // destroyed while the event was under way
    event.queue_pair = *pair;
  }
  events_.push_back(std::move(event));
}

/// Nothing will come from the device any more: say so for every connection, and complete
/// everything.
void SoftDevice::device_lost(const char* why) {
  for (SoftManagementQueue* queue : management_) queue->flush_locally();
  for (SoftQueuePair* pair : pairs_) {
    if (pair == nullptr) continue;
    const SoftQueuePair::State state = pair->state();
    if (state == SoftQueuePair::State::fresh) continue;
    pair->flush_locally();
    if (state == SoftQueuePair::State::broken) continue;
    Event event;
    event.kind =
        state == SoftQueuePair::State::asking ? Event::Kind::unreachable : Event::Kind::peer_lost;
    event.queue_pair = pair;
    event.why = why;
    events_.push_back(std::move(event));
  }
}

}  // namespace overlap::fabric::soft
