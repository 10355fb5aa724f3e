# SPDX-License-Identifier: MIT
"""Random small models of one op that reads an image at places given as data: SAMPLES[name](rng) -> (Model, feeds)."""
import numpy

from graphs.op_models import one_op, some_shape

SAMPLES = {}


def case(name):
    def add(build):
        SAMPLES[name] = build
        return build
    return add


def grid_sample(rng, spatial, modes):
    extents, points = some_shape(rng, spatial, 8), some_shape(rng, spatial, 6)
    images, channels = some_shape(rng, 2, 3)
    x = rng.uniform(-4, 4, (images, channels, *extents)).astype(numpy.float32)
    grid = rng.uniform(-1.6, 1.6, (images, *points, spatial)).astype(numpy.float32)
    return one_op("GridSample", [x, grid], mode=str(rng.choice(modes)), align_corners=int(rng.integers(0, 2)),
                  padding_mode=str(rng.choice(["zeros", "border", "reflection"])))


@case("GridSample")
def grid_sample_of_images(rng):
    return grid_sample(rng, 2, ["linear", "nearest", "cubic"])


@case("GridSample of volumes")
def grid_sample_of_volumes(rng):
    return grid_sample(rng, 3, ["linear", "nearest"])


@case("RoiAlign")
def roi_align(rng):
    images, channels = int(rng.integers(1, 4)), int(rng.choice([1, 3, 8, 17]))
    height, width = (int(extent) for extent in rng.integers(3, 14, 2))
    regions, scale = int(rng.integers(1, 5)), float(rng.choice([1, 0.5, 0.25]))
    corner = rng.uniform(-3, [width, height], (regions, 2)) / scale
    size = rng.uniform(0, [width, height], (regions, 2)) / scale
    rois = numpy.concatenate([corner, corner + size], axis=1).astype(numpy.float32)
    x = rng.uniform(0.5, 4, (images, channels, height, width)).astype(numpy.float32)
    model, feeds = one_op("RoiAlign", [x, rois, rng.integers(0, images, regions)],
                          mode=str(rng.choice(["avg", "max"])),
                          output_height=int(rng.integers(1, 5)), output_width=int(rng.integers(1, 5)),
                          sampling_ratio=int(rng.integers(0, 4)), spatial_scale=scale,
                          coordinate_transformation_mode=str(rng.choice(["half_pixel", "output_half_pixel"])))
    model.opset = 21
    return model, feeds
