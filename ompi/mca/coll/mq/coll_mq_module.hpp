// The module of a communicator: what Open MPI calls, and what it called before.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

#include <optional>

#include "opal/fabric/fabric.hpp"

namespace overlap::coll_mq {

class Communicator;

/// What Open MPI would call without this component.
template <class Function>
struct Previous {
  Function function;
  mca_coll_base_module_t* module;

  void save(Function made, mca_coll_base_module_t* by) noexcept {
    if (made == nullptr) return;
    function = made;
    module = by;
    OBJ_RETAIN(module);
  }
  void drop() noexcept {
    if (module != nullptr) OBJ_RELEASE(module);
    *this = {};
  }
};

/// The first member is what Open MPI knows.
struct Module {
  mca_coll_base_module_t super;
  Communicator* communicator;  ///< nullptr: not enabled
  struct {
    Previous<mca_coll_base_module_ibcast_fn_t> ibcast;
    Previous<mca_coll_base_module_iallreduce_fn_t> iallreduce;
    Previous<mca_coll_base_module_ireduce_fn_t> ireduce;
    Previous<mca_coll_base_module_ialltoall_fn_t> ialltoall;
    Previous<mca_coll_base_module_iallgather_fn_t> iallgather;
  } before;
};

/// Show other jobs what this process has been told to do (MPI_Comm_spawn, MPI_Comm_connect).
/// @thread  before the processes of the job meet in MPI_Init
void publish_settings() noexcept;
/// Of a process's device. @returns  nothing: it has none
[[nodiscard]] std::optional<fabric::Address> address_of(opal_process_name_t name);

/// @returns  nullptr: this communicator is left to others. @thread  MPI thread
[[nodiscard]] mca_coll_base_module_t* make_module(ompi_communicator_t& comm);

[[nodiscard]] inline Module& module_of(mca_coll_base_module_t* module) noexcept {
  return *reinterpret_cast<Module*>(module);
}
[[nodiscard]] inline Communicator& communicator_of(mca_coll_base_module_t* module) noexcept {
  return *module_of(module).communicator;
}

// What goes into the table: barriers (coll_mq_barrier.cpp) ...
void fill_barriers(mca_coll_base_module_t& table) noexcept;
/// ... and collectives with data (coll_mq_data.cpp), in front of what is there.
void fill_data(Module& module, const mca_coll_base_comm_coll_t& before) noexcept;
void drop_before(Module& module) noexcept;

}  // namespace overlap::coll_mq
