// Counters: MPI_T performance variables of a component, and one small table at the end of the job.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct mca_base_component_2_1_0_t;  // Open MPI's mca_base_component_t in 4.1.x and 5.0.x

namespace overlap {

enum class CounterClass : std::uint8_t {
  counter,         ///< only grows
  high_watermark,  ///< largest value seen
  level            ///< value now
};

struct CounterRow {
  const char* name;
  const char* help;  ///< one sentence, ends with a full stop
  CounterClass cls;
  std::uint64_t* storage;
};

/// One row's values over all ranks, each array [rows].
struct CounterSummary {
  std::span<const std::uint64_t> min;
  std::span<const std::uint64_t> max;
  std::span<const std::uint64_t> sum;
  std::uint32_t ranks;
};

/// Render the end-of-job table: min, mean, max and sum over ranks, also of rows that are zero: an
/// rtr_sent of 0 is an answer. The sum of a watermark or level says nothing and is shown as "-".
[[nodiscard]] std::string render_counter_table(std::string_view title,
                                               std::span<const CounterRow> rows,
                                               const CounterSummary& summary);

/// Sum over all ranks of the counter `name`; 0 when there is none.
[[nodiscard]] std::uint64_t sum_of(std::span<const CounterRow> rows, const CounterSummary& summary,
                                   std::string_view name) noexcept;

/// What the counters of a job mean, in one paragraph for users.
using Explanation = std::string (*)(std::span<const CounterRow>, const CounterSummary&);

/// Register every row as a readable, continuous performance variable <framework>_<component>_<name>
/// (unsigned long long, bound to no object). A handle of a counter counts from its allocation, as
/// MPI_T says. (counters_mca.cpp)
/// @returns  OPAL_SUCCESS or Open MPI's error
[[nodiscard]] int register_counters(const mca_base_component_2_1_0_t* component,
                                    std::span<const CounterRow> rows) noexcept;

/// What is printed to stderr at the end of a job.
struct CounterReport {
  std::string title;                 ///< the component's name
  std::span<const CounterRow> rows;  ///< stay until the component is closed
  bool table = true;                 ///< print them
  Explanation explain = nullptr;     ///< print what they mean; null: nothing
};

/// Ask for a report; on every rank or on none. The OMPI layer sums the counters up over the job and
/// prints once, in MPI_Finalize (ompi/mca/common/overlap/report.hpp).
/// @thread  MPI_Init only
void request_report(const CounterReport& report);
/// The reports that were asked for since the last call.
[[nodiscard]] std::vector<CounterReport> take_report_requests();
/// What a component prints when it is closed and nobody took its request, because the job's PML is
/// not ours: the counters of this process. @returns  empty when it was taken, or there was none
[[nodiscard]] std::string report_alone(std::string_view title);

}  // namespace overlap
