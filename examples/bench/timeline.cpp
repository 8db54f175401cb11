// Question: who computes, who is in MPI, and when does the data move, in one exchange of a large
// message whose receive was posted first?
//
//   receiver   MPI_Irecv   compute ...................   MPI_Wait
//   sender        compute a little   MPI_Isend   compute ...   MPI_Wait
//
// Expected (before the first run): with ob1 the data moves inside the receiver's MPI_Wait; with
// speculative while both compute.
//
// Two ranks of one host, whose clocks are one. A thread of the receiver looks every 50 us which of
// 32 places of the buffer have changed. Of --repeats exchanges the shortest is printed in which
// both ranks began on time and no look came late, the one that other work has disturbed least.
// Times in us since the agreed begin:
//
//   row,timeline,<sender|receiver>,<what>,<begin>,<end>
// SPDX-License-Identifier: BSD-3-Clause
#include <thread>

#include <pthread.h>
#include <sched.h>

#include "bench.hpp"

using namespace bench;

namespace {

constexpr int places = 32;
constexpr double late_max_us = 150, undrawn_us = 1e9;

enum What { start_call, computing, wait_call, data, whats };
constexpr const char* names[2][whats] = {{"MPI_Isend", "compute", "MPI_Wait", "-"},
                                         {"MPI_Irecv", "compute", "MPI_Wait", "data"}};

struct Span {
  double begin_us = 0, end_us = 0;
};
struct Exchange {
  Span spans[whats];
  double late_us = 0;  ///< how far this rank missed its times: its begin, or a look at the buffer
};

/// Notes when each place of a buffer takes its new value.
class Watcher {
 public:
  Watcher(const unsigned char* buffer, std::size_t bytes, unsigned char value)
      : thread_([this, buffer, bytes, value] {
          // Where it is allowed: the rank computes on the same core and would keep it from looking.
          sched_param priority{};
          priority.sched_priority = 1;
          pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
          bool seen[places] = {};
          int left = places;
          double last = now_us();
          while (left > 0) {
            const double now = now_us();
            gap_us_ = std::max(gap_us_, now - last);
            last = now;
            for (int i = 0; i < places; ++i) {
              const auto* place = reinterpret_cast<const volatile unsigned char*>(
                  buffer + (bytes - 1) * static_cast<std::size_t>(i) / (places - 1));
              if (seen[i] || *place != value) continue;
              seen[i] = true;
              if (left-- == places) span_.begin_us = now;
              span_.end_us = now;
            }
            timespec nap{0, 50000};
            nanosleep(&nap, nullptr);
          }
        }) {}
  /// What was seen; waits until everything has changed.
  Span finish() {
    thread_.join();
    return span_;
  }
  /// Longest time between two looks; after finish().
  double gap_us() const { return gap_us_; }

 private:
  double gap_us_ = 0;
  Span span_;  // the thread's until it is joined
  std::thread thread_;
};

Exchange exchange(int rank, Buffer& buffer, std::size_t bytes, unsigned char value, double lead_us,
                  double compute) {
  Exchange x;
  MPI_Request request;
  if (rank == 0) std::memset(buffer.data(), value, bytes);
  // Both begin at an agreed time: a barrier lets one go long before the other on a busy machine.
  double origin = now_us() + 3000;
  MPI_Bcast(&origin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    Watcher watcher(buffer.data(), bytes, value);
    compute_until_us(origin);
    x.spans[start_call].begin_us = now_us();
    MPI_Irecv(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
    x.spans[start_call].end_us = x.spans[computing].begin_us = now_us();
    compute_us(compute + lead_us);
    x.spans[computing].end_us = x.spans[wait_call].begin_us = now_us();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    x.spans[wait_call].end_us = now_us();
    x.spans[data] = watcher.finish();
    x.late_us = std::max(x.spans[start_call].begin_us - origin, watcher.gap_us());
  } else {
    compute_until_us(origin + lead_us);
    x.spans[start_call].begin_us = now_us();
    MPI_Isend(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    x.spans[start_call].end_us = x.spans[computing].begin_us = now_us();
    compute_us(compute);
    x.spans[computing].end_us = x.spans[wait_call].begin_us = now_us();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    x.spans[wait_call].end_us = now_us();
    x.late_us = x.spans[start_call].begin_us - origin - lead_us;
  }
  for (Span& span : x.spans) {
    span.begin_us -= origin;
    span.end_us -= origin;
  }
  return x;
}

void print(int rank, const Exchange& x) {
  for (int what = 0; what < whats; ++what) {
    if (rank == 0 && what == data) continue;
    std::printf("row,timeline,%s,%s,%.1f,%.1f\n", rank == 0 ? "sender" : "receiver",
                names[rank][what], x.spans[what].begin_us, x.spans[what].end_us);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const std::size_t bytes = options.sizes("sizes", "1m").front();
  const double lead = options.number("lead-us", 300);
  const double compute = options.number("compute-us", 1500);
  const int repeats = static_cast<int>(options.number("repeats", 400));
  options.end();

  Buffer buffer(bytes);
  std::vector<Exchange> all;
  for (int i = 0; i < repeats; ++i)
    all.push_back(exchange(rank, buffer, bytes, static_cast<unsigned char>(i + 1), lead, compute));
  std::vector<double> ends;
  for (const Exchange& x : all)
    ends.push_back(x.spans[wait_call].end_us + (x.late_us > late_max_us ? undrawn_us : 0));
  std::vector<double> last(ends.size());
  MPI_Allreduce(ends.data(), last.data(), repeats, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const auto shortest = std::min_element(last.begin(), last.end()) - last.begin();
  print(rank, all[static_cast<std::size_t>(shortest)]);
  MPI_Finalize();
}
