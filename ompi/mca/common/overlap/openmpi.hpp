// The one door to the headers of Open MPI's upper layer, OMPI, for code above the BTLs; and where
// its versions become one. It brings the lower layer along (opal/mca/common/overlap/openmpi.hpp).
//
//   register_receiver<handler>(tag)  receive_callback<handler>() through the BML, after
//                                    bml_add_procs
//   context_of(comm)                 the number of a communicator that the wire carries
//   group_number(comm)               of one that was made from a group (MPI sessions, 5.0)
//   is_of_session(comm)              made from such a one
//   make_pml_module(fill)            a zeroed module, filled by you by name, the version's extra
//                                    members filled here
//   show_info(win, key, value)       a window's info, as its component sees it
//   OVERLAP_COLL_VERSION             of the framework of collectives
//   hostname(proc), abort_job(code)  as below, for an ompi_proc_t and as MPI_Abort
//
// Facts that differ and need no code: on 4.1 ompi_comm_lookup finds a communicator before its
// add_comm, on 5.0 only after it; REQUEST_PENDING, REQUEST_COMPLETED and ompi_request_complete()
// are used the same way; vader is called sm in 5.0.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#define OMPI_SKIP_MPICXX 1

extern "C" {
#include "ompi_config.h"

#include "mpi.h"
#include "ompi/constants.h"
}

#if OMPI_MAJOR_VERSION == 5
extern "C" {
#include "opal/class/opal_hash_table.h"
}
// ompi_comm_lookup_cid() passes void * where C++ wants void **.
extern "C++" inline int opal_hash_table_get_value_ptr(opal_hash_table_t* table, const void* key,
                                                      std::size_t key_bytes, void* value) {
  return opal_hash_table_get_value_ptr(table, key, key_bytes, static_cast<void**>(value));
}
#endif

extern "C" {
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/datatype/ompi_datatype_internal.h"
}
// ompi/op/op.h passes void * where C++ wants char *.
extern "C++" inline int ompi_datatype_copy_content_same_ddt(const ompi_datatype_t* type, int count,
                                                            void* to, void* from) {
  return ompi_datatype_copy_content_same_ddt(type, static_cast<std::size_t>(count),
                                             static_cast<char*>(to), static_cast<char*>(from));
}

extern "C" {
#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/base/osc_base_obj_convert.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"
#include "ompi/win/win.h"
}

#if OMPI_MAJOR_VERSION == 4
#define OVERLAP_PML_VERSION MCA_PML_BASE_VERSION_2_0_0
#define OVERLAP_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#else
#define OVERLAP_PML_VERSION MCA_PML_BASE_VERSION_2_1_0
#define OVERLAP_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#endif

namespace overlap {

/// Has this process entered MPI_Finalize? From then on its peers may leave it and close their
/// connections at any time.
[[nodiscard]] inline bool is_finalizing() noexcept {
  return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED;
}

/// Has MPI_Finalize deleted the attributes of MPI_COMM_SELF? The program does nothing more.
[[nodiscard]] inline bool is_past_self_destruct() noexcept {
  return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
}

/// For unit tests, which call no MPI_Init: let MPI's own checks believe that it was called.
inline void pretend_initialized(bool initialized) noexcept {
  ompi_mpi_state = initialized ? OMPI_MPI_STATE_INIT_COMPLETED : OMPI_MPI_STATE_NOT_INITIALIZED;
#if OMPI_MAJOR_VERSION == 5
  ompi_instance_count = initialized ? 1 : 0;
#endif
}

/// Register a handler for one BTL tag (0x40..0x5f are a PML's) with every BTL; after bml_add_procs.
///
/// @returns  OMPI_SUCCESS or an error code of Open MPI
template <auto handler>
[[nodiscard]] int register_receiver(mca_btl_base_tag_t tag, void* context = nullptr) {
  return mca_bml.bml_register(tag, receive_callback<handler>(), context);
}

#if OMPI_MAJOR_VERSION == 4
inline constexpr std::uint16_t max_context = UINT16_MAX;
inline constexpr unsigned group_contexts = 1;  // nobody asks
#else
inline constexpr std::uint16_t max_context = 0x7fff;  // above are those made from groups
inline constexpr unsigned group_contexts = UINT16_MAX - max_context;
#endif

/// May several threads be in MPI at a time?
[[nodiscard]] inline bool is_thread_multiple() noexcept {
#if OMPI_MAJOR_VERSION == 4
  return ompi_mpi_thread_multiple;
#else
  return ompi_mpi_thread_multiple || opal_using_threads();  // an MPI session may ask for it, too
#endif
}

/// Processes of this job.
[[nodiscard]] inline std::uint32_t size_of_job() noexcept {
#if OMPI_MAJOR_VERSION == 4
  return static_cast<std::uint32_t>(ompi_comm_size(&ompi_mpi_comm_world.comm));
#else
  return opal_process_info.num_procs;  // with MPI sessions alone there is no MPI_COMM_WORLD
#endif
}

/// Before Open MPI frees the communicators that are left, at the end of MPI_Finalize or of the last
/// MPI session, call this. On 4.1 there are none of sessions, and MPI_COMM_SELF goes before.
inline void before_communicators_go(void (*function)()) noexcept {
#if OMPI_MAJOR_VERSION == 4
  static_cast<void>(function);
#else
  opal_finalize_register_cleanup(function);
#endif
}

/// Is this job to go on when processes fail (mpirun --with-ft ulfm, 5.0)?
[[nodiscard]] inline bool survives_failures() noexcept {
#if OMPI_MAJOR_VERSION > 4 && OPAL_ENABLE_FT_MPI
  return ompi_ftmpi_enabled;
#else
  return false;
#endif
}

/// Of a communicator that was made from a group alone (MPI_Comm_create_from_group): what PMIx has
/// numbered it, over all groups of a launcher, downwards; the same at all its processes, whose
/// indices differ. Before 5.0.7 an intercommunicator from groups had its leaders' number, and one
/// of its own below that (cid_sub, otherwise 0).
/// Nothing of a communicator that came from another one.
[[nodiscard]] inline std::optional<std::uint64_t> group_number(
    const ompi_communicator_t* comm) noexcept {
#if OMPI_MAJOR_VERSION == 4
  static_cast<void>(comm);
#else
  if (!OMPI_COMM_IS_GLOBAL_INDEX(comm)) {
    const auto& id = comm->c_contextid;
    return id.cid_base ^ id.cid_sub.u64;
  }
#endif
  return std::nullopt;
}

/// Was it made for an MPI session (5.0)? No meeting keeps its processes when they have freed it.
[[nodiscard]] inline bool is_of_session(const ompi_communicator_t* comm) noexcept {
#if OMPI_MAJOR_VERSION == 4
  static_cast<void>(comm);
  return false;
#else
  if (group_number(comm)) return true;
  const bool has_world = ompi_mpi_state != OMPI_MPI_STATE_NOT_INITIALIZED &&
                         ompi_mpi_state < OMPI_MPI_STATE_FINALIZE_COMPLETED;
  return comm->instance != nullptr &&
         !(has_world && comm->instance == ompi_mpi_comm_world.comm.instance);
#endif
}

/// The number that all processes of a communicator use for it while it exists.
[[nodiscard]] inline std::uint32_t context_of(const ompi_communicator_t* comm) noexcept {
#if OMPI_MAJOR_VERSION == 4
  return comm->c_contextid;
#else
  if (const auto number = group_number(comm))
    return max_context + 1U + static_cast<std::uint32_t>(*number % group_contexts);
  return comm->c_index;
#endif
}

/// A PML module with everything null but what the version needs besides; fill(module) sets the
/// members by name.
template <class Fill>
[[nodiscard]] mca_pml_base_module_t make_pml_module(Fill&& fill) noexcept {
  mca_pml_base_module_t module{};
#if OMPI_MAJOR_VERSION == 4
  module.pml_ft_event = [](int) -> int { return OMPI_SUCCESS; };
#else
  module.pml_revoke_comm = [](ompi_communicator_t*, bool) -> int { return OMPI_SUCCESS; };
  module.pml_flags = MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID;  // context_of() copes with these
#endif
  std::forward<Fill>(fill)(module);
  return module;
}

/// Name of a peer's host, for messages.
[[nodiscard]] inline std::string hostname(const ompi_proc_t* proc) {
  return hostname(&proc->super);
}

/// Let MPI_Win_get_info show a key of at most 27 characters, with this value where the program has
/// given none.
/// @returns  OMPI_SUCCESS or an error code of Open MPI
[[nodiscard]] inline int show_info(ompi_win_t& win, const char* key, const char* value) noexcept {
#if OMPI_MAJOR_VERSION == 4
  using Text = char*;
#else
  using Text = const char*;
#endif
  const auto keep = [](opal_infosubscriber_t*, Text, Text given) -> Text { return given; };
  return opal_infosubscribe_subscribe(&win.super, const_cast<Text>(key), const_cast<Text>(value),
                                      keep);
}

/// End the job as MPI_Abort(MPI_COMM_WORLD, code) does.
[[noreturn]] inline void abort_job(int code) noexcept {
  ompi_mpi_abort(&ompi_mpi_comm_world.comm, code);
  // It returns where another thread is ending the job already, which may take its time.
  constexpr timespec time_for_the_other{5, 0};
  nanosleep(&time_for_the_other, nullptr);
  std::_Exit(code);
}

}  // namespace overlap
