# SPDX-License-Identifier: MIT
"""Dropout in training: --train switches it on, masks are of a seed and the run's number, and backward() has the run's."""
import math

import numpy
import pytest

from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import trainer_of

COUNT = 40000


def one_dropout(ratio=0.25, mode=None, count=COUNT, mask=False):
    """The loss is the sum of w's elements that are kept, scaled: its gradients are the mask, scaled."""
    model = Model()
    w = model.node("Mul", [model.constant(numpy.ones(count, numpy.float32), "w"), model.input("one", "f32", [1])])
    inputs = [w, model.constant(numpy.float32(ratio), "ratio")]
    inputs += [] if mode is None else [model.constant(numpy.array(mode))]
    results = model.node("Dropout", inputs, 1 + mask)
    y = results[0] if mask else results
    model.output(model.node("ReduceSum", [y], ["loss"], keepdims=0), model.node("Identity", [y], ["y"]))
    if mask:
        model.output(results[1])
    return model


def step(trainer, *inputs):
    results = trainer(*(inputs or [numpy.ones(1, numpy.float32)]))
    trainer.backward()
    return results


@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.9])
def test_as_many_are_dropped_as_the_ratio_says_and_the_gradient_has_the_mask(compile, tmp_path, ratio):
    """The share of a binomial law is within 5 deviations, but once in a million seeds."""
    trainer = trainer_of(compile(one_dropout(ratio, mask=True).write(tmp_path), "--train"))
    masks = []
    for _ in range(3):
        _, y, mask = step(trainer)
        assert abs(mask.mean() - (1 - ratio)) < 5 * math.sqrt(ratio * (1 - ratio) / COUNT)
        scaled = numpy.where(mask, numpy.float32(1) / (numpy.float32(1) - numpy.float32(ratio)), numpy.float32(0))
        assert (y == scaled).all() and (trainer.gradients()["w"] == scaled).all()
        masks.append(mask)
    together = (1 - ratio)**2  # of two masks, of numbers that have nothing to do with each other
    for a, b in ((masks[0], masks[1]), (masks[1], masks[2]), (masks[0][1:], masks[0][:-1])):
        assert abs((a & b).mean() - together) < 5 * math.sqrt(together / a.size)


def test_a_ratio_of_one_drops_all_and_its_gradient_is_zero(compile, tmp_path):
    trainer = trainer_of(compile(one_dropout(1.0, count=9).write(tmp_path), "--train"))
    assert not step(trainer)[1].any() and (trainer.gradients()["w"] == 0).all()


def ratio_of_a_run():
    """The loss is the sum of x's elements that are kept, scaled; the ratio is an input."""
    model = Model()
    w = model.node("Mul", [model.constant(numpy.ones(64, numpy.float32), "w"), model.input("x", "f32", [64])])
    y = model.node("Dropout", [w, model.input("ratio", "f32", [])])
    model.output(model.node("ReduceSum", [y], ["loss"], keepdims=0), model.node("Identity", [y], ["y"]))
    return model


def test_a_ratio_that_is_an_input_drops_nothing_where_it_is_zero(compile, tmp_path):
    trainer, x = trainer_of(compile(ratio_of_a_run().write(tmp_path), "--train")), numpy.arange(64, dtype=numpy.float32) + 1
    for ratio in (0.5, 0, 0.5):
        y = step(trainer, x, numpy.float32(ratio))[1]
        assert (y == x).all() if ratio == 0 else set(y / x) == {0, 2}
        assert (trainer.gradients()["w"] == y).all()


def test_a_ratio_that_is_an_input_is_refused_outside_0_to_1(compile, tmp_path):
    trainer, x = trainer_of(compile(ratio_of_a_run().write(tmp_path), "--train")), numpy.ones(64, numpy.float32)
    for ratio in (-0.5, -1e-30, numpy.nextafter(numpy.float32(1), numpy.float32(2)), math.inf, math.nan):
        with pytest.raises(package.DataError, match="out of range"):
            trainer(x, numpy.float32(ratio))
        with pytest.raises(package.ArgumentError, match="expected a run"):
            trainer.backward()
    assert not step(trainer, x, numpy.float32(1))[1].any()


@pytest.mark.every_case
@pytest.mark.parametrize("mode, options, drops", [
    (None, ["--train"], True), (True, ["--train"], True), (False, ["--train"], False), (None, [], False), (True, [], True),
    (False, [], False)])
def test_a_mode_that_is_absent_is_what_train_says(compile, tmp_path, mode, options, drops):
    """The constants of the model stay as they are."""
    module = package.load(compile(one_dropout(mode=mode, count=64).write(tmp_path), *options), threads=1)
    y = (module.trainer() if "--train" in options else module.context())(numpy.ones(1, numpy.float32))[1]
    assert (y == 0).any() == drops
    assert drops or (y == 1).all()


def test_inference_has_nothing_of_it(compile, tmp_path):
    """Neither a state nor a kernel: the module is that of the same network without a Dropout."""
    model = Model()
    model.output(model.node("Tanh", [model.node("Dropout", [model.input("x", "f32", [5])])]))
    plain = Model()
    plain.output(plain.node("Tanh", [plain.input("x", "f32", [5])]))
    with_it, without = (package.load(compile(it.write(tmp_path, stem)), threads=1) for it, stem in ((model, "a"), (plain, "b")))
    x = numpy.arange(5, dtype=numpy.float32)
    assert not with_it.states
    assert (with_it(x) == without(x)).all()


@pytest.mark.parametrize("form", ["json", "onnx"])
def test_inference_in_halves_converts_nothing_for_it(rnncc, tmp_path, form):
    model = Model()
    model.output(model.node("Transpose", [model.node("Dropout", [model.input("x", "f16", [4, 6])])], perm=[1, 0]))
    path = model.write(tmp_path)
    if form == "onnx":
        path = tmp_path / "model.onnx"
        path.write_bytes(model.onnx().SerializeToString())
    done = rnncc("inspect", path)
    assert done.returncode == 0 and "Transpose" in done.stdout and "Cast" not in done.stdout, done.stdout + done.stderr


def test_runs_of_a_seed_are_the_same_and_of_others_are_not(compile, tmp_path):
    module = compile(one_dropout(count=4096).write(tmp_path), "--train")
    trainer, other = trainer_of(module), trainer_of(module)
    fresh = [step(trainer)[1] for _ in range(2)]
    of_seed = {}
    for seed in (0, 1, 2**64 - 1):
        trainer.seed(seed)
        of_seed[seed] = [step(trainer)[1] for _ in range(3)]
    trainer.seed(1)
    other.seed(1)
    for due in of_seed[1]:
        assert (step(trainer)[1] == due).all() and (step(other)[1] == due).all()
    runs = [y.tobytes() for ys in (fresh, *of_seed.values()) for y in ys]
    assert len(set(runs)) == len(runs)
    with pytest.raises(package.ArgumentError, match="expected a whole number from 0"):
        trainer.seed(-1)


def test_a_seed_of_the_compilation_chooses_other_masks(compile, tmp_path):
    path = one_dropout(count=4096).write(tmp_path)
    first, again, other = (step(trainer_of(compile(path, "--train", f"--seed={seed}")))[1] for seed in (5, 5, 6))
    assert (first == again).all() and (first != other).any()


def stack(rng):
    """Recurrent layers with dropout between them, and before the scores."""
    model = Model()
    x, labels = model.input("x", "f32", [7, 6, 5]), model.input("labels", "i64", [6])

    def weight(name, *shape):
        return model.constant((0.5 * rng.standard_normal(shape)).astype(numpy.float32), name)

    y, _ = model.node("LSTM", [x, weight("W0", 2, 48, 5), weight("R0", 2, 48, 12)], 2, hidden_size=12, direction="bidirectional")
    y = model.node("Reshape", [model.node("Transpose", [y], perm=[0, 2, 1, 3]), model.constant(numpy.array([7, 6, 24]))])
    y = model.node("Dropout", [y, model.constant(numpy.float32(0.3))])
    _, h = model.node("GRU", [y, weight("W1", 1, 30, 24), weight("R1", 1, 30, 10)], 2, hidden_size=10)
    h = model.node("Dropout", [model.node("Squeeze", [h, model.constant(numpy.array([0]))])])
    scores = model.node("Gemm", [h, weight("out", 4, 10)], transB=1)
    model.output(model.node("SoftmaxCrossEntropyLoss", [scores, labels], ["loss"]))
    return model


def batch(rng):
    return rng.standard_normal((7, 6, 5)).astype(numpy.float32), rng.integers(0, 4, 6)


def test_results_have_the_same_bits_on_any_number_of_threads(compile, tmp_path):
    module, seen = compile(stack(numpy.random.default_rng(1)).write(tmp_path), "--train"), []
    for threads in (1, 2, 8):
        trainer, rng = trainer_of(module, threads), numpy.random.default_rng(2)
        trainer.seed(11)
        losses = []
        for _ in range(4):
            losses.append(float(step(trainer, *batch(rng))))
            trainer.step("adam", 0.05)
        seen.append((losses, {name: array.tobytes() for name, array in trainer.weights().items()}))
    assert seen[0] == seen[1] == seen[2] and len(set(seen[0][0])) == 4


def test_gradients_are_differences_of_the_loss_with_the_mask_held(compile, tmp_path):
    """The loss is a mean of some numbers near 1 that f32 rounds to 2^-24: of a step of 2^-7 the difference is off by
    2^-16 or so, and by the third derivative times the step's square, 2^-14."""
    trainer, rng = trainer_of(compile(stack(numpy.random.default_rng(1)).write(tmp_path), "--train")), numpy.random.default_rng(3)
    x, labels = batch(rng)
    STEP = 2.0**-7

    def loss(weights):
        trainer.set_weights(weights)
        trainer.seed(5)
        return float(trainer(x, labels))

    start = trainer.weights()
    loss(start)
    trainer.backward()
    gradients = trainer.gradients()
    for name, array in start.items():
        for _ in range(3):
            direction = rng.choice([-1.0, 1.0], array.shape) / math.sqrt(array.size)
            sides = [loss({name: (array + sign * STEP * direction).astype(numpy.float32)}) for sign in (1, -1)]
            along = float((gradients[name] * direction).sum())
            assert abs((sides[0] - sides[1]) / (2 * STEP) - along) < 2.0**-13, name
        trainer.set_weights({name: array})
    assert max(numpy.abs(gradients[name]).max() for name in ("W0", "R0")) > 0.01


@pytest.mark.parametrize("ratio", [-0.5, 1.5, float("nan")])
def test_a_ratio_that_is_none_is_refused(rnncc, tmp_path, ratio):
    model = Model()
    model.output(model.node("Dropout", [model.input("x", "f32", [5]), model.constant(numpy.float32(ratio))]))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 2 and "it must be in 0..1" in done.stderr, done.stderr


def test_a_mode_that_only_the_run_knows_is_refused(rnncc, tmp_path):
    model = Model()
    model.output(model.node("Dropout", [model.input("x", "f32", [5]), None, model.input("mode", "bool", [])]))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and "training_mode (input 2) must be a constant" in done.stderr, done.stderr
