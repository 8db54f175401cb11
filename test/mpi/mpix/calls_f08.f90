! The calls of module mpix_overlap on a window of a component that has no non-blocking epochs. A wrong value at each place of the arguments
! has its own class of error, so none has changed places on the way to C.
! SPDX-License-Identifier: BSD-3-Clause
program calls_f08
  use mpi_f08
  use mpix_overlap
  implicit none
  integer, asynchronous :: memory(16)
  integer :: ierror, faults = 0
  logical :: flag
  type(MPI_Win) :: win
  type(MPI_Group) :: group
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_group(MPI_COMM_WORLD, group)
  call MPI_Win_create(memory, int(64, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
  flag = .true.
  call MPIX_Win_nonblocking(win, flag, ierror)
  call expect("nonblocking", MPI_SUCCESS)
  if (flag) faults = faults + 1

  call MPIX_Win_ifence(MPI_MODE_NOPRECEDE, win, request, ierror)
  call expect("ifence", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_ifence(MPI_MODE_NOCHECK, win, request, ierror)
  call expect("ifence, assertion", MPI_ERR_ASSERT)
  call MPIX_Win_ipost(group, MPI_MODE_NOPUT, win, request, ierror)
  call expect("ipost", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_ipost(MPI_GROUP_NULL, 0, win, request, ierror)
  call expect("ipost, group", MPI_ERR_GROUP)
  call MPIX_Win_ipost(group, MPI_MODE_NOSUCCEED, win, request, ierror)
  call expect("ipost, assertion", MPI_ERR_ASSERT)
  call MPIX_Win_istart(group, MPI_MODE_NOCHECK, win, request, ierror)
  call expect("istart", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_istart(MPI_GROUP_NULL, 0, win, request, ierror)
  call expect("istart, group", MPI_ERR_GROUP)
  call MPIX_Win_icomplete(win, request, ierror)
  call expect("icomplete", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_iwait(win, request, ierror)
  call expect("iwait", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_ilock(MPI_LOCK_SHARED, 0, 0, win, request, ierror)
  call expect("ilock", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_ilock(lock_type=-1, rank=0, assert=0, win=win, request=request, ierror=ierror)
  call expect("ilock, type", MPI_ERR_LOCKTYPE)
  call MPIX_Win_ilock(MPI_LOCK_SHARED, 99, 0, win, request, ierror)
  call expect("ilock, rank", MPI_ERR_RANK)
  call MPIX_Win_ilock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win, request, ierror)
  call expect("ilock, assertion", MPI_ERR_ASSERT)
  call MPIX_Win_iunlock(0, win, request, ierror)
  call expect("iunlock", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_iunlock(99, win, request, ierror)
  call expect("iunlock, rank", MPI_ERR_RANK)
  call MPIX_Win_ilock_all(0, win, request, ierror)
  call expect("ilock_all", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_ilock_all(MPI_MODE_NOPUT, win, request, ierror)
  call expect("ilock_all, assertion", MPI_ERR_ASSERT)
  call MPIX_Win_iunlock_all(win, request, ierror)
  call expect("iunlock_all", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_iflush(0, win, request, ierror)
  call expect("iflush", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_iflush(99, win, request, ierror)
  call expect("iflush, rank", MPI_ERR_RANK)
  call MPIX_Win_iflush_local(0, win, request, ierror)
  call expect("iflush_local", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_iflush_local(99, win, request, ierror)
  call expect("iflush_local, rank", MPI_ERR_RANK)
  call MPIX_Win_iflush_all(win, request, ierror)
  call expect("iflush_all", MPI_ERR_UNSUPPORTED_OPERATION)
  call MPIX_Win_iflush_local_all(win, request)  ! without ierror
  call MPIX_Win_iflush_local_all(win, request, ierror)
  call expect("iflush_local_all", MPI_ERR_UNSUPPORTED_OPERATION)

  call MPI_Group_free(group)
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (faults /= 0) error stop 1

contains

  subroutine expect(what, expected)
    character(len=*), intent(in) :: what
    integer, intent(in) :: expected
    integer :: class
    call MPI_Error_class(ierror, class)
    if (class == expected) return
    print *, what, ": class", class, ", expected", expected
    faults = faults + 1
  end subroutine
end program
