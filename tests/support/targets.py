# SPDX-License-Identifier: MIT
"""How modules of each target run here: on this CPU, or, of another architecture, under qemu-user."""
from pathlib import Path

from support import machine

# target: (clang's triple and the folder of the cross libc, qemu's command)
EMULATED = {
    "aarch64-linux-gnu": ("aarch64-linux-gnu", ["qemu-aarch64"]),
    "aarch64-linux-gnu+dotprod+fp16+bf16+i8mm": ("aarch64-linux-gnu", ["qemu-aarch64", "-cpu", "max"]),
    "riscv64-linux-gnu+rvv256": ("riscv64-linux-gnu", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"]),
    "riscv64-linux-gnu+rvv128": ("riscv64-linux-gnu", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"]),
    "riscv64-linux-gnu": ("riscv64-linux-gnu", ["qemu-riscv64"]),
}


def sysroot(triple):
    return Path("/usr") / triple


def need_emulator(target, cpu=None):
    """Skips if qemu or the cross libc is missing. cpu: one of qemu's instead of the usual one."""
    triple, emulator = EMULATED[target]
    machine.need_program(emulator[0])
    machine.need_sysroot(triple)
    return triple, [*(emulator[:1] + ["-cpu", cpu] if cpu else emulator), "-L", sysroot(triple)]
