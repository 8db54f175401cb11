"""Add up numbers at rank 0 while every rank computes: non-blocking epochs of one-sided communication from Python.

    . PREFIX/env.sh; mpirun -n 4 python3 examples/mpix/sum.py

mpi4py has no binding of these calls, so ctypes calls libmpix_overlap with mpi4py's own handles. On a window without non-blocking epochs the
blocking calls do the same, and the ranks wait for the lock and for the transfer before they compute.
"""
# SPDX-License-Identifier: BSD-3-Clause
import array
import ctypes
import subprocess
import sys

from mpi4py import MPI

folder = subprocess.run(["pkg-config", "--variable=libdir", "mpix_overlap"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
library = ctypes.CDLL(folder + "/libmpix_overlap.so.0")


def handle(thing):
    """The MPI handle inside an object of mpi4py, as a call takes it."""
    return ctypes.c_void_p.from_address(MPI._addressof(thing))


def nonblocking(win):
    """Has the window non-blocking epochs?"""
    flag = ctypes.c_int(-1)
    code = library.MPIX_Win_nonblocking(handle(win), ctypes.byref(flag))
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)
    return flag.value != 0


def start(call, *arguments):
    """MPIX_Win_CALL with integers, then the window; its request."""
    *numbers, win = arguments
    request = MPI.Request()
    code = getattr(library, "MPIX_Win_" + call)(*map(ctypes.c_int, numbers), handle(win), ctypes.c_void_p(MPI._addressof(request)))
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)
    return request


def compute():
    return sum(number * number for number in range(100000))


comm = MPI.COMM_WORLD
win = MPI.Win.Allocate(8 if comm.rank == 0 else 0, 8, comm=comm)
total = array.array("q", [0])
if comm.rank == 0:
    win.Lock(0)
    win.Put([total, MPI.INT64_T], 0)
    win.Unlock(0)
comm.Barrier()

mine = array.array("q", [comm.rank + 1])
if nonblocking(win):
    requests = [start("ilock", MPI.LOCK_SHARED, 0, 0, win)]
    win.Accumulate([mine, MPI.INT64_T], 0, op=MPI.SUM)
    requests.append(start("iunlock", 0, win))
    compute()
    MPI.Request.Waitall(requests)
else:
    win.Lock(0, MPI.LOCK_SHARED)
    win.Accumulate([mine, MPI.INT64_T], 0, op=MPI.SUM)
    win.Unlock(0)
    compute()
comm.Barrier()

win.Lock(0, MPI.LOCK_SHARED)
win.Get([total, MPI.INT64_T], 0)
win.Unlock(0)
if comm.rank == 0:
    print("sum", total[0], "with non-blocking epochs" if nonblocking(win) else "with blocking calls")
right = total[0] == comm.size * (comm.size + 1) // 2
win.Free()
sys.exit(0 if right else 1)
