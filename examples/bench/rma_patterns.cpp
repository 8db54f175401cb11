// Question: what does a rank lose in the seven ways in which ranks wait for each other in one-sided
// communication, and what of it comes back when it computes inside the epoch or closes the epoch
// without waiting?
//
// Expected (before the first run): with the closing call before the computation all of the delay is
// lost, on every component. With the computation inside the epoch osc/newrma loses nothing where
// its thread runs (the puts start while the rank computes), the others the delay or the transfer.
// With non-blocking calls nothing is lost.
//
// Rank 1 comes late by `late-us`, rank 0 computes for `work-us`. Cases are PATTERN.WAY; ways:
//   blocking     the epoch is closed, then rank 0 computes
//   inside       rank 0 computes inside the epoch, before it is closed
//   nonblocking  the epoch is closed by a call that returns a request, rank 0 computes, MPI_Wait;
//                needs a build with libmpix_overlap (PREFIX/env.sh sourced) and osc/newrma
// transfer: nobody is late or computes. exposed: what rank 0 takes beyond its computation.
// passed_on: exposed less transfer, in % of the delay.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#ifdef BENCH_MPIX
#include <mpix_overlap.h>
#endif

using namespace bench;

namespace {

enum class Way { blocking, inside, nonblocking };
constexpr const char* way_names[] = {"blocking", "inside", "nonblocking"};

/// What one sample varies.
struct Sample {
  Way way;
  double work_us, late_us;
};

class Patterns {
 public:
  Patterns(int rank, bool allocated, std::size_t bytes, Compute how)
      : rank_(rank),
        count_(static_cast<int>(bytes)),
        how_(how),
        data_(bytes),
        window_(allocated, bytes),
        other_(window_.win, 1 - rank),
        win_(window_.win) {}

  [[nodiscard]] bool has_nonblocking() const {
    int flag = 0;
#ifdef BENCH_MPIX
    MPIX_Win_nonblocking(win_, &flag);
#endif
    return flag != 0;
  }

  void late_post(const Sample& sample) {
    if (rank_ == 0) {
      MPI_Win_start(other_, 0, win_);
      put();
      close(
          sample, [this] { MPI_Win_complete(win_); }, &Patterns::icomplete);
    } else {
      late(sample);
      MPI_Win_post(other_, 0, win_);
      MPI_Win_wait(win_);
    }
  }
  void early_transfer(const Sample& sample) {
    if (rank_ == 0) {
      MPI_Win_start(other_, 0, win_);
      put();
      get();
      close(
          sample, [this] { MPI_Win_complete(win_); }, &Patterns::icomplete);
    } else {
      late(sample);
      MPI_Win_post(other_, 0, win_);
      MPI_Win_wait(win_);
    }
  }
  void early_wait(const Sample& sample) {
    if (rank_ == 0) {
      MPI_Win_post(other_, 0, win_);
      close(
          sample, [this] { MPI_Win_wait(win_); }, &Patterns::iwait);
    } else {
      late(sample);
      MPI_Win_start(other_, 0, win_);
      put();
      MPI_Win_complete(win_);
    }
  }
  /// Here rank 0 only waits, and it is rank 1 that computes.
  void late_complete(const Sample& sample) {
    if (rank_ == 0) {
      MPI_Win_post(other_, 0, win_);
      MPI_Win_wait(win_);
    } else {
      MPI_Win_start(other_, 0, win_);
      put();
      Sample here = sample;
      here.work_us = sample.late_us;
      if (here.way == Way::blocking) here.way = Way::inside;
      close(
          here, [this] { MPI_Win_complete(win_); }, &Patterns::icomplete);
    }
  }
  void early_fence(const Sample& sample) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win_);
    if (rank_ == 0) {
      put();
      close(
          sample, [this] { MPI_Win_fence(MPI_MODE_NOSUCCEED, win_); }, &Patterns::ifence);
    } else {
      late(sample);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, win_);
    }
  }
  void wait_at_fence(const Sample& sample) {
    if (rank_ == 1) late(sample);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win_);
    put();
    if (rank_ == 0)
      close(
          sample, [this] { MPI_Win_fence(MPI_MODE_NOSUCCEED, win_); }, &Patterns::ifence);
    else
      MPI_Win_fence(MPI_MODE_NOSUCCEED, win_);
  }
  void late_unlock(const Sample& sample) {
    if (rank_ == 1) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win_);
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      late(sample);
      MPI_Win_unlock(1, win_);
      return;
    }
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sample.way == Way::nonblocking)
      ilock();
    else
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win_);
    put();
    close(
        sample, [this] { MPI_Win_unlock(1, win_); }, &Patterns::iunlock);
  }

  double worked_us = 0;  ///< what the computation took, with what the system took from it

 private:
  void put() { MPI_Put(data_.data(), count_, MPI_BYTE, 1 - rank_, 0, count_, MPI_BYTE, win_); }
  void get() { MPI_Get(data_.data(), count_, MPI_BYTE, 1 - rank_, 0, count_, MPI_BYTE, win_); }
  void late(const Sample& sample) const { compute_us(sample.late_us, how_); }
  void work(const Sample& sample) {
    const double begin_us = now_us();
    compute_us(sample.work_us, how_);
    worked_us += now_us() - begin_us;
  }

  template <class Close>
  void close(const Sample& sample, Close&& blocking, MPI_Request (Patterns::*nonblocking)()) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (sample.way == Way::inside) work(sample);
    if (sample.way == Way::nonblocking)
      request = (this->*nonblocking)();
    else
      blocking();
    if (sample.way != Way::inside) work(sample);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

#ifdef BENCH_MPIX
  template <class Call, class... Arguments>
  MPI_Request request_of(Call call, Arguments... arguments) {
    MPI_Request request = MPI_REQUEST_NULL;
    call(arguments..., win_, &request);
    return request;
  }
  MPI_Request icomplete() { return request_of(MPIX_Win_icomplete); }
  MPI_Request iwait() { return request_of(MPIX_Win_iwait); }
  MPI_Request ifence() { return request_of(MPIX_Win_ifence, MPI_MODE_NOSUCCEED); }
  MPI_Request iunlock() { return request_of(MPIX_Win_iunlock, 1); }
  void ilock() {
    MPI_Request request = request_of(MPIX_Win_ilock, MPI_LOCK_EXCLUSIVE, 1, 0);
    MPI_Request_free(&request);
  }
#else
  MPI_Request icomplete() { return MPI_REQUEST_NULL; }
  MPI_Request iwait() { return MPI_REQUEST_NULL; }
  MPI_Request ifence() { return MPI_REQUEST_NULL; }
  MPI_Request iunlock() { return MPI_REQUEST_NULL; }
  void ilock() {}
#endif

  int rank_, count_;
  Compute how_;
  Buffer data_;
  RmaWindow window_;
  GroupOf other_;
  MPI_Win win_;
};

struct Pattern {
  const char* name;
  void (Patterns::*play)(const Sample&);
};
constexpr Pattern all[] = {
    {"late_post", &Patterns::late_post},     {"early_transfer", &Patterns::early_transfer},
    {"early_wait", &Patterns::early_wait},   {"late_complete", &Patterns::late_complete},
    {"early_fence", &Patterns::early_fence}, {"wait_at_fence", &Patterns::wait_at_fence},
    {"late_unlock", &Patterns::late_unlock}};

/// Times of rank 0 from a common start to the end of its part, less its computation.
Samples time_of(Patterns& patterns, const Pattern& pattern, const Sample& sample, int samples) {
  Samples us;
  for (int i = -2; i < samples; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    patterns.worked_us = 0;
    const double begin_us = now_us();
    (patterns.*pattern.play)(sample);
    if (i >= 0) us.add(now_us() - begin_us - patterns.worked_us);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return us;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8,128k,1m");
  const bool allocated = options.text("memory", "created") == "allocated";
  const double late_us = options.number("late-us", 1000);
  const double work_us = options.number("work-us", 3000);
  const int samples = static_cast<int>(options.number("samples", 40));
  const Compute how = options.compute();
  options.end();
  print_compute(how, rank);

  for (const std::size_t bytes : sizes) {
    Patterns patterns(rank, allocated, bytes, how);
    for (const Pattern& pattern : all) {
      for (const Way way : {Way::blocking, Way::inside, Way::nonblocking}) {
        if (way == Way::nonblocking && !patterns.has_nonblocking()) continue;
        const Samples transfer = time_of(patterns, pattern, {way, 0, 0}, samples);
        const Samples exposed = time_of(patterns, pattern, {way, work_us, late_us}, samples);
        Samples passed_on;
        for (const double each : exposed.values)
          passed_on.add(100 * (each - transfer.median()) / late_us);
        if (rank != 0) continue;
        const std::string which =
            std::string(pattern.name) + "." + way_names[static_cast<int>(way)];
        row("rma_patterns", which.c_str(), bytes, late_us, "transfer", "us", transfer);
        row("rma_patterns", which.c_str(), bytes, late_us, "exposed", "us", exposed);
        row("rma_patterns", which.c_str(), bytes, late_us, "passed_on", "%", passed_on);
      }
    }
  }
  MPI_Finalize();
}
