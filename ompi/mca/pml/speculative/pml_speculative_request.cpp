// Requests: their classes, completion, freeing and cancelling.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

namespace overlap::speculative {
namespace {

// One request of each kind that a blocking call of a single-threaded process reuses.
SendRequest* spare_send = nullptr;
ReceiveRequest* spare_receive = nullptr;

template <class Request>
int free_request(ompi_request_t** handle) noexcept {
  auto& request = *reinterpret_cast<Request*>(*handle);
  request.base.req_base.req_free_called = true;
  *handle = &ompi_request_null.request;
  give_up(request);
  return OMPI_SUCCESS;
}

// MPI_Cancel of sends is deprecated and never succeeds here, as in the other PMLs.
int cancel_send(ompi_request_t*, int) noexcept { return OMPI_SUCCESS; }

int cancel_receive(ompi_request_t* handle, int) noexcept {
  auto& request = *reinterpret_cast<ReceiveRequest*>(handle);
  return guarded([&]() -> int {
    const Entry entry;
    if (request.life.active() && is_posted(request.op.state)) {
      pml->protocol.cancel(protocol_of(request.base.req_base.req_comm), request.op);
      pml->actions.run();
    }
    return OMPI_SUCCESS;
  });
}

void construct_send(SendRequest* request) {
  new (&request->op) OwnedOp<SendOp, SendRequest>;
  request->op.request = request;
  new (&request->life) RequestLife;
  new (&request->demand) Demand;
  request->buffered = false;
  new (&request->read) EagerRead;
  new (&request->exposed) Registration;
  new (&request->transfer) SendTransfer(*request);
  new (&request->fragments) Fragments(*request);
  new (&request->eager) WaitingEager(*request);
  request->base.req_base.req_type = MCA_PML_REQUEST_SEND;
  request->ompi().req_type = OMPI_REQUEST_PML;
  request->ompi().req_start = start;
  request->ompi().req_free = free_request<SendRequest>;
  request->ompi().req_cancel = cancel_send;
}

void construct_receive(ReceiveRequest* request) {
  new (&request->op) OwnedOp<ReceiveOp, ReceiveRequest>;
  request->op.request = request;
  new (&request->life) RequestLife;
  new (&request->demand) Demand;
  request->copy = {};
  new (&request->exposed) Registration;
  new (&request->transfer) ReceiveTransfer(*request);
  request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
  request->ompi().req_type = OMPI_REQUEST_PML;
  request->ompi().req_start = start;
  request->ompi().req_free = free_request<ReceiveRequest>;
  request->ompi().req_cancel = cancel_receive;
}

/// May a request be completed where its protocol ends? Only when that runs nobody's code and drops
/// no reference, and no other thread can be waiting.
///
/// With threads it even must, where the call that makes it has not returned. coll/adapt sets a
/// callback right behind the call, and loses it when another thread completes just then.
///
/// Without, not later while a connection is news: Open MPI's own turn of the event loop may have
/// brought it, behind which nobody would tell the interrupt thread.
template <class Request>
bool completes_at_once(Request& request) noexcept {
  const ompi_request_t& ompi = request.ompi();
  if (ompi.req_complete_cb != nullptr || ompi.req_complete == REQUEST_COMPLETED) return false;
  if (request.life.freed()) return false;
  if (opal_using_threads()) return request.in_call;
  return !pml->interrupts.inside() && (request.in_call || !pml->driver.has_new_events());
}

/// As ompi_request_complete, of which nothing else is left where no other thread knows the request,
/// and without callback. MPI_Waitall and its like put the address of their count in the place of
/// REQUEST_PENDING.
void complete_at_once(ompi_request_t& request) noexcept {
  void* const waiting = const_cast<void*>(request.req_complete);
  request.req_complete = REQUEST_COMPLETED;
  if (waiting != REQUEST_PENDING)
    wait_sync_update(static_cast<ompi_wait_sync_t*>(waiting), 1, request.req_status.MPI_ERROR);
}

template <class Request>
void complete_or_queue(Request& request) {
  if (completes_at_once(request)) [[likely]] {
    if (request.life.end_at_once()) complete_at_once(request.ompi());
  } else if (request.life.end()) {
    pml->completions.append(request.ompi());
  }
}

template <class Request>
void complete_queued(Request& request, bool complete_towards_mpi) noexcept {
  {
    const Entry entry;
    request.life.take();
  }
  if (complete_towards_mpi) ompi_request_complete(&request.ompi(), true);
  bool last = false;
  {
    const Entry entry;
    last = request.life.finish();
  }
  if (last) release(request);
}

void finish(ReceiveRequest& request, bool cancelled) {
  request.demand.drop(pml->interrupts);
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
  complete_or_queue(request);
}

/// As MCA_PML_BASE_RECV_REQUEST_FINI, but a convertor that was never prepared is left untouched:
/// two cache lines per small message.
void drop_references(ReceiveRequest& request) noexcept {
  mca_pml_base_request_t& base = request.base.req_base;
  OMPI_REQUEST_FINI(&base.req_ompi);
  OBJ_RELEASE(base.req_comm);
  OMPI_DATATYPE_RELEASE(base.req_datatype);
  if (request.converter_ready) opal_convertor_cleanup(&base.req_convertor);
}

}  // namespace

SendRequest& take_send_request() {
  SendRequest* request = std::exchange(spare_send, nullptr);
  if (request == nullptr) {
    request = reinterpret_cast<SendRequest*>(opal_free_list_get(&mca_pml_base_send_requests));
    if (request == nullptr) throw std::bad_alloc();
  }
  request->life = {};
  request->buffered = false;
  request->read = {};
  return *request;
}

ReceiveRequest& take_receive_request() {
  ReceiveRequest* request = std::exchange(spare_receive, nullptr);
  if (request == nullptr) {
    request = reinterpret_cast<ReceiveRequest*>(opal_free_list_get(&mca_pml_base_recv_requests));
    if (request == nullptr) throw std::bad_alloc();
  }
  request->life = {};
  return *request;
}

void release(SendRequest& request) noexcept {
  MCA_PML_BASE_SEND_REQUEST_FINI(&request.base);
  if (!is_thread_multiple() && spare_send == nullptr) {
    spare_send = &request;
    return;
  }
  opal_free_list_return(&mca_pml_base_send_requests,
                        reinterpret_cast<opal_free_list_item_t*>(&request));
}

void release(ReceiveRequest& request) noexcept {
  drop_references(request);
  if (!is_thread_multiple() && spare_receive == nullptr) {
    spare_receive = &request;
    return;
  }
  opal_free_list_return(&mca_pml_base_recv_requests,
                        reinterpret_cast<opal_free_list_item_t*>(&request));
}

void BlockingCopy::end(std::uint64_t bytes) noexcept {
  if (awaited) [[unlikely]]
    pml->awaited_copies.end();
  awaited = false;
  if (started_ns != 0) [[unlikely]]
    pml->copy_ways[crosses].took(way, bytes, steady_now_ns() - std::exchange(started_ns, 0));
}

void end(SendRequest& request) {
  if (request.read.outstanding) [[unlikely]]
    end_read(request);
  request.demand.drop(pml->interrupts);
  request.exposed.drop();
  request.transfer.release();
  request.fragments.drop_room();
  request.base.req_base.req_pml_complete = true;
  request.ompi().req_status.MPI_ERROR = OMPI_SUCCESS;
  complete_or_queue(request);
}

void end(ReceiveRequest& request, bool cancelled) {
  request.exposed.drop();
  request.transfer.release();
  if (!cancelled) request.copy.end(request.op.take_bytes());
  finish(request, cancelled);
}

void end_eager(ReceiveRequest& request) {
  if (request.op.speculate) [[unlikely]]  // perhaps its RTR was out
    request.exposed.drop();
  finish(request, false);
}

void let_go_send(void* owner) {
  auto& request = *static_cast<SendRequest*>(owner);
  if (request.life.let_go()) pml->completions.append(request.ompi());
}

void let_go_receive(void* owner) {
  auto& request = *static_cast<ReceiveRequest*>(owner);
  if (request.life.let_go()) pml->completions.append(request.ompi());
}

void complete(ompi_request_t& ompi) noexcept {
  auto& base = reinterpret_cast<mca_pml_base_request_t&>(ompi);
  if (base.req_type == MCA_PML_REQUEST_RECV) {
    complete_queued(reinterpret_cast<ReceiveRequest&>(ompi), true);
    return;
  }
  auto& request = reinterpret_cast<SendRequest&>(ompi);
  // MPI_Bsend: its part of the attached buffer is free again.
  if (request.buffered) mca_pml_base_bsend_request_fini(&ompi);
  complete_queued(request, !request.buffered);
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
