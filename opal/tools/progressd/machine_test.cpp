// What a client is bound to.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/machine.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "test/support/catch.hpp"

namespace {

using overlap::progressd::binding_of;
using overlap::progressd::Processors;

/// Bind the calling thread. @returns  what it could run on before
cpu_set_t bind_to(const cpu_set_t& set) {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
  return before;
}

/// A thread that may run anywhere until the end of the scope.
class WideThread {
 public:
  WideThread(const char* name, const cpu_set_t& everywhere) {
    thread_ = std::thread([this] {
      while (!end_) std::this_thread::yield();
    });
    REQUIRE(pthread_setname_np(thread_.native_handle(), name) == 0);
    REQUIRE(pthread_setaffinity_np(thread_.native_handle(), sizeof everywhere, &everywhere) == 0);
  }
  ~WideThread() {
    end_ = true;
    thread_.join();
  }
  WideThread(const WideThread&) = delete;
  WideThread& operator=(const WideThread&) = delete;

 private:
  std::atomic<bool> end_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("the interrupt thread, which may copy anywhere, is no part of a client's binding",
          "[helper][P4.6]") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  if (CPU_COUNT(&all) < 2) return;  // everything is one processor
  unsigned first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  bind_to(one);
  {
    const WideThread interrupt("overlap", all);
    CHECK(binding_of(getpid()) == Processors{first});
  }
  {
    const WideThread worker("worker", all);
    CHECK(binding_of(getpid()).size() == static_cast<std::size_t>(CPU_COUNT(&all)));
  }
  bind_to(all);
}
