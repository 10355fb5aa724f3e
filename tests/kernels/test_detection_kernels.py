# SPDX-License-Identifier: MIT
"""NonMaxSuppression and TopK on inputs like those of a detector, thousands of boxes of which few matter: on every target
the result is ONNX Runtime's, row by row."""
import numpy
import pytest
from support.emitted import assert_same
from support.model_builder import Model

MIN_SCORE = 0.25


def boxes_of(rng, n):
    """Corners: small integers, so that overlaps are exact and often equal; either corner first, some boxes empty."""
    first, sides = rng.integers(0, 60, (n, 2)), rng.integers(0, 12, (n, 2))
    corners = numpy.concatenate([first, first + sides], axis=1)
    return numpy.where(rng.random((n, 1)) < 0.5, corners, corners[:, [2, 3, 0, 1]]).astype(numpy.float32)


def scores_of(rng, classes, n, candidates):
    """In each class, `candidates` boxes have at least MIN_SCORE, which itself is not enough for a candidate. Many scores
    are equal, and zeros have both signs."""
    scores = rng.choice([-0.0, 0.0, 0.125], (classes, n))
    for row in scores:
        row[rng.choice(n, candidates, replace=False)] = rng.integers(8, 24, candidates) / 32
    return scores.astype(numpy.float32)


def suppression(cases, least=(MIN_SCORE,)):
    """A node for each (boxes, classes, candidates, maximum boxes of a class). least: () for none."""
    model, feeds, rng = Model(), {}, numpy.random.default_rng(len(cases))
    for k, (n, classes, candidates, most) in enumerate(cases):
        boxes, scores = model.input(f"boxes{k}", "f32", [1, n, 4]), model.input(f"scores{k}", "f32", [1, classes, n])
        feeds |= {boxes: boxes_of(rng, n)[None], scores: scores_of(rng, classes, n, candidates)[None]}
        constants = [numpy.array([most]), numpy.float32([0.5]), *(numpy.float32([value]) for value in least)]
        model.output(model.node("NonMaxSuppression", [boxes, scores, *map(model.constant, constants)]))
    return model, feeds


def check(run_on_target, folder, model, feeds):
    expected = model.onnx_run(feeds)
    assert_same(run_on_target(model.write(folder), feeds, model.outputs), expected)
    return [len(expected[name]) for name in model.outputs]


def test_few_of_many_boxes_are_candidates(run_on_target, tmp_path):
    """15 to 17: the last vector of scores, or of taken boxes, is almost full, full, or just begun."""
    cases = [(6000, 3, 40, 100), (3000, 5, 700, 20), (500, 2, 500, 499)]
    cases += [(n, 4, n, n) for n in (1, 2, 15, 16, 17, 33)]
    counts = check(run_on_target, tmp_path, *suppression(cases))
    assert counts[1] == 5 * 20 and max(counts[:2]) < 3000


def test_no_candidate_gives_no_row(run_on_target, tmp_path):
    assert check(run_on_target, tmp_path, *suppression([(100, 3, 0, 50), (6000, 2, 0, 9)])) == [0, 0]


def test_without_a_least_score_all_boxes_are_candidates(run_on_target, tmp_path):
    """Zero and minus zero are equal, so the lower index comes first."""
    counts = check(run_on_target, tmp_path, *suppression([(300, 3, 20, 300), (40, 2, 0, 40)], least=()))
    assert min(counts) > 20


def test_an_overlap_equal_to_the_limit_does_not_count(run_on_target, tmp_path):
    model = Model()
    boxes = numpy.float32([[[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 2.25]]])
    inputs = [boxes, numpy.float32([[[0.75, 0.5, 0.25]]]), numpy.array([3]), numpy.float32([0.5])]
    feeds = {model.input("boxes", "f32", [1, 3, 4]): inputs[0], model.input("scores", "f32", [1, 1, 3]): inputs[1]}
    model.output(model.node("NonMaxSuppression", [*feeds, *map(model.constant, inputs[2:])]))
    assert check(run_on_target, tmp_path, model, feeds) == [2]


@pytest.mark.parametrize("largest", [0, 1])
def test_the_best_of_a_long_row_are_found_wherever_they_stand(run_on_target, tmp_path, largest):
    """Falling and rising rows, so that no element or each one replaces earlier results; ties; few values that differ."""
    rng, n = numpy.random.default_rng(largest), 1000
    rows = numpy.stack([numpy.arange(n), -numpy.arange(n), rng.integers(0, 9, n), rng.random(n), numpy.zeros(n)])
    rows[4, [70, 500, 999]] = [-1, 1, 2]
    model = Model()
    x = model.input("x", "f32", rows.shape)
    for k in (1, 7, 100, n):
        model.output(*model.node("TopK", [x, model.constant(numpy.array([k]))], 2, largest=largest))
    check(run_on_target, tmp_path, model, {"x": rows.astype(numpy.float32)})


@pytest.mark.parametrize("largest", [0, 1])
def test_nan_is_the_greatest_wherever_it_stands(reference, run_on_target, tmp_path, largest):
    x = numpy.tile(numpy.linspace(1, 0, 400, dtype=numpy.float32), (3, 1))  # falling, so that only the NaN is a candidate
    x[0, [3, 90, 399]] = x[1, 0] = x[2] = numpy.nan
    model = Model()
    inputs = [model.input("x", "f32", x.shape), model.constant(numpy.array([4]))]
    model.output(*model.node("TopK", inputs, 2, largest=largest))
    path = model.write(tmp_path)
    assert_same(run_on_target(path, {"x": x}, model.outputs), reference.run(model, path, {"x": x}))
