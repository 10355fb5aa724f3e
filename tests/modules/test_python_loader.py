# SPDX-License-Identifier: MIT
"""tests/support/module.py reads the ABI as C does: checked on the module written by hand. It runs modules on tensors between
forbidden pages."""
import ctypes
import faulthandler
import os
import signal

import numpy as np
import pytest

from conftest import build_directory
from support.guarded import guarded
from support.module import Module, ModuleError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.array([5, -7], dtype=np.int64)


@pytest.fixture
def module():
    with Module(build_directory() / "tests" / "modules" / "fake_module.so") as module:
        yield module


def test_the_interface_is_read(module):
    assert module.dims == {"T": (1, 4, 8)}
    assert [(i.name, i.dtype, i.shape, i.max_shape) for i in module.inputs] == [
        ("x", np.float32, (-1, 3), (8, 3)), ("k", np.int64, (2,), (2,))]
    assert [o.name for o in module.outputs] == ["y", "z"]
    assert [(s.name, s.max_shape) for s in module.states] == [("s", (1,))] and module.slots == [1]


def test_run_returns_arrays_of_the_run_time_shape(module):
    with module.context() as context:
        outputs = context.run({"x": X, "k": K})
        assert np.array_equal(outputs["y"], 2 * X) and np.array_equal(outputs["z"], K + 1)
        assert np.array_equal(context.run({"x": X[:1], "k": K})["y"], 2 * X[:1] + 1)


def test_an_error_carries_status_and_message(module):
    with module.context() as context, pytest.raises(ModuleError, match="^input k: 99 at .0. is out of range$") as refused:
        context.run({"x": X, "k": np.array([99, 0])})
    assert refused.value.status == "value"


@pytest.mark.parametrize("at_end, beyond", [(True, 5), (False, -1)])
def test_an_access_beyond_a_tensor_ends_the_process(at_end, beyond):
    """As of each tensor that a module is run on."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        array = guarded((5,), np.float32, at_end)
        assert array.tolist() == [0] * 5
        ctypes.c_float.from_address(array.ctypes.data + 4 * beyond).value
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
