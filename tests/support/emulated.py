# SPDX-License-Identifier: MIT
"""Runs a module for aarch64 under qemu-user, by way of rnnrun."""
import numpy

TARGET = "--target=aarch64-linux-gnu"


def run_emulated(aarch64_rnnrun, path, feeds, outputs, folder):
    """aarch64_rnnrun: conftest's fixture. Returns the named outputs; files are written to `folder`."""
    arguments = []
    for name, array in feeds.items():
        numpy.save(folder / f"{name}.npy", array)
        arguments += ["--input", f"{name}=@{folder}/{name}.npy"]
    for name in outputs:
        arguments += ["--output", f"{name}=@{folder}/{name}.npy"]
    done = aarch64_rnnrun("run", path, "--threads", 2, *arguments)
    assert done.returncode == 0, done.stderr
    return {name: numpy.load(folder / f"{name}.npy") for name in outputs}
