// MPI_Start and MPI_Startall.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

namespace overlap::speculative {
namespace {

int start_one(mca_pml_base_request_t& base) {
  SendRequest* message = nullptr;
  int rc = OMPI_SUCCESS;
  {
    const LeavingEntry entry(pml->interrupts);
    if (base.req_type == MCA_PML_REQUEST_RECV) {
      auto& request = reinterpret_cast<ReceiveRequest&>(base);
      if (!request.life.can_start()) return MPI_ERR_REQUEST;
      start_receive(request);
    } else {
      auto& request = reinterpret_cast<SendRequest&>(base);
      if (!request.life.can_start()) return MPI_ERR_REQUEST;
      rc = start_send(request, message);
    }
  }
  if (message != nullptr) rc == OMPI_SUCCESS ? give_up(*message) : release(*message);
  return rc;
}

}  // namespace

int start(std::size_t count, ompi_request_t** requests) noexcept {
  return guarded([&]() -> int {
    for (std::size_t i = 0; i < count; ++i) {
      if (requests[i] == nullptr || requests[i]->req_type != OMPI_REQUEST_PML) continue;
      const int rc = start_one(*reinterpret_cast<mca_pml_base_request_t*>(requests[i]));
      if (rc != OMPI_SUCCESS) return rc;
    }
    return OMPI_SUCCESS;
  });
}

}  // namespace overlap::speculative
