// The one door to the headers of Open MPI's lower layer, OPAL (4.1.x and 5.0.x), and the place
// where the two versions become one. Code above the BTLs takes ompi/mca/common/overlap/openmpi.hpp,
// which adds the OMPI layer; below, nothing of MPI is known.
//
// Include it before anything of Open MPI and never include a header of Open MPI elsewhere. It needs
// the include paths that config/component.am sets (Open MPI's own two, then openmpi/ beside this
// file, which supplies what packages leave out).
//
// What glue uses from here (all in namespace overlap), besides Open MPI's own names:
//
//   OVERLAP_OPENMPI_VERSION        "4.1.4", fixed by configure
//   OVERLAP_SIZE_ROW(type)         a SizeRow for check_running_openmpi (version_check.hpp)
//   OVERLAP_EXPORT                 put it on mca_*_component
//   add_help_folder()              lets opal_show_help find our help-*.txt in a private prefix; in
//                                  the component's register function
//   Received, receive_callback<>() a BTL receive callback of either version
//   make_btl_component(name, ...)  a BTL's structure of either version
//   deliver_message(btl, ...)      hands a message that a BTL has received to who registered for it
//   publish, lookup_published      a BTL's address, through the modex
//   remove_at_end(path)            the launcher's daemon removes a file when this process has ended
//   poll_events(), poll_events_of(...)  one non-blocking turn of libevent (TCP)
//   list_descriptors(), count_events()  what libevent watches
//   start_progress_alone()         opal_progress without the rest of Open MPI, for tests
//   set_event_polling(on)          let opal_progress drive libevent (the default) or leave it to us
//   set_unpack_position(...)       of a convertor that unpacks piece by piece
//   for_each_btl(f)                every initialised BTL module
//   is_shared_memory(btl)          vader, or sm
//   processes_of_node(), local_rank()
//   hostname(proc)                 of a peer, for messages; node_number(name)
//   end_job(code)                  stops the job; does not return
//   OBJ_NEW, OBJ_RETAIN, OPAL_LIST_FOREACH, OPAL_MODEX_* work in C++ as they are
// SPDX-License-Identifier: BSD-3-Clause
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
#include <optional>
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

extern "C" {
#include "opal_config.h"

#include "opal/constants.h"
}

#if OPAL_MAJOR_VERSION == 4
extern "C" {
#include "opal/threads/thread_usage.h"
}
// Their macro passes void * where C++ wants void **.
#undef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR(address, expected, value)                    \
  opal_thread_compare_exchange_strong_ptr((volatile intptr_t*)(address), (void**)(expected), \
                                          (void*)(value))
#elif OPAL_MAJOR_VERSION != 5
#error "Open MPI 4.1.x and 5.0.x are supported."
#endif

// Two headers of 5.0 open extern "C" and never close it; configure looks, and each is closed here
// once.
extern "C" {
#if OPAL_MAJOR_VERSION == 5
#include "opal/mca/base/mca_base_alias.h"
#endif
}
#if OVERLAP_OPENMPI_ALIAS_UNCLOSED
}
#endif

extern "C" {
#if OPAL_MAJOR_VERSION == 5
#include "opal/util/event.h"
#else
#include "opal/mca/event/event.h"
#endif
}
#if OVERLAP_OPENMPI_EVENT_UNCLOSED
}
#endif

extern "C" {
#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/class/opal_pointer_array.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"
}

extern "C" {
#if OPAL_MAJOR_VERSION == 4
#include "opal/mca/pmix/pmix.h"
#if OVERLAP_HAVE_HWLOC
#include "opal/mca/hwloc/base/base.h"
#endif
#define OVERLAP_BTL_VERSION MCA_BTL_BASE_VERSION_3_1_0
#define OVERLAP_MODEX_SCOPE OPAL_PMIX_GLOBAL
#else
#if __has_include("opal/mca/accelerator/accelerator.h")
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/accelerator/base/base.h"
#endif
#include "opal/mca/pmix/pmix-internal.h"
#define OVERLAP_BTL_VERSION MCA_BTL_BASE_VERSION_3_3_0
#define OVERLAP_MODEX_SCOPE PMIX_GLOBAL
#endif
}

namespace overlap {

/// btl_flags: the completion of a put means that its bytes are in the peer's memory. 4.1 has no
/// name for it.
#if OPAL_MAJOR_VERSION == 4
inline constexpr std::uint32_t btl_flag_remote_completion = 0;
#else
inline constexpr std::uint32_t btl_flag_remote_completion = MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION;
#endif

/// Let opal_show_help search the folder where our help-*.txt were installed. Once per process;
/// cheap afterwards.
OVERLAP_EXPORT void add_help_folder() noexcept;

/// One non-blocking turn of Open MPI's event loop.
///
/// @returns  0: libevent does not tell how many handlers ran
/// @thread   progress lock held; event polling by opal_progress switched off
/// (set_event_polling(false))
OVERLAP_EXPORT int poll_events() noexcept;

using KnowsProcess = bool (*)(const opal_process_name_t& name, const void* context) noexcept;
/// The same for a thread beside the MPI threads. Of connections that have come in it serves only
/// those whose process `knows` knows: tcp makes another process's entries in Open MPI's tables,
/// which MPI threads use without a lock.
///
/// @returns  connections that were left out, for MPI threads
/// @thread   as poll_events
[[nodiscard]] OVERLAP_EXPORT std::size_t poll_events_of(KnowsProcess knows,
                                                        const void* context) noexcept;

/// Can list_descriptors list anything? A bundled libevent (2.0) cannot.
inline constexpr bool can_list_descriptors = LIBEVENT_VERSION_NUMBER >= 0x02010200;
/// A descriptor that the event loop watches.
struct WatchedDescriptor {
  int fd;
  bool once;  ///< for a single read: a connection that has come in and not said yet whose it is
  /// The event that reads, if one does: another one is another connection's, whose number the
  /// kernel has given away again. Never looked into.
  const void* reader = nullptr;

  bool operator==(const WatchedDescriptor&) const = default;
};
/// List the descriptors that the event loop watches, each once, in ascending order.
/// @param descriptors  in: anything
/// @returns  is a timer due, which runs in the next turn?
/// @thread  progress lock held; throws std::bad_alloc
OVERLAP_EXPORT bool list_descriptors(std::vector<WatchedDescriptor>& descriptors);
/// @returns  events that the event loop waits for, several for one descriptor perhaps
/// @thread   progress lock held
[[nodiscard]] OVERLAP_EXPORT std::size_t count_events() noexcept;

/// Let opal_progress drive the event loop, or only us.
///
/// The runtime sets the flag anew during MPI_Init; call it again after that (on every progress call
/// is cheap).
inline void set_event_polling(bool by_opal_progress) noexcept {
  opal_progress_set_event_flag(by_opal_progress ? OPAL_EVLOOP_ONCE | OPAL_EVLOOP_NONBLOCK : 0);
}

/// What a BTL hands over, valid only during the callback: the bytes of one fragment, header first,
/// in one or more pieces.
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
#if OPAL_MAJOR_VERSION == 4
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

/// The functions of a BTL component; a null one is left out.
struct BtlComponentFunctions {
  mca_base_open_component_1_0_0_fn_t open;
  mca_base_close_component_1_0_0_fn_t close;
  mca_base_register_component_params_2_0_0_fn_t register_variables;
  mca_btl_base_component_init_fn_t init;
  mca_btl_base_component_progress_fn_t progress;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
/// The structure that Open MPI looks up as mca_btl_<name>_component.
[[nodiscard]] constexpr mca_btl_base_component_t make_btl_component(
    std::string_view name, BtlComponentFunctions functions) noexcept {
  mca_btl_base_component_t component{};
  component.btl_version = mca_base_component_t{OVERLAP_BTL_VERSION};
  std::copy(name.begin(), name.end(), component.btl_version.mca_component_name);
  component.btl_version.mca_component_major_version = OPAL_MAJOR_VERSION;
  component.btl_version.mca_component_minor_version = OPAL_MINOR_VERSION;
  component.btl_version.mca_component_release_version = OPAL_RELEASE_VERSION;
  component.btl_version.mca_open_component = functions.open;
  component.btl_version.mca_close_component = functions.close;
  component.btl_version.mca_register_component_params = functions.register_variables;
  component.btl_init = functions.init;
  component.btl_progress = functions.progress;
  return component;
}
#pragma GCC diagnostic pop

/// Hand one message to a callback of the upper layer; the bytes need to be valid only during the
/// call.
inline void deliver_message(const mca_btl_active_message_callback_t& upper,
                            mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint,
                            mca_btl_base_tag_t tag, const void* bytes,
                            std::size_t length) noexcept {
  mca_btl_base_segment_t segment{};
  segment.seg_addr.pval = const_cast<void*>(bytes);
  segment.seg_len = length;
#if OPAL_MAJOR_VERSION == 4
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

/// The same to the callback that is registered for the tag.
inline void deliver_message(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint,
                            mca_btl_base_tag_t tag, const void* bytes,
                            std::size_t length) noexcept {
  deliver_message(mca_btl_base_active_message_trigger[tag], btl, endpoint, tag, bytes, length);
}

/// Make bytes known to all processes of the job under a component's name (the modex); in the
/// component's init function.
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

/// The node of a process, as the launcher numbers them: the same answer at all processes of a job.
/// @returns  nullopt: the launcher does not say. @thread  MPI thread
[[nodiscard]] inline std::optional<std::uint32_t> node_number(opal_process_name_t name) noexcept {
  int rc = OPAL_SUCCESS;
  std::uint32_t number = 0;
  std::uint32_t* value = &number;
#if OPAL_MAJOR_VERSION == 4
  OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, OPAL_PMIX_NODEID, &name, &value, OPAL_UINT32);
#else
  OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, PMIX_NODEID, &name, &value, PMIX_UINT32);
#endif
  return rc == OPAL_SUCCESS ? std::optional(number) : std::nullopt;
}

/// Let the launcher's daemon remove a file when this process has ended, however it ends.
inline void remove_at_end(const std::string& path) noexcept {
  char* name = const_cast<char*>(path.c_str());
#if OPAL_MAJOR_VERSION == 4
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

/// Go to a byte of the data that a convertor unpacks. Where a call of opal_convertor_unpack ended
/// with a block of a vector, 5.0's puts the next bytes elsewhere; from the beginning it finds the
/// place.
inline void set_unpack_position(opal_convertor_t& convertor, std::size_t position) noexcept {
#if OPAL_MAJOR_VERSION >= 5
  std::size_t begin = 0;
  opal_convertor_set_position(&convertor, &begin);
#endif
  opal_convertor_set_position(&convertor, &position);
}

/// May users' buffers lie in the memory of an accelerator, so that they must not be copied as
/// bytes?
[[nodiscard]] inline bool handles_device_memory() noexcept {
#if OPAL_MAJOR_VERSION == 4
  return opal_cuda_support;
#elif __has_include("opal/mca/accelerator/accelerator.h")
  const char* name = opal_accelerator_base_selected_component.base_version.mca_component_name;
  return std::string_view(name) != "null";
#else
  return false;
#endif
}

/// Make opal_progress() ready where nobody calls MPI_Init. @returns  an error code of Open MPI
[[nodiscard]] inline int start_progress_alone() noexcept {
#if OPAL_MAJOR_VERSION >= 5
  static opal_finalize_domain_t undone_at_the_end;  // opal_progress_init() adds to it
  OBJ_CONSTRUCT(&undone_at_the_end, opal_finalize_domain_t);
  opal_finalize_set_domain(&undone_at_the_end);
#endif
  return opal_progress_init();
}

/// Is it Open MPI's BTL for shared memory?
[[nodiscard]] inline bool is_shared_memory(const mca_btl_base_module_t& btl) noexcept {
  const std::string_view name = btl.btl_component->btl_version.mca_component_name;
  return name == (OPAL_MAJOR_VERSION == 4 ? "vader" : "sm");
}

/// Rank of this process among those of its job on this node.
[[nodiscard]] inline unsigned local_rank() noexcept { return opal_process_info.my_local_rank; }

/// Processes of this job on this node.
[[nodiscard]] inline unsigned processes_of_node() noexcept {
  return static_cast<unsigned>(opal_process_info.num_local_peers) + 1;
}

/// Name of a peer's host, for messages.
[[nodiscard]] inline std::string hostname(const opal_proc_t* proc) {
  char* name = opal_get_proc_hostname(proc);
  std::string text = name ? name : "unknown host";
#if OPAL_MAJOR_VERSION >= 5
  std::free(name);  // 5.0 hands over a copy, 4.1 its own string
#endif
  return text;
}

/// End the job from below MPI: all its processes are asked to stop.
[[noreturn]] inline void end_job(int code) noexcept {
#if OPAL_MAJOR_VERSION == 4
  if (opal_pmix.abort != nullptr) opal_pmix.abort(code, nullptr, nullptr);
#else
  PMIx_Abort(code, nullptr, nullptr, 0);
#endif
  std::_Exit(code);
}

}  // namespace overlap
