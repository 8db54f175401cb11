// What every rank sees of the others without MPI, for the programs that test collectives.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi_test.hpp"

#include <string_view>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace overlap::test {

/// Numbers in memory that all processes of a communicator, on one node, share: [rows][ranks].
class Board {
 public:
  explicit Board(std::size_t rows = 1, MPI_Comm comm = MPI_COMM_WORLD) {
    MPI_Comm_rank(comm, &me_);
    int count = 0;
    MPI_Comm_size(comm, &count);
    ranks_ = static_cast<std::size_t>(count);
    bytes_ = rows * ranks_ * sizeof(Cell);
    char name[512] = "";
    if (me_ == 0) {
      // Simulated nodes have a /dev/shm each: their runs name a folder that all of them have.
      const char* const folder = std::getenv("OVERLAP_TEST_BOARD");
      std::snprintf(name, sizeof name, "%s/overlap-test-board-%ld",
                    folder != nullptr ? folder : "/dev/shm", static_cast<long>(getpid()));
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
    const int file = open(name, O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    REQUIRE(ftruncate(file, static_cast<off_t>(bytes_)) == 0);
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(at != MAP_FAILED);
    close(file);
    cells_ = static_cast<Cell*>(at);  // zero: a new file
    meet(comm);
    if (me_ == 0) unlink(name);
  }
  ~Board() { munmap(cells_, bytes_); }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// This process has entered that many collectives of a row. E1 -> E2: before it leaves others.
  void enter(std::uint64_t count, std::size_t row = 0) {
    cell(row, static_cast<std::size_t>(me_)).count.store(count, std::memory_order_release);
  }
  /// Have these ranks entered as many? All of them, if there are none.
  [[nodiscard]] bool entered(std::uint64_t count, std::size_t row = 0,
                             std::span<const int> members = {}) {
    const auto is_in = [&](std::size_t r) {
      return cell(row, r).count.load(std::memory_order_acquire) >= count;  // E2
    };
    if (members.empty()) {
      for (std::size_t r = 0; r < ranks_; ++r)
        if (!is_in(r)) return false;
      return true;
    }
    return std::all_of(members.begin(), members.end(),
                       [&](int r) { return is_in(static_cast<std::size_t>(r)); });
  }

  /// A barrier without the component under test.
  static void meet(MPI_Comm comm = MPI_COMM_WORLD) {
    int me = 0, count = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &count);
    for (int distance = 1; distance < count; distance *= 2) {
      char in = 0;
      MPI_Sendrecv("x", 1, MPI_CHAR, (me + distance) % count, 31000, &in, 1, MPI_CHAR,
                   (me + count - distance) % count, 31000, comm, MPI_STATUS_IGNORE);
    }
  }

 private:
  struct alignas(64) Cell {
    std::atomic<std::uint64_t> count;
  };
  Cell& cell(std::size_t row, std::size_t r) { return cells_[row * ranks_ + r]; }

  int me_ = 0;
  std::size_t ranks_ = 1;
  std::size_t bytes_ = 0;
  Cell* cells_ = nullptr;
};

/// Ranks of `comm` in MPI_COMM_WORLD.
inline std::vector<int> members_of(MPI_Comm comm, bool remote = false) {
  MPI_Group group, world;
  if (remote)
    MPI_Comm_remote_group(comm, &group);
  else
    MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int count = 0;
  MPI_Group_size(group, &count);
  std::vector<int> own(static_cast<std::size_t>(count)), there(own.size());
  for (int i = 0; i < count; ++i) own[static_cast<std::size_t>(i)] = i;
  MPI_Group_translate_ranks(group, count, own.data(), world, there.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return there;
}

/// A counter of coll/mq, from its construction on.
class MqCount {
 public:
  explicit MqCount(const char* short_name) {
    int provided = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session_);
    const std::string wanted = std::string("coll_mq_") + short_name;
    int count = 0;
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count && !is_there(); ++i) {
      char name[256], text[1024];
      int name_length = sizeof name, text_length = sizeof text, verbosity, kind, bind, readonly,
          continuous, atomic;
      MPI_Datatype type;
      MPI_T_enum values;
      if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &kind, &type, &values, text,
                              &text_length, &bind, &readonly, &continuous,
                              &atomic) != MPI_SUCCESS ||
          wanted != name)
        continue;
      int length = 0;
      REQUIRE(MPI_T_pvar_handle_alloc(session_, i, nullptr, &handle_, &length) == MPI_SUCCESS);
    }
  }
  ~MqCount() {
    MPI_T_pvar_session_free(&session_);
    MPI_T_finalize();
  }
  MqCount(const MqCount&) = delete;
  MqCount& operator=(const MqCount&) = delete;

  [[nodiscard]] bool is_there() const { return handle_ != MPI_T_PVAR_HANDLE_NULL; }
  [[nodiscard]] unsigned long long value() const {
    unsigned long long value = 0;
    REQUIRE(is_there());
    REQUIRE(MPI_T_pvar_read(session_, handle_, &value) == MPI_SUCCESS);
    return value;
  }

 private:
  MPI_T_pvar_session session_{};
  MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
};

/// Does the component under test make the barriers, blocking ones too?
inline bool mq_is_chosen() {
  const char* const priority = std::getenv("OMPI_MCA_coll_mq_priority");
  return priority != nullptr && std::atoi(priority) > 30 && MqCount("barriers").is_there();
}

/// Does a device carry the barriers out?
inline bool device_is_used() {
  const auto is = [](const char* name, std::string_view wanted) {
    const char* const value = std::getenv(name);
    return value != nullptr && value == wanted;
  };
  return mq_is_chosen() && is("OMPI_MCA_btl_ring_fabric", "soft") &&
         !is("OMPI_MCA_coll_mq_device", "off");
}

}  // namespace overlap::test
