// The module: life cycle and progress.
#include "pml_speculative.hpp"

namespace overlap::speculative {

int register_callbacks();

int enable(bool on) noexcept {
  if (!on) return OMPI_SUCCESS;
  return guarded([]() -> int {
    pml = new Pml(tunables);
    progress_lock.start(ompi_mpi_thread_multiple ? ProgressLock::Mode::shared
                                                 : ProgressLock::Mode::biased);
    const auto init_list = [](opal_free_list_t* list, std::size_t bytes, opal_class_t* item_class) {
      return opal_free_list_init(list, bytes, opal_cache_line_size, item_class, 0,
                                 opal_cache_line_size, 4, -1, 64, nullptr, 0, nullptr, nullptr,
                                 nullptr);
    };
    // The PML that is chosen owns these two lists, with its own request classes (MPI_Bsend and debuggers read them).
    int rc = init_list(&mca_pml_base_send_requests, sizeof(SendRequest),
                       &overlap_speculative_send_request_class);
    if (rc == OPAL_SUCCESS)
      rc = init_list(&mca_pml_base_recv_requests, sizeof(ReceiveRequest),
                     &overlap_speculative_receive_request_class);
    if (rc != OPAL_SUCCESS) return rc;
    opal_progress_register(progress);
    if (tunables.stats) report_counters("pml/speculative", counter_rows());
    return OMPI_SUCCESS;
  });
}

int add_procs(ompi_proc_t** procs, std::size_t count) noexcept {
  if (count == 0) return OMPI_SUCCESS;
  return guarded([&]() -> int {
    if (const int rc = mca_pml_base_pml_check_selected("speculative", procs, count);
        rc != OMPI_SUCCESS)
      return rc;
    opal_bitmap_t reachable;
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    int rc = opal_bitmap_init(&reachable, static_cast<int>(count));
    if (rc == OMPI_SUCCESS) rc = mca_bml.bml_add_procs(count, procs, &reachable);
    OBJ_DESTRUCT(&reachable);
    if (rc == OMPI_ERR_UNREACH) show_topic("unreachable", "another process of the job");
    if (rc != OMPI_SUCCESS) return rc;
    for_each_btl([&rc](mca_btl_base_module_t& btl) {
      if ((btl.btl_flags & MCA_BTL_FLAGS_SEND) == 0 ||
          btl.btl_eager_limit >= header_max_bytes + key_max_bytes)
        return;
      const char* name = btl.btl_component->btl_version.mca_component_name;
      show_topic("eager limit too small", name, btl.btl_eager_limit, name,
                 header_max_bytes + key_max_bytes);
      rc = OMPI_ERR_BAD_PARAM;
    });
    if (rc != OMPI_SUCCESS) return rc;
    const Entry entry;
    pml->own_btl_progress();
    return register_callbacks();
  });
}

int del_procs(ompi_proc_t** procs, std::size_t count) noexcept {
  return mca_bml.bml_del_procs(count, procs);
}

/// The part of polling that a process on shared memory alone does not need.
int Pml::poll_more() {
  const std::uint64_t before = events;
  if (event_driven_) {
    set_event_polling(false);  // somebody may have set it anew
    poll_events();
  }
  if (has_pending()) retry_pending();
  more_to_poll_ = event_driven_ || has_pending();
  return static_cast<int>(events - before);
}

/// What opal_progress calls.
int progress() noexcept {
  // From inside ourselves: something under the lock waits in opal_progress (a new connection, a message to the user).
  if (progress_lock.held_by_me_hint()) [[unlikely]]
    return 0;
  const Entry entry;
  return pml->poll();
}

}  // namespace overlap::speculative
