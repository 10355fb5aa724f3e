# SPDX-License-Identifier: MIT
"""The networks of DeepCPU, which read text: modules compute what PyTorch programs of their own do, of any number of texts,
and the same bits on any number of threads."""
import sys

import numpy
import pytest

from support import machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402

sys.path.insert(0, str(machine.ROOT / "models"))
from networks import READERS  # noqa: E402
from networks.readers_torch import torch_reader  # noqa: E402

BOUND = 2e-5  # relative to the largest value: a hundred steps of two layers


def expected(name, net, feeds):
    """By PyTorch on one thread."""
    torch.set_num_threads(1)
    with torch.inference_mode():
        results = torch_reader(name, net)(*(torch.from_numpy(array) for array in feeds.values()))
    return [part.numpy() for part in (results if isinstance(results, tuple) else (results,))]


def check(name, net, module, **dims):
    feeds = net.feeds(len(dims), **dims)
    with module.context(1) as context:
        alone = {output: array.copy() for output, array in context.run(feeds).items()}
    for got, wanted in zip(alone.values(), expected(name, net, feeds), strict=True):
        varied = wanted.size == 1 or wanted.std() > 0.1 * abs(wanted).max()
        assert varied, "a result that is nearly the same everywhere shows nothing"
        assert abs(got - wanted).max() <= BOUND * abs(wanted).max()
    with module.context(2) as context:
        assert all(numpy.array_equal(array, alone[output]) for output, array in context.run(feeds).items())


@pytest.mark.optimised
@pytest.mark.parametrize("name", READERS)
def test_a_network_computes_what_its_pytorch_program_does(name, compile, tmp_path):
    net = READERS[name]()
    with Module(compile(net.write(tmp_path))) as module:
        check(name, net, module)


@pytest.mark.parametrize("name, dim", [("text_similarity", "D"), ("attention_sum_reader", "N")])
def test_any_number_of_texts(name, dim, compile, tmp_path):
    net = READERS[name](batch=9)
    with Module(compile(net.write(tmp_path))) as module:
        for number in (1, 2, 8, 9):
            check(name, net, module, **{dim: number})
