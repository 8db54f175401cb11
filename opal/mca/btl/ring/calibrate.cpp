// Short measurements of registration, copy and look-up.
#include "calibrate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "protocol/use_table.hpp"

namespace overlap::ring {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t repetitions = 15;

/// Median time of one call, from `repetitions` runs of `calls` each.
template <class Body>
double median_ns(std::size_t calls, Body&& body) {
  std::array<double, repetitions> times{};
  for (double& time : times) {
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < calls; ++i) body(i);
    time = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count() / static_cast<double>(calls);
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

double register_ns(fabric::Device& device, std::byte* memory, std::size_t bytes) {
  return median_ns(1, [&](std::size_t) {
    fabric::MemoryRegion region;
    if (device.register_memory(memory, bytes, fabric::access::local_write, {}, region) == fabric::Status::done) device.deregister_memory(region);
  });
}

double copy_ns(std::byte* to, std::byte* from, std::size_t bytes) {
  return median_ns(64, [&](std::size_t i) {
    from[i] = static_cast<std::byte>(i);
    std::memcpy(to, from, bytes);
    asm volatile("" : : "r"(to) : "memory");  // the copy is wanted although nobody reads it
  });
}

std::uint32_t rounded(double ns) { return static_cast<std::uint32_t>(std::max(ns, 0.0) + 0.5); }

double table_ns() {
  CostModel never;
  UseTable table(10, 20, never);
  std::vector<std::byte> buffers(256 * 256);
  return median_ns(256, [&](std::size_t i) { static_cast<void>(table.count(buffers.data() + i * 256, 256)); });
}

}  // namespace

MeasuredCosts measure_costs(fabric::Device& device, const std::function<void()>& look_up) {
  constexpr std::size_t small = 256;
  constexpr std::size_t large = 8192;
  std::vector<std::byte> memory(6 * page_bytes + 2 * large);
  std::byte* const pages = memory.data() + page_bytes - reinterpret_cast<std::uintptr_t>(memory.data()) % page_bytes;
  const double one = register_ns(device, pages, page_bytes);
  const double four = register_ns(device, pages, 4 * page_bytes);
  std::byte* const from = memory.data();
  std::byte* const to = memory.data() + memory.size() - large;
  const double copy_small = copy_ns(to, from, small);
  const double copy_large = copy_ns(to, from, large);
  const double per_kib = std::max(copy_large - copy_small, 0.0) / (static_cast<double>(large - small) / 1024);
  look_up();
  const double lookup = median_ns(64, [&](std::size_t) { look_up(); });
  return {std::max(rounded(one), 1U), rounded((four - one) / 3), rounded(copy_small - per_kib * small / 1024), rounded(per_kib),
          rounded(lookup + table_ns())};
}

void fill(CostModel& model, const MeasuredCosts& costs) {
  for (std::uint32_t bytes = 128; bytes <= 65536; bytes *= 2) {
    const auto pages_more = static_cast<std::uint32_t>((bytes - 1) / page_bytes);
    model.set(bytes, {costs.register_ns + pages_more * costs.register_page_ns,
                      costs.copy_ns + static_cast<std::uint32_t>(std::uint64_t{bytes} * costs.copy_kib_ns / 1024), costs.lookup_ns});
  }
}

}  // namespace overlap::ring
