// P1.3 to P1.9, P1.11, P1.12 as its counters show them, and data that is there before the receiver
// enters MPI again.
//
// Two ranks of one host; the order of events is set outside MPI (a flag in shared memory), so every
// count is exact. Runs with pml/speculative only; what it expects follows the OMPI_MCA_ variables
// that mpirun hands on.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr int n = 1 << 20;

}  // namespace

TEST_CASE(
    "P1.3 P1.6 receiver early: one RTR, used; the data is there before the receiver enters MPI "
    "again") {
  TWO_RANKS_WITH_COUNTERS();
  for (int turn = 0; turn < 5; ++turn) {
    Scene scene;
    Steps steps;
    Counters count;
    const Bytes data = pattern(n, turn);
    if (receiver()) {
      Bytes in = empty(n);
      MPI_Request request;
      MPI_Irecv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, &request);
      CHECK(count["rtr_sent"] == (speculative() ? 1 : 0));
      steps.reach(1);
      steps.wait_for(2);
      if (speculative() && direct() && early_progress())
        CHECK(std::memcmp(in.data(), data.data(), n) == 0);  // no MPI call since Irecv
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, turn));
      scene.meet();
      CHECK(count["rts_ack_sent"] == 0);
      if (speculative() && early_progress()) CHECK(count["get_bytes"] == 0);
    } else {
      steps.wait_for(1);
      if (delayed()) compute(microseconds(20000));
      MPI_Request request;
      MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
      const bool goes_alone = direct() && speculative() && early_progress();
      if (goes_alone) MPI_Wait(&request, MPI_STATUS_IGNORE);
      steps.reach(2);
      if (!goes_alone) MPI_Wait(&request, MPI_STATUS_IGNORE);
      scene.meet();
      if (speculative() && (early_progress() || !over_tcp())) {
        const bool seen = early_progress();
        CHECK(count["rtr_received"] == 1);
        CHECK(count["rtr_used"] == (seen ? 1 : 0));
        CHECK(count["rtr_ack_sent"] == (seen ? 1 : 0));
        CHECK(count["rts_sent"] == (seen ? 0 : 1));
        CHECK(count["early_progress_hits"] == (seen ? 1 : 0));
        if (seen) CHECK(count["put_bytes"] + count["pipelined_bytes"] == n);
        if (seen && direct()) CHECK(count["put_bytes"] == n);
        CHECK(count["rtr_dropped"] == 0);
        if (seen) CHECK(count["rtr_stale"] + count["rtr_crossed"] == 0);
      } else if (!speculative()) {
        CHECK(count["rtr_received"] == 0);
        CHECK(count["rts_sent"] == 1);
      }
    }
  }
}

TEST_CASE("P1.2 P1.4 sender early: one RTS, no RTR, found by the receive's early look") {
  TWO_RANKS_WITH_COUNTERS();
  for (int turn = 0; turn < 4; ++turn) {
    Scene scene;
    Steps steps;
    Counters count;
    if (sender()) {
      const Bytes data = pattern(n, turn);
      MPI_Request request;
      MPI_Isend(data.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
      steps.reach(1);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      scene.meet();
      CHECK(count["rts_sent"] == 1);
      CHECK(count["rtr_used"] == 0);
      CHECK(count["rtr_ack_sent"] == 0);
      if (early_progress()) CHECK(count["rtr_received"] == 0);
      if (early_progress()) CHECK(count["early_progress_hits"] == 0);
    } else {
      Bytes in = empty(n);
      steps.wait_for(1);
      if (delayed()) compute(microseconds(20000));
      MPI_Recv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(in, n, turn));
      scene.meet();
      if (early_progress()) {
        CHECK(count["rtr_sent"] == 0);
        CHECK(count["early_progress_hits"] == 1);
        CHECK(count["rts_ack_sent"] == (speculative() && eager_flag() ? 1 : 0));
      } else if (without_rtrs()) {
        CHECK(count["early_progress_hits"] == 0);  // there is nothing to save
      }
      if (direct()) CHECK(count["get_bytes"] == n);
    }
  }
}

TEST_CASE("P1.5 RTS and RTR cross: the message goes once, the RTR is not used") {
  TWO_RANKS_WITH_COUNTERS();
  if (!speculative() || early_progress()) return;  // the early look would find the other's message
  Scene scene;
  Steps steps;
  Counters count;
  if (receiver()) {
    Bytes in = empty(n), next = empty(n);
    MPI_Request request;
    MPI_Irecv(in.data(), n, MPI_BYTE, 0, 3, scene.comm, &request);
    steps.reach(1);
    steps.wait_for(2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(in, n, 1));
    CHECK(count["rtr_sent"] == 1);
    steps.wait_for(3);  // the next RTR would be counted too
    MPI_Recv(next.data(), n, MPI_BYTE, 0, 3, scene.comm, MPI_STATUS_IGNORE);
    CHECK(holds(next, n, 2));
  } else {
    const Bytes first = pattern(n, 1), second = pattern(n, 2);
    steps.wait_for(1);
    MPI_Request request;
    MPI_Isend(first.data(), n, MPI_BYTE, 1, 3, scene.comm, &request);
    steps.reach(2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(count["rts_sent"] == 1);
    CHECK(count["rtr_used"] == 0);
    CHECK(count["rtr_received"] == 1);
    CHECK((eager_flag() ? count["rtr_crossed"] : count["rtr_crossed"] + count["rtr_stale"]) == 1);
    steps.reach(3);
    MPI_Send(second.data(), n, MPI_BYTE, 1, 3, scene.comm);
  }
  scene.meet();
}

TEST_CASE("P1.7 no RTR for wildcards, for small buffers, and none behind a wildcard") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters count;
  if (receiver()) {
    Bytes in[4] = {empty(n), empty(n), empty(100), empty(n)};
    MPI_Request requests[4];
    MPI_Irecv(in[0].data(), n, MPI_BYTE, MPI_ANY_SOURCE, 5, scene.comm, &requests[0]);
    MPI_Irecv(in[1].data(), n, MPI_BYTE, 0, MPI_ANY_TAG, scene.comm, &requests[1]);
    MPI_Irecv(in[2].data(), 100, MPI_BYTE, 0, 6, scene.comm, &requests[2]);
    MPI_Irecv(in[3].data(), n, MPI_BYTE, 0, 5, scene.comm, &requests[3]);
    CHECK(count["rtr_sent"] == 0);
    tell(partner());
    MPI_Status statuses[4];
    MPI_Waitall(4, requests, statuses);
    CHECK(holds(in[0], n, 0));
    CHECK(holds(in[1], n, 1));
    CHECK(holds(in[2], 100, 2));
    CHECK(holds(in[3], n, 3));
    CHECK(statuses[1].MPI_TAG == 5);
  } else {
    await(partner());
    for (int i = 0; i < 4; ++i) {
      const int length = i == 2 ? 100 : n;
      const Bytes data = pattern(length, i);
      MPI_Send(data.data(), length, MPI_BYTE, 1, i == 2 ? 6 : 5, scene.comm);
    }
    CHECK(count["rtr_used"] <= 1);  // the last receive may speculate once it is the first
  }
  scene.meet();
}

TEST_CASE(
    "P1.8 P1.9 mispredictions: RTRs that met eager messages are never used, and the receiver stops "
    "sending them") {
  TWO_RANKS_WITH_COUNTERS();
  if (!speculative()) return;
  Scene scene;
  constexpr int turns = 12;
  constexpr int rtrs = 4;  // misprediction_limit
  for (const bool seen : {false, true}) {
    Steps steps;
    Counters count;
    const int tag = seen ? 11 : 12;
    for (int turn = 0; turn < turns; ++turn) {
      if (receiver()) {
        Bytes in = empty(n);
        MPI_Request request;
        MPI_Irecv(in.data(), n, MPI_BYTE, 0, tag, scene.comm, &request);
        steps.reach(2 * turn + 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(holds(in, 64, turn));
        steps.wait_for(2 * turn + 2);
      } else {
        const Bytes data = pattern(64, turn);
        const auto sent = static_cast<unsigned long long>(std::min(turn + 1, rtrs));
        const auto arrived = [&] { return count["rtr_received"] >= sent; };
        steps.wait_for(2 * turn + 1);
        if (seen) CHECK(poke_until(arrived));  // the RTR is here and kept
        MPI_Send(data.data(), 64, MPI_BYTE, 1, tag, scene.comm);
        if (!seen) CHECK(poke_until(arrived));  // the RTR comes too late
        steps.reach(2 * turn + 2);
      }
    }
    scene.meet();
    if (receiver()) {
      CHECK(count["rtr_sent"] == rtrs);
      CHECK(count["mutes"] == 1);
    } else {
      CHECK(count["rtr_received"] == rtrs);
      CHECK(count["rtr_used"] == 0);
      if (!over_tcp() && !eager_flag()) CHECK(count[seen ? "rtr_dropped" : "rtr_stale"] == rtrs);
      CHECK(count["rtr_dropped"] + count["rtr_stale"] == rtrs);
    }
    // Large messages again: each arrives whole, and speculation comes back.
    for (int turn = 0; turn < 8; ++turn) {
      if (receiver()) {
        Bytes in = empty(n);
        MPI_Request request;
        MPI_Irecv(in.data(), n, MPI_BYTE, 0, tag, scene.comm, &request);
        tell(partner());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(holds(in, n, turn));
      } else {
        const Bytes data = pattern(n, turn);
        await(partner());
        MPI_Send(data.data(), n, MPI_BYTE, 1, tag, scene.comm);
      }
      scene.meet();
    }
    if (sender() && early_progress()) CHECK(count["rtr_used"] >= 3);
  }
}

TEST_CASE("P1.11 adaptation stops where RTRs do not pay and resumes after the interval") {
  TWO_RANKS_WITH_COUNTERS();
  if (!speculative() || eager_flag() || !early_progress())
    return;  // eager_flag stops on its own before there is a sample
  Scene scene;
  Steps steps;
  Counters count;
  const bool adapts = !is("adaptation", "0");
  int step = 0;
  // Message without RTR: the sender is first.
  auto late = [&](int seed) {
    ++step;
    if (sender()) {
      const Bytes data = pattern(100000, seed);
      MPI_Request request;
      MPI_Isend(data.data(), 100000, MPI_BYTE, 1, 8, scene.comm, &request);
      steps.reach(step);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      Bytes in = empty(100000);
      steps.wait_for(step);
      if (delayed()) compute(microseconds(5000));
      MPI_Recv(in.data(), 100000, MPI_BYTE, 0, 8, scene.comm, MPI_STATUS_IGNORE);
      CHECK(holds(in, 100000, seed));
    }
    tell(partner(), scene.comm);
    await(partner(), scene.comm);
  };
  // RTR that an eager message meets.
  auto wrong = [&](int seed) {
    ++step;
    if (sender()) {
      steps.wait_for(step);
      const Bytes data = pattern(10, seed);
      MPI_Send(data.data(), 10, MPI_BYTE, 1, 8, scene.comm);
    } else {
      Bytes in = empty(100000);
      MPI_Request request;
      MPI_Irecv(in.data(), 100000, MPI_BYTE, 0, 8, scene.comm, &request);
      steps.reach(step);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(holds(in, 10, seed));
    }
    tell(partner(), scene.comm);
    await(partner(), scene.comm);
  };
  for (int i = 0; i < 15; ++i) {
    wrong(i);
    late(i);
  }
  CHECK(count["adaptation_stops"] == 0);  // adaptation_min_sample is 16
  wrong(15);
  late(15);
  if (sender()) CHECK(count["adaptation_stops"] == (adapts ? 1 : 0));
  if (receiver()) CHECK(count["rtr_sent"] == 16);
  wrong(16);
  if (receiver()) CHECK(count["rtr_sent"] == (adapts ? 16 : 17));
  for (int i = 0; i < 63; ++i) late(i);
  CHECK(count["adaptation_resumes"] == 0);  // adaptation_resume_interval is 64
  late(63);
  if (sender()) CHECK(count["adaptation_resumes"] == (adapts ? 1 : 0));
  wrong(17);
  if (receiver()) CHECK(count["rtr_sent"] == (adapts ? 17 : 18));
  scene.meet();
}

TEST_CASE(
    "Field: a receive that is cancelled while its RTR is out keeps its buffer until the sender has "
    "confirmed") {
  TWO_RANKS_WITH_COUNTERS();
  for (int turn = 0; turn < 4; ++turn) {
    Scene scene;
    Counters count;
    if (receiver()) {
      Bytes gone = empty(n), in[2] = {empty(n), empty(n)};
      MPI_Request requests[3];
      MPI_Irecv(gone.data(), n, MPI_BYTE, 0, 3, scene.comm, &requests[0]);
      MPI_Irecv(in[0].data(), n, MPI_BYTE, 0, 3, scene.comm, &requests[1]);
      if (turn % 2 == 0) MPI_Irecv(in[1].data(), n, MPI_BYTE, 0, 3, scene.comm, &requests[2]);
      MPI_Cancel(&requests[0]);
      MPI_Status status;
      // The sender sits in a call that makes progress.
      MPI_Wait(&requests[0], &status);
      int cancelled = 0;
      MPI_Test_cancelled(&status, &cancelled);
      CHECK(cancelled != 0);
      CHECK(count["revoke_sent"] == (speculative() ? 1 : 0));
      if (turn % 2 != 0) MPI_Irecv(in[1].data(), n, MPI_BYTE, 0, 3, scene.comm, &requests[2]);
      tell(partner(), scene.comm);
      MPI_Waitall(2, &requests[1], MPI_STATUSES_IGNORE);
      CHECK(holds(in[0], n, 10));
      CHECK(holds(in[1], n, 11));
      CHECK(holds(gone, 0, 0));  // untouched
    } else {
      await(partner(), scene.comm);
      for (int seed : {10, 11}) {
        const Bytes data = pattern(n, seed);
        MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm);
      }
    }
    scene.meet();
  }
}

TEST_CASE(
    "Field: a message longer than the RTR's buffer goes by RTS; the receiver reports truncation, "
    "the sender completes") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  Counters count;
  MPI_Comm_set_errhandler(scene.comm, MPI_ERRORS_RETURN);
  if (receiver()) {
    Bytes in = empty(n);
    MPI_Request request;
    MPI_Irecv(in.data(), n - 1000, MPI_BYTE, 0, 3, scene.comm, &request);
    steps.reach(1);
    MPI_Status status;
    CHECK(error_class(MPI_Wait(&request, &status)) == MPI_ERR_TRUNCATE);
    CHECK(holds(Bytes(in.begin() + (n - 1000), in.end()), 0, 0));  // nothing behind the buffer
  } else {
    steps.wait_for(1);
    const Bytes data = pattern(n, 4);
    CHECK(MPI_Send(data.data(), n, MPI_BYTE, 1, 3, scene.comm) == MPI_SUCCESS);
    CHECK(count["rtr_used"] == 0);
    CHECK(count["rts_sent"] == 1);
    if (speculative() && !over_tcp())
      CHECK(count["rtr_dropped"] + count["rtr_stale"] + count["rtr_crossed"] == 1);
  }
  scene.meet();
}

TEST_CASE(
    "P1.8 P1.10 eager and large messages of one envelope into large receives posted before, many "
    "seeds") {
  if (!paired()) return;
  const int seeds = static_cast<int>(setting("OVERLAP_TEST_SEEDS", 150));
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const int messages = 1 + static_cast<int>(random() % 8);
    std::vector<int> lengths;
    std::vector<bool> synchronous;
    std::vector<int> before;  // receives posted before the sender may start
    for (int i = 0; i < messages; ++i) {
      lengths.push_back(random() % 2 == 0 ? static_cast<int>(random() % 300)
                                          : static_cast<int>(20000 + random() % 150000));
      synchronous.push_back(random() % 5 == 0);
    }
    const int posted_first = static_cast<int>(random() % (messages + 1));
    const unsigned sender_waits = random() % 3, receiver_waits = random() % 3;
    if (receiver()) {
      std::vector<Bytes> in(messages);
      std::vector<MPI_Request> requests(messages);
      for (int i = 0; i < messages; ++i) {
        in[i] = empty(170000 + i);
        MPI_Irecv(in[i].data(), 170000 + i, MPI_BYTE, partner(), 2, MPI_COMM_WORLD, &requests[i]);
        if (i + 1 == posted_first) tell(partner());
        if (receiver_waits == 1) poke(microseconds(20));
      }
      if (posted_first == 0) tell(partner());
      std::vector<MPI_Status> statuses(messages);
      MPI_Waitall(messages, requests.data(), statuses.data());
      for (int i = 0; i < messages; ++i) {
        INFO("seed " << seed << " message " << i << " of " << messages);
        CHECK(count_of(statuses[i]) == lengths[i]);
        CHECK(holds(in[i], lengths[i], seed * 10 + i));
      }
    } else if (sender()) {
      await(partner());
      std::vector<Bytes> out;
      std::vector<MPI_Request> requests(messages);
      for (int i = 0; i < messages; ++i) out.push_back(pattern(lengths[i], seed * 10 + i));
      for (int i = 0; i < messages; ++i) {
        (synchronous[i] ? MPI_Issend : MPI_Isend)(out[i].data(), lengths[i], MPI_BYTE, partner(), 2,
                                                  MPI_COMM_WORLD, &requests[i]);
        if (sender_waits == 1) poke(microseconds(20));
        if (sender_waits == 2) compute(microseconds(20));
      }
      MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    }
  }
}
