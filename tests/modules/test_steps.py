# SPDX-License-Identifier: MIT
"""--dump-after: after every step of compiler/passes.def, early or late, and after parts of a group."""
import re

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


def test_an_unknown_step_is_a_usage_error(rnncc, model):
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


def dump_of(rnncc, tmp_path, model, step):
    done = rnncc("inspect", model.write(tmp_path), f"--dump-after={step}", "--target=x86-64-v3", "--machine=typical", "--threads=2")
    assert done.returncode == 0, done.stderr
    return done.stderr


def lstm(model, x):
    w, r = (model.constant(numpy.full((1, 64, 16), 0.01, numpy.float32)) for _ in range(2))
    return model.node("Squeeze", [model.node("LSTM", [x, w, r], hidden_size=16), model.constant(numpy.array([1]))])


def test_a_dump_names_the_stack_of_a_layer_and_its_place_in_it(rnncc, tmp_path):
    model = Model()
    model.output(lstm(model, lstm(model, model.input("x", "f32", [50, 1, 16]))))
    dumped = dump_of(rnncc, tmp_path, model, "find_stacks")
    assert "  layer 0 of the stack n" in dumped and "  layer 1 of the stack n" in dumped


def test_a_dump_says_which_convolutions_are_exact(rnncc, tmp_path):
    model = Model()
    x, w = model.input("x", "u8", [1, 3, 9, 9]), model.constant(numpy.ones((4, 3, 3, 3), numpy.uint8))
    model.output(model.node("ConvInteger", [x, w]))
    assert "\n  exact\n" in dump_of(rnncc, tmp_path, model, "decompose")


def test_a_dump_shows_the_slots_that_workers_have(rnncc, tmp_path):
    model = Model()
    weights = model.constant(numpy.ones((32, 32, 3, 3), numpy.float32))
    model.output(model.node("Conv", [model.input("x", "f32", [1, 32, 28, 28]), weights], pads=[1, 1, 1, 1]))
    dumped = dump_of(rnncc, tmp_path, model, "pack_weights")
    assert "\nslots " in dumped and " bytes\n" in dumped


def test_a_dump_shows_the_order_of_a_resizes_axes_and_the_knobs_of_a_transposed_convolution(rnncc, tmp_path):
    model = Model()
    weights = model.constant(numpy.ones((32, 16, 2, 2), numpy.float32))
    x = model.node("ConvTranspose", [model.input("x", "f32", [1, 32, 8, 8]), weights], strides=[2, 2])
    scales = model.constant(numpy.array([1, 1, 2, 2], numpy.float32))
    model.output(model.node("Resize", [x, None, scales], mode="linear"))
    dumped = dump_of(rnncc, tmp_path, model, "choose_schedules")
    assert "\n  axes in order 3 2\n" in dumped
    assert re.search(r"\n  schedule transposed_oc\d+px\d+u\d+\S*_2x2s2c32o16g1_8x8\n", dumped)


def test_a_kernels_choices_are_dumped_once_they_are_made(rnncc, tmp_path):
    model = Model()
    scales = model.constant(numpy.array([1, 1, 2, 2], numpy.float32))
    model.output(model.node("Resize", [model.input("x", "f32", [1, 2, 5, 6]), None, scales], mode="linear"))
    path = model.write(tmp_path)
    for step, made in (("infer_shapes", False), ("choose_schedules", True)):
        done = rnncc("inspect", path, f"--dump-after={step}")
        assert done.returncode == 0 and ("axes in order" in done.stderr) == made, done.stderr
