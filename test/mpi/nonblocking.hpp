// Requests of libmpix_overlap for the programs that test non-blocking epochs (osc/newrma).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma.hpp"

#include <mpix_overlap.h>

namespace overlap::test {

/// The request of a call that has to succeed: request_of(MPIX_Win_ilock, type, target, 0, win).
template <class Call, class... Arguments>
MPI_Request request_of(Call call, const Arguments&... arguments) {
  MPI_Request request = MPI_REQUEST_NULL;
  REQUIRE(call(arguments..., &request) == MPI_SUCCESS);
  REQUIRE(request != MPI_REQUEST_NULL);
  return request;
}

/// Wait for one; a request is null afterwards.
inline void finish(MPI_Request& request) {
  REQUIRE(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  REQUIRE(request == MPI_REQUEST_NULL);
}
inline void finish(MPI_Request&& request) {
  MPI_Request named = request;
  finish(named);
}

inline bool is_complete(MPI_Request request) {
  int flag = -1;
  REQUIRE(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  return flag != 0;
}

/// What a request waits for cannot have happened: is it incomplete after some progress, too?
inline bool stays_incomplete(MPI_Request request) {
  for (int i = 0; i < 5; ++i) {
    if (is_complete(request)) return false;
    poke(std::chrono::microseconds(300));
  }
  return !is_complete(request);
}

/// All ranks of the job but this one.
inline std::vector<int> others() {
  std::vector<int> result;
  for (int i = 0; i < size(); ++i)
    if (i != rank()) result.push_back(i);
  return result;
}
inline void tell_others() {
  for (const int other : others()) tell(other);
}

inline constexpr auto every_kind = {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic};

}  // namespace overlap::test
