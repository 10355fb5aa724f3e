# SPDX-License-Identifier: MIT
"""Convolutions of quantised numbers whose result is in f32: sums are exact, then each step of f32 is rounded as written. x's
scale and zero point are constants, or the run tells them. What is expected is summed in 64 bits."""
import numpy
import pytest
from test_integer_convolutions import BOTH, CASES, MATRICES, MATRICES_KNOBS, WITH_MATRICES, convolution, schedules_of, sums_of

from support.amount import some
from support.emitted import TARGETS, assert_same, run_by, run_module
from support.merge import merged
from support.model_builder import Model, type_name

KINDS = ("static", "dynamic", "no bias", "residual", "relu")
WITH_DOT = "x86-64-v4+vnni"


def to_floats(name, kind, **case):
    """(Model, feeds, due): the case's convolution, by ConvIntegerToFloat."""
    quantised, feeds = convolution(name, **case)
    node, = quantised.nodes
    values = {**quantised.arrays, **feeds}
    _, x_scale, x_zero, w, w_scale, w_zero = (values[key] for key in node["inputs"][:6])
    rng, model = numpy.random.default_rng([*kind.encode()]), Model()
    bias = rng.normal(0, 3, len(w)).astype(numpy.float32) if kind != "no bias" else None
    dtype = type_name(feeds["x"])
    x = model.input("x", dtype, list(feeds["x"].shape))
    if kind == "dynamic":
        feeds |= {"scale": x_scale, "zero": x_zero}
        scale, zero = model.input("scale", "f32", []), model.input("zero", dtype, [])
    else:
        scale, zero = model.constant(x_scale), model.constant(x_zero)
    constants = [model.constant(array) if array is not None else None for array in (w, w_scale, w_zero, bias)]
    y = model.node("ConvIntegerToFloat", [x, constants[0], scale, constants[1], zero, *constants[2:]], **node["attributes"])
    column = (-1, *[1] * (w.ndim - 2))
    factor = (x_scale * w_scale).astype(numpy.float32)
    due = sums_of(quantised, feeds).astype(numpy.float32) * (factor.reshape(column) if factor.ndim else factor)
    due = due + bias.reshape(column) if bias is not None else due
    if kind == "residual":
        feeds["residual"] = rng.normal(0, 9, due.shape).astype(numpy.float32)
        y, due = model.node("Add", [y, model.input("residual", "f32", list(due.shape))]), due + feeds["residual"]
    if kind in ("residual", "relu"):
        y, due = model.node("Relu", [y]), numpy.maximum(due, 0)
    model.output(y)
    assert due.dtype == numpy.float32
    return model, feeds, due


def everything(names, cases=CASES, shift=0):
    """All cases, of the kinds in turn."""
    made = [to_floats(name, KINDS[(i + shift) % len(KINDS)], **cases[name]) for i, name in enumerate(names)]
    model, feeds = merged([part[:2] for part in made])
    return model, feeds, {f"p{k}_{part[0].outputs[0]}": part[2] for k, part in enumerate(made)}


# By default each case is of two kinds, and each kind of two fifths of the cases.
@pytest.mark.parametrize("shift", some(range(len(KINDS)), 2))
def test_sums_are_exact(compile, tmp_path, shift):
    names = [*CASES][shift:] + [*CASES][:shift]
    model, feeds, due = everything(names)
    assert_same(run_module(compile(model.write(tmp_path), f"--target={WITH_DOT}"), feeds), due)


@pytest.mark.every_case
@pytest.mark.parametrize("target", some([*TARGETS, "x86-64-v3+vnni"], len(TARGETS)))
def test_other_instruction_sets_are_exact(compile, tmp_path, target):
    model, feeds, due = everything([*CASES])
    assert_same(run_module(compile(model.write(tmp_path), f"--target={target}"), feeds), due)


def test_dot_products_of_aarch64_are_exact(compile, rnnrun_of, tmp_path):
    target = "aarch64-linux-gnu+dotprod+fp16+bf16+i8mm"
    model, feeds, due = everything(["3x3", "3x3 of i8", "first", "largest of i8"])
    assert_same(run_by(rnnrun_of(target), compile(model.write(tmp_path), f"--target={target}", optimised=False), feeds, due,
                       tmp_path), due)


@pytest.mark.parametrize("schedule", ["oc=1,px=1,unroll=1", "oc=3,px=5,unroll=4,groups=1,tiles=2", "oc=8,px=28,tiles=1"])
def test_schedules_are_exact(compile, tmp_path, schedule):
    model, feeds, due = everything([name for name in CASES if "depthwise" not in name])
    options = f"--target={WITH_DOT}", f"--conv=direct_int8,{schedule}"
    assert_same(run_module(compile(model.write(tmp_path), *options), feeds, (1, 3)), due)


@pytest.mark.parametrize("shift, knobs", [*enumerate(MATRICES_KNOBS)])
def test_matrices_are_exact(compile, rnncc, tmp_path, shift, knobs):
    model, feeds, due = everything([*MATRICES], MATRICES, shift)
    path, options = model.write(tmp_path), (f"--target={WITH_MATRICES}", f"--conv=matrices_int8,{knobs}")
    assert len(schedules_of(rnncc, path, "matrices_int8", *options)) == len(MATRICES)
    assert_same(run_module(compile(path, *options), feeds, (1, 3)), due)


def stays(rnncc, path, target):
    done = rnncc("inspect", path, "--dump-after=lower", f"--target={target}")
    assert done.returncode == 0, done.stderr
    return "ConvIntegerToFloat direct_int8" in done.stdout + done.stderr


def test_bytes_are_multiplied_where_there_are_dot_products(rnncc, tmp_path):
    path = to_floats("3x3", "residual", **CASES["3x3"])[0].write(tmp_path)
    assert stays(rnncc, path, WITH_DOT) and not stays(rnncc, path, "x86-64-v3")
    path = to_floats("depthwise", "static", **CASES["depthwise"])[0].write(tmp_path)
    assert not stays(rnncc, path, WITH_DOT)


def test_what_is_summed_stays_in_registers(rnncc, tmp_path):
    """The residual and the activation are part of the kernel."""
    path = to_floats("3x3", "residual", **CASES["3x3"])[0].write(tmp_path)
    table = rnncc("inspect", path, f"--target={WITH_DOT}").stdout
    assert "direct_int8" in table and "elementwise" not in table, table


def scales_of(model, kind, scale):
    """What a product of numbers is scaled by: the input's scale and a constant, in both orders, or the first alone."""
    if kind == "alone":
        return scale
    constant = model.constant(numpy.array(.003, numpy.float32))
    return model.node("Mul", [constant, scale] if kind == "weights first" else [scale, constant])


def dynamically_quantised(biased, kind="input first"):
    """Two layers as ONNX Runtime's quantize_dynamic writes them."""
    rng, model = numpy.random.default_rng(5), Model()
    y = model.input("x", "f32", [2, 20, 9, 7])
    for kernels, channels in ((40, 20), (33, 40)):
        numbers, scale, zero = model.node("DynamicQuantizeLinear", [y], 3)
        w = model.constant(rng.integers(-127, 128, (kernels, channels, 3, 3), numpy.int8))
        sums = model.node("ConvInteger", [numbers, w, zero, model.constant(numpy.array(0, numpy.int8))], **BOTH)
        y = model.node("Mul", [model.node("Cast", [sums], to="f32"), scales_of(model, kind, scale)])
        bias = model.constant(rng.normal(size=kernels).astype(numpy.float32))
        shape = model.constant(numpy.array([1, -1, 1, 1]))
        y = model.node("Add", [y, model.node("Reshape", [bias, shape])]) if biased else y
        y = model.node("Relu", [y])
    model.output(y)
    return model, {"x": rng.normal(size=(2, 20, 9, 7)).astype(numpy.float32)}


@pytest.mark.parametrize("biased", [False, True])
def test_a_dynamically_quantised_convolution_is_one_operator(rnncc, compile, reference, tmp_path, biased):
    """Its results are those of the operators one by one, bit for bit."""
    model, feeds = dynamically_quantised(biased)
    path = model.write(tmp_path)
    done = rnncc("inspect", path, "--dump-after=fuse_quantised")
    assert done.stderr.count(" ConvIntegerToFloat") == 2 and " ConvInteger " not in done.stderr, done.stderr
    assert " Cast" not in done.stderr and (" Add" in done.stderr) is False, done.stderr
    due = reference.run(model, path, feeds)
    for target in (WITH_DOT, "x86-64-v3"):
        assert_same(run_module(compile(path, f"--target={target}"), feeds), due)


def quantised_in_blocks():
    """Convolutions that read what a run quantises: the result of one, and of two, one behind the other in memory."""
    rng, model = numpy.random.default_rng(6), Model()
    model.dim("N", 1, 2, 3)

    def layer(x, kernels, channels):
        numbers, scale, zero = model.node("DynamicQuantizeLinear", [x], 3)
        w = model.constant(rng.integers(-127, 128, (kernels, channels, 3, 3), numpy.int8))
        sums = model.node("ConvInteger", [numbers, w, zero, model.constant(numpy.array(0, numpy.int8))], **BOTH)
        scaled = model.node("Mul", [model.node("Cast", [sums], to="f32"),
                                    model.node("Mul", [scale, model.constant(numpy.float32(.003))])])
        return model.node("Relu", [scaled])

    x = model.input("x", "f32", ["N", 5, 9, 7])
    first, second = layer(x, 48, 5), layer(x, 32, 5)
    both = model.node("Concat", [first, second], axis=1)
    model.output(layer(both, 33, 80), layer(second, 16, 32))
    return model, {"x": rng.normal(size=(3, 5, 9, 7)).astype(numpy.float32)}


@pytest.mark.parametrize("target", [WITH_DOT, "x86-64-v3", "x86-64"])
def test_what_a_run_quantises_stays_in_blocks(rnncc, compile, reference, tmp_path, target):
    model, feeds = quantised_in_blocks()
    path = model.write(tmp_path)
    lines = rnncc("inspect", path, f"--target={target}", "--dump-after=choose_layouts").stderr.splitlines()
    layouts = [after for line, after in zip(lines, lines[1:]) if "= DynamicQuantizeLinear(" in line]
    assert len(layouts) == 4
    assert target != WITH_DOT or layouts.count("  reads blocks, writes blocks") == 2, layouts  # 5 channels are read once, as they come
    assert_same(run_module(compile(path, f"--target={target}"), feeds), reference.run(model, path, feeds))


@pytest.mark.every_case
@pytest.mark.parametrize("channels, plane", [(37, (9, 7)), (3, (1, 2)), (17, (40, 33))])
@pytest.mark.parametrize("target", some(["x86-64-v4", "x86-64-v3", "x86-64"], 2))
def test_lanes_without_channels_are_in_no_range(rnncc, compile, reference, tmp_path, target, channels, plane):
    """In those of the last block a convolution has zeros, which become -4096 here; channels have far more."""
    rng, model = numpy.random.default_rng(channels), Model()
    model.dim("N", 1, 2, 3)
    x, bias = model.input("x", "f32", ["N", 5, *plane]), rng.integers(4000, 4200, channels).astype(numpy.float32)
    w = rng.integers(-3, 4, (channels, 5, 3, 3)).astype(numpy.float32)
    sums = model.node("Relu", [model.node("Conv", [x, model.constant(w), model.constant(bias)], **BOTH)])
    model.output(*model.node("DynamicQuantizeLinear", [model.node("Sub", [sums, model.constant(numpy.float32(4096))])], 3))
    path, options = model.write(tmp_path), (f"--target={target}", "--layout-search=greedy", "--no-winograd")
    lines = rnncc("inspect", path, *options, "--dump-after=choose_layouts").stderr.splitlines()
    layout, = [after for line, after in zip(lines, lines[1:]) if "= DynamicQuantizeLinear(" in line]
    assert layout == "  reads blocks, writes blocks"
    feeds = {"x": rng.integers(-4, 5, (3, 5, *plane)).astype(numpy.float32)}
    assert_same(run_module(compile(path, *options), feeds), reference.run(model, path, feeds))


@pytest.mark.optimised_here
@pytest.mark.parametrize("kind", ["weights first", "alone"])
def test_a_scale_of_the_run_is_the_inputs(rnncc, compile, reference, tmp_path, kind):
    model, feeds = dynamically_quantised(True, kind)
    path = model.write(tmp_path)
    table = rnncc("inspect", path, f"--target={WITH_DOT}").stdout
    assert table.count(" ConvIntegerToFloat ") == 2, table
    assert_same(run_module(compile(path, f"--target={WITH_DOT}"), feeds), reference.run(model, path, feeds))


def pairs(weights, zero, channels=20, biased=False):
    """A convolution between DequantizeLinear of x and of weights; x has 20 channels but where sums shall be large. A bias is
    known in the run only."""
    model = Model()
    x = model.input("x", "u8", [1, channels, 5, 5])
    scale, x_zero = model.constant(numpy.float32(.01)), model.constant(numpy.uint8(0))
    floats = model.node("DequantizeLinear", [x, scale, x_zero])
    w = model.node("DequantizeLinear", [model.constant(weights), scale, model.constant(zero)])
    model.output(model.node("Conv", [floats, w, *([model.input("b", "f32", [len(weights)])] if biased else [])]))
    return model


@pytest.mark.parametrize("why", ["weights that are no bytes", "sums beyond i32", "a bias of the run"])
def test_what_no_kernel_of_bytes_runs_stays_of_floats(rnncc, compile, tmp_path, why):
    if why == "sums beyond i32":
        model = pairs(numpy.full((16, 8192, 3, 3), 127, numpy.int8), numpy.int8(0), 8192)
    elif why == "a bias of the run":
        model = pairs(numpy.full((16, 20, 3, 3), 127, numpy.int8), numpy.int8(0), biased=True)
    else:
        model = pairs(numpy.full((16, 20, 3, 3), 255, numpy.uint8), numpy.uint8(100))
    path = model.write(tmp_path)
    table = rnncc("inspect", path, "--dump-after=fuse_quantised", f"--target={WITH_DOT}")
    assert " Conv" in table.stderr and "ConvInteger" not in table.stderr, table.stderr
    feeds = {"x": numpy.full((1, *[model.inputs[0]["shape"][1], 5, 5]), 255, numpy.uint8)}
    feeds |= {"b": numpy.zeros(16, numpy.float32)} if "bias" in why else {}
    got, = run_module(compile(path, f"--target={WITH_DOT}"), feeds, (1,)).values()
    value = numpy.float64(model.arrays[model.nodes[1]["inputs"][0]].flat[0]) - (100 if "bytes" in why else 0)
    numpy.testing.assert_allclose(got, feeds["x"].shape[1] * 9 * 2.55 * value * .01, rtol=1e-3)  # sums in f32


@pytest.mark.parametrize("name, wrong, status, told", [
    ("two scales of x", {2: numpy.ones(2, numpy.float32)}, 3, "single number"),
    ("scales of other channels", {3: numpy.ones(3, numpy.float32)}, 2, "input 3 must be one number or one for each"),
    ("a bias of other channels", {6: numpy.ones(5, numpy.float32)}, 2, "the bias, [M] = [4]")])
def test_bad_numbers_are_named(rnncc, tmp_path, name, wrong, status, told):
    model = Model()
    inputs = {1: numpy.ones((4, 3, 3, 3), numpy.int8), 2: numpy.float32(1), 3: numpy.ones(4, numpy.float32),
              4: numpy.uint8(3), 5: numpy.int8(0), 6: numpy.zeros(4, numpy.float32), **wrong}
    x = model.input("x", "u8", [1, 3, 5, 5])
    model.output(model.node("ConvIntegerToFloat", [x, *[model.constant(numpy.asarray(inputs[i])) for i in range(1, 7)]]))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == status and told in done.stderr, done.stderr
    assert not (tmp_path / "m.so").exists()
