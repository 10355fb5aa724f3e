# SPDX-License-Identifier: MIT
"""Modules of `rnncc --train`: forward, backward, steps and weights, and what they refuse."""
import contextlib
import weakref

import numpy
import pytest

from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import same, trainer_of

CLASSES = 4


def network(rng, hidden=300):
    """Two layers, wide enough that steps are shared among workers."""
    model = Model("trained")
    model.dim("B", 1, 8, 32)
    x, labels = model.input("x", "f32", ["B", 24]), model.input("labels", "i64", ["B"])

    def weight(name, *shape):
        return model.constant((0.3 * rng.standard_normal(shape)).astype(numpy.float32), name)

    inner = model.node("Tanh", [model.node("Gemm", [x, weight("inner.weight", hidden, 24), weight("inner.bias", hidden)], transB=1)])
    wide = model.node("Relu", [model.node("MatMul", [inner, weight("wide.weight", hidden, hidden)])])
    scores = model.node("Gemm", [wide, weight("outer.weight", CLASSES, hidden), weight("outer.bias", CLASSES)], transB=1)
    model.output(model.node("SoftmaxCrossEntropyLoss", [scores, labels], ["loss"]), scores)
    return model


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return network(numpy.random.default_rng(3)).write(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def trainer(compile, path):
    return package.load(compile(path, "--train"), threads=1).trainer()


def batch(seed=0, size=8):
    rng = numpy.random.default_rng(seed)
    return rng.standard_normal((size, 24)).astype(numpy.float32), rng.integers(0, CLASSES, size)


def backward(trainer, seed=0):
    results = trainer(*batch(seed))
    trainer.backward()
    return results


def after_steps(module, rule, threads, **options):
    trainer = trainer_of(module, threads)
    losses = []
    for seed in range(4):
        losses.append(backward(trainer, seed)[0])
        trainer.step(rule, 0.05, max_norm=1.0, weight_decay=0.01, **options)
    return losses, trainer.weights()


@pytest.mark.every_case
@pytest.mark.parametrize("rule, options", [("sgd", {}), ("sgd", {"momentum": 0.9, "nesterov": True}), ("adam", {}), ("adamw", {})])
def test_training_has_the_same_bits_on_any_number_of_threads(compile, path, rule, options):
    module = compile(path, "--train")
    losses, weights = after_steps(module, rule, 1, **options)
    assert losses[0] != losses[-1]
    for threads in (2, 3, 8):
        again, others = after_steps(module, rule, threads, **options)
        assert again == losses
        assert same(weights, others)


# ---- the rules of optimisers, in double precision ----

class Sgd:
    def __init__(self, rate, momentum=0.0, nesterov=False, weight_decay=0.0):
        self.rate, self.momentum, self.nesterov, self.decay, self.kept = rate, momentum, nesterov, weight_decay, 0.0

    def step(self, w, g):
        g = g + self.decay * w
        self.kept = self.momentum * self.kept + g
        return w - self.rate * (g + self.momentum * self.kept if self.nesterov else self.kept)


class Adam:
    def __init__(self, rate, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0, apart=False):
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon
        self.decay, self.apart, self.mean, self.square, self.t = weight_decay, apart, 0.0, 0.0, 0

    def step(self, w, g):
        self.t += 1
        w = w * (1 - self.rate * self.decay) if self.apart else w
        g = g if self.apart else g + self.decay * w
        self.mean = self.beta1 * self.mean + (1 - self.beta1) * g
        self.square = self.beta2 * self.square + (1 - self.beta2) * g * g
        mean, square = self.mean / (1 - self.beta1**self.t), self.square / (1 - self.beta2**self.t)
        return w - self.rate * mean / (numpy.sqrt(square) + self.epsilon)


RULES = {
    "sgd": (lambda: Sgd(0.1), "sgd", {}),
    "decay": (lambda: Sgd(0.1, weight_decay=0.2), "sgd", {"weight_decay": 0.2}),
    "momentum": (lambda: Sgd(0.1, 0.9), "sgd", {"momentum": 0.9}),
    "nesterov": (lambda: Sgd(0.1, 0.9, True), "sgd", {"momentum": 0.9, "nesterov": True}),
    "adam": (lambda: Adam(0.1, epsilon=1e-3, weight_decay=0.1), "adam", {"epsilon": 1e-3, "weight_decay": 0.1}),
    "adamw": (lambda: Adam(0.1, 0.8, 0.99, 1e-6, 0.1, True), "adamw",
              {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6, "weight_decay": 0.1}),
}


def follow(trainer, rules, rule, error, **options):
    """Three steps of the trainer, and of a rule for each weight, by the trainer's gradients. Returns the rules' weights."""
    expected = {weight: array.astype(float) for weight, array in trainer.weights().items()}
    for seed in range(3):
        backward(trainer, seed)
        expected = {weight: rules[weight].step(expected[weight], gradient.astype(float))
                    for weight, gradient in trainer.gradients().items()}
        trainer.step(rule, 0.1, **options)
        for weight, array in trainer.weights().items():
            assert numpy.abs(array - expected[weight]).max() < error
    return expected


@pytest.mark.every_case
@pytest.mark.parametrize("name", RULES)
def test_steps_follow_the_rule(trainer, name):
    """An error counts by how large the gradient is: where decay cancels it, epsilon keeps Adam's step small."""
    make, rule, options = RULES[name]
    rules = {weight: make() for weight in trainer.names}
    follow(trainer, rules, rule, 2.0**-18, **options)


@pytest.mark.every_case
@pytest.mark.parametrize("name", [name for name in RULES if name != "sgd"])
def test_factors_of_learning_rate_and_weight_decay(trainer, name):
    """Of each weight its own, within its layer's memory and beyond a worker's piece."""
    make, rule, options = RULES[name]
    factors = {"inner.bias": (1, 0), "wide.weight": (0.5, 1), "outer.weight": (2, 0.25), "outer.bias": (0, 1)}
    rules = {weight: make() for weight in trainer.names}
    for weight, (rate, decay) in factors.items():
        trainer.factors(weight, rate, decay)
        rules[weight].rate *= rate
        rules[weight].decay *= decay
    expected = follow(trainer, rules, rule, 2.0**-17, **options)
    assert (trainer.weights()["outer.bias"] == expected["outer.bias"].astype(numpy.float32)).all()


def test_factors_that_are_one_change_no_bit_and_frozen_weights_count_for_nothing(compile, path):
    module = compile(path, "--train")
    plain, other = (trainer_of(module, threads) for threads in (1, 3))
    other.factors("*.bias", weight_decay=0)
    other.factors("*")
    for trainer in (plain, other):
        backward(trainer)
        trainer.step("adamw", 0.1, weight_decay=0.1)
    assert same(plain.weights(), other.weights())
    kept = other.weights()
    other.factors("inner.*", learning_rate=0)
    backward(other, 1)
    due = sum((gradient.astype(float)**2).sum() for name, gradient in other.gradients().items() if name[:5] != "inner")
    assert abs(other.gradient_norm() - numpy.sqrt(due)) < 1e-6 * numpy.sqrt(due)
    other.step("adamw", 0.1)
    changed = {name for name, array in other.weights().items() if (array != kept[name]).any()}
    assert changed == {"wide.weight", "outer.weight", "outer.bias"}
    other.factors("inner.*")
    other.set_weights(plain.weights())
    backward(other)
    other.step("adamw", 0.1)
    assert "inner.weight" in {name for name, array in other.weights().items() if (array != kept[name]).any()}
    with pytest.raises(package.ArgumentError, match="no weight that is trained fits inner; there are inner.weight, "):
        other.factors("inner")
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(package.ArgumentError, match="expected numbers that are finite and not negative"):
            other.factors("*", weight_decay=bad)


@pytest.mark.every_case
@pytest.mark.parametrize("rule", ["adam", "adamw"])
def test_a_weight_that_was_frozen_goes_on_with_its_own_count_of_steps(compile, path, rule):
    """As PyTorch's parameters, and from a checkpoint, too, which has no factors."""
    trainer, later = (trainer_of(compile(path, "--train"), threads) for threads in (1, 3))
    rules = {weight: RULES[rule][0]() for weight in trainer.names}
    for seed in range(9):
        if seed in (2, 6):
            trainer.factors("inner.*", learning_rate=int(seed == 6))
        if seed == 7:
            later.restore(trainer.checkpoint())
            trainer = later
        backward(trainer, seed)
        expected = {name: array.astype(float) for name, array in trainer.weights().items()}
        for weight, gradient in trainer.gradients().items():
            if not 2 <= seed < 6 or weight[:5] != "inner":
                expected[weight] = rules[weight].step(expected[weight], gradient.astype(float))
        trainer.step(rule, 0.1, **RULES[rule][2])
        for weight, array in trainer.weights().items():
            assert numpy.abs(array - expected[weight]).max() < 2.0**-17
    assert (rules["inner.bias"].t, rules["wide.weight"].t) == (5, 9)


def test_gradients_are_clipped_by_the_norm_of_all(trainer):
    before = trainer.weights()
    backward(trainer)
    gradients, norm = trainer.gradients(), trainer.gradient_norm()
    assert abs(norm - numpy.sqrt(sum((g.astype(float)**2).sum() for g in gradients.values()))) < 1e-6 * norm
    trainer.step("sgd", 1.0, max_norm=norm / 4)
    for name, array in trainer.weights().items():
        assert numpy.abs(array - (before[name] - gradients[name] / 4)).max() < 2.0**-20


def test_a_reset_optimiser_begins_anew(trainer):
    start = trainer.weights()
    backward(trainer)
    trainer.step("adam", 0.1)
    first = trainer.weights()
    trainer.set_weights(start)
    trainer.reset_optimizer()
    backward(trainer)
    trainer.step("adam", 0.1)
    assert same(first, trainer.weights())


# ---- weights ----

def test_weights_begin_as_the_model_has_them_and_are_the_models(compile, path):
    module = package.load(compile(path, "--train"), threads=1)
    first, second = module.trainer(), module.trainer()
    model = network(numpy.random.default_rng(3))
    assert same(first.weights(), {name: model.arrays[name] for name in first.names})
    assert set(first.names) == set(model.arrays)
    first.set_weights({"outer.bias": numpy.arange(CLASSES, dtype=numpy.float32)})
    assert (second.weights()["outer.bias"] == [0, 1, 2, 3]).all()
    assert numpy.array_equal(first(*batch())[1], second(*batch())[1])
    with pytest.raises(package.ArgumentError, match="no weight inner is trained"):
        first.set_weights({"inner": numpy.zeros(3, numpy.float32)})
    with pytest.raises(package.ShapeError, match=r"expected the shape \(4,\), found \(5,\)"):
        first.set_weights({"outer.bias": numpy.zeros(5, numpy.float32)})


@pytest.mark.parametrize("pattern, names", [("outer.*", ["outer.weight", "outer.bias"]),
                                            ("*,!*.bias", ["inner.weight", "wide.weight", "outer.weight"]),
                                            ("!inner.*,!wide.*", ["outer.weight", "outer.bias"])])
def test_patterns_say_what_is_trained(compile, path, pattern, names):
    trainer = package.load(compile(path, f"--train={pattern}"), threads=1).trainer()
    assert set(trainer.names) == set(names)
    backward(trainer)
    everything = package.load(compile(path, "--train"), threads=1).trainer()
    backward(everything)
    gradients = everything.gradients()
    assert all(numpy.allclose(array, gradients[name], rtol=0, atol=2.0**-20) for name, array in trainer.gradients().items())


def test_a_training_module_runs_as_any_other(compile, path):
    """Its weights are packed by the run, so that sums may be in another order."""
    x, labels = batch()
    plain = package.load(compile(path), threads=1)(x, labels)
    trained = package.load(compile(path, "--train"), threads=1)(x, labels)
    assert numpy.allclose(plain[1], trained[1], rtol=0, atol=2.0**-16)
    with pytest.raises(package.UnsupportedError, match="expected a module that `rnncc --train` made"):
        package.load(compile(path), threads=1).trainer()


# ---- bad input ----

@pytest.mark.parametrize("label", [CLASSES, -1, 2**40])
def test_a_label_out_of_range_is_refused_and_nothing_is_written(trainer, label):
    x, labels = batch()
    labels[3] = label
    loss, scores = numpy.full((), 7, numpy.float32), numpy.full((8, CLASSES), 7, numpy.float32)
    with pytest.raises(package.DataError):
        trainer(x, labels, out=[loss, scores])
    assert loss == 7 and (scores == 7).all()
    with pytest.raises(package.ArgumentError, match="expected a run"):
        trainer.backward()


def test_a_gradient_that_is_not_finite_is_named_and_leaves_the_weights(trainer):
    before = trainer.weights()
    x, labels = batch()
    x[2, 5] = numpy.nan
    trainer(x, labels)
    trainer.backward()
    with pytest.raises(package.DataError, match="gradient of 'inner.weight' has a number that is not finite"):
        trainer.step("adam", 0.1)
    assert same(before, trainer.weights())
    backward(trainer)
    trainer.step("sgd", 0.1)
    assert not same(before, trainer.weights())
    trainer.factors("inner.*", learning_rate=0)
    trainer(x, labels)
    trainer.backward()
    with pytest.raises(package.DataError, match="gradient of 'wide.weight' has a number that is not finite"):
        trainer.step("adam", 0.1)


def test_calls_in_another_order_are_refused(trainer):
    with pytest.raises(package.ArgumentError, match="expected a run"):
        trainer.backward()
    trainer(*batch())
    with pytest.raises(package.ArgumentError, match="expected a backward"):
        trainer.step("sgd", 0.1)
    with pytest.raises(package.ArgumentError, match="expected a backward"):
        trainer.gradients()
    trainer.backward()
    trainer.step("sgd", 0.1)
    with pytest.raises(package.ArgumentError, match="expected a backward"):
        trainer.step("sgd", 0.1)


def test_a_backward_on_other_weights_than_the_runs_is_refused(compile, path):
    module = package.load(compile(path, "--train"), threads=1)
    first, second = module.trainer(), module.trainer()
    second(*batch())
    backward(first)
    first.step("sgd", 0.1)
    with pytest.raises(package.ArgumentError, match="weights have changed since the run"):
        second.backward()
    second(*batch())
    first.set_weights(first.weights())
    with pytest.raises(package.ArgumentError, match="weights have changed since the run"):
        second.backward()
    second(*batch())
    second.backward()


def test_what_is_not_held_any_more_has_no_way_back(trainer):
    """Neither after a run that was refused, be it only for where its results go, nor of inputs that were released."""
    wrong = [numpy.zeros(1), numpy.zeros(1)]
    for let_go in (lambda: trainer(*batch(1), out=wrong), lambda: trainer(*batch(1, size=99)), trainer.release_inputs):
        inputs = batch()
        held = [weakref.ref(array) for array in inputs]
        trainer(*inputs)
        del inputs
        assert all(array() is not None for array in held)
        with contextlib.suppress(package.DTypeError, package.BoundError):
            let_go()
        assert all(array() is None for array in held)
        with pytest.raises(package.ArgumentError, match="expected a run"):
            trainer.backward()
    backward(trainer)
    trainer.step("sgd", 0.1)


def test_warming_up_keeps_what_a_run_has_left(trainer):
    backward(trainer)
    due = trainer.gradients()
    trainer(*batch())
    trainer.warmup()
    trainer.backward()
    assert same(trainer.gradients(), due)


@pytest.mark.every_case
@pytest.mark.parametrize("options", [{"learning_rate": -1}, {"learning_rate": float("nan")}, {"learning_rate": 0.1, "beta1": 1},
                                     {"learning_rate": 0.1, "weight_decay": -1}, {"learning_rate": 0.1, "max_norm": float("nan")},
                                     {"learning_rate": 0.1, "max_norm": -1}])
def test_an_optimiser_that_makes_no_sense_is_refused(trainer, options):
    backward(trainer)
    before = trainer.weights()
    with pytest.raises(package.ArgumentError, match="expected a rule that is known"):
        trainer.step("adam", **options)
    assert same(before, trainer.weights())
    with pytest.raises(package.ArgumentError, match="expected one of sgd, adam, adamw"):
        trainer.step("lion", 0.1)


@pytest.mark.every_case
@pytest.mark.parametrize("use, said", [
    (lambda it: it.step("sgd", "0.1"), "learning_rate: expected a number, found '0.1'"),
    (lambda it: it.step("sgd", 0.1, max_norm=None), "max_norm: expected a number, found None"),
    (lambda it: it.step("sgd", 0.1, momentum=1j), "momentum: expected a number, found 1j"),
    (lambda it: it.factors("*", [1, 2]), r"learning_rate: expected a number, found \[1, 2\]"),
    (lambda it: it.factors("*", 1, weight_decay="0"), "weight_decay: expected a number, found '0'"),
    (lambda it: it.seed(1.5), "seed: expected a whole number from 0 to .*, found 1.5"),
    (lambda it: it.seed("7"), "seed: expected a whole number from 0 to .*, found '7'"),
])
def test_what_is_no_number_is_told_by_its_name(trainer, use, said):
    backward(trainer)
    with pytest.raises(package.ArgumentError, match=said):
        use(trainer)
