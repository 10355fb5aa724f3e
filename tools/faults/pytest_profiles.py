# SPDX-License-Identifier: MIT
"""A plugin of pytest: of each test, $RNNCC_PROFILES has a folder with the profiles of the programs that it ran, its name
(`test`) and the seconds that it took (`seconds`). Cases of bad input are short, and many: those of a function are one.

    RNNCC_PROFILES=FOLDER PYTHONPATH=tools python -m pytest -p faults.pytest_profiles ...
"""
import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

start_program = subprocess.Popen.__init__


def start_profiled(self, *arguments, env=None, **options):
    """Some tests give their programs an environment of a few variables."""
    if env is not None:
        env = {"LLVM_PROFILE_FILE": os.environ["LLVM_PROFILE_FILE"], **env}
    start_program(self, *arguments, env=env, **options)


subprocess.Popen.__init__ = start_profiled


def name_of(item):
    return item.nodeid.split("[")[0] if item.path.parent.name == "robustness" else item.nodeid


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    name = name_of(item)
    folder = Path(os.environ["RNNCC_PROFILES"]) / hashlib.sha256(name.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["LLVM_PROFILE_FILE"] = f"{folder}/%c%m.profraw"
    start = time.monotonic()
    yield
    with (folder / "seconds").open("a") as file:
        file.write(f"{time.monotonic() - start:.3f}\n")
    (folder / "test").write_text(name)


@pytest.fixture(autouse=True)
def reference_of_its_own(request):
    """The reference interpreter is one process, which forks for each run: it writes into the profile that it began with."""
    if "reference" in request.fixturenames:
        from support.reference import ManyRuns
        reference = request.getfixturevalue("reference")
        old = reference.runs.process
        program = old.args[0]
        ManyRuns.cache_clear()
        reference.runs = ManyRuns(program)
        old.stdin.close()
        old.wait()
