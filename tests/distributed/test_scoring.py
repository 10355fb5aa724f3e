# SPDX-License-Identifier: MIT
"""A folder of files through a network by Ray Data and by PySpark, on this machine: a worker is lost on the way, and each file
has its result, once."""
import collections
import os
import sys

import numpy
import pytest

from conftest import ROOT
from support import machine, streaming
from support.module import PACKAGE, rnncc
from support.streaming import close
from support.time_limit import limit  # noqa: F401

machine.need_package("ray")
machine.need_package("pyspark")
FILES, BROKEN = 120, "0007.f32"


@pytest.fixture(scope="module", autouse=True)
def imports():
    """What workers find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (PACKAGE, ROOT / "tests" / "distributed"))))
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # other programs of this machine are no reason to end a worker
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.syspath_prepend(str(ROOT / "tests" / "distributed"))
        yield


@pytest.fixture(scope="module")
def path(compile, tmp_path_factory):
    return str(compile(streaming.listener().write(tmp_path_factory.mktemp("listener"))))


@pytest.fixture(scope="module")
def files(path, tmp_path_factory):
    """(the folder, what the network says of each file): one is no whole number of rows."""
    folder, due, rng = tmp_path_factory.mktemp("files"), {}, numpy.random.default_rng(3)
    with rnncc.load(path, threads=1) as module:
        for k in range(FILES):
            x = rng.standard_normal((rng.integers(1, 40), streaming.FEATURES)).astype("f4")
            (folder / f"{k:04}.f32").write_bytes(x.tobytes())
            with module.context() as context:
                due[f"{k:04}.f32"] = context(x[:, None])[:, 0, 0]
    (folder / BROKEN).write_bytes(b"12345")
    del due[BROKEN]
    return folder, due


def check(rows, due, folder):
    """rows: (path, y[T, H], error) of each file."""
    seen = collections.Counter(os.path.basename(path) for path, *_ in rows)
    assert set(seen.values()) == {1} and set(seen) == {*due, BROKEN}
    for path, y, error in rows:
        name = os.path.basename(path)
        if name == BROKEN:
            assert error == "input x: 5 bytes are no whole elements of f32"
        else:
            assert not error and close(numpy.asarray(y, "f4").reshape(-1, streaming.UNITS), due[name])
    assert (folder / "died").exists() and len(list(folder.glob("*.scored"))) >= 2


def test_ray_data_scores_each_file_once_though_a_worker_is_killed(path, files, tmp_path):
    import ray
    import ray.data
    import workers
    folder, due = files
    ray.init(num_cpus=6, include_dashboard=False, object_store_memory=200 << 20, logging_level="ERROR")
    try:
        scored = ray.data.read_binary_files(str(folder), include_paths=True, override_num_blocks=8).map_batches(
            workers.RayScorer, fn_constructor_args=[str(tmp_path), path],
            fn_constructor_kwargs={"inputs": {"x": "bytes"}, "errors": "error"}, batch_size=8, num_cpus=2,
            compute=ray.data.ActorPoolStrategy(size=2))
        rows = scored.take_all()
    finally:
        ray.shutdown()
    check([(row["path"], row["y"], row["error"]) for row in rows], due, tmp_path)
    assert {row["threads"] for row in rows} == {2}, "as many as a worker has CPUs"


def test_pyspark_scores_each_file_once_though_a_worker_is_killed(path, files, tmp_path):
    import workers
    from pyspark.sql import SparkSession
    folder, due = files
    session = (SparkSession.builder.master("local[2,4]")  # 2 workers, and 4 attempts of a task
               .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
               .config("spark.driver.host", "127.0.0.1").config("spark.log.level", "ERROR")
               .config("spark.sql.execution.arrow.maxRecordsPerBatch", "8").getOrCreate())
    try:
        session.sparkContext.addFile(path)
        table = session.read.format("binaryFile").load(str(folder)).select("path", "content").repartition(4)
        scorer = workers.SparkScorer(str(tmp_path), os.path.basename(path), inputs={"x": "content"}, errors="error")
        scored = table.mapInPandas(scorer, "path string, y array<array<array<float>>>, error string")
        rows = [(row.path, row.y, row.error) for row in scored.collect()]
    finally:
        session.stop()
    check(rows, due, tmp_path)
