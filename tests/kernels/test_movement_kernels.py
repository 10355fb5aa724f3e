# SPDX-License-Identifier: MIT
"""Convolution, pooling, copies and gathering: emitted kernels compared with the reference interpreter, on values whose f32
sums are exact, so that every bit must agree; and with ONNX Runtime where extents are known only at run time."""
import numpy
import pytest

from graphs.movement_models import CASES as MOVEMENT_CASES
from graphs.movement_models import REDUCTIONS
from graphs.op_models import CASES as OP_CASES
from support.amount import half
from support.emitted import TARGETS, assert_same, run_module
from support.machine import WIDEST
from support.merge import merged
from support.model_builder import Model, random_array, whole
from support.module import Module, ModuleError

CASES = OP_CASES | MOVEMENT_CASES
FAMILIES = {
    "conv": ["Conv", "Conv depthwise", "Conv 1x1"],
    "conv_transposed": ["ConvTranspose"],
    "pool": ["MaxPool"],
    "copy": ["Concat", "Split", "Slice", "Transpose", "Expand", "Identity", "Pad constant", "Pad constant crop",
             "Pad edge", "Pad reflect", "Pad wrap"],
    "gather": ["Gather"],
    "index": ["GatherElements", "GatherND", "OneHot", "ReverseSequence"],
    "scatter": [f"{op} {reduction}" for reduction in REDUCTIONS for op in ("ScatterElements", "ScatterND")],
    "rearrange": ["Tile", "DepthToSpace", "SpaceToDepth", "Trilu", "EyeLike", "Size"],
    "top_k": ["TopK f32", "TopK i32", "TopK i64"],
}
CASES_IN_A_MODULE = 24


def many_cases(family):
    rng = numpy.random.default_rng(list(family.encode()))
    names = FAMILIES[family]
    return merged([CASES[names[k % len(names)]](rng) for k in range(CASES_IN_A_MODULE)])


@pytest.mark.parametrize("target, family", [(target, family) for k, target in enumerate(TARGETS)
                                            for family in (FAMILIES if target == WIDEST else half(list(FAMILIES), k))])
def test_kernels_equal_the_reference(reference, compile, tmp_path, family, target):
    model, feeds = many_cases(family)
    path = model.write(tmp_path)
    expected = reference.run(model, path, feeds)
    assert_same(run_module(compile(path, f"--target={target}"), feeds), expected)


def test_average_pool_rounds_once_more_than_the_reference(reference, compile, tmp_path):
    """Sums of integers are exact; the quotient is rounded in both, so they differ by at most half an ULP."""
    rng = numpy.random.default_rng(5)
    model, feeds = merged([CASES["AveragePool"](rng) for _ in range(CASES_IN_A_MODULE)])
    path = model.write(tmp_path)
    expected = reference.run(model, path, feeds)
    got = run_module(compile(path), feeds)
    for name, array in expected.items():
        numpy.testing.assert_array_max_ulp(got[name], array, 1)


def test_max_pool_propagates_nan_wherever_it_stands(compile, tmp_path):
    model = Model()
    model.output(model.node("MaxPool", [model.input("x", "f32", [1, 1, 6, 23])], kernel_shape=[2, 3]))
    x = whole(numpy.random.default_rng(2), 1, 1, 6, 23)
    x[0, 0, 3, 11] = numpy.nan
    y = next(iter(run_module(compile(model.write(tmp_path)), {"x": x}).values()))
    assert numpy.isnan(y[0, 0, 2:4, 9:12]).all() and numpy.isnan(y).sum() == 6


@pytest.mark.parametrize("dtype", ["f32", "f64", "i16", "u8"])
def test_matrices_larger_than_a_tile_are_transposed(run_on_target, tmp_path, dtype):
    """Matrices of whole tiles, and with 1 to 3 rows and columns more; alone, and as the last axes of others; with so
    few rows or columns that they are interleaved; and with rows of whole pages, which go through a buffer."""
    rng, model = numpy.random.default_rng(11), Model()
    feeds = {}
    few = [shape for n in (1, 2, 3, 4, 5) for shape in ((n, 75), (75, n))]
    for shape in ((64, 32), (33, 35), (70, 45), (3, 2, 38), (2, 37, 66), *few, (4096, 43)):
        x = model.input(f"x{len(feeds)}", dtype, shape)
        feeds[x] = random_array(rng, dtype, shape, -100, 100)
        model.output(model.node("Transpose", [x], perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]))
    assert_same(run_on_target(model.write(tmp_path), feeds, model.outputs), model.onnx_run(feeds))


def channels_last():
    """Convolutions to numbers of channels that fill blocks and others, blocked, then NHWC of images, and NWC of rows.
    One result has another reader; one is concatenated in place."""
    rng, model = numpy.random.default_rng(8), Model()
    N = model.dim("N", 1, 2, 3)
    x, row = model.input("x", "f32", [N, 3, 5, 7]), model.input("row", "f32", [N, 4, 9])

    def conv(value, *shape, **attributes):
        return model.node("Conv", [value, model.constant(whole(rng, *shape))], **attributes)

    parts = [conv(x, channels, 3, 2, 2) for channels in (5, 16, 20, 33, 84)]
    whole_blocks = model.node("Concat", [parts[1], conv(x, 32, 3, 2, 2)], axis=1)
    images = [*parts, whole_blocks, conv(x, 40, 3, 5, 7)]
    model.output(*(model.node("Transpose", [part], perm=[0, 2, 3, 1]) for part in images),
                 model.node("Transpose", [conv(row, 21, 4, 2)], perm=[0, 2, 1]),
                 model.node("Transpose", [parts[2]], perm=[0, 3, 2, 1]), model.node("Relu", [parts[3]]))
    return model


def test_channels_of_blocked_tensors_come_last(run_on_target, tmp_path):
    rng, model = numpy.random.default_rng(9), channels_last()
    feeds = {"x": whole(rng, 2, 3, 5, 7), "row": whole(rng, 2, 4, 9)}
    assert_same(run_on_target(model.write(tmp_path), feeds, model.outputs), model.onnx_run(feeds))


def channels_first():
    """Images with channels last, whose channels fill blocks and do not, become what convolutions read in blocks. One has
    another reader, which is row-major; two are concatenated in place; others are integers of a byte."""
    rng, model = numpy.random.default_rng(10), Model()
    N = model.dim("N", 1, 2, 3)

    def first(name, channels, dtype="f32"):
        return model.node("Transpose", [model.input(name, dtype, [N, 5, 7, channels])], perm=[0, 3, 1, 2])

    def conv(value, channels):
        return model.node("Conv", [value, model.constant(whole(rng, 6, channels, 3, 3))], pads=[1, 1, 1, 1])

    images = {channels: first(f"x{channels}", channels) for channels in (5, 16, 20, 33, 64, 84)}
    both = model.node("Concat", [images[16], images[20]], axis=1)
    scale, zero = model.constant(numpy.float32(1)), model.constant(numpy.uint8(3))
    real = model.node("DequantizeLinear", [first("bytes", 24, "u8"), scale, zero])
    model.output(*(conv(image, channels) for channels, image in images.items()), conv(both, 36), conv(real, 24),
                 model.node("Concat", [images[33], images[33]], axis=3))
    return model


def test_channels_of_blocked_tensors_come_first(run_on_target, rnncc, tmp_path):
    rng, model = numpy.random.default_rng(11), channels_first()
    feeds = {x["name"]: whole(rng, 2, *x["shape"][1:]) for x in model.inputs}
    feeds["bytes"] = numpy.abs(feeds["bytes"]).astype(numpy.uint8)
    path = model.write(tmp_path)
    assert_same(run_on_target(path, feeds, model.outputs), model.onnx_run(feeds))
    steps = rnncc("inspect", "--target=x86-64-v3", path).stdout.splitlines()
    transformed = {step.split()[1] for step in steps if "LayoutTransform" in step}
    assert len(transformed - set(model.outputs)) == 1, transformed  # for the row-major reader


def residual_network():
    """Every family with extents that are known only at run time."""
    rng, model = numpy.random.default_rng(1), Model()
    for name, smallest, largest in (("N", 1, 4), ("H", 5, 33), ("W", 5, 37)):
        model.dim(name, smallest, (smallest + largest) // 2, largest)
    x = model.input("x", "f32", ["N", 6, "H", "W"])
    weights = [model.constant(whole(rng, *shape)) for shape in ((6, 6, 3, 3), (6,), (6, 6, 3, 3), (12, 6, 3, 3))]
    first = model.node("Relu", [model.node("Conv", [x, weights[0], weights[1]], pads=[1, 1, 1, 1])])
    second = model.node("Conv", [first, weights[2]], auto_pad="SAME_UPPER")
    low, high = model.constant(numpy.float32(-500)), model.constant(numpy.float32(900))
    total = model.node("Clip", [model.node("Add", [x, second]), low, high])
    small = model.node("Conv", [total, weights[3]], strides=[2, 2], pads=[1, 1, 1, 1])
    pooled = model.node("MaxPool", [small], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    turned = model.node("Transpose", [pooled], perm=[0, 2, 3, 1])
    padded = model.node("Pad", [turned, model.constant(numpy.array([0, 1, 2, 0, 0, 0, 1, 3]))], mode="constant")
    doubled = model.node("Concat", [padded, padded], axis=3)
    bounds = [model.constant(numpy.array([bound])) for bound in (-1, -(2**63) + 1, 2, -2)]
    model.output(model.node("Slice", [doubled, *bounds]), total)
    return model


@pytest.mark.optimised_here
@pytest.mark.parametrize("extents", [(1, 5, 5), (2, 16, 16), (3, 7, 20), (4, 33, 37)], ids=str)
def test_extents_known_at_run_time(compile, tmp_path, extents):
    model = residual_network()
    N, H, W = extents
    feeds = {"x": whole(numpy.random.default_rng(3), N, 6, H, W)}
    assert_same(run_module(compile(model.write(tmp_path)), feeds), model.onnx_run(feeds))


def indexed(op, shape, computed=False, **attributes):
    """A node that reads indices in 0..6 from the input `i`, into 7 rows of 5, perhaps through an addition."""
    model = Model()
    table = model.constant(whole(numpy.random.default_rng(4), 7, 5))
    indices = model.node("Reshape", [model.input("i", "i64", [3]), model.constant(numpy.array(shape))])
    if computed:
        indices = model.node("Add", [indices, model.constant(numpy.array([0]))])
    inputs = [table, indices]
    if op.startswith("Scatter"):
        inputs.append(model.constant(whole(numpy.random.default_rng(5), *([3, 5] if op == "ScatterND" else shape))))
    model.output(model.node(op, inputs, **attributes))
    return model


GATHERS = {
    "of an input": indexed("Gather", [3]),
    "computed": indexed("Gather", [3], True),
    "of elements": indexed("GatherElements", [3, 1]),
    "of elements, computed": indexed("GatherElements", [3, 1], True),
    "by tuples": indexed("GatherND", [3, 1]),
    "scattered": indexed("ScatterElements", [3, 1], reduction="add"),
    "scattered, computed": indexed("ScatterElements", [3, 1], True, reduction="add"),
    "scattered by tuples": indexed("ScatterND", [3, 1], reduction="add"),
}


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("bad", [-8, 7, 2**62, -(2**63)])
def test_an_index_out_of_range_is_refused_and_the_next_run_is_good(compile, tmp_path, kind, bad):
    model = GATHERS[kind]
    with Module(compile(model.write(tmp_path))) as module:
        context = module.context()
        with pytest.raises(ModuleError) as refused:
            context.run({"i": numpy.array([0, bad, 1])})
        assert refused.value.status == "value"
        good = {"i": numpy.array([3, -3, 0])}
        assert_same(context.run(good), model.onnx_run(good))
        context.close()


def test_pads_below_zero_cut_off_at_either_end(compile, tmp_path):
    model, x = Model(), whole(numpy.random.default_rng(1), 5, 7)
    of, expected = model.input("x", "f32", x.shape), {}
    for pads in [(-2, 1, 0, -3), (-1, -1, 0, 0), (3, -4, -2, 2), (0, 0, -1, -5), (-4, -6, 2, 3)]:
        output = model.node("Pad", [of, model.constant(numpy.array(pads))], mode="constant")
        model.output(output)
        cut = x[max(0, -pads[0]):5 + min(0, pads[2]), max(0, -pads[1]):7 + min(0, pads[3])]
        expected[output] = numpy.pad(cut, [(max(0, pads[k]), max(0, pads[k + 2])) for k in range(2)])
    assert_same(run_module(compile(model.write(tmp_path)), {"x": x}), expected)


def made_of_shapes():
    """Tensors that T alone determines, and ops whose operands it determines."""
    model = Model()
    model.dim("T", 2, 5, 40)
    x = model.input("x", "f32", ["T", 6])

    def number(value, dtype=numpy.int64):
        return model.constant(numpy.array(value, dtype))

    length = model.node("Gather", [model.node("Shape", [x]), number(0)])
    as_list = model.node("Unsqueeze", [length, number([0])])
    real = model.node("Cast", [length], to="f32")
    half = model.node("Cast", [model.node("Floor", [model.node("Mul", [real, number(0.5, numpy.float32)])])], to="i64")
    shape = model.node("Concat", [as_list, number([3])], axis=0)
    square = model.node("MatMul", [x, model.node("Transpose", [x])])
    first_row = model.node("Slice", [x, number([0]), number([1]), number([0])])
    best, places = model.node("TopK", [x, model.node("Unsqueeze", [half, number([0])])], 2, axis=0)
    model.output(
        model.node("Range", [number(3), length, number(1)]), model.node("Range", [length, number(-1), number(-2)]),
        model.node("Range", [number(0.5, numpy.float32), real, number(0.25, numpy.float32)]),
        model.node("ConstantOfShape", [shape]), model.node("ConstantOfShape", [shape], value=numpy.array([7], numpy.float32)),
        model.node("EyeLike", [square], k=-1), model.node("EyeLike", [x], k=2),
        model.node("Trilu", [square, half]), model.node("Size", [x]), best, places,
        model.node("Tile", [x, model.node("Concat", [number([2]), as_list], axis=0)]),
        model.node("Expand", [first_row, model.node("Shape", [x])]),
        model.node("Where", [model.node("Equal", [shape, number([-1])]), number([7]), shape]))
    return model


@pytest.mark.parametrize("T", [2, 7, 33])
def test_tensors_made_of_run_time_extents(compile, tmp_path, T):
    model = made_of_shapes()
    feeds = {"x": whole(numpy.random.default_rng(T), T, 6)}
    assert_same(run_module(compile(model.write(tmp_path)), feeds), model.onnx_run(feeds))


def test_shape_of_run_time_extents(compile, tmp_path):
    model = Model()
    model.dim("T", 1, 5, 9)
    x = model.input("x", "f32", ["T", 3])
    model.output(model.node("Shape", [model.node("Concat", [x, x], axis=0)]))
    module = compile(model.write(tmp_path))
    for T in (1, 4, 9):
        assert next(iter(run_module(module, {"x": numpy.zeros((T, 3), numpy.float32)}).values())).tolist() == [2 * T, 3]
