// The counters of the whole job, one table per component, when MPI_Finalize starts.
#include "opal/mca/common/overlap/counters.hpp"

#include "opal/mca/common/overlap/openmpi.hpp"

namespace overlap {
namespace {

struct Report {
  std::string title;
  std::span<const CounterRow> rows;
};

std::vector<Report>& reports() {
  static std::vector<Report> all;
  return all;
}

void print_table(const Report& report) {
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
  std::fputs(render_counter_table(report.title, report.rows, {least, most, sum, ranks}).c_str(),
             stdout);
  std::fflush(stdout);
}

/// Deleting an attribute of MPI_COMM_SELF is the first thing that MPI_Finalize does; everything still works then.
int at_finalize(MPI_Comm, int, void*, void*) noexcept try {
  std::ranges::for_each(reports(), print_table);
  return MPI_SUCCESS;
} catch (...) {
  return MPI_ERR_NO_MEM;
}

/// Attributes cannot be set before MPI_Init has ended; wait for that.
int when_initialised() noexcept {
  int done = 0;
  PMPI_Initialized(&done);
  if (done == 0) return 0;
  opal_progress_unregister(when_initialised);
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  return 0;
}

}  // namespace

void report_counters(const std::string& title, std::span<const CounterRow> rows) {
  if (reports().empty()) opal_progress_register(when_initialised);
  reports().push_back({title, rows});
}

}  // namespace overlap
