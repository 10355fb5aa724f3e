# SPDX-License-Identifier: MIT
"""A convolution's gradients for its weights and its input. Small integers make every sum exact in f32: results equal the
reference's, and those of the definition."""
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
    "uneven": ((2, 9, 9, 16), 60, (2, 7), {"strides": [1, 2], "pads": [0, 3, 1, 2]}),
    "dilated": ((2, 4, 13, 13), 9, (3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "strided and dilated": ((2, 4, 15, 15), 9, (3, 2), {"strides": [2, 3], "dilations": [3, 2]}),
    "as wide as the input": ((2, 3, 5, 20), 4, (5, 20), {}),
    "in groups": ((2, 6, 8, 9), 10, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "in groups of a vector": ((1, 32, 6, 5), 64, (3, 3), {"group": 2, "strides": [2, 1]}),
    "depthwise": ((2, 21, 10, 9), 21, (3, 3), {"group": 21, "pads": [1, 1, 1, 1]}),
    "depthwise, several": ((2, 5, 10, 9), 15, (5, 5), {"group": 5, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
    "less than the stride": ((2, 3, 11, 9), 4, (2, 1), {"strides": [3, 2]}),
    "patches": ((2, 3, 11, 10), 4, (5, 5), {"strides": [5, 5]}),
    "pads wider than the window": ((1, 2, 6, 7), 3, (2, 2), {"pads": [3, 2, 2, 3], "strides": [2, 1]}),
    "pads wider than window and stride": ((1, 1, 1), 1, (3,), {"strides": [3], "pads": [4, 0]}),
    "places that the last window alone misses": ((2, 4, 2), 4, (3,), {"strides": [3], "pads": [2, 0], "group": 2}),
    "places that no window reads": ((1, 3, 1, 4), 5, (2, 1), {"strides": [3, 1], "pads": [2, 0, 1, 0]}),
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


def test_the_reference_computes_what_is_written(reference, tmp_path):
    for name in ("padded", "strided", "uneven", "in groups"):
        model = Model()
        feeds = add(model, 0, CASES[name], numpy.random.default_rng(18))
        due = by_definition(CASES[name], *feeds.values())[1]
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


def test_a_batch_may_be_empty(compile, tmp_path):
    model = Model()
    model.dim("N", 0, 2, 4)
    case = (2, 3, 8, 8), 5, (3, 3), {"pads": [1, 1, 1, 1]}
    w = numpy.ones((5, 3, 3, 3), "f")
    y = model.node("Conv", [model.input("x", "f32", ["N", 3, 8, 8]), model.constant(w, "w")], **case[3])
    model.output(model.node("ReduceSum", [y], keepdims=0))
    trainer = package.load(compile(model.write(tmp_path), "--train"), threads=2, share_all=True).trainer()
    data = numpy.random.default_rng(24).integers(-4, 5, case[0]).astype("f")
    for images, due in ((2, by_definition(case, data, w, numpy.ones((2, 5, 8, 8)))[1]), (0, 0 * w)):
        trainer(data[:images])
        trainer.backward()
        numpy.testing.assert_array_equal(trainer.gradients()["w"], due, f"{images} images")


def trained(cases, sizes=None):
    """Convolutions of inputs and weights that are trained, or of inputs of extents that the run knows; the loss is a sum
    of products with given factors. Also the arrays: x and w, and the factors, d, by number."""
    rng, model, arrays, sums = numpy.random.default_rng(21), Model(), {}, []
    for k, (x, kernels, window, attributes) in enumerate(cases):
        shapes = {"x": x, "w": (kernels, x[1] // attributes.get("group", 1), *window), "d": result_shape(x, kernels, window, attributes)}
        arrays.update({f"{name}{k}": rng.integers(-4, 5, shape).astype("f") for name, shape in shapes.items()})
        data = model.input(f"x{k}", "f32", sizes["x"]) if sizes else model.constant(arrays[f"x{k}"], f"x{k}")
        y = model.node("Conv", [data, model.constant(arrays[f"w{k}"], f"w{k}")], [f"y{k}"], **attributes)
        if not sizes:
            y = model.node("ReduceSum", [model.node("Mul", [y, model.input(f"d{k}", "f32", shapes["d"])])], keepdims=0)
        sums.append(y)
    model.output(sums[0] if sizes else model.node("Sum", sums))
    return model, arrays


def by_definition(case, x, w, d):
    """Of x and w, in double: each tap of the window apart."""
    window, attributes, n = case[2], case[3], len(case[2])
    strides, dilations = (attributes.get(name, [1] * n) for name in ("strides", "dilations"))
    group, pads = attributes.get("group", 1), attributes.get("pads", [0] * 2 * n)
    padded = numpy.pad(x.astype(float), [(0, 0), (0, 0), *zip(pads[:n], pads[n:])])
    parts = padded.reshape(x.shape[0], group, -1, *padded.shape[2:])
    d, w = d.astype(float).reshape(d.shape[0], group, -1, *d.shape[2:]), w.astype(float).reshape(group, -1, *w.shape[1:])
    of_x, of_w = numpy.zeros(parts.shape), numpy.zeros(w.shape)
    for tap in numpy.ndindex(*window):
        at = tuple(slice(t * dilation, t * dilation + (size - 1) * stride + 1, stride)
                   for t, dilation, size, stride in zip(tap, dilations, d.shape[3:], strides))
        places = (slice(None),) * 3 + at
        of_x[places] += numpy.einsum("ngk...,gkc->ngc...", d, w[(slice(None),) * 3 + tap])
        of_w[(slice(None),) * 3 + tap] = numpy.einsum("ngkp,ngcp->gkc", d.reshape(*d.shape[:3], -1),
                                                      parts[places].reshape(*parts.shape[:3], -1))
    inside = tuple(slice(begin, begin + size) for begin, size in zip(pads, x.shape[2:]))
    return of_x[(slice(None),) * 3 + inside].reshape(x.shape), of_w.reshape(-1, *w.shape[2:])


def test_gradients_of_training_are_those_of_the_definition(compile, tmp_path):
    model, arrays = trained(CASES.values())
    trainer = package.load(compile(model.write(tmp_path), "--train", "--no-winograd"), threads=2, share_all=True).trainer()
    trainer.run({name: array for name, array in arrays.items() if name[0] == "d"})
    trainer.backward()
    gradients = trainer.gradients()
    for k, (name, case) in enumerate(CASES.items()):
        of_x, of_w = by_definition(case, *(arrays[f"{which}{k}"] for which in "xwd"))
        numpy.testing.assert_array_equal(gradients[f"x{k}"], of_x, name)
        numpy.testing.assert_array_equal(gradients[f"w{k}"], of_w, name)


@pytest.mark.optimised_here
@pytest.mark.parametrize("name", ["padded", "strided", "uneven"])
def test_the_inputs_gradient_of_extents_of_the_run(compile, tmp_path, name):
    x, kernels, window, attributes = CASES[name]
    model, arrays = trained([CASES[name]], {"x": ["N", x[1], "H", "W"]})
    for dim, most in (("N", 3), ("H", 20), ("W", 40)):
        model.dim(dim, 7, 9, most) if dim != "N" else model.dim(dim, 1, 2, most)
    trainer = package.load(compile(model.write(tmp_path), "--train", "--outer-loss"), threads=2, share_all=True).trainer()
    rng = numpy.random.default_rng(22)
    for sizes in ((1, 7, 7), (3, 20, 39), (2, 12, 10)):
        case = ((sizes[0], x[1], *sizes[1:]), kernels, window, attributes)
        data, d = (rng.integers(-4, 5, shape).astype("f") for shape in (case[0], result_shape(*case)))
        trainer(data)
        found = trainer.backward_from({"y0": d})["x0"]
        of_x, of_w = by_definition(case, data, arrays["w0"], d)
        numpy.testing.assert_array_equal(found, of_x)
        numpy.testing.assert_array_equal(trainer.gradients()["w0"], of_w)


def test_gradients_have_the_same_bits_on_any_number_of_threads(compile, tmp_path):
    rng = numpy.random.default_rng(23)
    model, arrays = trained([CASES[name] for name in ("strided", "depthwise", "dilated", "pointwise")])
    factors = {name: rng.standard_normal(array.shape).astype("f") for name, array in arrays.items() if name[0] == "d"}
    module, seen = compile(model.write(tmp_path), "--train"), set()
    for threads in (1, 2, 7):
        trainer = package.load(module, threads=threads, share_all=True).trainer()
        trainer.run(factors)
        trainer.backward()
        seen.add(b"".join(array.tobytes() for array in trainer.gradients().values()))
    assert len(seen) == 1
