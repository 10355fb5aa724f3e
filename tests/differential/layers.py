# SPDX-License-Identifier: MIT
"""Makers of layers: products, convolutions, pooling, normalisations, recurrent layers and quantised numbers."""
import math
from dataclasses import replace

import numpy

from differential.elementwise import FUNCTION_ERROR, converted, makes
from differential.graph import EXACT, USUAL_MOST, Unsuitable
from differential.movement import changed, like
from support.model_builder import TYPES
from support.recurrent import GATES

WINOGRAD_BOUND = 1e-4  # of the largest result, as --no-winograd's help says


def product(graph, op, inputs, shape, terms, a, b, **attributes):
    """A sum of that many products of numbers of a and of b."""
    error = terms * (a.error * b.most + b.error * a.most + a.error * b.error)
    rounding = terms * terms * a.most * b.most * 2.0**-22
    most, step = terms * a.most * b.most, a.step * b.step
    if step and not error and most / step <= EXACT[a.dtype]:
        return graph.add(op, inputs, (a.dtype, shape, most, step, 0.0), **attributes)
    return graph.add(op, inputs, (a.dtype, shape, most, 0.0, error + rounding), **attributes)


# ---- matrices ----


@makes("MatMul")
def matmul(graph, op):
    dtype = graph.draw(("f32",) * 6 + ("i32", "i64", "f64"))
    a = graph.pick(lambda v: v.dtype == dtype and v.rank and isinstance(v.shape[-1], int) and 0 < v.shape[-1] < 600, lambda: graph.fresh(dtype, graph.integer(1, 4)))
    K = a.shape[-1]
    if a.dtype[0] == "i" and a.most * K * 8 > 2**30:
        raise Unsuitable
    others = [v for v in graph.values if v.dtype == dtype and v.rank == a.rank and v.shape[:-2] == a.shape[:-2] and v.rank > 1 and v.shape[-2] == K]
    if others and graph.chance(0.4):
        b = graph.draw(others)
    else:
        b = graph.whole((K, graph.extent(48)), 2, dtype) if graph.chance(0.8) else graph.input(dtype, (K, graph.extent(33)), 2)
    shape = (*a.shape[:-1], b.shape[-1])
    if dtype[0] == "i":
        if a.most * b.most * K > 2**30:
            raise Unsuitable
        return graph.add(op, [a, b], (dtype, shape, a.most * b.most * K))
    product(graph, op, [a, b], shape, K, a, b)


@makes("Gemm")
def gemm(graph, op):
    a = graph.number(lambda v: v.rank == 2 and v.fixed, rank=2)
    turn_a, turn_b = graph.integer(0, 1), graph.integer(0, 1)
    M, K = a.shape[::-1] if turn_a else a.shape
    N = graph.extent(48)
    b = graph.whole((N, K) if turn_b else (K, N), 2)
    c = graph.draw(((), (N,), (1, N), (M, 1), (M, N), None))
    operand = None if c is None else graph.input("f32", c) if graph.chance(0.3) else graph.whole(c)
    alpha, beta = graph.draw((1.0, 0.5, 2.0)), graph.draw((1.0, -1.0, 0.5))
    terms = K + 2
    error = 2 * K * a.error * b.most
    graph.settle(op, [a, b, operand], (M, N), 2 * terms * max(1, a.most) * b.most + USUAL_MOST, a.step / 2, error and error + terms**2 * a.most * 2**-20,
                 alpha=alpha, beta=beta, transA=turn_a, transB=turn_b)


# ---- windows ----


def image(graph, suits=lambda value: True, spatial=None):
    """A value of N, C and one or two spatial axes, of which C is fixed."""
    spatial = spatial or graph.draw((1, 2, 2, 2, 3))

    def made():
        shape = (graph.draw((1, 1, 2)), graph.draw((1, 3, 4, 8, 15, 16, 17, 33)), *(graph.integer(3, (40, 13, 6)[spatial - 1]) for _ in range(spatial)))
        if spatial < 3 and graph.chance(0.3):
            shape = changed(shape, graph.draw((0, 2)), graph.dim())
        return graph.input("f32", shape)

    def fits(v):
        return v.dtype == "f32" and 3 <= v.rank <= 5 and isinstance(v.shape[1], int) and graph.never_empty(v) and suits(v) and graph.elements(v.shape) < 20000
    return graph.pick(fits, made)


def windows(graph, x, largest=3, plain=False):
    """(extents of the result, attributes, elements of a window), or Unsuitable."""
    out, kernel, strides, dilations, before, after = [], [], [], [], [], []
    for extent in x.shape[2:]:
        k = graph.draw([k for k in (1, 2, 3, 3, 5) if k <= largest])
        s, d = graph.draw((1, 1, 1, 2, 3)), 1 if plain else graph.draw((1, 1, 1, 2))
        reach = (k - 1) * d + 1
        pads = [graph.integer(0, min(k - 1, 2)) for _ in range(2)] if graph.chance(0.6) else [0, 0]
        if isinstance(extent, str) and graph.chance(0.7):
            pads = [(reach - 1) // 2, reach // 2]
        least, most = ((e + sum(pads) - reach) // s + 1 for e in (graph.least(extent), graph.largest(extent)))
        if least <= 0:
            raise Unsuitable
        out.append(graph.derived(f"({extent}+{sum(pads) - reach})/{s}+1", least, most))
        if s == 1 and sum(pads) == reach - 1:
            out[-1] = extent
        kernel.append(k), strides.append(s), dilations.append(d), before.append(pads[0]), after.append(pads[1])
    return tuple(out), {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": before + after}, math.prod(kernel)


@makes("Conv")
def conv(graph, op):
    x = image(graph)
    extents, attributes, size = windows(graph, x, 5)
    C = x.shape[1]
    groups = graph.draw([g for g in (1, 1, 1, 2, 4, C) if C % g == 0])
    kernels = groups * graph.draw((1, 1, 2) if groups == C else (1, 3, 8, 16, 17, 32))
    if kernels > 96:
        raise Unsuitable
    w = graph.whole((kernels, C // groups, *attributes["kernel_shape"]), 1)
    operands = [x, w]
    if graph.chance(0.1):
        operands[1] = graph.input("f32", w.shape, 1)
    terms = size * C // groups + 4
    if graph.chance(0.6):
        operands.append(graph.whole((kernels,)))
    del attributes["kernel_shape"]
    convolution(graph, operands, (x.shape[0], kernels, *extents), size, terms, graph_most(x), w, group=groups, **attributes)


def convolution(graph, operands, shape, size, terms, x, w, **attributes):
    """A Conv by windows of that many points. Winograd's algorithm may run it, and rounds."""
    if not graph.winograd or size == 1:
        return product(graph, "Conv", operands, shape, terms, x, w, **attributes)
    most = terms * x.most * w.most
    return graph.add("Conv", operands, ("f32", shape, most, 0.0, terms * x.error * w.most + WINOGRAD_BOUND * most), **attributes)


def graph_most(x):
    """The value, at least of the size of a bias."""
    return replace(x, most=max(x.most, 1.0))


@makes("ConvTranspose")
def conv_transpose(graph, op):
    x = image(graph, lambda v: v.shape[1] <= 40)
    C, spatial = x.shape[1], x.rank - 2
    if any(graph.least(e) <= 0 for e in x.shape[2:]):
        raise Unsuitable
    groups = graph.draw([g for g in (1, 1, 1, 2, 4, C) if C % g == 0])
    kernels = graph.draw((1, 1, 2, 4) if groups > 1 else (1, 3, 8, 16, 17))
    window, strides, dilations, more = [], [], [], []
    for _ in range(spatial):
        window.append(graph.draw((1, 2, 3, 4, 6 - spatial)))
        strides.append(graph.draw((1, 2, 2, 3, 7 - spatial)))
        dilations.append(graph.draw((1, 1, 1, 2, 3)))
        more.append(graph.integer(0, strides[-1] - 1) if graph.chance(0.3) else 0)
    extents, before, after = [], [], []
    for e, k, s, d, m in zip(x.shape[2:], window, strides, dilations, more):
        reach = (k - 1) * d + 1 + m
        pads = [graph.integer(0, 2) for _ in range(2)] if graph.chance(0.5) else [0, 0]
        least, most = ((n - 1) * s + reach - sum(pads) for n in (graph.least(e), graph.largest(e)))
        if least <= 0:
            raise Unsuitable
        extents.append(graph.derived(f"({e}-1)*{s}+{reach - sum(pads)}", least, most))
        before.append(pads[0]), after.append(pads[1])
    operands = [x, graph.whole((C, kernels, *window), 1)]
    if graph.chance(0.5):
        operands.append(graph.whole((kernels * groups,)))
    terms = C // groups * math.prod(window) + 4
    product(graph, op, operands, (x.shape[0], kernels * groups, *extents), terms, graph_most(x), operands[1], group=groups, strides=strides,
            dilations=dilations, output_padding=more, pads=before + after)


@makes("MaxPool", "AveragePool", "LpPool")
def pool(graph, op):
    x = image(graph)
    if op == "LpPool":
        x = graph.within(x, 64)
    extents, attributes, size = windows(graph, x, plain=op != "MaxPool")
    if any(p >= k for p, k in zip(attributes["pads"], attributes["kernel_shape"] * 2)):
        raise Unsuitable
    shape = (*x.shape[:2], *extents)
    if op == "MaxPool":
        return graph.add(op, [x], like(x, shape), **attributes)
    if op == "AveragePool":
        count = graph.integer(0, 1)
        return graph.add(op, [x], ("f32", shape, x.most, 0.0, x.error + x.most * size * 2.0**-22), count_include_pad=count, **attributes)
    most = x.most * math.sqrt(size)
    error = math.sqrt(size * (2 * x.most * x.error + x.error**2)) + most * size * 2.0**-20
    graph.add(op, [x], ("f32", shape, most, 0.0, error + math.sqrt(x.most * size * 2**-22) * (x.step == 0)), p=2, **attributes)


@makes("GlobalMaxPool", "GlobalAveragePool")
def global_pool(graph, op):
    x = image(graph, graph.never_empty)
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
    if op == "GlobalMaxPool":
        return graph.add(op, [x], like(x, shape))
    terms = graph.elements(x.shape[2:])
    graph.add(op, [x], ("f32", shape, x.most, 0.0, x.error + x.most * terms * 2.0**-22))


@makes("Resize")
def resize(graph, op):
    x = image(graph, lambda v: v.rank == 4 and v.fixed and graph.elements(v.shape) < 4000, 2)
    scales = graph.constant(numpy.array([1, 1, *(graph.draw((1, 2, 3)) for _ in range(2))], numpy.float32))
    factors = graph.model.arrays[scales.name] if scales.name in graph.model.arrays else None
    shape = tuple(int(e * f) for e, f in zip(x.shape, factors))
    if graph.chance(0.6):
        return graph.add(op, [x, None, scales], like(x, shape), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    graph.add(op, [x, None, scales], ("f32", shape, x.most, 0.0, x.error + x.most * 2.0**-18), mode="linear",
              coordinate_transformation_mode=graph.draw(("half_pixel", "align_corners", "asymmetric")))


# ---- normalisations: quotients by a deviation of at least sqrt(epsilon) ----

EPSILON = 0.25


@makes("BatchNormalization")
def batch_norm(graph, op):
    x = image(graph)
    vectors = [graph.whole((x.shape[1],), 2) for _ in range(3)]
    variance = graph.constant(graph.draw((numpy.ones, lambda n, t: numpy.full(n, 4, t)))(x.shape[1], numpy.float32))
    most = 2 * (x.most + 2) + 2
    graph.add(op, [x, *vectors, variance], ("f32", x.shape, most, 0.0, 2 * x.error + most * 2.0**-18), epsilon=graph.draw((1e-5, 1e-3)))


def normalised(graph, op, inputs, x, terms, most, **attributes):
    """The deviation's own error changes a result by its relative error, and by 2 / sqrt(epsilon) for each of x."""
    error = most * (x.error * 4 / math.sqrt(EPSILON) + max(1, x.most) * terms * 2.0**-20)
    if error > most:
        raise Unsuitable
    graph.add(op, inputs, ("f32", x.shape, most * math.sqrt(terms) + USUAL_MOST, 0.0, error * math.sqrt(terms) + FUNCTION_ERROR * most), epsilon=EPSILON, **attributes)


@makes("LayerNormalization", "RMSNormalization", "LpNormalization")
def layer_norm(graph, op):
    if graph.peer and op == "RMSNormalization":
        raise Unsuitable
    x = graph.within(graph.number(lambda v: v.rank and isinstance(v.shape[-1], int) and 0 < v.shape[-1] < 200), 16)
    n = x.shape[-1]
    if op == "LpNormalization":
        x = graph.add("Abs", [x], like(x, x.shape))
        x = graph.settle("Add", [x, graph.scalar(1)], x.shape, x.most + 1, x.step, x.error)
        return graph.add(op, [x], ("f32", x.shape, 1.0, 0.0, 2 * x.error + n * FUNCTION_ERROR), axis=-1, p=graph.draw((1, 2)))
    scale = graph.whole((n,), 2)
    bias = [graph.whole((n,))] if op == "LayerNormalization" and graph.chance(0.5) else []
    normalised(graph, op, [x, scale, *bias], x, n, 2.0, axis=-1)


@makes("InstanceNormalization", "GroupNormalization")
def channel_norm(graph, op):
    x = graph.within(image(graph, lambda v: graph.never_empty(v) and v.shape[1] * graph.elements(v.shape[2:]) < 600), 16)
    C = x.shape[1]
    groups = C if op == "InstanceNormalization" else graph.draw([g for g in (1, 2, 4) if C % g == 0])
    attributes = {} if op == "InstanceNormalization" else {"num_groups": groups}
    normalised(graph, op, [x, graph.whole((C,), 2), graph.whole((C,))], x, C // groups * graph.elements(x.shape[2:]), 2.0, **attributes)


@makes("LRN")
def lrn(graph, op):
    x = graph.within(image(graph, lambda v: v.rank == 4), 16)
    graph.add(op, [x], ("f32", x.shape, x.most, 0.0, 2 * x.error + x.most * 2.0**-17), size=graph.draw((1, 3, 5)), alpha=1e-2, bias=1.0)


# ---- recurrent layers ----


@makes(*GATES)
def recurrent(graph, op):
    """Weights so small that a step contracts: errors do not grow."""
    x = graph.within(graph.number(lambda v: v.rank == 3 and isinstance(v.shape[2], int) and 0 < v.shape[2] < 100 and graph.never_empty(v)
                                  and v.error < 1e-3 and graph.largest(v.shape[0]) <= 33, rank=3), 8)
    T, B, I = x.shape
    H, gates = graph.draw((1, 3, 8, 15, 16, 17, 33)), GATES[op]
    direction = graph.draw(("forward", "forward", "reverse", "bidirectional"))
    D = 2 if direction == "bidirectional" else 1
    def weights(*shape, scale):
        array = (graph.rng.uniform(-1, 1, shape) * scale).astype(numpy.float32)
        return graph.constant(array, 0.0)
    W, R = weights(D, gates * H, I, scale=0.5 / I), weights(D, gates * H, H, scale=0.5 / H)
    inputs = [x, W, R, weights(D, 2 * gates * H, scale=0.5) if graph.chance(0.7) else None]
    if graph.chance(0.4):
        inputs += [None, graph.input("f32", (D, B, H), 1)]
        if op == "LSTM" and graph.chance(0.5):
            inputs.append(graph.input("f32", (D, B, H), 1))
    attributes = {"direction": direction, "hidden_size": H}
    if op == "GRU":
        attributes["linear_before_reset"] = graph.integer(0, 1)
    steps = graph.largest(T)
    error = (2 * x.error + 2 * steps * FUNCTION_ERROR) * (1 if op == "RNN" else 2)
    results = [("f32", (T, D, B, H), 1.0, 0.0, error), ("f32", (D, B, H), 1.0, 0.0, error)]
    if op == "LSTM" and graph.chance(0.5):
        results.append(("f32", (D, B, H), float(steps), 0.0, error * 2))
    graph.add(op, inputs, *results, **attributes)


# ---- quantised numbers: scales are powers of two ----


SCALES = (0.25, 0.5, 1.0, 2.0)


def one_or_each(graph, choices, count, dtype="f32"):
    """A number for all, or one for each of so many: the constant's name, and the least and the largest of them."""
    each = isinstance(count, int) and 0 < count < 100 and graph.chance(0.4)
    numbers = [graph.draw(choices) for _ in range(count if each else 1)]
    constant = graph.constant(numpy.array(numbers if each else numbers[0]).astype(TYPES[dtype][0]))
    return constant.name, min(numbers), max(numbers)


@makes("QuantizeLinear", "DequantizeLinear")
def quantise(graph, op):
    """To eight bits and back, or only one of both; by one scale or one for each place of an axis."""
    x = graph.pick(lambda v: v.dtype == "f32" and v.exact and v.step, graph.number)
    axis = graph.integer(0, max(0, x.rank - 1))
    scale, least, most = one_or_each(graph, SCALES, x.shape[axis] if x.rank else 0)
    shape, dtype = graph.model.arrays[scale].shape, graph.draw(("u8", "i8"))
    zeros = (0, 3, 128, 255) if dtype == "u8" else (0, 0, -5, 127, -128)
    zero = graph.constant(numpy.array([graph.draw(zeros) for _ in range(math.prod(shape))]).reshape(shape).astype(TYPES[dtype][0])).name
    attributes = {"axis": axis} if shape else {}
    y = graph.add("QuantizeLinear", [x, scale, zero], (dtype, x.shape, 255.0 if dtype == "u8" else 128.0), **attributes)
    if graph.chance(0.85):
        graph.add("DequantizeLinear", [y, scale, zero], ("f32", y.shape, 256 * most, least), **attributes)


@makes("QLinearConv", "QLinearMatMul")
def quantised_layer(graph, op):
    """Written as DequantizeLinear around an operator, which becomes one of integers."""
    x = image(graph, lambda v: v.exact and v.step, 2) if op == "QLinearConv" else graph.number(lambda v: v.rank > 1 and isinstance(v.shape[-1], int) and v.shape[-1] > 0 and v.exact and v.step)
    scale, zero = graph.scalar(graph.draw((0.25, 0.5, 1.0))), graph.scalar(graph.draw((0, 128)), "u8")
    factor = float(graph.model.arrays[scale])
    q = graph.add("QuantizeLinear", [x, scale, zero], ("u8", x.shape, 255.0))
    d = graph.add("DequantizeLinear", [q, scale, zero], ("f32", x.shape, 256 * factor, factor))
    def weight(shape, axis):
        w = graph.whole(shape, 7, "i8")
        by, least, most = one_or_each(graph, SCALES, shape[axis])
        none = graph.constant(numpy.zeros(graph.model.arrays[by].shape, numpy.int8)).name
        return graph.add("DequantizeLinear", [w, by, none], ("f32", shape, 7 * most, least), axis=axis)
    if op == "QLinearConv":
        extents, attributes, size = windows(graph, x)
        kernels = graph.draw((1, 8, 16, 17, 32))
        w = weight((kernels, x.shape[1], *attributes.pop("kernel_shape")), 0)
        y = convolution(graph, [d, w], (x.shape[0], kernels, *extents), size, size * x.shape[1], d, w, **attributes)
    else:
        w = weight((x.shape[-1], graph.extent(33)), 1)
        y = product(graph, "MatMul", [d, w], (*x.shape[:-1], w.shape[1]), x.shape[-1], d, w)
    if y.exact and y.step and graph.chance(0.7):
        if graph.chance(0.5):
            y = graph.add("Relu", [y], like(y, y.shape))
        to = graph.scalar(graph.draw((4.0, 16.0)))
        q = graph.add("QuantizeLinear", [y, to, zero], ("u8", y.shape, 255.0))
        graph.add("DequantizeLinear", [q, to, zero], ("f32", y.shape, 4096.0, 4.0))


@makes("MatMulInteger", "ConvInteger")
def integer_product(graph, op):
    x = image(graph, lambda v: v.exact and v.step, 2) if op == "ConvInteger" else graph.number(lambda v: v.rank > 1 and isinstance(v.shape[-1], int) and v.shape[-1] > 0 and v.exact and v.step)
    a = converted(graph, x, "u8")
    if op == "ConvInteger":
        extents, attributes, size = windows(graph, x, plain=True)
        kernels = graph.draw((1, 8, 17))
        b = graph.whole((kernels, x.shape[1], *attributes.pop("kernel_shape")), 100, "u8" if graph.peer else "i8")
        shape, terms = (x.shape[0], kernels, *extents), size * x.shape[1]
    else:
        b, attributes, terms = graph.whole((x.shape[-1], graph.extent(33)), 100, "i8"), {}, x.shape[-1]
        shape = (*x.shape[:-1], b.shape[1])
    zero = [graph.scalar(graph.integer(0, 200), "u8")] if graph.chance(0.5) else []
    if zero and op == "MatMulInteger" and graph.chance(0.5):
        zero.append(one_or_each(graph, (0, -3, 27), shape[-1], "i8")[0])
    y = graph.add(op, [a, b, *zero], ("i32", shape, terms * 255.0 * 130), **attributes)
    graph.add("Cast", [graph.within(y, 2**20)], ("f32", shape, min(y.most, 2.0**20)), to="f32")
