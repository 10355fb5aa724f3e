# SPDX-License-Identifier: MIT
"""Nodes of ONNX Runtime's domain, com.microsoft, of every form: CONTRIB[name](rng) -> (op, arrays, outputs, attributes).
An array of None is absent, an output of 0 is not wanted, one of 2 is not
compared, a Constant is known when compiling. Scales of quantised tensors are powers of two, so that only the
last rounding matters."""
import functools

import ml_dtypes
import numpy

from graphs.op_models import uniform

CONTRIB = {}


class Constant(numpy.ndarray):
    pass


def constant(array):
    return numpy.array(array).view(Constant)


def add(name, op, arrays, outputs=(1,), **attributes):
    """arrays: a function of rng."""
    CONTRIB[name] = lambda rng: (op, arrays(rng), outputs, attributes)


def bytes_of(rng, dtype, *shape):
    limits = numpy.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def weights_of(rng, *shape):
    """Signed bytes of 7 bits: else sums of two products with unsigned ones would saturate in ONNX Runtime, on a CPU without
    VNNI."""
    return bytes_of(rng, I8, *shape) // 2


# Products and convolutions

def conv(rng, bias=False, added=False):
    inputs = [uniform(rng, 2, 3, 7, 9), uniform(rng, 5, 3, 3, 3) / 4, uniform(rng, 5) if bias else None]
    return inputs + ([uniform(rng, 2, 5, 7, 9)] if added else [])


PADS = {"pads": [1, 1, 1, 1]}
add("FusedConv", "FusedConv", conv, **PADS)
for bias, added in ((0, 1), (1, 0), (1, 1)):
    add(f"FusedConv, bias {bias}, sum {added}, Relu", "FusedConv", functools.partial(conv, bias=bias, added=added),
        activation="Relu", **PADS)
for activation, numbers in {"Tanh": None, "Sigmoid": None, "LeakyRelu": [0.3], "Clip": [-0.5, 0.75],
                            "HardSigmoid": [0.3, 0.4]}.items():
    parameters = {"activation_params": numbers} if numbers else {}
    add(f"FusedConv, {activation}", "FusedConv", conv, activation=activation, strides=[2, 1], **PADS, **parameters)


def gemm(rng, turn_a, turn_b, c=None):
    a, b = uniform(rng, *((7, 3) if turn_a else (3, 7))), uniform(rng, *((5, 7) if turn_b else (7, 5)))
    return [a, b] + ([] if c is None else [uniform(rng, *c)])


for turn_a, turn_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
    add(f"FusedGemm {turn_a} {turn_b}", "FusedGemm", functools.partial(gemm, turn_a=turn_a, turn_b=turn_b, c=(5,)),
        transA=turn_a, transB=turn_b, alpha=0.5, activation="LeakyRelu", activation_alpha=0.25)
    add(f"FusedMatMul {turn_a} {turn_b}", "FusedMatMul", functools.partial(gemm, turn_a=turn_a, turn_b=turn_b),
        transA=turn_a, transB=turn_b, alpha=0.25)
add("FusedMatMul, batches", "FusedMatMul", lambda rng: [uniform(rng, 2, 3, 4, 7), uniform(rng, 2, 3, 5, 7)], transB=1)
add("FusedMatMul, a vector", "FusedMatMul", lambda rng: [uniform(rng, 2, 3, 7), uniform(rng, 7)], alpha=2.0)
add("FusedMatMul, rows before batches", "FusedMatMul",
    lambda rng: [uniform(rng, 4, 2, 3, 7), uniform(rng, 7, 2, 3, 5)], transBatchA=1, transBatchB=1)
add("FusedMatMul, columns before batches", "FusedMatMul",
    lambda rng: [uniform(rng, 7, 2, 3, 4), uniform(rng, 5, 2, 3, 7)], transBatchA=1, transA=1, transBatchB=1, transB=1)

add("CDist", "CDist", lambda rng: [uniform(rng, 7, 19), uniform(rng, 5, 19)], metric="euclidean")
add("CDist, squared, of doubles", "CDist",
    lambda rng: [uniform(rng, 3, 4).astype(numpy.float64), uniform(rng, 1, 4).astype(numpy.float64)], metric="sqeuclidean")

# Activations

add("Gelu", "Gelu", lambda rng: [uniform(rng, 3, 17)])
add("BiasGelu", "BiasGelu", lambda rng: [uniform(rng, 2, 3, 17), uniform(rng, 17)])
add("FastGelu", "FastGelu", lambda rng: [uniform(rng, 3, 17)])
add("FastGelu with a bias", "FastGelu", lambda rng: [uniform(rng, 2, 3, 17), uniform(rng, 17)])
add("QuickGelu", "QuickGelu", lambda rng: [uniform(rng, 3, 17)])
add("QuickGelu, alpha", "QuickGelu", lambda rng: [uniform(rng, 3, 17)], alpha=0.5)


# Normalisations

def skip(rng, beta=True, bias=True, simplified=False, skip_shape=(2, 3, 17)):
    vectors = [uniform(rng, 17)] + ([] if simplified else [uniform(rng, 17) if beta else None])
    return [uniform(rng, 2, 3, 17), uniform(rng, *skip_shape), *vectors, uniform(rng, 17) if bias else None]


for beta in (0, 1):
    for bias in (0, 1):
        add(f"SkipLayerNormalization, beta {beta}, bias {bias}", "SkipLayerNormalization",
            functools.partial(skip, beta=beta, bias=bias), (1, 0, 0, 1) if bias else (1,), epsilon=0.01)
        add(f"SkipSimplifiedLayerNormalization, bias {bias}, sum {beta}", "SkipSimplifiedLayerNormalization",
            functools.partial(skip, bias=bias, simplified=True), (1, 0, 0, 1) if beta else (1,))
for shape in ((1, 3, 17), (3, 17)):
    add(f"SkipLayerNormalization, {len(shape)} axes added", "SkipLayerNormalization",
        functools.partial(skip, skip_shape=shape))


def embeddings(rng, segments=True, mask=True, positions=None):
    ids = functools.partial(rng.integers, 0, 5, (2, 3), numpy.int32)
    tables = [uniform(rng, 5, 9), uniform(rng, 7, 9), uniform(rng, 5, 9) if segments else None]
    places = None if positions is None else rng.integers(0, 7, positions, numpy.int32)
    return [ids(), ids() if segments else None, *tables, uniform(rng, 9), uniform(rng, 9),
            numpy.array([[1, 1, 0], [1, 1, 1]], numpy.int32) if mask else None, places]


add("EmbedLayerNormalization", "EmbedLayerNormalization", embeddings, (1, 1, 1))
add("EmbedLayerNormalization, no segments", "EmbedLayerNormalization",
    functools.partial(embeddings, segments=False, mask=False, positions=(2, 3)), (1, 1))
add("EmbedLayerNormalization, positions", "EmbedLayerNormalization", functools.partial(embeddings, positions=(1, 3)), (1, 1))


# Attention

def attention(rng, bias=True, mask=None, past=False, added=None):
    mask = None if mask is None else numpy.array(mask, numpy.int32)
    inputs = [uniform(rng, 2, 3, 5), uniform(rng, 5, 24) / 2, uniform(rng, 24) if bias else None, mask,
              uniform(rng, 2, 2, 2, 4, 4) if past else None, uniform(rng, *added) if added else None]
    return inputs


LEFT = [[1, 1, 0], [0, 1, 1]]
add("Attention", "Attention", attention, num_heads=2)
add("Attention, masked", "Attention", functools.partial(attention, mask=LEFT), num_heads=4)
add("Attention without a bias", "Attention", functools.partial(attention, bias=False), num_heads=4)
add("Attention, causal", "Attention", attention, num_heads=2, unidirectional=1, scale=0.25)
add("Attention, lengths", "Attention", functools.partial(attention, mask=[3, 2]), num_heads=2)
add("Attention, lengths that weaken", "Attention", functools.partial(attention, mask=[2, 3]), num_heads=2,
    mask_filter_value=-1.5)
add("Attention, a mask of each query", "Attention", functools.partial(attention, mask=[LEFT * 1 + [[1, 0, 1]]] * 2),
    num_heads=2, mask_filter_value=-5.0)
add("Attention with a past", "Attention", functools.partial(attention, past=True), (1, 1), num_heads=2, unidirectional=1)
add("Attention, a sum to the scores", "Attention", functools.partial(attention, mask=LEFT, added=(1, 2, 3, 3)), num_heads=2)
add("Attention, widths", "Attention", lambda rng: [uniform(rng, 2, 3, 5), uniform(rng, 5, 22), uniform(rng, 22)],
    num_heads=2, qkv_hidden_sizes=[8, 8, 6])


def heads(rng, bias=False, mask=None, added=False, past=False):
    mask = None if mask is None else numpy.array(mask, numpy.int32)
    cache = [uniform(rng, 2, 2, 3, 4), uniform(rng, 2, 2, 3, 4)] if past else []
    return [uniform(rng, 2, 3, 8), uniform(rng, 2, 5, 8), uniform(rng, 2, 5, 8), uniform(rng, 24) if bias else None, mask,
            uniform(rng, 1, 2, 3, 8 if past else 5) if added else None, *cache]


add("MultiHeadAttention", "MultiHeadAttention", heads, num_heads=2)
add("MultiHeadAttention, bias and mask", "MultiHeadAttention",
    functools.partial(heads, bias=True, mask=[[1, 1, 0, 1, 0], [1, 0, 0, 0, 1]]), num_heads=2)
add("MultiHeadAttention, a sum to the scores", "MultiHeadAttention", functools.partial(heads, added=True), num_heads=2,
    scale=0.3)
add("MultiHeadAttention with a past", "MultiHeadAttention", functools.partial(heads, past=True, added=True), (1, 1, 1),
    num_heads=2)

def cached_heads(rng, bias=False):
    """Keys and values by heads, as a decoder has those of what it attends to."""
    return [uniform(rng, 2, 3, 8), uniform(rng, 2, 2, 5, 4), uniform(rng, 2, 2, 5, 4), uniform(rng, 24) if bias else None]


add("MultiHeadAttention, lengths", "MultiHeadAttention", functools.partial(heads, mask=[5, 2]), num_heads=2)
add("MultiHeadAttention, lengths that weaken", "MultiHeadAttention", functools.partial(heads, mask=[5, 2]), num_heads=2,
    mask_filter_value=-1.5)
add("MultiHeadAttention, lengths and a past", "MultiHeadAttention", functools.partial(heads, mask=[8, 5], past=True), (1, 1, 1),
    num_heads=2)
add("Attention, lengths, causal", "Attention", functools.partial(attention, mask=[3, 2]), num_heads=2, unidirectional=1)
add("Attention, lengths and a past", "Attention", functools.partial(attention, mask=[7, 6], past=True), (1, 1), num_heads=2)
add("MultiHeadAttention, keys by heads", "MultiHeadAttention", cached_heads, num_heads=2)
add("MultiHeadAttention, keys by heads and a bias", "MultiHeadAttention", functools.partial(cached_heads, bias=True), num_heads=2)


def grouped(rng, past=None, lengths=(5, 5), steps=3, packed=False, rotary=0, bias=False, places=False, head=16, sink=False):
    """4 heads of queries, 2 of keys. past: rows of the cache. sink: a score that each head has besides."""
    samples, keys = len(lengths), (past or 0) + steps
    widths = (8 * head,) if packed else (4 * head, 2 * head, 2 * head)
    x = [uniform(rng, samples, steps, n) for n in widths] + [None] * (3 - len(widths))
    cache = [None] * 2 if past is None else [uniform(rng, samples, 2, past, head) for _ in range(2)]
    angles = uniform(rng, 12, rotary // 2)
    tables = [numpy.cos(angles), numpy.sin(angles)] if rotary else [None] * 2
    positions = (numpy.array(lengths) - steps)[:, None] + numpy.arange(steps) if places else None
    added = uniform(rng, samples, 4, steps, keys) if bias else None
    return [*x, *cache, numpy.array(lengths, numpy.int32) - 1, numpy.array(keys, numpy.int32), *tables, positions, added, *([uniform(rng, 4)] if sink else [])]


GROUPED = {"num_heads": 4, "kv_num_heads": 2}
for name, arguments, attributes in (
        ("alone", {"lengths": (3, 3)}, {}), ("packed", {"lengths": (3, 3), "packed": True}, {"scale": 0.4}),
        ("a past", {"past": 4, "lengths": (7,)}, {}), ("lengths", {"past": 4, "lengths": (3, 5), "steps": 1}, {}),
        ("rotary", {"lengths": (3, 3), "rotary": 16}, {"do_rotary": 1}),
        ("rotary, lengths", {"past": 4, "lengths": (5, 3), "steps": 1, "rotary": 16}, {"do_rotary": 1, "rotary_interleaved": 1}),
        ("rotary of a part", {"past": 4, "lengths": (7,), "rotary": 16, "head": 32, "packed": True}, {"do_rotary": 1}),
        ("positions", {"past": 4, "lengths": (5, 5), "steps": 1, "rotary": 16, "places": True}, {"do_rotary": 1}),
        ("a window", {"past": 4, "lengths": (7,)}, {"local_window_size": 3}),
        ("a window of one", {"lengths": (3, 3)}, {"local_window_size": 1}),
        ("softcap", {"lengths": (3, 3)}, {"softcap": 1.5}), ("a sum", {"past": 4, "lengths": (7,), "bias": True}, {}),
        ("a sink", {"past": 4, "lengths": (7,), "sink": True}, {}), ("a smooth softmax", {"lengths": (3, 3)}, {"smooth_softmax": 1}),
        ("a sink, lengths and a window", {"past": 4, "lengths": (3, 5), "steps": 1, "sink": True}, {"local_window_size": 2}),
        ("both sides", {"lengths": (3, 3)}, {"causal": 0}), ("both sides, a past", {"past": 4, "lengths": (7,)}, {"causal": 0})):
    uneven = len(set(arguments["lengths"])) > 1  # then rows of the cache have no meaning, and are not compared
    add(f"GroupQueryAttention, {name}", "GroupQueryAttention", functools.partial(grouped, **arguments),
        (1, 2, 2) if uneven else (1, 1, 1), **GROUPED, **attributes)


def rotary(rng, shape=(2, 3, 32), places=((3, 4, 5), (0, 1, 2)), half=4):
    angles = uniform(rng, 12, half)
    return [uniform(rng, *shape), numpy.array(places), numpy.cos(angles), numpy.sin(angles)]


add("RotaryEmbedding", "RotaryEmbedding", rotary)
add("RotaryEmbedding, interleaved, the first place", "RotaryEmbedding", functools.partial(rotary, places=(4,)), interleaved=1)
add("RotaryEmbedding by heads", "RotaryEmbedding", functools.partial(rotary, shape=(2, 4, 3, 8)))
add("RotaryEmbedding by heads, the first place", "RotaryEmbedding", functools.partial(rotary, shape=(2, 4, 3, 8), places=(4,)))
add("RotaryEmbedding of a part", "RotaryEmbedding", functools.partial(rotary, half=2), num_heads=4, rotary_embedding_dim=4)

# What differs from ONNX's little, or not at all

add("TransposeMatMul", "TransposeMatMul", lambda rng: [uniform(rng, 2, 7, 3), uniform(rng, 7, 5)], transA=1, alpha=0.5)
add("Pad", "Pad", lambda rng: [uniform(rng, 3, 4), constant([1, 0, 2, 3]), constant(numpy.float32(0.5))])
add("Pad, reflected", "Pad", lambda rng: [uniform(rng, 3, 4), constant([1, 0, 0, 3])], mode="reflect")
add("Trilu", "Trilu", lambda rng: [uniform(rng, 2, 4, 5), constant(1)], upper=0)
add("ExpandDims", "ExpandDims", lambda rng: [uniform(rng, 3, 4), constant(numpy.int32(-2))])
add("Range", "Range", lambda rng: [constant(numpy.float32(1)), constant(numpy.float32(7.5))])
add("Range with a step", "Range", lambda rng: [constant(numpy.int64(7)), constant(numpy.int64(-2)), constant(numpy.int64(-3))])
add("GatherND", "GatherND", lambda rng: [uniform(rng, 3, 4, 5), rng.integers(0, 3, (6, 2))])
add("GridSample", "GridSample", lambda rng: [uniform(rng, 2, 3, 5, 6), uniform(rng, 2, 4, 3, 2) / 2], align_corners=1)

# Quantised numbers

U8, I8 = numpy.uint8, numpy.int8


def scale(power):
    return numpy.array(2.0**power, numpy.float32)


def zero(rng, dtype, given=True):
    return bytes_of(rng, dtype) if given else None


def binary(rng, dtype, zeros=(1, 1, 1), powers=(-3, -4, -3)):
    a, b = bytes_of(rng, dtype, 3, 1, 17), bytes_of(rng, dtype, 5, 17)
    z = [zero(rng, dtype, given) for given in zeros]
    return [a, scale(powers[0]), z[0], b, scale(powers[1]), z[1], scale(powers[2]), z[2]]


for dtype in (U8, I8):
    for op, powers in (("QLinearAdd", (-3, -4, -3)), ("QLinearMul", (-3, -4, -1))):
        for zeros in ((1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
            add(f"{op} {dtype.__name__} {zeros}", op, functools.partial(binary, dtype=dtype, zeros=zeros, powers=powers))


def unary(rng, dtype, zeros=(1, 1), powers=(-4, -4), shape=(3, 17)):
    return [bytes_of(rng, dtype, *shape), scale(powers[0]), zero(rng, dtype, zeros[0]), scale(powers[1]),
            zero(rng, dtype, zeros[1])]


for dtype in (U8, I8):
    for zeros in ((1, 1), (0, 1), (1, 0)):
        add(f"QLinearLeakyRelu {dtype.__name__} {zeros}", "QLinearLeakyRelu",
            functools.partial(unary, dtype=dtype, zeros=zeros), alpha=0.25)
        add(f"QLinearSigmoid {dtype.__name__} {zeros}", "QLinearSigmoid",
            functools.partial(unary, dtype=dtype, zeros=zeros, powers=(-5, -8)))
    add(f"QLinearGlobalAveragePool {dtype.__name__}", "QLinearGlobalAveragePool",
        functools.partial(unary, dtype=dtype, shape=(2, 5, 4, 8), powers=(-3, -5)))
    add(f"QLinearGlobalAveragePool {dtype.__name__}, channels last", "QLinearGlobalAveragePool",
        functools.partial(unary, dtype=dtype, shape=(2, 4, 8, 5), powers=(-3, -5)), channels_last=1)
    for zeros in ((1, 1), (0, 1)):
        add(f"QLinearAveragePool {dtype.__name__} {zeros}", "QLinearAveragePool",
            functools.partial(unary, dtype=dtype, zeros=zeros, shape=(2, 3, 9, 10), powers=(-3, -4)), kernel_shape=[2, 2],
            pads=[1, 1, 0, 0], strides=[2, 1], count_include_pad=1)
    for opset, axis in ((11, 1), (13, 1), (13, -1)):
        add(f"QLinearSoftmax {dtype.__name__}, opset {opset}, axis {axis}", "QLinearSoftmax",
            functools.partial(unary, dtype=dtype, shape=(3, 4, 5), powers=(-5, -8)), opset=opset, axis=axis)


def where(rng, dtype):
    x, y = bytes_of(rng, dtype, 3, 1, 17), bytes_of(rng, dtype, 5, 17)
    return [rng.integers(0, 2, (3, 5, 17)) > 0, x, scale(-3), zero(rng, dtype), y, scale(-4), zero(rng, dtype), scale(-3),
            zero(rng, dtype)]


def to_bytes(rng, dtype, axis):
    x = 50 * uniform(rng, 3, 5)
    scales = (2.0 ** rng.integers(-2, 2, 5)).astype(numpy.float32) if axis else scale(-1)
    return [x, scales, bytes_of(rng, dtype, *scales.shape)]


for dtype in (U8, I8):
    add(f"QLinearWhere {dtype.__name__}", "QLinearWhere", functools.partial(where, dtype=dtype))
    for axis in ({}, {"axis": 1}):
        name = f"{dtype.__name__} {axis}"
        add(f"QuantizeLinear {name}", "QuantizeLinear", functools.partial(to_bytes, dtype=dtype, axis=axis), **axis)
        add(f"DequantizeLinear {name}", "DequantizeLinear", lambda rng, dtype=dtype, axis=axis: [
            bytes_of(rng, dtype, 3, 5), *to_bytes(rng, dtype, axis)[1:]], **axis)
    add(f"NhwcMaxPool {dtype.__name__}", "NhwcMaxPool", lambda rng, dtype=dtype: [bytes_of(rng, dtype, 2, 7, 8, 3)],
        kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])


def conv_of_bytes(rng, last, spatial=(6, 7), b=True):
    x = bytes_of(rng, U8, 2, *spatial, 4) if last else bytes_of(rng, U8, 2, 4, *spatial)
    zeros = [zero(rng, U8), numpy.zeros((), I8), zero(rng, U8)]
    return [x, scale(-4), zeros[0], weights_of(rng, 6, 2, *[3] * len(spatial)), scale(-5), zeros[1], scale(1), zeros[2],
            rng.integers(-5000, 5000, 6).astype(numpy.int32) if b else None]


for last in (0, 1):
    add(f"QLinearConv {last}", "QLinearConv", functools.partial(conv_of_bytes, last=last), channels_last=last, group=2,
        pads=[1, 1, 1, 1], strides=[2, 1])
add("QLinearConv of a signal", "QLinearConv", functools.partial(conv_of_bytes, last=1, spatial=(9,), b=False), channels_last=1,
    group=2)
add("QLinearAveragePool, channels last", "QLinearAveragePool",
    functools.partial(unary, dtype=U8, shape=(2, 9, 10, 3), powers=(-3, -4)), kernel_shape=[2, 2], strides=[2, 1], channels_last=1)


def quantised_attention(rng, columns=False, zeros=True, mask=None, past=False, dtype=U8):
    b_scale = (2.0 ** rng.integers(-9, -6, 24)).astype(numpy.float32) if columns else scale(-8)
    mask = None if mask is None else numpy.array(mask, numpy.int32)
    inputs = [bytes_of(rng, dtype, 2, 3, 5), weights_of(rng, 5, 24), uniform(rng, 24), scale(-6), b_scale, mask,
              zero(rng, dtype, zeros), (numpy.zeros(24, I8) if columns else zero(rng, I8)) if zeros else None]
    return inputs + ([uniform(rng, 2, 2, 2, 4, 4)] if past else [])


add("QAttention", "QAttention", quantised_attention, num_heads=2)
add("QAttention, columns", "QAttention", functools.partial(quantised_attention, columns=True, mask=[3, 2]), num_heads=2)
add("QAttention, causal, masked", "QAttention", functools.partial(quantised_attention, zeros=False, mask=LEFT), num_heads=4,
    unidirectional=1)
add("QAttention with a past", "QAttention", functools.partial(quantised_attention, past=True), (1, 1), num_heads=2, unidirectional=1)


def concat(rng, dtype):
    parts = [bytes_of(rng, dtype, 3, n, 2) for n in (1, 4, 2)]
    inputs = [scale(-3), zero(rng, dtype)]
    for k, part in enumerate(parts):
        inputs += [part, scale(-2 - k), zero(rng, dtype)]
    return inputs


add("QLinearConcat uint8", "QLinearConcat", functools.partial(concat, dtype=U8), axis=1)
add("QLinearConcat int8", "QLinearConcat", functools.partial(concat, dtype=I8), axis=-2)


def qgemm(rng, turn_a=0, turn_b=0, c=True, quantised=True, columns=False):
    M, K, N = 3, 300, 5
    a, b = bytes_of(rng, U8, *((K, M) if turn_a else (M, K))), weights_of(rng, *((N, K) if turn_b else (K, N)))
    b_scale = (2.0 ** rng.integers(-6, -3, N)).astype(numpy.float32) if columns else scale(-5)
    b_zero = numpy.zeros(N, I8) if columns else zero(rng, I8)
    inputs = [a, scale(-4), zero(rng, U8), b, b_scale, b_zero]
    inputs.append(rng.integers(-5000, 5000, N).astype(numpy.int32) if c else None)
    return inputs + ([scale(2), zero(rng, U8)] if quantised else [None, None])  # ONNX Runtime reads what is absent


add("QGemm", "QGemm", qgemm)
add("QGemm of turned matrices", "QGemm", functools.partial(qgemm, turn_a=1, turn_b=1, columns=True), transA=1, transB=1)
add("QGemm in floats", "QGemm", functools.partial(qgemm, quantised=False, turn_b=1), transB=1)
add("QGemm without C", "QGemm", functools.partial(qgemm, c=False))


def to_float(rng, zeros=(1, 1), bias=True):
    inputs = [bytes_of(rng, U8, 2, 3, 40), weights_of(rng, 40, 5), scale(-4), scale(-5),
              zero(rng, U8, zeros[0]), zero(rng, I8, zeros[1]), uniform(rng, 5)]
    return inputs if bias else inputs[:6]


for zeros in ((1, 1), (0, 1), (1, 0), (0, 0)):
    add(f"MatMulIntegerToFloat {zeros}", "MatMulIntegerToFloat", functools.partial(to_float, zeros=zeros))
add("MatMulIntegerToFloat without a bias", "MatMulIntegerToFloat", functools.partial(to_float, bias=False))
for given in (0, 1):
    add(f"DynamicQuantizeMatMul {given}", "DynamicQuantizeMatMul", lambda rng, given=given: [
        uniform(rng, 2, 3, 40), weights_of(rng, 40, 5), scale(-5), zero(rng, I8, given), uniform(rng, 5) if given else None])


def in_bits(rng, bits, K=40, N=5, block=16, zeros=None, bias=False, folded=True, flat=False):
    """A product with weights in blocks; constants as models have them, or known only when running. zeros: a type."""
    blocks = -(-K // block)
    known = constant if folded else numpy.asarray
    packed = -(-blocks * bits // 8)
    points = {None: None, U8: bytes_of(rng, U8, N * packed) if flat else bytes_of(rng, U8, N, packed),
              numpy.float32: rng.integers(0, 2**bits, (N, blocks)).astype(numpy.float32)}[zeros]
    scales = rng.uniform(-0.1, 0.1, (N * blocks,) if flat else (N, blocks)).astype(numpy.float32)
    return [uniform(rng, 2, 3, K), known(bytes_of(rng, U8, N, blocks, block * bits // 8)), known(scales),
            None if points is None else known(points), None, known(uniform(rng, N)) if bias else None]


for bits in (2, 4, 8):
    for zeros in (None, U8, numpy.float32):
        if zeros is numpy.float32 and bits != 4:
            continue  # ONNX Runtime's CPU kernel reads them of 4 bits only
        K = 64 if zeros is U8 else 40
        add(f"MatMulNBits, {bits}, {zeros and zeros.__name__}", "MatMulNBits",
            functools.partial(in_bits, bits=bits, K=K, zeros=zeros, bias=zeros is None), K=K, N=5, bits=bits, block_size=16)
add("MatMulNBits at run time", "MatMulNBits", functools.partial(in_bits, bits=4, zeros=U8, folded=False), K=40, N=5, bits=4,
    block_size=16, accuracy_level=1)
add("MatMulNBits, in a row", "MatMulNBits", functools.partial(in_bits, bits=4, K=70, zeros=U8, flat=True, block=32), K=70, N=5,
    bits=4, block_size=32)


def blocks_of(rng, bits=4, zeros=True, shape=(7, 48), block=16):
    columns = -(-shape[1] // block)
    return [constant(bytes_of(rng, U8, shape[0], shape[1] * bits // 8)), rng.integers(0, 7, (2, 3)),
            constant(uniform(rng, shape[0], columns)),
            constant(bytes_of(rng, U8, shape[0], -(-columns * bits // 8))) if zeros else None]


for bits in (2, 4, 8):
    for zeros in (0, 1):
        add(f"GatherBlockQuantized, {bits}, {zeros}", "GatherBlockQuantized", functools.partial(blocks_of, bits=bits, zeros=zeros),
            bits=bits, block_size=16, quantize_axis=-1)


def blocks_of_four(rng, dtype, gather, quantised, zeros=True):
    shape = [6, 20, 3]
    limits = {"uint4": (0, 16), "int4": (-8, 8)}[dtype]

    def four(*extents):
        return constant(rng.integers(*limits, extents).astype(numpy.int8).astype(getattr(ml_dtypes, dtype)))
    blocks = [-(-n // 16) if axis == quantised else n for axis, n in enumerate(shape)]
    return [four(*shape), rng.integers(-3, 3, 4).astype(numpy.int32), constant(uniform(rng, *blocks)),
            four(*blocks) if zeros else None]


for dtype in ("uint4", "int4"):
    for gather, quantised, zeros in ((0, 1, 1), (1, 1, 1), (2, 1, 0)):
        add(f"GatherBlockQuantized, {dtype}, {gather}, {quantised}", "GatherBlockQuantized",
            functools.partial(blocks_of_four, dtype=dtype, gather=gather, quantised=quantised, zeros=zeros), gather_axis=gather,
            quantize_axis=quantised, block_size=16)
