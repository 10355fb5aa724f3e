# SPDX-License-Identifier: MIT
"""Layers of integers whose products are by AMX have the bits that they have by VNNI, as both sums are exact, and the values of
NumPy's exact products (test_recurrent_int8.py). Inputs and units are mostly no multiples of 16 or 64."""
import re
from dataclasses import replace

import numpy as np
import pytest

from support.amount import some
from support.model_builder import Model
from support.module import Module
from support.recurrent import model_of
from support.recurrent_groups import GROUP, group_feeds, in_groups
from support.recurrent_int8 import int8_configuration
from test_recurrent_int8 import STATIC, check_values

AMX, VNNI = "--target=x86-64-v4+vnni+amx", "--target=x86-64-v4+vnni"
T = 5
# (B, or None: only the run knows it; --rnn). Blocks of one height, and of two; of 16 samples, and of each worker's few.
BATCHES = [(7, "workers=1"), (17, "workers=2,batch_parts=1"), (None, "workers=2,batch_parts=1"), (33, "workers=3,batch_parts=1"),
           (16, "workers=1"), (26, "workers=3,batch_parts=3"), (31, "workers=4,batch_parts=2")]
SIZES = [(70, 131), (64, 192), (130, 129), (49, 250), (201, 140)]  # I and H
RUN_TIME = [1, 6, 19]


def groups(indices, fixed=False):
    """Configurations over all attributes, of one op a group, that are large enough for matrices."""
    sizes = [SIZES[index % len(SIZES)] for index in indices]
    return [replace(int8_configuration(index * GROUP + i, fixed), I=I, H=H) for index, (I, H) in zip(indices, sizes) for i in range(GROUP)]


DYNAMIC, FIXED = groups(range(21)), groups(range(21, 42), fixed=True)


def batch_of(group):
    return BATCHES[group[0].seed // GROUP % len(BATCHES)]


def built(group, compile, tmp_path, *targets):
    B, how = batch_of(group)
    model = model_of(group, T=T, B=B)
    model.dim("B", *((B, B, B) if B else (1, 9, 20)))
    path = model.write(tmp_path)
    return [compile(path, target, f"--rnn={how}", optimised=False) for target in targets]


def outputs(path, group, B, threads):
    with Module(path) as module, module.context(threads) as context:
        return context.run(group_feeds(group, T, B))


RUNS = {}


def run(path, group, B, threads):
    """All layers of a group at once, each of which is a test."""
    key = path, B, threads
    if key not in RUNS:
        RUNS[key] = outputs(path, group, B, threads)
    return RUNS[key]


def check_bits(configuration, group, compile, tmp_path):
    by_amx, by_vnni = built(group, compile, tmp_path, AMX, VNNI)
    fixed, _ = batch_of(group)
    for B in [fixed] if fixed else RUN_TIME:
        due = configuration.own(run(by_vnni, group, B, 1))
        for threads in (1, 2, 3, 8):
            got = configuration.own(run(by_amx, group, B, threads))
            for name in due:
                assert np.array_equal(got[name].view(np.uint32), due[name].view(np.uint32)), (B, threads, name)


@in_groups(DYNAMIC, 7)
def test_matrices_have_the_bits_of_dot_products_on_any_threads(configuration, group, compile, tmp_path):
    check_bits(configuration, group, compile, tmp_path)


@in_groups(FIXED, 3)
def test_by_fixed_ranges_too(configuration, group, compile, tmp_path):
    check_bits(configuration, group, compile, tmp_path)


@in_groups(DYNAMIC[3 * GROUP:4 * GROUP])
def test_values_are_those_of_exact_products(configuration, group, compile, tmp_path):
    (path,) = built(group, compile, tmp_path, AMX)
    B, _ = batch_of(group)
    check_values(configuration, [(T, B)], lambda T, B: configuration.own(run(path, group, B, 2)))


def kernels_of(rnncc, folder, T, B, I, H, **how):
    """Of an LSTM, in order, by their headings."""
    folder.mkdir()
    model, rng = Model("layer"), np.random.default_rng(3)
    W, R = (model.constant(rng.uniform(-1, 1, (1, 4 * H, n)).astype(np.float32), name) for n, name in ((I, "W"), (H, "R")))
    model.node("LSTM", [model.input("x", "f32", [T, B, I]), W, R], ["Y"], hidden_size=H, **how)
    model.output("Y")
    done = rnncc(model.write(folder), AMX, "--rnn=batch_parts=1", "--emit=c", "-o", folder / "c")
    assert done.returncode == 0, done.stderr
    return re.findall(r"^/\* ---- kernel .*: (recurrent_int8\w*)", (folder / "c" / "network.c").read_text(), re.M)


DOTS, MATRICES = ["recurrent_int8_input", "recurrent_int8"], ["recurrent_int8_input_matrices", "recurrent_int8_matrices"]


def test_matrices_are_chosen_of_six_samples_and_128_units_on(rnncc, tmp_path):
    """The product with W has the rows of all steps, and needs 48 inputs and 393,216 multiply-adds."""
    due = {(10, 6, 128, 128): MATRICES, (10, 5, 128, 128): [MATRICES[0], DOTS[1]], (10, 6, 128, 127): [MATRICES[0], DOTS[1]],
           (10, 6, 47, 128): [DOTS[0], MATRICES[1]], (10, 1, 128, 128): [MATRICES[0], DOTS[1]], (1, 1, 128, 128): DOTS,
           (1, 6, 48, 352): MATRICES, (1, 6, 48, 320): [DOTS[0], MATRICES[1]]}
    for how in ({"precision": "int8-dynamic"}, STATIC):
        found = {case: kernels_of(rnncc, tmp_path / f"{len(how)}{case}", *case, **how) for case in due}
        assert found == due
