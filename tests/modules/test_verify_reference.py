# SPDX-License-Identifier: MIT
"""`rnnrun verify --reference`: errors, signal to noise and agreement are NumPy's; bounds set the exit code; modules and
samples that do not fit are refused."""
import re

import numpy as np
import pytest
from support.model_builder import Model

WEIGHTS = np.random.default_rng(5).normal(size=(6, 4)).astype(np.float32)


def network(directory, weights, name, output="y", extra=False):
    model = Model(name)
    model.dim("B", 1, 3, 8)
    x = model.input("x", "f32", ["B", weights.shape[0]])
    state = model.state("h", "h_next", "f32", [1])
    carried = model.node("Add", [state, model.constant(np.ones(1, np.float32))], outputs=["h_next"])
    scores = model.node("MatMul", [x, model.constant(weights)])
    model.node("Add", [scores, carried], outputs=[output])
    model.node("ArgMax", [output], outputs=["choice"], axis=1, keepdims=0)
    model.output(output, "choice", *(["h_extra"] if extra else []))
    if extra:
        model.node("Neg", [output], outputs=["h_extra"])
    directory = directory / name
    directory.mkdir()
    return model.write(directory)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return (network(folder, WEIGHTS, "exact"), network(folder, np.round(WEIGHTS), "rounded"))


@pytest.fixture
def pair(models, compile):
    return [compile(model) for model in models]


def row(text, name):
    (line,) = re.findall(rf"^{name}\s+(\S.*)$", text, re.MULTILINE)
    elements, largest, mean, snr, *agreement = line.split()
    return int(elements), float(largest), float(mean), float(snr), " ".join(agreement)


def samples(directory, count, rows=3):
    rng = np.random.default_rng(7)
    arrays = [rng.normal(size=(rows + k % 2, 6)).astype(np.float32) for k in range(count)]
    for k, array in enumerate(arrays):
        np.save(directory / f"sample{k}.npy", array)
    return arrays


def outputs(weights, arrays, steps=1):
    return np.concatenate([a.astype(float) @ weights + step + 1 for a in arrays for step in range(steps)])


@pytest.mark.parametrize("steps", [1, 3])
def test_numbers_are_numpys_over_all_samples_and_states_begin_anew(pair, rnnrun, tmp_path, steps):
    exact, rounded = pair
    arrays = samples(tmp_path, 5)
    done = rnnrun("verify", rounded, f"--reference={exact}", "--input", f"x=@{tmp_path}/sample*.npy", "--steps", steps)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 samples, ")
    expected, got = (outputs(w, arrays, steps) for w in (WEIGHTS, np.round(WEIGHTS)))
    off = np.abs(got - expected)
    snr = 10 * np.log10((expected ** 2).sum() / (off ** 2).sum())
    agree = np.mean(got.argmax(1) == expected.argmax(1))
    assert 0.2 < agree < 1
    elements, largest, mean, decibels, agreement = row(done.stdout, "y")
    assert elements == expected.size
    assert largest == pytest.approx(off.max(), rel=6e-3) and mean == pytest.approx(off.mean(), rel=6e-3)
    assert decibels == pytest.approx(snr, abs=6e-3)
    assert agreement == f"{100 * agree:.2f}% top-1"
    assert row(done.stdout, "choice")[4] == f"{100 * agree:.2f}% equal"


def test_a_module_agrees_with_itself(pair, rnnrun):
    done = rnnrun("verify", pair[0], f"--reference={pair[0]}", "--samples=4", "--min-snr=300", "--max-error=0")
    assert done.returncode == 0, done.stdout
    assert row(done.stdout, "y") == (48, 0, 0, float("inf"), "100.00% top-1")


def test_bounds_set_the_exit_code_and_are_named(pair, rnnrun, tmp_path):
    exact, rounded = pair
    samples(tmp_path, 2)
    given = ("verify", rounded, f"--reference={exact}", "--input", f"x=@{tmp_path}/sample*.npy")
    _, largest, _, snr, _ = row(rnnrun(*given).stdout, "y")
    assert rnnrun(*given, f"--min-snr={snr - 0.1}").returncode == 0
    done = rnnrun(*given, f"--min-snr={snr + 0.1}")
    assert done.returncode == 1 and f"y: MISMATCH, SNR {snr:.2f} dB is below" in done.stdout
    done = rnnrun(*given, f"--max-error={largest * 0.98}")
    assert done.returncode == 1 and "y: MISMATCH, max error" in done.stdout


def test_random_samples_differ_and_are_the_same_each_time(pair, rnnrun):
    exact, rounded = pair

    def told(*options):
        return rnnrun("verify", rounded, f"--reference={exact}", *options).stdout

    assert told("--samples=3") == told("--samples=3") == told("--samples=3", "--input", "x=random") != told()
    assert told("--input", "x=random:1") != told() == told("--input", "x=random:0")
    assert row(told("--samples=3"), "y")[0] == 3 * row(told(), "y")[0]


def test_nan_beside_a_number_is_beyond_every_bound(pair, rnnrun, tmp_path):
    exact, rounded = pair
    x = np.ones((3, 6), np.float32)
    x[1, 2] = np.nan
    np.save(tmp_path / "x.npy", x)
    given = ("--input", f"x=@{tmp_path}/x.npy")
    done = rnnrun("verify", exact, f"--reference={exact}", *given, "--max-error=0")
    assert done.returncode == 0, done.stdout  # NaN beside NaN
    x[1, 2] = 3e38
    np.save(tmp_path / "x.npy", x)
    done = rnnrun("verify", rounded, f"--reference={exact}", *given, "--max-error=1e38", "--min-snr=0")
    assert done.returncode == 1 and row(done.stdout, "y")[1] == float("inf"), done.stdout


@pytest.mark.every_case
@pytest.mark.parametrize("options, words", [
    (["--input", "x=@{0}/none*.npy"], "--input x=@{0}/none*.npy: no file matches"),
    (["--input", "x=@{0}/sample*.npy", "--samples=3"], "expected at most 2, as many as files match, found 3"),
    (["--input", "x=@{0}/wide*.npy"], "input x is 3x7, but axis 1 must be 6 long"),
    (["--input", "x=@{0}/short*.npy"], "its shape needs 72 bytes of data, it has 62"),
    (["--expect", "y=@{0}/sample0.npy"], "expected --expect or --reference, found both"),
    (["--min-snr=-3"], "--min-snr: expected a number that is not negative"),
])
def test_samples_that_do_not_fit_are_refused(pair, rnnrun, tmp_path, options, words):
    samples(tmp_path, 2)
    np.save(tmp_path / "wide0.npy", np.zeros((3, 7), np.float32))
    (tmp_path / "short0.npy").write_bytes((tmp_path / "sample0.npy").read_bytes()[:-10])
    done = rnnrun("verify", pair[1], f"--reference={pair[0]}", *(option.format(tmp_path) for option in options))
    assert done.returncode == 2 and words.format(tmp_path) in done.stderr, done.stderr


def test_other_modules_are_refused(models, pair, rnnrun, compile, tmp_path):
    for name, other in (("output", {"output": "z"}), ("output", {"extra": True}), ("input", {})):
        weights = WEIGHTS if other else np.ones((5, 4), np.float32)
        made = compile(network(tmp_path, weights, f"other{len(list(tmp_path.iterdir()))}", **other))
        for one, two in ((pair[0], made), (made, pair[0])):
            done = rnnrun("verify", one, f"--reference={two}")
            assert done.returncode == 2 and f"{name} " in done.stderr, done.stderr


def test_options_of_reference_need_it(pair, rnnrun, tmp_path):
    for option in ("--samples=2", "--max-error=1", "--min-snr=3"):
        done = rnnrun("verify", pair[0], "--expect", "y=@y.npy", option)
        assert done.returncode == 2 and f"{option.split('=')[0]} goes with --reference" in done.stderr
    assert "--expect NAME=@FILE or --reference=MODULE.so is missing" in rnnrun("verify", pair[0]).stderr
