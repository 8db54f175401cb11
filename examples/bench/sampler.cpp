// Question: in whose code is the time of a program spent: its own, MPI's, the PML's, the BTL's, the
// C library's? For any program:
//
//   mpirun -x LD_PRELOAD=.../libsampler.so program
//
// Expected (before the first run): of a stream of small messages through rings less is spent in the
// BTL and in the adapter's library than through its send/receive channel, because nothing is posted
// and no completion is looked up for a message that arrives.
//
// A timer interrupts the main thread every 100 us between MPI_Init and MPI_Finalize and notes where
// it is; the place is then named by the shared object that it lies in. Nothing in the measured code
// knows of it, so it costs nothing when it is not loaded. Time that the system takes away (a
// preempted process) counts for the place where it was taken; who waits is found where it looks.
// Each rank counts for itself; rank 0 prints a line per rank and object, as the benchmarks do, to
// stdout.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr long interval_ns = 100'000;
constexpr std::size_t samples_max = std::size_t{1}
                                    << 20;  // 100 seconds; what comes later is not noted
constexpr std::size_t name_bytes = 40;

std::uintptr_t* places = nullptr;  // [samples_max], the signal handler writes
std::atomic<std::size_t> noted{0};
timer_t timer;

std::uintptr_t place_of(const void* context) {
  const auto* const machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine->gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(machine->pc);
#else
  (void)machine;
  return 0;
#endif
}

void on_timer(int, siginfo_t*, void* context) {
  const std::size_t i = noted.fetch_add(1, std::memory_order_relaxed);
  if (i < samples_max) places[i] = place_of(context);
}

void begin() {
  places = static_cast<std::uintptr_t*>(std::calloc(samples_max, sizeof *places));
  if (places == nullptr) return;
  struct sigaction action {};
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
#else
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
#endif
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
    std::fprintf(stderr, "sampler: no timer\n");
    std::free(places);
    places = nullptr;
    return;
  }
  const itimerspec every{{0, interval_ns}, {0, interval_ns}};
  timer_settime(timer, 0, &every, nullptr);
}

/// Last part of a path, without what stands behind ".so".
std::string short_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  std::string name = slash != nullptr ? slash + 1 : path;
  const std::size_t end = name.find(".so");
  if (end != std::string::npos) name.resize(end);
  for (char& c : name)
    if (c == ',') c = '_';
  return name.substr(0, name_bytes - 1);
}

std::map<std::string, double> shares() {
  std::map<std::string, double> out;
  const std::size_t count = std::min(noted.load(), samples_max);
  std::map<std::uintptr_t, std::size_t> by_place;
  for (std::size_t i = 0; i < count; ++i) ++by_place[places[i]];
  for (const auto& [place, times] : by_place) {
    Dl_info info;
    const bool known =
        dladdr(reinterpret_cast<void*>(place), &info) != 0 && info.dli_fname != nullptr;
    out[known ? short_name(info.dli_fname) : "kernel"] +=
        100.0 * static_cast<double>(times) / static_cast<double>(count);
  }
  return out;
}

struct Line {
  char name[name_bytes];
  double share;
};

void print(int rank, const std::vector<Line>& lines, std::size_t samples) {
  for (const Line& line : lines)
    std::printf("row,components,rank %d: %s,0,0,share,%%,%zu,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g\n", rank,
                line.name, samples, line.share, line.share, line.share, line.share, line.share,
                line.share);
}

void end() {
  if (places == nullptr) return;
  timer_delete(timer);
  std::vector<Line> mine;
  for (const auto& [name, share] : shares()) {
    if (share < 0.5) continue;
    Line line{};
    std::memcpy(line.name, name.c_str(), name.size());
    line.share = share;
    mine.push_back(line);
  }
  int rank = 0, size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  long head[2] = {static_cast<long>(mine.size()), static_cast<long>(noted.load())};
  if (rank != 0) {
    PMPI_Send(head, 2, MPI_LONG, 0, 98, MPI_COMM_WORLD);
    PMPI_Send(mine.data(), static_cast<int>(mine.size() * sizeof(Line)), MPI_BYTE, 0, 98,
              MPI_COMM_WORLD);
    return;
  }
  print(0, mine, static_cast<std::size_t>(head[1]));
  for (int from = 1; from < size; ++from) {
    PMPI_Recv(head, 2, MPI_LONG, from, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::vector<Line> theirs(static_cast<std::size_t>(head[0]));
    PMPI_Recv(theirs.data(), static_cast<int>(theirs.size() * sizeof(Line)), MPI_BYTE, from, 98,
              MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    print(from, theirs, static_cast<std::size_t>(head[1]));
  }
  std::fflush(stdout);
}

}  // namespace

EXPORT int MPI_Init(int* argc, char*** argv) {
  const int rc = PMPI_Init(argc, argv);
  if (rc == MPI_SUCCESS) begin();
  return rc;
}

EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  if (rc == MPI_SUCCESS) begin();
  return rc;
}

EXPORT int MPI_Finalize() {
  end();
  return PMPI_Finalize();
}
