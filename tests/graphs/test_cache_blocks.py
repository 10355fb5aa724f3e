# SPDX-License-Identifier: MIT
"""TensorScatter, which writes a block of keys into a cache, where only the run knows how long block and cache are: the
results of ONNX Runtime at all lengths; a block that does not fit fails, or is refused."""
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from support.module import Module

F32 = TensorProto.FLOAT
LONGEST = 7


def model_of(path, mode):
    """A cache [B, C, 2] and a block [B, S, 2] from `first` on."""
    inputs = [helper.make_tensor_value_info("cache", F32, ["B", "C", 2]), helper.make_tensor_value_info("block", F32, ["B", "S", 2]),
              helper.make_tensor_value_info("first", TensorProto.INT64, ["B"])]
    node = helper.make_node("TensorScatter", ["cache", "block", "first"], ["y"], axis=1, mode=mode)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", F32, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11), path)
    return path


def feed_of(rng, room, length, first):
    return {"cache": rng.random((2, room, 2), np.float32), "block": rng.random((2, length, 2), np.float32),
            "first": np.array(first, np.int64)}


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_blocks_of_any_length_equal_onnx_runtime(compile, tmp_path, mode):
    model, rng = model_of(tmp_path / "m.onnx", mode), np.random.default_rng(3)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with Module(compile(model, "--dim=B=1..2", f"--dim=S=1..{LONGEST}", f"--dim=C={LONGEST}..{LONGEST + 2}")) as module, \
            module.context() as context:
        for room in range(LONGEST, LONGEST + 3):
            for length in range(1, LONGEST + 1):
                last = room - 1 if mode == "circular" else room - length
                feed = feed_of(rng, room, length, rng.integers(0, last + 1, 2))
                np.testing.assert_array_equal(context.run(feed)["y"], session.run(None, feed)[0])


def test_a_block_that_passes_the_end_fails_in_the_run(compile, tmp_path):
    model, rng = model_of(tmp_path / "m.onnx", "linear"), np.random.default_rng(4)
    with Module(compile(model, "--dim=B=1..2", "--dim=S=1..9", "--dim=C=1..6")) as module, module.context() as context:
        context.run(feed_of(rng, 6, 6, [0, 0]))
        for length, first in ((4, [0, 3]), (7, [0, 0])):
            with pytest.raises(Exception, match="value"):
                context.run(feed_of(rng, 6, length, first))


def test_a_block_that_may_be_longer_than_a_ring_is_refused(rnncc, tmp_path):
    done = rnncc(model_of(tmp_path / "m.onnx", "circular"), "-o", tmp_path / "m.so", "--dim=B=1..2", "--dim=S=1..9", "--dim=C=8..9")
    assert done.returncode == 3 and "may be longer than the circular cache" in done.stderr and "bounds (--dim) of S" in done.stderr
