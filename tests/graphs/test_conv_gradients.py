# SPDX-License-Identifier: MIT
"""The weights' gradient of a convolution. Small integers make every sum exact in f32: results equal the reference's."""
import numpy
import pytest

from support.amount import some
from support.emitted import TARGETS, assert_same
from support.model_builder import Model
from support.module import rnncc as package
from support.targets import SCALABLE

# x, output channels, window, and attributes. Channels, kernels, taps and places each with and without tails of any tile.
CASES = {
    "one place": ((1, 1, 1), 1, (1,), {}),
    "a signal": ((3, 5, 70), 3, (11,), {"pads": [5, 5]}),
    "a signal, strided and dilated": ((2, 3, 41), 17, (3,), {"strides": [3], "dilations": [2]}),
    "pointwise": ((3, 19, 7, 5), 33, (1, 1), {}),
    "pointwise, strided": ((2, 7, 9, 8), 5, (1, 1), {"strides": [2, 2]}),
    "padded": ((2, 3, 12, 11), 64, (3, 3), {"pads": [1, 1, 1, 1]}),
    "more than a block": ((2, 2, 20, 20), 16, (3, 3), {"pads": [1, 1, 1, 1]}),
    "strided": ((2, 6, 13, 14), 70, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "uneven": ((2, 9, 9, 16), 20, (2, 7), {"strides": [1, 2], "pads": [0, 3, 1, 2]}),
    "dilated": ((2, 4, 13, 13), 9, (3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "strided and dilated": ((2, 4, 15, 15), 9, (3, 2), {"strides": [2, 3], "dilations": [3, 2]}),
    "as wide as the input": ((2, 3, 5, 20), 4, (5, 20), {}),
    "in groups": ((2, 6, 8, 9), 10, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "in groups of a vector": ((1, 32, 6, 5), 64, (3, 3), {"group": 2, "strides": [2, 1]}),
    "depthwise": ((2, 21, 10, 9), 21, (3, 3), {"group": 21, "pads": [1, 1, 1, 1]}),
    "depthwise, several": ((2, 5, 10, 9), 15, (5, 5), {"group": 5, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
    "a volume": ((2, 3, 5, 6, 7), 18, (3, 2, 3), {"pads": [1, 0, 1, 1, 1, 1], "strides": [2, 1, 1]}),
}


def extent(size, window, stride, dilation, pads):
    return (size + sum(pads) - dilation * (window - 1) - 1) // stride + 1


def result_shape(x, kernels, window, attributes):
    n = len(window)
    ones, pads = [1] * n, attributes.get("pads", [0] * 2 * n)
    strides, dilations = attributes.get("strides", ones), attributes.get("dilations", ones)
    return (x[0], kernels, *(extent(x[2 + i], window[i], strides[i], dilations[i], (pads[i], pads[n + i])) for i in range(n)))


def add(model, number, case, rng, sizes=None):
    """The node; its inputs, by name. sizes: names of x's extents that only the run knows."""
    x, kernels, window, attributes = case
    shapes = {"x": x, "w": (kernels, x[1] // attributes.get("group", 1), *window), "d": result_shape(*case)}
    feeds = {f"{name}{number}": rng.integers(-4, 5, shape).astype("f") for name, shape in shapes.items()}
    inputs = [model.input(name, "f32", (sizes or {}).get(name[0], array.shape)) for name, array in feeds.items()]
    model.output(model.node("ConvWeightGradient", inputs, **attributes))
    return feeds


def all_cases():
    rng, model, feeds = numpy.random.default_rng(17), Model(), {}
    for number, case in enumerate(CASES.values()):
        feeds.update(add(model, number, case, rng))
    return model, feeds


@pytest.mark.parametrize("target", [*TARGETS, *some(SCALABLE, 0)])
def test_weights_gradients_equal_the_reference(reference, run_for, tmp_path, target):
    """By 1 and 2 threads, as every emitted kernel."""
    model, feeds = all_cases()
    path = model.write(tmp_path)
    assert_same(run_for(target, path, feeds, model.outputs), reference.run(model, path, feeds))


def by_sums(x, d, window, strides, pads):
    """In double, by the definition, of two spatial axes."""
    padded = numpy.pad(x.astype(float), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows, columns = d.shape[2:]
    result = numpy.zeros((d.shape[1], x.shape[1], *window))
    for r, s in numpy.ndindex(*window):
        part = padded[:, :, r:r + rows * strides[0]:strides[0], s:s + columns * strides[1]:strides[1]]
        result[:, :, r, s] = numpy.einsum("nkhw,nchw->kc", d.astype(float), part[:, :, :rows, :columns])
    return result


def test_the_reference_computes_what_is_written(reference, tmp_path):
    for name in ("padded", "strided", "uneven"):
        model, case = Model(), CASES[name]
        feeds = add(model, 0, case, numpy.random.default_rng(18))
        due = by_sums(feeds["x0"], feeds["d0"], case[2], case[3].get("strides", [1, 1]), case[3]["pads"])
        assert_same(reference.run(model, model.write(tmp_path), feeds), {model.outputs[0]: due.astype("f")})


def test_extents_may_be_those_of_the_run(compile, reference, tmp_path):
    """Planes and images."""
    x, kernels, window, attributes = CASES["padded"]
    model = Model()
    add(model, 0, CASES["padded"], numpy.random.default_rng(19), {"x": ["N", 3, "H", "W"], "d": ["N", kernels, "H", "W"]})
    for name, most in (("N", 3), ("H", 20), ("W", 40)):
        model.dim(name, 1, 2, most)
    path = model.write(tmp_path)
    context = package.load(compile(path), threads=2, share_all=True)
    for sizes in ((1, 1, 1), (3, 20, 40), (2, 5, 17)):
        feeds = add(Model(), 0, ((sizes[0], 3, *sizes[1:]), kernels, window, attributes), numpy.random.default_rng(20))
        assert_same({model.outputs[0]: context(*feeds.values())}, reference.run(model, path, feeds))


def trained(case):
    """A convolution of inputs and weights that are trained; its gradients are those of random sums."""
    x, kernels, window, attributes = case
    rng, model = numpy.random.default_rng(21), Model()
    arrays = {"x": rng.standard_normal(x), "w": rng.standard_normal((kernels, x[1] // attributes.get("group", 1), *window))}
    inputs = [model.constant(array.astype("f"), name) for name, array in arrays.items()]
    factors = model.input("factors", "f32", result_shape(*case))
    model.output(model.node("ReduceSum", [model.node("Mul", [model.node("Conv", inputs, **attributes), factors])], keepdims=0))
    return model, rng.standard_normal(result_shape(*case)).astype("f")


@pytest.mark.parametrize("name", ["strided", "depthwise", "dilated"])
def test_gradients_have_the_same_bits_on_any_number_of_threads(compile, tmp_path, name):
    model, factors = trained(CASES[name])
    module, seen = compile(model.write(tmp_path), "--train"), set()
    for threads in (1, 2, 7):
        trainer = package.load(module, threads=threads, share_all=True).trainer()
        trainer(factors)
        trainer.backward()
        gradients = trainer.gradients()
        seen.add(gradients["x"].tobytes() + gradients["w"].tobytes())
    assert len(seen) == 1
