// The calls against windows that exist only here, in a process without MPI_Init: which module is
// taken for osc/newrma's, what the component gets, what an error does.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mpix/nonblocking_window.hpp"

// After the door to Open MPI.
#include <dlfcn.h>

#include "ompi/mpix/mpix_overlap.h"
#include "ompi/mpix/sim/fake_newrma.h"
#include "test/support/catch.hpp"

namespace {

/// A stand-in for a component, loaded as Open MPI's components or as Python's (no scope that can be
/// searched).
class Fake {
 public:
  Fake(const char* file, int scope) : handle_(dlopen(file, RTLD_NOW | scope)) {
    REQUIRE(handle_ != nullptr);
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;
  ~Fake() { dlclose(handle_); }

  [[nodiscard]] ompi_osc_base_module_put_fn_t put() const {
    return reinterpret_cast<ompi_osc_base_module_put_fn_t>(
        reinterpret_cast<decltype(&fake_code)>(dlsym(handle_, "fake_code"))());
  }
  [[nodiscard]] int runs() const {
    return reinterpret_cast<decltype(&fake_runs)>(dlsym(handle_, "fake_runs"))();
  }

 private:
  void* handle_;
};

constexpr const char* newrma_file = FAKES "/fake_newrma.so";
constexpr const char* other_file = FAKES "/fake_other.so";

// ---- what the component gets

struct Received {
  std::string name;
  std::vector<int> numbers;
  ompi_group_t* group = nullptr;
  ompi_win_t* win = nullptr;
};

Received received;
int answer = MPI_SUCCESS;

int receive(const char* name, std::vector<int> numbers, ompi_win_t* win, ompi_request_t** request,
            ompi_group_t* group = nullptr) {
  received = {name, std::move(numbers), group, win};
  if (answer == MPI_SUCCESS) *request = &ompi_request_empty;
  return answer;
}

using Win = ompi_win_t;
using Request = ompi_request_t;
using Group = ompi_group_t;

const overlap_nonblocking_calls recording{
    .magic = OVERLAP_NONBLOCKING_MAGIC,
    .version = OVERLAP_NONBLOCKING_VERSION,
    .ifence = [](int a, Win* w, Request** r) { return receive("ifence", {a}, w, r); },
    .ipost = [](Group* g, int a, Win* w, Request** r) { return receive("ipost", {a}, w, r, g); },
    .istart = [](Group* g, int a, Win* w, Request** r) { return receive("istart", {a}, w, r, g); },
    .icomplete = [](Win* w, Request** r) { return receive("icomplete", {}, w, r); },
    .iwait = [](Win* w, Request** r) { return receive("iwait", {}, w, r); },
    .ilock =
        [](int l, int t, int a, Win* w, Request** r) {
          return receive("ilock", {l, t, a}, w, r);
        },
    .iunlock = [](int t, Win* w, Request** r) { return receive("iunlock", {t}, w, r); },
    .ilock_all = [](int a, Win* w, Request** r) { return receive("ilock_all", {a}, w, r); },
    .iunlock_all = [](Win* w, Request** r) { return receive("iunlock_all", {}, w, r); },
    .iflush = [](int t, Win* w, Request** r) { return receive("iflush", {t}, w, r); },
    .iflush_local = [](int t, Win* w, Request** r) { return receive("iflush_local", {t}, w, r); },
    .iflush_all = [](Win* w, Request** r) { return receive("iflush_all", {}, w, r); },
    .iflush_local_all = [](Win* w, Request** r) { return receive("iflush_local_all", {}, w, r); },
};

// ---- a window of two processes

std::vector<int> raised;
void record_error(ompi_win_t**, int* code, ...) { raised.push_back(*code); }

struct Window {
  explicit Window(ompi_osc_base_module_put_fn_t put,
                  const overlap_nonblocking_calls* calls = &recording) {
    module.super.osc_put = put;
    module.calls = calls;
    group.grp_proc_count = 2;
    handler.eh_lang = OMPI_ERRHANDLER_LANG_C;
    handler.eh_win_fn = record_error;
    handler.eh_mpi_object_type = OMPI_ERRHANDLER_TYPE_WIN;
    win.w_osc_module = &module.super;
    win.w_group = &group;
    win.error_handler = &handler;
    win.errhandler_type = OMPI_ERRHANDLER_TYPE_WIN;
    raised.clear();
    received = {};
    answer = MPI_SUCCESS;
    // For the macro that every call of MPI begins with.
    overlap::pretend_initialized(true);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { overlap::pretend_initialized(false); }

  overlap::NonblockingModule module{};
  ompi_group_t group{};
  ompi_errhandler_t handler{};
  ompi_win_t win{};
};

/// One call of each kind with valid arguments, and what the component has to get of it.
struct Valid {
  const char* name;
  std::vector<int> numbers;
  std::function<int(ompi_win_t*, ompi_group_t*, ompi_request_t**)> call;
};

std::vector<Valid> valid_calls() {
  return {
      {"ifence",
       {MPI_MODE_NOPUT},
       [](Win* w, Group*, Request** r) { return MPIX_Win_ifence(MPI_MODE_NOPUT, w, r); }},
      {"ipost",
       {MPI_MODE_NOSTORE},
       [](Win* w, Group* g, Request** r) { return MPIX_Win_ipost(g, MPI_MODE_NOSTORE, w, r); }},
      {"istart",
       {MPI_MODE_NOCHECK},
       [](Win* w, Group* g, Request** r) { return MPIX_Win_istart(g, MPI_MODE_NOCHECK, w, r); }},
      {"icomplete", {}, [](Win* w, Group*, Request** r) { return MPIX_Win_icomplete(w, r); }},
      {"iwait", {}, [](Win* w, Group*, Request** r) { return MPIX_Win_iwait(w, r); }},
      {"ilock",
       {MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK},
       [](Win* w, Group*, Request** r) {
         return MPIX_Win_ilock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, w, r);
       }},
      {"iunlock", {1}, [](Win* w, Group*, Request** r) { return MPIX_Win_iunlock(1, w, r); }},
      {"ilock_all",
       {MPI_MODE_NOCHECK},
       [](Win* w, Group*, Request** r) { return MPIX_Win_ilock_all(MPI_MODE_NOCHECK, w, r); }},
      {"iunlock_all", {}, [](Win* w, Group*, Request** r) { return MPIX_Win_iunlock_all(w, r); }},
      {"iflush", {1}, [](Win* w, Group*, Request** r) { return MPIX_Win_iflush(1, w, r); }},
      {"iflush_local",
       {0},
       [](Win* w, Group*, Request** r) { return MPIX_Win_iflush_local(0, w, r); }},
      {"iflush_all", {}, [](Win* w, Group*, Request** r) { return MPIX_Win_iflush_all(w, r); }},
      {"iflush_local_all",
       {},
       [](Win* w, Group*, Request** r) { return MPIX_Win_iflush_local_all(w, r); }},
  };
}

}  // namespace

TEST_CASE("a module of osc/newrma is recognised by the object its code lies in", "[mpix]") {
  const int scope = GENERATE(RTLD_GLOBAL, RTLD_LOCAL);
  const Fake newrma(newrma_file, scope);
  const Fake other(other_file, scope);
  const Window ours(newrma.put());
  CHECK(overlap::find_nonblocking_calls(ours.win.w_osc_module) == &recording);
  CHECK(overlap::find_nonblocking_calls(ours.win.w_osc_module) == &recording);  // remembered
  // It has the table where ours have it, and is not ours all the same.
  const Window foreign(other.put());
  CHECK(overlap::find_nonblocking_calls(foreign.win.w_osc_module) == nullptr);
  CHECK(overlap::find_nonblocking_calls(ours.win.w_osc_module) == &recording);
  CHECK(newrma.runs() + other.runs() == 0);
}

TEST_CASE("an address that comes to belong to another component is not remembered", "[mpix]") {
  {
    const Fake newrma(newrma_file, RTLD_LOCAL);
    const Window ours(newrma.put());
    CHECK(overlap::find_nonblocking_calls(ours.win.w_osc_module) == &recording);
  }
  // Of the same size: the loader maps it where the other was.
  const Fake other(other_file, RTLD_LOCAL);
  const Window foreign(other.put());
  CHECK(overlap::find_nonblocking_calls(foreign.win.w_osc_module) == nullptr);
}

TEST_CASE("a component that is in reach of another object is not that object's", "[mpix]") {
  // The loader finds it from this program, which has all names of the global scope.
  const Fake newrma(newrma_file, RTLD_GLOBAL);
  REQUIRE(dlsym(RTLD_DEFAULT, "mca_osc_newrma_component") != nullptr);
  const auto code_of_this_program = reinterpret_cast<fake_code_t>(&record_error);
  const Window window(reinterpret_cast<ompi_osc_base_module_put_fn_t>(code_of_this_program));
  CHECK(overlap::find_nonblocking_calls(window.win.w_osc_module) == nullptr);
}

TEST_CASE("nothing of another component's module is read", "[mpix]") {
  const Fake other(other_file, RTLD_GLOBAL);
  Window window(other.put());
  // Whoever followed it would not come back.
  window.module.calls = reinterpret_cast<const overlap_nonblocking_calls*>(std::uintptr_t{64});
  CHECK(overlap::find_nonblocking_calls(window.win.w_osc_module) == nullptr);
  window.module.super.osc_put = nullptr;
  CHECK(overlap::find_nonblocking_calls(window.win.w_osc_module) == nullptr);
  CHECK(overlap::find_nonblocking_calls(nullptr) == nullptr);
  // In no object at all.
  window.module.super.osc_put =
      reinterpret_cast<ompi_osc_base_module_put_fn_t>(&window.module.super);
  CHECK(overlap::find_nonblocking_calls(window.win.w_osc_module) == nullptr);
}

TEST_CASE("the table has a magic number and a version", "[mpix]") {
  const Fake newrma(newrma_file, RTLD_GLOBAL);
  overlap_nonblocking_calls calls = recording;
  const Window window(newrma.put(), &calls);
  const auto* module = window.win.w_osc_module;
  CHECK(overlap::find_nonblocking_calls(module) == &calls);
  calls.version = OVERLAP_NONBLOCKING_VERSION + 1;  // it has more, and these all the same
  CHECK(overlap::find_nonblocking_calls(module) == &calls);
  calls.version = OVERLAP_NONBLOCKING_VERSION - 1;
  CHECK(overlap::find_nonblocking_calls(module) == nullptr);
  calls = recording;
  calls.magic ^= 1;
  CHECK(overlap::find_nonblocking_calls(module) == nullptr);
  const Window without(newrma.put(), nullptr);
  CHECK(overlap::find_nonblocking_calls(without.win.w_osc_module) == nullptr);
}

TEST_CASE("each call reaches the component with its arguments", "[mpix]") {
  const Fake newrma(newrma_file, RTLD_GLOBAL);
  Window window(newrma.put());
  ompi_group_t group{};
  int flag = -1;
  CHECK(MPIX_Win_nonblocking(&window.win, &flag) == MPI_SUCCESS);
  CHECK(flag == 1);
  for (const Valid& each : valid_calls()) {
    INFO(each.name);
    ompi_request_t* request = nullptr;
    CHECK(each.call(&window.win, &group, &request) == MPI_SUCCESS);
    CHECK(received.name == each.name);
    CHECK(received.numbers == each.numbers);
    CHECK(received.win == &window.win);
    const std::string name = each.name;
    CHECK(received.group == (name == "ipost" || name == "istart" ? &group : nullptr));
    CHECK(request == &ompi_request_empty);
  }
  CHECK(raised.empty());
}

TEST_CASE("an error of the component is raised as its class", "[mpix]") {
  const Fake newrma(newrma_file, RTLD_GLOBAL);
  Window window(newrma.put());
  ompi_group_t group{};
  answer = MPI_ERR_RMA_SYNC;
  for (const Valid& each : valid_calls()) {
    INFO(each.name);
    raised.clear();
    ompi_request_t* request = nullptr;
    CHECK(each.call(&window.win, &group, &request) == MPI_ERR_RMA_SYNC);
    CHECK(raised == std::vector<int>{MPI_ERR_RMA_SYNC});
    CHECK(request == nullptr);
  }
}

TEST_CASE("a window of another component is answered for each call", "[mpix]") {
  const Fake other(other_file, RTLD_GLOBAL);
  Window window(other.put());
  ompi_group_t group{};
  int flag = -1;
  CHECK(MPIX_Win_nonblocking(&window.win, &flag) == MPI_SUCCESS);
  CHECK(flag == 0);
  CHECK(raised.empty());
  for (const Valid& each : valid_calls()) {
    INFO(each.name);
    raised.clear();
    ompi_request_t* request = nullptr;
    CHECK(each.call(&window.win, &group, &request) == MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(raised == std::vector<int>{MPI_ERR_UNSUPPORTED_OPERATION});
    CHECK(request == nullptr);
  }
  CHECK(received.name.empty());
  CHECK(other.runs() == 0);
}

TEST_CASE("a wrong argument never reaches the component", "[mpix]") {
  const Fake newrma(newrma_file, RTLD_GLOBAL);
  Window window(newrma.put());
  ompi_group_t group{};
  ompi_win_t* win = &window.win;
  ompi_request_t* request = nullptr;
  const auto expect = [&](int code, int expected) {
    CHECK(code == expected);
    CHECK(raised == std::vector<int>{expected});
    CHECK(received.name.empty());
    CHECK(request == nullptr);
    raised.clear();
  };
  for (const Valid& each : valid_calls()) {
    INFO(each.name);
    expect(each.call(win, &group, nullptr), MPI_ERR_ARG);
  }
  expect(MPIX_Win_nonblocking(win, nullptr), MPI_ERR_ARG);

  for (const int rank : {-1, 2, MPI_PROC_NULL, MPI_ANY_SOURCE}) {
    INFO(rank);
    expect(MPIX_Win_ilock(MPI_LOCK_SHARED, rank, 0, win, &request), MPI_ERR_RANK);
    expect(MPIX_Win_iunlock(rank, win, &request), MPI_ERR_RANK);
    expect(MPIX_Win_iflush(rank, win, &request), MPI_ERR_RANK);
    expect(MPIX_Win_iflush_local(rank, win, &request), MPI_ERR_RANK);
  }
  for (ompi_group_t* no_group : {static_cast<ompi_group_t*>(nullptr), MPI_GROUP_NULL}) {
    expect(MPIX_Win_ipost(no_group, 0, win, &request), MPI_ERR_GROUP);
    expect(MPIX_Win_istart(no_group, 0, win, &request), MPI_ERR_GROUP);
  }
  for (const int type : {0, -1, MPI_LOCK_EXCLUSIVE | MPI_LOCK_SHARED})
    expect(MPIX_Win_ilock(type, 0, 0, win, &request), MPI_ERR_LOCKTYPE);
  expect(MPIX_Win_ifence(MPI_MODE_NOCHECK, win, &request), MPI_ERR_ASSERT);
  expect(MPIX_Win_ipost(&group, MPI_MODE_NOPRECEDE, win, &request), MPI_ERR_ASSERT);
  expect(MPIX_Win_istart(&group, MPI_MODE_NOPUT, win, &request), MPI_ERR_ASSERT);
  expect(MPIX_Win_ilock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win, &request), MPI_ERR_ASSERT);
  expect(MPIX_Win_ilock_all(MPI_MODE_NOSTORE, win, &request), MPI_ERR_ASSERT);

  // Of several faults the one that MPI's own call finds first.
  expect(MPIX_Win_ilock(0, 2, MPI_MODE_NOPUT, win, &request), MPI_ERR_LOCKTYPE);

  window.win.w_flags = OMPI_WIN_NO_LOCKS;
  expect(MPIX_Win_ilock(MPI_LOCK_SHARED, 0, 0, win, &request), MPI_ERR_RMA_SYNC);
  expect(MPIX_Win_ilock_all(0, win, &request), MPI_ERR_RMA_SYNC);
}
