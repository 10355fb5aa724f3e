# SPDX-License-Identifier: MIT
"""Winograd convolutions whose weights a program sets (--weights=mutable), or the network computes: the bits of constant weights,
and the kernels that those would have."""
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

from kernels.test_conv_winograd import BOUND, LAYERS, convolution, weights
from support import kernel_builder
from support.amount import long_tests
from support.bodies import Body
from support.model_builder import Model
from support.module import rnncc as package

MUTABLE, FORCED = "--weights=mutable", "--conv=winograd"
TARGETS = {"x86-64-v4": "avx512", "x86-64-v3": "avx2", "x86-64": "plain"}


def layer(draw, name, weight=None):
    """A convolution of LAYERS, and an input. weight: makes one that is no constant; or None."""
    channels, kernels, height, width, pads, group, *window = LAYERS[name]
    model, shape = Model(), (2, channels, height, width)
    w, bias = weights(draw, kernels, channels // group, *window), draw.standard_normal(kernels).astype(numpy.float32)
    given = weight(model, w) if weight else model.constant(w, "w")
    x = model.input("x", "f32", list(shape))
    model.output(model.node("Conv", [x, given, model.constant(bias, "b")], pads=list(pads), group=group))
    return model, {"x": draw.standard_normal(shape).astype(numpy.float32)}, (w, bias, pads, group)


def kernels_of(rnncc, path, *options):
    done = rnncc("inspect", path, *options)
    assert done.returncode == 0, done.stderr
    return re.findall(r" Conv +(\S+)", done.stdout)


def written(folder, model):
    folder.mkdir()
    return model.write(folder)


@pytest.mark.parametrize("target, name", [(target, name) for i, name in enumerate(LAYERS) for k, target in enumerate(TARGETS)
                                          if long_tests() or i % len(TARGETS) == k])
def test_set_weights_give_the_bits_of_constant_ones(rnncc, compile, tmp_path, target, name):
    """Odd sizes, channels and pads, groups, and windows of all forms."""
    kernel_builder.emulator(TARGETS[target])
    target, draw = f"--target={target}", numpy.random.default_rng(1)
    first, feeds, _ = layer(draw, name)
    second, _, parts = layer(draw, name)
    path, other = written(tmp_path / "first", first), written(tmp_path / "second", second)
    options = [target, FORCED, "--threads=3"]
    assert kernels_of(rnncc, path, MUTABLE, *options) == kernels_of(rnncc, path, *options)
    assert kernels_of(rnncc, path, MUTABLE, *options)[0].startswith("winograd")
    with package.load(compile(path, MUTABLE, *options), threads=2, share_all=True) as ours, \
            package.load(compile(other, *options), threads=1) as constant:
        before, due = ours(feeds["x"]), constant(feeds["x"])
        ours.weights.update({"w": parts[0], "b": parts[1]})
        got = ours(feeds["x"])
        assert numpy.array_equal(ours.weights["w"], parts[0])
    assert got.tobytes() == due.tobytes() != before.tobytes()
    want = convolution(feeds["x"], *parts)
    assert numpy.abs(got - want).max() <= BOUND * numpy.abs(want).max()


@pytest.mark.parametrize("name", ["odd_extents", "groups", "row_of_seven"])
def test_weights_that_the_network_computes(rnncc, compile, tmp_path, name):
    """They are transformed in each run, on any number of threads."""
    draw = numpy.random.default_rng(2)
    model, feeds, parts = layer(draw, name, lambda model, w: model.node("Mul", [model.constant(w), model.input("s", "f32", [1])]))
    path = model.write(tmp_path)
    assert kernels_of(rnncc, path, FORCED)[0].startswith("winograd")
    module = compile(path, FORCED)
    for scale in (1, 0.5):
        feeds["s"] = numpy.array([scale], numpy.float32)
        want = convolution(feeds["x"], parts[0] * numpy.float32(scale), *parts[1:])
        found = set()
        for threads in (1, 2, 5):
            with package.load(module, threads=threads, share_all=True) as loaded:
                (y,) = loaded.run(feeds).values()
            found.add(y.tobytes())
        assert len(found) == 1
        assert numpy.abs(y - want).max() <= BOUND * numpy.abs(want).max()


def test_a_batch_that_is_empty_at_its_optimum(compile, tmp_path):
    """Winograd's algorithm has no plan for it."""
    draw, model = numpy.random.default_rng(3), Model()
    model.dim("N", 0, 0, 4)
    x, w = model.input("x", "f32", ["N", 32, 12, 12]), model.input("w", "f32", [32, 32, 3, 3])
    model.output(model.node("Conv", [x, w], pads=[1] * 4))
    feeds = {"x": draw.standard_normal((2, 32, 12, 12)).astype(numpy.float32), "w": weights(draw, 32, 32)}
    with package.load(compile(model.write(tmp_path))) as loaded:
        (y,) = loaded.run(feeds).values()
        (none,) = loaded.run({**feeds, "x": feeds["x"][:0]}).values()
    want = convolution(feeds["x"], feeds["w"], numpy.zeros(32, numpy.float32), (1, 1, 1, 1), 1)
    assert numpy.abs(y - want).max() <= BOUND * numpy.abs(want).max() and none.shape == (0, 32, 12, 12)


@pytest.mark.parametrize("carried", [False, True])
def test_weights_within_a_loop(rnncc, compile, tmp_path, carried):
    """Of the run, the same in each iteration, or carried and halved."""
    draw, model, channels = numpy.random.default_rng(8), Model(), 24
    shapes = {"x": (2, channels, 11, 9), "w": (channels, channels, 3, 3)}
    first = [model.input(name, "f32", list(shape)) for name, shape in shapes.items()]
    turns = model.node("Min", [model.input("n", "i64", []), model.constant(numpy.array(5))])
    types = {"i": "i64", "c": "bool", "x": "f32"} | ({"w": "f32"} if carried else {})
    body = Body(model, **types)
    w = body.inputs[3] if carried else first[1]
    results = [body.node("Conv", [body.inputs[2], w], pads=[1] * 4)]
    if carried:
        results.append(body.node("Mul", [w, model.constant(numpy.float32(0.5))]))
    body.output(body.inputs[1], *results)
    last = model.node("Loop", [turns, None, *first[:len(results)]], len(results), body=body)
    model.output(last[0] if carried else last)
    path = model.write(tmp_path)
    (kernel,) = kernels_of(rnncc, path, FORCED)
    assert kernel.startswith("winograd")
    feeds = {"x": draw.standard_normal(shapes["x"]).astype(numpy.float32), "w": weights(draw, channels, channels)}
    module = compile(path, FORCED)
    for n in (0, 1, 4):
        want, found = feeds["x"], set()
        for turn in range(n):
            want = convolution(want, feeds["w"] * 0.5 ** (turn if carried else 0))
        for threads in (1, 3):
            with package.load(module, threads=threads, share_all=True) as loaded:
                y = loaded.run(feeds | {"n": numpy.array(n)})[model.outputs[0]]
            found.add(y.tobytes())
        assert len(found) == 1
        assert numpy.abs(y - want).max() <= max(n, 1) * BOUND * numpy.abs(want).max(), n


def normalised(draw, shared):
    """A batch normalisation becomes part of the convolution; `shared`: its weights are another one's, too."""
    model, channels = Model(), 32
    x = model.input("x", "f32", [1, channels, 20, 20])
    w = model.constant(weights(draw, channels, channels), "w")
    parameters = [model.constant(draw.uniform(0.5, 1, channels).astype(numpy.float32)) for _ in range(4)]
    y = model.node("BatchNormalization", [model.node("Conv", [x, w], pads=[1] * 4), *parameters])
    if shared:
        y = model.node("Conv", [y, w], pads=[1] * 4)
    model.output(y)
    return model, draw.standard_normal((1, channels, 20, 20)).astype(numpy.float32)


@pytest.mark.parametrize("shared", [False, True])
def test_folded_weights_are_transformed_and_not_kept_besides(rnncc, compile, tmp_path, shared):
    model, x = normalised(numpy.random.default_rng(3), shared)
    other, _ = normalised(numpy.random.default_rng(4), shared)
    options = [MUTABLE, FORCED, "--target=x86-64-v3"]
    path = written(tmp_path / "first", model)
    with package.load(compile(path, *options), threads=2, share_all=True) as ours, \
            package.load(compile(written(tmp_path / "second", other), *options), threads=1) as due:
        ours.weights.update({name: other.arrays[name] for name in ours.weights})
        assert ours(x).tobytes() == due(x).tobytes()
    done = rnncc("inspect", path, *options)
    tiles = [int(tile) for tile in re.findall(r"winograd(\d)x", done.stdout)]
    filters, given = 32 * 32, 4 * sum(array.size for array in model.arrays.values())
    points = sum(4 * filters * (tile + 2) ** 2 for tile in tiles)
    bytes_of_model = int(re.search(r"(\d+) bytes in a model", done.stdout)[1])
    assert len(tiles) == 1 + shared
    assert given + points <= bytes_of_model <= given + points + 4 * 32 * 8  # and biases


def test_planes_of_few_pixels_have_weights_of_their_own(rnncc, compile, tmp_path):
    draw = numpy.random.default_rng(5)
    w, v = (weights(draw, 64, 64) for _ in range(2))
    model = Model()
    model.dim("H", 2, 96, 96)
    model.output(model.node("Conv", [model.input("x", "f32", [1, 64, "H", 96]), model.constant(w, "w")], pads=[1] * 4))
    path, options = model.write(tmp_path), ["--target=x86-64-v3", "--threads=1", "--machine=typical"]
    kernels = kernels_of(rnncc, path, MUTABLE, *options)
    assert len(kernels) == 2 and all(it.startswith("winograd") for it in kernels), kernels
    assert kernels == kernels_of(rnncc, path, *options)
    other = Model()
    other.dim("H", 2, 96, 96)
    other.output(other.node("Conv", [other.input("x", "f32", [1, 64, "H", 96]), other.constant(v, "w")], pads=[1] * 4))
    with package.load(compile(path, MUTABLE, *options), threads=1) as ours, \
            package.load(compile(written(tmp_path / "other", other), *options), threads=1) as constant:
        ours.weights["w"] = v
        for height in (2, 96):
            x = draw.standard_normal((1, 64, height, 96)).astype(numpy.float32)
            assert ours(x).tobytes() == constant(x).tobytes()


@pytest.mark.parametrize("channels, extent", [(64, 56), (128, 28), (256, 14)])
def test_the_choice_is_that_of_constant_weights(rnncc, tmp_path, channels, extent):
    model, zeros = Model(), numpy.zeros((channels, channels, 3, 3), numpy.float32)
    model.output(model.node("Conv", [model.input("x", "f32", [1, channels, extent, extent]), model.constant(zeros)],
                            pads=[1, 1, 1, 1]))
    path = model.write(tmp_path)
    for options in (["--target=x86-64-v4"], ["--target=x86-64-v3", "--threads=2"], ["--no-winograd"]):
        (kernel,) = kernels_of(rnncc, path, MUTABLE, *options)
        assert [kernel] == kernels_of(rnncc, path, *options)
        assert kernel.startswith("winograd") == ("--no-winograd" not in options), options


def test_weights_are_set_while_others_run(compile, tmp_path):
    """Each run has all of one set."""
    draw = numpy.random.default_rng(6)
    model, feeds, (w, *_) = layer(draw, "odd_extents")
    module, x, ended = compile(model.write(tmp_path), MUTABLE, FORCED), feeds["x"], threading.Event()
    with package.load(module, threads=2, share_all=True) as ours:
        results = []
        for scale in (1, 2):
            ours.weights["w"] = w * numpy.float32(scale)
            results.append(ours(x).tobytes())
        assert results[0] != results[1]

        def run():
            context, found = ours.context(), []
            while not ended.is_set() or not found:
                found.append(context.run({"x": x})[ours.info.outputs[0].name].tobytes())
            return found

        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(run) for _ in range(2)]
            try:
                for n in range(100):
                    ours.weights["w"] = w * numpy.float32(1 + n % 2)
            finally:
                ended.set()
            for thread in running:
                found = thread.result()  # or what it raised
                assert found and set(found) <= set(results)


def test_trained_weights(rnncc, compile, tmp_path):
    """Forwards and for the input's gradient; no activation, which could go the other way by a rounding."""
    draw, model = numpy.random.default_rng(7), Model()
    x = model.input("x", "f32", [2, 16, 18, 13])
    for k, (kernels, channels) in enumerate(((32, 16), (40, 32))):
        x = model.node("Conv", [x, model.constant(weights(draw, kernels, channels), f"w{k}")], pads=[1] * 4)
    model.output(model.node("ReduceMean", [model.node("Mul", [x, x])], keepdims=0))
    path, feed = model.write(tmp_path), draw.standard_normal((2, 16, 18, 13)).astype(numpy.float32)
    assert len(re.findall("WinogradWeights", rnncc("inspect", path, "--train", FORCED).stdout)) == 3
    found = []
    for threads, option in ((1, FORCED), (3, FORCED), (1, "--no-winograd")):
        trainer = package.load(compile(path, "--train", option), threads=threads, share_all=True).trainer()
        for step in range(2):
            loss = trainer(feed)
            trainer.backward()
            gradients = trainer.gradients()
            trainer.step("sgd", 0.1)
        found.append((loss.tobytes(), {name: array.copy() for name, array in gradients.items()}))
    (one, ours), (other, theirs), (_, due) = found
    assert one == other
    for name, array in ours.items():
        assert array.tobytes() == theirs[name].tobytes(), name
        assert 0 < numpy.abs(array - due[name]).max() <= 4 * BOUND * numpy.abs(due[name]).max(), name
