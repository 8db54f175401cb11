// Question: how long does a program wait in MPI, and in which calls? For any program, through the
// profiling interface:
//
//   mpirun -x LD_PRELOAD=PREFIX/lib/overlap/libwaitprofile.so program    (or link it in front of
//   the MPI library; `make install` puts it there)
//
// Expected (before the first run): the calls of a program that posts receives early shift from
// MPI_Wait* to nothing with speculative.
//
// At MPI_Finalize rank 0 prints one table to stderr: calls, seconds summed over ranks, the largest
// of one rank, and the share of the time between MPI_Init and MPI_Finalize. WAITPROFILE_ROWS=1
// prints the lines that run.py collects to stdout instead. C, C++ and Fortran (mpif.h,
// use mpi, use mpi_f08). Calls that MPI makes to itself are not counted. Several threads may call.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Every call that may wait: X(name, Fortran name, parameters, arguments, number of Fortran
// arguments)
#define CALLS(X)                                                                                   \
  X(Wait, wait, (MPI_Request * r, MPI_Status * s), (r, s), 3)                                      \
  X(Waitall, waitall, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s), 4)                      \
  X(Waitany, waitany, (int n, MPI_Request r[], int* i, MPI_Status* s), (n, r, i, s), 5)            \
  X(Waitsome, waitsome, (int n, MPI_Request r[], int* o, int i[], MPI_Status s[]),                 \
    (n, r, o, i, s), 6)                                                                            \
  X(Test, test, (MPI_Request * r, int* f, MPI_Status* s), (r, f, s), 4)                            \
  X(Testall, testall, (int n, MPI_Request r[], int* f, MPI_Status s[]), (n, r, f, s), 5)           \
  X(Testany, testany, (int n, MPI_Request r[], int* i, int* f, MPI_Status* s), (n, r, i, f, s), 6) \
  X(Send, send, (const void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c),                  \
    (b, n, d, p, t, c), 7)                                                                         \
  X(Ssend, ssend, (const void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c),                \
    (b, n, d, p, t, c), 7)                                                                         \
  X(Bsend, bsend, (const void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c),                \
    (b, n, d, p, t, c), 7)                                                                         \
  X(Rsend, rsend, (const void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c),                \
    (b, n, d, p, t, c), 7)                                                                         \
  X(Recv, recv, (void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c, MPI_Status* s),         \
    (b, n, d, p, t, c, s), 8)                                                                      \
  X(Isend, isend,                                                                                  \
    (const void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c, MPI_Request* r),              \
    (b, n, d, p, t, c, r), 8)                                                                      \
  X(Irecv, irecv, (void* b, int n, MPI_Datatype d, int p, int t, MPI_Comm c, MPI_Request* r),      \
    (b, n, d, p, t, c, r), 8)                                                                      \
  X(Start, start, (MPI_Request * r), (r), 2)                                                       \
  X(Startall, startall, (int n, MPI_Request r[]), (n, r), 3)                                       \
  X(Sendrecv, sendrecv,                                                                            \
    (const void* b, int n, MPI_Datatype d, int p, int t, void* b2, int n2, MPI_Datatype d2,        \
     int p2, int t2, MPI_Comm c, MPI_Status* s),                                                   \
    (b, n, d, p, t, b2, n2, d2, p2, t2, c, s), 13)                                                 \
  X(Probe, probe, (int p, int t, MPI_Comm c, MPI_Status* s), (p, t, c, s), 5)                      \
  X(Iprobe, iprobe, (int p, int t, MPI_Comm c, int* f, MPI_Status* s), (p, t, c, f, s), 6)         \
  X(Mprobe, mprobe, (int p, int t, MPI_Comm c, MPI_Message* m, MPI_Status* s), (p, t, c, m, s), 6) \
  X(Improbe, improbe, (int p, int t, MPI_Comm c, int* f, MPI_Message* m, MPI_Status* s),           \
    (p, t, c, f, m, s), 7)                                                                         \
  X(Mrecv, mrecv, (void* b, int n, MPI_Datatype d, MPI_Message* m, MPI_Status* s),                 \
    (b, n, d, m, s), 6)                                                                            \
  X(Imrecv, imrecv, (void* b, int n, MPI_Datatype d, MPI_Message* m, MPI_Request* r),              \
    (b, n, d, m, r), 6)                                                                            \
  X(Testsome, testsome, (int n, MPI_Request r[], int* o, int i[], MPI_Status s[]),                 \
    (n, r, o, i, s), 6)                                                                            \
  X(Barrier, barrier, (MPI_Comm c), (c), 2)                                                        \
  X(Bcast, bcast, (void* b, int n, MPI_Datatype d, int p, MPI_Comm c), (b, n, d, p, c), 6)         \
  X(Reduce, reduce, (const void* b, void* b2, int n, MPI_Datatype d, MPI_Op o, int p, MPI_Comm c), \
    (b, b2, n, d, o, p, c), 8)                                                                     \
  X(Allreduce, allreduce, (const void* b, void* b2, int n, MPI_Datatype d, MPI_Op o, MPI_Comm c),  \
    (b, b2, n, d, o, c), 7)                                                                        \
  X(Allgather, allgather,                                                                          \
    (const void* b, int n, MPI_Datatype d, void* b2, int n2, MPI_Datatype d2, MPI_Comm c),         \
    (b, n, d, b2, n2, d2, c), 8)                                                                   \
  X(Alltoall, alltoall,                                                                            \
    (const void* b, int n, MPI_Datatype d, void* b2, int n2, MPI_Datatype d2, MPI_Comm c),         \
    (b, n, d, b2, n2, d2, c), 8)                                                                   \
  X(Alltoallv, alltoallv,                                                                          \
    (const void* b, const int n[], const int o[], MPI_Datatype d, void* b2, const int n2[],        \
     const int o2[], MPI_Datatype d2, MPI_Comm c),                                                 \
    (b, n, o, d, b2, n2, o2, d2, c), 10)                                                           \
  X(Gather, gather,                                                                                \
    (const void* b, int n, MPI_Datatype d, void* b2, int n2, MPI_Datatype d2, int p, MPI_Comm c),  \
    (b, n, d, b2, n2, d2, p, c), 9)                                                                \
  X(Scatter, scatter,                                                                              \
    (const void* b, int n, MPI_Datatype d, void* b2, int n2, MPI_Datatype d2, int p, MPI_Comm c),  \
    (b, n, d, b2, n2, d2, p, c), 9)

namespace {

enum Call {
#define X(name, fortran, parameters, arguments, count) call_##name,
  CALLS(X)
#undef X
      calls
};
const char* const call_names[] = {
#define X(name, fortran, parameters, arguments, count) "MPI_" #name,
    CALLS(X)
#undef X
};

// Counters only: nothing is published through them, so relaxed is enough.
std::atomic<std::uint64_t> call_counts[calls], call_ns[calls];
std::atomic<std::uint64_t> begin_ns{0};

std::uint64_t now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<std::uint64_t>(ts.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(ts.tv_nsec);
}

class Timer {
 public:
  explicit Timer(Call call) : call_(call), begin_(now_ns()) {}
  ~Timer() {
    call_ns[call_].fetch_add(now_ns() - begin_, std::memory_order_relaxed);
    call_counts[call_].fetch_add(1, std::memory_order_relaxed);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  Call call_;
  std::uint64_t begin_;
};

void print_table(const double* sum, const double* most, const double* counts, double run_s,
                 int ranks) {
  double all = 0;
  std::fprintf(stderr,
               "\nwait-time profile: %d ranks, %.3f s each between MPI_Init and MPI_Finalize\n",
               ranks, run_s / ranks);
  std::fprintf(stderr, "%-14s %12s %12s %14s %9s\n", "call", "calls", "seconds", "most of a rank",
               "share");
  for (int i = 0; i < calls; ++i) {
    if (counts[i] == 0) continue;
    std::fprintf(stderr, "%-14s %12.0f %12.6f %14.6f %8.2f%%\n", call_names[i], counts[i], sum[i],
                 most[i], 100 * sum[i] / run_s);
    all += sum[i];
  }
  std::fprintf(stderr, "%-14s %12s %12.6f %14s %8.2f%%\n", "all", "", all, "", 100 * all / run_s);
}

void print_rows(const double* sum, const double* counts, double run_s) {
  for (int i = 0; i < calls; ++i)
    if (counts[i] > 0)
      std::printf("row,waitprofile,%s,0,0,seconds,s,%.0f,%.6g,0,0,0,0,0\n", call_names[i],
                  counts[i], sum[i]);
  std::printf("row,waitprofile,run,0,0,seconds,s,1,%.6g,0,0,0,0,0\n", run_s);
  std::fflush(stdout);
}

/// Gather and print; called once, before MPI ends.
void report() {
  double seconds[calls + 1], counts[calls], sum[calls + 1], most[calls + 1], all_counts[calls];
  for (int i = 0; i < calls; ++i) {
    seconds[i] = 1e-9 * static_cast<double>(call_ns[i].load(std::memory_order_relaxed));
    counts[i] = static_cast<double>(call_counts[i].load(std::memory_order_relaxed));
  }
  seconds[calls] = 1e-9 * static_cast<double>(now_ns() - begin_ns.load(std::memory_order_relaxed));
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Reduce(seconds, sum, calls + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  PMPI_Reduce(seconds, most, calls + 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  PMPI_Reduce(counts, all_counts, calls, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  if (std::getenv("WAITPROFILE_ROWS") != nullptr)
    print_rows(sum, all_counts, sum[calls]);
  else
    print_table(sum, most, all_counts, sum[calls], ranks);
}

void begin() { begin_ns.store(now_ns(), std::memory_order_relaxed); }

}  // namespace

#define X(name, fortran, parameters, arguments, count) \
  EXPORT int MPI_##name parameters {                   \
    Timer timer(call_##name);                          \
    return PMPI_##name arguments;                      \
  }
CALLS(X)
#undef X

EXPORT int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  begin();
  return code;
}
EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  begin();
  return code;
}
EXPORT int MPI_Finalize() {
  report();
  return PMPI_Finalize();
}

// Fortran: all arguments are addresses. The bindings of Open MPI call the C library's own entry
// points, so they are wrapped too. Weak: a C program does not load them. No binding has hidden
// string lengths here.
#define P1 void* a1
#define P2 P1, void* a2
#define P3 P2, void* a3
#define P4 P3, void* a4
#define P5 P4, void* a5
#define P6 P5, void* a6
#define P7 P6, void* a7
#define P8 P7, void* a8
#define P9 P8, void* a9
#define P10 P9, void* a10
#define P11 P10, void* a11
#define P12 P11, void* a12
#define P13 P12, void* a13
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A11 A10, a11
#define A12 A11, a12
#define A13 A12, a13
#define X(name, fortran, parameters, arguments, count)               \
  extern "C" __attribute__((weak)) void pmpi_##fortran##_(P##count); \
  EXPORT void mpi_##fortran##_(P##count) {                           \
    Timer timer(call_##name);                                        \
    pmpi_##fortran##_(A##count);                                     \
  }
CALLS(X)
#undef X
// mpi_f08: the same addresses; a handle's type holds one integer, and an error code that was left
// out is a null pointer, which is passed on.
#define X(name, fortran, parameters, arguments, count)                   \
  extern "C" __attribute__((weak)) void pmpi_##fortran##_f08_(P##count); \
  EXPORT void mpi_##fortran##_f08_(P##count) {                           \
    Timer timer(call_##name);                                            \
    pmpi_##fortran##_f08_(A##count);                                     \
  }
CALLS(X)
#undef X
#define BEGIN_AND_END(suffix)                                                           \
  extern "C" __attribute__((weak)) void pmpi_init_##suffix(void*);                      \
  extern "C" __attribute__((weak)) void pmpi_init_thread_##suffix(void*, void*, void*); \
  extern "C" __attribute__((weak)) void pmpi_finalize_##suffix(void*);                  \
  EXPORT void mpi_init_##suffix(void* code) {                                           \
    pmpi_init_##suffix(code);                                                           \
    begin();                                                                            \
  }                                                                                     \
  EXPORT void mpi_init_thread_##suffix(void* required, void* provided, void* code) {    \
    pmpi_init_thread_##suffix(required, provided, code);                                \
    begin();                                                                            \
  }                                                                                     \
  EXPORT void mpi_finalize_##suffix(void* code) {                                       \
    report();                                                                           \
    pmpi_finalize_##suffix(code);                                                       \
  }
BEGIN_AND_END()
BEGIN_AND_END(f08_)
#undef BEGIN_AND_END
