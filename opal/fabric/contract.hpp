// What the contract test is written with: endpoints of the provider under test, and waiting for
// them.
//
// OVERLAP_FABRIC=soft|verbs chooses the provider. Everything waits at most patience_s: a hang is a
// failure with a name.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::contract {

inline constexpr int patience_s = 60;

[[nodiscard]] inline bool provider_is(const char* name) {
  const char* chosen = std::getenv("OVERLAP_FABRIC");
  return std::strcmp(chosen == nullptr ? "soft" : chosen, name) == 0;
}

/// Of this run only. Children inherit it: it is taken on first use, before they are made.
[[nodiscard]] inline const std::string& own_domain() {
  static const std::string domain = "contract." + std::to_string(::getpid());
  return domain;
}

[[nodiscard]] inline std::unique_ptr<Device> open_device(std::uint32_t node,
                                                         std::uint32_t receive_retries = 7) {
  if (provider_is("verbs")) {
    VerbsOptions options;
    options.rnr_retry_count = receive_retries;
    return open_verbs(options);
  }
  SoftOptions options;
  options.receive_retry_count = receive_retries;
  options.node = node;
  options.domain = own_domain();
  return open_soft(options);
}

/// Try until it is true; nap in between, as the processors are shared with the device.
template <class Try>
void await(const char* what, Try&& attempt) {
  timespec start{};
  ::clock_gettime(CLOCK_MONOTONIC, &start);
  for (unsigned tries = 0; !attempt(); ++tries) {
    if (tries % 64 != 63) continue;
    const timespec nap{0, 20'000};
    ::nanosleep(&nap, nullptr);
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - start.tv_sec > patience_s)
      throw std::runtime_error(std::string("waited in vain for ") + what);
  }
}

/// Zeroed memory, registered; shared memory with its descriptor when `backed`.
class Memory {
 public:
  Memory(Device& device, std::size_t bytes, bool backed = false, unsigned rights = access::any)
      : device_(device), bytes_(bytes) {
    Backing backing;
    if (backed) {
      backing.descriptor = file_ = ::memfd_create("contract", MFD_CLOEXEC);
      if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes)) != 0)
        throw std::runtime_error("no memory file");
    }
    start_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    backed ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file_, 0);
    if (start_ == MAP_FAILED) throw std::runtime_error("no memory");
    if (device.register_memory(start_, bytes, rights, backing, region_) != Status::done)
      throw std::runtime_error("not registered");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    forget();
    ::munmap(start_, bytes_);
    if (file_ >= 0) ::close(file_);
  }

  void forget() noexcept {
    if (region_.provider != nullptr) device_.deregister_memory(region_);
  }
  [[nodiscard]] unsigned char* at(std::size_t offset) const noexcept {
    return static_cast<unsigned char*>(start_) + offset;
  }
  [[nodiscard]] std::uint64_t address(std::size_t offset) const noexcept {
    return reinterpret_cast<std::uintptr_t>(at(offset));
  }
  [[nodiscard]] const MemoryRegion& region() const noexcept { return region_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Gather part(std::size_t offset, std::size_t bytes) const noexcept {
    return {at(offset), static_cast<std::uint32_t>(bytes), region_.local_key};
  }
  /// What a device is writing: read it anew each time.
  [[nodiscard]] unsigned char look(std::size_t offset) const noexcept {
    return __atomic_load_n(at(offset), __ATOMIC_ACQUIRE);
  }

 private:
  Device& device_;
  std::size_t bytes_;
  int file_ = -1;
  void* start_ = nullptr;
  MemoryRegion region_;
};

/// A device with one completion and one receive queue, and its queue pairs.
struct Endpoint {
  explicit Endpoint(std::uint32_t node, std::uint32_t receive_entries = 256,
                    std::uint32_t receive_retries = 7)
      : device(open_device(node, receive_retries)),
        completions(device->make_completion_queue(4096)),
        receives(device->make_receive_queue(receive_entries)) {}

  [[nodiscard]] std::unique_ptr<QueuePair> make_pair(std::uint32_t entries = 128) {
    return device->make_queue_pair({.completions = completions.get(),
                                    .receives = receives.get(),
                                    .send_queue_entries = entries});
  }
  [[nodiscard]] Event next_event() {
    Event event;
    await("an event", [&] { return device->poll_event(event); });
    return event;
  }
  /// The same, while `other` begins a connection: some providers make it go on in poll_event()
  /// only.
  [[nodiscard]] Event next_event_from(Endpoint& other) {
    Event event;
    Event unexpected;
    await("an event", [&] {
      if (other.device->poll_event(unexpected))
        throw std::runtime_error("unexpected event: " + unexpected.why);
      return device->poll_event(event);
    });
    return event;
  }
  [[nodiscard]] Completion next_completion() {
    Completion completion;
    await("a completion", [&] { return completions->poll({&completion, 1}) == 1; });
    return completion;
  }
  [[nodiscard]] bool is_quiet() {
    Completion completion;
    for (int i = 0; i < 1000; ++i) {
      if (completions->poll({&completion, 1}) != 0) return false;
    }
    return true;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<ReceiveQueue> receives;
};

/// Two endpoints in this process with one connection.
struct Link {
  explicit Link(std::uint32_t entries = 128, std::uint32_t receive_entries = 256,
                std::uint32_t receive_retries = 7)
      : a(0, 256, receive_retries), b(1, receive_entries, receive_retries) {
    ab = a.make_pair(entries);
    ba = b.make_pair(entries);
    join(*ab, *ba);
  }

  void join(QueuePair& from, QueuePair& to) {
    if (a.device->connect(from, b.device->address(), PrivateData{}) != Status::done)
      throw std::runtime_error("connect failed");
    Event event;
    bool to_established = false;
    bool from_established = false;
    await("a connection", [&] {
      if (b.device->poll_event(event)) {
        if (event.kind == Event::Kind::connect_request) {
          if (b.device->accept(event.request, to) != Status::done)
            throw std::runtime_error("accept failed");
        } else if (event.kind == Event::Kind::established && event.queue_pair == &to) {
          to_established = true;
        } else {
          throw std::runtime_error("unexpected event: " + event.why);
        }
      }
      if (a.device->poll_event(event)) {
        if (event.kind != Event::Kind::established || event.queue_pair != &from)
          throw std::runtime_error("unexpected event: " + event.why);
        from_established = true;
      }
      return from_established && to_established;
    });
  }

  Endpoint a;
  Endpoint b;
  std::unique_ptr<QueuePair> ab;
  std::unique_ptr<QueuePair> ba;
};

[[nodiscard]] inline WorkRequest request(Opcode opcode, std::initializer_list<Gather> parts,
                                         bool signalled = true, std::uint64_t id = 0) {
  WorkRequest request;
  request.opcode = opcode;
  request.id = id;
  request.signalled = signalled;
  for (const Gather& part : parts) request.gather[request.gather_count++] = part;
  return request;
}

[[nodiscard]] inline WorkRequest to(WorkRequest request, const Memory& memory, std::size_t offset) {
  request.remote_address = memory.address(offset);
  request.remote_key = memory.region().remote_key;
  return request;
}

/// Bytes that differ from place to place and from one seed to the next.
inline void fill(unsigned char* bytes, std::size_t count, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    bytes[i] = static_cast<unsigned char>(state >> 24U);
  }
}

[[nodiscard]] inline bool has(const unsigned char* bytes, std::size_t count, std::uint32_t seed) {
  std::vector<unsigned char> expected(count);
  fill(expected.data(), count, seed);
  return count == 0 || std::memcmp(bytes, expected.data(), count) == 0;
}

/// A forked process with a pipe each way. What it runs must not return into the test program.
class Child {
 public:
  template <class Run>
  explicit Child(Run&& run) {
    static_cast<void>(own_domain());
    int down[2];
    int up[2];
    if (::pipe(down) != 0 || ::pipe(up) != 0) throw std::runtime_error("no pipe");
    pid = ::fork();
    if (pid == 0) {
      ::close(down[1]);
      ::close(up[0]);
      in_ = down[0];
      out_ = up[1];
      int status = 1;
      try {
        run(*this);
        status = 0;
      } catch (const std::exception& error) {
        static_cast<void>(!::write(2, error.what(), std::strlen(error.what())));
      }
      ::_exit(status);
    }
    ::close(down[0]);
    ::close(up[1]);
    in_ = up[0];
    out_ = down[1];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(in_);
    ::close(out_);
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  template <class T>
  void tell(const T& value) const {
    if (::write(out_, &value, sizeof(value)) != static_cast<ssize_t>(sizeof(value)))
      throw std::runtime_error("the other process is gone");
  }
  template <class T>
  [[nodiscard]] T hear() const {
    T value{};
    if (::read(in_, &value, sizeof(value)) != static_cast<ssize_t>(sizeof(value)))
      throw std::runtime_error("the other process is gone");
    return value;
  }
  void kill_and_wait() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }
  /// @returns  its exit status
  [[nodiscard]] int wait() {
    int status = -1;
    ::waitpid(pid, &status, 0);
    pid = -1;
    return status;
  }

  pid_t pid = -1;

 private:
  int in_ = -1;
  int out_ = -1;
};

}  // namespace overlap::fabric::contract
