// What Open MPI's own components see of requests: coll/adapt sets a callback right behind each
// receive and send of it, and loses it where another thread completes the request just then.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

// The interfaces of Open MPI are C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvolatile"
#pragma GCC diagnostic ignored "-Wpedantic"
extern "C" {
#include "ompi_config.h"

#include "opal/threads/thread_usage.h"
}
// They pass void * where C++ wants void **.
#undef OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR(address, expected, desired)                  \
  opal_thread_compare_exchange_strong_ptr((volatile intptr_t*)(address), (void**)(expected), \
                                          (void*)(desired))
extern "C" {
#include "ompi/request/request.h"
}
#pragma GCC diagnostic pop

using namespace overlap::test;

namespace {

[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);

bool is_complete(MPI_Request request) { return request->req_complete == REQUEST_COMPLETED; }

void wait_for_message(int tag) { MPI_Probe(partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

}  // namespace

TEST_CASE("Threads: what ends within the call that makes it is complete when that returns") {
  if (!paired()) return;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}}) {
    const int count = static_cast<int>(bytes);
    const Bytes data = pattern(bytes, 1);
    for (int round = 0; round < 200; ++round) {
      MPI_Request request = MPI_REQUEST_NULL;
      if (sender()) {
        MPI_Send(data.data(), count, MPI_BYTE, partner(), 1, MPI_COMM_WORLD);
        MPI_Send(data.data(), count, MPI_BYTE, partner(), 2, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        continue;
      }
      Bytes in = empty(bytes);
      wait_for_message(1);
      MPI_Irecv(in.data(), count, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, &request);
      CHECK(is_complete(request));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(in, bytes, 1));
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Mprobe(partner(), 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      MPI_Imrecv(in.data(), count, MPI_BYTE, &message, &request);
      CHECK(is_complete(request));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

TEST_CASE("Threads: a synchronous send to this process ends within its call") {
  const Bytes data = pattern(64, 2);
  Bytes in = empty(64);
  for (int round = 0; round < 200; ++round) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Irecv(in.data(), 64, MPI_BYTE, 0, 3, MPI_COMM_SELF, &requests[0]);
    MPI_Issend(data.data(), 64, MPI_BYTE, 0, 3, MPI_COMM_SELF, &requests[1]);
    CHECK(is_complete(requests[1]));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in == data);
  }
}
