// What the benchmarks of one-sided communication share: windows, batches that are timed at rank 0.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "bench.hpp"

namespace bench {

/// A window with `bytes` of memory at each rank, every page of it touched.
class RmaWindow {
 public:
  RmaWindow(bool allocated, std::size_t bytes) : own_(allocated ? 0 : bytes) {
    const auto size = static_cast<MPI_Aint>(bytes);
    if (allocated) {
      MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &data, &win);
    } else {
      data = own_.data();
      MPI_Win_create(data, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    std::memset(data, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~RmaWindow() { MPI_Win_free(&win); }
  RmaWindow(const RmaWindow&) = delete;
  RmaWindow& operator=(const RmaWindow&) = delete;

  unsigned char* data = nullptr;
  MPI_Win win = MPI_WIN_NULL;

 private:
  Buffer own_;
};

/// Time batches of `calls` calls of rank 0 while the other ranks are in a barrier; the time of one
/// call is a sample.
template <class Call>
Samples time_batches(int rank, int calls, double budget_ms, Call&& call) {
  Samples us;
  if (rank == 0) {
    call();
    const double end_us = now_us() + 1e3 * budget_ms;
    do {
      const double begin_us = now_us();
      for (int i = 0; i < calls; ++i) call();
      us.add((now_us() - begin_us) / calls);
    } while (now_us() < end_us || us.values.size() < 5);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return us;
}

/// A group of one other rank.
class GroupOf {
 public:
  GroupOf(MPI_Win win, int rank) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &rank, &group_);
    MPI_Group_free(&all);
  }
  ~GroupOf() { MPI_Group_free(&group_); }
  GroupOf(const GroupOf&) = delete;
  GroupOf& operator=(const GroupOf&) = delete;
  operator MPI_Group() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

}  // namespace bench
