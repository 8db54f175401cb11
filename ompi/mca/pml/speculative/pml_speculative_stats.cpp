// The counters of the whole job in one table, when MPI_Finalize starts.
#include "pml_speculative.hpp"


namespace overlap::speculative {
namespace {

void print_table() {
  const std::span<const CounterRow> rows = counter_rows();
  std::vector<std::uint64_t> own(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) own[i] = *rows[i].storage;
  std::vector<std::uint64_t> least(rows.size());
  std::vector<std::uint64_t> most(rows.size());
  std::vector<std::uint64_t> sum(rows.size());
  const int count = static_cast<int>(rows.size());
  PMPI_Reduce(own.data(), least.data(), count, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
  PMPI_Reduce(own.data(), most.data(), count, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  PMPI_Reduce(own.data(), sum.data(), count, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (ompi_comm_rank(&ompi_mpi_comm_world.comm) != 0) return;
  const auto ranks = static_cast<std::uint32_t>(ompi_comm_size(&ompi_mpi_comm_world.comm));
  const std::string table = render_counter_table("pml/speculative", rows, {least, most, sum, ranks});
  std::fputs(table.c_str(), stdout);
  std::fflush(stdout);
}

/// Deleting an attribute of MPI_COMM_SELF is the first thing that MPI_Finalize does; everything still works then.
int at_finalize(MPI_Comm, int, void*, void*) noexcept {
  return guarded([]() -> int {
    print_table();
    return MPI_SUCCESS;
  });
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

void arm_stats() noexcept { opal_progress_register(when_initialised); }

}  // namespace overlap::speculative
