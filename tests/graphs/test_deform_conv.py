# SPDX-License-Identifier: MIT
"""DeformConv: groups, offset groups, masks, biases, strides, dilations, pads; on every target and any number of threads, at
all edges of a kernel's blocks, against double precision and ONNX's reference evaluator."""
import functools

import numpy
import onnx
import onnx.reference
import pytest

from support.emitted import TARGETS, run_module
from support.model_builder import Model

EPSILON = 2.0**-24
UNSUPPORTED, INVALID = 3, 2


def expected_of(x, w, offset, bias=None, mask=None, group=1, offset_group=1, strides=(1, 1), dilations=(1, 1), pads=(0,) * 4):
    """In double, by an image with a border of zeros that is wider than any offset reaches. Also a bound of the sums: of
    the magnitudes of what is added."""
    x, w, offset = (a.astype(float) for a in (x, w, offset))
    N, C, H, W = x.shape
    M, own, R, S = w.shape
    OH, OW = offset.shape[2:]
    offset = offset.reshape(N, offset_group, R, S, 2, OH, OW)
    mask = numpy.ones((N, offset_group, R, S, OH, OW)) if mask is None else mask.astype(float).reshape(N, offset_group, R, S, OH, OW)
    edge = 4
    wide = numpy.pad(x, [(0, 0), (0, 0), (edge, edge), (edge, edge)])
    i, j = numpy.arange(OH)[:, None], numpy.arange(OW)[None, :]
    y = numpy.zeros((N, M, OH, OW)) + (0 if bias is None else bias.astype(float)[None, :, None, None])
    magnitude = abs(y)
    for n, c, r, s in numpy.ndindex(N, C, R, S):
        g = c * offset_group // C
        down = i * strides[0] - pads[0] + r * dilations[0] + offset[n, g, r, s, 0]
        right = j * strides[1] - pads[1] + s * dilations[1] + offset[n, g, r, s, 1]
        down, right = numpy.clip(down, -2, H + 1) + edge, numpy.clip(right, -2, W + 1) + edge
        top, left = numpy.floor(down).astype(int), numpy.floor(right).astype(int)
        v, h = down - top, right - left
        plane = wide[n, c]
        samples = (plane[top, left] * (1 - v) * (1 - h) + plane[top, left + 1] * (1 - v) * h +
                   plane[top + 1, left] * v * (1 - h) + plane[top + 1, left + 1] * v * h) * mask[n, g, r, s]
        for m in range(c // own * (M // group), (c // own + 1) * (M // group)):
            y[n, m] += w[m, c % own, r, s] * samples
            magnitude[n, m] += abs(w[m, c % own, r, s]) * abs(x[n, c]).max() * abs(mask[n, g, r, s])
    return y, magnitude


def out_extent(extent, kernel, stride, dilation, pads):
    return (extent + pads - (kernel - 1) * dilation - 1) // stride + 1


def some(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(numpy.float32)


def random_node(rng, N=None, planes=((3, 20), (3, 20)), group=None, kernels=None, channels=None):
    """(arrays by name, attributes)"""
    group = group or int(rng.choice([1, 1, 2, 3]))
    own, per_group = channels or int(rng.integers(1, 6)), kernels or int(rng.integers(1, 12))
    C, M = own * group, per_group * group
    offset_group = int(rng.choice([d for d in range(1, C + 1) if C % d == 0]))
    kernel = [int(k) for k in rng.integers(1, 4, 2)]
    strides, dilations = ([int(k) for k in rng.integers(1, 3, 2)] for _ in range(2))
    pads = [int(k) for k in rng.integers(0, 3, 4)]
    H, W = (int(rng.integers(max(low, (k - 1) * d + 1), high)) for (low, high), k, d in zip(planes, kernel, dilations))
    OH, OW = (out_extent(e, k, s, d, pads[i] + pads[i + 2]) for i, (e, k, s, d) in enumerate(zip((H, W), kernel, strides, dilations)))
    N, taps = N or int(rng.integers(1, 4)), offset_group * kernel[0] * kernel[1]
    arrays = {"x": some(rng, N, C, H, W), "w": some(rng, M, own, *kernel), "offset": 2.5 * some(rng, N, 2 * taps, OH, OW)}
    arrays["bias"] = some(rng, M) if rng.integers(2) else None
    arrays["mask"] = some(rng, N, taps, OH, OW) if rng.integers(2) else None
    return arrays, dict(group=group, offset_group=offset_group, strides=strides, dilations=dilations, pads=pads)


def model_of(nodes, constant_weights=True):
    """A model of these nodes, and what it is fed."""
    model, feeds = Model(), {}
    for k, (arrays, attributes) in enumerate(nodes):
        names = []
        for name, array in arrays.items():
            if array is not None and name in ("w", "bias") and constant_weights:
                names.append(model.constant(array))
            elif array is not None:
                names.append(model.input(f"{name}{k}", "f32", array.shape))
                feeds[names[-1]] = array
            else:
                names.append(None)
        model.output(model.node("DeformConv", names, **attributes))
    return model, feeds


def close(got, node, expected=None):
    """Each of the sum's products and additions is rounded; a sample's place and its four weights are, some ten times. expected:
    expected_of() the node, where that is known."""
    arrays, attributes = node
    y, magnitude = expected or expected_of(**arrays, **attributes)
    assert got.shape == y.shape
    count = numpy.prod(arrays["w"].shape[1:]) + 12
    assert (abs(got - y) <= count * EPSILON * magnitude + 1e-30).all(), abs(got - y).max()


@pytest.mark.parametrize("seed", range(6))
def test_kernels_agree_with_double_precision(run_on_target, tmp_path, seed):
    rng = numpy.random.default_rng([seed, 18])
    nodes = [random_node(rng) for _ in range(6)]
    model, feeds = model_of(nodes, constant_weights=seed % 2 == 0)
    got = run_on_target(model.write(tmp_path), feeds, model.outputs)
    for name, node in zip(model.outputs, nodes):
        close(got[name], node)


@pytest.mark.parametrize("seed", range(4))
def test_the_reference_agrees_with_double_precision(reference, tmp_path, seed):
    nodes = [random_node(numpy.random.default_rng([seed, k])) for k in range(4)]
    model, feeds = model_of(nodes)
    got = reference.run(model, model.write(tmp_path), feeds)
    for name, node in zip(model.outputs, nodes):
        close(got[name], node)


@functools.cache
def nodes_at_every_edge():
    """Each number of kernels up to two tiles, and of outputs around whole vectors; more channels than fit at a time. And
    expected_of() each, which is the same on every target."""
    rng = numpy.random.default_rng(5)
    nodes = [random_node(rng, N=1, group=1, kernels=kernels) for kernels in range(1, 18)]
    nodes += [random_node(rng, N=2, planes=((9, 10), (width, width + 1)), group=1) for width in (7, 8, 9, 15, 16, 17, 33, 63, 64, 65)]
    nodes += [random_node(rng, N=1, planes=((12, 13), (12, 13)), group=1, kernels=9, channels=2500)]
    return nodes, [expected_of(**arrays, **attributes) for arrays, attributes in nodes]


@pytest.mark.parametrize("target", TARGETS)
def test_every_edge_of_the_blocks(compile, tmp_path, target):
    nodes, expected = nodes_at_every_edge()
    model, feeds = model_of(nodes)
    got = run_module(compile(model.write(tmp_path), f"--target={target}"), feeds)
    for name, node, due in zip(model.outputs, nodes, expected, strict=True):
        close(got[name], node, due)


@pytest.mark.parametrize("opset", [19, 22])
@pytest.mark.parametrize("seed", range(4))
def test_onnx_files_agree_with_onnxs_evaluator(compile, tmp_path, opset, seed):
    """Its places go through GridSample's coordinates, in f32 and back: 8 more roundings of a place of up to 12 pixels, in
    each of which a sample changes by up to 2."""
    rng = numpy.random.default_rng([seed, opset])
    arrays, attributes = node = random_node(rng, N=1, planes=((4, 8), (4, 8)), kernels=2, channels=2)
    model, feeds = model_of([node])
    model.opset = opset
    onnx.save(model.onnx(), tmp_path / "deform.onnx")
    got = run_module(compile(tmp_path / "deform.onnx"), feeds)[model.outputs[0]]
    close(got, node)
    peer = onnx.reference.ReferenceEvaluator(model.onnx()).run(None, feeds)[0]
    terms = numpy.prod(arrays["w"].shape[1:])
    numpy.testing.assert_allclose(got, peer, rtol=0, atol=terms * (12 + 8 * 12 * 2) * EPSILON)


def test_offsets_that_a_convolution_makes_at_run_time_extents(compile, tmp_path):
    """As networks have it: offsets and masks of convolutions, over images whose batch, height and width the run knows."""
    rng = numpy.random.default_rng(11)
    model = Model()
    x = model.input("x", "f32", [model.dim("N", 1, 2, 3), 4, model.dim("H", 5, 20, 40), model.dim("W", 5, 20, 40)])
    weights = {"offset": some(rng, 36, 4, 3, 3), "mask": some(rng, 18, 4, 3, 3), "w": some(rng, 6, 4, 3, 3), "bias": some(rng, 6)}
    names = {name: model.constant(array) for name, array in weights.items()}
    around = dict(pads=[1, 1, 1, 1], strides=[2, 1])
    offset = model.node("Conv", [x, names["offset"]], **around)
    mask = model.node("Sigmoid", [model.node("Conv", [x, names["mask"]], **around)])
    model.output(model.node("DeformConv", [x, names["w"], offset, names["bias"], mask], offset_group=2, **around), offset, mask)
    path = compile(model.write(tmp_path))
    for n, h, w in [(1, 5, 5), (3, 20, 17), (2, 40, 39)]:
        image = some(rng, n, 4, h, w)
        y, offset, mask = run_module(path, {"x": image}).values()
        close(y, (dict(x=image, w=weights["w"], offset=offset, bias=weights["bias"], mask=mask), dict(offset_group=2, **around)))


def test_offsets_of_nothing_are_a_convolution(compile, tmp_path):
    """Of small integers, exactly."""
    rng = numpy.random.default_rng(3)
    x, w = (rng.integers(-3, 4, shape).astype(numpy.float32) for shape in [(2, 6, 9, 11), (8, 3, 3, 3)])
    model = Model()
    given, weights = model.input("x", "f32", x.shape), model.constant(w)
    attributes = dict(group=2, pads=[1, 0, 2, 1], strides=[1, 2], dilations=[2, 1])
    offset = model.constant(numpy.zeros((2, 18, 8, 5), numpy.float32))
    model.output(model.node("DeformConv", [given, weights, offset], **attributes), model.node("Conv", [given, weights], **attributes))
    deformed, plain = run_module(compile(model.write(tmp_path)), {"x": x}).values()
    assert (deformed == plain).all()


def test_samples_far_outside_are_zero(compile, tmp_path):
    places = numpy.array([3e38, -3e38, numpy.inf, -numpy.inf, numpy.nan, 1e9, -1e9, -1.0, 4.0, 0.0], numpy.float32)
    offset = numpy.zeros((1, 2, 10, 10), numpy.float32)
    offset[0, 0], offset[0, 1] = numpy.meshgrid(places, places, indexing="ij")
    grid = numpy.arange(10, dtype=numpy.float32)
    offset[0, 0] -= grid[:, None]
    offset[0, 1] -= grid[None, :]
    x = numpy.full((1, 1, 10, 10), 7, numpy.float32)
    model, feeds = model_of([(dict(x=x, w=numpy.ones((1, 1, 1, 1), numpy.float32), offset=offset), {})])
    got = run_module(compile(model.write(tmp_path)), feeds)[model.outputs[0]][0, 0]
    inside = numpy.isin(numpy.arange(10), [8, 9])
    assert (got == numpy.where(inside[:, None] & inside[None, :], 7, 0)).all()


def test_halves_are_computed_in_f32(compile, tmp_path):
    rng = numpy.random.default_rng(2)
    arrays, attributes = random_node(rng)
    halves = {name: None if a is None else a.astype(numpy.float16) for name, a in arrays.items()}
    model = Model()
    feeds = {name: a for name, a in halves.items() if a is not None}
    names = [model.input(name, "f16", a.shape) if a is not None else None for name, a in halves.items()]
    model.output(model.node("DeformConv", names, **attributes))
    got = run_module(compile(model.write(tmp_path)), feeds)[model.outputs[0]]
    y, magnitude = expected_of(**halves, **attributes)
    assert got.dtype == numpy.float16 and (abs(got - y) <= 2.0**-11 * abs(y) + 2.0**-15 * magnitude + 2.0**-25).all()


@pytest.mark.parametrize("change, code, said", [
    (dict(group=4), INVALID, "`group` is 4; it must divide the channels, 6"),
    (dict(group=0), INVALID, "`group` is 0"),
    (dict(offset_group=4), INVALID, "`offset_group` is 4; it must divide the channels, 6"),
    (dict(offset_group=2), INVALID, "[N, offset_group * kernel * 2, H, W of the output]"),
    (dict(strides=[2, 1]), INVALID, "H, W of the output]"),
    (dict(strides=[1]), INVALID, "`strides` has 1 numbers; 2 are needed"),
    (dict(kernel_shape=[2, 3]), INVALID, "`kernel_shape` says 2"),
    (dict(dilations=[9, 1]), INVALID, "the kernel reaches over 19"),
    (dict(auto_pad="VALID"), UNSUPPORTED, "no attribute `auto_pad`"),
    (dict(mask=[1, 8, 4, 4]), INVALID, "[N, offset_group * kernel, H, W of the output]"),
    (dict(bias=[3]), INVALID, "the bias, [M]"),
    (dict(w=[2, 5, 3, 3]), INVALID, "axis 1 must be 6"),
    (dict(x=[1, 6, 5], w=[2, 6, 3]), UNSUPPORTED, "1-D windows are not supported, only 2-D"),
    (dict(x=[1, 6, 5, 5, 5], w=[2, 6, 3, 3, 3]), UNSUPPORTED, "3-D windows are not supported, only 2-D"),
    (dict(inputs=2), INVALID, "3 to 5 inputs, found 2")])
def test_nodes_that_are_wrong_are_refused(rnncc, tmp_path, change, code, said):
    shapes = dict(x=[1, 6, 6, 6], w=[2, 6, 3, 3], offset=[1, 18, 4, 4], bias=[2], mask=[1, 9, 4, 4])
    model = Model()
    names = [model.input(name, "f32", change.get(name, shape)) for name, shape in shapes.items()]
    attributes = {name: value for name, value in change.items() if name not in shapes and name != "inputs"}
    model.output(model.node("DeformConv", names[:change.get("inputs", 5)], **attributes))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == code and said in done.stderr, done.stderr
