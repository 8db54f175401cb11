// The counters of the whole job, one table per component, when MPI_Finalize starts.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/report.hpp"

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

namespace overlap {
namespace {

std::vector<CounterReport>& reports() {
  static auto& all = never_destroyed<std::vector<CounterReport>>();
  return all;
}

void print(const CounterReport& report) {
  std::vector<std::uint64_t> own(report.rows.size());
  std::ranges::transform(report.rows, own.begin(),
                         [](const CounterRow& row) { return *row.storage; });
  std::vector<std::uint64_t> least(own.size());
  std::vector<std::uint64_t> most(own.size());
  std::vector<std::uint64_t> sum(own.size());
  const int count = static_cast<int>(own.size());
  PMPI_Reduce(own.data(), least.data(), count, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
  PMPI_Reduce(own.data(), most.data(), count, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  PMPI_Reduce(own.data(), sum.data(), count, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (ompi_comm_rank(&ompi_mpi_comm_world.comm) != 0) return;
  const auto ranks = static_cast<std::uint32_t>(ompi_comm_size(&ompi_mpi_comm_world.comm));
  const CounterSummary summary{least, most, sum, ranks};
  std::string text;
  if (report.table) text = render_counter_table(report.title, report.rows, summary);
  if (report.explain != nullptr)
    text += report.title + ": " + report.explain(report.rows, summary) + "\n";
  std::fputs(text.c_str(), stderr);  // not into the program's output; unbuffered: one write
}

ompi_hook_base_component_t& init_hook();

/// Deleting an attribute of MPI_COMM_SELF is the first thing that MPI_Finalize does; everything
/// still works then.
int at_finalize(MPI_Comm, int, void*, void*) noexcept try {
  ompi_hook_base_deregister_callbacks(&init_hook());
  std::ranges::for_each(reports(), print);
  return MPI_SUCCESS;
} catch (...) {
  return MPI_ERR_NO_MEM;
}

/// Attributes cannot be set before MPI_Init has ended. Open MPI calls this then in every process,
/// also in one that never polls: the report needs all of them.
void when_initialised(int, char**, int, int*) noexcept {
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

ompi_hook_base_component_t& init_hook() {
  static ompi_hook_base_component_t hook = [] {
    ompi_hook_base_component_t made{};
    made.hookm_mpi_init_bottom = when_initialised;
    return made;
  }();
  return hook;
}

}  // namespace

void report_at_finalize() {
  for (CounterReport& report : take_report_requests()) {
    if (reports().empty()) ompi_hook_base_register_callbacks(&init_hook());
    reports().push_back(std::move(report));
  }
}

}  // namespace overlap
