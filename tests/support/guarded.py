# SPDX-License-Identifier: MIT
"""Arrays between pages that may not be touched: a kernel that reads or writes beyond its tensors ends with a signal."""
import contextlib
import ctypes
import mmap

import numpy

PAGE = mmap.PAGESIZE
PROT_NONE = 0
NOISE = 0x5A  # in each byte: 1.5e16 in f32, 203 in f16, 90 in i8
M_PERTURB = -6

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def forbid(address):
    if libc.mprotect(address, PAGE, PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")


def guarded(shape, dtype, at_end=True):
    """An array of zeros whose last element is the last before a forbidden page, or whose first is the first behind one.
    The other side ends in a page of its own, of which the rest is allowed."""
    dtype = numpy.dtype(dtype)
    count = int(numpy.prod(shape, dtype=numpy.int64))
    size = count * dtype.itemsize
    if not size:
        return numpy.empty(shape, dtype)
    room = -(-size // PAGE) * PAGE
    pages = mmap.mmap(-1, room + 2 * PAGE)
    whole = numpy.frombuffer(pages, numpy.uint8)
    forbid(whole.ctypes.data)
    forbid(whole.ctypes.data + PAGE + room)
    begin = PAGE + (room - size if at_end else 0)
    return numpy.frombuffer(pages, dtype, count, begin).reshape(shape)


def unset(shape, dtype, at_end=True):
    """The same with noise in it, for results: zeros would be right where a kernel has to write some and does not."""
    array = guarded(shape, dtype, at_end)
    array.reshape(-1).view(numpy.uint8)[...] = NOISE
    return array


def guarded_copy(array, at_end=True):
    copy = guarded(array.shape, array.dtype, at_end)
    copy[...] = array
    return copy


def allocate_noise():
    """From now on, memory that this process allocates holds noise: a module's memory, where zeros would be right for what
    nobody has written. Only glibc can do that."""
    set_noise(NOISE ^ 0xFF)


def set_noise(byte):
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_PERTURB, byte)


@contextlib.contextmanager
def memory_untouched():
    """What is allocated meanwhile is as the system gave it: noise would have its pages in memory."""
    set_noise(0)
    try:
        yield
    finally:
        allocate_noise()
