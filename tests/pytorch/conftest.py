# SPDX-License-Identifier: MIT
"""What the tests of PyTorch's exporters share."""
import logging

import pytest

from support import from_torch as program


@pytest.fixture(scope="session")
def from_torch():
    """tools/from_torch, and PyTorch on one thread, silent."""
    import torch
    torch.set_num_threads(1)
    logging.getLogger("torch").setLevel(logging.ERROR)
    return program.load()
