# SPDX-License-Identifier: MIT
"""CTCLoss against a list of all ways to write a sequence, which says what the loss is, and central differences of that."""
import itertools

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from support.model_builder import Model
from support.module import rnncc as package
from support.reference import ValueOutOfRange

EXIT_INVALID, EXIT_LIMIT = 2, 4
STEP = 1e-6


def written(way, blank):
    """What stays of the frames' classes: of equal ones in a row one, then no blanks."""
    return [k for k, _ in itertools.groupby(way) if k != blank]


def loss_of(scores, labels, blank):
    """scores: [frames, classes], logarithms."""
    frames, classes = scores.shape
    ways = [sum(scores[t, k] for t, k in enumerate(way)) for way in itertools.product(range(classes), repeat=frames)
            if written(way, blank) == list(labels)]
    return -numpy.logaddexp.reduce(ways) if ways else numpy.inf


class Sequences:
    def __init__(self, seed, T=5, N=6, C=3, S=3):
        rng = numpy.random.default_rng([77, seed])
        self.blank = int(rng.integers(C))
        scores = rng.normal(0, 2, (T, N, C))
        self.scores = (scores - numpy.log(numpy.exp(scores).sum(2, keepdims=True))).astype(numpy.float32)
        self.steps, self.lengths = rng.integers(0, T + 1, N), rng.integers(0, S + 1, N)
        self.steps[:2], self.lengths[:2] = (T, S - 1), S  # the second fits in no way
        self.targets = rng.choice([k for k in range(C) if k != self.blank], (N, S))
        for n, length in enumerate(self.lengths):
            self.targets[n, length:] = -1  # what stands behind a target is not looked at

    def losses(self, scores=None):
        scores = self.scores.astype(float) if scores is None else scores
        return numpy.array([loss_of(scores[:self.steps[n], n], self.targets[n, :self.lengths[n]], self.blank)
                            for n in range(len(self.steps))])

    def gradients(self):
        """Of the samples' losses for their scores, by differences on both sides; of those that are infinite 0."""
        result, scores, finite = numpy.zeros(self.scores.shape), self.scores.astype(float), numpy.isfinite(self.losses())
        for t, n, k in numpy.ndindex(*scores.shape):
            if t >= self.steps[n] or not finite[n]:
                continue
            sides = []
            for sign in (1, -1):
                moved = scores[:self.steps[n], n].copy()
                moved[t, k] += sign * STEP
                sides.append(loss_of(moved, self.targets[n, :self.lengths[n]], self.blank))
            result[t, n, k] = (sides[0] - sides[1]) / (2 * STEP)
        return result

    @property
    def feeds(self):
        return self.scores, self.targets, self.steps, self.lengths

    def model(self, reduction="none", trained=False, **attributes):
        T, N, C = self.scores.shape
        model = Model()
        x = model.constant(self.scores, "scores") if trained else model.input("scores", "f32", self.scores.shape)
        rest = [model.input("targets", "i64", self.targets.shape), *(model.input(name, "i64", [N]) for name in ("steps", "lengths"))]
        loss = model.node("CTCLoss", [x, *rest], ["loss"], blank=self.blank, reduction=reduction, **attributes)
        model.output(loss)
        return model


def reduced(losses, lengths, reduction):
    return {"none": losses, "sum": losses.sum(), "mean": (losses / numpy.maximum(lengths, 1)).mean()}[reduction]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("zero", [0, 1])
def test_losses_are_those_of_all_ways(compile, tmp_path, reduction, zero):
    """In double, of f32 scores; the result is rounded once, and by what reduces it."""
    for seed in range(3):
        it = Sequences(seed)
        due = it.losses()
        assert numpy.isinf(due).any() and numpy.isfinite(due).any()
        due = numpy.where(numpy.isinf(due), 0, due) if zero else due
        got = package.load(compile(it.model(reduction, zero_infinity=zero).write(tmp_path)), threads=2)(*it.feeds)
        numpy.testing.assert_allclose(got, reduced(due, it.lengths, reduction), rtol=2.0**-21)


def test_gradients_are_differences_of_the_loss(compile, tmp_path):
    """The difference is off by 1e-9 or so; the gradient is rounded to f32, as are its factors in the mean."""
    for seed, reduction in ((3, "sum"), (4, "mean")):
        it = Sequences(seed)
        trainer = package.load(compile(it.model(reduction, True, zero_infinity=1).write(tmp_path), "--train"), threads=2).trainer()
        trainer(*it.feeds[1:])
        trainer.backward()
        scale = 1 if reduction == "sum" else 1 / (len(it.steps) * numpy.maximum(it.lengths, 1)[:, None])
        due = it.gradients() * scale
        assert numpy.abs(due).max() > 0.01
        numpy.testing.assert_allclose(trainer.gradients()["scores"], due, rtol=0, atol=1e-6)


def test_a_sequence_that_fits_in_no_way_has_no_finite_loss_and_a_step_refuses_it(compile, tmp_path):
    it = Sequences(0)
    trainer = package.load(compile(it.model("sum", True).write(tmp_path), "--train"), threads=1).trainer()
    assert trainer(*it.feeds[1:]) == numpy.inf
    trainer.backward()
    with pytest.raises(package.DataError, match="gradient of 'scores' has a number that is not finite"):
        trainer.step("sgd", 0.1)
    assert (trainer.weights()["scores"] == it.scores).all()


def test_scores_of_any_size_are_summed_by_their_logarithms(compile, tmp_path):
    """Probabilities that are 0 in f32, and in double."""
    it = Sequences(5)
    it.scores = (it.scores * 800).astype(numpy.float32)
    got = package.load(compile(it.model().write(tmp_path)), threads=1)(*it.feeds)
    numpy.testing.assert_allclose(got, it.losses(), rtol=2.0**-21)


def by_reference(reference, folder, it, blank=None):
    """The loss and its gradient."""
    T, N, C = it.scores.shape
    model = Model()
    inputs = [model.input("scores", "f32", [T, N, "C"]), model.input("targets", "i64", it.targets.shape),
              model.input("steps", "i64", [N]), model.input("lengths", "i64", [N])]
    model.dim("C", 1, C, 9)
    model.output(*model.node("CTCLikelihood", inputs, ["loss", "gradient"], blank=it.blank if blank is None else blank, zero_infinity=1))
    return reference.run(model, model.write(folder), dict(zip(("scores", "targets", "steps", "lengths"), it.feeds)))


def test_the_reference_computes_the_same(reference, tmp_path):
    it = Sequences(6)
    got = by_reference(reference, tmp_path, it)
    finite = numpy.isfinite(it.losses())
    numpy.testing.assert_allclose(got["loss"], numpy.where(finite, it.losses(), 0), rtol=2.0**-21)
    numpy.testing.assert_allclose(got["gradient"], it.gradients(), rtol=0, atol=1e-6)


def test_results_have_the_same_bits_on_any_number_of_threads(compile, tmp_path):
    it, seen = Sequences(7, T=60, N=9, C=11, S=13), set()
    module = compile(it.model("mean", True, zero_infinity=1).write(tmp_path), "--train")
    for threads in (1, 2, 8):
        trainer = package.load(module, threads=threads, share_all=True).trainer()
        loss = trainer(*it.feeds[1:])
        trainer.backward()
        seen.add((loss.tobytes(), trainer.gradients()["scores"].tobytes()))
    assert len(seen) == 1


def test_extents_may_be_those_of_the_run(compile, tmp_path):
    model = Sequences(0).model("none", zero_infinity=1)
    shapes = {"scores": ["T", "N", 3], "targets": ["N", "S"], "steps": ["N"], "lengths": ["N"]}
    for given in model.inputs:
        given["shape"] = shapes[given["name"]]
    for name, most in (("T", 6), ("N", 9), ("S", 4)):
        model.dim(name, 1, 2, most)
    contexts = {}
    for seed, (T, N, S) in enumerate(((1, 2, 1), (6, 9, 2), (4, 3, 4))):
        it = Sequences(20 + seed, T, N, 3, S)
        model.nodes[0]["attributes"]["blank"] = it.blank
        if it.blank not in contexts:
            contexts[it.blank] = package.load(compile(model.write(tmp_path)), threads=2, share_all=True)
        due = it.losses()
        numpy.testing.assert_allclose(contexts[it.blank](*it.feeds), numpy.where(numpy.isinf(due), 0, due), rtol=2.0**-21)


BAD = {"a class that is none": lambda it: it.targets.__setitem__((0, 1), 3),
       "a negative class": lambda it: it.targets.__setitem__((0, 1), -2),
       "the blank": lambda it: it.targets.__setitem__((0, 1), it.blank),
       "frames that are not there": lambda it: it.steps.__setitem__(2, 6),
       "less than no frames": lambda it: it.steps.__setitem__(2, -1),
       "labels that are not there": lambda it: it.lengths.__setitem__(1, 4),
       "less than no labels": lambda it: it.lengths.__setitem__(1, -1)}


@pytest.mark.every_case
@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("trained", [False, True])
def test_bad_labels_and_lengths_are_refused_and_nothing_is_written(compile, tmp_path, what, trained):
    it = Sequences(0)
    module = package.load(compile(it.model("sum", trained).write(tmp_path), *["--train"] * trained), threads=2)
    context, feeds = module.trainer() if trained else module.context(), it.feeds[trained:]
    BAD[what](it)
    out = numpy.full((), 7, numpy.float32)
    with pytest.raises(package.DataError):
        context(*feeds, out=[out])
    assert out == 7
    if trained:
        with pytest.raises(package.ArgumentError, match="expected a run"):
            context.backward()


@pytest.mark.parametrize("what", [*BAD, "a blank that is no class"])
def test_the_reference_refuses_them_too(reference, tmp_path, what):
    it = Sequences(0)
    BAD.get(what, lambda it: None)(it)
    with pytest.raises(ValueOutOfRange, match="class|range"):
        by_reference(reference, tmp_path, it, None if what in BAD else 3)


def test_a_blank_that_is_no_class_of_any_run_is_refused_at_compile_time(rnncc, tmp_path):
    model = Sequences(0).model()
    model.inputs[0]["shape"] = [5, 6, "C"]
    model.dim("C", 2, 3, 9)
    model.nodes[0]["attributes"]["blank"] = 9
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == EXIT_INVALID and "`blank` is 9; it must be one of the C classes" in done.stderr, done.stderr


def test_a_blank_that_is_no_class_of_the_run_is_refused(compile, tmp_path):
    """How many classes there are only the run knows."""
    it = Sequences(0)
    model = it.model(zero_infinity=1)
    model.nodes[0]["attributes"]["blank"] = 3
    model.inputs[0]["shape"] = [*it.scores.shape[:2], "C"]
    model.dim("C", 1, 3, 8)
    context = package.load(compile(model.write(tmp_path)), threads=2).context()
    it.targets[:] = 0
    out = numpy.full(len(it.steps), 7, numpy.float32)
    with pytest.raises(package.DataError):
        context(*it.feeds, out=[out])
    assert (out == 7).all()


@pytest.mark.parametrize("change, said", [
    ({"blank": 3}, "`blank` is 3; it must be one of the 3 classes"), ({"blank": -1}, "`blank` is -1"),
    ({"targets": [5, 3]}, "input 1 must be [N, S] of the scores [T, N, C]"),
    ({"lengths": [7]}, "input 3 must be [N] of the scores [T, N, C]")])
def test_nodes_that_are_wrong_are_refused(rnncc, tmp_path, change, said):
    model = Sequences(0).model()
    model.nodes[0]["attributes"] |= {name: value for name, value in change.items() if name == "blank"}
    for given in model.inputs:
        given["shape"] = change.get(given["name"], list(given["shape"]))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == EXIT_INVALID and said in done.stderr, done.stderr


def test_tables_beyond_all_memory_are_refused(rnncc, tmp_path):
    """Of frames and labels whose product is no number of bytes."""
    model, most = Sequences(0).model("sum", trained=False), 2**31 - 1
    w = model.constant(numpy.ones(3, numpy.float32), "w")
    model.nodes[0]["inputs"][0] = "weighed"
    model.nodes.insert(0, {"op": "Mul", "inputs": ["scores", w], "outputs": ["weighed"]})
    for given in model.inputs:
        given["shape"] = {"scores": ["T", 6, 3], "targets": [6, "S"]}.get(given["name"], given["shape"])
    model.dim("T", 1, 4, most)
    model.dim("S", 1, 2, most)
    done = rnncc(model.write(tmp_path), "--train", "-o", tmp_path / "m.so")
    assert done.returncode == EXIT_LIMIT and "64 TiB" in done.stderr, done.stderr


def test_an_onnx_file_has_it_of_the_domain_of_the_project(compile, tmp_path):
    it = Sequences(1)
    node = helper.make_node("CTCLoss", ["scores", "targets", "steps", "lengths"], ["loss"], domain="ai.rnncc", blank=it.blank,
                            reduction="none")
    given = {"scores": (TensorProto.FLOAT, it.scores), "targets": (TensorProto.INT32, it.targets),
             "steps": (TensorProto.INT64, it.steps), "lengths": (TensorProto.INT32, it.lengths)}
    inputs = [helper.make_tensor_value_info(name, kind, array.shape) for name, (kind, array) in given.items()]
    graph = helper.make_graph([node], "ctc", inputs, [helper.make_empty_tensor_value_info("loss")])
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("ai.rnncc", 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=10), tmp_path / "ctc.onnx")
    feeds = [array.astype(helper.tensor_dtype_to_np_dtype(kind)) for kind, array in given.values()]
    got = package.load(compile(tmp_path / "ctc.onnx"), threads=1)(*feeds)
    numpy.testing.assert_allclose(got, it.losses(), rtol=2.0**-21)
