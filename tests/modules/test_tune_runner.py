# SPDX-License-Identifier: MIT
"""`rnncc tune --runner`: another program measures modules that are built here. It may run on another machine, of another
kind, without a compiler: here on an emulated one."""
import json
import os
import shlex
import signal
import subprocess
import time

import numpy
import pytest

from support.model_builder import Model


OPTIONS = ("--threads=1", "--layout-search=none")  # else the layouts would depend on times


def convolution():
    rng, model = numpy.random.default_rng(1), Model()
    weights = rng.uniform(-1, 1, (32, 16, 3, 3)).astype(numpy.float32)
    model.output(model.node("Conv", [model.input("x", "f32", [1, 16, 12, 12]), model.constant(weights)], ["y"],
                            pads=[1, 1, 1, 1]))
    return model


def read(records):
    return [{"status": "best"} | json.loads(line) for line in records.read_text().splitlines()]


def tune(rnncc, model, records, runner, *options):
    return rnncc("tune", model, "-o", records, f"--runner={runner}", "--trials=2", "--budget=99999", *OPTIONS,
                 *options, timeout=300)


@pytest.fixture(params=["native", "aarch64-linux-gnu"])
def device(request, rnnrun):
    """(a target, the command that runs `rnnrun measure` on it)"""
    if request.param == "native":
        return request.param, f"{shlex.quote(str(rnnrun.path.resolve()))} measure"
    emulated = request.getfixturevalue("aarch64_rnnrun")
    return request.param, f"{shlex.join(map(str, emulated.prefix))} measure"


def test_a_schedule_that_a_runner_measured_is_compiled(rnncc, device, tmp_path):
    target, runner = device
    model, records = convolution().write(tmp_path), tmp_path / "records.jsonl"
    done = tune(rnncc, model, records, f"echo $$ >> {tmp_path}/started; {runner}", f"--target={target}")
    assert done.returncode == 0, done.stderr
    lines = read(records)
    trials, best = [line for line in lines if line["status"] == "ok"], lines[-1]
    assert len(trials) == 2 and best["status"] == "best" and all(line["median_us"] > 0 for line in lines)
    assert len((tmp_path / "started").read_text().split()) >= 2  # one for each measurement

    def kernels(schedule):
        """As for a record that a person has edited."""
        chosen, record = tmp_path / "chosen.jsonl", best | {"schedule": schedule}
        del record["sum"], record["kernels"]
        chosen.write_text(json.dumps(record) + "\n")
        told = rnncc("inspect", model, *OPTIONS, f"--target={target}", f"--schedules={chosen}")
        assert (told.returncode, told.stderr) == (0, "")
        return told.stdout

    assert kernels(trials[0]["schedule"]) != kernels(trials[1]["schedule"])


def test_an_interrupt_ends_the_runner_too(rnncc, tmp_path):
    temporary, started = tmp_path / "temporary", tmp_path / "started"
    temporary.mkdir()
    tuning = subprocess.Popen([*rnncc.prefix, "tune", convolution().write(tmp_path), "-o", tmp_path / "records.jsonl",
                               f"--runner=echo $$ > {started}; exec sleep 100"],
                              env=os.environ | {"TMPDIR": str(temporary)})
    while not started.exists() or not started.read_text().endswith("\n"):
        assert tuning.poll() is None
        time.sleep(0.05)
    tuning.send_signal(signal.SIGINT)
    assert tuning.wait(timeout=60) == -signal.SIGINT
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    assert list(temporary.iterdir()) == []


def test_recurrent_layers_are_measured_here_only(rnncc, tmp_path):
    done = rnncc("tune", "--only=rnn", convolution().write(tmp_path), "--runner=true", cwd=tmp_path)
    assert done.returncode == 2 and "--runner" in done.stderr


@pytest.mark.parametrize("runner, told", [("true", "cannot measure: "), ("echo no; exit 3", "cannot measure: ")])
def test_a_runner_that_measures_nothing_ends_the_tuning(rnncc, tmp_path, runner, told):
    records = tmp_path / "records.jsonl"
    done = tune(rnncc, convolution().write(tmp_path), records, runner)
    assert done.returncode == 5 and done.stderr.count(told) == 1 and not records.exists(), done.stderr


def test_threads_that_would_take_turns_are_not_measured(rnncc, rnnrun, tmp_path):
    cpu, records = min(os.sched_getaffinity(0)), tmp_path / "records.jsonl"
    done = tune(rnncc, convolution().write(tmp_path), records, f"taskset -c {cpu} {rnnrun.path.resolve()} measure",
                "--threads=2")
    assert done.returncode == 2 and "--threads=1" in done.stderr and not records.exists()
