// Short measurements of registration, copy, look-up and polling.
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrate.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "protocol/use_table.hpp"

namespace overlap::ring {
namespace {

constexpr std::size_t page_bytes = 4096;

/// Median time of one call, from `repetitions` runs of `calls` each.
template <class Body>
double median_ns(std::size_t repetitions, std::size_t calls, Body&& body) {
  std::vector<double> times(repetitions);
  for (double& time : times) {
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < calls; ++i) body(i);
    time =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count() /
        static_cast<double>(calls);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(repetitions / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// @returns  infinity where the device refuses
double register_ns(fabric::Device& device, std::byte* memory, std::size_t bytes,
                   std::size_t repetitions) {
  bool refused = false;
  const double ns = median_ns(repetitions, 1, [&](std::size_t) {
    fabric::MemoryRegion region;
    if (device.register_memory(memory, bytes, fabric::access::local_write, {}, region) ==
        fabric::Status::done) {
      device.deregister_memory(region);
    } else {
      refused = true;
    }
  });
  return refused ? INFINITY : ns;
}

constexpr std::size_t copy_slots = 64;
constexpr std::size_t copy_room_bytes(std::size_t bytes) {
  return (1 + copy_slots) * std::max(bytes, page_bytes / 2);
}

/// From a buffer that the program has just written, into the slots of a ring in turn: these are not
/// in the nearest cache.
/// @param memory  [copy_room_bytes(bytes)]
double copy_ns(std::byte* memory, std::size_t bytes, std::size_t repetitions) {
  const std::size_t slot_bytes = std::max(bytes, page_bytes / 2);
  return median_ns(repetitions, copy_slots, [&](std::size_t i) {
    std::byte* const to = memory + (1 + i) * slot_bytes;
    memory[i % bytes] = static_cast<std::byte>(i);
    std::memcpy(to, memory, bytes);
    asm volatile("" : : "r"(to) : "memory");  // the copy is wanted although nobody reads it
  });
}

std::uint32_t rounded(double ns) {
  return static_cast<std::uint32_t>(std::clamp(ns + 0.5, 0.0, 4e9));
}

double table_ns(std::size_t repetitions) {
  CostModel never;
  UseTable table(10, 20, never);
  std::vector<std::byte> buffers(256 * 256);
  return median_ns(repetitions, 256, [&](std::size_t i) {
    static_cast<void>(table.count(buffers.data() + i * 256, 256));
  });
}

/// Zeroed pages that come into being when they are touched.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes),
        base_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (base_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Pages() { static_cast<void>(::munmap(base_, bytes_)); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(base_); }

 private:
  std::size_t bytes_;
  void* base_;
};

}  // namespace

MeasuredCosts measure_costs(fabric::Device& device, const std::function<void()>& look_up,
                            std::size_t repetitions) {
  constexpr std::size_t small = 256;
  constexpr std::size_t large = 8192;
  const Pages memory(copy_room_bytes(large));
  const double one = register_ns(device, memory.data(), page_bytes, repetitions);
  const double four = register_ns(device, memory.data(), 4 * page_bytes, repetitions);
  const double copy_small = copy_ns(memory.data(), small, repetitions);
  const double copy_large = copy_ns(memory.data(), large, repetitions);
  const double per_kib =
      std::max(copy_large - copy_small, 0.0) / (static_cast<double>(large - small) / 1024);
  look_up();
  const double lookup = median_ns(repetitions, 64, [&](std::size_t) { look_up(); });
  return {std::max(rounded(one), 1U), rounded((four - one) / 3),
          rounded(copy_small - per_kib * small / 1024), rounded(per_kib),
          rounded(lookup + table_ns(repetitions))};
}

void fill(CostModel& model, const MeasuredCosts& costs) {
  for (std::uint32_t bytes = 128; bytes <= 65536; bytes *= 2)
    model.set(bytes, costs_at(costs, bytes));
}

Costs measure_size(fabric::Device& device, std::uint32_t bytes, std::uint32_t lookup_ns,
                   std::size_t repetitions) {
  const Pages memory(copy_room_bytes(bytes));
  const double copy = copy_ns(memory.data(), bytes, repetitions);
  const double registering = register_ns(device, memory.data(), bytes, repetitions);
  return {std::isinf(registering) ? UINT32_MAX : rounded(registering), rounded(copy), lookup_ns};
}

double measure_poll_ns(std::uint32_t peers, PollOrder order, std::uint32_t ring_slots,
                       std::uint32_t slot_bytes) {
  // Only the first slots of each ring are there; the distance from ring to ring, which decides
  // about the caches, is the real one.
  constexpr std::uint32_t slots = 2;
  const std::size_t ring_bytes = std::size_t{ring_slots} * slot_bytes;
  const Pages memory(ring_bytes * peers);
  std::deque<ReceiveRing> rings;
  PollingSet set(peers, SetPolicy::first, order, UINT32_MAX);
  for (std::uint32_t peer = 0; peer < peers; ++peer) {
    static_cast<void>(set.on_message(peer, Channel::send_receive));
    set.added(peer, &rings.emplace_back(memory.data() + ring_bytes * peer, slots, slot_bytes));
  }
  const std::size_t calls = 20000 / peers + 1;
  std::uint32_t seen = 0;
  return median_ns(31, calls, [&](std::size_t) {
    seen += set.for_each([&](std::uint32_t peer) -> std::uint32_t {
      ReceiveRing::Arrival arrival;
      return rings[peer].peek(arrival) ? 1 : 0;
    });
    asm volatile("" : : "r"(seen) : "memory");  // look anew each time
  });
}

}  // namespace overlap::ring
