# SPDX-License-Identifier: MIT
"""Gradients that are kept are added to the next ones, so that a batch may be run in parts."""
import numpy
import pytest

from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import same, trainer_of
from rnncc import abi

FEATURES, HIDDEN, CLASSES = 12, 400, 3


@pytest.fixture
def module(compile, tmp_path):
    rng, model = numpy.random.default_rng(5), Model("kept")
    model.dim("B", 1, 8, 16)
    x, labels = model.input("x", "f32", ["B", FEATURES]), model.input("labels", "i64", ["B"])
    shapes = {"first": (FEATURES, HIDDEN), "wide": (HIDDEN, HIDDEN), "last": (HIDDEN, CLASSES)}
    for name, shape in shapes.items():
        x = model.node("MatMul", [x, model.constant((0.2 * rng.standard_normal(shape)).astype(numpy.float32), name)])
        x = model.node("Tanh", [x]) if name != "last" else x
    model.output(model.node("SoftmaxCrossEntropyLoss", [x, labels], ["loss"]))
    return compile(model.write(tmp_path), "--train")


def part(trainer, seed, size=4):
    rng = numpy.random.default_rng(seed)
    trainer(rng.standard_normal((size, FEATURES)).astype(numpy.float32), rng.integers(0, CLASSES, size))
    trainer.backward()
    return trainer.gradients()


def apart(trainer, count):
    return [part(trainer, seed) for seed in range(count)]


@pytest.mark.every_case
@pytest.mark.parametrize("threads", [1, 3])
def test_gradients_add_up_until_a_step(module, threads):
    """Exactly, from the first on."""
    trainer = trainer_of(module, threads)
    alone = apart(trainer, 3)
    due = {name: (alone[0][name] + alone[1][name]) + alone[2][name] for name in trainer.names}
    part(trainer, 0)
    trainer.keep_gradients()
    part(trainer, 1)
    trainer.keep_gradients()
    assert same(part(trainer, 2), due)
    norm = numpy.sqrt(sum((gradient.astype(float)**2).sum() for gradient in due.values()))
    assert abs(trainer.gradient_norm() - norm) < 1e-6 * norm
    before = trainer.weights()
    trainer.step("sgd", 0.5, gradient_scale=0.25)
    assert all((array == before[name] - numpy.float32(0.5) * (due[name] * numpy.float32(0.25))).all()
               for name, array in trainer.weights().items())
    trainer.set_weights(before)
    assert same(part(trainer, 1), alone[1])


def test_parts_of_a_batch_are_the_batch(module):
    """The mean of the parts' means, in another order of sums."""
    trainer = trainer_of(module)
    rng = numpy.random.default_rng(9)
    x, labels = rng.standard_normal((16, FEATURES)).astype(numpy.float32), rng.integers(0, CLASSES, 16)
    trainer(x, labels)
    trainer.backward()
    due = trainer.gradients()
    for at in range(0, 16, 4):
        trainer(x[at:at + 4], labels[at:at + 4])
        trainer.backward()
        trainer.keep_gradients()
    for name, gradient in trainer.gradients().items():
        assert numpy.abs(gradient / 4 - due[name]).max() < 2.0**-20


def test_the_norm_is_clipped_after_scaling(module):
    trainer = trainer_of(module)
    due = part(trainer, 0)
    norm, before = trainer.gradient_norm(), trainer.weights()
    trainer.step("sgd", 1.0, gradient_scale=3, max_norm=norm * 4)
    for name, array in trainer.weights().items():
        assert numpy.abs(array - (before[name] - 3 * due[name])).max() < 2.0**-20
    trainer.set_weights(before)
    part(trainer, 0)
    trainer.step("sgd", 1.0, gradient_scale=3, max_norm=norm * 2)
    for name, array in trainer.weights().items():
        assert numpy.abs(array - (before[name] - 2 * due[name])).max() < 2.0**-18


def test_what_is_kept_may_be_dropped_and_a_step_may_use_it_alone(module):
    trainer = trainer_of(module)
    alone = part(trainer, 0)
    trainer.keep_gradients()
    trainer.drop_gradients()
    assert same(part(trainer, 0), alone)
    trainer.keep_gradients()
    trainer.keep_gradients()
    assert same(trainer.gradients(), alone)
    trainer.step("sgd", 0.1)
    with pytest.raises(package.ArgumentError, match="gradients_keep: expected a backward"):
        trainer.keep_gradients()


def test_gradients_are_a_contexts(module):
    """Weights stay, so that two parts may be run at once."""
    loaded = package.load(module, threads=1)
    first, second = loaded.trainer(), loaded.trainer()
    part(first, 0)
    first.keep_gradients()
    alone = part(second, 1)
    assert same(part(second, 1), alone)


def test_a_step_that_refuses_them_forgets_them(module):
    trainer = trainer_of(module)
    alone = part(trainer, 0)
    trainer(numpy.full((4, FEATURES), numpy.nan, numpy.float32), numpy.zeros(4, numpy.int64))
    trainer.backward()
    trainer.keep_gradients()
    part(trainer, 0)
    with pytest.raises(package.DataError, match="not finite"):
        trainer.step("sgd", 0.1)
    assert same(part(trainer, 0), alone)


@pytest.mark.every_case
@pytest.mark.parametrize("scale", [-1, float("nan"), float("inf")])
def test_a_scale_that_makes_no_sense_is_refused(module, scale):
    trainer = trainer_of(module)
    part(trainer, 0)
    with pytest.raises(package.ArgumentError, match="expected a rule that is known"):
        trainer.step("sgd", 0.1, gradient_scale=scale)


# ---- modules of an older rnncc, whose tables end earlier ----

def made_older(trainer, first_missing):
    table = abi.Training.from_buffer_copy(trainer._training)
    table.struct_size = getattr(abi.Training, first_missing).offset
    trainer._training = table
    return trainer


def test_an_older_module_that_knows_no_scale_is_given_none(module):
    """It would ignore it without a word."""
    trainer = made_older(trainer_of(module), "gradients_keep")
    part(trainer, 0)
    before = trainer.weights()
    with pytest.raises(package.UnsupportedError, match="an older rnncc, which had no gradients_keep"):
        trainer.step("sgd", 0.1, gradient_scale=0.25)
    assert same(trainer.weights(), before)
    trainer.step("sgd", 0.1)
    assert not same(trainer.weights(), before)


def test_weights_of_an_older_module_are_set_one_by_one(module):
    trainer = made_older(trainer_of(module), "weights_update")
    new = {name: array + 1 for name, array in trainer.weights().items()}
    trainer.set_weights(new)
    assert same(trainer.weights(), new)
    with pytest.raises(package.ArgumentError, match="no weight none is trained"):
        trainer.set_weights({"none": numpy.zeros(1, numpy.float32)})
