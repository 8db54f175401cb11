// The one door to Open MPI's internal headers (4.1.x and 5.0.x), and the place where the two versions become one.
//
// Include it before anything of Open MPI and never include a header of Open MPI elsewhere. It needs the include paths that
// config/component.am sets (Open MPI's own two, then openmpi/ beside this file, which supplies what packages leave out).
//
// What glue uses from here (all in namespace overlap), besides Open MPI's own names:
//
//   OVERLAP_OPENMPI_VERSION               "4.1.4", fixed by configure (version_check.hpp compares it with the running one)
//   OVERLAP_SIZE_ROW(type)                {"type", sizeof(type), the running library's size}: a SizeRow for check_running_openmpi
//   add_help_folder()                     lets opal_show_help find our help-*.txt in a private prefix. Call it before the first
//                                         opal_show_help (in the component's register function); it is done once per process.
//   Received, receive_callback<handler>() a BTL receive callback of either version as `void handler(const Received &) noexcept`
//   register_receiver<handler>(tag, ctx)  the same through the BML, after bml_add_procs
//   comm_index(comm), comm_lookup(index)  the number of a communicator that the wire carries; the number of a communicator whose
//                                         peers use another number for it does not exist without extended ids (see comm_index)
//   make_pml_module(fill)                 a zeroed module, filled by you by name, the version's extra members filled here
//   make_pml_component(name, functions)   the component's structure
//   make_btl_component(name, functions)   the same for a BTL; make_btl_module(fill) as make_pml_module
//   deliver_message(btl, endpoint, tag, piece) hand a message that a BTL has received to whoever registered for its tag
//   remove_at_end(path)                   let the launcher's daemon remove a file when this process has ended
//   publish(component, bytes), lookup_published(component, name)   a BTL's address, through the modex
//   OVERLAP_EXPORT                        put it on mca_*_component
//   poll_events()                         one non-blocking turn of libevent (TCP); lives in libmca_common_overlap
//   set_event_polling(on)                 let opal_progress drive libevent (true, the default) or leave it to us (false)
//   for_each_btl(f)                       every initialised BTL module: f(mca_btl_base_module_t &)
//   hostname(proc)                        of a peer, for messages
//   abort_job(code)                       MPI_Abort of MPI_COMM_WORLD from glue; does not return
//   OBJ_NEW, OBJ_RETAIN, OBJ_CLASS_INSTANCE, OPAL_LIST_FOREACH, OPAL_MODEX_* work in C++ as they are
//
// A component's structure, in either version:
//
//   extern "C" {
//   OVERLAP_EXPORT mca_pml_base_component_t mca_pml_speculative_component = overlap::make_pml_component(
//       "speculative", {.open = ..., .close = ..., .register_variables = ..., .init = ..., .finalize = ...});
//   }
//
// Facts that differ and need no code: on 4.1 ompi_comm_lookup finds a communicator before its add_comm, on 5.0 only after it;
// REQUEST_PENDING, REQUEST_COMPLETED and ompi_request_complete() are used the same way; vader is called sm in 5.0.
#pragma once

// C++ first: inside extern "C" these would fail to compile.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/overlap_config.h"

#define OVERLAP_EXPORT __attribute__((visibility("default")))
#define OVERLAP_SIZE_ROW(type) \
  { #type, sizeof(type), OBJ_CLASS(type)->cls_sizeof }

// System headers that Open MPI includes: outside extern "C" too, some hold templates under C++.
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define OMPI_SKIP_MPICXX 1

extern "C" {
#include "ompi_config.h"

#include "ompi/constants.h"
}

#if OMPI_MAJOR_VERSION == 4
extern "C" {
#include "opal/threads/thread_usage.h"
}
// Their macro passes void * where C++ wants void **.
#undef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR(address, expected, value)                    \
  opal_thread_compare_exchange_strong_ptr((volatile intptr_t*)(address), (void**)(expected), \
                                          (void*)(value))
#elif OMPI_MAJOR_VERSION == 5
extern "C" {
#include "opal/class/opal_hash_table.h"
}
// ompi_comm_lookup_cid() passes void * where C++ wants void **.
extern "C++" inline int opal_hash_table_get_value_ptr(opal_hash_table_t* table, const void* key,
                                                      std::size_t key_bytes, void* value) {
  return opal_hash_table_get_value_ptr(table, key, key_bytes, static_cast<void**>(value));
}
#else
#error "Open MPI 4.1.x and 5.0.x are supported."
#endif

// Two headers of 5.0 open extern "C" and never close it; configure looks, and each is closed here once.
extern "C" {
#if OMPI_MAJOR_VERSION == 5
#include "opal/mca/base/mca_base_alias.h"
#endif
}
#if OVERLAP_OPENMPI_ALIAS_UNCLOSED
}
#endif

extern "C" {
#if OMPI_MAJOR_VERSION == 5
#include "opal/util/event.h"
#else
#include "opal/mca/event/event.h"
#endif
}
#if OVERLAP_OPENMPI_EVENT_UNCLOSED
}
#endif

extern "C" {
#include "mpi.h"

#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/class/opal_pointer_array.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/group/group.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
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
}

extern "C" {
#if OMPI_MAJOR_VERSION == 4
#include "opal/mca/pmix/pmix.h"
#define OVERLAP_PML_VERSION MCA_PML_BASE_VERSION_2_0_0
#define OVERLAP_BTL_VERSION MCA_BTL_BASE_VERSION_3_1_0
#define OVERLAP_MODEX_SCOPE OPAL_PMIX_GLOBAL
#else
#include "opal/mca/pmix/pmix-internal.h"
#define OVERLAP_PML_VERSION MCA_PML_BASE_VERSION_2_1_0
#define OVERLAP_BTL_VERSION MCA_BTL_BASE_VERSION_3_3_0
#define OVERLAP_MODEX_SCOPE PMIX_GLOBAL
#endif
}

namespace overlap {

inline constexpr bool openmpi_5 = OMPI_MAJOR_VERSION >= 5;

/// btl_flags: the completion of a put means that its bytes are in the peer's memory. 4.1 has no name for it.
#if OMPI_MAJOR_VERSION == 4
inline constexpr std::uint32_t btl_flag_remote_completion = 0;
#else
inline constexpr std::uint32_t btl_flag_remote_completion = MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION;
#endif

/// Let opal_show_help search the folder where our help-*.txt were installed. Once per process; cheap afterwards.
OVERLAP_EXPORT void add_help_folder() noexcept;

/// One non-blocking turn of Open MPI's event loop.
///
/// @returns  0: libevent does not tell how many handlers ran
/// @thread   progress lock held; event polling by opal_progress switched off (set_event_polling(false))
OVERLAP_EXPORT int poll_events() noexcept;

/// Let opal_progress drive the event loop, or only us.
///
/// The runtime sets the flag anew during MPI_Init; call it again after that (on every progress call is cheap).
inline void set_event_polling(bool by_opal_progress) noexcept {
  opal_progress_set_event_flag(by_opal_progress ? OPAL_EVLOOP_ONCE | OPAL_EVLOOP_NONBLOCK : 0);
}

/// What a BTL hands over, valid only during the callback: the bytes of one fragment, header first, in one or more pieces.
struct Received {
  mca_btl_base_module_t* btl;
  mca_btl_base_tag_t tag;
  const mca_btl_base_segment_t* segments;  // [segment_count]
  std::size_t segment_count;
  void* context;  // as given at registration

  [[nodiscard]] const std::byte* data(std::size_t i = 0) const noexcept {
    return static_cast<const std::byte*>(segments[i].seg_addr.pval);
  }
  [[nodiscard]] std::size_t size(std::size_t i = 0) const noexcept { return segments[i].seg_len; }
  [[nodiscard]] std::size_t total_size() const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < segment_count; ++i) {
      bytes += size(i);
    }
    return bytes;
  }
};

/// The BTL receive callback of this Open MPI that calls handler(const Received &), inlined.
template <auto handler>
[[nodiscard]] constexpr mca_btl_base_module_recv_cb_fn_t receive_callback() noexcept {
  static_assert(std::is_nothrow_invocable_v<decltype(handler), const Received&>);
#if OMPI_MAJOR_VERSION == 4
  return [](mca_btl_base_module_t* btl, mca_btl_base_tag_t tag,
            mca_btl_base_descriptor_t* descriptor, void* context) {
    handler(Received{btl, tag, descriptor->des_segments, descriptor->des_segment_count, context});
  };
#else
  return [](mca_btl_base_module_t* btl, const mca_btl_base_receive_descriptor_t* descriptor) {
    handler(Received{btl, descriptor->tag, descriptor->des_segments, descriptor->des_segment_count,
                     descriptor->cbdata});
  };
#endif
}

/// Register a handler for one BTL tag (0x40..0x5f are a PML's) with every BTL; after bml_add_procs.
///
/// @returns  OMPI_SUCCESS or an error code of Open MPI
template <auto handler>
[[nodiscard]] int register_receiver(mca_btl_base_tag_t tag, void* context = nullptr) {
  return mca_bml.bml_register(tag, receive_callback<handler>(), context);
}

/// The number under which this process knows a communicator; its peers use the same one, except (5.0) for communicators made from
/// an MPI session's group, which Open MPI only makes for PMLs that set MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID.
[[nodiscard]] inline std::uint32_t comm_index(const ompi_communicator_t* comm) noexcept {
#if OMPI_MAJOR_VERSION == 4
  return comm->c_contextid;
#else
  return comm->c_index;
#endif
}

/// @returns  the communicator, or null: not made yet here (keep the message until add_comm), or gone
[[nodiscard]] inline ompi_communicator_t* comm_lookup(std::uint32_t index) noexcept {
  return ompi_comm_lookup(index);
}

/// A PML module with everything null but what the version needs besides; fill(module) sets the members by name.
template <class Fill>
[[nodiscard]] mca_pml_base_module_t make_pml_module(Fill&& fill) noexcept {
  mca_pml_base_module_t module{};
#if OMPI_MAJOR_VERSION == 4
  module.pml_ft_event = [](int) -> int { return OMPI_SUCCESS; };
#else
  module.pml_revoke_comm = [](ompi_communicator_t*, bool) -> int { return OMPI_SUCCESS; };
#endif
  std::forward<Fill>(fill)(module);
  return module;
}

/// The functions of a PML component; a null one is left out.
struct PmlComponentFunctions {
  mca_base_open_component_1_0_0_fn_t open;
  mca_base_close_component_1_0_0_fn_t close;
  mca_base_register_component_params_2_0_0_fn_t register_variables;
  mca_pml_base_component_init_fn_t init;
  mca_pml_base_component_finalize_fn_t finalize;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
/// The structure that Open MPI looks up as mca_pml_<name>_component.
[[nodiscard]] constexpr mca_pml_base_component_t make_pml_component(
    std::string_view name, PmlComponentFunctions functions) noexcept {
  mca_pml_base_component_t component{};
  component.pmlm_version = mca_base_component_t{OVERLAP_PML_VERSION};
  std::copy(name.begin(), name.end(), component.pmlm_version.mca_component_name);
  component.pmlm_version.mca_component_major_version = OMPI_MAJOR_VERSION;
  component.pmlm_version.mca_component_minor_version = OMPI_MINOR_VERSION;
  component.pmlm_version.mca_component_release_version = OMPI_RELEASE_VERSION;
  component.pmlm_version.mca_open_component = functions.open;
  component.pmlm_version.mca_close_component = functions.close;
  component.pmlm_version.mca_register_component_params = functions.register_variables;
  component.pmlm_init = functions.init;
  component.pmlm_finalize = functions.finalize;
  return component;
}

/// The functions of a BTL component; a null one is left out.
struct BtlComponentFunctions {
  mca_base_open_component_1_0_0_fn_t open;
  mca_base_close_component_1_0_0_fn_t close;
  mca_base_register_component_params_2_0_0_fn_t register_variables;
  mca_btl_base_component_init_fn_t init;
  mca_btl_base_component_progress_fn_t progress;
};

/// The structure that Open MPI looks up as mca_btl_<name>_component.
[[nodiscard]] constexpr mca_btl_base_component_t make_btl_component(
    std::string_view name, BtlComponentFunctions functions) noexcept {
  mca_btl_base_component_t component{};
  component.btl_version = mca_base_component_t{OVERLAP_BTL_VERSION};
  std::copy(name.begin(), name.end(), component.btl_version.mca_component_name);
  component.btl_version.mca_component_major_version = OMPI_MAJOR_VERSION;
  component.btl_version.mca_component_minor_version = OMPI_MINOR_VERSION;
  component.btl_version.mca_component_release_version = OMPI_RELEASE_VERSION;
  component.btl_version.mca_open_component = functions.open;
  component.btl_version.mca_close_component = functions.close;
  component.btl_version.mca_register_component_params = functions.register_variables;
  component.btl_init = functions.init;
  component.btl_progress = functions.progress;
  return component;
}
#pragma GCC diagnostic pop

/// Hand one message to the upper layer's callback for its tag; the bytes need to be valid only during the call.
inline void deliver_message(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint,
                            mca_btl_base_tag_t tag, const void* bytes,
                            std::size_t length) noexcept {
  const mca_btl_active_message_callback_t& upper = mca_btl_base_active_message_trigger[tag];
  mca_btl_base_segment_t segment{};
  segment.seg_addr.pval = const_cast<void*>(bytes);
  segment.seg_len = length;
#if OMPI_MAJOR_VERSION == 4
  static_cast<void>(endpoint);
  mca_btl_base_descriptor_t descriptor;  // its object header is not looked at
  descriptor.des_segments = &segment;
  descriptor.des_segment_count = 1;
  upper.cbfunc(btl, tag, &descriptor, upper.cbdata);
#else
  const mca_btl_base_receive_descriptor_t descriptor{endpoint, &segment, 1, tag, upper.cbdata};
  upper.cbfunc(btl, &descriptor);
#endif
}

/// Make bytes known to all processes of the job under a component's name (the modex); in the component's init function.
/// @returns  OPAL_SUCCESS or an error code of Open MPI
[[nodiscard]] inline int publish(const mca_base_component_t* component,
                                 std::span<const std::byte> bytes) noexcept {
  int rc = OPAL_SUCCESS;
  OPAL_MODEX_SEND(rc, OVERLAP_MODEX_SCOPE, const_cast<mca_base_component_t*>(component),
                  const_cast<std::byte*>(bytes.data()), bytes.size());
  return rc;
}

/// What another process has published under this component's name; empty when nothing.
[[nodiscard]] inline std::vector<std::byte> lookup_published(const mca_base_component_t* component,
                                                             opal_process_name_t& name) {
  int rc = OPAL_SUCCESS;
  void* data = nullptr;
  std::size_t size = 0;
  OPAL_MODEX_RECV(rc, const_cast<mca_base_component_t*>(component), &name, &data, &size);
  std::vector<std::byte> bytes;
  if (rc == OPAL_SUCCESS && data != nullptr) {
    bytes.assign(static_cast<std::byte*>(data), static_cast<std::byte*>(data) + size);
  }
  std::free(data);
  return bytes;
}

/// Let the launcher's daemon remove a file when this process has ended, however it ends.
inline void remove_at_end(const std::string& path) noexcept {
  char* name = const_cast<char*>(path.c_str());
#if OMPI_MAJOR_VERSION == 4
  if (opal_pmix.register_cleanup != nullptr) opal_pmix.register_cleanup(name, false, false, false);
#else
  opal_pmix_register_cleanup(name, false, false, false);
#endif
}

/// Call visit(mca_btl_base_module_t &) for each BTL module that was initialised.
template <class Visit>
void for_each_btl(Visit&& visit) {
  auto* end = &mca_btl_base_modules_initialized.opal_list_sentinel;
  for (auto* item = end->opal_list_next; item != end; item = item->opal_list_next) {
    visit(*reinterpret_cast<mca_btl_base_selected_module_t*>(const_cast<opal_list_item_t*>(item))
               ->btl_module);
  }
}

/// Name of a peer's host, for messages.
[[nodiscard]] inline std::string hostname(const ompi_proc_t* proc) {
  char* name = opal_get_proc_hostname(&proc->super);
  std::string text = name ? name : "unknown host";
#if OMPI_MAJOR_VERSION >= 5
  std::free(name);  // 5.0 hands over a copy, 4.1 its own string
#endif
  return text;
}

/// End the job as MPI_Abort(MPI_COMM_WORLD, code) does.
[[noreturn]] inline void abort_job(int code) noexcept {
  ompi_mpi_abort(&ompi_mpi_comm_world.comm, code);
  std::abort();
}

}  // namespace overlap
