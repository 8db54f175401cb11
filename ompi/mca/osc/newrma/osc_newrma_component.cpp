// The component: parameters, selection, and windows made and freed.
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "ompi/mca/common/overlap/foreign_windows.hpp"
#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/waiting.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/version_check.hpp"

#include "osc_newrma_copied.hpp"
#include "osc_newrma_offer.hpp"
#include "osc_newrma_operation.hpp"
#include "osc_newrma_window.hpp"

extern "C" {
extern OVERLAP_EXPORT ompi_osc_base_component_t mca_osc_newrma_component;
}

namespace overlap::newrma {

Tunables tunables;

namespace {

std::span<const TunableRow> rows() {
  static const auto table = tunable_rows(tunables);
  return table;
}

std::span<const CounterRow> counter_rows() {
  using enum CounterClass;
  static const CounterRow table[] = {
      {"direct_operations", "Operations that this process carried out itself, on mapped memory.",
       counter, &counters.direct_operations},
      {"direct_bytes", "Their bytes.", counter, &counters.direct_bytes},
      {"sent_operations", "Operations that went to their target as messages.", counter,
       &counters.sent_operations},
      {"sent_bytes", "Their bytes.", counter, &counters.sent_bytes},
      {"transferred_operations", "Puts and gets that a BTL carried out on the target's memory.",
       counter, &counters.transferred_operations},
      {"transferred_bytes", "Their bytes.", counter, &counters.transferred_bytes},
      {"queued_operations",
       "Operations that waited for their epoch: for a post, a lock, a fence, or an earlier epoch.",
       counter, &counters.queued_operations},
      {"later_operations",
       "Copies on mapped memory that were made after operations to other nodes had been posted.",
       counter, &counters.later_operations},
      {"thread_started", "Operations that the interrupt thread started.", counter,
       &counters.thread_started},
      {"flushes_sent", "Questions to a target whether operations have been applied.", counter,
       &counters.flushes_sent},
      {"asked_operations",
       "Small operations on memory that the program has allocated, and pieces of long ones with "
       "gaps, that a target on the node, inside MPI just then, carried out at once.",
       counter, &counters.asked_operations},
      {"windows_made", "Windows made.", counter, &counters.windows_made},
  };
  return table;
}

const mca_base_component_t* self() { return &mca_osc_newrma_component.osc_version; }

int component_register() noexcept {
  return guarded([]() -> int {
    if (const int rc = register_tunables(self(), rows()); rc != OPAL_SUCCESS) return rc;
    return register_counters(self(), counter_rows());
  });
}

int component_open() noexcept {
  return guarded([]() -> int {
    const SizeRow sizes[] = {OVERLAP_SIZE_ROW(ompi_request_t), OVERLAP_SIZE_ROW(ompi_win_t),
                             OVERLAP_SIZE_ROW(opal_convertor_t)};
    if (!check_running_openmpi("osc/newrma", sizes)) return OPAL_ERR_NOT_AVAILABLE;
    if (const int rc = check_tunables(self(), rows()); rc != OPAL_SUCCESS) return rc;
    return publish_priority(tunables.priority);
  });
}

int component_init(bool, bool) noexcept {
  return guarded([]() -> int {
    if (tunables.stats) {
      request_report(
          {.title = "osc/newrma", .rows = counter_rows(), .table = true, .explain = nullptr});
    }
    return OMPI_SUCCESS;
  });
}

int component_finalize() noexcept {
  forget_lists();
  forget_buffers();
  return OMPI_SUCCESS;
}

/// Has --mca osc left no other component, and MPI would only say that the window is invalid?
bool is_alone() noexcept {
  const std::size_t own = process == nullptr ? 1 : 2;  // with the listener (foreign_windows.hpp)
  return opal_list_get_size(&ompi_osc_base_framework.framework_components) == own;
}

void report_none_taken(const std::string& why) {
  if (tunables.verbose > 0 || is_alone()) show_message("osc/newrma takes no windows: " + why);
}

int component_query(ompi_win_t*, void**, std::size_t, int, ompi_communicator_t* comm, opal_info_t*,
                    int) noexcept {
  return guarded([&]() -> int {
    if (process == nullptr) {
      report_none_taken("it works beside pml/speculative only. Add --mca pml speculative.");
      return OMPI_ERR_NOT_SUPPORTED;
    }
    const Offer offer = offer_of(*comm, tunables.priority);
    if (offer.rank_without == -1) return static_cast<int>(offer.priority);
    report_none_taken("rank " + std::to_string(offer.rank_without) + " of " + comm->c_name +
                      " does not have it. Give all processes the same installation and the same "
                      "parameters for osc.");
    return OMPI_ERR_NOT_SUPPORTED;
  });
}

bool has_info(opal_info_t* info, const char* key) noexcept {
  bool value = false;
  int found = 0;
  if (info == nullptr ||
      opal_info_get_bool(info, const_cast<char*>(key), &value, &found) != OPAL_SUCCESS)
    return false;
  return found != 0 && value;
}

WindowCall window_call(void** base, std::size_t bytes, int displacement_unit, opal_info_t* info,
                       int flavor) noexcept {
  WindowCall call;
  call.displacement_unit = displacement_unit;
  call.bytes = bytes;
  switch (flavor) {
    case MPI_WIN_FLAVOR_ALLOCATE: call.flavor = Flavor::allocate; break;
    case MPI_WIN_FLAVOR_SHARED:
      call.flavor = Flavor::shared;
      call.noncontiguous = has_info(info, "alloc_shared_noncontig");
      break;
    case MPI_WIN_FLAVOR_DYNAMIC:
      call.flavor = Flavor::dynamic;
      call.bytes = 0;
      break;
    default: call.flavor = Flavor::create; call.base = *base;
  }
  return call;
}

Reorder reorder_of(opal_info_t* info) noexcept {
  return {.access_after_access = has_info(info, "access_after_access"),
          .access_after_exposure = has_info(info, "access_after_exposure"),
          .exposure_after_exposure = has_info(info, "exposure_after_exposure"),
          .exposure_after_access = has_info(info, "exposure_after_access")};
}

/// What MPI_Win_get_info shows: the keys that MPI names, and ours.
int show_infos(ompi_win_t& win, Flavor flavor) noexcept {
  struct Key {
    const char* name;
    const char* value;
  };
  static constexpr Key keys[] = {{"no_locks", "false"},
                                 {"accumulate_ordering", "rar,raw,war,waw"},
                                 {"accumulate_ops", "same_op_no_op"},
                                 {"same_size", "false"},
                                 {"same_disp_unit", "false"},
                                 {"access_after_access", "false"},
                                 {"access_after_exposure", "false"},
                                 {"exposure_after_exposure", "false"},
                                 {"exposure_after_access", "false"}};
  for (const Key& each : keys) {
    if (const int rc = show_info(win, each.name, each.value); rc != OPAL_SUCCESS) return rc;
  }
  return flavor == Flavor::shared ? show_info(win, "alloc_shared_noncontig", "false")
                                  : OMPI_SUCCESS;
}

int barrier(ompi_communicator_t& comm) noexcept {
  return comm.c_coll->coll_barrier(&comm, comm.c_coll->coll_barrier_module);
}

/// Parts of a window on the way to becoming one.
struct NewWindow {
  ompi_communicator_t* comm = nullptr;
  std::unique_ptr<Window> window;
  std::unique_ptr<Module> module;

  NewWindow() = default;
  NewWindow(const NewWindow&) = delete;
  NewWindow& operator=(const NewWindow&) = delete;
  ~NewWindow() {
    if (window != nullptr) {
      const Entry entry;
      window = nullptr;
    }
    if (comm != nullptr) ompi_comm_free(&comm);
  }
};

/// A number that no window of any of these processes has had: late messages of one that has been
/// freed must not be taken for this one's.
int agree_on_incarnation(ompi_communicator_t& comm, std::uint32_t& agreed) noexcept {
  static std::atomic<std::uint32_t> next{0};  // orders nothing; two threads may make windows
  const std::uint32_t own = next.load(std::memory_order_relaxed);
  const int rc = comm.c_coll->coll_allreduce(&own, &agreed, 1, MPI_UINT32_T, MPI_MAX, &comm,
                                             comm.c_coll->coll_allreduce_module);
  std::uint32_t seen = own;
  while (rc == OMPI_SUCCESS && seen <= agreed &&
         !next.compare_exchange_weak(seen, agreed + 1, std::memory_order_relaxed)) {}
  return rc;
}

int make_window(ompi_win_t& win, void** base, const WindowCall& call, ompi_communicator_t* comm,
                opal_info_t* info) {
  NewWindow fresh;
  int rc = ompi_comm_dup(comm, &fresh.comm);
  if (rc != OMPI_SUCCESS) return rc;
  auto made_memory = std::make_unique<WindowMemory>();
  if (rc = made_memory->make(*fresh.comm, call); rc != OMPI_SUCCESS) return rc;
  std::uint32_t incarnation = 0;
  if (rc = agree_on_incarnation(*fresh.comm, incarnation); rc != OMPI_SUCCESS) return rc;
  fresh.module = std::make_unique<Module>();
  {
    const Entry entry;
    if (rc = register_receiver_once(); rc != OMPI_SUCCESS) return rc;
    fresh.window = std::make_unique<Window>(win, *fresh.comm, std::move(made_memory), incarnation,
                                            reorder_of(info));
    ++counters.windows_made;
  }
  // No message comes before all can take it.
  if (rc = barrier(*fresh.comm); rc != OMPI_SUCCESS) return rc;
  // Of a dynamic window there is no place for it.
  const WindowMemory& memory = fresh.window->memory();
  if (memory.allocates()) *base = memory.visible_data_of(fresh.window->self());
  *fresh.module = {.super = module_table(), .calls = &nonblocking_table, .window = nullptr};
  fresh.module->window = fresh.window.release();
  fresh.comm = nullptr;
  win.w_osc_module = &fresh.module.release()->super;
  return OMPI_SUCCESS;
}

int component_select(ompi_win_t* win, void** base, std::size_t bytes, int displacement_unit,
                     ompi_communicator_t* comm, opal_info_t* info, int flavor,
                     int* model) noexcept {
  return guarded([&]() -> int {
    claim_window(*win);
    const WindowCall call = window_call(base, bytes, displacement_unit, info, flavor);
    const int rc = make_window(*win, base, call, comm, info);
    if (rc != OMPI_SUCCESS) return rc;
    // Open MPI then refuses locks. Its own component for shared windows lets programs that break
    // their promise run, and there are such.
    if (flavor != MPI_WIN_FLAVOR_SHARED && has_info(info, "no_locks"))
      win->w_flags |= OMPI_WIN_NO_LOCKS;
    if (has_info(info, "same_size")) win->w_flags |= OMPI_WIN_SAME_SIZE;
    if (has_info(info, "same_disp_unit")) win->w_flags |= OMPI_WIN_SAME_DISP;
    *model = MPI_WIN_UNIFIED;
    return show_infos(*win, call.flavor);
  });
}

int free_window(ompi_win_t* win) noexcept {
  Module* const module = &module_of(win);
  Window& window = *module->window;
  {
    const Entry entry;
    if (window.epochs().is_open()) return MPI_ERR_RMA_SYNC;
  }
  const auto quiet = [&window] {
    const Entry entry;
    return !window.epochs().in_use() && window.all_sent();
  };
  poll_until(process->driver, process->completions, quiet);
  ompi_communicator_t* comm = &window.comm();
  const int rc = barrier(*comm);
  poll_until(process->driver, process->completions, quiet);  // answers to who came later
  {
    const Entry entry;
    delete &window;
  }
  delete module;
  win->w_osc_module = nullptr;
  ompi_comm_free(&comm);
  return rc;
}

int query_shared(ompi_win_t* win, int rank, std::size_t* bytes, int* displacement_unit,
                 void* base) noexcept {
  const WindowMemory& memory = window_of(win).memory();
  if (memory.flavor() != Flavor::shared) return MPI_ERR_RMA_FLAVOR;
  Rank asked = rank;
  if (rank == MPI_PROC_NULL) {  // the first that has memory
    asked = 0;
    while (asked + 1 < window_of(win).count() && memory.bytes_of(asked) == 0) ++asked;
  }
  *bytes = memory.bytes_of(asked);
  *displacement_unit = memory.displacement_unit_of(asked);
  *static_cast<void**>(base) =
      *bytes != 0 || rank != MPI_PROC_NULL ? memory.visible_data_of(asked) : nullptr;
  return OMPI_SUCCESS;
}

int attach(ompi_win_t* win, void* base, std::size_t bytes) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    WindowMemory& memory = window_of(win).memory();
    return memory.flavor() == Flavor::dynamic ? memory.attach(base, bytes) : MPI_ERR_RMA_FLAVOR;
  });
}

int detach(ompi_win_t* win, const void* base) noexcept {
  const Entry entry;
  WindowMemory& memory = window_of(win).memory();
  return memory.flavor() == Flavor::dynamic ? memory.detach(base) : MPI_ERR_RMA_FLAVOR;
}

}  // namespace

ompi_osc_base_module_t module_table() noexcept {
  ompi_osc_base_module_t table{};
  table.osc_win_shared_query = query_shared;
  table.osc_win_attach = attach;
  table.osc_win_detach = detach;
  table.osc_free = free_window;
  fill_operations(table);
  fill_epochs(table);
  return table;
}

}  // namespace overlap::newrma

ompi_osc_base_component_t mca_osc_newrma_component = {
    .osc_version = {OMPI_OSC_BASE_VERSION_3_0_0, .mca_component_name = "newrma",
                    .mca_component_major_version = OMPI_MAJOR_VERSION,
                    .mca_component_minor_version = OMPI_MINOR_VERSION,
                    .mca_component_release_version = OMPI_RELEASE_VERSION,
                    .mca_open_component = overlap::newrma::component_open,
                    .mca_close_component = nullptr, .mca_query_component = nullptr,
                    .mca_register_component_params = overlap::newrma::component_register,
                    .mca_component_flags = 0, .reserved = {}},
    .osc_data = {},
    .osc_init = overlap::newrma::component_init,
    .osc_query = overlap::newrma::component_query,
    .osc_select = overlap::newrma::component_select,
    .osc_finalize = overlap::newrma::component_finalize};
