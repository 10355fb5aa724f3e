# SPDX-License-Identifier: MIT
"""A record is bound to the kernels that its schedule makes of the layer. In a copy of the templates, changed comments and
spacing keep all records; a changed statement makes the records stale whose kernels contain it, and no others."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest

from conftest import build_directory
from support.convolutional import whole
from support.model_builder import Model

TARGET = "x86-64-v4"
PLAN = ["--layout-search=greedy", f"--target={TARGET}", "--threads=2"]
ALGORITHMS = {"direct", "winograd", "depthwise", "plain"}


@pytest.fixture
def templates(root, tmp_path, monkeypatch):
    """A data directory for this test, without records, whose templates the test changes."""
    data = Path(os.environ.get("RNNCC_DATA", root))
    shutil.copytree(data / "templates", tmp_path / "data" / "templates")
    (tmp_path / "data" / "runtime").symlink_to(data / "runtime")
    monkeypatch.setenv("RNNCC_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "templates"


def change(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name}: `{old}` stands there {text.count(old)} times"
    path.write_text(text.replace(old, new))


# ---- convolutions ----


def network():
    """Convolutions for each algorithm, some of them in groups, and one followed by a Tanh."""
    rng, model = numpy.random.default_rng(1), Model()
    x = model.input("x", "f32", [1, 32, 20, 20])

    def conv(x, channels, kernels, window, group=1, **attributes):
        weights = model.constant(whole(rng, kernels, channels // group, window, window))
        return model.node("Conv", [x, weights], pads=[window // 2] * 4, group=group, **attributes)

    for group, window in ((1, 3), (1, 1), (2, 1), (32, 3), (1, 5)):
        x = model.node("Relu", [conv(x, 32, 32, window, group)])
    model.output(model.node("Tanh", [conv(x, 32, 48, 1)]))
    model.output(model.node("Conv", [x, model.input("w", "f32", [8, 32, 1, 1])]))
    return model


def random_records(model, path, seed):
    program = build_directory() / "tests" / "support" / "random_records"
    subprocess.run([program, model, path, TARGET, "2", str(seed)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A model and records of all of its convolutions, in which every algorithm occurs."""
    folder = tmp_path_factory.mktemp("recorded")
    model = network().write(folder)
    for seed in range(20):
        path = folder / f"{seed}.jsonl"
        random_records(model, path, seed)
        records = [json.loads(line) for line in path.read_text().splitlines()]
        if {record["schedule"].split(",")[0] for record in records} == ALGORITHMS:
            return model, path, {record["workload"]: record["schedule"] for record in records}
    pytest.fail("no seed has a schedule of every algorithm")


@pytest.fixture
def stale(rnncc, recorded, templates):
    """A function that returns the schedules of the records that are not used with the current templates, by workload."""
    model, path, schedules = recorded

    def ask():
        done = rnncc("inspect", model, "--explain=conv", f"--schedules={path}", *PLAN)
        assert done.returncode == 0, done.stderr
        used = set(re.findall(r"^(\S+): [\d.]+ MFLOP:(?:.*\n)(?:[* ] .*\n)*  chosen: \S+: measured", done.stdout, re.M))
        assert used <= schedules.keys()
        left = {workload: schedule for workload, schedule in schedules.items() if workload not in used}
        assert done.stderr.count("warning") == (1 if left else 0), done.stderr
        assert not left or "is of another version of its kernels and is not used" in done.stderr
        return left

    assert ask() == {}
    return ask


def of(recorded, *algorithms):
    return {w: schedule for w, schedule in recorded[2].items() if schedule.split(",")[0] in algorithms}


def test_comments_and_spacing_keep_all_records(templates, stale):
    for path in templates.rglob("*.[ch]"):
        text = re.sub(r";\n", ";   /* a comment;\n over two lines */ // and another one\n\n", path.read_text())
        path.write_text(re.sub(r"\n  ", "\n\t\t", text))
    assert stale() == {}


@pytest.mark.parametrize("template, algorithm, old, new", [
    ("conv_direct.c", "direct", ".pass = pass};", ".pass = pass + 0};"),
    ("conv_depthwise.c", "depthwise", "static void conv_depthwise(const Team *team,",
     "static void conv_depthwise(const Team *volatile team,"),
    ("conv_winograd.c", "winograd", "static void conv_winograd(const Team *team,",
     "static void conv_winograd(const Team *volatile team,"),
    ("conv_plain.c", "plain", "static void conv_plain(const Team *team,",
     "static void conv_plain(const Team *volatile team,"),
])
def test_a_changed_statement_makes_the_records_of_its_kernel_stale(recorded, templates, stale, template, algorithm, old,
                                                                   new):
    change(templates / template, old, new)
    assert stale() == of(recorded, algorithm) != {}


def test_a_statement_in_a_branch_belongs_to_the_kernels_with_the_branch(recorded, templates, stale):
    change(templates / "conv_direct.c", "  if (!GROUPED) return (Pass){.begin = 0, .end = c->in_blocks};\n",
           "  if (!GROUPED) return (Pass){.begin = 0 + 0, .end = c->in_blocks};\n")
    direct = of(recorded, "direct")
    assert stale() == {w: schedule for w, schedule in direct.items() if not re.match(r"n\d+c\d+k\d+g", w)} != {}


def test_the_vocabulary_belongs_to_the_kernels_that_use_it(recorded, templates, stale):
    change(templates / "winograd.h", '#include "simd/simd.h"\n', '#include "simd/simd.h"\nenum { NOBODY_USES = 1 };\n')
    change(templates / "simd" / "avx2.h", "_mm256_fmadd_ps(a, b, acc)", "_mm256_fmadd_ps(b, a, acc)")
    assert stale() == {}
    change(templates / "simd" / "math.h", "vec vtanh(vec x) {\n", "vec vtanh(vec x) {\n  ;\n")
    assert stale() == {w: schedule for w, schedule in recorded[2].items() if "Tanh" in w} != {}
    change(templates / "simd" / "avx512.h", "_mm512_fmadd_ps(a, b, acc)", "_mm512_fmadd_ps(b, a, acc)")
    assert stale() == recorded[2]


def test_numbers_of_an_epilogue_do_not_bind_a_record(rnncc, tmp_path):
    """Two models that differ in a Clip's bounds: records of one are valid for the other."""

    def clipped(most):
        rng, model = numpy.random.default_rng(2), Model()
        y = model.node("Conv", [model.input("x", "f32", [1, 16, 9, 9]), model.constant(whole(rng, 16, 16, 3, 3))])
        model.output(model.node("Clip", [y, *(model.constant(numpy.float32(bound)) for bound in (0, most))]))
        (tmp_path / str(most)).mkdir()
        return model.write(tmp_path / str(most))

    six, seven = clipped(6), clipped(7)
    random_records(six, tmp_path / "r.jsonl", 1)
    for model in (six, seven):
        done = rnncc("inspect", model, "--explain=conv", f"--schedules={tmp_path / 'r.jsonl'}", *PLAN)
        assert (done.returncode, done.stderr) == (0, "") and "measured" in done.stdout


# ---- recurrent layers ----


@pytest.fixture(scope="module")
def tuned(rnncc, tmp_path_factory):
    """An LSTM layer and its record."""
    folder = tmp_path_factory.mktemp("tuned")
    rng, model = numpy.random.default_rng(1), Model()
    weights = [model.constant(rng.uniform(-1, 1, (1, 64, 16)).astype(numpy.float32)) for _ in range(2)]
    model.output(model.node("LSTM", [model.input("x", "f32", [12, 1, 16]), *weights], hidden_size=16))
    path, records = model.write(folder), folder / "records.jsonl"
    done = rnncc("tune", "--only=rnn", path, "-o", records, "--budget=0.1", "--threads=2", timeout=300)
    assert done.returncode == 0, done.stderr
    return path, records


@pytest.mark.parametrize("template, old, new, keeps", [
    ("recurrent_steps.c", "static void recurrent_steps(", "/* a comment */ static  void\nrecurrent_steps(", True),
    ("recurrent_steps.c", "static void recurrent_steps(Team *team,", "static void recurrent_steps(Team *volatile team,",
     False),
    ("conv_direct.c", ".pass = pass};", ".pass = pass + 0};", True),
    ("simd/math.h", "vec vtanh(vec x) {\n", "vec vtanh(vec x) {\n  ;\n", False),
    ("simd/trig.h", "TRIG_FUNCTION(vatan, trig_atan)", "TRIG_FUNCTION(vatan, trig_asin)", True),
])
def test_records_of_recurrent_layers_are_bound_to_their_kernels_too(rnncc, tuned, templates, template, old, new, keeps):
    model, records = tuned
    change(templates / template, old, new)
    done = rnncc("inspect", model, "--explain=rnn", "--threads=2", f"--schedules={records}")
    assert done.returncode == 0
    assert (done.stdout.count("measured"), done.stderr.count("another version of its kernels")) == (keeps, not keeps)
