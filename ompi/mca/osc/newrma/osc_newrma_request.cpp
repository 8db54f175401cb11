// Requests: their class, completion and freeing.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_request.hpp"

#include <memory>

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/process.hpp"

namespace overlap::newrma {
namespace {

void give_back(WindowRequest& request) noexcept {
  OMPI_REQUEST_FINI(&request.ompi);
  ompi_request_t* ompi = &request.ompi;
  OBJ_RELEASE(ompi);
}

int free_request(ompi_request_t** handle) noexcept {
  auto& request = *reinterpret_cast<WindowRequest*>(*handle);
  *handle = &ompi_request_null.request;
  bool last = false;
  {
    const Entry entry;
    last = request.life.free();
  }
  if (last) give_back(request);
  return OMPI_SUCCESS;
}

int cancel_request(ompi_request_t*, int) noexcept { return OMPI_SUCCESS; }  // cannot be

/// @thread  MPI thread, progress lock NOT held
void complete(ompi_request_t& ompi) noexcept {
  auto& request = reinterpret_cast<WindowRequest&>(ompi);
  {
    const Entry entry;
    request.life.take();
  }
  ompi_request_complete(&ompi, true);
  bool last = false;
  {
    const Entry entry;
    last = request.life.finish();
  }
  if (last) give_back(request);
}

}  // namespace

void WindowRequest::end(int error) {
  ompi.req_status.MPI_ERROR = error;
  if (life.end()) process->completions.append(ompi, complete);
}

}  // namespace overlap::newrma

using overlap::newrma::WindowRequest;

extern "C" {
static void overlap_newrma_construct_request(opal_object_t* object) {
  auto* request = reinterpret_cast<WindowRequest*>(object);
  new (&request->life) overlap::RequestLife;
  new (&request->event) overlap::newrma::WaitedEvent;
  request->event.request = request;
  request->ompi.req_type = OMPI_REQUEST_WIN;
  request->ompi.req_start = nullptr;
  request->ompi.req_free = overlap::newrma::free_request;
  request->ompi.req_cancel = overlap::newrma::cancel_request;
}
static void overlap_newrma_destruct_request(opal_object_t* object) {
  auto* request = reinterpret_cast<WindowRequest*>(object);
  std::destroy_at(&request->event);
  std::destroy_at(&request->life);
}

opal_class_t overlap_newrma_request_class = {.cls_name = "overlap_newrma_request_t",
                                             .cls_parent = OBJ_CLASS(ompi_request_t),
                                             .cls_construct = overlap_newrma_construct_request,
                                             .cls_destruct = overlap_newrma_destruct_request,
                                             .cls_initialized = 0,
                                             .cls_depth = 0,
                                             .cls_construct_array = nullptr,
                                             .cls_destruct_array = nullptr,
                                             .cls_sizeof = sizeof(WindowRequest)};
}

overlap::newrma::WindowRequest& overlap::newrma::WindowRequest::make(ompi_win_t& win) {
  auto* ompi = reinterpret_cast<ompi_request_t*>(opal_obj_new(&overlap_newrma_request_class));
  if (ompi == nullptr) throw std::bad_alloc();
  OMPI_REQUEST_INIT(ompi, false);
  ompi->req_mpi_object.win = &win;
  ompi->req_state = OMPI_REQUEST_ACTIVE;
  ompi->req_status.MPI_SOURCE = MPI_ANY_SOURCE;
  ompi->req_status.MPI_TAG = MPI_ANY_TAG;
  ompi->req_status._ucount = 0;
  ompi->req_status._cancelled = 0;
  auto& request = reinterpret_cast<WindowRequest&>(*ompi);
  request.life.start();
  return request;
}
