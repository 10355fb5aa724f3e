# SPDX-License-Identifier: MIT
"""--precision: which recurrent layers multiply integers, by the kernels that they are compiled to."""
import re

import numpy as np
import pytest

from support.model_builder import Model

SIZE, DEPTH = 8, 512


def layers(constant=True, precision=None):
    """An RNN, n0, and behind it a GRU, n2, whose W is a constant or an input. precision: of both."""
    model, x = Model("net"), None
    attributes = {"precision": precision} if precision else {}
    for op, gates in (("RNN", 1), ("GRU", 3)):
        source = model.input("x", "f32", [4, 1, SIZE]) if x is None else x
        W = np.ones((1, gates * SIZE, SIZE), np.float32)
        W = model.constant(W, f"{op}_W") if constant or op == "RNN" else model.input("W", "f32", W.shape)
        R = model.constant(np.ones((1, gates * SIZE, SIZE), np.float32), f"{op}_R")
        model.node(op, [source, W, R], [f"{op}_Y"], hidden_size=SIZE, **attributes)
        x = model.node("Squeeze", [f"{op}_Y", model.constant(np.array([1], np.int64), f"{op}_axis")], [f"{op}_y"])
    model.output("GRU_y")
    return model


def of_integers(rnncc, tmp_path, model, *options):
    """The layers whose kernels multiply integers, and what was told."""
    done = rnncc("inspect", model.write(tmp_path), *options)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if "_int8" in line]
    return {line[1] for line in lines}, done.stderr


BOTH, RNN, GRU, NONE = {"n0", "n2"}, {"n0"}, {"n2"}, set()


# What multiplies integers in a model that says nothing, or f32, and in one that has both layers do so.
@pytest.mark.parametrize("given, due, of_both", [
    ("int8-dynamic", BOTH, BOTH),
    ("f32", NONE, NONE),
    ("n0=int8-dynamic", RNN, BOTH),
    ("*2=int8-dynamic", GRU, BOTH),
    ("*2=f32", NONE, RNN),
    ("?0=int8-dynamic", RNN, BOTH),
    ("int8-dynamic,n0=f32", GRU, GRU),
    ("n0=f32,int8-dynamic", BOTH, BOTH),
])
def test_the_last_rule_that_fits_a_layer_holds(rnncc, tmp_path, given, due, of_both):
    for written, expected in ((None, due), ("f32", due), ("int8-dynamic", of_both)):
        assert of_integers(rnncc, tmp_path, layers(precision=written), f"--precision={given}")[0] == expected, written


SIZES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1}


# The types of a GRU's W and R.
@pytest.mark.parametrize("given, W, R", [
    ("int8:32,*.R=f16", "i8", "f16"),
    ("f16,n0.W=int8", "i8", "f16"),
    ("n0.R=bf16", "f32", "bf16"),
    ("n0=f16,n0.W=f32", "f32", "f16"),
    ("n0.W=f32,n0=f16", "f16", "f16"),
])
def test_a_rule_may_be_for_one_of_a_layers_two_weights(rnncc, tmp_path, given, W, R):
    model = Model("net")
    x = model.input("x", "f32", [4, 1, DEPTH])
    weights = [model.constant(np.ones((1, 3 * SIZE, depth), np.float32), name) for name, depth in (("W", DEPTH), ("R", SIZE))]
    model.output(model.node("GRU", [x, *weights], ["Y"], hidden_size=SIZE))
    done = rnncc("inspect", model.write(tmp_path), f"--precision={given}")
    assert done.returncode == 0, done.stderr
    types = next(line for line in done.stdout.splitlines() if line.startswith("types"))
    due = {dtype: int(count) for count, dtype in re.findall(r"(\d+)(?: bytes)? of (\w+)", types)}
    assert due[W] >= 3 * SIZE * DEPTH * SIZES[W]
    assert W == R or 3 * SIZE * SIZE * SIZES[R] <= due[R] < 3 * SIZE * DEPTH
    assert set(due) <= {W, R, "f32"}  # scales are in f32


def test_a_pattern_fits_a_weight_of_a_long_name(rnncc, tmp_path):
    model = layers()
    model.nodes[0]["name"] = name = "/".join(["layer"] * 200)
    done = rnncc("inspect", model.write(tmp_path), "--precision=layer*r.R=bf16")
    assert done.returncode == 0 and len(name) > 1024, done.stderr
    assert "is computed by" not in done.stderr and "bf16" in done.stdout


@pytest.mark.parametrize("given, rule", [("n0=int8-dynamic,n0.R=f16", "n0.R=f16"), ("n0=f16,n0.R=int8-dynamic", "n0.R=int8-dynamic")])
def test_products_of_integers_are_of_both_weights(rnncc, tmp_path, given, rule):
    due, told = of_integers(rnncc, tmp_path, layers(), f"--precision={given}")
    assert due == (RNN if "n0=int8" in given else NONE) and f'is computed by "{rule}"' in told


def test_a_layer_of_the_model_keeps_its_own(rnncc, tmp_path):
    assert of_integers(rnncc, tmp_path, layers(precision="int8-dynamic"))[0] == BOTH
    assert of_integers(rnncc, tmp_path, layers(precision="f32"))[0] == NONE


def test_of_all_layers_those_that_cannot_stay_and_are_told(rnncc, tmp_path):
    due, told = of_integers(rnncc, tmp_path, layers(constant=False), "--precision=int8-dynamic")
    assert due == RNN
    assert "nodes[2]" in told and "GRU stays in f32: precision int8-dynamic needs a constant W" in told


def test_a_layer_that_is_named_must_be_able_to(rnncc, tmp_path):
    done = rnncc("inspect", layers(constant=False).write(tmp_path), "--precision=n2=int8-dynamic")
    assert done.returncode == 3 and "nodes[2]" in done.stderr
    assert "precision int8-dynamic needs a constant W" in done.stderr


@pytest.mark.parametrize("given", ["*2.R=f16", "int8,*2.R=f16"])
def test_a_weight_that_is_named_must_be_able_to(rnncc, tmp_path, given):
    """Also where a rule for all layers decides on the layer's other weight."""
    done = rnncc("inspect", layers(constant=False).write(tmp_path), f"--precision={given}")
    assert done.returncode == 3 and "precision f16 needs a constant W and R" in done.stderr


def test_a_rule_of_both_weights_is_told_once(rnncc, tmp_path):
    _, told = of_integers(rnncc, tmp_path, layers(constant=False), "--precision=f16")
    assert told.count("GRU stays in f32: precision f16 needs a constant W and R") == 1


@pytest.mark.parametrize("rule", ["n1=int8-dynamic", "Squeeze*=int8-dynamic"])
def test_a_rule_that_decides_on_nothing_is_told(rnncc, tmp_path, rule):
    due, told = of_integers(rnncc, tmp_path, layers(), f"--precision={rule}")
    assert due == NONE and f'no RNN, GRU or LSTM is computed by "{rule}"' in told


@pytest.mark.parametrize("given", ["", "int2", "n0=", "=f32", "n0=int8-dynamic,", "n0=int9", "int8:", "int8:48", "int4:4",
                                   "int4:2048", "int8:99999999999999999999", "int8:-8", "int4:32x", "bf16:32", "n0=f32:8",
                                   "int8-dynamic:32", "bf16-dynamic:32"])
def test_what_is_no_precision_is_refused(rnncc, tmp_path, given):
    done = rnncc("inspect", layers().write(tmp_path), f"--precision={given}")
    assert done.returncode == 2
    assert "PATTERN=PRECISION" in done.stderr and "f32, bf16, f16, int8, int4, bf16-dynamic, int8-dynamic" in done.stderr


def test_what_was_chosen_can_be_dumped(rnncc, tmp_path):
    done = rnncc("inspect", layers().write(tmp_path), "--precision=int8-dynamic,n2=bf16", "--dump-after=choose_precision")
    assert done.returncode == 0 and done.stderr.count('precision="') == 2
    assert 'precision="int8-dynamic"' in done.stderr and 'precision="f32"' in done.stderr


def test_the_build_record_says_what_changes_results(rnncc, rnnrun, tmp_path):
    model, records = layers().write(tmp_path), []
    given = ["--precision=int8,n*=int4:64,*/x=f32", "--no-winograd", "--seed=7", "--without=fuse_chains,fuse_epilogue"]
    for options in ([], given):
        module = tmp_path / "m.so"
        done = rnncc(model, "-o", module, *options)
        assert done.returncode == 0, done.stderr
        records.append(next(line for line in rnnrun("inspect", module).stdout.splitlines() if line.startswith("build")))
    plain, changed = records
    assert changed == plain.replace(", model", f" {' '.join(given)}, model")
