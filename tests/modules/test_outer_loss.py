# SPDX-License-Identifier: MIT
"""Modules of `rnncc --train --outer-loss`: gradients of outputs go in, gradients of inputs and weights come out."""
import ctypes

import numpy
import pytest

from support.model_builder import Model
from support.module import rnncc as package
from rnncc import abi, dtypes  # in the folder that the former adds

H = 6
F32 = next(it.code for it in dtypes.DTYPES if it.name == "f32")


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(numpy.float32)


def layers(inside):
    """A GRU and a product; with `inside` the loss sum(y * g) + sum(last * k) is an output, and g and k are inputs."""
    rng = numpy.random.default_rng(1)
    model = Model("part")
    model.dim("T", 1, 5, 20)
    model.dim("B", 1, 3, 9)
    x, h0 = model.input("x", "f32", ["T", "B", 4]), model.input("h0", "f32", [1, "B", H])
    weights = [model.constant(floats(rng, *shape), name) for name, shape in
               {"W": (1, 3 * H, 4), "R": (1, 3 * H, H), "bias": (1, 6 * H)}.items()]
    steps, last = model.node("GRU", [x, *weights, "", h0], ["steps", "last"], hidden_size=H, linear_before_reset=1)
    y = model.node("MatMul", [steps, model.constant(floats(rng, H, 5), "out")], ["y"])
    if not inside:
        model.output(y, last)
        return model
    sums = [model.node("ReduceSum", [model.node("Mul", [it, model.input(name, "f32", shape)])], keepdims=0)
            for it, name, shape in ((y, "g", ["T", 1, "B", 5]), (last, "k", [1, "B", H]))]
    model.output(model.node("Add", sums, ["loss"]))
    return model


def arrays(t=5, b=3, seed=2):
    rng = numpy.random.default_rng(seed)
    return floats(rng, t, b, 4), floats(rng, 1, b, H), floats(rng, t, 1, b, 5), floats(rng, 1, b, H)


@pytest.fixture
def trainer(compile, tmp_path):
    return package.load(compile(layers(inside=False).write(tmp_path), "--train", "--outer-loss"), threads=1).trainer()


def test_weights_have_the_gradients_of_the_same_loss_inside(compile, trainer, tmp_path):
    inner = package.load(compile(layers(inside=True).write(tmp_path, "inside"), "--train"), threads=1).trainer()
    for t, b in ((5, 3), (1, 9), (20, 1)):
        x, h0, g, k = arrays(t, b)
        inner(x, h0, g, k)
        inner.backward()
        trainer(x, h0)
        found = trainer.backward_from({"y": g, "last": k})
        assert {name: array.shape for name, array in found.items()} == {"x": x.shape, "h0": h0.shape}
        due = inner.gradients()
        for name, gradient in trainer.gradients().items():
            assert numpy.abs(gradient - due[name]).max() <= 2.0**-20 * numpy.abs(due[name]).max()


def test_inputs_have_gradients(trainer):
    """The difference of the loss on both sides along one direction of all inputs, within the roundings of f32."""
    x, h0, g, k = arrays()
    along_x, along_h0, _, _ = arrays(seed=3)

    def loss(step):
        y, last = trainer(x + step * along_x, h0 + step * along_h0)
        return float((y.astype(float) * g).sum() + (last.astype(float) * k).sum())

    step = numpy.float32(2.0**-8)
    due = (loss(step) - loss(-step)) / (2 * float(step))
    trainer(x, h0)
    found = trainer.backward_from({"y": g, "last": k})
    assert abs((found["x"] * along_x).sum() + (found["h0"] * along_h0).sum() - due) < 2.0**-10 * max(1, abs(due))
    assert abs(due) > 0.1


def test_a_gradient_that_is_missing_is_zero(trainer):
    x, h0, g, k = arrays()
    trainer(x, h0)
    found = [trainer.backward_from({"y": g})]
    for last in (None, numpy.zeros_like(k)):
        trainer(x, h0)
        found.append(trainer.backward_from({"y": g, "last": last}))
    assert all(numpy.array_equal(found[0][name], it[name]) for it in found for name in ("x", "h0"))


def product():
    """y = x w, also as two outputs; x itself is one, and elements of w by an index that is computed."""
    model = Model("product")
    model.dim("N", 1, 4, 8)
    x, index = model.input("x", "f32", ["N", 3]), model.input("index", "i64", [2])
    w = model.constant(floats(numpy.random.default_rng(4), 3, 5), "w")
    y = model.node("MatMul", [x, w], ["y"])
    chosen = model.node("Gather", [x, model.node("Add", [index, index])], ["chosen"], axis=0)
    model.output(y, model.node("Identity", [y], ["again"]), model.node("Identity", [x], ["copy"]), chosen,
                 model.node("Shape", [x], ["shape"]))
    return model


def test_outputs_share_values_and_may_be_inputs(compile, tmp_path):
    trainer = package.load(compile(product().write(tmp_path), "--train", "--outer-loss")).trainer()
    rng = numpy.random.default_rng(5)
    w = trainer.weights()["w"]
    for n in (4, 8):
        x, index = floats(rng, n, 3), numpy.array([0, 1])
        trainer(x, index)
        given = {"y": floats(rng, n, 5), "again": floats(rng, n, 5), "copy": floats(rng, n, 3), "chosen": floats(rng, 2, 3)}
        found = trainer.backward_from(given)["x"]
        due = (given["y"] + given["again"]) @ w.T + given["copy"]
        numpy.add.at(due, 2 * index, given["chosen"])
        assert numpy.allclose(found, due, rtol=1e-5, atol=1e-5)
        assert numpy.allclose(trainer.gradients()["w"], x.T @ (given["y"] + given["again"]), rtol=1e-5, atol=1e-5)


def test_an_input_is_left_out_by_its_name(compile, tmp_path):
    path = layers(inside=False).write(tmp_path)
    trainer = package.load(compile(path, "--train=!x", "--outer-loss")).trainer()
    x, h0, g, k = arrays()
    trainer(x, h0)
    assert list(trainer.backward_from({"y": g})) == ["h0"]


def test_what_does_not_fit_is_refused_and_the_run_stays(trainer):
    x, h0, g, k = arrays()
    with pytest.raises(package.ArgumentError, match=r"expected a run\(\)"):
        trainer.backward_from({"y": g})
    trainer(x, h0)
    with pytest.raises(package.ShapeError, match="the gradient of output 'y': axis 2 is 2, the output's is 3"):
        trainer.backward_from({"y": g[:, :, :2]})
    with pytest.raises(package.DTypeError, match="expected f32, found float64"):
        trainer.backward_from({"y": g.astype(float)})
    with pytest.raises(package.ArgumentError, match="output x has no gradient; expected some of y, last"):
        trainer.backward_from({"x": x})
    with pytest.raises(package.ArgumentError, match=r"expected backward_from\(\)"):
        trainer.backward()
    assert set(trainer.backward_from({"y": g})) == {"x", "h0"}
    with pytest.raises(package.ArgumentError, match=r"one for each backward\(\)"):
        trainer.backward_from({"y": g})
    trainer(x, h0)
    trainer.set_weights({"bias": trainer.weights()["bias"]})
    with pytest.raises(package.ArgumentError, match="weights have changed since"):
        trainer.backward_from({"y": g})


def test_buffers_must_be_apart(trainer):
    x, h0, g, k = arrays()
    trainer(x, h0)
    given, results = abi.tensors([F32] * 2), abi.tensors([F32] * 2)

    def fill(tensor, array):
        tensor.data, tensor.bytes, tensor.rank = array.ctypes.data, array.nbytes, array.ndim
        tensor.shape[:array.ndim] = array.shape

    dx, dh0 = numpy.empty_like(x), numpy.empty_like(h0)

    def status(*arrays):
        for tensor, array in zip((*given, *results), arrays):
            fill(tensor, array)
        return trainer._training.backward_from(trainer._memory.handle, ctypes.addressof(given), 2,
                                               ctypes.addressof(results), 2)

    def message():
        return trainer._api.last_error(trainer._memory.handle).decode()

    for arrays_given, words in (((g, k, x, dh0), "the gradient of input 'x' overlaps input 'x'"),
                                ((g, k, dx, k), "the gradient of input 'h0' overlaps the gradient of output 'last'"),
                                ((g, k, dx, dx.reshape(-1)[:H * 3].reshape(1, 3, H)),
                                 "the gradient of input 'h0' overlaps the gradient of input 'x'"),
                                ((g, k, dx[:2], dh0), "the buffer has 96 bytes, its shape takes 240")):
        assert status(*arrays_given) != 0
        assert words in message()
        assert [tuple(tensor.shape[:tensor.rank]) for tensor in results] == [array.shape for array in arrays_given[2:]]
    assert status(g, k, dx, dh0) == 0
    assert tuple(results[0].shape[:3]) == x.shape


def test_options_that_contradict_are_refused(rnncc, compile, tmp_path):
    path = layers(inside=True).write(tmp_path)
    for words, told in ((["--outer-loss"], "--outer-loss goes with --train"),
                        (["--train", "--loss=loss", "--outer-loss"], "expected --loss or --outer-loss, found both")):
        done = rnncc(path, *words, "-o", tmp_path / "no.so")
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    inner = package.load(compile(path, "--train")).trainer()
    inner(*arrays())
    with pytest.raises(package.ArgumentError, match=r"expected backward\(\)"):
        inner.backward_from({})


def test_inspect_lists_the_gradients(rnncc, tmp_path):
    done = rnncc("inspect", layers(inside=False).write(tmp_path), "--train", "--outer-loss")
    assert done.returncode == 0, done.stderr
    rows = [line.split()[:2] for line in done.stdout.splitlines()]
    assert ["backward", "y.gradient"] in rows
    assert ["gives", "x.gradient"] in rows


def test_outputs_that_can_have_no_gradient_are_told_by_type(rnncc, tmp_path):
    model = Model()
    y = model.node("Mul", [model.input("x", "f32", [3]), model.constant(numpy.ones(3, numpy.float32), "w")])
    model.output(model.node("Cast", [y], to="f16"))
    done = rnncc(model.write(tmp_path), "--train", "--outer-loss", "-o", tmp_path / "no.so")
    assert done.returncode == 2 and "--outer-loss: expected an output of f32, found `v1_0` f16[3]" in done.stderr
