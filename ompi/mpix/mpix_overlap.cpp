// The calls of mpix_overlap.h: check the arguments as MPI does, then hand them to the component of
// the window. Nothing is noexcept: the error handlers of C++ programs may throw.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mpix/nonblocking_window.hpp"

// After the door to Open MPI, which leaves out the C++ binding that mpi.h brings along.
#include "ompi/mpix/mpix_overlap.h"

namespace {

constexpr int fence_assertions =
    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int post_assertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;
constexpr int access_assertions = MPI_MODE_NOCHECK;  // start, lock, lock_all

/// Structures of Open MPI are read as they were when this was built.
bool is_built_for_running_openmpi() noexcept {
  static const bool same = std::strcmp(opal_version_string, OVERLAP_OPENMPI_VERSION) == 0;
  return same;
}

int raise_without_window(int code, const char* function) {
#ifdef OMPI_ERRHANDLER_NOHANDLE_INVOKE
  return OMPI_ERRHANDLER_NOHANDLE_INVOKE(code, function);
#else
  return OMPI_ERRHANDLER_INVOKE(MPI_COMM_WORLD, code, function);
#endif
}

/// Invoke the window's error handler.
/// @returns  the class of MPI that belongs to the code
int raise(ompi_win_t* win, int code, const char* function) {
  const int mpi_code = ompi_errcode_get_mpi_code(code);
  ompi_errhandler_invoke(win->error_handler, win, static_cast<int>(win->errhandler_type), mpi_code,
                         function);
  return mpi_code;
}

/// The first fault in the arguments of a call, as its class of MPI.
class Faults {
 public:
  explicit Faults(ompi_win_t* win) : win_(win) {}

  Faults& pointer(const void* output) { return found(output == nullptr, MPI_ERR_ARG); }
  Faults& group(ompi_group_t* group) {
    return found(group == nullptr || group == MPI_GROUP_NULL, MPI_ERR_GROUP);
  }
  Faults& lock_type(int type) {
    return found(type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED, MPI_ERR_LOCKTYPE);
  }
  Faults& target(int rank) { return found(ompi_win_peer_invalid(win_, rank), MPI_ERR_RANK); }
  Faults& assertion(int given, int allowed) {
    return found((given & ~allowed) != 0, MPI_ERR_ASSERT);
  }
  Faults& locks() { return found(!ompi_win_allow_locks(win_), MPI_ERR_RMA_SYNC); }

  [[nodiscard]] int first() const { return first_; }

 private:
  Faults& found(bool fault, int code) {
    if (fault && first_ == MPI_SUCCESS) first_ = code;
    return *this;
  }

  ompi_win_t* win_;
  int first_ = MPI_SUCCESS;
};

/// Check window and output, then what `check` adds to the Faults, with MPI's own switch for it
/// (mpi_param_check).
/// @returns  MPI_SUCCESS, or the class of the error that was raised
template <class Check>
int check_arguments(const char* function, ompi_win_t* win, const void* output, Check&& check) {
  if (!MPI_PARAM_CHECK) return MPI_SUCCESS;
  OMPI_ERR_INIT_FINALIZE(function);
  if (ompi_win_invalid(win)) return raise_without_window(MPI_ERR_WIN, function);
  Faults faults(win);
  check(faults.pointer(output));
  return faults.first() == MPI_SUCCESS ? MPI_SUCCESS : raise(win, faults.first(), function);
}

/// Everything that the calls with a request have in common: `slot` names the component's function,
/// which gets the arguments, the window and the request.
template <class Slot, class Check, class... Arguments>
int call(const char* function, Slot slot, ompi_win_t* win, ompi_request_t** request, Check&& check,
         Arguments... arguments) {
  if (!is_built_for_running_openmpi())
    // Public calls only. The component declines with a message of its own.
    return MPI_Win_call_errhandler(win, MPI_ERR_UNSUPPORTED_OPERATION) == MPI_SUCCESS
               ? MPI_ERR_UNSUPPORTED_OPERATION
               : MPI_ERR_WIN;
  const int fault = check_arguments(function, win, request, check);
  if (fault != MPI_SUCCESS) return fault;
  const overlap_nonblocking_calls* calls = overlap::find_nonblocking_calls(win->w_osc_module);
  if (calls == nullptr) return raise(win, MPI_ERR_UNSUPPORTED_OPERATION, function);
  const int rc = (calls->*slot)(arguments..., win, request);
  return rc == MPI_SUCCESS ? MPI_SUCCESS : raise(win, rc, function);
}

constexpr auto nothing_more = [](Faults&) {};

}  // namespace

using Calls = overlap_nonblocking_calls;

extern "C" {

int MPIX_Win_nonblocking(MPI_Win win, int* flag) {
  if (!is_built_for_running_openmpi()) {
    if (flag != nullptr) *flag = 0;
    return MPI_SUCCESS;
  }
  const int fault = check_arguments(__func__, win, flag, nothing_more);
  if (fault == MPI_SUCCESS)
    *flag = overlap::find_nonblocking_calls(win->w_osc_module) != nullptr ? 1 : 0;
  return fault;
}

int MPIX_Win_ifence(int assertion, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) { faults.assertion(assertion, fence_assertions); };
  return call(__func__, &Calls::ifence, win, request, check, assertion);
}

int MPIX_Win_ipost(MPI_Group group, int assertion, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) {
    faults.group(group).assertion(assertion, post_assertions);
  };
  return call(__func__, &Calls::ipost, win, request, check, group, assertion);
}

int MPIX_Win_istart(MPI_Group group, int assertion, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) {
    faults.group(group).assertion(assertion, access_assertions);
  };
  return call(__func__, &Calls::istart, win, request, check, group, assertion);
}

int MPIX_Win_icomplete(MPI_Win win, MPI_Request* request) {
  return call(__func__, &Calls::icomplete, win, request, nothing_more);
}

int MPIX_Win_iwait(MPI_Win win, MPI_Request* request) {
  return call(__func__, &Calls::iwait, win, request, nothing_more);
}

int MPIX_Win_ilock(int lock_type, int target, int assertion, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) {
    faults.lock_type(lock_type).target(target).assertion(assertion, access_assertions).locks();
  };
  return call(__func__, &Calls::ilock, win, request, check, lock_type, target, assertion);
}

int MPIX_Win_iunlock(int target, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) { faults.target(target); };
  return call(__func__, &Calls::iunlock, win, request, check, target);
}

int MPIX_Win_ilock_all(int assertion, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) {
    faults.assertion(assertion, access_assertions).locks();
  };
  return call(__func__, &Calls::ilock_all, win, request, check, assertion);
}

int MPIX_Win_iunlock_all(MPI_Win win, MPI_Request* request) {
  return call(__func__, &Calls::iunlock_all, win, request, nothing_more);
}

int MPIX_Win_iflush(int target, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) { faults.target(target); };
  return call(__func__, &Calls::iflush, win, request, check, target);
}

int MPIX_Win_iflush_local(int target, MPI_Win win, MPI_Request* request) {
  const auto check = [=](Faults& faults) { faults.target(target); };
  return call(__func__, &Calls::iflush_local, win, request, check, target);
}

int MPIX_Win_iflush_all(MPI_Win win, MPI_Request* request) {
  return call(__func__, &Calls::iflush_all, win, request, nothing_more);
}

int MPIX_Win_iflush_local_all(MPI_Win win, MPI_Request* request) {
  return call(__func__, &Calls::iflush_local_all, win, request, nothing_more);
}

}  // extern "C"
