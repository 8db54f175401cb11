// Question: how much of a nonblocking collective disappears behind computation, and what does that
// cost in processor time?
//
// Expected (before the first run): with ob1 next to nothing of whatever needs an answer or has
// several rounds, because nobody advances it between the call and MPI_Wait. An asynchronous
// component advances messages: the only round of ialltoall, igather and iscatter, but only the
// first of iallreduce and, from four ranks on, of ibcast and ibarrier. The next one starts in
// MPI_Wait. A thread that polls MPI hides all.
//
// Definition, as in overlap.cpp. All ranks do
//     barrier that is not timed; MPI_I...; [computation of length C without MPI calls]; MPI_Wait
//   exposed(C) = time inside MPI_I... + time inside MPI_Wait, mean over the ranks
//   transfer   = median of exposed(0)
//   overlap    = 1 - exposed(C) / transfer, with C = 1.5 x transfer + slack
// Iterations with and without computation alternate. Processor is the mean processor time of all
// ranks and their threads for one collective with its computation. --compute sleep: the computation
// sleeps instead, which stands for one on another core.
//
// Sizes are per rank (ialltoall: per pair of ranks), the root is rank 0, any number of ranks, and
// every byte is checked before the timing.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

enum class Kind { ialltoall, igather, iscatter, ibcast, iallreduce, ibarrier };
constexpr Kind kinds[] = {Kind::ialltoall, Kind::igather,    Kind::iscatter,
                          Kind::ibcast,    Kind::iallreduce, Kind::ibarrier};
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::ialltoall: return "ialltoall";
    case Kind::igather: return "igather";
    case Kind::iscatter: return "iscatter";
    case Kind::ibcast: return "ibcast";
    case Kind::iallreduce: return "iallreduce";
    case Kind::ibarrier: return "ibarrier";
  }
  return "";
}

struct World {
  int rank, size;
  MPI_Comm control;  // barriers, so that they never meet what is measured
  Compute how;
};
/// The data of one collective: `out` and `in` hold a block for each rank.
struct Data {
  Buffer out, in;
  std::size_t bytes;
};

void start_collective(Kind kind, Data& data, MPI_Request* request) {
  const int n = static_cast<int>(data.bytes);
  const MPI_Comm world = MPI_COMM_WORLD;
  unsigned char *const out = data.out.data(), *const in = data.in.data();
  switch (kind) {
    case Kind::ialltoall: MPI_Ialltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, world, request); break;
    case Kind::igather: MPI_Igather(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, world, request); break;
    case Kind::iscatter: MPI_Iscatter(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, world, request); break;
    case Kind::ibcast: MPI_Ibcast(in, n, MPI_BYTE, 0, world, request); break;
    case Kind::iallreduce: MPI_Iallreduce(out, in, n, MPI_UINT8_T, MPI_BXOR, world, request); break;
    case Kind::ibarrier: MPI_Ibarrier(world, request); break;
  }
}

/// One collective with a computation; returns the time inside MPI.
double once(Kind kind, const World& world, Data& data, double compute) {
  MPI_Barrier(world.control);
  MPI_Request request;
  const double begin = now_us();
  start_collective(kind, data, &request);
  const double started = now_us();
  compute_us(compute, world.how);
  const double wait = now_us();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return (started - begin) + (now_us() - wait);
}

/// Byte i of the block that `from` has for `to`.
unsigned char byte_of(int from, int to, std::size_t i) {
  return static_cast<unsigned char>(31 * from + 7 * to + static_cast<int>(i % 251));
}

/// What byte i of a block of `in` is at this rank in the end.
unsigned char expected(Kind kind, const World& world, int block, std::size_t i) {
  switch (kind) {
    case Kind::ialltoall: return byte_of(block, world.rank, i);
    case Kind::igather: return byte_of(block, 0, i);
    case Kind::iscatter: return byte_of(0, world.rank, i);
    case Kind::ibcast: return byte_of(0, 0, i);
    case Kind::iallreduce:
    case Kind::ibarrier: break;
  }
  unsigned char all = 0;
  for (int from = 0; from < world.size; ++from) all ^= byte_of(from, 0, i);
  return all;
}

/// How many blocks of `in` a rank receives.
int blocks_of(Kind kind, const World& world) {
  if (kind == Kind::ibarrier || (kind == Kind::igather && world.rank != 0)) return 0;
  return kind == Kind::ialltoall || kind == Kind::igather ? world.size : 1;
}

void check_pass(Kind kind, const World& world, Data& data, double compute) {
  std::memset(data.in.data(), 0, data.bytes * static_cast<std::size_t>(world.size));
  for (int to = 0; to < world.size; ++to)
    for (std::size_t i = 0; i < data.bytes; ++i)
      data.out.data()[static_cast<std::size_t>(to) * data.bytes + i] = byte_of(world.rank, to, i);
  if (kind == Kind::ibcast && world.rank == 0)
    std::memcpy(data.in.data(), data.out.data(), data.bytes);
  once(kind, world, data, compute);
  for (int block = 0; block < blocks_of(kind, world); ++block)
    for (std::size_t i = 0; i < data.bytes; ++i) {
      if (data.in.data()[static_cast<std::size_t>(block) * data.bytes + i] ==
          expected(kind, world, block, i))
        continue;
      std::fprintf(stderr, "bench: %s: byte %zu of block %d at rank %d is wrong\n", name_of(kind),
                   i, block, world.rank);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

/// The mean over the ranks, sample by sample; at rank 0.
Samples mean_of(const Samples& mine, const World& world) {
  Samples mean;
  mean.values.resize(mine.values.size());
  MPI_Reduce(mine.values.data(), mean.values.data(), static_cast<int>(mine.values.size()),
             MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (double& v : mean.values) v /= world.size;
  return mean;
}

void measure(Kind kind, const World& world, std::size_t bytes, double budget_ms, long most) {
  const std::size_t total = bytes * static_cast<std::size_t>(world.size);
  Data data{Buffer(total), Buffer(total), bytes};
  std::uint64_t stamp = 0;
  auto sample = [&](double compute) {
    (kind == Kind::ibcast && world.rank == 0 ? data.in : data.out).stamp(total, ++stamp);
    return once(kind, world, data, compute);
  };
  check_pass(kind, world, data, 0);
  Samples warm;
  for (int i = 0; i < 8; ++i) warm.add(sample(0));
  double first = mean_of(warm, world).median();
  MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const double compute = 1.5 * first + 20;
  check_pass(kind, world, data, compute);
  const long n = samples_for(budget_ms, 2 * first + compute + 50, 10, most);
  Samples bare, computing;
  double used_us = 0;
  for (Pace pace(n, budget_ms); pace.next();) {
    bare.add(sample(0));
    const double before_us = processor_us();
    computing.add(sample(compute));
    used_us += processor_us() - before_us;
  }
  const Samples transfer = mean_of(bare, world), exposed = mean_of(computing, world);
  const Samples processor = sum_at_rank0(used_us / static_cast<double>(computing.values.size()));
  if (world.rank != 0) return;
  Samples overlap;
  for (const double e : exposed.values) overlap.add(100.0 * (1.0 - e / transfer.median()));
  row("async", name_of(kind), bytes, world.size, "overlap", "%", overlap);
  row("async", name_of(kind), bytes, world.size, "transfer", "us", transfer);
  row("async", name_of(kind), bytes, world.size, "exposed", "us", exposed);
  row("async", name_of(kind), bytes, world.size, "processor", "us", processor);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world{};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "64k,256k,1m");
  const std::string wanted = options.text("only", "all");
  const double budget_ms = options.number("budget-ms", 100);
  const long most = static_cast<long>(options.number("samples", 300));
  world.how = options.compute();
  options.end();
  print_compute(world.how, world.rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &world.control);
  for (const Kind kind : kinds) {
    if (wanted != "all" &&
        ("," + wanted + ",").find(std::string(",") + name_of(kind) + ",") == std::string::npos)
      continue;
    if (kind == Kind::ibarrier)
      measure(kind, world, 0, budget_ms, most);
    else
      for (const std::size_t bytes : sizes) measure(kind, world, bytes, budget_ms, most);
  }
  MPI_Comm_free(&world.control);
  MPI_Finalize();
}
