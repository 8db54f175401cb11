// Peers that are through MPI_Init and send while this process still waits for the launcher there:
// with --mca async_mpi_init 1, or where a launcher releases one process late. Its own main, because
// nothing may come between MPI_Init and the first message.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// One message of each, in this order; more of them, and more bytes, than the PML keeps for
/// communicators that do not exist yet.
std::vector<int> sizes_bytes() {
  std::vector<int> sizes{0, 1, 64, 4000, 20000};
  sizes.insert(sizes.end(), 20000, 8);
  sizes.insert(sizes.end(), 2300, 30000);
  return sizes;
}

bool held_up = false;          ///< MPI_Init waits for the launcher's first fence
bool all_sent_before = false;  ///< MPI_Init went on

/// What the sender leaves behind its last message; one job at a time of one mpirun.
std::string note() { return "/overlap.early_sends." + std::to_string(getppid()); }

bool is_noted() {
  const int file = shm_open(note().c_str(), O_RDONLY, 0);
  if (file >= 0) close(file);
  return file >= 0;
}

bool is_first_rank() {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && std::string(rank) == "0";
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::vector<char> payload(int message, int bytes) {
  return std::vector<char>(static_cast<std::size_t>(bytes), static_cast<char>('a' + message % 26));
}

void send_all() {
  int i = 0;
  for (const int bytes : sizes_bytes()) {
    const std::vector<char> data = payload(i, bytes);
    MPI_Send(data.data(), bytes, MPI_CHAR, 0, i++, MPI_COMM_WORLD);
  }
  const int file = shm_open(note().c_str(), O_CREAT | O_RDWR, 0600);
  if (file >= 0) close(file);
}

/// @returns  are they all there, in order and as sent?
bool receive_all() {
  int wrong = 0, i = 0;
  for (const int expected_bytes : sizes_bytes()) {
    std::vector<char> data(30000);
    MPI_Status status{};
    MPI_Recv(data.data(), static_cast<int>(data.size()), MPI_CHAR, 1, MPI_ANY_TAG, MPI_COMM_WORLD,
             &status);
    int bytes = 0;
    MPI_Get_count(&status, MPI_CHAR, &bytes);
    data.resize(static_cast<std::size_t>(bytes));
    const int message = i++;
    if (status.MPI_TAG == message && data == payload(message, expected_bytes)) continue;
    if (++wrong <= 10)
      std::fprintf(stderr, "message %d: tag %d, %d bytes\n", message, status.MPI_TAG, bytes);
  }
  shm_unlink(note().c_str());
  return wrong == 0;
}

}  // namespace

// In front of Open MPI's own: the first rank stays in the wait that follows, as if the launcher
// released it late, until its peer's messages are there.
extern "C" int mca_pml_base_select(bool threads, bool multiple) {
  held_up = is_first_rank();
  return next<int(bool, bool)>("mca_pml_base_select")(threads, multiple);
}

extern "C" void opal_progress() {
  static const auto progress = next<void()>("opal_progress");
  progress();
  if (!held_up) return;
  held_up = false;
  const auto until = [](auto reached, std::chrono::milliseconds most) {
    for (const auto end = Clock::now() + most; !reached() && Clock::now() < end;) progress();
  };
  until(is_noted, std::chrono::seconds(20));
  all_sent_before = is_noted();
  until([] { return false; }, std::chrono::milliseconds(50));  // what is noted is still on its way
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, failed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) send_all();
  if (rank == 0 && !receive_all()) failed = 1;
  if (rank == 0 && !all_sent_before) {
    std::fprintf(stderr, "no message came within MPI_Init\n");
    failed = 1;
  }
  MPI_Finalize();
  return failed;
}
