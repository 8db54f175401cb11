// Two ranks whose order of events is set outside MPI, and what the component counts meanwhile.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi_test.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <thread>

namespace overlap::test {

using std::chrono::microseconds;

/// Does `--mca pml_speculative_NAME VALUE` stand on the command line?
inline bool set_to(const char* name, const char* value) {
  const char* text = std::getenv(name);
  return text != nullptr && std::strcmp(text, value) == 0;
}
inline bool is(const char* tunable, const char* value) {
  return set_to((std::string("OMPI_MCA_pml_speculative_") + tunable).c_str(), value);
}

inline bool eager_flag() { return is("hazard_control", "eager_flag"); }
inline bool over_tcp() {
  const char* text = std::getenv("OMPI_MCA_btl");
  return text != nullptr && std::strstr(text, "tcp") != nullptr;
}
inline bool over_ring() {
  const char* text = std::getenv("OMPI_MCA_btl");
  return text != nullptr && std::strstr(text, "ring") != nullptr;
}
/// Is a message on its way for some time after its sender has gone on?
inline bool delayed() { return over_tcp() || over_ring(); }
/// Does a thread of each process progress while no MPI call does? Through shared memory only where
/// it is asked for, or a core is to spare.
inline bool interrupts() {
  return set_to("OMPI_MCA_common_overlap_progress", "on") ||
         (over_tcp() && !set_to("OMPI_MCA_common_overlap_progress", "off"));
}
/// Over shared memory by default: the copy would only move to the sender. Over TCP where data
/// comes as early without, and RTRs would bring fragments.
inline bool without_rtrs() {
  if (over_tcp()) return interrupts() && !is("cancel", "sender");
  return is("shared_memory", "auto") && !over_ring();
}
inline bool speculative() { return !is("speculation", "0") && !without_rtrs(); }
inline bool early_progress() { return !is("early_progress", "0") && !without_rtrs(); }
/// Can a process of this job write into another one's memory without its help?
inline bool direct() {
  return !over_tcp() && !set_to("OMPI_MCA_btl_vader_single_copy_mechanism", "none") &&
         std::getenv("OMPI_MCA_btl_vader_flags") == nullptr;
}

/// Are messages that could go eagerly read by their receivers instead, now and then? Where
/// processes share cores nobody waits for a copy instead of sending.
inline bool may_be_read() {
  return direct() && is("shared_memory", "auto") && !set_to("OMPI_MCA_mpi_yield_when_idle", "1");
}
/// All of them, and none.
inline bool are_read() { return is("blocking_copy", "read") && may_be_read(); }
inline bool never_read() { return is("blocking_copy", "fragments") || !may_be_read(); }

/// One object that all ranks of a node see without MPI, zero at first. Collective.
template <class Type>
class Shared {
 public:
  Shared() {
    char name[64] = "";
    if (rank() == 0)
      std::snprintf(name, sizeof name, "/overlap-test-shared-%ld", static_cast<long>(getpid()));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    REQUIRE(ftruncate(file, sizeof(Type)) == 0);
    void* at = mmap(nullptr, sizeof(Type), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(at != MAP_FAILED);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    shm_unlink(name);                  // on each node the first rank that comes here
    object_ = static_cast<Type*>(at);  // a new file is zero
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Shared() { munmap(object_, sizeof(Type)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Type* operator->() const { return object_; }
  Type& operator*() const { return *object_; }

 private:
  Type* object_;
};

/// Let others run until something has happened, for half a minute at most.
template <class Happened>
void yield_until(Happened&& happened) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!happened()) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    sched_yield();
  }
}

/// A step counter that both ranks see without MPI.
class Steps {
 public:
  void reach(int step) {
    step_->store(step, std::memory_order_release);
  }  // S1 -> S2: everything before the step
  [[nodiscard]] int now() const { return step_->load(std::memory_order_acquire); }
  void wait_for(int step) {
    yield_until([this, step] { return now() >= step; });  // S2, pairs with S1
  }

 private:
  Shared<std::atomic<int>> step_;
};

/// Ranks 0 and 1 meet again and again, without MPI.
class Meeting {
 public:
  /// Wait for the other one. @returns  the sum of what both bring
  int meet(int brings = 0) {
    Side& own = (*sides_)[self()];
    const Side& other = (*sides_)[1 - self()];
    ++turn_;
    own.brings[turn_ % 2] = brings;
    own.turn.store(turn_, std::memory_order_release);  // M1 -> M2: what it brings
    yield_until([&] { return other.turn.load(std::memory_order_acquire) >= turn_; });  // M2
    return brings + other.brings[turn_ % 2];
  }

 private:
  struct alignas(64) Side {
    std::atomic<unsigned> turn;
    int brings[2];
  };
  [[nodiscard]] static std::size_t self() { return static_cast<std::size_t>(rank()); }

  Shared<std::array<Side, 2>> sides_;
  unsigned turn_ = 0;
};

/// Our performance variables by their last words, as differences since construction.
class Counters {
 public:
  Counters() {
    int provided = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session_);
    int count = 0;
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; ++i) {
      char name[256], text[1024];
      int name_length = sizeof name, text_length = sizeof text, verbosity, kind, bind, readonly,
          continuous, atomic;
      MPI_Datatype type;
      MPI_T_enum values;
      if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &kind, &type, &values, text,
                              &text_length, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
        continue;
      const char* short_name = without_prefix(name);
      if (short_name == nullptr) continue;
      MPI_T_pvar_handle handle;
      int length = 0;
      REQUIRE(MPI_T_pvar_handle_alloc(session_, i, nullptr, &handle, &length) == MPI_SUCCESS);
      REQUIRE(length == 1);
      if (continuous == 0) MPI_T_pvar_start(session_, handle);
      handles_[short_name] = handle;
    }
    for (auto& [name, handle] : handles_) start_[name] = read(handle);
  }
  ~Counters() {
    MPI_T_pvar_session_free(&session_);
    MPI_T_finalize();
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  [[nodiscard]] bool any() const { return !handles_.empty(); }

  unsigned long long operator[](const std::string& name) {
    REQUIRE(handles_.count(name) == 1);
    return read(handles_[name]) - start_[name];
  }

 private:
  /// @returns  nullptr for other components' variables
  static const char* without_prefix(const char* name) {
    for (const char* prefix : {"pml_speculative_", "common_overlap_", "osc_newrma_"}) {
      if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return name + std::strlen(prefix);
    }
    return nullptr;
  }
  unsigned long long read(MPI_T_pvar_handle handle) {
    unsigned long long value = 0;
    REQUIRE(MPI_T_pvar_read(session_, handle, &value) == MPI_SUCCESS);
    return value;
  }

  MPI_T_pvar_session session_{};
  std::map<std::string, MPI_T_pvar_handle> handles_;
  std::map<std::string, unsigned long long> start_;
};

/// A communicator on which both sides have heard of each other: its own envelopes and streams.
class Scene {
 public:
  Scene() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    meet();
  }
  ~Scene() { MPI_Comm_free(&comm); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// Both ranks come here and everything that was on the way has arrived.
  void meet() {
    for (int turn = 0; turn < 3; ++turn) {
      char out = 'x', in = 0;
      MPI_Sendrecv(&out, 1, MPI_CHAR, partner(), 77, &in, 1, MPI_CHAR, partner(), 77, comm,
                   MPI_STATUS_IGNORE);
      poke(microseconds(delayed() ? 5000 : 300));
    }
  }

  MPI_Comm comm{};
};

inline bool two_ranks() { return size() == 2; }

#define TWO_RANKS_WITH_COUNTERS()                                           \
  if (!two_ranks()) return;                                                 \
  if (Counters().any() == false) {                                          \
    if (rank() == 0) std::fprintf(stderr, "  not applicable: other PML\n"); \
    return;                                                                 \
  }

/// Look at memory until `reached` answers true, without any call of MPI.
/// @returns  false when that did not happen within 30 seconds
template <class Condition>
bool watch_until(Condition&& reached) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!reached()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(microseconds(200));
  }
  return true;
}

/// Both ranks are outside MPI from here to the end of the scope.
class OutsideMpi {
 public:
  OutsideMpi(Steps& steps, int& step) : steps_(steps), step_(step) { meet(); }
  ~OutsideMpi() { meet(); }
  OutsideMpi(const OutsideMpi&) = delete;
  OutsideMpi& operator=(const OutsideMpi&) = delete;

 private:
  /// Rank 0 comes, then rank 1, then both go on.
  void meet() {
    if (rank() == 0) {
      steps_.reach(step_ + 1);
      steps_.wait_for(step_ + 2);
    } else {
      steps_.wait_for(step_ + 1);
      steps_.reach(step_ + 2);
    }
    step_ += 2;
  }
  Steps& steps_;
  int& step_;
};

/// Computes for so much time of this thread's processor.
inline void compute_busily(std::chrono::nanoseconds time) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto end = used() + time;
  while (used() < end) {}
}

/// @returns  whether a system call of this process fails with EPERM from now on
inline bool forbid(std::uint32_t number) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace overlap::test
