# SPDX-License-Identifier: MIT
"""Compiled models compared with ONNX Runtime, with several thread counts, which must give the same bits."""
import numpy

from support.module import Module

THREADS = (1, 2, 3, 8)


def assert_same(name, got, expected, tolerance):
    if expected.shape == (0,) and got.size == 0:
        got = got.reshape(0)  # ONNX Runtime does not know a slice's shape if a loop has not run
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), f"{name}: {got.shape}, not {expected.shape}"
    if tolerance and got.dtype.kind == "f" and got.size:
        bound = tolerance * max(1.0, float(numpy.abs(expected).max()))
        numpy.testing.assert_allclose(got, expected, rtol=0, atol=bound, err_msg=name)
    else:
        numpy.testing.assert_array_equal(got, expected, err_msg=name)


def same_at_all_threads(compile, model, folder, feeds, threads=THREADS, tolerance=0, options=()):
    """feeds: one dictionary for each run. tolerance: relative to the largest result; 0: exact."""
    module_path = compile(model.write(folder), *options)
    expected = [model.onnx_run(feed) for feed in feeds]
    first = None
    with Module(module_path) as module:
        for count in threads:
            with module.context(count) as context:
                got = [context.run(feed) for feed in feeds]
            for run, (own, peer) in enumerate(zip(got, expected, strict=True)):
                for name in model.outputs:
                    assert_same(f"{name} of run {run} on {count} threads", own[name], peer[name], tolerance)
                    if first:
                        assert own[name].tobytes() == first[run][name].tobytes(), f"{name}: {count} threads"
            first = first or got
