// Question: what does a message cost the processors, and what part of its time is whose: sender,
// receiver, or what lies between?
//
// Expected (before the first run): through rings the receiver's part is at least a fifth below that
// of the send/receive channel (paper: -22 % in all); a send without copying 8 KiB is shorter by
// what a copy costs.
//
//   send      MPI_Isend, per message of a burst of `burst` (one burst is on its way at a time, its
//             buffers have all arrived before the next)
//   finish    MPI_Waitall for them, per message: nothing is left to do when the data were copied
//   receive   MPI_Recv of a message that has certainly arrived: the receiver lets `lead-us` pass
//             after the burst
//   network   half a round trip, less one send and one receive: adapter, wire, and the polls that
//             find the message
// The shares of the half round trip are shares of its time by component (rdma-eager-2003, Fig. 15
// and 16). A burst keeps a software device awake, as a loaded adapter is; --burst 1 shows the cost
// of waking it.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

struct Costs {
  Samples send, finish, receive, half;
};

/// Rank 0 sends a burst, rank 1 receives it once it has arrived.
void burst(int rank, MPI_Comm control, Buffer& buffer, int bytes, int count, double lead_us,
           Costs& costs) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
  MPI_Barrier(control);
  if (rank == 0) {
    const double begin = now_us();
    for (auto& r : requests) MPI_Isend(buffer.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r);
    const double sent = now_us();
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    costs.send.add((sent - begin) / count);
    costs.finish.add((now_us() - sent) / count);
  } else {
    compute_us(lead_us);
    const double begin = now_us();
    for (int i = 0; i < count; ++i)
      MPI_Recv(buffer.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    costs.receive.add((now_us() - begin) / count);
  }
}

void round_trip(int rank, Buffer& buffer, int bytes, Costs& costs) {
  const double begin = now_us();
  if (rank == 0) MPI_Send(buffer.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
  MPI_Recv(buffer.data(), bytes, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(buffer.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  costs.half.add((now_us() - begin) / 2);
}

void report(std::size_t bytes, const Costs& costs) {
  const double half = costs.half.median();
  const double send = costs.send.median(), receive = costs.receive.median();
  row("overhead", "send", bytes, 0, "overhead", "us", costs.send);
  row("overhead", "finish", bytes, 0, "overhead", "us", costs.finish);
  row("overhead", "receive", bytes, 0, "overhead", "us", costs.receive);
  row("overhead", "half_round_trip", bytes, 0, "overhead", "us", costs.half);
  const struct {
    const char* name;
    double us;
  } parts[] = {{"send", send}, {"network", half - send - receive}, {"receive", receive}};
  for (const auto& part : parts) {
    Samples share;
    share.add(100 * part.us / half);
    row("overhead", part.name, bytes, 0, "share", "%", share);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8,128,1k");
  const int count = static_cast<int>(options.number("burst", 40));
  const double lead_us = options.number("lead-us", 3000);
  const double budget_ms = options.number("budget-ms", 300);
  const long most = static_cast<long>(options.number("samples", 400));
  options.end();

  MPI_Comm control;
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  for (const std::size_t bytes : sizes) {
    Buffer buffer(bytes);
    const int n = static_cast<int>(bytes);
    for (std::uint64_t pass = 0; pass < 2; ++pass) {
      if (rank == 0) buffer.fill(bytes, pass);
      Costs none;
      burst(rank, control, buffer, n, count, lead_us, none);
      if (rank == 1) buffer.check(bytes, pass, "overhead");
    }
    Costs costs;
    const long samples = samples_for(budget_ms, lead_us + 100, 10, most);
    std::uint64_t stamp = 0;
    for (Pace pace(samples, budget_ms); pace.next();) {
      if (rank == 0) buffer.stamp(bytes, ++stamp);
      burst(rank, control, buffer, n, count, lead_us, costs);
      for (int i = 0; i < 5; ++i) round_trip(rank, buffer, n, costs);
    }
    to_rank0(costs.receive, 1, rank);
    if (rank == 0) report(bytes, costs);
  }
  MPI_Comm_free(&control);
  MPI_Finalize();
}
