// What the components of a process share: the parts that the PML owns, for one-sided communication
// and collectives beside it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/completion_queue.hpp"
#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/interrupt_thread.hpp"
#include "ompi/mca/common/overlap/progress_driver.hpp"

namespace overlap {

/// Left by the PML that owns the parts, while they exist.
struct Process {
  Endpoints& endpoints;
  ProgressDriver& driver;
  InterruptThread& interrupts;
  CompletionQueue& completions;
  /// The endpoint of a process, made on first use. @returns  nullptr: not reachable (reported)
  /// @thread  MPI thread, progress lock held
  Endpoint* (*endpoint_of)(ompi_proc_t& proc);
  /// Open MPI agrees on the numbers of communicators by collectives. What carries such messages
  /// carries the PML's era, by which it knows messages of communicators that are gone
  /// (docs/design/streams.md). @thread  progress lock held
  std::uint32_t (*era)();
  void (*note_era)(std::uint32_t era);
};

/// nullptr: the process runs another PML. @thread  written in MPI_Init and MPI_Finalize
extern const Process* process;

/// One number for a process of the job or of those connected to it.
[[nodiscard]] inline std::uint64_t process_number(const opal_process_name_t& name) noexcept {
  return std::uint64_t{name.jobid} << 32U | name.vpid;
}

}  // namespace overlap
