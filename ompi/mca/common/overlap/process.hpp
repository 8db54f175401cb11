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
};

/// nullptr: the process runs another PML. @thread  written in MPI_Init and MPI_Finalize
extern const Process* process;

}  // namespace overlap
