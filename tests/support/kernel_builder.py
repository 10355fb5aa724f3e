# SPDX-License-Identifier: MIT
"""Builds test programs from templates with their knobs set, for every instruction set, and runs them.

The knobs are set in the text; the specialiser sets them by the syntax tree. So kernels are tested without it.
"""
import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path

from support import machine
from support.amount import half, long_tests
from support.clang import WITHOUT_PASSES, clang_name, clang_version

ROOT = Path(__file__).resolve().parents[2]

# name: (the vocabulary's macro, clang's options, emulator)
ISAS = {
    "avx512": ("SIMD_AVX512", ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma"], []),
    "avx2": ("SIMD_AVX2", ["-mavx2", "-mfma", "-mf16c"], []),
    "plain": ("SIMD_PLAIN", [], []),
    "neon": ("SIMD_NEON", ["--target=aarch64-linux-gnu"], ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
}
LANES = {"avx512": 16, "avx2": 8, "plain": 4, "neon": 4}
for bits in (128, 256, 512):
    ISAS[f"sve{bits}"] = (f"SIMD_SVE{bits}", ["--target=aarch64-linux-gnu", "-march=armv8.2-a+sve", f"-msve-vector-bits={bits}"],
                          ["qemu-aarch64", "-cpu", f"max,sve-max-vq={bits // 128}", "-L", "/usr/aarch64-linux-gnu"])
for bits in (128, 256):
    ISAS[f"rvv{bits}"] = (f"SIMD_RVV{bits}", ["--target=riscv64-linux-gnu", f"-march=rv64gcv_zvl{bits}b", "-mrvv-vector-bits=zvl"],
                          ["qemu-riscv64", "-cpu", f"rv64,v=true,vext_spec=v1.0,vlen={bits}", "-L", "/usr/riscv64-linux-gnu"])
SCALABLE = [isa for isa in ISAS if isa.startswith(("sve", "rvv"))]  # vectors of a width that clang is told
LANES |= {isa: int(isa[3:]) // 32 for isa in SCALABLE}


def set_knobs(text, knobs):
    """The template's text with `NAME = value` of its knob enums, or the type of its typedefs, replaced."""
    for name, value in knobs.items():
        pattern = rf"(typedef )\w+( {name};)" if isinstance(value, str) else rf"(enum {{ {name} = )-?\w+( }};)"
        text, count = re.subn(pattern, rf"\g<1>{value}\g<2>", text)
        assert count == 1, f"no knob {name}"
    return text


def with_parts(text):
    """A template's text with that of its parts (templates/parts) in place."""
    return re.sub(r'#include "(parts/\w+\.h)"\n', lambda found: (ROOT / "templates" / found[1]).read_text(), text)


def template(name, **knobs):
    return set_knobs(with_parts((ROOT / "templates" / f"{name}.c").read_text()), knobs)


def emulator(isa):
    """The command that runs programs of `isa` here; skips the test if there is none."""
    prefix = ISAS[isa][2]
    if isa == "neon" and platform.machine() == "aarch64":
        return []
    if prefix:
        machine.need_program(prefix[0])
        machine.need_libc(Path(prefix[-1]).name)
    else:
        machine.need_isa(isa)
    return prefix


def precompiled(flags):
    """The header of the ISA's intrinsics for clang with these flags, which all sources of a program include."""
    header, cache = ROOT / "tests" / "support" / "intrinsics.h", Path(os.environ["RNNCC_CLANG_CACHE"])
    key = hashlib.sha256(repr((clang_version(), flags, header.read_text())).encode()).hexdigest()[:24]
    kept, made = cache / f"intrinsics-{key}.pch", cache / f"intrinsics-{key}.{os.getpid()}"
    if not kept.exists():
        subprocess.run([*flags, "-Xclang", "-fno-pch-timestamp", "-x", "c-header", header, "-o", made], check=True)
        made.rename(kept)
    os.utime(kept)
    return ["-include-pch", str(kept)]


def is_emulated(isa):
    return bool(ISAS[isa][2])


def isas(*scalable):
    """What a test runs on: of SVE and RVV, by default, on the widths named."""
    return [isa for isa in ISAS if long_tests() or isa not in SCALABLE or isa in scalable]


def share_of(cases, isa):
    """By default each case is tested on AVX-512 or AVX2, if the CPU has one of them, and half of them on plain C or NEON. Each
    width of SVE and RVV has a few cases of its own, in long tests each case a width of SVE and one of RVV: the kernels are
    the same text, and emulated vectors take minutes."""
    if isa in SCALABLE and not long_tests():
        return cases[SCALABLE.index(isa)::2 * len(SCALABLE)]
    if isa in SCALABLE:
        widths = [name for name in SCALABLE if name[:3] == isa[:3]]
        return cases[widths.index(isa)::len(widths)]
    alone = isa == "avx2" and not machine.has_isa("avx512")
    if isa in ("plain", "neon") and not long_tests():
        return cases[2 if isa == "plain" else 1::4]
    return cases if alone else half(cases, list(ISAS).index(isa))


def optimising(isa, optimised):
    """clang's options: by default it optimises a little for the widest vectors of this CPU and for RVV, whose lengths qemu
    is slow to set for each operation, and else not at all."""
    if optimised or long_tests():
        return ["-O2"]
    some_passes = isa.startswith("rvv") or isa == machine.OF_TARGET.get(machine.WIDEST)
    return ["-O1"] if some_passes else WITHOUT_PASSES.split()


def build(directory, isa, sources, optimised=False):
    """Compiles {file name: C text, or a path of the repository} into one program for `isa`. optimised: clang vectorises
    loops, too; in long tests it always does."""
    macro, options, _ = ISAS[isa]
    paths = []
    for name, text in sources.items():
        path = ROOT / name
        if text is not None:
            path = directory / name
            path.write_text(text)
        paths.append(path)
    includes = [f"-I{ROOT / folder}" for folder in ("templates", "runtime", "compiler", "tests/kernels")]
    program = directory / f"program_{isa}"
    flags = [clang_name(), "-std=gnu11", *optimising(isa, optimised), "-Wall", "-Wno-unused-function", "-Werror", "-D_GNU_SOURCE",
             f"-D{macro}", *options]
    command = [*flags, *precompiled(flags), *includes, *map(str, paths), "-o", str(program), "-lm", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run(program, isa, *arguments, timeout=300):
    return subprocess.run([*emulator(isa), str(program), *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout)
