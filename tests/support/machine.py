# SPDX-License-Identifier: MIT
"""What this machine has, and the words for what it lacks: a test that needs more is skipped with these words only, so
that tools/tally can count skips by reason.

$RNNCC_CPU_WITHOUT=avx512, avx2 or sse42 says that this CPU counts as one without it and those that need it. rnncc and the C tests read it themselves;
modules that the tests compile check the CPU by a modified runtime (lesser_data), and peers have variables (PEERS).
"""
import contextlib
import functools
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = os.environ.get("RNNCC_CPU_WITHOUT")

# isa: (its name, its flags in /proc/cpuinfo)
SSE42 = {"pni", "ssse3", "cx16", "sse4_1", "sse4_2", "popcnt"}
AVX2 = SSE42 | {"avx2", "fma", "f16c"}
AVX512 = AVX2 | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
ISAS = {"avx512": ("AVX-512", AVX512), "avx2": ("AVX2", AVX2), "sse42": ("SSE4.2", SSE42),
        "neon": ("NEON", {"asimd"}), "sve512": ("SVE of 512 bits", {"sve512"}), "sve256": ("SVE of 256 bits", {"sve256"}),
        "sve128": ("SVE of 128 bits", {"sve128"}), "rvv256": ("RVV 1.0 of 256 bits", {"rvv256"}),
        "rvv128": ("RVV 1.0 of 128 bits", {"rvv128"}), "plain": ("", set())}
ISAS |= {"avx512vnni": ("AVX512-VNNI", AVX512 | {"avx512_vnni"}), "avxvnni": ("AVX-VNNI", AVX2 | {"avx_vnni"})}
ISAS |= {"amx": ("AMX", AVX512 | {"avx512_vnni", "amx_tile", "amx_int8", "amx_bf16"})}
ISAS |= {"avx512bf16": ("AVX512-BF16", AVX512 | {"avx512_bf16"})}
OPTIONS = {"x86-64-v4": {"vnni": "avx512vnni", "bf16": "avx512bf16", "amx": "amx"}, "x86-64-v3": {"vnni": "avxvnni"}}
OF_TARGET = {"x86-64-v4": "avx512", "x86-64-v3": "avx2", "x86-64-v2": "sse42", "x86-64": "plain",
             "aarch64-linux-gnu+sve512": "sve512", "aarch64-linux-gnu+sve256": "sve256",
             "aarch64-linux-gnu": "neon", "aarch64-linux-gnu+sve128": "sve128",
             "riscv64-linux-gnu+rvv256": "rvv256", "riscv64-linux-gnu+rvv128": "rvv128",
             "riscv64-linux-gnu": "plain"}

# What a CPU without it lacks, too.
LACKS = {"avx512": {"avx512", "avx512vnni", "avx512bf16", "amx"}}
LACKS["avx2"] = LACKS["avx512"] | {"avx2", "avxvnni"}
LACKS["sse42"] = LACKS["avx2"] | {"sse42"}
MASKS = {"avx512": "CPU_AVX512", "avx2": "(CPU_AVX512 | CPU_AVX2)", "sse42": "(CPU_AVX512 | CPU_AVX2 | CPU_SSE42)"}

# Variables by which NumPy and PyTorch do not use it. ONNX Runtime has none.
PEERS = {
    "avx512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "ATEN_CPU_CAPABILITY": "avx2",
               "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "avx2": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR", "ATEN_CPU_CAPABILITY": "default",
             "ONEDNN_MAX_CPU_ISA": "SSE41"},
}
PEERS["sse42"] = PEERS["avx2"]  # which is as little as they take


@functools.cache
def cpu_flags():
    text = Path("/proc/cpuinfo").read_text()
    return {flag for line in text.splitlines() if line.startswith(("flags", "Features")) for flag in line.split()}


def has_isa(isa):
    return ISAS[isa][1] <= cpu_flags() and isa not in LACKS.get(WITHOUT, ())


# Of the targets that tests name, the one with the widest vectors that this CPU has.
WIDEST = next((target for target, isa in OF_TARGET.items() if has_isa(isa)), None)


def peers_saturate():
    """Whether sums of two products of u8 and s8 saturate 16 bits in ONNX Runtime, as they do where no instruction adds four."""
    return not cpu_flags() & {"avx512_vnni", "avx_vnni", "asimddp"}


def need_isa(isa):
    if not has_isa(isa):
        pytest.skip(f"this CPU has no {ISAS[isa][0]}")


def lacking_of(target):
    """The first instruction set that this CPU lacks to run modules for a target such as x86-64-v4+vnni; None: it has all."""
    row, *features = target.replace("-linux-musl", "").split("+")
    return next((isa for isa in (OF_TARGET[row], *(OPTIONS[row][name] for name in features)) if not has_isa(isa)), None)


def lacking_isa(option):
    """What this CPU lacks to run modules made with this option: --target=x86-64-v4 on a CPU without AVX-512, or none of several.
    None: nothing. Modules for other architectures run under QEMU."""
    name, _, targets = option.partition("=")
    if name != "--target" or not targets.startswith("x86-64"):
        return None
    lacking = [lacking_of(target) for target in targets.split(",")]
    return None if None in lacking else lacking[-1]


def need_target(option):
    """Skips if this CPU cannot run modules made with this option."""
    isa = lacking_isa(option)
    if isa:
        need_isa(isa)


def need_program(name):
    if not shutil.which(name):
        pytest.skip(f"not installed: {name}")


def need_libc(triple):
    """What Debian's libc6-dev-*-cross or musl-dev installs."""
    if not any((Path("/usr") / folder / "stdint.h").exists() for folder in (f"{triple}/include", f"include/{triple}")):
        pytest.skip(f"not installed: the libc of {triple}")


@functools.cache
def own_mounts():
    """What precedes a command that may mount file systems, which nobody else sees; None: this machine has no such thing."""
    ways = [["unshare", "--mount", *more] for more in ([], ["--user", "--map-root-user"])]
    return next((way for way in ways if subprocess.run([*way, "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True).returncode == 0), None)


def need_own_mounts():
    if not own_mounts():
        pytest.skip("this machine lets nobody mount")
    return own_mounts()


@contextlib.contextmanager
def need_quota(microseconds, of):
    """A control group that may run so long in each such period: the file that a process writes its number to, to join."""
    for parent, limits in ((Path("/sys/fs/cgroup"), {"cpu.max": f"{microseconds} {of}"}),
                           (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_period_us": f"{of}", "cpu.cfs_quota_us": f"{microseconds}"})):
        group = parent / f"rnncc-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if all((group / name).exists() for name in limits):
                for name, text in limits.items():
                    (group / name).write_text(text)
                yield group / "cgroup.procs"
                return
        finally:
            group.rmdir()
    pytest.skip("this machine lets nobody make control groups")


def need_package(name):
    """For all tests of the file that calls this."""
    if not importlib.util.find_spec(name):
        pytest.skip(f"not installed: {name}", allow_module_level=True)


def changed_data(folder, before, after):
    """Makes `folder` a data directory ($RNNCC_DATA) like rnncc's own, but for some text of the runtime's cpu.c."""
    for name in ("templates", "schedules"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "runtime").mkdir()
    for path in (ROOT / "runtime").iterdir():
        (folder / "runtime" / path.name).symlink_to(path)
    found = (ROOT / "runtime" / "cpu.c").read_text()
    assert before in found
    (folder / "runtime" / "cpu.c").unlink()
    (folder / "runtime" / "cpu.c").write_text(found.replace(before, after))
    return folder


def lesser_data(folder, without):
    """The same with a cpu.c that finds a CPU without that feature. So a module refuses this machine as it would refuse
    such a machine."""
    name = "uint32_t cpu_features(void)"
    lesser = f"static uint32_t all_cpu_features(void);\n{name} {{ return all_cpu_features() & ~(uint32_t){MASKS[without]}; }}\n"
    return changed_data(folder, name, f"{lesser}static uint32_t all_cpu_features(void)")
