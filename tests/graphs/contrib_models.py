# SPDX-License-Identifier: MIT
"""Nodes of ONNX Runtime's domain, com.microsoft, of every form: CONTRIB[name](rng) -> (op, arrays, outputs, attributes).
An array of None is absent, an output of 0 is not wanted. Scales of quantised tensors are powers of two, so that only the
last rounding matters."""
import functools

import numpy

CONTRIB = {}


def add(name, op, arrays, outputs=(1,), **attributes):
    """arrays: a function of rng."""
    CONTRIB[name] = lambda rng: (op, arrays(rng), outputs, attributes)


def uniform(rng, *shape):
    return rng.uniform(-2, 2, shape).astype(numpy.float32)


def bytes_of(rng, dtype, *shape):
    limits = numpy.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


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
    a, b = bytes_of(rng, U8, *((K, M) if turn_a else (M, K))), bytes_of(rng, I8, *((N, K) if turn_b else (K, N)))
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
    inputs = [bytes_of(rng, U8, 2, 3, 40), bytes_of(rng, I8, 40, 5), scale(-4), scale(-5),
              zero(rng, U8, zeros[0]), zero(rng, I8, zeros[1]), uniform(rng, 5)]
    return inputs if bias else inputs[:6]


for zeros in ((1, 1), (0, 1), (1, 0), (0, 0)):
    add(f"MatMulIntegerToFloat {zeros}", "MatMulIntegerToFloat", functools.partial(to_float, zeros=zeros))
add("MatMulIntegerToFloat without a bias", "MatMulIntegerToFloat", functools.partial(to_float, bias=False))
for given in (0, 1):
    add(f"DynamicQuantizeMatMul {given}", "DynamicQuantizeMatMul", lambda rng, given=given: [
        uniform(rng, 2, 3, 40), bytes_of(rng, I8, 40, 5), scale(-5), zero(rng, I8, given), uniform(rng, 5) if given else None])
