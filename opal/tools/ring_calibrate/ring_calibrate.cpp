// ring-calibrate: measure what btl/ring wants to know about this machine and print the tunables to
// set (P3.3, P2.6).
// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <exception>
#include <memory>
#include <vector>

#include "opal/fabric/fabric.hpp"
#include "opal/mca/btl/ring/calibrate.hpp"

#include "cache.hpp"
#include "options.hpp"
#include "report.hpp"

namespace overlap::ring_calibrate {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

/// @throws fabric::Error
std::unique_ptr<fabric::Device> open_device(const Options& options) {
  if (options.fabric == Fabric::soft) {
    // A device process of our own: the jobs that run on this host are left in peace.
    fabric::SoftOptions soft;
    soft.domain = "calibrate" + std::to_string(::getpid());
    return fabric::open_soft(soft);
  }
  fabric::VerbsOptions verbs;
  verbs.device = options.device;
  if (options.fabric != Fabric::automatic) return fabric::open_verbs(verbs);
  std::string why;
  std::unique_ptr<fabric::Device> device = fabric::try_open_verbs(verbs, why);
  if (device == nullptr) {
    throw fabric::Error(fabric::Error::Kind::no_device,
                        why + " (--fabric soft measures with the software device)");
  }
  return device;
}

Report measure(const Options& options) {
  const std::unique_ptr<fabric::Device> device = open_device(options);
  const std::size_t repetitions = options.quick ? ring::start_repetitions : ring::tool_repetitions;
  // As many registrations as a busy program has, and the one looked for in the middle.
  constexpr std::size_t registrations = 256;
  constexpr std::size_t page_bytes = 4096;
  std::vector<std::byte> memory(registrations * page_bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  Cache cache(begin, registrations, page_bytes);
  Report report;
  report.device = device->capabilities().name;
  report.lines = ring::measure_costs(
      *device,
      [&] {
        if (!cache.use(begin + memory.size() / 2 + 100)) std::terminate();
      },
      repetitions);
  for (std::uint32_t bytes = 128; bytes <= 8192; bytes *= 2) {
    report.sizes.push_back(
        {bytes, ring::measure_size(*device, bytes, report.lines.lookup_ns, repetitions)});
    if (report.sizes.back().costs.register_ns == UINT32_MAX) {
      throw fabric::Error(fabric::Error::Kind::memory_limit,
                          "the device refuses to register " + std::to_string(bytes) +
                              " bytes (ulimit -l shows the limit)");
    }
  }
  for (std::uint32_t peers = 1; peers <= 1024; peers *= 2) {
    PollLine line{peers, {}};
    for (const auto order :
         {ring::PollOrder::sequential, ring::PollOrder::circular, ring::PollOrder::recent}) {
      line.ns[static_cast<int>(order)] =
          ring::measure_poll_ns(peers, order, options.ring_slots, options.slot_bytes);
    }
    report.polls.push_back(line);
  }
  return report;
}

int run(int count, char** arguments) {
  const Options options = parse(count, arguments);
  if (options.help) {
    std::fputs(usage(), stdout);
  } else if (options.version) {
    std::puts("ring-calibrate (overlap) " OVERLAP_VERSION);
  } else {
    const Report report = measure(options);
    if (options.csv) {
      print_csv(stdout, report);
    } else {
      print_tables(stdout, report, options);
    }
  }
  if (std::fflush(stdout) != 0) throw std::runtime_error("the output cannot be written");
  return 0;
}

}  // namespace
}  // namespace overlap::ring_calibrate

int main(int count, char** arguments) {
  using namespace overlap::ring_calibrate;
  try {
    return run(count, arguments);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "ring-calibrate: %s.\n", error.what());
    return exit_usage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ring-calibrate: %s.\n", error.what());
    return exit_failed;
  }
}
