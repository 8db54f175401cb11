// Question: how much shorter does an iteration of a typical exchange of data become (Fig. 15 of the
// speculative-rendezvous paper)?
//
//   model 1                              model 2
//   produce(1)                           produce(1)
//   loop i                               loop i
//     MPI_Irecv(i)                         pack(i)
//     pack(i)                              MPI_Isend(i)
//     MPI_Isend(i)                         if i > 1: consume(i - 1)
//     produce(i + 1)                       MPI_Irecv(i)
//     MPI_Wait(Isend), MPI_Wait(Irecv)     produce(i + 1)
//     consume(i)                           MPI_Wait(Isend), MPI_Wait(Irecv)
//                                        consume(last)
//
// Expected (before the first run), messages above the eager limit: model 1 up to about 30 % shorter
// where communication takes about as long as computation, less at both ends; model 2 up to about 20
// % shorter. The gain can never pass communication / (communication + computation).
//
// x is communication / computation. Communication is the time of an iteration without computation
// (or --comm-us, so that all variants compute for the same time); produce and consume take half of
// the computation each. With --compute sleep both sleep instead, which stands for a computation on
// another core. A sample is one iteration on rank 0.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "bench.hpp"

using namespace bench;

namespace {

struct Exchange {
  int rank;
  std::size_t bytes;
  Compute how;
  std::unique_ptr<Buffer> out[2], in[2];  // data i lives in [i % 2]
  bool check = false;

  Exchange(int me, std::size_t size, Compute computing) : rank(me), bytes(size), how(computing) {
    for (int i = 0; i < 2; ++i)
      out[i] = std::make_unique<Buffer>(size), in[i] = std::make_unique<Buffer>(size);
  }
  int peer() const { return 1 - rank; }
  void pack(long i) {
    if (check)
      out[i % 2]->fill(bytes, static_cast<std::uint64_t>(2 * i + rank));
    else
      out[i % 2]->stamp(bytes, static_cast<std::uint64_t>(i));
  }
  void consume(long i, double us) {
    if (check) in[i % 2]->check(bytes, static_cast<std::uint64_t>(2 * i + peer()), "exchange");
    compute_us(us, how);
  }
  void send(long i, MPI_Request* r) {
    MPI_Isend(out[i % 2]->data(), static_cast<int>(bytes), MPI_BYTE, peer(), 1, MPI_COMM_WORLD, r);
  }
  void receive(long i, MPI_Request* r) {
    MPI_Irecv(in[i % 2]->data(), static_cast<int>(bytes), MPI_BYTE, peer(), 1, MPI_COMM_WORLD, r);
  }
};

/// Run a loop of one model; half_us is the length of produce and of consume.
Samples run(int model, Exchange& x, long iterations, double half_us, double budget_ms = 1e3) {
  Samples samples;
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = now_us();
  compute_us(half_us, x.how);
  long i = 0;
  for (Pace pace(iterations, budget_ms); pace.next();) {
    ++i;
    MPI_Request requests[2];
    if (model == 1) {
      x.receive(i, &requests[1]);
      x.pack(i);
      x.send(i, &requests[0]);
      compute_us(half_us, x.how);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      x.consume(i, half_us);
    } else {
      x.pack(i);
      x.send(i, &requests[0]);
      if (i > 1) x.consume(i - 1, half_us);
      x.receive(i, &requests[1]);
      compute_us(half_us, x.how);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    const double end = now_us();
    if (i > 1) samples.add(end - begin);  // the first iteration has another content
    begin = end;
  }
  if (model == 2) x.consume(i, half_us);
  return samples;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "128k,1m");
  const double given_us = options.number("comm-us", 0);
  const bool calibrate = options.number("calibrate", 0) != 0;
  const double budget_ms = options.number("budget-ms", 80);
  const long most = static_cast<long>(options.number("iterations", 500));
  const Compute how = options.compute();
  options.end();
  print_compute(how, rank);

  const double ratios[] = {0.1, 0.25, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0};
  for (const std::size_t bytes : sizes) {
    for (int model = 1; model <= 2; ++model) {
      Exchange x(rank, bytes, how);
      x.check = true;
      run(model, x, 4, 20);
      x.check = false;
      const char* name = model == 1 ? "model_1" : "model_2";
      run(model, x, 20, 0);
      const Samples bare = run(
          model, x, samples_for(budget_ms, run(model, x, 20, 0).median(), 20, most), 0, budget_ms);
      double comm_us = given_us > 0 ? given_us : bare.median();
      MPI_Bcast(&comm_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (rank == 0) row("exchange", name, bytes, 0, "communication", "us", bare);
      if (calibrate) continue;
      for (const double ratio : ratios) {
        const double compute = comm_us / ratio;
        const Samples iteration = run(model, x, samples_for(budget_ms, compute + comm_us, 10, most),
                                      compute / 2, budget_ms);
        if (rank == 0) row("exchange", name, bytes, ratio, "iteration", "us", iteration);
      }
    }
  }
  MPI_Finalize();
}
