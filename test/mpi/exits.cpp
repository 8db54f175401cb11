// Ends of a program, and faults, while the thread that progresses is there. Its own main, because
// what it looks at is its exit status; run.sh knows which one is right.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr int large_bytes = 4 << 20;
constexpr int small_bytes = 2000;
constexpr std::size_t page_bytes = 1 << 16;

/// Made before MPI_Init, and gone after everything that Open MPI has loaded there.
struct Session {
  bool finalizes = false;
  ~Session() {
    if (finalizes) MPI_Finalize();
  }
} session;

int rank_of_this() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Large messages that are under way while nobody is in MPI.
void exchange() {
  const int other = 1 - rank_of_this();
  std::vector<char> in(large_bytes), out(large_bytes);
  for (int i = 0; i < 10; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(in.data(), large_bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), large_bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[1]);
    usleep(3000);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

/// A receive of a message that nobody sends.
MPI_Request expect_nothing() {
  static std::vector<char> in(large_bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(in.data(), large_bytes, MPI_BYTE, 1 - rank_of_this(), 7, MPI_COMM_WORLD, &request);
  return request;
}

void exit_beside_wait() {
  std::thread([] {
    usleep(100'000);
    std::exit(7);
  }).detach();
  MPI_Request request = expect_nothing();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void exit_in_child() {
  MPI_Request request = expect_nothing();
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = 1;
  waitpid(child, &status, 0);
  exchange();
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (status != 0) std::exit(9);
}

/// As programs that do not know of _exit(): its exit handlers run in the memory of this process.
void exit_in_vforked_child() {
  MPI_Request request = expect_nothing();
  const pid_t child = vfork();
  if (child == 0) {
    execl("/nowhere", "nothing", nullptr);
    std::exit(0);
  }
  waitpid(child, nullptr, 0);
  exchange();
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// The signal mostly interrupts malloc() or free(), which the thread may need to end.
void exit_in_handler() {
  std::signal(SIGALRM, [](int) { std::exit(7); });
  expect_nothing();
  const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 50'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  for (std::size_t bytes = 5000;; bytes = bytes * 7 % 100'003 + 5000) {
    std::vector<char> some(bytes), more(bytes / 3);
    some[0] = more[0];
  }
}

/// Signals that all threads block are taken by sigwait().
void wait_for_signal() {
  sigset_t trap;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  MPI_Request request = expect_nothing();
  usleep(20'000);
  kill(getpid(), SIGTRAP);
  const timespec longest{.tv_sec = 10, .tv_nsec = 0};
  if (sigtimedwait(&trap, nullptr, &longest) != SIGTRAP) std::exit(9);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

char* page = nullptr;

void map_page() {
  void* const memory =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page = static_cast<char*>(memory);
}

/// The buffer of a receive goes with the program's objects, and its message comes then.
void exit_before_arrival() {
  std::vector<char> large(large_bytes), small(small_bytes, 'x');
  MPI_Request requests[2];
  if (rank_of_this() == 1) {
    map_page();
    MPI_Irecv(page, small_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
    requests[1] = expect_nothing();
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    std::exit(3);
  }
  MPI_Recv(nullptr, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  usleep(50'000);
  MPI_Isend(small.data(), small_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(large.data(), large_bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/// As programs that note which pages are written.
void receive_into_locked_page() {
  map_page();
  std::signal(SIGSEGV, [](int) { mprotect(page, page_bytes, PROT_READ | PROT_WRITE); });
  std::vector<char> large(large_bytes), small(small_bytes, 'x');
  const bool receives = rank_of_this() == 1;
  for (int i = 0; i < 5; ++i) {
    MPI_Request requests[2];
    if (receives) {
      mprotect(page, page_bytes, PROT_READ);
      MPI_Irecv(page, small_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(large.data(), large_bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
      usleep(50'000);
    } else {
      usleep(20'000);
      MPI_Isend(small.data(), small_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(large.data(), large_bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[1]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (receives && page[small_bytes - 1] != 'x') std::exit(9);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc < 2 ? "" : argv[1];
  std::atexit([] { usleep(200'000); });  // longer than the thread sleeps
  std::atexit([] {
    if (page != nullptr) munmap(page, page_bytes);
  });
  if (how == "waited") {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }
  MPI_Init(&argc, &argv);
  exchange();
  if (how == "static") {
    session.finalizes = true;
    return 0;
  }
  if (how == "outstanding") {
    expect_nothing();
    std::exit(3);
  }
  if (how == "gone") exit_before_arrival();
  if (how == "beside") exit_beside_wait();
  if (how == "child") exit_in_child();
  if (how == "vforked") exit_in_vforked_child();
  if (how == "handler") exit_in_handler();
  if (how == "waited") wait_for_signal();
  if (how == "fault") receive_into_locked_page();
  MPI_Finalize();
  return 0;
}
