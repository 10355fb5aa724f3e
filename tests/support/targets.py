# SPDX-License-Identifier: MIT
"""How modules run here that this process cannot load: those of another architecture under qemu-user, and of another libc
by a program of that libc."""
from pathlib import Path

from support import machine

# target: (clang's triple, and the folder of its libc; qemu's command)
FOREIGN = {
    "aarch64-linux-gnu": ("aarch64-linux-gnu", ["qemu-aarch64"]),
    "aarch64-linux-gnu+dotprod+fp16+bf16+i8mm": ("aarch64-linux-gnu", ["qemu-aarch64", "-cpu", "max"]),
    **{f"aarch64-linux-gnu+sve{128 * quads}": ("aarch64-linux-gnu", ["qemu-aarch64", "-cpu", f"max,sve-max-vq={quads}"])
       for quads in (1, 2, 4)},
    "riscv64-linux-gnu+rvv256": ("riscv64-linux-gnu", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"]),
    "riscv64-linux-gnu+rvv128": ("riscv64-linux-gnu", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"]),
    "riscv64-linux-gnu": ("riscv64-linux-gnu", ["qemu-riscv64"]),
    "powerpc64le-linux-gnu": ("powerpc64le-linux-gnu", ["qemu-ppc64le"]),
    "arm-linux-gnueabihf": ("arm-linux-gnueabihf", ["qemu-arm"]),
    "i686-linux-gnu": ("i686-linux-gnu", ["qemu-i386"]),
    **{f"{name}-linux-musl": ("x86_64-linux-musl", []) for name in ("x86_64", "x86-64-v2", "x86-64-v3", "x86-64-v4")},
}
FOREIGN |= {target.replace("-gnu", "-musl"): ("aarch64-linux-musl", command)
            for target, (_, command) in FOREIGN.items() if target.startswith("aarch64") and "dotprod" not in target}

# Of vectors of a width that clang is told.
SCALABLE = [target for target in FOREIGN if "+sve" in target and "-gnu" in target or "+rvv" in target]


def is_musl(triple):
    return triple.endswith("-musl")


def need_foreign(target, cpu=None):
    """(triple, the command before a program's name). Skips if qemu or the libc is missing. cpu: one of qemu's instead of
    the usual one."""
    triple, emulator = FOREIGN[target]
    if emulator:
        machine.need_program(emulator[0])
    machine.need_libc(triple)
    if cpu:
        emulator = [emulator[0], "-cpu", cpu]
    return triple, [*emulator, *([] if is_musl(triple) else ["-L", f"/usr/{triple}", *libraries(triple)])]


def libraries(triple):
    """This machine's list of libraries may have libc of x86's 32 bits, too. qemu takes the loader of the cross compiler's libc,
    and of two libcs pthread_create looks for its stacks in the wrong place, for ever."""
    return ["-E", f"LD_LIBRARY_PATH=/usr/{triple}/lib"] if triple.startswith("i686") else []


def program_flags(triple):
    """For clang to make a program of some sources, which stand between the two lists. musl's headers and start files are
    beside those of glibc, which clang would take."""
    flags = [f"--target={triple}", "-fuse-ld=lld"]
    if not is_musl(triple):
        return flags, []
    folder = Path("/usr/lib") / triple
    loader = f"/lib/ld-musl-{triple.partition('-')[0]}.so.1"
    flags += ["-nostdlibinc", "-isystem", f"/usr/include/{triple}", "-nostdlib", "-fPIE", "-pie", f"-Wl,-dynamic-linker,{loader}"]
    flags += ["-mno-outline-atomics"] if triple.startswith("aarch64") else []
    return [*flags, folder / "Scrt1.o", folder / "crti.o"], [f"-L{folder}", "-lc", folder / "crtn.o"]
