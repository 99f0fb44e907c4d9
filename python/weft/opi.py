"""Ownership passing for NumPy arrays: an array is handed to another rank of the node instead of being copied.

    from mpi4py import MPI
    from weft import opi

    block = opi.empty((512, 512), "f8")
    block[:] = ...
    opi.give(block, dest=1, tag=7)           # from now on block belongs to rank 1
    block = opi.take((512, 512), "f8", source=0, tag=7)

Gives match receives of mpi4py, and its sends match takes. Communicators are mpi4py's; without one it is MPI_COMM_WORLD. The library is
the one that the process has loaded (by mpi4py, say), or else libmpi_abi.so.1; MPI must be initialised. Without NumPy the arrays are
memoryviews. What an array's memory is and who may free it: docs/ownership.md of Weft.

An array that is not given away is freed when Python drops the last reference to it. One that has been given cannot be written any more;
views of it can, which is an error of the program that only the guard finds (WEFT_POLICY=guard=on).
"""
import ctypes
import math
import weakref

try:
    import numpy
except ImportError:
    numpy = None

ANY_SOURCE, ANY_TAG = -1, -2
_COMM_WORLD, _BYTE = 0x101, 0x247   # handles of the standard ABI



class _Status(ctypes.Structure):
    _fields_ = [("source", ctypes.c_int), ("tag", ctypes.c_int), ("error", ctypes.c_int), ("reserved", ctypes.c_int * 5)]


class Error(RuntimeError):
    """What a call of the library failed with, if the communicator's error handler lets it return."""


def _load():
    # What is in the process already, so that both speak to the same library.
    loaded = ctypes.CDLL(None)
    return loaded if hasattr(loaded, "OPI_Alloc") else ctypes.CDLL("libmpi_abi.so.1", mode=ctypes.RTLD_GLOBAL)


_library = _load()
_owned = {}   # address of each buffer that this rank owns: what frees it when Python drops it


def _call(name, *arguments):
    code = getattr(_library, name)(*arguments)
    if code:
        text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
        _library.MPI_Error_string(code, text, ctypes.byref(length))
        raise Error(f"{name}: {text.value.decode()}")


def _handle(comm):
    """The communicator's handle in the standard ABI."""
    if comm is None:
        return ctypes.c_void_p(_COMM_WORLD)
    from mpi4py import MPI
    return ctypes.c_void_p(MPI._handleof(comm))


def _free(address):
    _owned.pop(address, None)
    done = ctypes.c_int()
    _library.MPI_Finalized(ctypes.byref(done))
    if not done.value:
        _library.OPI_Free(ctypes.byref(ctypes.c_void_p(address)))


def _adopt(address, size, shape, dtype):
    """An array over a buffer that this rank owns."""
    memory = type("OwnedMemory", (ctypes.c_char * size,), {}).from_address(address)
    _owned[address] = weakref.finalize(memory, _free, address)
    _owned[address].atexit = False   # MPI frees what is left
    if numpy is None:
        return memoryview(memory).cast("B")
    return numpy.frombuffer(memory, dtype=dtype, count=math.prod(shape)).reshape(shape)


def _shape_of(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _bytes_of(shape, dtype):
    return math.prod(shape) * (numpy.dtype(dtype).itemsize if numpy else 1)


def _address_of(array):
    if numpy is not None and isinstance(array, numpy.ndarray):
        if not array.flags.c_contiguous:
            raise ValueError("only a contiguous array can be given or freed")
        return array.ctypes.data
    return ctypes.addressof((ctypes.c_char * 0).from_buffer(array))


def _leave(array):
    """The address of an array's buffer, which this rank is about to give or free."""
    address, memory = _address_of(array), array
    while numpy is not None and isinstance(memory, numpy.ndarray):
        memory = memory.base
    if isinstance(memory, memoryview):
        memory = memory.obj
    # An array that was given before may begin where a new one does, so the address alone does not tell.
    owner = address in _owned and _owned[address].peek()
    if not owner or owner[0] is not memory:
        raise ValueError("this array does not begin a buffer that this rank owns: it is of opi.empty() or opi.take(), once")
    return address


def _left(array, address):
    _owned.pop(address).detach()
    if numpy is not None and isinstance(array, numpy.ndarray):
        array.flags.writeable = False


def empty(shape, dtype="B"):
    """A new array, whose contents are undefined, in a buffer that can be given."""
    shape, pointer = _shape_of(shape), ctypes.c_void_p()
    size = _bytes_of(shape, dtype)
    _call("OPI_Alloc", ctypes.byref(pointer), ctypes.c_size_t(size))
    return _adopt(pointer.value, size, shape, dtype)


def free(array):
    """Frees an array now, instead of when Python drops it."""
    address = _leave(array)
    _left(array, address)
    _call("OPI_Free", ctypes.byref(ctypes.c_void_p(address)))


class Request:
    """A give or take that is not complete; wait() returns the array that was taken, or None."""

    def __init__(self, handle, finish):
        self._handle, self._finish, self._result = handle, finish, None

    def wait(self):
        status = _Status()
        _call("MPI_Wait", ctypes.byref(self._handle), ctypes.byref(status))
        return self._end(status)

    def test(self):
        """(whether it is complete, what wait() returns)"""
        flag, status = ctypes.c_int(), _Status()
        _call("MPI_Test", ctypes.byref(self._handle), ctypes.byref(flag), ctypes.byref(status))
        return (True, self._end(status)) if flag.value else (False, None)

    def _end(self, status):
        if self._finish is not None:
            self._result = self._finish(status)
            self._finish = None
        return self._result


def _message(size, rank, tag, comm):
    if size > 2**31 - 1:
        raise ValueError("an array of 2 GiB or more cannot be given")
    return ctypes.c_int(size), ctypes.c_void_p(_BYTE), ctypes.c_int(rank), ctypes.c_int(tag), _handle(comm)


def give(array, dest, tag=0, comm=None):
    """Gives an array to a rank."""
    igive(array, dest, tag, comm).wait()


def igive(array, dest, tag=0, comm=None):
    """The same without waiting; the array is given when this returns."""
    address, handle = _leave(array), ctypes.c_void_p()
    _call("OPI_Igive", ctypes.byref(ctypes.c_void_p(address)), *_message(memoryview(array).nbytes, dest, tag, comm), ctypes.byref(handle))
    _left(array, address)
    return Request(handle, lambda _: None)


def take(shape, dtype="B", source=ANY_SOURCE, tag=ANY_TAG, comm=None):
    """An array that a rank gave or sent. A message that is shorter than `shape` makes a flat array of what came."""
    return itake(shape, dtype, source, tag, comm).wait()


def itake(shape, dtype="B", source=ANY_SOURCE, tag=ANY_TAG, comm=None):
    """The same without waiting."""
    shape, pointer, handle = _shape_of(shape), ctypes.c_void_p(), ctypes.c_void_p()
    size = _bytes_of(shape, dtype)
    _call("OPI_Itake", ctypes.byref(pointer), *_message(size, source, tag, comm), ctypes.byref(handle))

    def finish(status):
        came = ctypes.c_int()
        _call("MPI_Get_count", ctypes.byref(status), ctypes.c_void_p(_BYTE), ctypes.byref(came))
        if not pointer.value:
            return None   # from MPI_PROC_NULL
        whole = came.value == size
        item = size // math.prod(shape) if math.prod(shape) else 1
        return _adopt(pointer.value, came.value, shape if whole else (came.value // item,), dtype)

    return Request(handle, finish)
