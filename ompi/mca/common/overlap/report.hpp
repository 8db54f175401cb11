// Counters of the whole job, printed when MPI_Finalize starts.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace overlap {

/// Take the reports that components have asked for (request_report) and print each in MPI_Finalize,
/// summed up over the job, to stderr of rank 0.
/// @thread  MPI_Init only
void report_at_finalize();

}  // namespace overlap
