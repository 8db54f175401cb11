// What ring-calibrate measures, and how it says it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "opal/mca/btl/ring/calibrate.hpp"

#include "options.hpp"

namespace overlap::ring_calibrate {

struct SizeLine {
  std::uint32_t bytes;
  ring::Costs costs;
};

struct PollLine {
  std::uint32_t peers;
  double ns[3];  ///< [ring::PollOrder]
};

struct Report {
  std::string device;
  ring::MeasuredCosts lines{};  ///< for the tunables
  std::vector<SizeLine> sizes;
  std::vector<PollLine> polls;
};

/// Uses after which a registration has paid for itself: the smallest n > R / (C - V). @returns 0:
/// never
[[nodiscard]] std::uint64_t paying_uses(const ring::Costs& costs) noexcept;

void print_tables(std::FILE* out, const Report& report, const Options& options);
/// The columns of examples/bench:
/// row,benchmark,case,bytes,x,metric,unit,samples,median,p10,p90,p99,min,max
void print_csv(std::FILE* out, const Report& report);

}  // namespace overlap::ring_calibrate
