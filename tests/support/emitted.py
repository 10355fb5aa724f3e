# SPDX-License-Identifier: MIT
"""Runs a compiled model at several thread counts, which must agree bit for bit."""
import numpy

from support import machine
from support.module import Module, ModuleError

TARGETS = ["x86-64-v4", "x86-64-v3", "x86-64"]
THREADS = (1, 2, 3, 8)


def run_module(path, feeds, threads=THREADS):
    """Outputs by name. Skips if the module needs a feature that this CPU lacks."""
    try:
        with Module(path) as module:
            first = None
            for count in threads:
                context = module.context(count)
                outputs = context.run(feeds)
                context.close()
                first = first or outputs
                for name, array in outputs.items():
                    assert array.tobytes() == first[name].tobytes(), f"{name} differs at {count} threads"
            return first
    except ModuleError as error:
        for isa, (name, _) in machine.ISAS.items():
            if f"this module needs {name} " in str(error):
                machine.need_isa(isa)
        raise


def assert_same(got, expected):
    """Bit for bit except for NaN's payload and the sign of zero."""
    assert expected, "nothing is compared"
    for name, array in expected.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        numpy.testing.assert_array_equal(got[name], array, err_msg=name)


def run_by(rnnrun, module, feeds, outputs, folder, threads=2):
    """The same by rnnrun, of another architecture or libc. outputs: names; of ml_dtypes, whose types are raw bytes in files,
    name -> an array of the type."""
    words = []
    for k, (name, array) in enumerate(feeds.items()):
        numpy.save(folder / f"in{k}.npy", array)
        words += ["--input", f"{name}=@{folder}/in{k}.npy"]
    for k, name in enumerate(outputs):
        words += ["--output", f"{name}=@{folder}/out{k}.npy"]
    done = rnnrun("run", module, "--threads", threads, *words)
    assert done.returncode == 0, done.stderr
    loaded = {name: numpy.load(folder / f"out{k}.npy") for k, name in enumerate(outputs)}
    return {name: array.view(outputs[name].dtype) if array.dtype.kind == "V" else array
            for name, array in loaded.items()}
