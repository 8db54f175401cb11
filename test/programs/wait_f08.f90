! Two ranks exchange a megabyte through the mpi_f08 binding and wait in MPI_Waitall.
! SPDX-License-Identifier: BSD-3-Clause
program wait_f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 262144
  integer :: rank, numbers(n), others(n)
  type(MPI_Request) :: requests(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  numbers = rank + 1
  call MPI_Irecv(others, n, MPI_INTEGER, 1 - rank, 1, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(numbers, n, MPI_INTEGER, 1 - rank, 1, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (any(others /= 2 - rank)) call MPI_Abort(MPI_COMM_WORLD, 1)
  call MPI_Finalize()
end program
