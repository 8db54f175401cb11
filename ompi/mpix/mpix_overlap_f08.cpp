// What the interfaces of mpix_overlap.f90 call: handles of Fortran become those of C. An absent
// ierror is a null pointer.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/openmpi.hpp"

// After the door to Open MPI, which leaves out the C++ binding that mpi.h brings along.
#include "ompi/mpix/mpix_overlap.h"

namespace {

using In = const MPI_Fint&;

void set(MPI_Fint* ierror, int code) {
  if (ierror != nullptr) *ierror = code;
}

/// The arguments in the order of C; the request is the last of them.
template <class... Parameters, class... Arguments>
void start(int (*call)(Parameters...), MPI_Fint* request, MPI_Fint* ierror,
           Arguments... arguments) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = call(arguments..., &made);
  if (code == MPI_SUCCESS) *request = MPI_Request_c2f(made);
  set(ierror, code);
}

}  // namespace

extern "C" {

void mpix_win_nonblocking_f08(In win, MPI_Fint* flag, MPI_Fint* ierror) {
  int found = 0;
  const int code = MPIX_Win_nonblocking(MPI_Win_f2c(win), &found);
  if (code == MPI_SUCCESS) *flag = found != 0 ? OMPI_FORTRAN_VALUE_TRUE : 0;
  set(ierror, code);
}

void mpix_win_ifence_f08(In assertion, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_ifence, request, ierror, assertion, MPI_Win_f2c(win));
}

void mpix_win_ipost_f08(In group, In assertion, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_ipost, request, ierror, MPI_Group_f2c(group), assertion, MPI_Win_f2c(win));
}

void mpix_win_istart_f08(In group, In assertion, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_istart, request, ierror, MPI_Group_f2c(group), assertion, MPI_Win_f2c(win));
}

void mpix_win_icomplete_f08(In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_icomplete, request, ierror, MPI_Win_f2c(win));
}

void mpix_win_iwait_f08(In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iwait, request, ierror, MPI_Win_f2c(win));
}

void mpix_win_ilock_f08(In lock_type, In target, In assertion, In win, MPI_Fint* request,
                        MPI_Fint* ierror) {
  start(MPIX_Win_ilock, request, ierror, lock_type, target, assertion, MPI_Win_f2c(win));
}

void mpix_win_iunlock_f08(In target, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iunlock, request, ierror, target, MPI_Win_f2c(win));
}

void mpix_win_ilock_all_f08(In assertion, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_ilock_all, request, ierror, assertion, MPI_Win_f2c(win));
}

void mpix_win_iunlock_all_f08(In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iunlock_all, request, ierror, MPI_Win_f2c(win));
}

void mpix_win_iflush_f08(In target, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iflush, request, ierror, target, MPI_Win_f2c(win));
}

void mpix_win_iflush_local_f08(In target, In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iflush_local, request, ierror, target, MPI_Win_f2c(win));
}

void mpix_win_iflush_all_f08(In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iflush_all, request, ierror, MPI_Win_f2c(win));
}

void mpix_win_iflush_local_all_f08(In win, MPI_Fint* request, MPI_Fint* ierror) {
  start(MPIX_Win_iflush_local_all, request, ierror, MPI_Win_f2c(win));
}

}  // extern "C"
