# SPDX-License-Identifier: MIT
"""Networks whose convolutions run by Winograd's algorithm equal sums in double, within the bounds that --no-winograd's
help and the kernel's test state, wherever a convolution is in the network; with the same bits for any number of threads.
"""
import re

import numpy
import pytest

from support import kernel_builder
from support.model_builder import Model
from support.module import Module

BOUND = 1e-4  # max |error| / max |result|, of all forms
FORCED = "--conv=winograd"  # else small layers would run by direct convolution
TARGETS = {"x86-64-v4": "avx512", "x86-64-v3": "avx2"}


def weights(draw, kernels, channels, window=(3, 3)):
    """As in real networks: a layer's outputs vary as much as its inputs."""
    scale = (2 / (window[0] * window[1] * channels)) ** 0.5
    return (draw.standard_normal((kernels, channels, *window)) * scale).astype(numpy.float32)


def convolution(x, w, bias=None, pads=(1, 1, 1, 1), group=1):
    """The convolution in double."""
    n, channels, height, width = x.shape
    padded = numpy.pad(x.astype(float), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    rows, columns = (extent + pads[k] + pads[k + 2] - w.shape[k + 2] + 1 for k, extent in enumerate((height, width)))
    split = w.astype(float).reshape(group, w.shape[0] // group, *w.shape[1:])
    y = 0
    for r in range(w.shape[2]):
        for s in range(w.shape[3]):
            window = padded[:, :, r:r + rows, s:s + columns].reshape(n, group, channels // group, rows, columns)
            y = y + numpy.einsum("ngchw,gkc->ngkhw", window, split[..., r, s])
    return y.reshape(n, w.shape[0], rows, columns) + (0 if bias is None else bias[:, None, None])


def relu(x):
    return numpy.maximum(x, 0)


def run(module, x, threads):
    with Module(module) as loaded, loaded.context(threads=threads) as context:
        (y,) = context.run({"x": x}).values()
        return y


def check(module, x, want):
    alone = run(module, x, 1)
    assert numpy.abs(alone - want).max() <= BOUND * numpy.abs(want).max()
    for threads in (2, 3, 8):
        assert run(module, x, threads).tobytes() == alone.tobytes(), threads


def kernels_of(rnncc, model, *options):
    done = rnncc("inspect", model, *options)
    assert done.returncode == 0, done.stderr
    return re.findall(r"winograd\d\w*", done.stdout)


@pytest.fixture(params=TARGETS)
def target(request):
    kernel_builder.emulator(TARGETS[request.param])
    return f"--target={request.param}"


# name: (channels, kernels, height, width, pads, group[, window])
LAYERS = {
    "odd_extents": (16, 32, 13, 9, (1, 1, 1, 1), 1),
    "lanes_past_the_channels": (39, 17, 8, 12, (1, 1, 1, 1), 1),
    "pads_differ": (24, 40, 7, 10, (0, 2, 1, 0), 1),
    "unpadded": (16, 48, 6, 3, (0, 0, 0, 0), 1),
    "groups": (64, 96, 12, 12, (1, 1, 1, 1), 2),
    "few_tiles": (128, 160, 7, 7, (1, 1, 1, 1), 1),
    "row_of_seven": (48, 64, 9, 17, (0, 3, 0, 3), 1, (1, 7)),
    "column_of_seven": (64, 48, 17, 9, (3, 0, 3, 0), 1, (7, 1)),
    "row_of_three": (32, 40, 8, 9, (0, 1, 0, 1), 1, (1, 3)),
    "column_of_five": (32, 32, 13, 8, (2, 0, 1, 0), 1, (5, 1)),
    "five_by_five": (48, 64, 15, 14, (2, 2, 2, 2), 1, (5, 5)),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_equals_sums_in_double(rnncc, compile, target, tmp_path, layer):
    channels, kernels, height, width, pads, group, *window = LAYERS[layer]
    draw = numpy.random.default_rng(3)
    w, bias = weights(draw, kernels, channels // group, *window), draw.standard_normal(kernels).astype(numpy.float32)
    model = Model()
    x = model.input("x", "f32", [2, channels, height, width])
    model.output(model.node("Conv", [x, model.constant(w), model.constant(bias)], pads=list(pads), group=group))
    path, data = model.write(tmp_path), draw.standard_normal((2, channels, height, width)).astype(numpy.float32)
    assert kernels_of(rnncc, path, target, FORCED)
    check(compile(path, target, FORCED, "--threads=3"), data, convolution(data, w, bias, pads, group))


@pytest.mark.parametrize("tile", [2, 4, 6])
def test_each_tile_equals_sums_in_double_over_many_channels(rnncc, compile, target, tmp_path, tile):
    """Errors grow with the points of a tile and with the number of channels."""
    draw = numpy.random.default_rng(9)
    w, form = weights(draw, 32, 512), f"--conv=winograd,tile={tile}"
    model = Model()
    model.output(model.node("Conv", [model.input("x", "f32", [1, 512, 20, 13]), model.constant(w)], pads=[1, 1, 1, 1]))
    path, data = model.write(tmp_path), relu(draw.standard_normal((1, 512, 20, 13))).astype(numpy.float32)
    assert kernels_of(rnncc, path, target, form)[0].startswith(f"winograd{tile}x{tile}_3x3_")
    check(compile(path, target, form), data, convolution(data, w))


def residual_block(draw, batch):
    model = Model()
    x = model.input("x", "f32", [batch, 32, 11, 11])
    first, second = weights(draw, 48, 32), weights(draw, 32, 48)
    y = model.node("Relu", [model.node("Conv", [x, model.constant(first)], pads=[1, 1, 1, 1])])
    y = model.node("Add", [model.node("Conv", [y, model.constant(second)], pads=[1, 1, 1, 1]), x])
    model.output(model.node("Relu", [y]))
    return model, lambda data: relu(convolution(relu(convolution(data, first)), second) + data)


def test_residual_and_activation_are_added_to_it(rnncc, compile, target, tmp_path):
    draw = numpy.random.default_rng(4)
    model, want = residual_block(draw, 1)
    path, data = model.write(tmp_path), draw.standard_normal((1, 32, 11, 11)).astype(numpy.float32)
    assert len(kernels_of(rnncc, path, target, FORCED)) == 2
    check(compile(path, target, FORCED), data, want(data))


def test_a_constant_is_no_residual(compile, target, tmp_path):
    """The constant is row-major; the convolution's result is blocked."""
    draw = numpy.random.default_rng(8)
    w, added = weights(draw, 32, 32), draw.standard_normal((1, 32, 11, 11)).astype(numpy.float32)
    model = Model()
    y = model.node("Conv", [model.input("x", "f32", [1, 32, 11, 11]), model.constant(w)], pads=[1, 1, 1, 1])
    model.output(model.node("Add", [y, model.constant(added)]))
    data = draw.standard_normal((1, 32, 11, 11)).astype(numpy.float32)
    check(compile(model.write(tmp_path), target, FORCED), data, convolution(data, w) + added)


def test_the_number_of_images_is_known_at_run_time(compile, target, tmp_path):
    draw = numpy.random.default_rng(5)
    model, want = residual_block(draw, "N")
    model.dim("N", 1, 4, 9)
    module = compile(model.write(tmp_path), target, FORCED)
    for images in (1, 2, 9):
        data = draw.standard_normal((images, 32, 11, 11)).astype(numpy.float32)
        check(module, data, want(data))


def test_no_more_workers_share_few_images_than_there_are_blocks(rnncc, tmp_path):
    """Else the first workers, of which the caller is one, have nothing to do."""
    model, _ = residual_block(numpy.random.default_rng(5), "N")
    model.dim("N", 1, 4, 9)
    options = (f"{FORCED},tile=2,oc=2,parts=2", "--target=x86-64-v3", "--machine=typical", "--threads=8")
    dumped = rnncc("inspect", model.write(tmp_path), "--dump-after=lower", *options).stderr
    assert re.findall(r"block_tiles = (.*)", dumped) == ["9", "9"]  # of an image's 36
    assert re.findall(r"slots = (.*)", dumped) == ["min(8, 4*N)", "min(8, 4*N)"]


def test_no_winograd_sums_as_defined(rnncc, compile, target, tmp_path):
    """Integers are then exact, which F(4,3) and F(6,3) are not."""
    draw = numpy.random.default_rng(6)
    w = draw.integers(-9, 10, (32, 32, 3, 3)).astype(numpy.float32)
    model = Model()
    model.output(model.node("Conv", [model.input("x", "f32", [1, 32, 24, 24]), model.constant(w)], pads=[1, 1, 1, 1]))
    path, data = model.write(tmp_path), draw.integers(-99, 100, (1, 32, 24, 24)).astype(numpy.float32)
    options = [target, "--threads=1"]
    assert re.match("winograd(4x4|6x6)_3x3_", kernels_of(rnncc, path, *options, FORCED)[0])
    assert not kernels_of(rnncc, path, *options, "--no-winograd")
    assert (run(compile(path, *options, "--no-winograd"), data, 2) == convolution(data, w)).all()
    assert (run(compile(path, *options, FORCED), data, 2) != convolution(data, w)).any()


@pytest.mark.parametrize("channels, extent, tile", [(256, 112, 6), (64, 56, 4), (128, 28, 4), (512, 7, 2)])
def test_the_tile_is_the_larger_where_its_weights_are_soon_read(rnncc, tmp_path, channels, extent, tile):
    """F(4,3) multiplies less than F(2,3) but has more weights: 36 numbers for each filter, not 16. At 7x7 only four tiles
    use them. F(6,3) multiplies least and transforms most, and loses least at the edges of large images."""
    model, zeros = Model(), numpy.zeros((channels, channels, 3, 3), numpy.float32)
    model.output(model.node("Conv", [model.input("x", "f32", [1, channels, extent, extent]), model.constant(zeros)],
                            pads=[1, 1, 1, 1]))
    (kernel,) = kernels_of(rnncc, model.write(tmp_path), "--target=x86-64-v4", "--threads=2", FORCED)
    assert kernel.startswith(f"winograd{tile}x{tile}_3x3_")
