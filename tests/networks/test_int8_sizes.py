# SPDX-License-Identifier: MIT
"""Modules of int8 networks hold their weights in a byte each: what rnnrun says of the file and of the weights by type."""
import os
import re

import numpy as np
import pytest

from conftest import ROOT
from support.amount import long_tests
from support.quantised import quantise
from support.some_networks import NETWORKS

# One target, optimised, so that the code has one size wherever the test runs: it is built, not run.
TARGET, OPTIMISED = "--target=x86-64-v3", {**os.environ, "RNNCC_CLANG_WITHOUT_PASSES": ""}


def sizes(rnncc, rnnrun, model, folder, *options):
    """(bytes of the file, {type: bytes of the weights}) of the module."""
    done = rnncc(model, TARGET, "--machine=typical", "-o", folder / "m.so", *options, env=OPTIMISED, timeout=900)
    assert done.returncode == 0, done.stderr
    told = rnnrun("inspect", folder / "m.so").stdout
    types = re.search(r"^types    (.*)$", told, re.MULTILINE)[1].replace(" bytes", "")
    of_file = int(re.search(r"^file     (\d+) bytes$", told, re.MULTILINE)[1])
    assert of_file == (folder / "m.so").stat().st_size
    return of_file, {dtype: int(count) for count, dtype in (part.split(" of ") for part in types.split(", "))}


def test_hyphenate_is_below_600_kb(rnncc, rnnrun, tmp_path):
    file, types = sizes(rnncc, rnnrun, ROOT / "models" / "hyphenate.json", tmp_path, "--precision=int8-dynamic")
    assert file <= 600_000
    layers = 2 * sum(4 * 112 * (inputs + 112) for inputs in (32, 224))  # W and R of two directions
    assert types["i8"] == layers and types["f32"] + types["i32"] < layers / 8


FORMS = {"small": {"size": 64, "width": 0.25}, "whole": {}}


@pytest.mark.parametrize("form", FORMS if long_tests() else ["small"])
def test_vgg16_takes_a_byte_a_weight(form, rnncc, rnnrun, tmp_path):
    """Of all its layers. What is not a weight: a bias, a sum and a scale of each channel, 12 bytes; and the code."""
    net = NETWORKS["vgg16"](**FORMS[form])
    weights = [array for array in net.arrays.values() if array.ndim > 1]
    shape = (4, *net.inputs[0]["shape"][1:])
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal(shape, np.float32))
    quantise(rnncc, net.write(tmp_path), tmp_path / "int8.json", data=tmp_path / "x.npy", timeout=1800)
    file, types = sizes(rnncc, rnnrun, tmp_path / "int8.json", tmp_path)
    count, channels = sum(array.size for array in weights), sum(array.shape[0] for array in weights)
    assert count <= types["i8"] <= 1.02 * count
    assert types["f32"] + types["i32"] <= 12 * channels
    assert file <= (140e6 if form == "whole" else types["i8"] + 12 * channels + 600_000)
