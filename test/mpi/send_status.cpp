// Status of completed sends: tag, source and byte count, which one-sided components read.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

namespace {

enum class Mode { standard, synchronous, buffered };

int init_send(Mode mode, const Bytes& data, int tag, MPI_Request* request) {
  const int bytes = static_cast<int>(data.size());
  switch (mode) {
    case Mode::standard:
      return MPI_Send_init(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, request);
    case Mode::synchronous:
      return MPI_Ssend_init(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, request);
    case Mode::buffered:
      return MPI_Bsend_init(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, request);
  }
  return MPI_ERR_INTERN;
}

}  // namespace

TEST_CASE("A persistent send's status names tag, source and byte count in every mode and size") {
  Bytes attached(4 << 20);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  for (const Mode mode : {Mode::standard, Mode::synchronous, Mode::buffered}) {
    for (const std::size_t bytes : {0, 8, 4000, 300000}) {
      const int tag = 40 + static_cast<int>(mode);
      if (sender()) {
        const Bytes data = pattern(bytes, bytes + 1);
        MPI_Request request = MPI_REQUEST_NULL;
        REQUIRE(init_send(mode, data, tag, &request) == MPI_SUCCESS);
        for (int turn = 0; turn < 2; ++turn) {
          MPI_Start(&request);
          MPI_Status status;
          status.MPI_TAG = status.MPI_SOURCE = -77;
          MPI_Wait(&request, &status);
          INFO("mode " << static_cast<int>(mode) << " bytes " << bytes << " turn " << turn);
          CHECK(status.MPI_TAG == tag);
          CHECK(status.MPI_SOURCE == rank());
          CHECK(count_of(status) == static_cast<int>(bytes));
        }
        MPI_Request_free(&request);
      } else if (receiver()) {
        for (int turn = 0; turn < 2; ++turn) {
          Bytes data = empty(bytes);
          MPI_Recv(data.data(), static_cast<int>(bytes), MPI_BYTE, partner(), tag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
          CHECK(holds(data, bytes, bytes + 1));
        }
      }
    }
  }
  void* detached = nullptr;
  int detached_bytes = 0;
  MPI_Buffer_detach(&detached, &detached_bytes);
}
