// Question: how much of a collective that does not block disappears behind the computation that
// follows its start, and what does a blocking barrier cost?
//
// Expected (before the first run): ibarrier over TCP nodes with common_overlap_progress on at
// least 80 % overlap, ibcast and iallreduce from 8 B to 64 KiB the same; ob1 with coll/libnbc,
// whose steps wait for MPI_Wait, at most 30 %. The blocking barrier through shared memory as fast
// as coll/tuned's.
//
// Definition, at every rank, as with one block of work in the paper on CORE-Direct's barrier:
//     begin; MPI_I...; [computation of length C without MPI calls]; MPI_Wait; end
//   exposed(C) = time inside the call that starts and inside MPI_Wait
//   time       = median of the ranks' mean of exposed(0): nothing is hidden
//   overlap    = 1 - exposed(C) / time, with C = 1.5 x time + slack; the mean over the ranks
// Nothing is subtracted as unavoidable. With --compute sleep the computation sleeps: it stands for
// one on another core, so that whatever makes progress has a core to spare. Ranks leave a barrier
// of point-to-point messages, which is not under test, together. Every result is checked first.
// Any number of ranks.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

enum class Kind { barrier, ibarrier, ibcast, iallreduce, ialltoall };
constexpr Kind kinds[] = {Kind::barrier, Kind::ibarrier, Kind::ibcast, Kind::iallreduce,
                          Kind::ialltoall};
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::barrier: return "barrier";
    case Kind::ibarrier: return "ibarrier";
    case Kind::ibcast: return "ibcast";
    case Kind::iallreduce: return "iallreduce";
    case Kind::ialltoall: return "ialltoall";
  }
  return "";
}

struct World {
  int rank, size;
  MPI_Comm control;
  Compute how;
};

void meet(const World& world) {
  char in = 0;
  for (int distance = 1; distance < world.size; distance *= 2) {
    MPI_Sendrecv("x", 1, MPI_CHAR, (world.rank + distance) % world.size, 1, &in, 1, MPI_CHAR,
                 (world.rank + world.size - distance) % world.size, 1, world.control,
                 MPI_STATUS_IGNORE);
  }
}

struct Buffers {
  std::vector<std::uint64_t> in, out;
};

MPI_Request begin(Kind kind, Buffers& data, int words, int root) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (kind) {
    case Kind::barrier: MPI_Barrier(MPI_COMM_WORLD); break;
    case Kind::ibarrier: MPI_Ibarrier(MPI_COMM_WORLD, &request); break;
    case Kind::ibcast:
      MPI_Ibcast(data.in.data(), words, MPI_UINT64_T, root, MPI_COMM_WORLD, &request);
      break;
    case Kind::iallreduce:
      MPI_Iallreduce(data.in.data(), data.out.data(), words, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD,
                     &request);
      break;
    case Kind::ialltoall:
      MPI_Ialltoall(data.in.data(), words, MPI_UINT64_T, data.out.data(), words, MPI_UINT64_T,
                    MPI_COMM_WORLD, &request);
  }
  return request;
}

/// @returns  exposed(compute) at this rank
double once(Kind kind, const World& world, Buffers& data, int words, double compute) {
  meet(world);
  const double start_us = now_us();
  MPI_Request request = begin(kind, data, words, 0);
  const double started_us = now_us();
  if (compute > 0) compute_us(compute, world.how);
  const double wait_us = now_us();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return (started_us - start_us) + (now_us() - wait_us);
}

void check_pass(Kind kind, const World& world, Buffers& data, int words) {
  const auto ranks = static_cast<std::uint64_t>(world.size);
  const auto me = static_cast<std::uint64_t>(world.rank);
  for (std::size_t i = 0; i < data.in.size(); ++i) data.in[i] = me * 1000 + i;
  once(kind, world, data, words, 50);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(words); ++i) {
    bool right = true;
    if (kind == Kind::ibcast) right = data.in[i] == i;
    if (kind == Kind::iallreduce) right = data.out[i] == ranks * (ranks - 1) * 500 + ranks * i;
    if (kind == Kind::ialltoall) {
      const auto n = static_cast<std::uint64_t>(words);
      for (std::uint64_t r = 0; r < ranks; ++r)
        right = right && data.out[r * n + i] == r * 1000 + me * n + i;
    }
    if (right) continue;
    std::fprintf(stderr, "bench: %s: word %zu is wrong\n", name_of(kind),
                 static_cast<std::size_t>(i));
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

double mean_over_ranks(double value, const World& world) {
  double sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, world.control);
  return sum / world.size;
}

void measure(Kind kind, const World& world, std::size_t bytes, double budget_ms, long most) {
  const int words = static_cast<int>(std::max<std::size_t>(bytes / 8, 1));
  Buffers data;
  data.in.resize(static_cast<std::size_t>(words * world.size));
  data.out.resize(data.in.size());
  check_pass(kind, world, data, words);
  Samples first;
  for (int i = 0; i < 30; ++i) first.add(mean_over_ranks(once(kind, world, data, words, 0), world));
  const bool blocks = kind == Kind::barrier;
  const double compute = blocks ? 0 : 1.5 * first.median() + 20;
  const long n = samples_for(budget_ms, 3 * first.median() + compute + 100, 20, most);
  Samples time, exposed, overlap;
  for (Pace pace(n, budget_ms); pace.next();) {
    time.add(mean_over_ranks(once(kind, world, data, words, 0), world));
    if (!blocks) exposed.add(mean_over_ranks(once(kind, world, data, words, compute), world));
  }
  if (world.rank != 0) return;
  const double whole = time.median();
  for (const double e : exposed.values) overlap.add(100.0 * (1.0 - e / whole));
  row("icollectives", name_of(kind), bytes, 0, "time", "us", time);
  if (blocks) return;
  row("icollectives", name_of(kind), bytes, 0, "overlap", "%", overlap);
  row("icollectives", name_of(kind), bytes, 0, "exposed", "us", exposed);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world{0, 1, MPI_COMM_NULL, Compute::spin};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8,1k,8k,64k");
  const std::string wanted = options.text("only", "all");
  const double budget_ms = options.number("budget-ms", 200);
  const long most = static_cast<long>(options.number("samples", 500));
  world.how = options.compute();
  options.end();
  print_compute(world.how, world.rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &world.control);
  for (const Kind kind : kinds) {
    if (wanted != "all" &&
        ("," + wanted + ",").find(std::string(",") + name_of(kind) + ",") == std::string::npos)
      continue;
    if (kind == Kind::barrier || kind == Kind::ibarrier) {
      measure(kind, world, 0, budget_ms, most);
      continue;
    }
    for (const std::size_t bytes : sizes) measure(kind, world, bytes, budget_ms, most);
  }
  MPI_Comm_free(&world.control);
  MPI_Finalize();
}
