// Question: what does the usual cure cost and gain, a thread per rank that polls MPI so that
// messages move during a computation? For any program in C:
//
//   mpirun -x LD_PRELOAD=.../libprogressthread.so program
//
// Expected (before the first run): with a core to spare for each rank the overlap of ob1 comes
// close to what an asynchronous component reaches. Without one, the thread and the computation take
// turns on the core, and whatever is hidden is paid for with a longer computation. In both cases a
// core is busy for each rank while it computes, and every MPI call takes locks.
//
// MPI starts with MPI_THREAD_MULTIPLE, whatever the program asks for; the program is told the level
// that it has asked for. From then to MPI_Finalize a thread calls MPI_Iprobe on a communicator of
// its own, which finds no message, but makes progress of all others. Where a rank and its thread
// share a core, set mpi_yield_when_idle: both poll, and neither leaves the core before its time
// slice ends otherwise.
//
// MPI_Finalize ends the thread first, then the communicator goes.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdio>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// What is polled, and by whom. All but `end` is written by the thread that starts and finalizes
/// MPI, while the polling thread is not there.
struct Poller {
  MPI_Comm comm = MPI_COMM_NULL;
  pthread_t thread{};
  bool running = false;
  int level = MPI_THREAD_SINGLE;  // what the program was told
  // Nothing is published through it: the thread that sets it joins the one that reads it.
  std::atomic<bool> end{false};
};
Poller poller;

void* poll(void*) {
  while (!poller.end.load(std::memory_order_relaxed)) {
    int found = 0;
    PMPI_Iprobe(0, 0, poller.comm, &found, MPI_STATUS_IGNORE);
  }
  return nullptr;
}

[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "progress_thread: %s\n", why);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  __builtin_unreachable();
}

/// Start the thread, with all signals blocked: they are the program's.
///
/// A comparison without the thread would be of something else, so the job ends where it cannot run.
void begin(int provided) {
  if (provided < MPI_THREAD_MULTIPLE) fail("this MPI has no MPI_THREAD_MULTIPLE");
  PMPI_Comm_dup(MPI_COMM_SELF, &poller.comm);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  poller.running = pthread_create(&poller.thread, nullptr, poll, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!poller.running) fail("no thread can be made");
}

void end() {
  if (!poller.running) return;
  poller.end.store(true, std::memory_order_relaxed);
  pthread_join(poller.thread, nullptr);
  poller.running = false;
  PMPI_Comm_free(&poller.comm);
}

int init(int* argc, char*** argv, int level) {
  int provided = MPI_THREAD_SINGLE;
  const int rc = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  if (rc != MPI_SUCCESS) return rc;
  poller.level = level;
  begin(provided);
  return rc;
}

}  // namespace

EXPORT int MPI_Init(int* argc, char*** argv) { return init(argc, argv, MPI_THREAD_SINGLE); }

EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int rc = init(argc, argv, required);
  if (rc == MPI_SUCCESS) *provided = required;
  return rc;
}

EXPORT int MPI_Query_thread(int* provided) {
  int level = MPI_THREAD_SINGLE;
  const int rc = PMPI_Query_thread(&level);  // also says when MPI is not there yet
  if (rc == MPI_SUCCESS) *provided = poller.level;
  return rc;
}

EXPORT int MPI_Finalize() {
  end();
  return PMPI_Finalize();
}
