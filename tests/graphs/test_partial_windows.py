# SPDX-License-Identifier: MIT
"""A pool's only window may reach beyond the padded input: its elements outside count for nothing, as in ONNX Runtime, and
where a whole stride of it is missing the result is empty. Inputs are small integers, so that sums are exact."""
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
ROUNDED_DOWN = {
    "wider than the image": ((3, 3), dict(kernel_shape=[5, 5], strides=[3, 3])),
    "dilated": ((4, 4), dict(kernel_shape=[3, 3], dilations=[2, 2], strides=[2, 2])),
    "dilated and padded": ((2, 5), dict(kernel_shape=[3, 2], dilations=[2, 4], strides=[3, 1], pads=[1, 0, 0, 0])),
    "of one element": ((1, 1), dict(kernel_shape=[2, 3], strides=[2, 3])),
    "a row": ((4,), dict(kernel_shape=[6], strides=[3])),
    "a volume": ((2, 3, 4), dict(kernel_shape=[4, 4, 4], strides=[3, 2, 2])),
    "none in a row": ((3,), dict(kernel_shape=[4])),
    "none, dilated": ((3, 8), dict(kernel_shape=[3, 3], dilations=[2, 1], strides=[2, 2])),
}
POOLS = {"MaxPool": {}, "AveragePool": {}, "AveragePool with pads": dict(count_include_pad=1), "LpPool": dict(p=2)}


def write(path, pools):
    """A model of pools side by side: [(op, extents, attributes, channels)]. Returns the shapes of their inputs, x0, x1, ..."""
    nodes, inputs, outputs, shapes = [], [], [], []
    for k, (op, extents, attributes, channels) in enumerate(pools):
        shapes.append([2, channels, *extents])
        nodes.append(helper.make_node(op.split()[0], [f"x{k}"], [f"y{k}"], **attributes, **POOLS[op]))
        inputs.append(helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, shapes[-1]))
        outputs.append(helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "pools", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return shapes


def plain_session(path):
    """Its kernels of blocked channels divide by 0 where there is no window, and count otherwise than its plain ones."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def pools_alike(run_for, target, path, pools, drawn=None):
    """The extents of `pools` are the model's, and those of the run unless others are `drawn`."""
    rng = np.random.default_rng(2)
    shapes = [shape[:2] + list(drawn or shape[2:]) for shape in write(path, pools)]
    feeds = {f"x{k}": rng.integers(-9, 10, shape).astype(np.float32) for k, shape in enumerate(shapes)}
    names = [f"y{k}" for k in range(len(pools))]
    got, peer = run_for(target, path, feeds, names), plain_session(path).run(names, feeds)
    for pool, name, expected in zip(pools, names, peer, strict=True):
        assert got[name].shape == expected.shape and np.allclose(got[name], expected, rtol=1e-6, atol=0), (pool, got[name], expected)


@pytest.mark.parametrize("target", TARGETS)
def test_a_window_beyond_the_input_pools_what_is_there(target, run_for, tmp_path):
    pools = [(op, extents, {**attributes, "ceil_mode": 1}, channels) for extents, attributes in CASES.values()
             for op in ("MaxPool", "AveragePool", "AveragePool with pads") for channels in (3, 16)]
    pools_alike(run_for, target, tmp_path / "pool.onnx", pools)


@pytest.mark.optimised_here
def test_so_does_one_where_windows_are_rounded_down(run_for, tmp_path):
    pools = [(op, extents, attributes, channels) for extents, attributes in ROUNDED_DOWN.values()
             for op in ("MaxPool", "AveragePool with pads", "LpPool") for channels in (3, 16)]
    pools_alike(run_for, "native", tmp_path / "pool.onnx", pools)


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("extent", range(1, 12))
def test_an_extent_of_the_run_may_be_too_small_for_a_window(extent, ceil_mode, run_for, tmp_path):
    attributes = dict(kernel_shape=[3, 3], dilations=[2, 2], strides=[3, 3], ceil_mode=ceil_mode)
    pools_alike(run_for, "native", tmp_path / "pool.onnx", [("MaxPool", ["H", 5], attributes, 3)], [extent, 5])


@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_two_strides_beyond_are_refused_as_onnx_runtime_does(ceil_mode, rnncc, tmp_path):
    write(tmp_path / "pool.onnx", [("MaxPool", (3, 3), dict(kernel_shape=[9, 9], strides=[3, 3], ceil_mode=ceil_mode), 3)])
    done = rnncc(tmp_path / "pool.onnx", "-o", tmp_path / "pool.so")
    assert done.returncode == 2 and "the kernel reaches over 9 on spatial axis 0, but the padded input has only 3" in done.stderr
    with pytest.raises(Exception, match="MaxPool"):
        plain_session(tmp_path / "pool.onnx").run(None, {"x0": np.zeros((2, 3, 3, 3), np.float32)})
