// Requests: their classes, completion, freeing and cancelling.
#include "pml_speculative.hpp"

namespace overlap::speculative {
namespace {

int free_send(ompi_request_t** handle) noexcept {
  auto& request = *reinterpret_cast<SendRequest*>(*handle);
  {
    const Entry entry;
    request.freed = true;
    request.base.req_base.req_free_called = true;
    if (request.protocol_done) release(request);
  }
  *handle = &ompi_request_null.request;
  return OMPI_SUCCESS;
}

int free_receive(ompi_request_t** handle) noexcept {
  auto& request = *reinterpret_cast<ReceiveRequest*>(*handle);
  {
    const Entry entry;
    request.freed = true;
    request.base.req_base.req_free_called = true;
    if (request.protocol_done) release(request);
  }
  *handle = &ompi_request_null.request;
  return OMPI_SUCCESS;
}

// MPI_Cancel of sends is deprecated and never succeeds here, as in the other PMLs.
int cancel_send(ompi_request_t*, int) noexcept { return OMPI_SUCCESS; }

int cancel_receive(ompi_request_t* handle, int) noexcept {
  auto& request = *reinterpret_cast<ReceiveRequest*>(handle);
  return guarded([&]() -> int {
    const Entry entry;
    if (!request.protocol_done && is_posted(request.op.state)) {
      pml->protocol.cancel(protocol_of(request.base.req_base.req_comm), request.op);
      pml->run_actions();
    }
    return OMPI_SUCCESS;
  });
}

void construct_send(SendRequest* request) {
  new (&request->op) SendOp;
  request->registration = {};
  request->transfer = {};
  request->fragments_out = 0;
  request->lent = false;
  request->ended = false;
  request->protocol_done = true;
  request->freed = false;
  request->base.req_base.req_type = MCA_PML_REQUEST_SEND;
  request->ompi().req_type = OMPI_REQUEST_PML;
  request->ompi().req_start = start;
  request->ompi().req_free = free_send;
  request->ompi().req_cancel = cancel_send;
}

void construct_receive(ReceiveRequest* request) {
  new (&request->op) ReceiveOp;
  request->registration = {};
  request->transfer = {};
  request->protocol_done = true;
  request->freed = false;
  request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
  request->ompi().req_type = OMPI_REQUEST_PML;
  request->ompi().req_start = start;
  request->ompi().req_free = free_receive;
  request->ompi().req_cancel = cancel_receive;
}

}  // namespace

void release(SendRequest& request) noexcept {
  pml->deregister(request.registration);
  MCA_PML_BASE_SEND_REQUEST_FINI(&request.base);
  if (!ompi_mpi_thread_multiple && pml->spare_send == nullptr) {
    pml->spare_send = &request;
    return;
  }
  opal_free_list_return(&mca_pml_base_send_requests,
                        reinterpret_cast<opal_free_list_item_t*>(&request));
}

void release(ReceiveRequest& request) noexcept {
  pml->deregister(request.registration);
  MCA_PML_BASE_RECV_REQUEST_FINI(&request.base);
  if (!ompi_mpi_thread_multiple && pml->spare_receive == nullptr) {
    pml->spare_receive = &request;
    return;
  }
  opal_free_list_return(&mca_pml_base_recv_requests,
                        reinterpret_cast<opal_free_list_item_t*>(&request));
}

/// Complete towards MPI. Requests with a callback (of a collective, of one-sided communication) wait until the lock is free,
/// because the callback may start new communication.
void Pml::finish_mpi(ompi_request_t& request) {
  ++events;
  if (request.req_complete_cb != nullptr) [[unlikely]] {
    callbacks_.push_back(&request);
    return;
  }
  if (!opal_using_threads() && request.req_complete == REQUEST_PENDING) [[likely]] {
    request.req_complete =
        REQUEST_COMPLETED;  // nobody waits through a synchronisation object, and nobody else can come to
    return;
  }
  ompi_request_complete(&request, true);
}

void Pml::run_callbacks() noexcept {
  for (;;) {
    std::vector<ompi_request_t*> ready;
    {
      progress_lock.lock();
      ready.swap(callbacks_);
      progress_lock.unlock();
    }
    if (ready.empty()) return;
    for (ompi_request_t* request : ready) ompi_request_complete(request, true);
  }
}

void Pml::complete(SendRequest& request) {
  if (request.lent) [[unlikely]] {
    request.ended = true;
    return;
  }
  deregister(request.registration);
  request.protocol_done = true;
  request.base.req_base.req_pml_complete = true;
  const bool buffered = request.base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED &&
                        request.base.req_addr != request.base.req_base.req_addr;
  if (buffered) {
    // MPI_Bsend: complete for MPI since its start; now its part of the attached buffer is free again.
    mca_pml_base_bsend_request_fini(&request.ompi());
    if (request.freed) release(request);
    return;
  }
  if (request.freed) {
    release(request);
    return;
  }
  request.ompi().req_status.MPI_ERROR = OMPI_SUCCESS;
  finish_mpi(request.ompi());
}

void Pml::buffer_returned(SendRequest& request) {
  ++events;
  request.lent = false;
  if (!request.ended) return;
  request.ended = false;
  complete(request);
}

void Pml::complete_when_sent(SendRequest& request, PeerLink& link) {
  if (!link.may_keep || link.unsent->messages == 0) {
    complete(request);
  } else {
    unsent_requests_.push_back({&request, link.unsent});
    more_to_poll_ = true;
  }
}

void Pml::complete(ReceiveRequest& request, bool cancelled) {
  deregister(request.registration);
  request.protocol_done = true;
  request.base.req_base.req_pml_complete = true;
  ompi_status_public_t& status = request.ompi().req_status;
  status.MPI_ERROR = OMPI_SUCCESS;
  status._cancelled = cancelled ? 1 : 0;
  if (!cancelled) {
    const ReceiveOp& op = request.op;
    status.MPI_SOURCE = op.matched_source;
    status.MPI_TAG = op.matched_tag;
    status._ucount = op.take_bytes();
    request.base.req_bytes_packed = op.length_bytes;
    if (op.truncated()) [[unlikely]]
      status.MPI_ERROR = MPI_ERR_TRUNCATE;
  }
  if (request.freed) [[unlikely]] {
    release(request);
    return;
  }
  finish_mpi(request.ompi());
}

void wait_complete(ompi_request_t& request) noexcept {
  if (opal_using_threads()) {
    ompi_request_wait_completion(&request);
    return;
  }
  // The BTLs are asked several times for each turn of opal_progress, which does much that a blocked call does not wait for.
  constexpr int polls = 8;
  while (!REQUEST_COMPLETE(&request)) {
    for (int i = 0; i < polls && !REQUEST_COMPLETE(&request); ++i) {
      const Entry entry;
      pml->poll();
    }
    if (!REQUEST_COMPLETE(&request)) opal_progress();
  }
}

}  // namespace overlap::speculative

using overlap::speculative::ReceiveRequest;
using overlap::speculative::SendRequest;

extern "C" {
opal_class_t overlap_speculative_send_request_class = {
    .cls_name = "overlap_speculative_send_request_t",
    .cls_parent = OBJ_CLASS(mca_pml_base_send_request_t),
    .cls_construct =
        [](opal_object_t* object) {
          overlap::speculative::construct_send(reinterpret_cast<SendRequest*>(object));
        },
    .cls_destruct = nullptr,
    .cls_initialized = 0,
    .cls_depth = 0,
    .cls_construct_array = nullptr,
    .cls_destruct_array = nullptr,
    .cls_sizeof = sizeof(SendRequest)};

opal_class_t overlap_speculative_receive_request_class = {
    .cls_name = "overlap_speculative_receive_request_t",
    .cls_parent = OBJ_CLASS(mca_pml_base_recv_request_t),
    .cls_construct =
        [](opal_object_t* object) {
          overlap::speculative::construct_receive(reinterpret_cast<ReceiveRequest*>(object));
        },
    .cls_destruct = nullptr,
    .cls_initialized = 0,
    .cls_depth = 0,
    .cls_construct_array = nullptr,
    .cls_destruct_array = nullptr,
    .cls_sizeof = sizeof(ReceiveRequest)};
}
