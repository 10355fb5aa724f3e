# SPDX-License-Identifier: MIT
"""With any schedule that a record has, a convolution equals the reference: with random candidates, and with knobs that no
search would try (support/random_records.c), on every target."""
import subprocess

import numpy
import pytest

from conftest import build_directory
from support.amount import some
from support.convolutional import RandomNetwork, random_convolution
from support.emitted import TARGETS, assert_same, run_module
from support.machine import WIDEST
from support.merge import merged
from support.model_builder import Model

THREADS = 3
WINDOWS = [(3, 3), (1, 3), (3, 1), (5, 5), (1, 5), (5, 1), (1, 7), (7, 1)]


def random_records(model, folder, target, seed, *exact):
    """Options that compile the model by records of random schedules; and their forms."""
    path = folder / "records.jsonl"
    done = subprocess.run([build_directory() / "tests" / "support" / "random_records", model, path, target,
                           str(THREADS), str(seed), *exact], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    options = ["--layout-search=greedy", f"--target={target}", f"--threads={THREADS}", f"--schedules={path}"]
    options += ["--no-winograd"] if exact else []
    return options, [line.split()[1] for line in done.stdout.splitlines()]


def silent(rnncc, model, *options):
    """Every record belongs to the model and is legal: else there would be a warning."""
    done = rnncc("inspect", model, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("target,seed", [(target, seed) for target in TARGETS for seed in some(range(3), 1)])
def test_random_schedules_of_convolutions_equal_the_reference(rnncc, reference, compile, tmp_path, target, seed):
    rng = numpy.random.default_rng([seed, 11])
    model, feeds = merged([random_convolution(rng) for _ in range(15)])
    path = model.write(tmp_path)
    options, _ = random_records(path, tmp_path, target, seed, "exact")
    silent(rnncc, path, *options)
    assert_same(run_module(compile(path, *options, optimised=seed == 0 and target == WIDEST), feeds), reference.run(model, path, feeds))


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_random_schedules_of_networks_equal_the_reference(rnncc, reference, compile, tmp_path, seed):
    """Residuals, epilogues and prologues, parts of concatenations, a number of images known at run time."""
    network = RandomNetwork(numpy.random.default_rng([seed, 12])).grow(9)
    model = network.finish()
    path = model.write(tmp_path)
    options, _ = random_records(path, tmp_path, TARGETS[seed % 2], seed, "exact")
    silent(rnncc, path, *options)
    feeds = network.feeds(3)
    assert_same(run_module(compile(path, *options, optimised=False), feeds), reference.run(model, path, feeds))


def random_winograd_layer(rng):
    """As in real networks: a layer's outputs vary as much as its inputs."""
    window, groups = WINDOWS[rng.integers(len(WINDOWS))], int(rng.choice([1, 1, 2]))
    channels, kernels = 16 * int(rng.integers(1, 5)), int(rng.choice([16, 32, 48, 80]))
    scale = (2 / (window[0] * window[1] * channels)) ** 0.5
    weights = (rng.standard_normal((groups * kernels, channels, *window)) * scale).astype(numpy.float32)
    extents, batch = [int(extent) for extent in rng.integers(5, 20, 2)], int(rng.integers(1, 4))
    model = Model()
    x = model.input("x", "f32", [batch, groups * channels, *extents])
    y = model.node("Conv", [x, model.constant(weights)], group=groups,
                   pads=[window[0] // 2, window[1] // 2, window[0] // 2, window[1] // 2])
    model.output(y)
    return model, {"x": rng.standard_normal((batch, groups * channels, *extents)).astype(numpy.float32)}


@pytest.mark.parametrize("target,seed", [(target, seed) for target in TARGETS for seed in some(range(2), 1)])
def test_random_schedules_with_winograd_equal_the_reference(rnncc, reference, compile, tmp_path, target, seed):
    rng = numpy.random.default_rng([seed, 13])
    model, feeds = merged([random_winograd_layer(rng) for _ in range(12)])
    path = model.write(tmp_path)
    options, forms = random_records(path, tmp_path, target, seed)
    assert sum(form.startswith("winograd") for form in forms) > 2
    silent(rnncc, path, *options)
    module = compile(path, *options, optimised=False)
    got, expected = run_module(module, feeds), reference.run(model, path, feeds)
    for name, array in expected.items():
        assert numpy.abs(got[name] - array).max() <= 1e-4 * numpy.abs(array).max(), name  # the bound of F(4,3)


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_in_a_database_changes_no_result(reference, compile, tmp_path, seed):
    """Whole compilations; unit/conv_candidates_test.c flips a thousand."""
    rng = numpy.random.default_rng([seed, 14])
    model, feeds = merged([random_convolution(rng) for _ in range(3)])
    path = model.write(tmp_path)
    options, _ = random_records(path, tmp_path, TARGETS[0], seed, "exact")
    records = tmp_path / "records.jsonl"
    flipped = bytearray(records.read_bytes())
    for place in rng.integers(len(flipped), size=3):
        flipped[place] ^= 1 << rng.integers(8)
    records.write_bytes(flipped)
    module = compile(path, *options, optimised=False)
    assert_same(run_module(module, feeds), reference.run(model, path, feeds))
