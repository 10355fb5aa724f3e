# SPDX-License-Identifier: MIT
"""--dump-after: after every step of compiler/passes.def, early or late, and after parts of a group."""
import numpy
import pytest

from support.model_builder import Model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    model = Model()
    ones = model.constant(numpy.ones(10000, numpy.float32))  # too many for shape inference to fold
    x = model.node("Identity", [model.input("x", "f32", [10000])])
    model.output(model.node("Mul", [x, model.node("Add", [ones, ones])]))
    return model.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def dump(rnncc, model, tmp_path_factory):
    def dumped(step, kind="h"):
        output = tmp_path_factory.mktemp("output") / "out"
        done = rnncc(model, f"--emit={kind}", "-o", output, f"--dump-after={step}")
        assert done.returncode == 0, done.stderr
        return done.stderr

    return dumped


def listed_steps(rnncc):
    return [line.split()[0] for line in rnncc("--dump-after=list").stdout.splitlines()]


def test_each_step_can_be_dumped(dump, rnncc):
    steps = listed_steps(rnncc)
    lowered, late = steps.index("lower"), steps.index("emit")
    assert steps[0] == "load" and steps[-1] == "build" and "fold_constants" in steps
    for step in steps[:lowered]:
        assert dump(step).startswith("graph "), step
    for step in steps[lowered:late]:
        assert dump(step).startswith("program "), step
    for step in steps[late:]:
        assert dump(step, "so").startswith("program "), step


def test_a_program_shows_what_its_steps_decide(dump):
    lowered, placed = dump("lower"), dump("place_barriers")
    for line in ("shape = [10000]", "a = read t0", "y = write t"):
        assert line in lowered, lowered
    assert "arena+0" not in lowered and "barrier" not in lowered
    assert "input 0" in placed and "weights+0" in placed and "output 0" in placed


def ops(text):
    return [line.split(" = ")[1].split("(")[0] for line in text.splitlines() if " = " in line]


def test_a_group_is_dumped_after_its_last_part_and_each_part_by_its_name(dump):
    assert ops(dump("decompose")) == ["Identity", "Add", "Mul"]
    assert ops(dump("fold_constants")) == ["Identity", "Mul"]
    assert ops(dump("drop_identities")) == ops(dump("simplify")) == ["Mul"]
    assert dump("simplify") == dump("strides_first")


def test_a_step_that_is_none_is_a_usage_error(rnncc, model):
    done = rnncc(model, "--dump-after=fold_everything")
    assert done.returncode == 2 and "fold_everything" in done.stderr


def test_a_dump_prints_what_was_decided_for_each_node(rnncc, root, tmp_path):
    def dumped(model, step, *options):
        return rnncc("inspect", root / "models" / model, f"--dump-after={step}", *options).stderr

    options = ("--target=x86-64-v3", "--conv=direct,oc=2,px=4", "--layout-search=greedy")
    laid_out = dumped("digits_cnn.json", "choose_layouts", *options)
    assert "\n  reads narrow blocks, writes blocks\n" in laid_out and "\n  reads blocks, writes blocks\n" in laid_out
    chosen = dumped("digits_cnn.json", "choose_schedules", *options)
    assert "\n  schedule direct_oc2px4" in chosen and "\n  knobs direct,oc=2,px=4,unroll=" in chosen
    options = ("--target=x86-64-v3", "--rnn=input=step,workers=1")
    planned = dumped("digits_rnn.json", "plan_recurrent", *options)
    assert "\n  knobs input=" in planned and "\n  schedule " not in planned
    chosen = dumped("digits_rnn.json", "choose_schedules", *options)
    assert "\n  schedule gru_" in chosen and "\n  knobs input=step,workers=1," in chosen and "\n  product rows=" in chosen
