"""weft.opi: arrays given and taken between two ranks, and what must not be done with them. Without NumPy they are memoryviews, and the
part of the test that needs arrays is left out. Run by mpiexec; MPI is initialised through ctypes, so mpi4py is not needed."""
import ctypes
import gc

from weft import opi

library = opi._library
library.MPI_Init(None, None)
rank = ctypes.c_int()
library.MPI_Comm_rank(ctypes.c_void_p(0x101), ctypes.byref(rank))
me, other = rank.value, 1 - rank.value


def check(condition, what):
    if not condition:
        raise AssertionError(f"rank {me}: {what}")


def raises(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"rank {me}: {call.__name__} raised no {error.__name__}")


def bytes_change_the_rank():
    for size in (1, 100, 5000, 1 << 20):
        block = opi.empty(size)
        block[0], block[-1] = me + 1, me + 7
        request = opi.igive(block, other, 3)
        taken = opi.take(size, source=other, tag=3)
        request.wait()
        check(taken[-1] == other + 7 and len(taken) == size, f"{size} bytes")
        raises(ValueError, opi.give, block, other)
        opi.free(taken)
        raises(ValueError, opi.free, taken)


def requests():
    wanted = opi.itake(100, source=other, tag=4)
    check(wanted.test()[0] in (False, True), "test")
    opi.give(opi.empty(40), other, 4)
    check(len(wanted.wait()) == 40, "a shorter message")
    check(opi.itake(8, source=-3).wait() is None, "MPI_PROC_NULL")


def dropped_arrays_are_freed():
    before = len(opi._owned)
    for _ in range(1000):
        opi.empty(100000)
    gc.collect()
    check(len(opi._owned) == before, "buffers of dropped arrays are still owned")


def arrays_keep_their_shape():
    block = opi.empty((30, 7), "f8")
    block[:] = me
    block[3, 4] = 42
    opi.give(block, other, 5)
    check(not block.flags.writeable, "a given array can be written")
    raises(ValueError, opi.give, opi.empty((4, 4))[:, 1], other)
    taken = opi.take((30, 7), "f8", source=other, tag=5)
    check(taken.shape == (30, 7) and taken[3, 4] == 42 and taken[0, 0] == other, "contents")
    view = taken[1:]
    del taken
    check(view[2, 4] == 42, "a view keeps its buffer")


bytes_change_the_rank()
requests()
dropped_arrays_are_freed()
if opi.numpy is not None:
    arrays_keep_their_shape()
library.MPI_Finalize()
