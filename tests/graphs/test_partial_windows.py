# SPDX-License-Identifier: MIT
"""With ceil_mode, a pool's only window may reach beyond the padded input: its elements outside count for nothing, as in
ONNX Runtime. Inputs are small integers, so that sums are exact."""
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

TARGETS = ["native", "x86-64", "aarch64-linux-gnu"]
CASES = {
    "wider than the image": ((3, 3), dict(kernel_shape=[5, 5], strides=[3, 3])),
    "on one axis": ((2, 7), dict(kernel_shape=[4, 3], strides=[3, 2])),
    "dilated": ((4, 4), dict(kernel_shape=[3, 3], dilations=[2, 2], strides=[2, 2])),
    "padded on both sides": ((2, 3), dict(kernel_shape=[5, 6], strides=[4, 4], pads=[1, 0, 0, 1])),
    "of one element": ((1, 1), dict(kernel_shape=[2, 2], strides=[2, 2])),
    "a row": ((4,), dict(kernel_shape=[6], strides=[3])),
    "a volume": ((2, 3, 4), dict(kernel_shape=[4, 4, 4], strides=[3, 2, 2])),
}
POOLS = {"MaxPool": {}, "AveragePool": {}, "AveragePool with pads": dict(count_include_pad=1)}


def model_of(path, op, extents, attributes, channels):
    shape = [2, channels, *extents]
    node = helper.make_node(op, ["x"], ["y"], ceil_mode=1, **attributes)
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "pool", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return shape


@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_window_beyond_the_input_pools_what_is_there(target, name, pool, channels, run_for, tmp_path):
    extents, attributes = CASES[name]
    model = tmp_path / "pool.onnx"
    shape = model_of(model, pool.split()[0], extents, {**attributes, **POOLS[pool]}, channels)
    x = np.random.default_rng(2).integers(-9, 10, shape).astype(np.float32)
    (y,) = run_for(target, model, {"x": x}, ["y"]).values()
    (peer,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert y.shape == peer.shape and np.allclose(y, peer, rtol=1e-6, atol=0), (y, peer)


def test_a_whole_stride_beyond_is_refused(rnncc, tmp_path):
    model_of(tmp_path / "pool.onnx", "MaxPool", (3, 3), dict(kernel_shape=[6, 6], strides=[3, 3]), 3)
    done = rnncc(tmp_path / "pool.onnx", "-o", tmp_path / "pool.so")
    assert done.returncode == 2 and "the kernel reaches over 6 on spatial axis 0, but the padded input has only 3" in done.stderr
