# SPDX-License-Identifier: MIT
"""Random small models of operators that rnncc expands, and of a few along an axis that are compared in the same way:
EXPANDED[name](rng) -> (Model, feeds)."""
import numpy

from graphs.op_models import broadcast_pair, one_op, some_axes, some_shape, whole
from support.model_builder import Model, random_array

EXPANDED = {}


def expanded(name):
    def add(build):
        EXPANDED[name] = build
        return build
    return add


@expanded("Mean")
def mean(rng):
    shapes = [*broadcast_pair(rng)] if rng.random() < 0.7 else [some_shape(rng)] * int(rng.integers(1, 5))
    return one_op("Mean", [random_array(rng, "f32", shape) for shape in shapes])


@expanded("MeanVarianceNormalization")
def mean_variance(rng):
    """At least two elements along the axes: the deviation of one is 0, and quotients by it are only rounding."""
    shape = tuple(extent + 1 for extent in some_shape(rng, 4, 5))
    axes = [int(axis) for axis in some_axes(rng, 4)] if rng.random() < 0.7 else None
    return one_op("MeanVarianceNormalization", [random_array(rng, "f32", shape)], axes=axes)


@expanded("CumSum")
def cumsum(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    x = random_array(rng, str(rng.choice(["i32", "i64"])), shape) if rng.random() < 0.5 else whole(rng, shape)
    return one_op("CumSum", [x, numpy.array(rng.integers(-len(shape), len(shape)))], constants=(1,),
                  exclusive=int(rng.integers(0, 2)), reverse=int(rng.integers(0, 2)))


@expanded("CumProd")
def cumprod(rng):
    """Products of few integers: exact."""
    shape = some_shape(rng, int(rng.integers(1, 5)))
    return one_op("CumProd", [whole(rng, shape, -2, 3), numpy.array(rng.integers(-len(shape), len(shape)))], constants=(1,),
                  exclusive=int(rng.integers(0, 2)), reverse=int(rng.integers(0, 2)))


@expanded("Det")
def determinant(rng):
    order = int(rng.integers(1, 7))
    return one_op("Det", [rng.uniform(-1, 1, (*some_shape(rng, int(rng.integers(0, 3)), 3), order, order)).astype("f")])


@expanded("Hardmax")
def hardmax(rng):
    """Few different numbers, because of equal maxima the first counts."""
    shape = some_shape(rng, int(rng.integers(1, 5)), 9)
    return one_op("Hardmax", [whole(rng, shape, 0, 3)], axis=int(rng.integers(-len(shape), len(shape))))


# Results that depend on no run-time input are multiplied by one.

def scaled(rng, model, values, shape):
    x = random_array(rng, "f32", shape)
    model.output(model.node("Mul", [model.input("x", "f32", shape), values]))
    return model, {"x": x}


def add_window(op):
    @expanded(op)
    def build(rng):
        model, size = Model(), int(rng.integers(2, 300))
        window = model.node(op, [model.constant(numpy.array(size))], periodic=int(rng.integers(0, 2)))
        return scaled(rng, model, window, (size,))


for window_name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    add_window(window_name)


@expanded("MelWeightMatrix")
def mel_weights(rng):
    model, filters, length = Model(), int(rng.integers(1, 60)), int(rng.integers(16, 700))
    rate = int(rng.integers(4000, 48000))
    operands = [numpy.array(filters), numpy.array(length), numpy.array(rate),
                numpy.array(rng.uniform(0, rate / 8), "f"), numpy.array(rng.uniform(rate / 4, rate / 2), "f")]
    weights = model.node("MelWeightMatrix", [model.constant(operand) for operand in operands])
    return scaled(rng, model, weights, (length // 2 + 1, filters))


# Losses

def loss(rng, op, outputs):
    """Two of the classes are ignored, one of them no class of the scores."""
    shape = some_shape(rng, int(rng.integers(2, 5)), 4)
    classes = shape[1] + 1
    ignored = int(rng.choice([-100, rng.integers(classes)]))
    target = rng.integers(classes - 1, size=(shape[0], *shape[2:]))
    target.flat[0] = ignored if ignored < 0 or ignored < classes - 1 else 0
    weights = rng.uniform(0.5, 2, classes - 1).astype("f") if rng.random() < 0.5 else None
    given = {"ignore_index": ignored} if ignored < 0 or rng.random() < 0.5 else {}
    return one_op(op, [random_array(rng, "f32", shape), target, *([] if weights is None else [weights])], outputs=outputs,
                  reduction=str(rng.choice(["sum", "none"])), **given)


@expanded("NegativeLogLikelihoodLoss")
def likelihood(rng):
    return loss(rng, "NegativeLogLikelihoodLoss", 1)


@expanded("SoftmaxCrossEntropyLoss")
def softmax_loss(rng):
    return loss(rng, "SoftmaxCrossEntropyLoss", 2)


# Images and caches

@expanded("AffineGrid")
def affine_grid(rng):
    """Of more than one place an axis: a single one is at 0 as PyTorch has it, and at 1 in ONNX Runtime."""
    axes = int(rng.integers(2, 4))
    size = numpy.array([2, 3, *rng.integers(2, 6, axes)])
    return one_op("AffineGrid", [random_array(rng, "f32", (2, axes, axes + 1)), size], constants=(1,),
                  align_corners=int(rng.integers(0, 2)))


@expanded("Col2Im")
def col2im(rng):
    axes = 2
    image, block = rng.integers(5, 9, axes), rng.integers(1, 3, axes)
    stride, dilation, pads = rng.integers(1, 3, axes), rng.integers(1, 3, axes), rng.integers(0, 2, 2 * axes)
    blocks = (image + pads[:axes] + pads[axes:] - dilation * (block - 1) - 1) // stride + 1
    columns = whole(rng, (2, 3 * int(block.prod()), int(blocks.prod())))
    return one_op("Col2Im", [columns, image, block], constants=(1, 2), strides=stride.tolist(), pads=pads.tolist(),
                  dilations=dilation.tolist())


@expanded("CenterCropPad")
def center_crop_pad(rng):
    shape = some_shape(rng, int(rng.integers(1, 5)))
    axes = [int(axis) for axis in rng.permutation(len(shape))[:rng.integers(1, len(shape) + 1)]]
    wanted = numpy.array(rng.integers(1, 9, len(axes)))
    return one_op("CenterCropPad", [random_array(rng, "f32", shape), wanted], constants=(1,), axes=axes)


@expanded("TensorScatter")
def tensor_scatter(rng):
    shape = [3, *some_shape(rng, int(rng.integers(1, 4)))]
    axis = int(rng.integers(1, len(shape)))
    block = [int(rng.integers(1, extent + 1)) if k == axis else extent for k, extent in enumerate(shape)]
    circular = rng.random() < 0.5
    first = rng.integers(0, shape[axis] if circular else shape[axis] - block[axis] + 1, 3)
    return one_op("TensorScatter", [random_array(rng, "f32", shape), random_array(rng, "f32", block), first],
                  axis=axis - len(shape) * int(rng.integers(0, 2)), mode="circular" if circular else "linear")


@expanded("BitCast")
def bit_cast(rng):
    return one_op("BitCast", [random_array(rng, "f32", some_shape(rng))], to="i32")


@expanded("BitShift")
def bit_shift(rng):
    """Signed, and by more bits than there are, or fewer than none."""
    shape, dtype = some_shape(rng), str(rng.choice(["int8", "int16", "int32", "int64"]))
    return one_op("BitShift", [rng.integers(-128, 128, shape).astype(dtype), rng.integers(-9, 70, shape).astype(dtype)],
                  direction=str(rng.choice(["LEFT", "RIGHT"])))


@expanded("SpaceToDepth")
def space_to_depth(rng):
    shape = [2, int(rng.integers(1, 4)), 2 * int(rng.integers(1, 4)), 2 * int(rng.integers(1, 4))]
    return one_op("SpaceToDepth", [random_array(rng, "f32", shape)], blocksize=2, mode=str(rng.choice(["DCR", "CRD"])))
