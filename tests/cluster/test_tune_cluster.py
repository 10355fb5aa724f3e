# SPDX-License-Identifier: MIT
"""tools/tune_cluster.sbatch on a cluster of one node (one_node.py): tasks share the workloads without communication, and
their records together are those of the whole model."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import pytest

from support.convolutional import convolution_in
from support.model_builder import Model

HERE = Path(__file__).parent
NOT_INSTALLED = 77
SHARDS = 2

# Layouts must not depend on times: else other workloads would be compiled than were tuned.
OPTIONS = ("--threads=1", "--layout-search=none")

# `sbatch --wait` checks only every ten seconds.
UNTIL_DONE = 'sbatch "$@" && while [ -n "$(squeue --noheader)" ]; do sleep 0.1; done'


def four_convolutions():
    """Four different ones, of which one occurs twice."""
    rng, model = numpy.random.default_rng(1), Model()
    x = model.input("x", "f32", [1, 16, 12, 12])
    for number, (window, channels) in enumerate([(1, 16), (3, 16), (1, 16), (3, 32), (1, 48)]):
        before = 16 if number < 4 else 32
        weights = rng.uniform(-1, 1, (channels, before, window, window)).astype(numpy.float32)
        x = model.node("Conv", [x, model.constant(weights)], [f"y{number}"], pads=[window // 2] * 4)
    model.output(x)
    return model


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def workloads(path):
    return {record["workload"] for record in records(path) if record.get("status", "best") == "best"}


def convolutions(path):
    return {convolution_in(workload) for workload in workloads(path)}


@pytest.fixture(scope="module")
def folder():
    """A short path: those of Slurm's sockets, in it, have 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="cluster-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def tuned(rnncc, folder):
    """(the model, a list of each shard's records): the results of a job array in Slurm."""
    model = four_convolutions().write(folder)
    done = subprocess.run(
        [sys.executable, HERE / "one_node.py", "bash", "-c", UNTIL_DONE, "sbatch", f"--array=1-{SHARDS}",
         f"--output={folder}/%a.log", HERE.parents[1] / "tools" / "tune_cluster.sbatch", model, folder / "all.jsonl",
         "--trials=1", "--budget=99999", *OPTIONS],
        env={**os.environ, "RNNCC": str(rnncc.path.resolve()), "TMPDIR": str(folder)}, capture_output=True, text=True,
        timeout=600)
    if done.returncode == NOT_INSTALLED:
        pytest.skip("not installed: slurm-wlm")
    logs = "".join(path.read_text() for path in sorted(folder.glob("*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    shards = [folder / f"all.{shard}-of-{SHARDS}.jsonl" for shard in range(1, SHARDS + 1)]
    assert all(shard.exists() for shard in shards), logs
    return model, shards


def test_shards_are_disjoint_and_together_all_workloads(rnncc, tuned, tmp_path):
    model, shards = tuned
    whole = tmp_path / "whole.jsonl"
    done = rnncc("tune", model, "-o", whole, "--trials=1", "--budget=99999", *OPTIONS)
    assert done.returncode == 0, done.stderr
    parts = [workloads(shard) for shard in shards]
    assert len(convolutions(whole)) == 4 and all(parts)
    assert sum(map(len, parts)) == len(workloads(whole)) and set.union(*parts) == workloads(whole)


def test_records_merged_are_a_database_to_compile_with(rnncc, tuned, tmp_path):
    model, shards = tuned
    merged = tmp_path / "merged.jsonl"
    done = rnncc("schedules", "merge", *shards, "-o", merged)
    assert done.returncode == 0 and len(convolutions(merged)) == 4, done.stderr
    compiled = rnncc(model, "-o", tmp_path / "m.so", *OPTIONS, f"--schedules={merged}")
    assert (compiled.returncode, compiled.stderr) == (0, "") and (tmp_path / "m.so").exists()
    told = rnncc("inspect", "--explain=conv", model, *OPTIONS, f"--schedules={merged}")
    assert told.stdout.count(": measured, ") == 4, told.stdout


def test_nothing_of_the_cluster_is_left(tuned, folder):
    assert not list(folder.glob("slurm-*"))
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            assert str(folder).encode() not in environment.read_bytes(), environment.with_name("comm").read_text()
        except OSError:
            pass  # ended, or another user's


@pytest.mark.parametrize("arguments", [[], ["model.json"], ["model.json", "records.jsonl"]])
def test_outside_an_array_or_without_files_it_says_how_it_is_used(root, arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    done = subprocess.run([root / "tools" / "tune_cluster.sbatch", *arguments], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage: sbatch --array")
