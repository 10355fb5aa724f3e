# SPDX-License-Identifier: MIT
"""Exports of PyTorch, which leave something behind."""
import functools
import gc
import io
import os
import traceback
import warnings


@functools.cache
def warm():
    """An export whose axes are all constants: what exporters import and compute once, 5 s of it, forks have then."""
    import torch  # not every venv has it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(torch.nn.ReLU(), (torch.zeros(1),), io.BytesIO(), dynamo=True, verbose=False)
    gc.collect()
    gc.freeze()  # a fork that looks for garbage would copy all of it


def apart(function, *arguments):
    """In a process of its own: after some exports PyTorch takes run-time axes of later ones for constants."""
    warm()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
