// Tables for people, lines for programs.
// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>

#include "opal/mca/btl/ring/protocol/cost_model.hpp"

namespace overlap::ring_calibrate {
namespace {

constexpr const char* order_names[] = {"sequential", "circular", "recent"};

std::string size_text(std::uint32_t bytes) {
  return bytes >= 1024 ? std::to_string(bytes / 1024) + " KiB" : std::to_string(bytes) + " B";
}

std::string uses_text(std::uint64_t uses) { return uses == 0 ? "never" : std::to_string(uses); }

/// What the component will do with the tunables printed below.
std::string threshold_text(const ring::CostModel& model, std::uint32_t bytes) {
  const std::uint32_t uses = model.threshold(bytes);
  return uses == ring::CostModel::never ? "never" : std::to_string(uses);
}

void print_sizes(std::FILE* out, const Report& report, const Options& options) {
  ring::CostModel model;
  model.set_speculation(options.fraction);
  ring::fill(model, report.lines);
  std::fprintf(out, "%-8s %12s %12s %12s %16s %18s\n", "size", "register R", "copy C", "look up V",
               "n = R/(C-V)", "registered after");
  for (const SizeLine& line : report.sizes) {
    std::fprintf(out, "%-8s %9u ns %9u ns %9u ns %11s uses %13s uses\n",
                 size_text(line.bytes).c_str(), line.costs.register_ns, line.costs.copy_ns,
                 line.costs.lookup_ns, uses_text(paying_uses(line.costs)).c_str(),
                 threshold_text(model, line.bytes).c_str());
  }
}

void print_polls(std::FILE* out, const Report& report) {
  std::fprintf(out, "%-12s %15s %15s %15s %18s\n", "idle peers", "sequential", "circular", "recent",
               "per peer, recent");
  for (const PollLine& line : report.polls) {
    std::fprintf(out, "%-12u %12.1f ns %12.1f ns %12.1f ns %15.2f ns\n", line.peers, line.ns[0],
                 line.ns[1], line.ns[2], line.ns[2] / line.peers);
  }
}

void print_row(std::FILE* out, const char* which, std::uint32_t bytes, std::uint32_t x,
               const char* metric, const char* unit, double value) {
  std::fprintf(out, "row,ring_costs,%s,%u,%u,%s,%s,1,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", which, bytes,
               x, metric, unit, value, value, value, value, value, value);
}

}  // namespace

std::uint64_t paying_uses(const ring::Costs& costs) noexcept {
  if (costs.copy_ns <= costs.lookup_ns) return 0;
  return costs.register_ns / (costs.copy_ns - costs.lookup_ns) + 1;
}

void print_tables(std::FILE* out, const Report& report, const Options& options) {
  std::fprintf(out,
               "Device: %s\n\nAfter how many uses does it pay to register a buffer and send from "
               "it without a copy?\n",
               report.device.c_str());
  print_sizes(out, report, options);
  std::fprintf(
      out,
      "(registered after: what the tunables below make of it, with %u %% of the uses that pay)\n\n",
      options.fraction);
  std::fprintf(out, "One look at the rings of idle peers (%u slots of %u bytes each):\n",
               options.ring_slots, options.slot_bytes);
  print_polls(out, report);
  std::fprintf(out,
               "\nFor openmpi-mca-params.conf (site) or ~/.openmpi/mca-params.conf (yours):\n");
  const ring::MeasuredCosts& costs = report.lines;
  std::fprintf(out, "btl_ring_costs = %u,%u,%u,%u,%u\n", costs.register_ns, costs.register_page_ns,
               costs.copy_ns, costs.copy_kib_ns, costs.lookup_ns);
}

void print_csv(std::FILE* out, const Report& report) {
  for (const SizeLine& line : report.sizes) {
    print_row(out, "register", line.bytes, 0, "cost", "ns", line.costs.register_ns);
    print_row(out, "copy", line.bytes, 0, "cost", "ns", line.costs.copy_ns);
    print_row(out, "look_up", line.bytes, 0, "cost", "ns", line.costs.lookup_ns);
    print_row(out, "paying", line.bytes, 0, "uses", "uses",
              static_cast<double>(paying_uses(line.costs)));
  }
  for (const PollLine& line : report.polls) {
    for (int order = 0; order < 3; ++order) {
      print_row(out, order_names[order], 0, line.peers, "poll", "ns", line.ns[order]);
      print_row(out, order_names[order], 0, line.peers, "poll_per_peer", "ns",
                line.ns[order] / line.peers);
    }
  }
}

}  // namespace overlap::ring_calibrate
