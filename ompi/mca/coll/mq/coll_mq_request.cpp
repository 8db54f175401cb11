// Requests: their class, completion and freeing.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_request.hpp"

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/process.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

#include "coll_mq_communicator.hpp"

namespace overlap::coll_mq {
namespace {

/// Requests for use again. MPI's bindings look into a request after it has been freed: none is
/// deleted before the component is closed. Progress lock.
std::vector<Request*>& kept = never_destroyed<std::vector<Request*>>();

Request& request_of(ompi_request_t* ompi) noexcept { return *reinterpret_cast<Request*>(ompi); }

/// @thread  MPI thread, progress lock NOT held
void give_back(Request& request) noexcept {
  ompi_communicator_t* comm = nullptr;
  OMPI_REQUEST_FINI(&request.ompi());
  request.execution.buffers.trim();
  {
    const Entry entry;
    if (request.stream != nullptr) {  // persistent: it has held the communicator all the time
      request.communicator->remove_stream(*request.stream);
      comm = &request.communicator->comm();
    }
    kept.push_back(&request);  // there is room since it was made
  }
  if (comm != nullptr) OBJ_RELEASE(comm);
}

int free_request(ompi_request_t** handle) noexcept {
  Request& request = request_of(*handle);
  // MPI does not allow it.
  if (!REQUEST_COMPLETE(&request.ompi())) return MPI_ERR_REQUEST;
  *handle = &ompi_request_null.request;
  bool last = false;
  {
    const Entry entry;
    last = request.execution.life.free();
  }
  if (last) give_back(request);
  return OMPI_SUCCESS;
}

int cancel_request(ompi_request_t*, int) noexcept { return MPI_ERR_REQUEST; }

/// @thread  MPI thread, progress lock NOT held
void complete(ompi_request_t& ompi) noexcept {
  Request& request = request_of(&ompi);
  const bool persistent = ompi.req_persistent;
  ompi_communicator_t* comm = &request.communicator->comm();
  {
    const Entry entry;
    request.execution.life.take();
  }
  request.execution.buffers.finish();
  ompi_request_complete(&ompi, true);
  bool last = false;
  {
    const Entry entry;
    last = request.execution.life.finish();
  }
  if (last) give_back(request);
  // The last reference takes it along, if the program has freed it meanwhile.
  if (!persistent) OBJ_RELEASE(comm);
}

}  // namespace

void Execution::end(Outcome outcome) {
  if (outcome == Outcome::failed) error_ = MPI_ERR_OTHER;
  if (life.end()) finish();
}

void Execution::let_go() {
  if (life.let_go()) finish();
}

void Execution::finish() {
  if (request_ == nullptr) {
    over_.store(true, std::memory_order_release);  // O1
    return;
  }
  request_->ompi().req_status.MPI_ERROR = error_;
  request_->end();
}

void Request::end() {
  if (process->interrupts.inside()) ++counters.thread_ended;
  communicator->drop_demand();
  process->completions.append(ompi(), complete);
}

void Request::activate() noexcept {
  ompi().req_complete = REQUEST_PENDING;
  ompi().req_state = OMPI_REQUEST_ACTIVE;
  ompi().req_status.MPI_ERROR = MPI_SUCCESS;
  execution.start();
  communicator->add_demand();
}

}  // namespace overlap::coll_mq

using overlap::coll_mq::Execution;
using overlap::coll_mq::Request;

extern "C" {
static void overlap_coll_mq_construct_request(opal_object_t* object) {
  auto* request = reinterpret_cast<Request*>(object);
  new (&request->execution) Execution(request);
  request->ompi().req_type = OMPI_REQUEST_COLL;
  request->ompi().req_cancel = overlap::coll_mq::cancel_request;
}

opal_class_t overlap_coll_mq_request_class = {.cls_name = "overlap_coll_mq_request_t",
                                              .cls_parent = OBJ_CLASS(ompi_coll_base_nbc_request_t),
                                              .cls_construct = overlap_coll_mq_construct_request,
                                              .cls_destruct = nullptr,
                                              .cls_initialized = 0,
                                              .cls_depth = 0,
                                              .cls_construct_array = nullptr,
                                              .cls_destruct_array = nullptr,
                                              .cls_sizeof = sizeof(Request)};
}

namespace overlap::coll_mq {
namespace {

Request& take() {
  static std::size_t made = 0;
  if (!kept.empty()) {
    Request& request = *kept.back();
    kept.pop_back();
    return request;
  }
  if (kept.capacity() <= made) kept.reserve(2 * made + 16);
  auto* const fresh = reinterpret_cast<Request*>(opal_obj_new(&overlap_coll_mq_request_class));
  if (fresh == nullptr) throw std::bad_alloc();
  ++made;
  return *fresh;
}

}  // namespace

Request& Request::make(Communicator& communicator, bool persistent) {
  Request& request = take();
  ompi_request_t& ompi = request.ompi();
  OMPI_REQUEST_INIT(&ompi, persistent);
  request.base.cb = {};
  request.base.req_complete_cb_data = nullptr;
  request.base.data = {};
  request.communicator = &communicator;
  request.stream = nullptr;
  ompi.req_start = nullptr;
  ompi.req_free = free_request;
  ompi.req_mpi_object.comm = &communicator.comm();
  ompi.req_status = {};
  ompi.req_status.MPI_SOURCE = MPI_ANY_SOURCE;
  ompi.req_status.MPI_TAG = MPI_ANY_TAG;
  ompi_communicator_t* const comm = &communicator.comm();
  OBJ_RETAIN(comm);
  return request;
}

void drop_kept_requests() noexcept {
  for (Request* each : kept) {
    ompi_request_t* ompi = &each->ompi();
    OBJ_RELEASE(ompi);
  }
  kept.clear();
}

}  // namespace overlap::coll_mq
