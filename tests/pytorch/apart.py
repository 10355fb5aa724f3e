# SPDX-License-Identifier: MIT
"""Exports of PyTorch, which leave something behind."""
import os
import traceback


def apart(function, *arguments):
    """In a process of its own: after some exports PyTorch takes run-time axes of later ones for constants."""
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
