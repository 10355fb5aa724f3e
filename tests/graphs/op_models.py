# SPDX-License-Identifier: MIT
"""Random small models, one op each: CASES[name](rng) -> (Model, feeds). Floats with integer values (`whole`) make sums
and products exact in any order, so that results can be compared bit for bit."""
import numpy

from support.model_builder import Model, random_array, type_name

CASES = {}
INEXACT = set()  # cases whose results depend on the order of sums or on the approximation of a function


def case(name, exact=True):
    def add(build):
        CASES[name] = build
        if not exact:
            INEXACT.add(name)
        return build
    return add


def whole(rng, shape, low=-4, high=5):
    return rng.integers(low, high, shape).astype(numpy.float32)


def uniform(rng, *shape):
    return rng.uniform(-2, 2, shape).astype(numpy.float32)


def some_shape(rng, rank=None, largest=7):
    return tuple(int(extent) for extent in rng.integers(1, largest + 1, rng.integers(0, 5) if rank is None else rank))


def one_op(op, arrays, constants=(), outputs=1, **attributes):
    """A model of one node. arrays: its inputs in order, None where one is absent; those at `constants` are constants."""
    model, names, feeds = Model(), [], {}
    for k, array in enumerate(arrays):
        if array is None:
            names.append("")
        elif k in constants:
            names.append(model.constant(array))
        else:
            array = numpy.asarray(array)
            names.append(model.input(f"x{k}", model_type(array), array.shape))
            feeds[f"x{k}"] = array
    results = model.node(op, names, outputs, **attributes)
    model.output(*[name for name in ([results] if isinstance(results, str) else results) if name])
    return model, feeds


def model_type(array):
    return type_name(array)


# Element-wise, one input

UNARY_FLOAT = {
    "Abs": {}, "Neg": {}, "Sign": {}, "Floor": {}, "Ceil": {}, "Round": {}, "Relu": {}, "LeakyRelu": {"alpha": 0.25},
    "ThresholdedRelu": {"alpha": 0.5}, "Erf": {}, "Exp": {}, "Sigmoid": {}, "Tanh": {}, "Elu": {"alpha": 0.7},
    "Selu": {}, "Celu": {"alpha": 1.5}, "Gelu": {}, "Mish": {}, "HardSigmoid": {"alpha": 0.3}, "HardSwish": {},
    "Softplus": {}, "Softsign": {}, "Reciprocal": {}, "Swish": {"alpha": 1.25}, "Sin": {}, "Cos": {}, "Tan": {},
    "Atan": {}, "Sinh": {}, "Cosh": {}, "Asinh": {}, "Shrink": {"lambd": 1.5, "bias": 0.25},
    "IsNaN": {},
}
UNARY_EXACT = {"Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Relu", "LeakyRelu", "ThresholdedRelu",
               "Shrink", "IsNaN"}


def add_unary(op, attributes):
    @case(op, exact=op in UNARY_EXACT)
    def build(rng):
        x = rng.uniform(-6, 6, some_shape(rng)).astype(numpy.float32)
        if op == "Round":
            x = numpy.round(x * 2) / 2  # halves, which go to even
        return one_op(op, [x], **attributes)


for op_name, op_attributes in UNARY_FLOAT.items():
    add_unary(op_name, op_attributes)


@case("Gelu tanh", exact=False)
def gelu_tanh(rng):
    return one_op("Gelu", [rng.uniform(-6, 6, some_shape(rng)).astype(numpy.float32)], approximate="tanh")


def add_unary_within(op, low, high):
    @case(op, exact=False)
    def build(rng):
        return one_op(op, [rng.uniform(low, high, some_shape(rng)).astype(numpy.float32)])


for op_name in ("Asin", "Acos", "Atanh"):
    add_unary_within(op_name, -1, 1)
add_unary_within("Acosh", 1, 9)


@case("IsInf")
def is_inf(rng):
    x = rng.choice(numpy.array([0, 1, numpy.inf, -numpy.inf, numpy.nan], numpy.float32), some_shape(rng))
    return one_op("IsInf", [numpy.asarray(x)], detect_negative=int(rng.integers(0, 2)),
                  detect_positive=int(rng.integers(0, 2)))


@case("Sqrt")
def sqrt(rng):
    return one_op("Sqrt", [rng.uniform(0, 100, some_shape(rng)).astype(numpy.float32)])


@case("Log", exact=False)
def log(rng):
    return one_op("Log", [rng.uniform(0.01, 100, some_shape(rng)).astype(numpy.float32)])


def add_unary_int(op, dtype):
    @case(f"{op} {dtype}")
    def build(rng):
        return one_op(op, [random_array(rng, dtype, some_shape(rng))])


for op_name, op_dtype in [("Abs", "i32"), ("Abs", "i64"), ("Abs", "u8"), ("Neg", "i32"), ("Neg", "i64"),
                          ("Sign", "i32"), ("Sign", "i64"), ("Sign", "u8"), ("Relu", "i32"), ("Not", "bool")]:
    add_unary_int(op_name, op_dtype)


@case("Clip")
def clip(rng):
    dtype = rng.choice(["f32", "i32", "i64", "u8"])
    bounds = [random_array(rng, dtype, ()) if rng.random() < 0.8 else None for _ in range(2)]
    return one_op("Clip", [random_array(rng, dtype, some_shape(rng)), *bounds], constants=(1, 2))


@case("Cast")
def cast(rng):
    types = ["f32", "i32", "i64", "u8", "bool"]
    low = 0 if rng.random() < 0.5 else -100
    x = random_array(rng, str(rng.choice(types)), some_shape(rng), low, 100)
    to = str(rng.choice(types))
    if x.dtype == numpy.float32 and to == "u8":
        x = numpy.abs(x)
    return one_op("Cast", [x], to=to)


# Element-wise, broadcast

def broadcast_pair(rng):
    rank = int(rng.integers(0, 5))
    full = some_shape(rng, rank, 5)
    def part():
        shape = tuple(1 if rng.random() < 0.3 else extent for extent in full)
        return shape[int(rng.integers(0, rank + 1)):] if rng.random() < 0.4 else shape
    return part(), part()


def add_binary(op, dtype, low=-8, high=8, **attributes):
    @case(f"{op} {dtype}" + "".join(f" {key}" for key in attributes))
    def build(rng):
        a, b = broadcast_pair(rng)
        right = random_array(rng, dtype, b, low, high)
        if op in ("Div", "Mod") and dtype != "f32":
            right[right == 0] = 3
        return one_op(op, [random_array(rng, dtype, a, low, high), right], **attributes)


for op_name in ("Add", "Sub", "Mul", "Div"):
    for op_dtype in ("f32", "i32", "i64"):
        add_binary(op_name, op_dtype)
for op_name in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
    for op_dtype in ("f32", "i32", "i64"):
        add_binary(op_name, op_dtype, -2, 3)
for op_name in ("And", "Or", "Xor", "Equal"):
    add_binary(op_name, "bool")
for op_dtype in ("i32", "i64", "u8"):
    add_binary("Mod", op_dtype)
    add_binary("Mod", op_dtype, fmod=1)
add_binary("Mod", "f32", fmod=1)


@case("PRelu f32")
def prelu(rng):
    a, b = broadcast_pair(rng)
    a = numpy.broadcast_shapes(a, b)  # the slope is broadcast to the input, never the other way round
    return one_op("PRelu", [random_array(rng, "f32", a), random_array(rng, "f32", b)])


@case("Pow", exact=False)
def power(rng):
    a, b = broadcast_pair(rng)
    return one_op("Pow", [rng.uniform(0.1, 4, a).astype(numpy.float32), rng.uniform(-2, 3, b).astype(numpy.float32)])


@case("Pow i64")
def power_int(rng):
    a, b = broadcast_pair(rng)
    return one_op("Pow", [random_array(rng, "i64", a, -5, 6), random_array(rng, "i64", b, 0, 6)])


def add_variadic(op, dtype):
    @case(f"{op} {dtype}")
    def build(rng):
        shapes = [*broadcast_pair(rng)] if rng.random() < 0.7 else [some_shape(rng)] * int(rng.integers(1, 5))
        return one_op(op, [random_array(rng, dtype, shape) for shape in shapes])


for op_name in ("Max", "Min"):
    for op_dtype in ("f32", "i32", "i64"):
        add_variadic(op_name, op_dtype)
add_variadic("Sum", "f32")


@case("Where")
def where(rng):
    dtype = rng.choice(["f32", "i32", "i64", "u8"])
    a, b = broadcast_pair(rng)
    return one_op("Where", [random_array(rng, "bool", b), random_array(rng, dtype, a), random_array(rng, dtype, b)])


# Matrix products

@case("MatMul")
def matmul(rng):
    m, k, n = (int(extent) for extent in rng.integers(1, 20, 3))
    batch_a, batch_b = broadcast_pair(rng)
    a = whole(rng, (k,) if rng.random() < 0.2 else (*batch_a[-2:], m, k))
    b = whole(rng, (k,) if rng.random() < 0.2 else (*batch_b[-2:], k, n))
    return one_op("MatMul", [a, b])


@case("MatMul i64")
def matmul_int(rng):
    m, k, n = (int(extent) for extent in rng.integers(1, 9, 3))
    dtype = rng.choice(["i32", "i64"])
    return one_op("MatMul", [random_array(rng, dtype, (m, k)), random_array(rng, dtype, (k, n))])


@case("Gemm")
def gemm(rng):
    m, k, n = (int(extent) for extent in rng.integers(1, 20, 3))
    turn_a, turn_b = (int(turn) for turn in rng.integers(0, 2, 2))
    a, b = whole(rng, (k, m) if turn_a else (m, k)), whole(rng, (n, k) if turn_b else (k, n))
    c = [None, whole(rng, ()), whole(rng, (n,)), whole(rng, (1, n)), whole(rng, (m, 1)), whole(rng, (m, n))]
    return one_op("Gemm", [a, b, c[rng.integers(0, 6)]], transA=turn_a, transB=turn_b,
                  alpha=float(rng.choice([1.0, 0.5, 2.0])), beta=float(rng.choice([1.0, -1.0, 0.5])))


# Windows

def window(rng, spatial, largest=9):
    """Extents of an input, and a window's attributes that fit it."""
    kernel = [int(k) for k in rng.integers(1, 4, spatial)]
    dilations = [int(d) for d in rng.integers(1, 3, spatial)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    attributes = {"strides": [int(s) for s in rng.integers(1, 4, spatial)], "dilations": dilations}
    kind = rng.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], p=[0.7, 0.1, 0.1, 0.1])
    if kind != "NOTSET":
        attributes["auto_pad"] = str(kind)
        attributes["dilations"] = [1] * spatial
        # Where a stride is larger, ONNX Runtime's pools begin within the input, or end with an error.
        attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], kernel)]
    elif rng.random() < 0.7:
        attributes["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
    return tuple(int(rng.integers(r, largest + r)) for r in reach), kernel, attributes


@case("Conv")
def conv(rng, constant_weights=False):
    spatial = int(rng.integers(1, 3))
    extents, kernel, attributes = window(rng, spatial)
    groups = int(rng.choice([1, 1, 2, 3]))
    channels, kernels = groups * int(rng.integers(1, 5)), groups * int(rng.integers(1, 12))
    x = whole(rng, (int(rng.integers(1, 3)), channels, *extents))
    w = whole(rng, (kernels, channels // groups, *kernel))
    bias = whole(rng, (kernels,)) if rng.random() < 0.5 else None
    constants = (1, 2) if constant_weights or rng.random() < 0.8 else ()
    return one_op("Conv", [x, w, bias], constants=constants, group=groups, **attributes)


@case("Conv depthwise")
def conv_depthwise(rng):
    channels = int(rng.integers(1, 9))
    extents, kernel, attributes = window(rng, 2, 20)
    x = whole(rng, (1, channels, *extents))
    return one_op("Conv", [x, whole(rng, (channels, 1, *kernel)), whole(rng, (channels,))], constants=(1, 2),
                  group=channels, **attributes)


@case("Conv 1x1")
def conv_pointwise(rng):
    channels, kernels = (int(extent) for extent in rng.integers(1, 20, 2))
    x = whole(rng, (int(rng.integers(1, 3)), channels, *some_shape(rng, 2, 11)))
    return one_op("Conv", [x, whole(rng, (kernels, channels, 1, 1)), whole(rng, (kernels,))], constants=(1, 2))


@case("ConvTranspose")
def conv_transpose(rng, most_channels=4):
    spatial = int(rng.integers(1, 3))
    kernel, strides, dilations = ([int(k) for k in rng.integers(1, most, spatial)] for most in (5, 4, 3))
    extents = some_shape(rng, spatial, 9)
    full = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(extents, strides, kernel, dilations)]
    attributes = {"strides": strides, "dilations": dilations}
    kind = rng.choice(["pads", "none", "output_shape", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if kind == "pads":
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in strides]
        begin = [int(rng.integers(0, min(k + 1, f))) for k, f in zip(kernel, full)]
        attributes["pads"] = begin + [int(rng.integers(0, min(k + 1, f - b))) for k, f, b in zip(kernel, full, begin)]
    elif kind == "output_shape":
        attributes["output_shape"] = [int(rng.integers(max(1, f - 2 * (k - 1)), f + 1)) for f, k in zip(full, kernel)]
    elif kind.startswith("SAME"):
        attributes["auto_pad"] = str(kind)
        attributes["strides"] = [min(s, (k - 1) * d + 1) for s, k, d in zip(strides, kernel, dilations)]
    elif kind == "VALID":
        attributes["auto_pad"] = "VALID"
    groups = int(rng.choice([1, 1, 2, 3]))
    channels, kernels = groups * int(rng.integers(1, most_channels + 1)), int(rng.integers(1, 12))
    x = whole(rng, (int(rng.integers(1, 3)), channels, *extents))
    bias = whole(rng, (groups * kernels,)) if rng.random() < 0.5 else None
    constants = (1, 2) if rng.random() < 0.8 else ()
    return one_op("ConvTranspose", [x, whole(rng, (channels, kernels, *kernel)), bias], constants=constants,
                  group=groups, **attributes)


@case("MaxPool")
def max_pool(rng):
    extents, kernel, attributes = window(rng, int(rng.integers(1, 3)))
    if "auto_pad" not in attributes:
        attributes["ceil_mode"] = int(rng.integers(0, 2))
    return one_op("MaxPool", [whole(rng, (*some_shape(rng, 2, 3), *extents), -50, 50)], kernel_shape=kernel,
                  **attributes)


@case("AveragePool", exact=False)
def average_pool(rng):
    extents, kernel, attributes = window(rng, int(rng.integers(1, 3)))
    if "auto_pad" not in attributes:
        attributes["ceil_mode"] = int(rng.integers(0, 2))
    return one_op("AveragePool", [whole(rng, (*some_shape(rng, 2, 3), *extents), -50, 50)], kernel_shape=kernel,
                  count_include_pad=int(rng.integers(0, 2)), **attributes)


@case("GlobalMaxPool")
def global_max_pool(rng):
    return one_op("GlobalMaxPool", [whole(rng, some_shape(rng, int(rng.integers(3, 5)), 9))])


@case("GlobalAveragePool", exact=False)
def global_average_pool(rng):
    return one_op("GlobalAveragePool", [whole(rng, some_shape(rng, int(rng.integers(3, 5)), 9))])


@case("BatchNormalization", exact=False)
def batch_norm(rng):
    shape = some_shape(rng, int(rng.integers(2, 5)))
    statistics = [rng.uniform(-2, 2, shape[1]).astype(numpy.float32) for _ in range(3)]
    variance = rng.uniform(0.1, 3, shape[1]).astype(numpy.float32)
    return one_op("BatchNormalization", [whole(rng, shape), *statistics, variance], constants=(1, 2, 3, 4),
                  epsilon=float(rng.choice([1e-5, 1e-2])))


# Along an axis

def add_softmax(op):
    @case(op, exact=False)
    def build(rng):
        shape = some_shape(rng, int(rng.integers(1, 5)), 9)
        return one_op(op, [rng.uniform(-9, 9, shape).astype(numpy.float32)],
                      axis=int(rng.integers(-len(shape), len(shape))))


add_softmax("Softmax")
add_softmax("LogSoftmax")


def some_axes(rng, rank):
    axes = [int(axis) for axis in rng.permutation(rank)[: rng.integers(1, rank + 1)]]
    return numpy.array([axis - rank if rng.random() < 0.5 else axis for axis in axes], numpy.int64)


def add_reduce(op, dtype, exact=True, low=-8, high=8):
    @case(f"{op} {dtype}", exact)
    def build(rng):
        shape = some_shape(rng, int(rng.integers(1, 5)), 6)
        x = whole(rng, shape, low, high) if dtype == "f32" else random_array(rng, dtype, shape, low, high)
        axes = some_axes(rng, len(shape)) if rng.random() < 0.8 else None
        return one_op(op, [x, axes], constants=(1,), keepdims=int(rng.integers(0, 2)))


for op_name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1"):
    for op_dtype in ("f32", "i32", "i64"):
        if (op_name, op_dtype) not in (("ReduceSumSquare", "i64"), ("ReduceL1", "i64")):
            add_reduce(op_name, op_dtype)
add_reduce("ReduceMean", "f32", exact=False)
add_reduce("ReduceMean", "i32")
add_reduce("ReduceProd", "f32", low=-1, high=3)
add_reduce("ReduceProd", "i64", low=-1, high=3)
add_reduce("ReduceL2", "f32", exact=False)
add_reduce("ReduceLogSum", "f32", exact=False, low=1)
add_reduce("ReduceLogSumExp", "f32", exact=False)


@case("ReduceSum none")
def reduce_noop(rng):
    axes = numpy.zeros((0,), numpy.int64) if rng.random() < 0.5 else None
    return one_op("ReduceSum", [whole(rng, some_shape(rng, 3)), axes], constants=(1,),
                  noop_with_empty_axes=int(rng.integers(0, 2)))


def add_arg(op):
    @case(op)
    def build(rng):
        shape = some_shape(rng, int(rng.integers(1, 5)), 6)
        return one_op(op, [whole(rng, shape, -2, 3)], axis=int(rng.integers(-len(shape), len(shape))),
                      keepdims=int(rng.integers(0, 2)), select_last_index=int(rng.integers(0, 2)))


add_arg("ArgMax")
add_arg("ArgMin")


# Data movement

def any_array(rng, shape):
    return random_array(rng, str(rng.choice(["f32", "i32", "i64", "u8", "bool"])), shape)


@case("Concat")
def concat(rng):
    shape, dtype = list(some_shape(rng, int(rng.integers(1, 5)))), rng.choice(["f32", "i64", "u8"])
    axis, arrays = int(rng.integers(0, len(shape))), []
    for _ in range(rng.integers(1, 5)):
        shape[axis] = int(rng.integers(1, 6))
        arrays.append(random_array(rng, dtype, shape))
    return one_op("Concat", arrays, axis=axis - len(shape) if rng.random() < 0.5 else axis)


@case("Split")
def split(rng):
    shape, parts = list(some_shape(rng, int(rng.integers(1, 5)))), int(rng.integers(1, 4))
    axis, lengths = int(rng.integers(0, len(shape))), rng.integers(1, 4, parts).astype(numpy.int64)
    if rng.random() < 0.5:
        shape[axis] = int(lengths.sum())
        return one_op("Split", [any_array(rng, shape), lengths], constants=(1,), outputs=parts, axis=axis)
    shape[axis] = parts * int(rng.integers(1, 4))
    return one_op("Split", [any_array(rng, shape)], outputs=parts, axis=axis, num_outputs=parts)


@case("Slice")
def slice_(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    axes = some_axes(rng, len(shape))
    starts, ends, steps = [], [], []
    for axis in axes:
        length = shape[axis]
        step = int(rng.choice([-3, -2, -1, 1, 2, 3]))
        first, last = sorted(int(i) for i in rng.integers(0, length, 2))
        start, end = (first, last + 1) if step > 0 else (last, first - 1)
        if step > 0 and rng.random() < 0.4:
            end = int(rng.choice([2**63 - 1, length + 5]))
        if end < 0 or (step < 0 and rng.random() < 0.3):
            end = -(2**63) + 1
        elif end < length and end > 0 and rng.random() < 0.3:
            end -= length
        starts.append(start - length if rng.random() < 0.3 else start)
        ends.append(end)
        steps.append(step)
    lists = [numpy.array(values, numpy.int64) for values in (starts, ends, axes, steps)]
    return one_op("Slice", [any_array(rng, shape), *lists], constants=(1, 2, 3, 4))


@case("Transpose")
def transpose(rng):
    shape = some_shape(rng, int(rng.integers(1, 6)))
    perm = [int(axis) for axis in rng.permutation(len(shape))]
    return one_op("Transpose", [any_array(rng, shape)], perm=perm if rng.random() < 0.8 else None)


def add_pad(mode, crops):
    @case(f"Pad {mode}" + (" crop" if crops else ""))
    def build(rng):
        shape = tuple(extent + 3 for extent in some_shape(rng, int(rng.integers(1, 5)), 4))
        axes = some_axes(rng, len(shape))
        pads = rng.integers(-1 if crops else 0, 3, 2 * len(axes)).astype(numpy.int64)
        dtype = rng.choice(["f32", "i32", "i64", "u8"] if mode == "constant" else ["f32", "i32", "i64"])
        fill = random_array(rng, dtype, ()) if mode == "constant" and rng.random() < 0.7 else None
        return one_op("Pad", [random_array(rng, dtype, shape), pads, fill, axes], constants=(1, 2, 3), mode=mode)


for pad_mode in ("constant", "edge", "reflect", "wrap"):
    add_pad(pad_mode, False)
add_pad("constant", True)


@case("Expand")
def expand(rng):
    full = some_shape(rng, int(rng.integers(1, 5)), 5)
    shape = tuple(1 if rng.random() < 0.4 else extent for extent in full)[int(rng.integers(0, len(full))):]
    target = numpy.array([1 if e == s and rng.random() < 0.3 else e
                          for e, s in zip(full, (0,) * (len(full) - len(shape)) + shape)], numpy.int64)
    return one_op("Expand", [any_array(rng, shape), target], constants=(1,))


@case("Gather")
def gather(rng):
    shape = some_shape(rng, int(rng.integers(1, 4)))
    axis = int(rng.integers(0, len(shape)))
    indices = rng.integers(-shape[axis], shape[axis], some_shape(rng, int(rng.integers(0, 3))))
    indices = numpy.asarray(indices).astype(rng.choice([numpy.int32, numpy.int64]))
    return one_op("Gather", [any_array(rng, shape), indices], constants=(1,) if rng.random() < 0.3 else (),
                  axis=axis - len(shape) if rng.random() < 0.5 else axis)


# Views and shapes

@case("Reshape")
def reshape(rng):
    shape = some_shape(rng, 4, 4)
    target = [0, -1, shape[3], 1] if rng.random() < 0.5 else [int(numpy.prod(shape)), 1]
    return one_op("Reshape", [any_array(rng, shape), numpy.array(target, numpy.int64)], constants=(1,))


@case("Flatten")
def flatten(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    return one_op("Flatten", [any_array(rng, shape)], axis=int(rng.integers(-len(shape), len(shape) + 1)))


@case("Squeeze")
def squeeze(rng):
    return one_op("Squeeze", [any_array(rng, (1, 3, 1, 2)), numpy.array([0, -2], numpy.int64)], constants=(1,))


@case("Unsqueeze")
def unsqueeze(rng):
    return one_op("Unsqueeze", [any_array(rng, (3, 2)), numpy.array([0, -1], numpy.int64)], constants=(1,))


@case("Identity")
def identity(rng):
    return one_op("Identity", [any_array(rng, some_shape(rng))])


@case("Dropout")
def dropout(rng):
    return one_op("Dropout", [random_array(rng, "f32", some_shape(rng))])


@case("Shape")
def shape_of(rng):
    return one_op("Shape", [any_array(rng, some_shape(rng, 4))], start=int(rng.integers(-4, 2)),
                  end=int(rng.integers(2, 6)))
