# SPDX-License-Identifier: MIT
"""SoftmaxCrossEntropyLoss, and NegativeLogLikelihoodLoss of a LogSoftmax: one kernel each way, against double precision."""
import numpy
import pytest

from support.emitted import TARGETS
from support.model_builder import Model
from support.module import rnncc as package
from support.reference import ValueOutOfRange

EPSILON = 2.0**-23  # a rounding, and half that of the worst of two
IGNORED = -100

# Scores [N, C, ...]: one class; tails of every vector; places beside each other; none at all.
SHAPES = [(3, 1), (5, 37), (19, 64), (7, 1000), (5, 5, 1), (3, 7, 21), (2, 33, 4, 5), (9, 16)]
EMPTY = [(0, 4), (2, 4, 0)]
OPTIONS = [{}, {"weights": True}, {"ignore": True}, {"weights": True, "ignore": True}]


class Places:
    """Scores, a target class for each place, weights of the classes; in double the losses and the scores' gradient."""

    def __init__(self, shape, seed=0, weights=False, ignore=False):
        rng = numpy.random.default_rng([91, seed, *shape])
        self.ignore = {"ignore_index": IGNORED} if ignore else {}
        places = (shape[0], *shape[2:])
        self.x = (rng.standard_normal(shape) * 5 + rng.integers(-50, 50, places)[:, None]).astype(numpy.float32)
        self.targets = rng.integers(0, shape[1], places)
        if ignore:
            self.targets[rng.random(places) < 0.3] = IGNORED
        self.weights = rng.uniform(0.5, 2, shape[1]).astype(numpy.float32) if weights else None

    def losses(self):
        """And what each counts, and the gradient of each for the scores of its place."""
        x, ignored = self.x.astype(float), self.targets == IGNORED
        targets = numpy.where(ignored, 0, self.targets)
        count = numpy.where(ignored, 0, 1.0 if self.weights is None else self.weights.astype(float)[targets])
        exponentials = numpy.exp(x - x.max(1, keepdims=True))
        sums = exponentials.sum(1, keepdims=True)
        picked = numpy.take_along_axis(x - x.max(1, keepdims=True) - numpy.log(sums), targets[:, None], 1)[:, 0]
        ones = numpy.arange(x.shape[1]).reshape(-1, *[1] * (x.ndim - 2)) == targets[:, None]
        return numpy.where(ignored, 0, -picked * count), count, (exponentials / sums - ones) * count[:, None]

    def reduced(self, reduction):
        """The loss, and the scores' gradient of the sum of its elements."""
        losses, count, gradient = self.losses()
        total = count.sum() if reduction == "mean" else 1
        return losses if reduction == "none" else losses.sum() / total, gradient / total

    def error(self):
        """Of each sum of n exponentials n roundings, of the exponential of x - m as many as that has ULPs; and the sum of
        losses."""
        spread = float(numpy.ptp(self.x)) if self.x.size else 0
        return EPSILON * (self.x.shape[1] + 2 * spread + self.targets.size + 16)

    def add_to(self, model, number, reduction, op="SoftmaxCrossEntropyLoss", trained=False, results=1):
        """The loss, and what else is wanted of it, in a model of several."""
        x = model.constant(self.x, f"x{number}") if trained else model.input(f"x{number}", "f32", self.x.shape)
        targets = model.input(f"targets{number}", "i64", self.targets.shape)
        rest = [] if self.weights is None else [model.constant(self.weights)]
        logarithms = x if op == "SoftmaxCrossEntropyLoss" else model.node("LogSoftmax", [x], axis=1)
        return model.node(op, [logarithms, targets, *rest], results, reduction=reduction, **self.ignore)

    def model(self, reduction, trained=False):
        model = Model()
        model.output(self.add_to(model, 0, reduction, trained=trained))
        return model


def all_of(places, reduction, **how):
    """One model of them all; of those that are trained the loss is the sum."""
    model = Model()
    losses = [it.add_to(model, k, reduction, **how) for k, it in enumerate(places)]
    if how.get("trained"):
        sums = [model.node("ReduceSum", [it], keepdims=0) for it in losses]
        losses = [model.node("Sum", sums)]
    model.output(*losses)
    return model


def assert_near(got, due, error, scale=1.0):
    numpy.testing.assert_allclose(got, due, rtol=error, atol=error * scale, equal_nan=True)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_losses(compile, tmp_path, op, reduction):
    """No elements have a mean that is 0 / 0, which the compiler refuses."""
    places = [Places(shape, k, **OPTIONS[k % 4]) for k, shape in enumerate(SHAPES + (EMPTY if reduction == "none" else []))]
    module = package.load(compile(all_of(places, reduction, op=op).write(tmp_path)), threads=2)
    for it, got in zip(places, module(*[array for it in places for array in (it.x, it.targets)])):
        assert_near(got, it.reduced(reduction)[0], it.error())


@pytest.mark.parametrize("target", TARGETS)
def test_every_vector_set(run_for, tmp_path, target):
    places = [Places(shape, 1, ignore=True) for shape in ((5, 37), (3, 7, 21))]
    model = all_of(places, "none")
    feeds = {f"{name}{k}": array for k, it in enumerate(places) for name, array in (("x", it.x), ("targets", it.targets))}
    got = run_for(target, model.write(tmp_path), feeds, model.outputs)
    for it, output in zip(places, model.outputs):
        assert_near(got[output], it.losses()[0], it.error())


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_gradients(compile, tmp_path, reduction):
    places = [Places(shape, 2 + k, **OPTIONS[k % 4]) for k, shape in enumerate(SHAPES)]
    trainer = package.load(compile(all_of(places, reduction, trained=True).write(tmp_path), "--train"), threads=2).trainer()
    trainer(*[it.targets for it in places])
    trainer.backward()
    gradients = trainer.gradients()
    for k, it in enumerate(places):
        due = it.reduced(reduction)[1]
        assert_near(gradients[f"x{k}"], due, it.error(), float(numpy.abs(due).max(initial=0)))


def test_logarithms_are_written_only_where_they_are_an_output(compile, rnncc, tmp_path):
    """Then they agree with the loss."""
    it, text = Places((5, 37), 3, ignore=True), {}
    for results in (1, 2):
        model = Model()
        found = it.add_to(model, 0, "mean", results=results)
        model.output(*(found if results > 1 else [found]))
        path = model.write(tmp_path, f"results{results}")
        text[results] = rnncc(path, "--dump-after=lower", "-o", tmp_path / "it.so").stderr
    assert ("cross_entropy" in text[1], "softmax" in text[1]) == (True, False)
    assert ("cross_entropy" in text[2], "softmax" in text[2]) == (False, True)
    loss, logarithms = package.load(compile(path), threads=1)(it.x, it.targets)
    x = it.x.astype(float)
    assert_near(loss, it.reduced("mean")[0], it.error())
    sums = numpy.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    assert_near(logarithms, x - x.max(1, keepdims=True) - numpy.log(sums), it.error(), 100)


def test_scores_of_any_size(compile, tmp_path):
    """Far from 0; classes that are impossible; and what has no loss: NaN."""
    it = Places((6, 37), 4)
    it.x += 3e4
    it.x[1, :20] = -numpy.inf
    it.targets[1] = 30
    it.x[2] = -numpy.inf
    it.x[3, 5] = numpy.nan
    it.x[4, 36] = numpy.inf
    it.targets[5], it.x[5, 3] = 3, -numpy.inf
    got = package.load(compile(it.model("none").write(tmp_path)), threads=1)(it.x, it.targets)
    with numpy.errstate(invalid="ignore"):
        due = it.losses()[0]
    assert numpy.isnan(due[2:5]).all() and due[5] == numpy.inf
    it.x[~numpy.isfinite(it.x)] = 3e4
    assert_near(got, due, it.error())


def test_results_have_the_same_bits_on_any_number_of_threads(compile, tmp_path):
    for shape in ((19, 64), (3, 7, 21)):
        it, seen = Places(shape, 5, ignore=True), set()
        module = compile(it.model("mean", trained=True).write(tmp_path), "--train")
        for threads in (1, 2, 7):
            trainer = package.load(module, threads=threads, share_all=True).trainer()
            loss = trainer(it.targets)
            trainer.backward()
            seen.add((loss.tobytes(), trainer.gradients()["x0"].tobytes()))
        assert len(seen) == 1


def test_extents_may_be_those_of_the_run(compile, tmp_path):
    model = Places((2, 5, 4)).model("mean")
    for given, shape in zip(model.inputs, (["N", "C", "L"], ["N", "L"])):
        given["shape"] = shape
    for name, most in (("N", 9), ("C", 50), ("L", 40)):
        model.dim(name, 1, 2, most)
    context = package.load(compile(model.write(tmp_path)), threads=2, share_all=True)
    for shape in ((1, 1, 1), (9, 50, 1), (3, 17, 40)):
        it = Places(shape, 6)
        assert_near(context(it.x, it.targets), it.reduced("mean")[0], it.error())


@pytest.mark.every_case
@pytest.mark.parametrize("target", [37, -1, -100, 2**40])
@pytest.mark.parametrize("trained", [False, True])
def test_a_target_that_is_no_class_is_refused_and_nothing_is_written(compile, tmp_path, target, trained):
    it = Places((5, 37), 7)
    module = package.load(compile(it.model("mean", trained=trained).write(tmp_path), *["--train"] * trained), threads=2)
    context = module.trainer() if trained else module.context()
    it.targets[3] = target
    out = numpy.full((), 7, numpy.float32)
    with pytest.raises(package.DataError):
        context(*[it.x] * (not trained), it.targets, out=[out])
    assert out == 7


@pytest.mark.parametrize("shape", [(5, 37), (3, 7, 21)])
@pytest.mark.parametrize("kept", [["", "sums"], ["maxima", ""], ["maxima"]], ids=str)
def test_each_of_what_the_gradient_reads_may_be_wanted_alone(compile, tmp_path, kept, shape):
    it, model = Places(shape, 9), Model()
    x, targets = model.input("x", "f32", shape), model.input("targets", "i64", it.targets.shape)
    model.node("CrossEntropy", [x, targets], ["losses", *kept])
    (name,) = filter(None, kept)
    model.output("losses", name)
    losses, found = package.load(compile(model.write(tmp_path)), threads=2)(it.x, it.targets)
    maxima = it.x.max(1)
    due = {"maxima": maxima, "sums": numpy.exp(it.x.astype(float) - maxima[:, None]).sum(1)}
    assert_near(losses, it.losses()[0], it.error())
    assert_near(found, due[name], it.error())


@pytest.mark.parametrize("op, results", [("SoftmaxCrossEntropyLoss", 2), ("NegativeLogLikelihoodLoss", 1)])
@pytest.mark.parametrize("classes", [37, "C"])
def test_and_where_log_probabilities_are_read(compile, tmp_path, op, results, classes):
    """No target counts from the end."""
    it, model = Places((5, 37), 10), Model()
    x, targets = model.input("x", "f32", [5, classes]), model.input("targets", "i64", [5])
    if classes == "C":
        model.dim("C", 1, 2, 50)
    found = model.node(op, [x, targets], results, reduction="none")
    model.output(*(found if results > 1 else [found]))
    context = package.load(compile(model.write(tmp_path)), threads=1)
    context(it.x, it.targets)
    for target in (-1, -37, 37, -2**40):
        it.targets[3] = target
        with pytest.raises(package.DataError):
            context(it.x, it.targets)


def by_reference(reference, folder, it):
    model = Model()
    x, targets = model.input("x", "f32", it.x.shape), model.input("targets", "i64", it.targets.shape)
    kept = model.node("CrossEntropy", [x, targets], ["losses", "maxima", "sums"], **it.ignore)
    d = model.input("d", "f32", it.targets.shape)
    model.output(kept[0], model.node("CrossEntropyGradient", [x, targets, *kept[1:], d], ["dx"], **it.ignore))
    feeds = {"x": it.x, "targets": it.targets, "d": numpy.ones(it.targets.shape, numpy.float32)}
    return reference.run(model, model.write(folder), feeds)


def test_the_reference_computes_the_same(reference, tmp_path):
    it = Places((3, 7, 21), 8, ignore=True)
    got, (losses, _, gradient) = by_reference(reference, tmp_path, it), it.losses()
    assert_near(got["losses"], losses, EPSILON)
    assert_near(got["dx"], gradient, EPSILON)
    it.targets[0, 0] = 7
    with pytest.raises(ValueOutOfRange, match="no class"):
        by_reference(reference, tmp_path, it)
