# SPDX-License-Identifier: MIT
"""`rnncc schedules`: merging, checking and showing files of records; and which files a compilation uses."""
import fcntl
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from conftest import ROOT, build_directory
from support.convolutional import RandomNetwork

import numpy

WITHOUT_LAYERS = ROOT / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A model, and by seed a file of records for all of its convolutions."""
    folder = tmp_path_factory.mktemp("schedules")
    network = RandomNetwork(numpy.random.default_rng(5), batch=1).grow(8)
    model = network.finish().write(folder)

    def records(seed):
        path = folder / f"records{seed}.jsonl"
        path.unlink(missing_ok=True)
        subprocess.run([build_directory() / "tests" / "support" / "random_records", model, path, "x86-64-v4", "2",
                        str(seed)], check=True, capture_output=True)
        return path

    return model, records


PLAN = ["--layout-search=greedy", "--target=x86-64-v4", "--threads=2"]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def work_of(record):
    return tuple(record[key] for key in ("family", "target", "cores", "l1", "l2", "l3", "workload"))


def write(path, records):
    """As a person would write them: without checksums."""
    path.write_text("".join(json.dumps({k: v for k, v in record.items() if k != "sum"}) + "\n" for record in records))
    return path


def merged(rnncc, *files, into):
    done = rnncc("schedules", "merge", *files, "-o", into)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return lines_of(into)


def test_a_merged_file_has_the_last_record_of_each_work_in_order(rnncc, recorded, tmp_path):
    _, records = recorded
    first, second = records(1), records(2)
    merge = merged(rnncc, first, second, into=tmp_path / "m.jsonl")
    wanted = {work_of(record): record for record in lines_of(first) + lines_of(second)}
    assert [work_of(record) for record in merge] == sorted(wanted)
    assert all(record == wanted[work_of(record)] for record in merge)


def test_merging_is_stable_and_joining_files_is_merging(rnncc, recorded, tmp_path):
    _, records = recorded
    once, joined = tmp_path / "once.jsonl", tmp_path / "joined.jsonl"
    merged(rnncc, records(1), records(2), into=once)
    before = once.read_bytes()
    merged(rnncc, once, into=once)
    assert once.read_bytes() == before
    joined.write_bytes(records(1).read_bytes() + records(2).read_bytes())
    merged(rnncc, joined, into=joined)
    assert joined.read_bytes() == before


def test_what_is_appended_while_a_merge_waits_is_merged(rnncc, recorded, tmp_path):
    """The writer holds the lock until its record is there."""
    _, records = recorded
    first, *others = lines_of(records(1))
    into = write(tmp_path / "m.jsonl", [first])
    with open(into, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen([rnncc.path, "schedules", "merge", into, "-o", into], stderr=subprocess.PIPE, text=True) as merge:
            waits = re.compile(rf"-> FLOCK .*:{into.stat().st_ino} ")
            while not waits.search(Path("/proc/locks").read_text()):
                assert merge.poll() is None
                time.sleep(0.01)
            file.write("".join(json.dumps(record) + "\n" for record in others))
            file.close()
            assert (merge.wait(timeout=60), merge.stderr.read()) == (0, "")
    assert {work_of(record) for record in lines_of(into)} == {work_of(record) for record in [first, *others]}


def test_a_merge_replaces_records_alone(rnncc, recorded, tmp_path):
    model, records = recorded
    (tmp_path / "model.json").write_bytes(model.read_bytes())
    done = rnncc("schedules", "merge", records(1), "-o", tmp_path / "model.json")
    assert done.returncode == 2 and "it holds something else" in done.stderr
    assert (tmp_path / "model.json").read_bytes() == model.read_bytes()


def test_trials_are_merged_away(rnncc, recorded, tmp_path):
    _, records = recorded
    record, *_ = lines_of(records(1))
    trial, old = record | {"status": "crashed"}, record | {"kernels": "0" * 16}
    merge = merged(rnncc, write(tmp_path / "a.jsonl", [old, record, trial]), into=tmp_path / "m.jsonl")
    assert merge == [record]
    assert merged(rnncc, write(tmp_path / "b.jsonl", [trial]), into=tmp_path / "m.jsonl") == []


def test_the_records_of_rnncc_are_complete_and_merged(rnncc, root, tmp_path):
    """unit/shipped_records_test.c shows that they belong to the current kernels."""
    paths = list((root / "schedules").glob("*.jsonl"))
    assert paths
    for path in paths:
        done = rnncc("schedules", "check", path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert merged(rnncc, path, into=tmp_path / "m.jsonl") == lines_of(path)
        assert {record["target"] for record in lines_of(path)} == {path.stem}


def test_a_file_as_it_was_written_is_checked_without_an_error(rnncc, recorded, tmp_path):
    _, records = recorded
    path = records(1)
    count = len(lines_of(path))
    done = rnncc("schedules", "check", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: {count} best, 0 of trials\n"
    moved = [record | {"target": "aarch64-linux-gnu+dotprod"} for record in lines_of(path)]
    assert rnncc("schedules", "check", write(tmp_path / "moved.jsonl", moved)).returncode == 0
    trials = [record | {"status": "hung"} for record in lines_of(path)]
    done = rnncc("schedules", "check", write(tmp_path / "trials.jsonl", trials))
    assert f"0 best, {count} of trials" in done.stdout and done.returncode == 0


@pytest.mark.parametrize("fields, said", [
    ({"family": "pool"}, 'the family "pool" is not known'),
    ({"target": "z80"}, 'the target "z80" is not known'),
    ({"target": "native"}, 'the target "native" is not known'),
    ({"target": "aarch64-linux-gnu+mmx"}, 'the target "aarch64-linux-gnu+mmx" is not known'),
    ({"schedule": "straight"}, "expected an algorithm and its KEY=N, found `straight`"),
    ({"schedule": "direct,oc=2"}, 'the schedule "direct,oc=2" is none: a knob is missing'),
    ({"schedule": "direct,oc=2,xp=3"}, "`xp=3`"),
    ({"family": "recurrent"}, "is none: expected KEY=N of a recurrent layer, found `"),
    ({"format": "rnncc"}, 'expected the format "rnncc-schedule", found "rnncc"'),
    ({"status": "good"}, 'expected a status of best, ok, crashed, hung or wrong, found "good"'),
    ({"sum": "00000000"}, "its checksum does not match"),
    ({"cores": 0}, "cores: expected 1 to"),
    ({"median_us": -1}, "expected a median_us of at least 0, found -1"),
    ({"version": 2}, "version: expected 1 to 1, found 2"),
    ({"color": "red"}, "color"),
    ({"workload": "a\nb"}, 'workload: expected printable ASCII without quotes and backslashes, found "a'),
])
def test_each_line_that_is_not_a_record_is_named_with_the_reason(rnncc, recorded, tmp_path, fields, said):
    _, records = recorded
    record, *_ = lines_of(records(1))
    bad = {k: v for k, v in record.items() if k != "sum"} | fields
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in [record, bad, record]) + "\nnonsense\n")
    done = rnncc("schedules", "check", path)
    first, second = done.stderr.splitlines()
    assert done.returncode == 2
    assert first.startswith(f"{path}: line 2: error: ") and said in first
    assert second.startswith(f"{path}: line 4: error: ")
    assert f"{path}: 2 best" in done.stdout


def test_records_are_shown_with_time_work_and_schedule(rnncc, recorded, tmp_path):
    _, records = recorded
    listed = lines_of(records(1))
    done = rnncc("schedules", "show", records(1))
    head, *rows = done.stdout.splitlines()
    assert head == "conv, x86-64-v4, 2 cores, caches of 32, 1024 and 32768 KiB"
    assert sorted(row.split()[2:] for row in rows) == sorted([r["workload"], r["schedule"]] for r in listed)
    trial = listed[0] | {"status": "wrong"}
    done = rnncc("schedules", "show", write(tmp_path / "t.jsonl", [trial]))
    assert re.search(r"  wrong$", done.stdout, re.M)


@pytest.mark.parametrize("words, said", [
    ([], "merge, check or show"), (["renew", "a"], "merge, check or show"), (["check"], "files"), (["merge", "a"], "-o"),
    (["show", "a", "-o", "b"], "-o"), (["check", "absent"], "absent"),
])
def test_usage_errors_are_reported(rnncc, tmp_path, words, said):
    done = rnncc("schedules", *words, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not os.listdir(tmp_path)


# ---- which files a compilation uses ----


@pytest.fixture
def own_data(root, tmp_path, monkeypatch):
    """A data directory for this test, which fills its schedules/."""
    for folder in ("runtime", "templates"):
        (tmp_path / folder).symlink_to(Path(os.environ.get("RNNCC_DATA", root)) / folder)
    (tmp_path / "schedules").mkdir()
    monkeypatch.setenv("RNNCC_DATA", str(tmp_path))
    return tmp_path / "schedules" / "x86-64-v4.jsonl"


def kernels(rnncc, model, *options):
    done = rnncc("inspect", model, *PLAN, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split()[3] for line in done.stdout.splitlines() if " Conv " in line]


def test_own_records_are_used_those_given_before_them_and_none_on_demand(rnncc, recorded, own_data):
    model, records = recorded
    predicted = kernels(rnncc, model)
    own_data.write_bytes(records(1).read_bytes())
    own, given = kernels(rnncc, model), kernels(rnncc, model, f"--schedules={records(2)}")
    assert own != predicted and given not in (own, predicted)
    assert kernels(rnncc, model, "--schedules=none") == predicted
    assert kernels(rnncc, model, f"--schedules={write(own_data.parent / 'one.jsonl', [])}") == own
    first = write(own_data.parent / "one.jsonl", lines_of(records(2))[:1])
    assert sum(a != b for a, b in zip(own, kernels(rnncc, model, f"--schedules={first}"))) == 1


def build_record(rnncc, model, folder, *options):
    """As it is in the module, which need not run here."""
    done = rnncc(model, "-o", folder / "m.so", *PLAN, *options)
    assert done.returncode == 0, done.stderr
    return re.search(rb"rnncc [^\0\n]*sha256[^\0\n]*", (folder / "m.so").read_bytes())[0].decode()


def test_the_build_record_has_a_digest_of_the_records(rnncc, recorded, own_data, tmp_path):
    model, records = recorded
    plain = build_record(rnncc, model, tmp_path)
    assert ", schedules " not in plain
    own_data.write_bytes(records(1).read_bytes())
    one = build_record(rnncc, model, tmp_path)
    two = build_record(rnncc, model, tmp_path, f"--schedules={records(2)}")
    assert all(re.fullmatch(re.escape(plain) + ", schedules [0-9a-f]{16}", text) for text in (one, two)) and one != two
    assert ", schedules " not in build_record(rnncc, WITHOUT_LAYERS, tmp_path), "none was looked for"
