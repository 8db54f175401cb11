// A connection that is made within a call: a message that comes by it moves while its receiver
// computes afterwards (P4.3). Its own main, because a barrier before the case would make the
// connection.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int large_bytes = 24 << 20;  // more than two sockets take in while nobody reads
constexpr int large_tag = 1, small_tag = 2;
constexpr useconds_t a_while_us = 20'000;
constexpr std::chrono::seconds longest{20};

/// Both ranks see it without MPI.
class Steps {
 public:
  /// The processes of a node have one parent.
  Steps() : name_("/overlap-test-connections-" + std::to_string(getppid())) {
    const int file = shm_open(name_.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *step_) != 0) return;
    void* at = mmap(nullptr, sizeof *step_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) step_ = static_cast<std::atomic<int>*>(at);  // a new file is zero
  }
  [[nodiscard]] bool usable() const { return step_ != nullptr; }
  void reach(int step) { step_->store(step); }
  [[nodiscard]] bool wait_for(int step) {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (step_->load() < step) {
      if (std::chrono::steady_clock::now() > end) return false;
      usleep(100);
    }
    return true;
  }
  void unlink() { shm_unlink(name_.c_str()); }

 private:
  std::string name_;
  std::atomic<int>* step_ = nullptr;
};

void send_late(Steps& steps) {
  std::vector<char> large(large_bytes, 'l');
  int word = 7;
  if (!steps.wait_for(1)) return;
  usleep(a_while_us);  // the receiver's thread sleeps, and its program is in the call
  MPI_Send(&word, 1, MPI_INT, 1, small_tag, MPI_COMM_WORLD);
  if (!steps.wait_for(2)) return;
  usleep(a_while_us);
  MPI_Send(large.data(), large_bytes, MPI_CHAR, 1, large_tag, MPI_COMM_WORLD);
  steps.reach(3);
}

/// The call in which the connection is made.
void take_small(std::string_view call, int& word) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (call == "probe") {
    MPI_Probe(MPI_ANY_SOURCE, small_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (call == "wait" || call == "waitall") {
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, small_tag, MPI_COMM_WORLD, &request);
    if (call == "wait")
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    else
      MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  } else {
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, small_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/// @returns  whether the large message was there before the next MPI call
bool receive(Steps& steps, std::string_view call) {
  std::vector<char> large(large_bytes, '-');
  int word = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(large.data(), large_bytes, MPI_CHAR, MPI_ANY_SOURCE, large_tag, MPI_COMM_WORLD,
            &request);
  usleep(a_while_us);  // its thread has looked, and sleeps
  steps.reach(1);
  take_small(call, word);
  steps.unlink();  // both have it
  steps.reach(2);
  const bool moved = steps.wait_for(3);
  if (call == "probe") MPI_Recv(&word, 1, MPI_INT, 0, small_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const bool right = word == 7 && std::count(large.begin(), large.end(), 'l') == large_bytes;
  if (!moved) std::fprintf(stderr, "the message waited for the next MPI call\n");
  if (!right) std::fprintf(stderr, "wrong data\n");
  return moved && right;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view call = argc > 1 ? argv[1] : "recv";
  MPI_Init(&argc, &argv);
  Steps steps;
  if (!steps.usable()) MPI_Abort(MPI_COMM_WORLD, 2);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bool right = true;
  if (rank == 0)
    send_late(steps);
  else
    right = receive(steps, call);
  MPI_Finalize();
  return right ? 0 : 1;
}
