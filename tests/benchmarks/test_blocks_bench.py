# SPDX-License-Identifier: MIT
"""tools/bench blocks: its command line, its blocks and its page."""
import sys

import numpy
import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import blocks_run, turns  # noqa: E402
from benchmarks.environment import Missing  # noqa: E402


def test_the_blocks_are_listed():
    assert listed("blocks") == [*blocks_run.CASES]
    assert listed("blocks", "additive*") == ["additive_step", "additive_text"]


@pytest.mark.parametrize("words, told", [(["heads"], "heads"), (["--without", "openvino"], "openvino"), (["--threads", "0"], "0")])
def test_what_is_not_there_is_refused(words, told):
    assert_refused("blocks", *words, told=told)


def test_the_page_compares_with_the_unfused_graph_and_peers():
    times = {"rnncc": 3.0, "unfused": 6.0, "onnxruntime": 12.0}
    page = blocks_run.page([blocks_run.Row("attention_sum", times, {"unfused": 0.5, "onnxruntime": 0.25})], 1, "a machine", {"ONNX Runtime": "1"})
    assert "10 candidates | 3.00 | 6.00 | 12.00 | 0.50 | 0.25 |" in page and "a machine, 1 threads" in page
    assert f"--without={blocks_run.STEPS}" in page


def test_a_block_is_the_same_with_and_without_the_steps(compile, tmp_path):
    """Of a block that needs no PyTorch."""
    from support.module import Module
    net = blocks_run.Network("attention_sum")
    output = blocks_run.CASES["attention_sum"].build(net)[0]
    net.model.output(output)
    path, found = net.model.write(tmp_path), []
    for options in ([], [f"--without={blocks_run.STEPS}"]):
        with Module(compile(path, *options)) as module, module.context(1) as context:
            found.append(context.run(net.feeds)[output].copy())
    assert numpy.allclose(*found, rtol=0, atol=1e-5) and found[0].any()


class Fixed:
    def __init__(self, *numbers):
        self.numbers = numbers

    def run(self):
        return {"y": numpy.array(self.numbers)}


def test_results_that_differ_from_rnnccs_are_told():
    same = {"rnncc": Fixed(0.5, -2.0), "torch": Fixed(0.5001, -2.0)}
    turns.check_equal("heads_step", same)
    with pytest.raises(Missing, match="onnxruntime computes something else in heads_step than rnncc"):
        turns.check_equal("heads_step", same | {"onnxruntime": Fixed(0.5003, -2.0)})
