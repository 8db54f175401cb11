! Non-blocking epochs for programs that use mpi_f08: the calls of mpix_overlap.h. Interfaces only: the calls themselves are in libmpix_overlap,
! which needs no Fortran library.
! SPDX-License-Identifier: BSD-3-Clause
module mpix_overlap
  implicit none
  private
  public :: MPIX_Win_nonblocking
  public :: MPIX_Win_ifence
  public :: MPIX_Win_ipost
  public :: MPIX_Win_istart
  public :: MPIX_Win_icomplete
  public :: MPIX_Win_iwait
  public :: MPIX_Win_ilock
  public :: MPIX_Win_iunlock
  public :: MPIX_Win_ilock_all
  public :: MPIX_Win_iunlock_all
  public :: MPIX_Win_iflush
  public :: MPIX_Win_iflush_local
  public :: MPIX_Win_iflush_all
  public :: MPIX_Win_iflush_local_all

  interface
    subroutine MPIX_Win_nonblocking(win, flag, ierror) bind(C, name="mpix_win_nonblocking_f08")
      use mpi_f08, only: MPI_Win
      type(MPI_Win), intent(in) :: win
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_ifence(assert, win, request, ierror) bind(C, name="mpix_win_ifence_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      integer, intent(in) :: assert
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_ipost(group, assert, win, request, ierror) bind(C, name="mpix_win_ipost_f08")
      use mpi_f08, only: MPI_Group, MPI_Request, MPI_Win
      type(MPI_Group), intent(in) :: group
      integer, intent(in) :: assert
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_istart(group, assert, win, request, ierror) bind(C, name="mpix_win_istart_f08")
      use mpi_f08, only: MPI_Group, MPI_Request, MPI_Win
      type(MPI_Group), intent(in) :: group
      integer, intent(in) :: assert
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_icomplete(win, request, ierror) bind(C, name="mpix_win_icomplete_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iwait(win, request, ierror) bind(C, name="mpix_win_iwait_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_ilock(lock_type, rank, assert, win, request, ierror) bind(C, name="mpix_win_ilock_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      integer, intent(in) :: lock_type
      integer, intent(in) :: rank
      integer, intent(in) :: assert
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iunlock(rank, win, request, ierror) bind(C, name="mpix_win_iunlock_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      integer, intent(in) :: rank
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_ilock_all(assert, win, request, ierror) bind(C, name="mpix_win_ilock_all_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      integer, intent(in) :: assert
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iunlock_all(win, request, ierror) bind(C, name="mpix_win_iunlock_all_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iflush(rank, win, request, ierror) bind(C, name="mpix_win_iflush_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      integer, intent(in) :: rank
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iflush_local(rank, win, request, ierror) bind(C, name="mpix_win_iflush_local_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      integer, intent(in) :: rank
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iflush_all(win, request, ierror) bind(C, name="mpix_win_iflush_all_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine MPIX_Win_iflush_local_all(win, request, ierror) bind(C, name="mpix_win_iflush_local_all_f08")
      use mpi_f08, only: MPI_Request, MPI_Win
      type(MPI_Win), intent(in) :: win
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
end module
