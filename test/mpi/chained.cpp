// What the component does where a BTL offers more than Open MPI's interface (capability.hpp): the
// end of a large transfer is known on the other side while the process that moved the data
// computes, and small messages go out of the user's buffer.
//
// btl/ring offers both. Over other BTLs the data is checked all the same.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr int n = 1 << 20;

bool chains() { return over_ring() && !set_to("OMPI_MCA_btl_ring_chained", "0"); }

/// Large messages both ways: everything is connected afterwards.
void warm_up(Scene& scene) {
  const Bytes out = pattern(n, 1);
  Bytes in = empty(n);
  for (int from = 0; from < 2; ++from) {
    if (rank() == from) MPI_Send(out.data(), n, MPI_BYTE, partner(), 2, scene.comm);
    if (rank() != from)
      MPI_Recv(in.data(), n, MPI_BYTE, partner(), 2, scene.comm, MPI_STATUS_IGNORE);
  }
  scene.meet();
}

}  // namespace

TEST_CASE(
    "P1.3 receiver early: with DONE behind the write the receive ends while its sender computes") {
  TWO_RANKS_WITH_COUNTERS();
  if (!chains() || !speculative() || !early_progress()) return;
  for (int turn = 0; turn < 5; ++turn) {
    Scene scene;
    warm_up(scene);
    Steps steps;
    Counters count;
    const Bytes data = pattern(n, turn);
    if (receiver()) {
      Bytes in = empty(n);
      MPI_Request request;
      MPI_Irecv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, &request);
      steps.reach(1);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, turn));
      steps.reach(2);
      scene.meet();
      CHECK(count["done_chained"] == 0);
    } else {
      steps.wait_for(1);
      compute(microseconds(20000));  // the RTR comes meanwhile
      MPI_Request request;
      MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
      steps.wait_for(2);  // outside MPI: the receiver's wait ends without this process
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      scene.meet();
      CHECK(count["rtr_used"] == 1);
      CHECK(count["put_bytes"] == n);
      CHECK(count["done_chained"] == 1);
    }
  }
}

TEST_CASE(
    "P1.2 sender early: with DONE behind the read the send ends while its receiver computes") {
  TWO_RANKS_WITH_COUNTERS();
  if (!chains() || !early_progress()) return;
  for (int turn = 0; turn < 5; ++turn) {
    Scene scene;
    warm_up(scene);
    Steps steps;
    Counters count;
    if (sender()) {
      Bytes data = pattern(n, turn);
      MPI_Request request;
      MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
      steps.reach(1);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      std::fill(data.begin(), data.end(),
                static_cast<unsigned char>(0x5a));  // whoever reads it now reads wrong bytes
      steps.reach(2);
      scene.meet();
      CHECK(count["done_chained"] == 0);
    } else {
      Bytes in = empty(n);
      steps.wait_for(1);
      compute(microseconds(20000));  // the RTS comes meanwhile
      MPI_Request request;
      MPI_Irecv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, &request);
      steps.wait_for(2);  // outside MPI: the sender's wait ends without this process
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, turn));
      scene.meet();
      CHECK(count["get_bytes"] == n);
      CHECK(count["done_chained"] == 1);
    }
  }
}

TEST_CASE("P3.2 small messages from one buffer, changed as soon as each send is complete") {
  TWO_RANKS_WITH_COUNTERS();
  constexpr int bytes = 1500;
  constexpr int rounds = 2000;
  Scene scene;
  Counters count;
  if (receiver()) {
    Bytes in = empty(bytes);
    for (int i = 0; i < rounds; ++i) {
      MPI_Recv(in.data(), bytes, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      if (!holds(in, bytes, i)) FAIL("message " + std::to_string(i) + " has wrong bytes");
    }
  } else {
    Bytes out = empty(bytes);
    MPI_Request persistent;
    MPI_Send_init(out.data(), bytes, MPI_BYTE, 1, 3, scene.comm, &persistent);
    std::vector<char> attached(bytes + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
    for (int i = 0; i < rounds; ++i) {
      const Bytes next = pattern(bytes, i);
      std::copy(next.begin(), next.begin() + bytes, out.begin());
      MPI_Request request = MPI_REQUEST_NULL;
      switch (i % 6) {
        case 0: MPI_Send(out.data(), bytes, MPI_BYTE, 1, 3, scene.comm); break;
        case 1: MPI_Isend(out.data(), bytes, MPI_BYTE, 1, 3, scene.comm, &request); break;
        case 2: MPI_Ssend(out.data(), bytes, MPI_BYTE, 1, 3, scene.comm); break;
        case 3: MPI_Issend(out.data(), bytes, MPI_BYTE, 1, 3, scene.comm, &request); break;
        case 4: MPI_Start(&persistent); break;
        default: MPI_Bsend(out.data(), bytes, MPI_BYTE, 1, 3, scene.comm);
      }
      MPI_Wait(i % 6 == 4 ? &persistent : &request, MPI_STATUS_IGNORE);
    }
    void* buffer = nullptr;
    int size = 0;
    MPI_Buffer_detach(&buffer, &size);
    MPI_Request_free(&persistent);
  }
  scene.meet();
  // Whether it pays is measured; a run that sets the costs decides it.
  if (over_ring() && std::getenv("OMPI_MCA_btl_ring_costs") != nullptr && sender())
    CHECK(count["eager_lent"] > 0);
}
