# SPDX-License-Identifier: MIT
"""The instruction sets that tools/bench compares on. On a CPU that has a wider one, peers are held to that of rnncc's
modules.

libc, NumPy, oneDNN (of OpenVINO and PyTorch), PyTorch and MKL read variables. ONNX Runtime, ncnn, and OpenVINO beside
oneDNN, read none: they ask the CPU which instructions it has, and by xgetbv which registers the system saves, because
the others cannot be used. They get copies of their packages in which that question is an answer: AVX's. AVX-VNNI, which
AVX2's CPUs do not have, needs no wider registers: the copies do not see its bit. Whether all obey, the kernel says: it keeps the time at which a thread last had something in AVX-512's registers.
"""
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Held:
    """How contestants are held to it."""
    peers: dict  # variables of theirs
    others: dict  # of NumPy and libc
    saved: int   # what xgetbv returns: the bits of registers that the system saves


@dataclass(frozen=True)
class Isa:
    title: str
    target: str  # of rnncc
    held: Held | None = None
    speeds: str | None = None  # the name of its vectors in speed.h, if another


# By their names in speed.h. AMX counts where numbers are small.
ISAS = {
    "amx": Isa("AVX-512 with AMX", "x86-64-v4+vnni+amx", speeds="avx512"),
    "avx512": Isa("AVX-512", "x86-64-v4"),
    "avx2": Isa("AVX2", "x86-64-v3", Held(
        {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
        {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
         "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"}, 0x07)),
    "plain": Isa("SSE2", "x86-64"),
    "neon": Isa("NEON", "aarch64-linux-gnu"),
}
OF_TARGET = {isa.target: name for name, isa in ISAS.items() if not isa.speeds}


def speeds_of(name):
    return name in ISAS and ISAS[name].speeds or name


def of_file(name, isa):
    """RESULTS.md -> RESULTS.avx2.md: there is a page for each instruction set."""
    return ".".join([Path(name).stem, isa, Path(name).suffix[1:]])


# Copies of packages that take the CPU for a lesser one

# Peer -> folders of its package.
COPIED = {"onnxruntime": ("onnxruntime",), "openvino": ("openvino",), "ncnn": ("ncnn", "ncnn.libs")}
# xgetbv. Its bytes also occur inside of other instructions; here ecx has just become 0, or the result's halves are joined.
XGETBV = re.compile(rb"(?<=\x31\xc9)\x0f\x01\xd0|(?<=\x89\xf1)\x0f\x01\xd0|\x0f\x01\xd0(?=\x89\xc0\x48\xc1\xe2\x20)")


# cpuid, then test al, 0x10: after leaf 7, subleaf 1, that is AVX-VNNI's bit.
AVX_VNNI = re.compile(rb"\x0f\xa2\xa8\x10")
NO_BIT = b"\x0f\xa2\xa8\x00"


def answer(saved):
    """push saved; pop rax: as many bytes."""
    return bytes([0x6a, saved, 0x58])


def copy_library(path, to, saved):
    """A link if there is nothing to change."""
    changed, count = XGETBV.subn(answer(saved), path.read_bytes())
    changed, others = AVX_VNNI.subn(NO_BIT, changed)
    if count + others:
        to.write_bytes(changed)
    else:
        to.symlink_to(path)


def copy_package(source, to, saved):
    for path in source.rglob("*"):
        copy = to / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(parents=True)
        elif ".so" in path.suffixes:
            copy_library(path, copy, saved)
        else:
            copy.symlink_to(path)


def copy_packages(peers, site, folder, saved):
    """Copies those packages of `site`, where packages are installed, that need it. Python finds them in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    for package in {package for peer in peers for package in COPIED.get(peer.split("_")[0], ())}:
        (folder / package).mkdir(parents=True)
        copy_package(site / package, folder / package, saved)


# What the kernel says

TASKS = Path("/proc/self/task")
TICK = 0.02  # seconds: more than the kernel's clock needs to move on
STATUS = re.compile(r"^AVX512_elapsed_ms:\s*(-?\d+)$", re.MULTILINE)


def idle_seconds():
    """Since a thread of this process was last seen with something in AVX-512's registers; None if the kernel does not
    say. A thread that never was is left out."""
    found = [STATUS.search(path.read_text()) for path in TASKS.glob("*/arch_status")]
    if not all(found) or not found:
        return None
    return min((int(each[1]) / 1e3 for each in found if int(each[1]) >= 0), default=float("inf"))


def uses_avx512(run, pause):
    """Whether run() used AVX-512's registers; None if the kernel does not say. A thread is looked at when it stops to
    run: that takes at most `pause` seconds."""
    time.sleep(TICK)
    began = time.monotonic()
    run()
    time.sleep(pause)
    idle = idle_seconds()
    return None if idle is None else idle < time.monotonic() - began
