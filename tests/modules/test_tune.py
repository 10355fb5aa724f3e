# SPDX-License-Identifier: MIT
"""`rnncc tune --only=rnn`: it measures and records, and the records are used when compiling. Times are not judged."""
import json
import os
import re
import signal
import subprocess

import numpy
import pytest

from support import machine
from support.model_builder import Model
from support.module import Module

OTHER_TARGET = "x86-64" if machine.has_isa("avx2") else "x86-64-v3"  # than the one that is native


def small_lstm(T=5, H=16, lengths=False):
    """One panel of units and one sample: there is nothing to share, so only two variants are worth a trial."""
    rng, model = numpy.random.default_rng(1), Model()
    weights = [rng.uniform(-1, 1, shape).astype(numpy.float32) for shape in ((1, 4 * H, 8), (1, 4 * H, H))]
    inputs = [model.input("x", "f32", [T, 1, 8]), *map(model.constant, weights)]
    if lengths:
        inputs += [None, model.input("lengths", "i32", [1])]
    model.output(model.node("LSTM", inputs, ["y"], hidden_size=H))
    return model


# A compiler that keeps the files that it compiles.
KEEPING_CLANG = """#!/bin/sh
case "$*" in *" -c network.c "*) cat network.c >> {kept} ;; esac
exec clang-19 "$@"
"""


@pytest.fixture(scope="module")
def tuned(rnncc, tmp_path_factory):
    """(model's path, records' path, the CompletedProcess) of one tuning; beside the records stands `compiled.c`."""
    folder = tmp_path_factory.mktemp("tuned")
    model, records, temporary = small_lstm().write(folder), folder / "records.jsonl", folder / "temporary"
    temporary.mkdir()
    (folder / "clang").write_text(KEEPING_CLANG.format(kept=folder / "compiled.c"))
    (folder / "clang").chmod(0o755)
    done = rnncc("tune", "--only=rnn", model, "-o", records, "--budget=2s", "--threads=1",
                 env={**os.environ, "TMPDIR": str(temporary), "RNNCC_CLANG": str(folder / "clang")}, timeout=300)
    assert done.returncode == 0, done.stderr
    assert os.listdir(temporary) == []
    return model, records, done


def test_progress_is_reported_line_by_line_and_the_winner_at_the_end(tuned):
    _, _, done = tuned
    lines = done.stderr.splitlines()
    if "tune on an idle machine" in lines[-1]:  # where other tests run beside this one
        lines.pop()
    assert len(lines) == 2
    for number, line in enumerate(lines, 1):
        assert re.fullmatch(rf"\[Task 1/1\] Current/Best: [\d.]+/[\d.]+ us \| Progress: \({number}/2\) \| [\d.]+ s",
                            line), line
    assert re.fullmatch(r"lstm_T5B1of1i8h16 +[\d.]+ us +input=\S+( +\(as predicted\))?\n", done.stdout)


def test_trials_are_different_variants(tuned):
    compiled = (tuned[1].parent / "compiled.c").read_text()
    assert "lstm_i8h16_r1_p1:" in compiled and "lstm_i8h16_r1_p1_step:" in compiled


def test_recorded_tasks_are_not_tuned_again(rnncc, tuned, tmp_path):
    records = tmp_path / "records.jsonl"
    records.write_text(tuned[1].read_text())
    done = rnncc("tune", "--only=rnn", tuned[0], "-o", records, "--budget=1", "--threads=1", timeout=300)
    assert done.returncode == 0 and "1 of 1 tasks are done" in done.stderr and "Progress" not in done.stderr
    assert records.read_text() == tuned[1].read_text()


def test_a_record_holds_the_whole_key(tuned):
    _, path, _ = tuned
    record, = map(json.loads, path.read_text().splitlines())
    assert record.keys() == {"format", "version", "family", "workload", "target", "cores", "l1", "l2", "l3", "kernels",
                             "schedule", "median_us", "status", "sum"}
    assert (record["format"], record["version"], record["family"]) == ("rnncc-schedule", 1, "recurrent")
    assert (record["workload"], record["cores"]) == ("lstm_T5B1of1i8h16", 1)
    assert re.fullmatch("[0-9a-f]{16}", record["kernels"]) and record["median_us"] > 0


def inspected(rnncc, model, *options):
    done = rnncc("inspect", model, "--threads=1", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def changed(path, tmp_path, **fields):
    """As a person would edit it: without the checksum, and without kernels unless they are given."""
    record = json.loads(path.read_text().splitlines()[0])
    del record["sum"], record["kernels"]
    record |= fields
    (tmp_path / "changed.jsonl").write_text(json.dumps(record) + "\n")
    return f"--schedules={tmp_path / 'changed.jsonl'}"


@pytest.mark.parametrize("schedule, kernel", [("input=ahead,workers=1", "lstm_i8h16_r1_p1 "),
                                              ("input=step,workers=1", "lstm_i8h16_r1_p1_step ")])
def test_a_recorded_schedule_is_compiled(rnncc, tuned, tmp_path, schedule, kernel):
    model, path, _ = tuned
    text, _ = inspected(rnncc, model, changed(path, tmp_path, schedule=schedule))
    assert kernel in text
    explained, _ = inspected(rnncc, model, "--explain=rnn", changed(path, tmp_path, schedule=schedule))
    assert f"measured: {schedule}" in explained


@pytest.mark.parametrize("field, value", [("workload", "lstm_T6B1of1i8h16"), ("target", OTHER_TARGET), ("cores", 2),
                                          ("l2", 12345), ("family", "conv"), ("status", "wrong")])
def test_a_record_that_does_not_match_is_ignored_silently(rnncc, tuned, tmp_path, field, value):
    model, path, _ = tuned
    plain, _ = inspected(rnncc, model)
    other = "input=ahead,workers=1" if "_step" in plain else "input=step,workers=1"
    used, _ = inspected(rnncc, model, changed(path, tmp_path, schedule=other))
    text, messages = inspected(rnncc, model, changed(path, tmp_path, schedule=other, **{field: value}))
    assert (text, messages) == (plain, "") and used != plain


def test_a_record_of_other_kernels_is_ignored_with_a_warning(rnncc, tuned, tmp_path):
    model, path, _ = tuned
    text, messages = inspected(rnncc, model, changed(path, tmp_path, kernels="0" * 16))
    assert text == inspected(rnncc, model)[0] and messages.count("warning") == 1
    assert "changed.jsonl: warning: the record of lstm_T5B1of1i8h16 is of another version of its kernels" in messages


def test_a_changed_record_is_skipped(rnncc, tuned, tmp_path):
    model, path, _ = tuned
    (tmp_path / "other.jsonl").write_text(path.read_text().replace("workers=1", "workers=2"))
    text, messages = inspected(rnncc, model, f"--schedules={tmp_path / 'other.jsonl'}")
    assert text == inspected(rnncc, model)[0] and messages.count("warning") == 1 and "sum" in messages


def test_an_unknown_schedule_is_reported_and_not_used(rnncc, tuned, tmp_path):
    model, path, _ = tuned
    text, messages = inspected(rnncc, model, changed(path, tmp_path, schedule="workers=many"))
    assert text == inspected(rnncc, model)[0] and messages.count("warning") == 1 and "workers=many" in messages


def test_lines_that_are_no_records_are_skipped_with_one_warning(rnncc, tuned, tmp_path):
    model, path, _ = tuned
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("nonsense\n" + path.read_text() + '{"format": 1}\n')
    text, messages = inspected(rnncc, model, f"--schedules={mixed}")
    assert messages.count("warning") == 1 and "2 lines" in messages


def test_a_tuned_module_gives_the_same_result(compile, tuned, tmp_path):
    model, path, _ = tuned
    x, results = numpy.random.default_rng(2).uniform(-1, 1, (5, 1, 8)).astype(numpy.float32), []
    for schedule in ("input=ahead", "input=step"):
        with Module(compile(model, "--threads=1", changed(path, tmp_path, schedule=schedule))) as module, \
                module.context() as context:
            results.append(context.run({"x": x})["y"])
    # 8 + 16 products in a sum, 5 steps: 4 * ceil(log2(K * T)) * eps, on values below 1
    numpy.testing.assert_allclose(*results, rtol=0, atol=4 * 7 * numpy.finfo(numpy.float32).eps)


def test_tuning_again_appends_and_sequence_lengths_are_generated(rnncc, tuned, tmp_path):
    _, first, _ = tuned
    records = tmp_path / "records.jsonl"
    records.write_text(first.read_text())
    model = small_lstm(lengths=True).write(tmp_path)
    done = rnncc("tune", "--only=rnn", model, "-o", records, "--budget=1", "--threads=1", timeout=300)
    assert done.returncode == 0, done.stderr
    workloads = [json.loads(line)["workload"] for line in records.read_text().splitlines()]
    assert workloads == ["lstm_T5B1of1i8h16", "lstm_T5B1of1i8h16_lengths"]


@pytest.mark.parametrize("arguments, said", [
    (["tune", "--rnn=workers=1"], "--rnn"),
    (["tune", "--only=rnn", "--budget=0"], '"0"'),
    (["tune", "--only=rnn", "--budget=soon"], '"soon"'),
    (["tune", "--only=rnn", "--schedules=x"], "--schedules"),
    (["tune", "--only=rnn", "--emit=c"], "tune"),
    (["tune", "--only=rnn", "--threads=1000"], "--threads=1000"),
    (["--rnn"], "--rnn"),
    (["--budget=3"], "--budget"),
    (["--runner=true"], "--runner"),
    (["tune", "--only=rnn", "--runner="], "--runner"),
    (["--schedules=absent.jsonl"], "absent.jsonl"),
])
def test_usage_errors_are_reported_and_nothing_is_written(rnncc, tmp_path, arguments, said):
    model = small_lstm().write(tmp_path)
    before = set(os.listdir(tmp_path))
    done = rnncc(*arguments, model, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert set(os.listdir(tmp_path)) == before


def test_an_output_that_cannot_be_written_is_reported_before_anything_is_measured(rnncc, tmp_path):
    model = small_lstm().write(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    for output, code in (("/dev/full", 2), (tmp_path, 2), (tmp_path / "absent" / "records.jsonl", 5),
                         (tmp_path / "loop", 5), (tmp_path / ("n" * 300), 5)):
        done = rnncc("tune", "--only=rnn", model, "-o", output)
        assert done.returncode == code and "cannot append records" in done.stderr and "Task" not in done.stderr


def begun(rnncc, tmp_path):
    """A tuning that has told of its first trial, and the folder of its temporaries."""
    model, temporary = small_lstm().write(tmp_path), tmp_path / "temporary"
    temporary.mkdir()
    tuning = subprocess.Popen([*rnncc.prefix, "tune", "--only=rnn", model, "-o", tmp_path / "records.jsonl"],
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)})
    assert "Progress: (1/" in tuning.stderr.readline()
    return tuning, temporary


def test_an_interrupted_tuning_leaves_nothing_behind(rnncc, tmp_path):
    tuning, temporary = begun(rnncc, tmp_path)
    tuning.send_signal(signal.SIGINT)
    tuning.communicate(timeout=120)
    assert tuning.returncode == -signal.SIGINT
    assert os.listdir(temporary) == [] and not (tmp_path / "records.jsonl").exists()


def test_a_tuning_whose_reader_is_gone_leaves_nothing_behind(rnncc, tmp_path):
    """As of `rnncc tune ... 2>&1 | head -1`."""
    tuning, temporary = begun(rnncc, tmp_path)
    tuning.stderr.close()
    assert tuning.wait(timeout=120) == -signal.SIGPIPE
    assert os.listdir(temporary) == []


def test_a_target_that_cannot_run_here_cannot_be_tuned(rnncc, tmp_path):
    done = rnncc("tune", "--only=rnn", small_lstm().write(tmp_path), "--target=aarch64-linux-gnu", cwd=tmp_path)
    assert done.returncode == 3 and "cannot run" in done.stderr


def test_a_model_that_runs_on_no_made_up_input_is_not_measured(rnncc, tmp_path):
    """The layer reads every second column of x: 5, of the 16 that are usual 8."""
    rng, model = numpy.random.default_rng(1), Model()
    model.dim("T", 1, 16, 40)
    x, bounds = model.input("x", "f32", [3, 1, "T"]), [model.constant(numpy.array([n])) for n in (0, 40, 2, 2)]
    weights = [model.constant(rng.normal(size=shape).astype(numpy.float32)) for shape in ((1, 16, 5), (1, 16, 4))]
    model.output(model.node("LSTM", [model.node("Slice", [x, *bounds]), *weights], 3, hidden_size=4)[0])
    records = tmp_path / "records.jsonl"
    done = rnncc("tune", "--only=rnn", model.write(tmp_path), "-o", records, "--threads=1")
    assert done.returncode == 3 and "the model does not run on made-up inputs, so there is nothing to measure" in done.stderr
    assert not records.exists()


def test_a_model_without_recurrent_layers_has_nothing_to_tune(rnncc, tmp_path):
    model = Model()
    model.output(model.node("Relu", [model.input("x", "f32", [3])], ["y"]))
    done = rnncc("tune", "--only=rnn", model.write(tmp_path), cwd=tmp_path)
    assert done.returncode == 2 and "no recurrent layer" in done.stderr
