# SPDX-License-Identifier: MIT
"""`rnncc tune` of convolutions: trials are recorded one by one, recorded ones are not measured again, schedules that fail
are never chosen, and the winners are used when compiling. Times are not judged."""
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap

import numpy
import pytest

from conftest import build_directory
from support.bodies import Body
from support.convolutional import convolution_in, signs, whole
from support.model_builder import Model
from support.module import Module

TRIALS = 3
PROGRESS = r"\[Task (\d)/(\d)\] Current/Best: [\d.]+/[\d.]+ GFLOPS \| Progress: \((\d+)/(\d+)\) \| [\d.]+ s"


def small_network():
    """Two workloads, the first of them twice: one with a residual, which Winograd can run too, and a 1x1."""
    rng, model = numpy.random.default_rng(1), Model()
    x = y = model.input("x", "f32", [1, 20, 9, 7])
    for _ in range(2):
        weights, bias = model.constant(signs(rng, 20, 20, 3, 3)), model.constant(whole(rng, 20))
        y = model.node("Relu", [model.node("Add", [model.node("Conv", [y, weights, bias], pads=[1] * 4), x])])
    model.output(model.node("Conv", [y, model.constant(signs(rng, 40, 20, 1, 1))]))
    return model


def records_of(path, *statuses):
    """The records of these statuses, or all, as a person would edit them: without the checksum."""
    lines = [{"status": "best"} | json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.pop("sum", None)
    return [line for line in lines if not statuses or line["status"] in statuses]


def forms_of(path):
    """The trials as (workload, schedule)."""
    return [(line["workload"], line["schedule"]) for line in records_of(path) if line["status"] != "best"]


def arguments(model, records, *options):
    return ["tune", model, "-o", records, "--budget=99999", f"--trials={TRIALS}", "--threads=1", *options]


def tune(rnncc, model, records, *options, **how):
    done = rnncc(*arguments(model, records, *options), timeout=300, **how)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def tuned(rnncc, tmp_path_factory):
    """(model's path, records' path, the CompletedProcess) of one tuning."""
    folder = tmp_path_factory.mktemp("tuned")
    model, records = small_network().write(folder), folder / "records.jsonl"
    return model, records, tune(rnncc, model, records)


def test_each_trial_is_reported_and_recorded_and_then_the_winner(tuned):
    _, path, done = tuned
    told = [line for line in done.stderr.splitlines() if line.startswith("[")]
    expected = [(str(task), "2", str(n), str(TRIALS)) for task in (1, 2) for n in range(1, TRIALS + 1)]
    assert [re.fullmatch(PROGRESS, line).groups() for line in told] == expected
    assert [line["status"] for line in records_of(path)] == 2 * (["ok"] * TRIALS + ["best"])
    for best in records_of(path, "best"):
        trials = {line["schedule"]: line for line in records_of(path, "ok") if line["workload"] == best["workload"]}
        assert len(trials) == TRIALS and 0 < best["median_us"] <= trials[best["schedule"]]["median_us"]
        assert f"{best['workload']} " in done.stdout and best["schedule"] in done.stdout
    assert "2 convolutions: " in done.stdout.splitlines()[-1]


def shown_on_terminal(rnncc, *words):
    """The output on a terminal that is stderr."""
    ours, its = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    running = subprocess.Popen([*rnncc.prefix, *words], stdout=subprocess.DEVNULL, stderr=its, env=plain)
    os.close(its)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:
        pass  # Linux reports so that the other end is closed
    os.close(ours)
    assert running.wait(timeout=60) == 0
    return shown.decode()


def test_on_a_terminal_a_task_is_reported_in_one_line(rnncc, tuned, tmp_path):
    """A task whose trials are all recorded has no line."""
    records = tmp_path / "records.jsonl"
    first = [line for line in records_of(tuned[1], "ok")][:TRIALS]
    records.write_text("".join(json.dumps(line) + "\n" for line in first))
    shown = shown_on_terminal(rnncc, *arguments(tuned[0], records)).replace("\r\n", "\n")
    assert re.fullmatch(rf"(\r{PROGRESS}\x1b\[K){{{TRIALS}}}\n(.*idle machine\n)?", shown), shown


def test_every_algorithm_has_a_trial(tuned):
    _, path, _ = tuned
    first = records_of(path)[0]["workload"]
    assert {form.split(",")[0] for workload, form in forms_of(path) if workload == first} >= {"winograd", "direct"}


def test_tuned_and_untuned_modules_compute_the_same(compile, tuned):
    """Integers: direct sums are exact, and Winograd's bound is 1e-4 of the largest value."""
    model, path, _ = tuned
    x = whole(numpy.random.default_rng(2), 1, 20, 9, 7)
    results = []
    for schedules in ("none", path):
        with Module(compile(model, "--threads=1", f"--schedules={schedules}")) as module, module.context() as context:
            results.append(*context.run({"x": x}).values())
    numpy.testing.assert_allclose(*results, rtol=0, atol=1e-4 * numpy.abs(results[0]).max())


@pytest.mark.parametrize("form, kernel", [("direct,oc=2,px=7,unroll=1,pass=0,groups=0,tiles=0", "direct_oc2px7u1_3x3"),
                                          ("direct,oc=1,px=4,unroll=1,pass=0,groups=0,tiles=0", "direct_oc1px4u1_3x3")])
def test_only_winners_are_used(rnncc, tuned, tmp_path, form, kernel):
    model, path, _ = tuned
    records = tmp_path / "records.jsonl"
    best = records_of(path, "best")[0] | {"schedule": form}
    del best["kernels"]  # they belong to another schedule
    for status in ("best", "ok", "crashed"):
        records.write_text(json.dumps(best | {"status": status}) + "\n")
        done = rnncc("inspect", model, "--threads=1", f"--schedules={records}", "--layout-search=none")
        assert done.returncode == 0 and (kernel in done.stdout) == (status == "best"), status


def test_recorded_tasks_are_not_tuned_again(rnncc, tuned, tmp_path):
    model, path, _ = tuned
    records = tmp_path / "records.jsonl"
    records.write_text(path.read_text())
    done = tune(rnncc, model, records)
    assert "2 of 2 tasks are done" in done.stderr and "Progress" not in done.stderr
    assert records.read_text() == path.read_text()


def test_trials_without_a_winner_are_taken_as_they_stand(rnncc, tuned, tmp_path):
    """Also if there are more than are requested now; the fastest wins, which is not the predicted one."""
    model, path, _ = tuned
    records = tmp_path / "records.jsonl"
    predicted, second, *others = records_of(path, "ok")
    fastest = second | {"median_us": 0.001}
    records.write_text("".join(json.dumps(line) + "\n" for line in [predicted, fastest, *others]))
    done = tune(rnncc, model, records, "--trials=1")
    assert "Progress" not in done.stderr and forms_of(records) == forms_of(path)
    chosen = {line["workload"]: line["schedule"] for line in records_of(records, "best")}
    assert len(chosen) == 2 and chosen[fastest["workload"]] == fastest["schedule"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_trials_before_an_interrupt_are_kept(rnncc, tuned, tmp_path, number):
    """A second call tries the rest, and nothing twice."""
    model, path, _ = tuned
    records, temporary = tmp_path / "records.jsonl", tmp_path / "temporary"
    temporary.mkdir()
    tuning = subprocess.Popen([*rnncc.prefix, *arguments(model, records)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)})
    told = [tuning.stderr.readline(), tuning.stderr.readline()]
    assert all(re.match(PROGRESS, line) for line in told)
    tuning.send_signal(number)
    told += [line for line in tuning.communicate(timeout=120)[1].splitlines() if re.match(PROGRESS, line)]
    assert tuning.returncode == -number
    before = forms_of(records)
    assert len(told) <= len(before) <= len(told) + 1 < 2 * TRIALS
    assert number == signal.SIGKILL or os.listdir(temporary) == []
    tune(rnncc, model, records, env={**os.environ, "TMPDIR": str(temporary)})
    assert os.listdir(temporary) == []  # not even what the killed process has left
    after = forms_of(records)
    assert after[:len(before)] == before and len(set(after)) == len(after) == 2 * TRIALS
    assert len(records_of(records, "best")) == 2


def test_all_schedules_are_tried_on_request(rnncc, tmp_path):
    model = Model()
    weights = model.constant(signs(numpy.random.default_rng(1), 16, 1, 3, 3))
    model.output(model.node("Conv", [model.input("x", "f32", [1, 16, 9, 40]), weights], group=16))
    path, records = model.write(tmp_path), tmp_path / "records.jsonl"
    listed = rnncc("inspect", path, "--explain=conv", "-v", "--threads=1", "--schedules=none").stdout
    done = rnncc("tune", path, "-o", records, "--trials=all", "--budget=99999", "--threads=1",
                 timeout=300)
    assert done.returncode == 0, done.stderr
    forms = [form for _, form in forms_of(records)]
    assert sorted(forms) == sorted(re.findall(r"^\*? +[\d.]+ +(\S+)$", listed, re.M)) and len(forms) > 5


def test_convolutions_in_branches_are_tuned_too(rnncc, tmp_path):
    rng, model = numpy.random.default_rng(1), Model()
    c, x = model.input("c", "bool", []), model.input("x", "f32", [1, 32, 9, 7])
    bodies = [Body(model) for _ in range(2)]
    for body, k in zip(bodies, (1, 3)):
        weights = body.constant(signs(rng, 32, 32, k, k))
        body.output(body.node("Conv", [x, weights], pads=[k // 2] * 4))
    model.output(model.node("If", [c], then_branch=bodies[0], else_branch=bodies[1]))
    path, records, layout = model.write(tmp_path), tmp_path / "records.jsonl", "--layout-search=greedy"
    tune(rnncc, path, records, "--trials=1", layout)
    best = records_of(records, "best")
    assert len({convolution_in(line["workload"]) for line in best}) == 2
    other = next(line for line in best if "_h9k3" in line["workload"]) | {
        "schedule": "direct,oc=1,px=4,unroll=1,pass=0,groups=0,tiles=0"}
    del other["kernels"]
    records.write_text(json.dumps(other) + "\n")
    done = rnncc("inspect", path, "--threads=1", f"--schedules={records}", layout)
    assert (done.returncode, done.stderr) == (0, "") and "direct_oc1px4u1_3x3" in done.stdout


def test_shards_are_apart_and_together_all(rnncc, tuned, tmp_path):
    model, path, _ = tuned
    whole_, shards = {line["workload"] for line in records_of(path)}, []
    for k in (1, 2, 3):
        records = tmp_path / f"{k}.jsonl"
        tune(rnncc, model, records, f"--shard={k}/3", "--trials=1")
        shards += {line["workload"] for line in records_of(records)} if records.exists() else set()
    assert sorted(shards) == sorted(whole_)


# ---- a runner that damages schedules of one algorithm ----

RUNNER = """
    import os, re, signal, subprocess, sys
    request = sys.stdin.buffer.read()
    harmed = re.search(rb"winograd\\dx\\d_", request)  # the kernel's name
    answer = subprocess.run([{rnnrun!r}, "measure"], input=request, capture_output=True, check=True).stdout
    if harmed:
        {harm}
    sys.stdout.buffer.write(answer)
"""
ENDED = ("answer = b'{{\"format\": \"rnncc-measurement\", \"version\": 1, \"status\": \"{}\", \"message\": \"\", "
         "\"outputs\": []}}\\nrnncc-measurement-end\\n'")
HARM = {
    "crashed": ENDED.format("crashed"),
    "hung": ENDED.format("hung"),
    # the last pixel of the last channel
    "wrong": "end = answer.rindex(b'rnncc-'); answer = answer[:end - 1] + b'\\xc7' + answer[end:]",
}


@pytest.mark.parametrize("status", HARM)
def test_failed_trials_are_recorded_and_never_chosen(rnncc, tuned, tmp_path, status):
    model, path, _ = tuned
    script, records = tmp_path / "runner.py", tmp_path / "records.jsonl"
    rnnrun = str(build_directory().resolve() / "tools" / "rnnrun")
    script.write_text(textwrap.dedent(RUNNER).format(rnnrun=rnnrun, harm=HARM[status]))
    done = tune(rnncc, model, records, "--shard=1/2", f"--runner={shlex.join([sys.executable, str(script)])}")
    kinds = {line["schedule"].split(",")[0]: line["status"] for line in records_of(records) if line["status"] != "best"}
    assert kinds == {"winograd": status, "direct": "ok"}
    best, = records_of(records, "best")
    assert best["schedule"].startswith("direct,") and f": {status}: " in done.stderr


def test_a_runner_that_does_not_work_ends_the_tuning(rnncc, tuned, tmp_path):
    model, records = tuned[0], tmp_path / "records.jsonl"
    done = rnncc(*arguments(model, records, "--runner=echo no such board >&2; exit 1"), timeout=120)
    assert done.returncode == 5 and "no such board" in done.stderr
    assert not records.exists()


def test_a_module_that_cannot_be_built_is_no_result(rnncc, tuned, tmp_path):
    """As on a full disk."""
    clang, records = tmp_path / "clang", tmp_path / "records.jsonl"
    clang.write_text('#!/bin/sh\ncase "$*" in *" -c runtime.c "*) exec clang-19 "$@" ;; esac\n'
                     "echo no space is left >&2; exit 1\n")
    clang.chmod(0o755)
    done = rnncc(*arguments(tuned[0], records), env={**os.environ, "RNNCC_CLANG": str(clang)}, timeout=300)
    assert done.returncode == 5 and "no trial could be built of 2 of 2 tasks" in done.stderr, done.stderr
    assert not records.exists() and "no space is left" in done.stderr


@pytest.mark.parametrize("content", ['{"format": "rnncc"}', "hello\nworld\n", "\x7fELF"])
def test_a_file_of_something_else_is_not_written_to(rnncc, tuned, tmp_path, content):
    output = tmp_path / "output"
    output.write_text(content)
    done = rnncc(*arguments(tuned[0], output))
    assert done.returncode == 2 and "holds something else" in done.stderr and output.read_text() == content


def test_the_model_is_not_written_to(rnncc, tuned, tmp_path):
    before = tuned[0].read_bytes()
    done = rnncc(*arguments(tuned[0], tuned[0]))
    assert done.returncode == 2 and tuned[0].read_bytes() == before


@pytest.mark.parametrize("content", ["", "\n", '{"form', '{"format":"rnncc-schedule","vers'])
def test_tuning_continues_after_a_killed_writer(rnncc, tuned, tmp_path, content):
    records = tmp_path / "records.jsonl"
    records.write_text(content)
    tune(rnncc, tuned[0], records, "--shard=1/2", "--trials=1")
    assert len(records.read_text().splitlines()) == 2 + bool(content)


def test_the_budget_ends_a_tuning(rnncc, tuned, tmp_path):
    """One round, of two trials a CPU, of one task: what has begun is finished."""
    records = tmp_path / "records.jsonl"
    done = rnncc("tune", tuned[0], "-o", records, "--budget=0.01", "--trials=all", "--threads=1", timeout=300)
    assert done.returncode == 0 and "the budget is spent: 1 of 2 tasks were tuned" in done.stderr
    assert len(forms_of(records)) == 2 * len(os.sched_getaffinity(0))


@pytest.mark.parametrize("options, said", [
    (["tune", "--only=pool"], "--only"),
    (["tune", "--trials=0"], '"0"'),
    (["tune", "--trials=many"], '"many"'),
    (["tune", "--shard=3/2"], '"3/2"'),
    (["tune", "--shard=0/2"], '"0/2"'),
    (["tune", "--shard=1"], '"1"'),
    (["tune", "--shard=1/2x"], '"1/2x"'),
    (["tune", "--conv=direct"], "--conv"),
    (["tune", "--only=rnn", "--runner=rnnrun measure"], "--runner"),
    (["--trials=all"], "--trials"),
    (["--shard=1/2"], "--shard"),
])
def test_usage_errors_are_reported(rnncc, tuned, tmp_path, options, said):
    done = rnncc(*options, tuned[0], cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and os.listdir(tmp_path) == []


def test_a_model_without_convolutions_has_none_to_tune(rnncc, tmp_path):
    model = Model()
    model.output(model.node("Relu", [model.input("x", "f32", [3])], ["y"]))
    for option, what in (("--only=conv", "no convolution"), ("--budget=1", "neither")):
        done = rnncc("tune", model.write(tmp_path), option, cwd=tmp_path)
        assert done.returncode == 2 and what in done.stderr
