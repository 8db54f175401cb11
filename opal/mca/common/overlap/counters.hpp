// Counters: MPI_T performance variables of a component, and one small table at the end of the job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

/// Render the end-of-job table: min, mean, max and sum over ranks; rows that are zero on every rank are left out.
/// The sum of a watermark or level says nothing and is shown as "-".
[[nodiscard]] std::string render_counter_table(std::string_view title,
                                               std::span<const CounterRow> rows,
                                               const CounterSummary& summary);

/// Register every row as a readable, continuous performance variable <framework>_<component>_<name>
/// (unsigned long long, bound to no object). A handle of a counter counts from its allocation, as MPI_T says.
/// (counters_mca.cpp)
/// @returns  OPAL_SUCCESS or Open MPI's error
[[nodiscard]] int register_counters(const mca_base_component_2_1_0_t* component,
                                    std::span<const CounterRow> rows) noexcept;

/// Print these rows, summed up over the job, as one table when MPI_Finalize starts; on every rank or on none. (counters_report.cpp)
/// @param rows  stay until the component is closed
/// @thread  MPI_Init only
void report_counters(const std::string& title, std::span<const CounterRow> rows);

}  // namespace overlap
