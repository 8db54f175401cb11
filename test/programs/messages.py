# SPDX-License-Identifier: BSD-3-Clause
"""Exchange Python objects and numpy arrays with mpi4py and verify every byte of what arrives.

Rank 0 prints "ok NAME" for each case that all ranks have passed; any failure ends the job with a traceback.
Usage: mpirun -n N python3 -m mpi4py messages.py   (N >= 2; -m mpi4py turns a traceback into MPI_Abort)
"""
import hashlib
import os
import random
import threading

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
size = world.Get_size()
ob1 = os.environ.get("OMPI_MCA_pml") == "ob1"
right = (rank + 1) % size
left = (rank - 1) % size

# Around the eager limits of vader and tcp, and large enough for the rendezvous.
SIZES = (0, 1, 7, 8, 1000, 4032, 4095, 4096, 4097, 32767, 65536, 65537, 262144, 1048583)


def pattern(count, *identity):
    """Bytes that differ for every identity (source, destination, turn, ...)."""
    seed = int.from_bytes(hashlib.sha256(repr(identity).encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(seed)).integers(0, 256, count, dtype=np.uint8)


def same(got, expected, what):
    assert np.array_equal(got, expected), f"{what}: {np.count_nonzero(got != expected)} of {len(expected)} elements are wrong"


def case_objects():
    """Pickled objects, from a few bytes to some megabytes, blocking and nonblocking."""

    def thing(source, turn):
        generator = random.Random(source * 1000 + turn)
        return {
            "source": source,
            "text": "".join(chr(generator.randrange(32, 0x2FFF)) for _ in range(10 ** (turn % 6))),
            "nested": [(i, {i: [None, True, 1.5e300, b"\0\xff"]}) for i in range(generator.randrange(50))],
            "array": pattern(generator.randrange(300000), source, turn),
        }

    def check(got, expected):
        array = got.pop("array")
        same(array, expected.pop("array"), "array in an object")
        assert got == expected, "object differs"

    for turn in range(8):
        request = world.isend(thing(rank, turn), right, turn)
        check(world.recv(source=left, tag=turn), thing(left, turn))
        request.wait()
    requests = [world.irecv(bytearray(1 << 21), left, 90 + turn) for turn in range(3)]
    sends = [world.isend(thing(rank, turn), right, 90 + turn) for turn in (2, 0, 1)]
    for turn, request in enumerate(requests):
        check(request.wait(), thing(left, turn))
    MPI.Request.waitall(sends)


def case_buffers():
    """Numpy buffers of every size round the ring; the receiver's guard bytes stay."""
    for turn, count in enumerate(SIZES):
        room = np.full(count + 64, 0xA5, np.uint8)
        status = MPI.Status()
        world.Sendrecv(pattern(count, rank, turn), right, turn, room[: count + 32], left, turn, status)
        assert status.Get_count(MPI.BYTE) == count and status.Get_source() == left and status.Get_tag() == turn
        same(room[:count], pattern(count, left, turn), f"{count} bytes")
        assert (room[count:] == 0xA5).all(), f"bytes behind a message of {count} bytes have changed"
    for kind in (np.int16, np.int64, np.float32, np.float64, np.complex128):
        numbers = (np.arange(50000) * (rank + 1)).astype(kind)
        got = np.empty_like(numbers)
        world.Sendrecv(numbers, right, 0, got, left, 0)
        same(got, (np.arange(50000) * (left + 1)).astype(kind), str(kind))


def case_receives_first():
    """Receives posted before their messages, one envelope, sizes mixed: order must hold."""
    generator = random.Random(4)
    sizes = [generator.choice(SIZES) for _ in range(40)]
    for early in (True, False):
        rooms = [np.full(count + generator.choice((0, 8)), 0x5A, np.uint8) for count in sizes]
        if early:
            receives = [world.Irecv(room, left, 5) for room in rooms]
            world.Barrier()
        sends = [world.Isend(pattern(count, rank, turn, early), right, 5) for turn, count in enumerate(sizes)]
        if not early:
            world.Barrier()
            receives = [world.Irecv(room, left, 5) for room in rooms]
        MPI.Request.Waitall(receives)
        MPI.Request.Waitall(sends)
        for turn, count in enumerate(sizes):
            same(rooms[turn][:count], pattern(count, left, turn, early), f"message {turn}, {count} bytes, early={early}")
            assert (rooms[turn][count:] == 0x5A).all()


def case_repeated():
    """The same envelope again and again with the receive first, then a while without, then again."""
    room = np.empty(100000, np.uint8)
    for turn in range(120):
        count = 64 if 40 <= turn < 60 else 100000 - turn
        receive = world.Irecv(room, left, 3)
        world.Barrier()
        send = world.Isend(pattern(count, rank, turn), right, 3)
        status = MPI.Status()
        receive.Wait(status)
        send.Wait()
        assert status.Get_count(MPI.BYTE) == count
        same(room[:count], pattern(count, left, turn), f"turn {turn}")


def case_completion():
    """Waitany, Testsome and Testall hand out each request once."""
    rooms = [np.empty(count, np.uint8) for count in SIZES]
    receives = [world.Irecv(room, left, turn) for turn, room in enumerate(rooms)]
    order = list(range(len(SIZES)))
    random.Random(rank).shuffle(order)
    sends = [world.Isend(pattern(SIZES[turn], rank, turn, "any"), right, turn) for turn in order]
    finished = []
    for _ in range(4):
        index = MPI.Request.Waitany(receives)
        finished.append(index)
    while len(finished) < len(SIZES):
        finished += MPI.Request.Testsome(receives) or []
    assert sorted(finished) == list(range(len(SIZES))), finished
    while not MPI.Request.Testall(sends):
        pass
    for turn, room in enumerate(rooms):
        same(room, pattern(SIZES[turn], left, turn, "any"), f"tag {turn}")


def case_wildcards():
    """MPI_ANY_SOURCE and MPI_ANY_TAG: what the status says is what arrived."""
    sends = [world.Isend(pattern(count, rank, peer, count), peer, turn)
             for turn, count in enumerate(SIZES) for peer in range(size) if peer != rank]
    last = {}
    for _ in range(len(SIZES) * (size - 1)):
        room = np.empty(max(SIZES), np.uint8)
        status = MPI.Status()
        world.Recv(room, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        source, tag, count = status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)
        assert tag == last.get(source, -1) + 1, f"tag {tag} after {last.get(source)} from {source}"
        last[source] = tag
        assert count == SIZES[tag]
        same(room[:count], pattern(count, source, rank, count), f"from {source}, tag {tag}")
    MPI.Request.Waitall(sends)


def case_probes():
    """Probe, Iprobe, Mprobe and Improbe, with matched messages received in another order."""
    sends = [world.Isend(pattern(count, rank, turn, "probe"), right, turn) for turn, count in enumerate(SIZES)]
    status = MPI.Status()
    for turn in (3, 0):
        world.Probe(left, turn, status)
        room = np.empty(status.Get_count(MPI.BYTE), np.uint8)
        world.Recv(room, left, turn)
        same(room, pattern(SIZES[turn], left, turn, "probe"), f"probed {turn}")
    while not world.Iprobe(left, 13, status):
        pass
    assert status.Get_count(MPI.BYTE) == SIZES[13]
    taken = {}
    while len(taken) < len(SIZES) - 2:
        message = world.Improbe(left, MPI.ANY_TAG, status) if len(taken) % 2 else world.Mprobe(left, MPI.ANY_TAG, status)
        if message is not None:
            taken[status.Get_tag()] = message
    for turn, message in reversed(list(taken.items())):
        room = np.empty(SIZES[turn], np.uint8)
        if turn % 2:
            message.Recv(room)
        else:
            message.Irecv(room).Wait()
        same(room, pattern(SIZES[turn], left, turn, "probe"), f"matched {turn}")
    MPI.Request.Waitall(sends)
    assert not world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)


def case_modes():
    """Synchronous, buffered and ready sends, persistent requests."""
    MPI.Attach_buffer(MPI.Alloc_mem(4 << 20))
    for count in (10, 5000, 200000):
        room = np.empty(count, np.uint8)
        receive = world.Irecv(room, left, 1)
        world.Barrier()
        world.Rsend(pattern(count, rank, "r"), right, 1)
        receive.Wait()
        same(room, pattern(count, left, "r"), "ready")
        send = world.Issend(pattern(count, rank, "s"), right, 2)
        world.Barrier()
        assert not send.Test(), "a synchronous send has completed without its receive"
        world.Barrier()
        world.Recv(room, left, 2)
        send.Wait()
        same(room, pattern(count, left, "s"), "synchronous")
        world.Bsend(pattern(count, rank, "b"), right, 3)
        world.Recv(room, left, 3)
        same(room, pattern(count, left, "b"), "buffered")
        data = np.empty(count, np.uint8)
        requests = [world.Recv_init(room, left, 4), world.Send_init(data, right, 4)]
        for turn in range(6):
            data[:] = pattern(count, rank, turn)
            MPI.Prequest.Startall(requests)
            MPI.Request.Waitall(requests)
            same(room, pattern(count, left, turn), f"persistent {turn}")
        for request in requests:
            request.Free()
    MPI.Detach_buffer()


def case_cancel():
    """A receive that is cancelled leaves its message to the next one."""
    for count in (100, 300000):
        stale = np.full(count, 0x77, np.uint8)
        room = np.empty(count, np.uint8)
        status = MPI.Status()
        receive = world.Irecv(stale, left, 6)
        receive.Cancel()
        receive.Wait(status)
        cancelled = status.Is_cancelled()
        assert cancelled
        world.Barrier()
        send = world.Isend(pattern(count, rank, "cancel"), right, 6)
        world.Recv(room, left, 6)
        send.Wait()
        same(room, pattern(count, left, "cancel"), "message after a cancelled receive")
        assert (stale == 0x77).all(), "the buffer of a cancelled receive was written to"


def case_datatypes():
    """Columns and blocks of a matrix, sent with a gap and received without, and the reverse."""
    rows, columns = 300, 400
    matrix = np.arange(rows * columns, dtype=np.float64).reshape(rows, columns) + rank * 1e6
    theirs = matrix - rank * 1e6 + left * 1e6
    block = MPI.DOUBLE.Create_subarray((rows, columns), (200, 150), (50, 200)).Commit()
    got = np.empty((200, 150))
    world.Sendrecv([matrix, 1, block], right, 0, got, left, 0)
    same(got.ravel(), theirs[50:250, 200:350].ravel(), "block into an array")
    got = np.full((rows, columns), -1.0)
    world.Sendrecv(np.ascontiguousarray(matrix[:200, :150]), right, 1, [got, 1, block], left, 1)
    expected = np.full((rows, columns), -1.0)
    expected[50:250, 200:350] = theirs[:200, :150]
    same(got.ravel(), expected.ravel(), "array into a block")
    column = MPI.DOUBLE.Create_vector(rows, 1, columns).Commit()
    got = np.full((rows, columns), -1.0)
    world.Sendrecv([matrix, 1, column], right, 2, [got, 1, column], left, 2)
    same(got[:, 0], theirs[:, 0], "column")
    assert (got[:, 1:] == -1).all()
    block.Free()
    column.Free()


def case_truncation():
    """A message longer than the receive: MPI_ERR_TRUNCATE there, and the sender completes."""
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    for count in (200, 500000):
        for early in (True, False):
            room = np.full(count, 0x11, np.uint8)
            if early:
                receive = comm.Irecv(room[: count // 2], left, 0)
                world.Barrier()
            send = comm.Isend(pattern(count, rank), right, 0)
            if not early:
                world.Barrier()
                receive = comm.Irecv(room[: count // 2], left, 0)
            try:
                receive.Wait()
                raise AssertionError("no error for a message that is too long")
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_TRUNCATE, error
            send.Wait()
            # Stock ob1 (4.1.4) writes behind the receive's buffer where it reads or writes the peer's memory.
            assert ob1 or (room[count // 2:] == 0x11).all(), "bytes behind the receive have changed"
    comm.Free()


def case_collectives():
    """Collectives of buffers and objects, on the world, a part of it and between two parts."""
    for count in (1, 1000, 100000):
        ours = np.arange(count, dtype=np.int64) + rank
        total = np.empty_like(ours)
        world.Allreduce(ours, total)
        same(total, np.arange(count) * size + size * (size - 1) // 2, "Allreduce")
        world.Scan(ours, total)
        same(total, np.arange(count) * (rank + 1) + rank * (rank + 1) // 2, "Scan")
        for root in range(size):
            room = pattern(count, root, "bcast") if rank == root else np.empty(count, np.uint8)
            world.Bcast(room, root)
            same(room, pattern(count, root, "bcast"), "Bcast")
            gathered = np.empty((size, count), np.uint8) if rank == root else None
            world.Gather(pattern(count, rank, "gather"), gathered, root)
            if rank == root:
                for peer in range(size):
                    same(gathered[peer], pattern(count, peer, "gather"), "Gather")
            part = np.empty(count, np.uint8)
            world.Scatter(gathered, part, root)
            same(part, pattern(count, rank, "gather"), "Scatter")
        out = np.concatenate([pattern(count, rank, peer) for peer in range(size)])
        room = np.empty_like(out)
        world.Alltoall(out, room)
        same(room, np.concatenate([pattern(count, peer, rank) for peer in range(size)]), "Alltoall")
        counts_out = [count * (peer + 1) for peer in range(size)]
        counts_in = [count * (rank + 1)] * size
        out = np.concatenate([pattern(counts_out[peer], rank, peer, "v") for peer in range(size)])
        room = np.empty(sum(counts_in), np.uint8)
        world.Alltoallv([out, counts_out], [room, counts_in])
        same(room, np.concatenate([pattern(counts_in[0], peer, rank, "v") for peer in range(size)]), "Alltoallv")
        part = np.empty(count, np.int64)
        world.Reduce_scatter_block(np.arange(count * size, dtype=np.int64), part)
        same(part, np.arange(count * rank, count * (rank + 1)) * size, "Reduce_scatter_block")
        request = world.Iallreduce(ours, total)
        request.Wait()
        same(total, np.arange(count) * size + size * (size - 1) // 2, "Iallreduce")
    assert world.allgather({rank: "x" * 10000 * rank}) == [{peer: "x" * 10000 * peer} for peer in range(size)]
    assert world.alltoall([(rank, peer) for peer in range(size)]) == [(peer, rank) for peer in range(size)]
    assert world.bcast(list(range(100000)) if rank == 0 else None) == list(range(100000))
    part = world.Split(rank % 2, -rank)
    assert part.allgather(rank) == [peer for peer in reversed(range(size)) if peer % 2 == rank % 2]
    leader = max(peer for peer in range(size) if peer % 2 != rank % 2)
    between = part.Create_intercomm(0, world, leader)
    room = np.empty(70000, np.uint8)
    if part.Get_rank() == 0:
        between.Sendrecv(pattern(70000, rank, "inter"), 0, 0, room, 0, 0)
        same(room, pattern(70000, leader, "inter"), "intercommunicator")
    between.Free()
    part.Free()


def case_threads():
    """Two threads per rank, each with a communicator of its own, then one shared by tags."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return
    comms = [world.Dup(), world.Dup()]
    failures = []

    def exchange(index, comm, base):
        try:
            for turn in range(30):
                count = SIZES[(turn * 3 + index) % len(SIZES)]
                room = np.empty(count, np.uint8)
                receive = comm.Irecv(room, left, base + turn)
                comm.Send(pattern(count, rank, index, turn), right, base + turn)
                receive.Wait()
                same(room, pattern(count, left, index, turn), f"thread {index}, turn {turn}")
        except BaseException as failure:  # handed to the main thread
            failures.append(failure)

    for pair in (comms, [comms[0], comms[0]]):
        threads = [threading.Thread(target=exchange, args=(index, comm, 100 * index)) for index, comm in enumerate(pair)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
    for comm in comms:
        comm.Free()


for name, case in [(name[5:], value) for name, value in list(globals().items()) if name.startswith("case_")]:
    case()
    world.Barrier()
    if rank == 0:
        print("ok", name, flush=True)
if rank == 0:
    print("all cases passed", flush=True)
