# SPDX-License-Identifier: MIT
"""Normalisations: the reference interpreter compared with ONNX Runtime, emitted kernels with the reference."""
import numpy
import pytest

from graphs.normalisation_models import NORMALISATIONS, uniform
from graphs.test_reference_onnx import FUNCTION_ERROR, assert_close, peer_run
from support.emitted import assert_same, run_module
from support.merge import merged
from support.model_builder import Model

EPSILON = 2.0**-24  # the relative error of one rounding
CASES_OF_A_KIND = 8
# Roundings of a result, relative to the largest one. Statistics are sums in several parts, of at most some 60 terms
# each here, whose errors are random; the mean's rounding counts 5 / 1 times if values are about 5.
ROUNDINGS = 64


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_reference_agrees_with_onnx_runtime(reference, tmp_path, name, seed):
    model, feeds = NORMALISATIONS[name](numpy.random.default_rng([seed, *name.encode()]))
    expected = peer_run(model, feeds)
    got = reference.run(model, model.write(tmp_path), feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], 16 * FUNCTION_ERROR)


def many_cases():
    rng = numpy.random.default_rng(7)
    return merged([build(rng) for build in NORMALISATIONS.values() for _ in range(CASES_OF_A_KIND)])


def test_kernels_agree_with_the_reference(reference, run_on_target, tmp_path):
    model, feeds = many_cases()
    path = model.write(tmp_path)
    got, expected = run_on_target(path, feeds, model.outputs), reference.run(model, path, feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], ROUNDINGS * EPSILON)


def normalised(op, shape, **attributes):
    model = Model()
    x = model.input("x", "f32", shape)
    count = shape[1] if op == "InstanceNormalization" else shape[-1]
    ones, zeros = numpy.ones(count, numpy.float32), numpy.zeros(count, numpy.float32)
    model.output(model.node(op, [x, model.constant(ones), model.constant(zeros)], **attributes))
    return model


@pytest.mark.parametrize("op,shape", [("LayerNormalization", [2, 40000]), ("InstanceNormalization", [1, 2, 200, 200])])
def test_a_large_mean_costs_no_more_than_its_own_rounding(compile, tmp_path, op, shape):
    """About a mean of 4096 with deviation 1, E[x^2] - E[x]^2 in f32 would lose all bits. Here a result may be off by the
    mean's half ULP, 2^-12; the few roundings of the chunks' means hardly change the deviation."""
    model = normalised(op, shape)
    x = (4096 + numpy.random.default_rng(1).standard_normal(shape)).astype(numpy.float32)
    got = next(iter(run_module(compile(model.write(tmp_path)), {"x": x}).values()))
    rows = x.reshape(2, -1).astype(float)
    exact = (rows - rows.mean(axis=1, keepdims=True)) / numpy.sqrt(rows.var(axis=1, keepdims=True) + 1e-5)
    assert numpy.abs(got.reshape(2, -1) - exact).max() < 2.0**-12


def test_a_sum_of_many_elements_loses_few_roundings(compile, tmp_path):
    """The mean of a chunk has at most the 16 roundings of its partial sums, merging adds almost none, and dividing by the
    deviation magnifies them. One sum in order could have 2^20 roundings."""
    model = normalised("LayerNormalization", [1, 1 << 20])
    x = numpy.random.default_rng(1).uniform(0.5, 1, (1, 1 << 20)).astype(numpy.float32)
    got = next(iter(run_module(compile(model.write(tmp_path)), {"x": x}, threads=(1,)).values()))
    exact = (x - x.astype(float).mean()) / numpy.sqrt(x.astype(float).var() + 1e-5)
    assert numpy.abs(got - exact).max() < 16 * EPSILON / x.std()


@pytest.mark.optimised_here
def test_extents_of_run_time_and_an_activation(compile, tmp_path):
    model = Model()
    for name, largest in (("T", 9), ("B", 3)):
        model.dim(name, 1, 2, largest)
    x = model.input("x", "f32", ["T", "B", 19])
    parameters = [model.constant(numpy.linspace(-1, 1, 19, dtype=numpy.float32)) for _ in range(2)]
    model.output(model.node("Relu", [model.node("LayerNormalization", [x, *parameters])]))
    module = compile(model.write(tmp_path))
    for T, B in ((1, 1), (7, 3)):
        feeds = {"x": numpy.random.default_rng(T).uniform(-1, 1, (T, B, 19)).astype(numpy.float32)}
        for name, array in model.onnx_run(feeds).items():
            assert_close(run_module(module, feeds)[name], array, 32 * EPSILON)


@pytest.mark.optimised
def test_rows_of_every_width_are_normalised_in_place(run_on_target, tmp_path):
    """Each between transposes, so that its result takes the memory of what it reads: widths below, at and beyond whole
    vectors."""
    rng, model, feeds = numpy.random.default_rng(6), Model(), {}
    for width in [*range(1, 36), 47, 64, 65, 79]:
        x = model.input(f"x{width}", "f32", [width, 9])
        feeds[x] = rng.uniform(-1, 3, (width, 9)).astype(numpy.float32)
        parameters = [model.constant(rng.uniform(-1, 1, width).astype(numpy.float32)) for _ in range(2)]
        rows = model.node("LayerNormalization", [model.node("Transpose", [x], perm=[1, 0]), *parameters], epsilon=1e-3)
        model.output(model.node("Transpose", [rows], perm=[1, 0]))
    got, expected = run_on_target(model.write(tmp_path), feeds, model.outputs), model.onnx_run(feeds)
    for output in model.outputs:
        assert_close(got[output], expected[output], ROUNDINGS * EPSILON)


def test_parameters_by_group_are_those_of_each_of_its_channels(compile, tmp_path):
    """GroupNormalization of opset 18."""
    rng, outputs = numpy.random.default_rng(3), []
    parameters = rng.uniform(-1, 1, (2, 3)).astype(numpy.float32)
    feeds = {"x": rng.uniform(-1, 1, (2, 6, 5, 7)).astype(numpy.float32)}
    for repeat in (1, 2):
        model = Model()
        constants = [model.constant(numpy.repeat(values, repeat)) for values in parameters]
        x = model.input("x", "f32", [2, 6, 5, 7])
        model.output(model.node("GroupNormalization", [x, *constants], num_groups=3))
        outputs.append(run_module(compile(model.write(tmp_path)), feeds))
    assert_same(*outputs)


def test_a_batch_normalisation_that_trains_goes_by_the_batch_also_where_it_is_computed_when_compiling(compile, tmp_path):
    rng, model = numpy.random.default_rng(8), Model()
    x, constants = uniform(rng, (3, 4, 5, 2)), [model.constant(uniform(rng, 4, 0.5)) for _ in range(4)]
    for data in (model.input("x", "f32", x.shape), model.constant(x)):
        model.output(*model.node("BatchNormalization", [data, *constants], 3, training_mode=1, momentum=0.75))
    got, due = run_module(compile(model.write(tmp_path)), {"x": x}), model.onnx_run({"x": x})
    for output in model.outputs:
        assert_close(got[output], due[output], ROUNDINGS * EPSILON)


@pytest.mark.every_case
@pytest.mark.parametrize("trains", [0, 1])
def test_one_axis_is_of_one_channel_to_a_batch_normalisation(compile, reference, tmp_path, trains):
    """As ONNX says, of samples that may be known, and of as many as the run has."""
    rng, model = numpy.random.default_rng(10), Model()
    parameters = [model.constant(uniform(rng, 1, 0.5)) for _ in range(4)]
    feeds = {"x": uniform(rng, 7), "r": uniform(rng, 5)}
    for data in (model.input("x", "f32", [7]), model.input("r", "f32", [model.dim("N", 1, 4, 9)]), model.constant(feeds["x"])):
        outputs = model.node("BatchNormalization", [data, *parameters], 3 if trains else 1, training_mode=trains)
        model.output(*(outputs if trains else [outputs]))
    path, due = model.write(tmp_path), model.onnx_run(feeds)
    for got in (run_module(compile(path), feeds), reference.run(model, path, feeds)):
        for output in model.outputs:
            assert_close(got[output], due[output], ROUNDINGS * EPSILON)


def test_a_batch_normalisation_that_trains_is_not_part_of_a_quantised_convolution(rnncc, tmp_path):
    rng, model = numpy.random.default_rng(9), Model("net")
    x = model.node("Conv", [model.input("x", "f32", [1, 3, 9, 9]), model.constant(uniform(rng, (4, 3, 3, 3)))])
    constants = [model.constant(uniform(rng, 4, 0.5)) for _ in range(4)]
    model.output(model.node("BatchNormalization", [x, *constants], training_mode=1))
    numpy.save(tmp_path / "x.npy", uniform(rng, (1, 3, 9, 9)))
    done = rnncc("quantize", model.write(tmp_path), "-o", tmp_path / "q.json", f"--data={tmp_path}/x.npy")
    assert done.returncode == 0, done.stderr
    assert '"BatchNormalization"' in (tmp_path / "q.json").read_text()


def written_out(model, x, width, centred):
    """A normalisation of rows as exporters before opset 17 write it, and what it computes in double."""
    rng = numpy.random.default_rng(5)
    scale, bias = rng.uniform(0.5, 1, width).astype(numpy.float32), rng.uniform(-1, 1, width).astype(numpy.float32)
    last, two, epsilon = (model.constant(value) for value in (numpy.array([-1]), numpy.float32(2), numpy.float32(1e-3)))
    d = model.node("Sub", [x, model.node("ReduceMean", [x, last])]) if centred else x
    square = model.node("ReduceMean", [model.node("Pow", [d, two]), last])
    y = model.node("Div", [d, model.node("Sqrt", [model.node("Add", [square, epsilon])])])
    y = model.node("Mul", [y, model.constant(scale)])

    def exact(rows):
        rows = rows.astype(float)
        rows = rows - rows.mean(axis=-1, keepdims=True) * centred
        return rows / numpy.sqrt((rows * rows).mean(axis=-1, keepdims=True) + 1e-3) * scale + bias

    return model.node("Add", [y, model.constant(bias)]), exact


@pytest.mark.parametrize("centred", [True, False])
def test_what_exporters_write_out_runs_as_one_kernel(rnncc, compile, tmp_path, centred):
    """Rows of extents that fill vectors and do not; T is known when running."""
    model = Model()
    model.dim("T", 1, 4, 9)
    y, exact = written_out(model, model.input("x", "f32", ["T", 2, 37]), 37, centred)
    model.output(y)
    path = model.write(tmp_path)
    done = rnncc(path, "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "c" / "network.c").read_text()
    assert "_normalise(" in text and "_reduce(" not in text and "_elementwise_chain(" not in text
    feeds = {"x": numpy.random.default_rng(1).uniform(-1, 2, (7, 2, 37)).astype(numpy.float32)}
    for got in run_module(compile(path), feeds).values():
        assert_close(got, exact(feeds["x"]).astype(numpy.float32), 32 * EPSILON)
