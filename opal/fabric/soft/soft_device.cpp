// A client's connection to the device process: opening, memory, connections, events, and the device's end.
#include "soft_device.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/engine.hpp"
#include "soft_start.hpp"

namespace overlap::fabric {

std::unique_ptr<Device> open_soft(const SoftOptions& options) {
  return std::make_unique<soft::SoftDevice>(options);
}

}  // namespace overlap::fabric

namespace overlap::fabric::soft {
namespace {

constexpr const char* device_ended = "the software device process ended";
constexpr std::uint32_t send_queue_max = 16384;
constexpr std::uint32_t receive_queue_max = 65536;
constexpr std::uint32_t completion_queue_max = 1U << 20U;
constexpr std::size_t domain_max_bytes = 64;  // the socket's whole name has 107
constexpr int open_attempts = 500;
constexpr long attempt_pause_ns = 10'000'000;

void check(const SoftOptions& options) {
  const auto fail = [](const std::string& text) { throw Error(Error::Kind::bad_option, text); };
  if (options.bandwidth_mbytes_s == 0)
    fail("the software device's bandwidth is 0 MB/s; give at least 1");
  if (options.bandwidth_mbytes_s > 1'000'000)
    fail("the software device's bandwidth is over 1000000 MB/s");
  if (options.latency_ns > 1'000'000'000) fail("the software device's latency is over one second");
  if (options.message_ns > 1'000'000'000)
    fail("the software device's time per message is over one second");
  if (options.domain.size() > domain_max_bytes)
    fail("the software device's domain is longer than 64 characters");
}

}  // namespace

// --- Opening -----------------------------------------------------------------------------------------------------------------

SoftDevice::SoftDevice(const SoftOptions& options) {
  check(options);
  open(options);
  check_access();
  capabilities_.inline_max_bytes = inline_max_bytes;
  capabilities_.gather_max = gather_limit;
  capabilities_.message_max_bytes = message_max_bytes;
  capabilities_.send_queue_max = send_queue_max;
  capabilities_.receive_queue_max = receive_queue_max;
  capabilities_.completion_queue_max = completion_queue_max;
  capabilities_.atomics = true;
  capabilities_.atomics_global = false;  // only in memory that the device has mapped
  capabilities_.last_byte_last = true;
  capabilities_.receive_not_ready = true;
  capabilities_.bandwidth_mbytes_s = static_cast<std::uint32_t>(options.bandwidth_mbytes_s);
  capabilities_.latency_us = static_cast<std::uint32_t>((options.latency_ns + 999) / 1000);
  capabilities_.name = "soft:" + options.domain + ":" + std::to_string(options.node);
}

SoftDevice::~SoftDevice() = default;

void SoftDevice::open(const SoftOptions& options) {
  const std::string name = socket_name(options.domain);
  // A device that is just ending takes the connection and closes it without a word: try again, and start another.
  for (int attempt = 0; attempt < open_attempts; ++attempt) {
    socket_ = connect_to(name);
    if (socket_) {
      if (!is_same_user(socket_.get(), device_pid_)) {
        throw Error(Error::Kind::no_permission,
                    "the software device's socket belongs to another user; choose another domain");
      }
      if (say_hello(options)) return;
    } else if (errno == ECONNREFUSED) {
      start_device(find_program(options.program), options.domain);
      continue;
    } else if (errno != EAGAIN) {  // EAGAIN: more wait than the queue of connections holds
      throw Error(Error::Kind::system,
                  std::string("cannot reach the software device: ") + std::strerror(errno));
    }
    const timespec pause{0, attempt_pause_ns};
    ::nanosleep(&pause, nullptr);
  }
  throw Error(Error::Kind::system, "the software device does not answer (5 s)");
}

bool SoftDevice::say_hello(const SoftOptions& options) {
  // Before the device is asked to look into our memory.
  ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(device_pid_), 0UL, 0UL, 0UL);
  Message hello;
  hello.ask = Ask::hello;
  hello.numbers[0] = layout_version;
  hello.numbers[1] = options.node;
  hello.values = {options.bandwidth_mbytes_s, options.latency_ns, options.message_ns};
  Message welcome;
  Attached attached;
  if (send_message(socket_.get(), hello) != Transfer::done ||
      receive_message(socket_.get(), welcome, &attached, true) != Transfer::done) {
    return false;
  }
  if (welcome.status != 0) {
    throw Error(Error::Kind::system,
                std::string("the software device refuses: ") + std::strerror(welcome.status));
  }
  page_ = Mapping::map(attached[0].get(), 0, sizeof(DevicePage));
  doorbells_ = Mapping::map(attached[1].get(), 0, sizeof(Doorbells));
  doorbell_ = std::move(attached[2]);
  if (!page_ || !doorbells_ || !doorbell_) {
    throw Error(Error::Kind::system,
                std::string("cannot map the software device's memory: ") + std::strerror(errno));
  }
  client_ = welcome.numbers[0];
  instance_ = welcome.values[0];
  return true;
}

/// Does the kernel let the device copy from and to our memory?
void SoftDevice::check_access() {
  volatile std::uint64_t known = instance_ ^ reinterpret_cast<std::uintptr_t>(this);
  Message ask_probe;
  ask_probe.ask = Ask::probe;
  ask_probe.values[0] = reinterpret_cast<std::uintptr_t>(&known);
  ask_probe.values[1] = known;
  Message reply;
  const int failure = ask(ask_probe, reply);
  if (failure == 0) return;
  if (failure == EPIPE) throw Error(Error::Kind::system, device_ended);
  throw Error(
      Error::Kind::no_permission,
      std::string("the kernel does not let the software device copy this process's memory (") +
          std::strerror(failure) +
          "); set kernel.yama.ptrace_scope to 0 or 1, and allow process_vm_readv in containers");
}

// --- Asking ------------------------------------------------------------------------------------------------------------------

int SoftDevice::ask(const Message& message, Message& reply, const int* descriptors,
                    std::size_t count) noexcept {
  if (lost_) return EPIPE;
  if (send_message(socket_.get(), message, descriptors, count) != Transfer::done) {
    device_lost();
    return EPIPE;
  }
  for (;;) {
    if (receive_message(socket_.get(), reply, nullptr, true) != Transfer::done) {
      device_lost();
      return EPIPE;
    }
    if (reply.ask == message.ask) return reply.status;
    take_event(reply);
  }
}

std::uint32_t SoftDevice::make(const Message& message, int descriptor, const char* what) {
  Message reply;
  const int failure = ask(message, reply, &descriptor, 1);
  if (failure == EPIPE) throw Error(Error::Kind::system, device_ended);
  if (failure != 0)
    throw Error(Error::Kind::system, std::string("the software device makes no ") + what + ": " +
                                         std::strerror(failure));
  return reply.numbers[0];
}

void SoftDevice::drop(Ask what, std::uint32_t number) noexcept {
  Message message;
  message.ask = what;
  message.numbers[0] = number;
  Message reply;
  static_cast<void>(ask(message, reply));
}

void SoftDevice::ring_doorbell(std::uint32_t number) noexcept {
  Doorbells& doorbells = *doorbells_.as<Doorbells>();
  if (doorbell_tail_ - doorbells.head.load(std::memory_order_acquire) <
      Doorbells::entries) {  // D4, pairs with D3
    doorbells.rings[doorbell_tail_ % Doorbells::entries] = number;
    doorbells.tail.store(++doorbell_tail_, std::memory_order_seq_cst);  // D1, P of DevicePage
  } else {
    doorbells.overflow.store(1, std::memory_order_seq_cst);  // P
  }
  Counter& asleep = page_.as<DevicePage>()->asleep;
  if (asleep.load(std::memory_order_seq_cst) == 0) return;         // L
  if (asleep.exchange(0, std::memory_order_seq_cst) == 0) return;  // somebody else wakes it
  if (page_.as<DevicePage>()->cpu.load(std::memory_order_relaxed) ==
      static_cast<std::uint32_t>(::sched_getcpu()))
    move_device_away();
  const std::uint64_t one = 1;
  static_cast<void>(!::write(doorbell_.get(), &one, sizeof(one)));
}

/// Let the device wake up on another processor than this one, which its poster wants for computing. The device may run anywhere
/// (prefer_us() in softdevice_main.cpp); where there is no other processor the call fails and changes nothing.
void SoftDevice::move_device_away() const noexcept {
  cpu_set_t elsewhere;
  std::memset(&elsewhere, 0xff, sizeof elsewhere);
  CPU_CLR(static_cast<std::size_t>(::sched_getcpu()), &elsewhere);
  static_cast<void>(::sched_setaffinity(device_pid_, sizeof elsewhere, &elsewhere));
}

// --- Memory ------------------------------------------------------------------------------------------------------------------

Status SoftDevice::register_memory(void* address, std::size_t bytes, unsigned rights,
                                   const Backing& backing, MemoryRegion& region) noexcept {
  if (bytes == 0 || address == nullptr || (rights & ~access::any) != 0) return Status::bad_argument;
  if (lost_) return Status::broken;
  // Asks only whether everything is mapped: for memory that is not a file's nothing is written anywhere.
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
  const int failure = ask(message, reply, &backing.descriptor, backing.descriptor >= 0 ? 1 : 0);
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
  drop(Ask::deregister, region.local_key);
  region = MemoryRegion{};
}

// --- Making ------------------------------------------------------------------------------------------------------------------

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
  return std::make_unique<SoftQueuePair>(*this, options);
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

// --- Connections -------------------------------------------------------------------------------------------------------------

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

Status SoftDevice::status_of(int failure) const noexcept {
  if (failure == 0) return Status::done;
  return failure == EPIPE ? Status::broken : Status::bad_argument;
}

Status SoftDevice::begin_connecting(const Message& message, SoftQueuePair& pair) noexcept {
  if (lost_ || pair.state() == SoftQueuePair::State::broken) return Status::broken;
  if (!pair.belongs_to(*this) || pair.state() != SoftQueuePair::State::fresh)
    return Status::bad_argument;
  Message reply;
  const Status status = status_of(ask(message, reply));
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
  static_cast<void>(ask(message, reply));
}

// --- Events ------------------------------------------------------------------------------------------------------------------

bool SoftDevice::poll_event(Event& event) {
  if (events_.empty() && !lost_) {
    const std::uint32_t count =
        doorbells_.as<Doorbells>()->events.load(std::memory_order_acquire);  // D6, pairs with D5
    if (count != events_seen_ || ++empty_polls_ % polls_per_look == 0) {
      events_seen_ = count;
      look_for_end();
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

void SoftDevice::look_for_end() noexcept {
  while (!lost_) {
    Message message;
    switch (receive_message(socket_.get(), message, nullptr, false)) {
      case Transfer::would_block: return;
      case Transfer::ended: device_lost(); return;
      case Transfer::done: take_event(message); break;
    }
  }
}

void SoftDevice::take_event(const Message& message) {
  if (message.ask != Ask::event) return;
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

/// Nothing will come from the device any more: say so for every connection, and complete everything.
void SoftDevice::device_lost() noexcept {
  if (lost_) return;
  lost_ = true;
  for (SoftQueuePair* pair : pairs_) {
    if (pair == nullptr) continue;
    const SoftQueuePair::State state = pair->state();
    if (state == SoftQueuePair::State::fresh || state == SoftQueuePair::State::broken) continue;
    Event event;
    event.kind =
        state == SoftQueuePair::State::asking ? Event::Kind::unreachable : Event::Kind::peer_lost;
    event.queue_pair = pair;
    event.why = device_ended;
    events_.push_back(std::move(event));
    pair->flush_locally();
  }
}

}  // namespace overlap::fabric::soft
