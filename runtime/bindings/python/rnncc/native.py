# SPDX-License-Identifier: MIT
"""A module's file in this process, and its models: what must be given back, in the right order.

Each object holds what it needs, and is given back when nobody holds it any more. At the interpreter's exit nothing is:
the process ends with all of it, while other threads may still run."""
from __future__ import annotations

import ctypes
import os
import stat
import struct
import weakref
from ctypes import byref, c_char_p, c_void_p
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import abi
from .errors import ArgumentError, LoadError, UnsupportedError, of_status

Path = Union[str, "os.PathLike[str]"]
MACHINES: Dict[int, str] = {3: "x86", 21: "ppc64", 22: "s390", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}
HEADER_64, HEADER_32 = "=QQQIHHH", "=IIIIHHH"  # from the entry point to the number of segments
SEGMENT_64, SEGMENT_32 = "=IIQQQQ", "=IIIII"  # as far as it is read
ENTRY = 24  # where that is
LOAD = 1


def _machine(head: bytes) -> Tuple[int, int, int]:
    """Bits, byte order, and the kind of CPU, of an ELF file."""
    (machine,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    return head[4], head[5], machine


def _machine_name(machine: Tuple[int, int, int]) -> str:
    bits = "" if machine[0] == 2 else " of 32 bits" if machine[0] == 1 else f" of ELF class {machine[0]}"
    order = "" if machine[1] == 1 else ", big-endian"
    return f"{MACHINES.get(machine[2], f'ELF machine {machine[2]}')}{bits}{order}"


def _segments_end(file: Any, head: bytes, there: int) -> int:
    """How many bytes the file has at least, by its own header. there: how many it has."""
    wide = head[4] == 2
    _entry, at, _sections, _flags, _bytes, size, count = struct.unpack_from(HEADER_64 if wide else HEADER_32, head, ENTRY)
    segment = SEGMENT_64 if wide else SEGMENT_32
    due: int = at + size * count
    if due > there or size < struct.calcsize(segment):  # dlopen refuses another size
        return due
    file.seek(at)
    table = file.read(size * count)
    for i in range(count):
        words = struct.unpack_from(segment, table, i * size)
        kind, offset, held = (words[0], words[2], words[5]) if wide else (words[0], words[1], words[4])
        if kind == LOAD:
            due = max(due, offset + held)
    return due


def _without_waiting(path: str, flags: int) -> int:
    """Of a pipe open() would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def check_file(path: str) -> None:
    """dlopen's words for a module of another machine are that there is no such file; and it maps what the header says:
    where a file that was cut short ends before, the first access raises SIGBUS."""
    try:
        with open(path, "rb", opener=_without_waiting) as file, open("/proc/self/exe", "rb") as own:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise LoadError(f"{path}: expected a file, found a pipe or a device")
            head, here = file.read(64), own.read(64)
            if head[:4] != b"\x7fELF" or len(head) < 64:
                raise LoadError(f"{path}: not a module of rnncc, it is no shared object (ELF)")
            if _machine(head) != _machine(here):
                raise LoadError(f"{path}: expected a module for {_machine_name(_machine(here))}, found one for "
                                f"{_machine_name(_machine(head))}")
            due = _segments_end(file, head, status.st_size)
            if status.st_size < due:
                raise LoadError(f"{path}: cut short: expected at least {due} bytes, found {status.st_size}")
    except LoadError:
        raise
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror}") from error
    except ValueError as error:  # a NUL in the path
        raise LoadError(f"{path!r}: {error}") from error


_files: Dict[str, List[Tuple[int, int]]] = {}  # those that have been loaded from a path


def _spelled(path: str) -> str:
    """The loader returns what it has loaded under a name, also where another file has replaced that. So each file of a path
    gets a spelling of its own: /folder/m.so, /folder/./m.so, and so on."""
    status = os.stat(path)
    files = _files.setdefault(path, [])
    file = status.st_dev, status.st_ino
    if file not in files:
        files.append(file)
    folder, name = os.path.split(path)
    return os.path.join(folder, "./" * files.index(file) + name)


def _close(handle: int) -> None:
    import _ctypes
    _ctypes.dlclose(handle)


class Library:
    """The file, loaded. `tables`: of its networks."""

    def __init__(self, path: Path):
        self.path = os.path.abspath(os.fspath(path))
        check_file(self.path)
        try:
            self.library = ctypes.CDLL(_spelled(self.path))
        except OSError as error:
            raise LoadError(str(error)) from error
        weakref.finalize(self, _close, self.library._handle).atexit = False
        why = c_char_p()
        try:
            table = abi.query(self.library, why)
        except AttributeError:
            raise LoadError(f"{self.path}: not a module of rnncc, it has no symbol rnncc_module_query") from None
        if table is None:
            raise UnsupportedError(f"{self.path}: {(why.value or b'').decode()}")
        self.tables: List[Any] = abi.networks(table)

    @property
    def names(self) -> List[str]:
        return [table.info.contents.name.decode() for table in self.tables]

    def table(self, network: Optional[str]) -> Any:
        if network is None:
            return self.tables[0]
        if network not in self.names:
            raise ArgumentError(f"the module has no network {network}; it has {', '.join(self.names)}")
        return self.tables[self.names.index(network)]


def _table_with_pools(library: Library, table: Any) -> Any:
    if not abi.has(table, "pool_destroy"):
        raise UnsupportedError(f"{library.path}: expected a module with pools, found one that an older rnncc compiled; "
                               "compile it again")
    return table


class Pool:
    """Threads that models of any files share. thread_start(number): called on each worker when it starts."""

    def __init__(self, library: Library, thread_start: Optional[Callable[[int], None]] = None, **options: Any):
        self.library, api = library, _table_with_pools(library, library.tables[0])
        start = abi.THREAD_START(lambda _host, number: thread_start(number)) if thread_start else None
        if start is not None:
            options["thread_start"] = ctypes.cast(start, c_void_p)
        handle, why = c_void_p(), c_char_p()
        status = api.pool_create(byref(abi.options(**options)), byref(handle), byref(why))
        if status:
            raise of_status(status, (why.value or b"cannot make a pool").decode())
        weakref.finalize(self, _destroy, api.pool_destroy, handle, library).atexit = False
        self.handle: int = handle.value or 0
        self.struct: Any = abi.Pool.from_address(self.handle)


class Model:
    """A model of one network. `pool_of`: a model of the same file, whose workers it has, too. `pool`: of any file's."""

    def __init__(self, library: Library, table: Any, pool_of: Optional["Model"], pool: Optional[Pool] = None,
                 **options: Any):
        self.library, self.api, self.pool_of = library, table, pool_of
        if pool_of is not None:
            if pool_of.library.library._handle != library.library._handle:
                raise ArgumentError(f"pool_of: expected a model of {library.path}, found one of {pool_of.library.path}; "
                                    "an rnncc.Pool is for several files")
            options["pool_of"] = pool_of.handle
        if pool is not None:
            _table_with_pools(library, table)
            options["pool"] = pool.handle
        handle, why = c_void_p(), c_char_p()
        status = self.api.model_create(byref(abi.options(**options)), byref(handle), byref(why))
        if status:
            raise of_status(status, (why.value or b"cannot make a model").decode())
        # The arguments live until the finalizer has run: no model outlives its file, or the one whose workers it has.
        finalizer = weakref.finalize(self, _destroy, self.api.model_destroy, handle, library, pool_of, pool)
        finalizer.atexit = False
        self.handle: int = handle.value or 0


class Context:
    """A context's memory."""

    def __init__(self, model: Model):
        handle = c_void_p()
        status, why = abi.context_create(model.api, model.handle, handle)
        if status:
            raise of_status(status, why)
        self.destroy = weakref.finalize(self, _destroy, model.api.context_destroy, handle, model)
        self.destroy.atexit = False
        self.handle: int = handle.value or 0


def _destroy(function: Any, handle: c_void_p, *_held: Any) -> None:
    function(handle)
