# SPDX-License-Identifier: MIT
"""Operators whose inputs, or outputs, are of several types of floats by ONNX: the reference interpreter, a module and what
folds constants give the types, and compute what ONNX Runtime does, or what NumPy does in double where that lacks them."""
import ml_dtypes
import numpy
import pytest
from onnx import TensorProto, helper

from graphs.op_models import uniform
from support.emitted import run_module
from support.onnx_files import described, model_of, onnxruntime_run, write

F32, F16, BF16 = numpy.dtype("float32"), numpy.dtype("float16"), numpy.dtype(ml_dtypes.bfloat16)
# Relative to the largest: half an ULP of a result that is rounded, beside one of a peer's that is rounded before, too.
BOUNDS = {F32: 2.0**-18, F16: 2.0**-10, BF16: 2.0**-7}


def onnx_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def one_node(op, arrays, outputs, domain="", opset=17, constants=(), **attributes):
    """The model of one node, of outputs whose types are inferred, and what it is fed. constants: names of inputs."""
    node = helper.make_node(op, list(arrays), outputs, name="n", domain=domain, **attributes)
    fed = {name: array for name, array in arrays.items() if name not in constants}
    frozen = {name: arrays[name] for name in constants}
    model = model_of([node], {name: (onnx_type(array), array.shape) for name, array in fed.items()},
                     {name: (TensorProto.FLOAT, None) for name in outputs if name}, frozen, opset)
    for output in model.graph.output:
        output.ClearField("type")
    return model, fed


def assert_types_and_numbers(got, due):
    assert set(got) == set(due)
    for name, array in due.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        bound = BOUNDS[array.dtype] * max(1, abs(array.astype(float)).max(initial=0))
        numpy.testing.assert_allclose(got[name].astype(float), array.astype(float), rtol=0, atol=bound, err_msg=name)


@pytest.fixture
def check(reference, compile, tmp_path):
    """Of inputs of the run, and of constants."""

    def checked(due, op, arrays, outputs, **attributes):
        model, feeds = one_node(op, arrays, outputs, **attributes)
        path = write(tmp_path, model)
        assert_types_and_numbers(reference.run(described(model), path, feeds), due)
        assert_types_and_numbers(run_module(compile(path), feeds, threads=(1, 2)), due)
        model, feeds = one_node(op, arrays, outputs, constants=tuple(arrays), **attributes)
        assert_types_and_numbers(run_module(compile(write(tmp_path, model)), feeds, threads=(1,)), due)

    return checked


def by_onnx_runtime(op, arrays, outputs, **attributes):
    return onnxruntime_run(*one_node(op, arrays, outputs, **attributes))


# Statistics of normalisations

def rows(rng, dtype, bias=True):
    arrays = {"x": uniform(rng, 3, 4, 37), "scale": uniform(rng, 37)} | ({"bias": uniform(rng, 37)} if bias else {})
    return {name: array.astype(dtype) for name, array in arrays.items()}


def layer_norm(arrays, epsilon, types, centred=True):
    """In double, with outputs of these types: the result and, as they are wanted, the mean and the inverse deviation."""
    x, scale, bias = (arrays[name].astype(float) if name in arrays else 0 for name in ("x", "scale", "bias"))
    mean = x.mean(axis=-1, keepdims=True) * centred
    inverse = 1 / numpy.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + epsilon)
    results = {"y": (x - mean) * inverse * scale + bias, "mean": mean, "inverse": inverse}
    return {name: results[name].astype(dtype) for name, dtype in types.items()}


@pytest.mark.every_case
@pytest.mark.parametrize("outputs", [["y", "mean", "inverse"], ["y", "", "inverse"]])
@pytest.mark.parametrize("stash", [{}, {"stash_type": 1}])
def test_means_and_deviations_of_rows_in_f16_are_in_f32(check, outputs, stash):
    arrays = rows(numpy.random.default_rng(1), F16)
    due = by_onnx_runtime("LayerNormalization", arrays, outputs, **stash)
    assert due["inverse"].dtype == F32
    check(due, "LayerNormalization", arrays, outputs, **stash)


@pytest.mark.every_case
@pytest.mark.parametrize("stash, statistics", [(1, F32), (16, BF16)])
@pytest.mark.parametrize("dtype", [F32, F16, BF16], ids=str)
def test_the_stash_type_is_that_of_the_statistics(check, dtype, stash, statistics):
    arrays = rows(numpy.random.default_rng(2), dtype)
    due = layer_norm(arrays, 1e-5, {"y": dtype, "mean": statistics, "inverse": statistics})
    check(due, "LayerNormalization", arrays, list(due), stash_type=stash)


def test_deviations_of_a_simplified_normalisation_are_in_f32(check):
    """ONNX Runtime's, of no opset."""
    arrays = rows(numpy.random.default_rng(3), F16, bias=False)
    due = by_onnx_runtime("SimplifiedLayerNormalization", arrays, ["y", "inverse"])
    assert due["inverse"].dtype == F32
    check(due, "SimplifiedLayerNormalization", arrays, list(due))


def test_statistics_behind_a_skip_are_in_f32(check):
    """ONNX Runtime computes them on no CPU."""
    rng = numpy.random.default_rng(4)
    arrays = {"x": uniform(rng, 3, 4, 37), "skip": uniform(rng, 3, 4, 37), "scale": uniform(rng, 37), "bias": uniform(rng, 37)}
    arrays = {name: array.astype(F16) for name, array in arrays.items()}
    together = arrays | {"x": arrays["x"].astype(float) + arrays["skip"]}
    due = layer_norm(together, 1e-5, {"y": F16, "mean": F32, "inverse": F32})
    check(due, "SkipLayerNormalization", arrays, list(due), domain="com.microsoft", epsilon=1e-5)


@pytest.mark.parametrize("op", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_statistics_of_another_type_are_refused(rnncc, tmp_path, op):
    """Where nobody asks for them, the type of the statistics is that of no tensor."""
    arrays = rows(numpy.random.default_rng(5), F32, bias=False)
    for outputs, status in ((["y", "statistic"], 2), (["y"], 0)):
        model, _ = one_node(op, arrays, outputs, stash_type=TensorProto.DOUBLE)
        done = rnncc(write(tmp_path, model), "--emit=c", "-o", tmp_path / "c")
        assert done.returncode == status, done.stderr
        assert not status or "`stash_type` is 11; it must be 1, f32, or 16, bf16" in done.stderr


# Parameters of another type than the data

def image(rng, dtype, parameters, statistics):
    x, positive = uniform(rng, 2, 3, 7, 9).astype(dtype), rng.uniform(0.5, 2, 3).astype(statistics)
    scale, bias = (uniform(rng, 3).astype(parameters) for _ in range(2))
    return {"x": x, "scale": scale, "bias": bias, "mean": uniform(rng, 3).astype(statistics), "var": positive}


@pytest.mark.every_case
@pytest.mark.parametrize("trains", [0, 1])
@pytest.mark.parametrize("dtype, parameters, statistics", [(F16, F32, F32), (F16, F16, F32), (F32, F16, F16)], ids=str)
def test_a_batch_normalisation_has_parameters_and_statistics_of_other_types(check, dtype, parameters, statistics, trains):
    arrays = image(numpy.random.default_rng(6), dtype, parameters, statistics)
    outputs = ["y", "running_mean", "running_var"] if trains else ["y"]
    due = by_onnx_runtime("BatchNormalization", arrays, outputs, opset=15, training_mode=trains)
    check(due, "BatchNormalization", arrays, outputs, opset=15, training_mode=trains)


def test_behind_a_convolution_such_a_batch_normalisation_is_part_of_it(compile, tmp_path):
    rng = numpy.random.default_rng(7)
    constants = image(rng, F32, F16, F16) | {"w": uniform(rng, 3, 2, 3, 3)}
    nodes = [helper.make_node("Conv", ["image", "w"], ["x"]),
             helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["y"])]
    model = model_of(nodes, {"image": (TensorProto.FLOAT, (1, 2, 9, 9))}, {"y": (TensorProto.FLOAT, None)},
                     {name: array for name, array in constants.items() if name != "x"}, opset=15)
    feeds = {"image": uniform(rng, 1, 2, 9, 9)}
    got = run_module(compile(write(tmp_path, model)), feeds, threads=(1, 2))
    assert_types_and_numbers(got, onnxruntime_run(model, feeds))


@pytest.mark.every_case
@pytest.mark.parametrize("dtype, scale", [(F16, F32), (F32, F16), (F32, BF16), (BF16, F32)], ids=str)
def test_a_root_mean_square_normalisation_has_the_type_of_its_scale(check, dtype, scale):
    """Which ONNX Runtime refuses of RMSNormalization."""
    arrays = rows(numpy.random.default_rng(8), dtype, bias=False)
    arrays["scale"] = arrays["scale"].astype(scale)
    due = layer_norm(arrays, 1e-5, {"y": scale, "inverse": F32}, centred=False)
    check(due, "SimplifiedLayerNormalization", arrays, ["y", "inverse"])
    due.pop("inverse")
    check(due, "RMSNormalization", arrays, ["y"], opset=23)


@pytest.mark.every_case
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("dtype, places", [(F16, F32), (F32, F16)], ids=str)
def test_a_grid_has_another_type_than_the_image(check, dtype, places, mode):
    rng = numpy.random.default_rng(9)
    arrays = {"x": uniform(rng, 2, 3, 5, 8).astype(dtype), "grid": (uniform(rng, 2, 4, 6, 2) / 2).astype(places)}
    due = by_onnx_runtime("GridSample", arrays, ["y"], opset=20, mode=mode)
    check(due, "GridSample", arrays, ["y"], opset=20, mode=mode)
