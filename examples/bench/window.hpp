// A window of sends from rank 0 to rank 1, answered by one short message; used by message_rate and
// bandwidth.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "bench.hpp"

namespace bench {

/// Are all messages of a window under way at once, or does each wait for the call before it
/// (MPI_Send, MPI_Recv)?
enum class Calls { nonblocking, blocking };

class Window {
 public:
  Window(int rank, std::size_t bytes, int count, Calls calls)
      : rank_(rank), calls_(calls), bytes_(bytes), requests_(static_cast<std::size_t>(count)) {
    for (int i = 0; i < count; ++i) buffers_.push_back(std::make_unique<Buffer>(bytes));
  }

  /// Send and receive one window.
  ///
  /// @returns  microseconds from the first call to the answer (on rank 0; on rank 1 to its sending)
  double once() {
    if (rank_ == 0)
      for (auto& b : buffers_) b->stamp(bytes_, ++stamp_);
    const double begin = now_us();
    exchange();
    int answer = 0;
    if (rank_ == 0)
      MPI_Recv(&answer, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&answer, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    return now_us() - begin;
  }

  /// Check every byte of a few windows; not timed.
  void check_pass() {
    for (std::uint64_t pass = 0; pass < 2; ++pass) {
      if (rank_ == 0)
        for (std::size_t i = 0; i < buffers_.size(); ++i)
          buffers_[i]->fill(bytes_, pass * 1000 + i);
      exchange();
      if (rank_ == 1)
        for (std::size_t i = 0; i < buffers_.size(); ++i)
          buffers_[i]->check(bytes_, pass * 1000 + i, "window");
    }
  }

 private:
  void exchange() {
    const int n = static_cast<int>(bytes_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (calls_ == Calls::blocking && rank_ == 0)
        MPI_Send(buffers_[i]->data(), n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      else if (calls_ == Calls::blocking)
        MPI_Recv(buffers_[i]->data(), n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else if (rank_ == 0)
        MPI_Isend(buffers_[i]->data(), n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests_[i]);
      else
        MPI_Irecv(buffers_[i]->data(), n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests_[i]);
    }
    if (calls_ == Calls::nonblocking)
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  int rank_;
  Calls calls_;
  std::size_t bytes_;
  std::uint64_t stamp_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

/// Check, warm up and measure windows of one size within a time budget.
///
/// @returns  microseconds per window, on rank 0
inline Samples measure_window(int rank, std::size_t bytes, int count, double budget_ms, long most,
                              Calls calls = Calls::nonblocking) {
  Window window(rank, bytes, count, calls);
  window.check_pass();
  for (int i = 0; i < 5; ++i) window.once();
  Samples warm, out;
  for (int i = 0; i < 5; ++i) warm.add(window.once());
  const long n = samples_for(budget_ms, warm.median(), 10, most);
  MPI_Barrier(MPI_COMM_WORLD);
  for (Pace pace(n, budget_ms); pace.next();) out.add(window.once());
  return out;
}

}  // namespace bench
