// Question: what do barrier, allreduce, broadcast, scatter and a shift along a ring (MPI_Sendrecv)
// gain from the way messages take?
//
// Expected (before the first run): barrier and small allreduce follow the latency; broadcast and
// scatter of 1 to 8 KiB from one buffer gain from not copying it (frequent-buffer-eager-2010, Fig.
// 6: up to 19 %). Large ones through shared memory follow the bandwidth from MPI_Send to MPI_Recv
// where their steps are such calls.
//
// A sample is the mean over the ranks of the time in one call; a barrier that is not timed stands
// before each, so that skew does not carry over. Any number of ranks. Broadcast and scatter begin
// at rank 0, sizes are per rank, and every byte is checked before the timing.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

enum class Kind { barrier, allreduce, bcast, scatter, shift };
constexpr Kind kinds[] = {Kind::barrier, Kind::allreduce, Kind::bcast, Kind::scatter, Kind::shift};
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::barrier: return "barrier";
    case Kind::allreduce: return "allreduce";
    case Kind::bcast: return "bcast";
    case Kind::scatter: return "scatter";
    case Kind::shift: return "shift";
  }
  return "";
}

struct World {
  int rank, size;
  MPI_Comm control;

  [[nodiscard]] int left() const { return (rank + size - 1) % size; }
  [[nodiscard]] int right() const { return (rank + 1) % size; }
};

void call(Kind kind, const World& world, Buffer& all, Buffer& mine, int bytes) {
  switch (kind) {
    case Kind::barrier: MPI_Barrier(MPI_COMM_WORLD); break;
    case Kind::allreduce:
      MPI_Allreduce(all.data(), mine.data(), std::max(bytes / 8, 1), MPI_UINT64_T, MPI_SUM,
                    MPI_COMM_WORLD);
      break;
    case Kind::bcast:
      MPI_Bcast(world.rank == 0 ? all.data() : mine.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
      break;
    case Kind::scatter:
      MPI_Scatter(all.data(), bytes, MPI_BYTE, mine.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
      break;
    case Kind::shift:
      MPI_Sendrecv(all.data() + static_cast<std::size_t>(bytes) * world.rank, bytes, MPI_BYTE,
                   world.right(), 0, mine.data(), bytes, MPI_BYTE, world.left(), 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      break;
  }
}

void check_pass(Kind kind, const World& world, Buffer& all, Buffer& mine, std::size_t bytes) {
  const std::size_t total = bytes * static_cast<std::size_t>(world.size);
  std::vector<unsigned char> expected(bytes);
  if (kind == Kind::allreduce) {
    const std::size_t words = std::max<std::size_t>(bytes / 8, 1);
    for (std::size_t i = 0; i < words; ++i) {
      const std::uint64_t value = static_cast<std::uint64_t>(world.rank) + i;
      std::memcpy(all.data() + 8 * i, &value, 8);
    }
    call(kind, world, all, mine, static_cast<int>(bytes));
    const std::uint64_t ranks = static_cast<std::uint64_t>(world.size);
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, mine.data() + 8 * i, 8);
      if (value == ranks * (ranks - 1) / 2 + ranks * i) continue;
      std::fprintf(stderr, "bench: allreduce: word %zu is wrong\n", i);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return;
  }
  if (kind == Kind::barrier) return;
  all.fill(total, 11);
  const int part = kind == Kind::scatter ? world.rank : kind == Kind::shift ? world.left() : 0;
  std::memcpy(expected.data(), all.data() + bytes * static_cast<std::size_t>(part), bytes);
  call(kind, world, all, mine, static_cast<int>(bytes));
  const unsigned char* const got =
      kind == Kind::bcast && world.rank == 0 ? all.data() : mine.data();
  if (std::memcmp(got, expected.data(), bytes) == 0) return;
  std::fprintf(stderr, "bench: %s of %zu bytes has brought wrong data\n", name_of(kind), bytes);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void measure(Kind kind, const World& world, std::size_t bytes, double budget_ms, long most) {
  Buffer all(std::max<std::size_t>(bytes, 8) * static_cast<std::size_t>(world.size)),
      mine(std::max<std::size_t>(bytes, 8));
  check_pass(kind, world, all, mine, bytes);
  Samples local;
  auto sample = [&] {
    all.stamp(8, local.values.size());
    MPI_Barrier(world.control);
    const double begin = now_us();
    call(kind, world, all, mine, static_cast<int>(bytes));
    return now_us() - begin;
  };
  Samples warm;
  for (int i = 0; i < 8; ++i) warm.add(sample());
  const long n = samples_for(budget_ms, 3 * warm.median(), 20, most);
  for (Pace pace(n, budget_ms); pace.next();) local.add(sample());
  Samples mean;
  mean.values.resize(local.values.size());
  MPI_Reduce(local.values.data(), mean.values.data(), static_cast<int>(local.values.size()),
             MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (double& v : mean.values) v /= world.size;
  if (world.rank == 0) row("collectives", name_of(kind), bytes, world.size, "latency", "us", mean);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world{};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8,128,1k,4k,8k");
  const std::string wanted = options.text("only", "all");
  const double budget_ms = options.number("budget-ms", 150);
  const long most = static_cast<long>(options.number("samples", 2000));
  options.end();
  MPI_Comm_dup(MPI_COMM_WORLD, &world.control);
  for (const Kind kind : kinds) {
    if (wanted != "all" && wanted.find(name_of(kind)) == std::string::npos) continue;
    if (kind == Kind::barrier)
      measure(kind, world, 0, budget_ms, most);
    else
      for (const std::size_t bytes : sizes) measure(kind, world, bytes, budget_ms, most);
  }
  MPI_Comm_free(&world.control);
  MPI_Finalize();
}
