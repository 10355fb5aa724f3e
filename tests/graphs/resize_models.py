# SPDX-License-Identifier: MIT
"""Random small models of one Resize each: resize(rng) -> (Model, feeds), of ranks 1 to 5 and all attributes.

ONNX Runtime refuses much: interpolation of more than two axes other than three, cubic interpolation except of four-axis
tensors, antialiasing except of images. `peer` generates only what it accepts."""
import numpy

from graphs.op_models import one_op, some_shape

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def extents(rng, mode, peer):
    if mode == "nearest":
        return some_shape(rng, int(rng.integers(1, 6)), 7), None
    if peer:
        return (*some_shape(rng, 2, 3), *some_shape(rng, 2, 9)), [2, 3]
    shape = some_shape(rng, int(rng.integers(1, 6)), 6)
    return shape, None


def scales_and_sizes(rng, shape, axes, exact):
    """One of the two. `exact`: sizes, because if a scaled extent is rounded, ONNX's own tests align the corners of the
    unrounded extent, but ONNX Runtime those of the rounded one."""
    if rng.random() < 0.5 or exact:
        return None, numpy.array([int(rng.integers(1, 14)) for _ in axes], numpy.int64)
    return numpy.array([max(rng.choice([0.4, 0.5, 0.75, 1, 1.3, 2, 3]), 1 / shape[axis]) for axis in axes],
                       numpy.float32), None


def resize(rng, mode, peer=True):
    shape, axes = extents(rng, mode, peer)
    listed = list(range(len(shape))) if axes is None else axes
    if axes is None and rng.random() < 0.4:
        listed = sorted(int(axis) for axis in rng.choice(len(shape), int(rng.integers(1, len(shape) + 1)), False))
        axes = [axis - len(shape) if rng.random() < 0.3 else axis for axis in listed]
    attributes = {"mode": mode, "coordinate_transformation_mode": str(rng.choice(COORDINATES))}
    aligned = attributes["coordinate_transformation_mode"] == "align_corners"
    scales, sizes = scales_and_sizes(rng, shape, listed, exact=aligned)
    if mode == "nearest":
        attributes["nearest_mode"] = str(rng.choice(NEAREST))
    if mode == "cubic":
        attributes["cubic_coeff_a"] = float(rng.choice([-0.75, -0.5]))
        attributes["exclude_outside"] = int(rng.integers(0, 2))
    unlike_peer = aligned or (axes and min(axes) < 0)
    if sizes is not None and rng.random() < 0.3 and not (peer and unlike_peer):
        attributes["keep_aspect_ratio_policy"] = str(rng.choice(["not_larger", "not_smaller"]))
        sizes = numpy.maximum(sizes, 7)
    x = rng.uniform(-4, 4, shape).astype(numpy.float32)
    if mode == "nearest" and rng.random() < 0.5:
        x = x.astype(rng.choice([numpy.int32, numpy.uint8] if peer else [numpy.int64, numpy.bool_]))
    return one_op("Resize", [x, None, scales, sizes], constants=(2, 3), axes=axes, **attributes)


def crop_and_resize(rng):
    """Two axes; the region may reach beyond the image. ONNX Runtime crops no axis that keeps its extent."""
    shape = (*some_shape(rng, 2, 3), *some_shape(rng, 2, 9))
    mode = str(rng.choice(["nearest", "linear"]))
    begin, end = rng.uniform(-0.2, 0.5, 2), rng.uniform(0.5, 1.2, 2)
    roi = numpy.array([0, 0, *begin, 1, 1, *end], numpy.float32)
    sizes = numpy.array([*shape[:2], *(extent + rng.choice([-1, 1, 2, 5]) for extent in shape[2:])], numpy.int64)
    sizes[sizes == 0] = 2
    x = rng.uniform(-4, 4, shape).astype(numpy.float32)
    return one_op("Resize", [x, roi, None, sizes], constants=(1, 3), mode=mode,
                  coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-7.5)


def antialiased(rng):
    shape = (*some_shape(rng, 2, 3), *(int(extent) for extent in rng.integers(4, 24, 2)))
    sizes = numpy.array([*shape[:2], *rng.integers(1, 12, 2)], numpy.int64)
    x = rng.uniform(-4, 4, shape).astype(numpy.float32)
    return one_op("Resize", [x, None, None, sizes], constants=(3,), mode=str(rng.choice(["linear", "cubic"])),
                  antialias=1, exclude_outside=int(rng.integers(0, 2)))


RESIZES = {
    "nearest": lambda rng: resize(rng, "nearest"),
    "linear": lambda rng: resize(rng, "linear"),
    "cubic": lambda rng: resize(rng, "cubic"),
    "tf_crop_and_resize": crop_and_resize,
    "antialias": antialiased,
}
OF_ANY_RANK = {mode: lambda rng, mode=mode: resize(rng, mode, False) for mode in ("nearest", "linear", "cubic")}
