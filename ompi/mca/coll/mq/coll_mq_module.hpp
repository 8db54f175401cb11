// The module of a communicator: what Open MPI calls, and what it called before.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

namespace overlap::coll_mq {

class Communicator;

/// The first member is what Open MPI knows.
struct Module {
  mca_coll_base_module_t super;
  Communicator* communicator;  ///< nullptr: not enabled
};

/// Show other jobs what this process has been told to do (MPI_Comm_spawn, MPI_Comm_connect).
/// @thread  before the processes of the job meet in MPI_Init
void publish_settings() noexcept;

/// @returns  nullptr: this communicator is left to others. @thread  MPI thread
[[nodiscard]] mca_coll_base_module_t* make_module(ompi_communicator_t& comm);

[[nodiscard]] inline Communicator& communicator_of(mca_coll_base_module_t* module) noexcept {
  return *reinterpret_cast<Module*>(module)->communicator;
}

// What goes into the table (coll_mq_barrier.cpp).
void fill_barriers(mca_coll_base_module_t& table) noexcept;

}  // namespace overlap::coll_mq
