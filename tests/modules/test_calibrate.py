# SPDX-License-Identifier: MIT
"""The measurements of `rnncc targets --calibrate` are used if they are of this machine, and nowhere else."""
import fcntl
import json
import os
import re

import pytest

from support.machine import need_isa
from support.preloaded import preloaded

TARGET = "x86-64-v3"  # of the machine in the tests' files


@pytest.fixture
def model(root):
    return root / "models" / "digits_rnn.json"


@pytest.fixture(scope="session")
def measured(rnncc, module_cache):
    """A file that --calibrate has written, and its output: once for all workers of this session."""
    cache = module_cache / "calibrated"
    cache.mkdir(exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "printed").exists():
            done = rnncc("targets", "--calibrate", "--budget=0.01", env={**os.environ, "XDG_CACHE_HOME": str(cache)})
            assert done.returncode == 0, done.stderr
            (cache / "printed").write_text(done.stdout)
    return json.loads((cache / "rnncc" / "machine.json").read_text()), (cache / "printed").read_text()


@pytest.fixture
def explained(rnncc, model, tmp_path):
    """explained(text of the user's file or None, options) -> the finished process of --explain=rnn, which prints
    predicted times."""

    def explain(text, *options):
        folder = tmp_path / "rnncc"
        folder.mkdir(exist_ok=True)
        (folder / "machine.json").unlink(missing_ok=True)
        if text is not None:
            (folder / "machine.json").write_text(text)
        return rnncc("inspect", model, "--explain=rnn", *options, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})

    return explain


def slow(machine):
    """The same machine with a hundredth of the multiply-adds, for all targets."""
    targets = {name: {**speeds, "gflops": max(0.02, speeds["gflops"] / 100)}
               for name, speeds in machine["targets"].items()}
    return {**machine, "targets": targets}


def test_every_target_that_runs_here_has_plausible_speeds(measured, rnncc):
    machine, printed = measured
    assert machine["targets"]
    for name, speeds in machine["targets"].items():
        assert name in printed and name in rnncc("targets").stdout
        assert 0.1 < speeds["ghz"] < 10 and speeds["gflops"] > speeds["ghz"]
        assert speeds["l1_gbps"] > speeds["dram_gbps"] > 0.1
        assert speeds["barrier_ns"] > 1


def test_the_users_file_changes_plans_for_native_alone(measured, explained):
    machine, _ = measured
    nothing, fast, slower = explained(None), explained(json.dumps(machine)), explained(json.dumps(slow(machine)))
    assert fast.stderr == slower.stderr == ""
    assert len({nothing.stdout, fast.stdout, slower.stdout}) == 3
    other = f"--target={TARGET}"
    assert explained(None, other).stdout == explained(json.dumps(slow(machine)), other).stdout
    assert explained(None).stdout != explained(json.dumps(machine), "--machine=typical").stdout


def numbers_of(printed):
    """Of the table of targets; the file rounds, too."""
    rows = [line.split()[1:] for line in printed.splitlines() if re.match(r"\S+ +[\d.]+ +[\d.]+ ", line)]
    return [float(number) for row in rows for number in row]


def test_targets_says_what_this_machine_is_and_where_its_speeds_are_from(measured, rnncc, tmp_path):
    def told(*files):
        (tmp_path / "rnncc").mkdir(exist_ok=True)
        for text in files:
            (tmp_path / "rnncc" / "machine.json").write_text(text)
        done = rnncc("targets", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
        assert done.returncode == 0
        return done.stdout.split("\n\n")[1], done.stderr

    machine, printed = measured
    first = printed.splitlines()[0]  # CPU, cores and caches
    nothing, _ = told()
    assert nothing.startswith(first) and re.search("^speeds|^clock", nothing, re.M) and "measured," not in nothing
    fast, told_of = told(json.dumps(machine))
    assert numbers_of(fast) == pytest.approx(numbers_of(printed), abs=1) and told_of == ""
    assert f"speeds: measured, {tmp_path}/rnncc/machine.json" in fast
    other, told_of = told(json.dumps({**machine, "cpu": "Z80 (Zilog 1)"}))
    assert other == nothing and told_of.count("not used: it is of") == 1


def test_a_file_without_ports_has_the_targets(measured, explained):
    """Files of older versions."""
    machine = measured[0]
    assert all({"fma_latency", "loads_per_cycle"} <= speeds.keys() for speeds in machine["targets"].values())
    older = {name: {key: value for key, value in speeds.items() if key not in ("fma_latency", "loads_per_cycle")}
             for name, speeds in machine["targets"].items()}
    got = explained(json.dumps({**machine, "targets": older}))
    assert got.returncode == 0 and got.stderr == ""


def test_machine_native_says_so_for_a_lower_target(measured, explained):
    other = f"--target={TARGET}"
    need_isa("avx2")
    got = explained(json.dumps(slow(measured[0])), other, "--machine=native")
    assert got.stderr == "" and got.stdout != explained(None, other, "--machine=native").stdout


def without(machine, key):
    return {name: value for name, value in machine.items() if name != key}


def with_speed(machine, key, value):
    targets = {name: {**speeds, key: value} for name, speeds in machine["targets"].items()}
    return {**machine, "targets": targets}


# The mistake in the file, how it is made, and the message about it.
ELSEWHERE = {
    "another CPU": (lambda m: json.dumps({**m, "cpu": "Z80 (Zilog 1)"}), r'it is of "Z80 \(Zilog 1\)", and this is '),
    "other caches": (lambda m: json.dumps({**m, "l2": m["l2"] * 2}), "it is of other caches"),
    "other cores": (lambda m: json.dumps({**m, "cores": m["cores"] + 1}), r"it is of \d+ cores?, and this process has"),
}
BAD = {
    "empty": (lambda m: "", "JSON|value"),
    "truncated": (lambda m: json.dumps(m)[:-20], ""),
    "no JSON": (lambda m: "\x00\x01machine", ""),
    "another format": (lambda m: json.dumps({**m, "format": "rnncc"}), 'expected the format "rnncc-machine", found "rnncc"'),
    "another version": (lambda m: json.dumps({**m, "version": 2}), "version|expected 1 to 1"),
    "no caches": (lambda m: json.dumps(without(m, "l1")), "l1"),
    "no cores": (lambda m: json.dumps({**m, "cores": 0}), ""),
    "no such target": (lambda m: json.dumps({**m, "targets": {}}), "it has nothing on "),
    "a text for a number": (lambda m: json.dumps(with_speed(m, "ghz", "fast")), "expected a number, found a string"),
    "a negative speed": (lambda m: json.dumps(with_speed(m, "l2_gbps", -1)), "no machine has a l2_gbps of -1"),
    "an absurd clock": (lambda m: json.dumps(with_speed(m, "ghz", 4000)), "no machine has a ghz of 4000"),
    "infinite memory": (lambda m: json.dumps(m).replace('"dram_gbps": ', '"dram_gbps": 1e999, "x-was": '), ""),
    "an unknown member": (lambda m: json.dumps({**m, "turbo": True}), "turbo"),
}


@pytest.mark.parametrize("what", [*ELSEWHERE, *BAD])
def test_a_file_that_does_not_fit_is_ignored_with_one_warning(what, measured, explained):
    make, said = {**ELSEWHERE, **BAD}[what]
    got, nothing = explained(make(measured[0])), explained(None)
    assert got.returncode == 0 and got.stdout == nothing.stdout
    assert re.fullmatch(rf".*machine\.json: warning: not used: [^\n]*({said})[^\n]*--calibrate[^\n]*\n", got.stderr)


@pytest.mark.parametrize("what", BAD)
def test_machine_file_refuses_a_bad_file(what, measured, explained, tmp_path):
    make, said = BAD[what]
    (tmp_path / "given.json").write_text(make(measured[0]))
    got = explained(None, f"--machine={tmp_path}/given.json")
    assert got.returncode == 2 and got.stdout == "" and re.search(f"given.json.*({said})", got.stderr, re.DOTALL)


def test_machine_file_plans_for_the_machine_that_it_is_of(measured, explained, tmp_path):
    machine = {**slow(measured[0]), "cpu": "Z80 (Zilog 1)", "cores": 3}
    (tmp_path / "given.json").write_text(json.dumps(machine))
    got = explained(None, f"--machine={tmp_path}/given.json")
    assert got.returncode == 0 and got.stdout != explained(None).stdout


@pytest.mark.long
def test_calibrate_writes_where_it_is_told(rnncc, tmp_path, monkeypatch):
    path = tmp_path / "here.json"
    monkeypatch.setenv("RNNCC_CPU_WITHOUT", "avx2")  # one target to measure, not three
    assert rnncc("targets", "--calibrate", "--budget=0.01", "-o", path).returncode == 0
    assert json.loads(path.read_text())["format"] == "rnncc-machine"
    assert rnncc("targets", "--calibrate", "--budget=0.01", "-o", tmp_path).returncode == 2


def test_calibrate_needs_a_folder_to_write_to(rnncc, monkeypatch):
    monkeypatch.setenv("RNNCC_CPU_WITHOUT", "avx2")
    nowhere = rnncc("targets", "--calibrate", "--budget=0.01")  # the tests' XDG_CACHE_HOME is not a folder
    assert nowhere.returncode == 5 and "cannot make the folder" in nowhere.stderr


def test_calibrate_tells_before_it_measures_that_it_cannot_write(rnncc, tmp_path, monkeypatch):
    monkeypatch.setenv("RNNCC_CPU_WITHOUT", "avx2")
    for output, code in [(tmp_path, 2), (tmp_path / "absent" / "machine.json", 5)]:
        done = rnncc("targets", "--calibrate", "--budget=0.01", "-o", output)
        assert (done.returncode, done.stdout) == (code, "") and f"{output}: error: cannot write" in done.stderr, done.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has no barrier to measure")
def test_calibrate_where_there_is_no_thread_says_what_it_needs(rnncc, tmp_path):
    environment = {**os.environ, "LD_PRELOAD": preloaded("no_threads", tmp_path)}
    done = rnncc("targets", "--calibrate", "--budget=0.01", "-o", tmp_path / "machine.json", env=environment)
    assert done.returncode == 4, done.stderr
    assert re.search(r"error: calibrate: \d+ threads and \d+ bytes for each are not to be had", done.stderr), done.stderr
    assert not (tmp_path / "machine.json").exists()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has no barrier to measure")
def test_a_barrier_that_no_machine_has_is_not_used(rnncc, tmp_path):
    """As where other programs have one of the CPUs at any time; here by a clock that is too fast."""
    path, usual = tmp_path / "machine.json", re.compile(r"barrier_ns\D+([\d.]+)")
    environment = {**os.environ, "LD_PRELOAD": preloaded("fast_clock", tmp_path), "RNNCC_CPU_WITHOUT": "avx2"}
    done = rnncc("targets", "--calibrate", "--budget=0.01", "-o", path, env=environment)
    assert re.search("warning: calibrate: no two threads ran at once: a barrier of [0-9]+ us is not used", done.stderr), done
    assert float(usual.search(path.read_text())[1]) < 1000


@pytest.mark.parametrize("words", [["inspect", "--calibrate"], ["--calibrate"], ["targets", "--budget=1"]])
def test_calibrate_and_its_budget_go_with_targets(words, rnncc, model):
    done = rnncc(*words, *([] if words[0] == "targets" else [model]))
    assert done.returncode == 2 and "goes with" in done.stderr
