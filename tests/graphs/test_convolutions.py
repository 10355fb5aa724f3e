# SPDX-License-Identifier: MIT
"""Convolutions of every kind, and networks of them, against the reference interpreter, which adds in double precision:
on whole numbers every bit must agree, at any number of threads (support/emitted.py). Winograd's algorithm rounds; its
own tests are kernels/test_conv_winograd*.py."""
import numpy
import pytest

from conftest import build_directory
from support.convolutional import RandomNetwork, random_convolution
from support.emitted import TARGETS, assert_same, run_module
from support.merge import merged
from support.reference import Reference

CASES_IN_A_MODULE = 25
CONVOLUTIONS = {"x86-64-v4": 600, "x86-64-v3": 300, "x86-64": 100}
NETWORKS = 12
OPS = 9


@pytest.fixture(scope="session")
def reference():
    return Reference(build_directory() / "tests" / "support" / "reference_run")


@pytest.mark.parametrize("target,batch", [(target, batch) for target in TARGETS
                                          for batch in range(CONVOLUTIONS[target] // CASES_IN_A_MODULE)])
def test_random_convolutions_equal_the_reference(reference, compile, tmp_path, target, batch):
    rng = numpy.random.default_rng([batch, TARGETS.index(target)])
    model, feeds = merged([random_convolution(rng) for _ in range(CASES_IN_A_MODULE)])
    path = model.write(tmp_path)
    expected = reference.run(model, path, feeds)
    assert_same(run_module(compile(path, f"--target={target}", "--no-winograd"), feeds), expected)


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("seed", range(NETWORKS))
def test_random_networks_equal_the_reference(reference, compile, tmp_path, target, seed):
    rng = numpy.random.default_rng([seed, 7])
    network = RandomNetwork(rng).grow(OPS)
    model = network.finish()
    path = model.write(tmp_path)
    module = compile(path, f"--target={target}", "--verify-each", "--no-winograd")
    for batch in (1, 3):
        feeds = network.feeds(batch)
        assert_same(run_module(module, feeds), reference.run(model, path, feeds))
