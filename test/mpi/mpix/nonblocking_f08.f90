! The calls of module mpix_overlap on a window of osc/newrma: every rank writes to its right neighbour; requests are completed by
! MPI_Wait of mpi_f08.
! SPDX-License-Identifier: BSD-3-Clause
program nonblocking_f08
  use mpi_f08
  use mpix_overlap
  implicit none
  integer, asynchronous :: memory(1), values(4)
  integer :: rank, size, left, right, ierror, i, faults = 0
  logical :: flag
  type(MPI_Win) :: win
  type(MPI_Group) :: all, from, to
  type(MPI_Request) :: request(8)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  left = mod(rank + size - 1, size)
  right = mod(rank + 1, size)
  memory = 0
  values = [(100 * i + rank, i = 1, 4)]
  call MPI_Win_create(memory, int(4, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPIX_Win_nonblocking(win, flag, ierror)
  if (.not. flag) faults = faults + 1
  call MPI_Win_get_group(win, all)
  call MPI_Group_incl(all, 1, [left], from)
  call MPI_Group_incl(all, 1, [right], to)

  call MPIX_Win_ifence(MPI_MODE_NOPRECEDE, win, request(1), ierror)
  call put(1)
  call MPIX_Win_ifence(MPI_MODE_NOSUCCEED, win, request(2), ierror)
  call wait_for(2)
  call expect(1)

  call MPIX_Win_ipost(from, 0, win, request(1), ierror)
  call MPIX_Win_istart(to, 0, win, request(2), ierror)
  call put(2)
  call MPIX_Win_icomplete(win, request(3), ierror)
  call MPIX_Win_iwait(win, request(4), ierror)
  call wait_for(4)
  call expect(2)

  call MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, right, 0, win, request(1), ierror)
  call put(3)
  call MPIX_Win_iflush_local(right, win, request(2), ierror)
  call MPIX_Win_iflush(right, win, request(3), ierror)
  call MPIX_Win_iunlock(right, win, request(4), ierror)
  call wait_for(4)
  call expect(3)

  call MPIX_Win_ilock_all(0, win, request(1), ierror)
  call put(4)
  call MPIX_Win_iflush_local_all(win, request(2), ierror)
  call MPIX_Win_iflush_all(win, request(3))  ! without ierror
  call MPIX_Win_iunlock_all(win, request(4), ierror)
  call wait_for(4)
  call expect(4)

  call MPI_Group_free(from)
  call MPI_Group_free(to)
  call MPI_Group_free(all)
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (faults /= 0) error stop 1

contains

  subroutine put(turn)
    integer, intent(in) :: turn
    call MPI_Put(values(turn), 1, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
  end subroutine

  ! Complete the first `count` requests.
  subroutine wait_for(count)
    integer, intent(in) :: count
    integer :: each
    do each = 1, count
      call MPI_Wait(request(each), MPI_STATUS_IGNORE)
      if (request(each) /= MPI_REQUEST_NULL) faults = faults + 1
    end do
  end subroutine

  ! What has the left neighbour written?
  subroutine expect(turn)
    integer, intent(in) :: turn
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    if (memory(1) /= 100 * turn + left) then
      print *, "rank", rank, "turn", turn, ":", memory(1)
      faults = faults + 1
    end if
    call MPI_Win_unlock(rank, win)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine
end program
