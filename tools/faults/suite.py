# SPDX-License-Identifier: MIT
"""The tests that a build can run: its C tests, and cases of the Python tests."""
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

QUICK_ALL_THE_SAME = {"math_ulp_sse42", "math_ulp_plain"}  # of the suite `slow`
PYTHON_PROGRAMS = ["compiler/rnncc", "tools/rnnrun", "tests/support/reference_run", "tests/support/cached_clang",
                   "tests/support/rnncc_forks"]


def c_tests(build):
    """name -> meson's description."""
    described = json.loads((build / "meson-info/intro-tests.json").read_text())
    return {test["name"]: test for test in described
            if "rnncc:slow" not in test["suite"] or test["name"] in QUICK_ALL_THE_SAME}


def targets(build, test):
    """What ninja must have made for a C test."""
    parts = [build / part for part in test["cmd"]]
    return [os.path.relpath(part, build) for part in parts if part.is_relative_to(build) and ".." not in part.parts]


def limited(command, cpu_seconds, wall_seconds, **options):
    """(the exit status, what it said); a negative status: it was ended, also for taking too long."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, int(cpu_seconds) + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, preexec_fn=limits, **options)
    try:
        said, _ = started.communicate(timeout=wall_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return -signal.SIGKILL, "it took too long"
    return started.returncode, said.decode(errors="replace")


def environment(build, **more):
    return {**os.environ, "XDG_CACHE_HOME": "/dev/null", "RNNCC_BUILD": str(build), **more}


def run_c_test(build, test, profiles=None, seconds=1.0):
    """(the exit status, what it said, seconds)."""
    more = dict(test["env"]) | ({"LLVM_PROFILE_FILE": str(profiles)} if profiles else {})
    start = time.monotonic()
    status, said = limited(test["cmd"], 10 + 8 * seconds, 60 + 20 * seconds, cwd=test["workdir"] or build,
                           env=environment(build, **more))
    return status, said, time.monotonic() - start


def run_python_cases(root, build, cases, budget):
    """pytest's status, and what it said: stops at the first case that fails, and where they took so many seconds of CPU
    time: then the status is pytest's 2."""
    command = [".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "faults.pytest_budget",
               "--tb=line", *cases]
    more = {"PYTHONPATH": str(root / "tools"), "RNNCC_BUDGET": str(budget)}
    return limited(command, 60 + 8 * budget, 120 + 20 * budget, cwd=root, env=environment(build, **more))


@functools.cache
def program_that_runs(*names):
    """As tools/programs.sh: a program on PATH may be a shim whose interpreter is missing."""
    def runs(name):
        return shutil.which(name) and subprocess.run([name, "--version"], capture_output=True).returncode == 0

    return next(name for name in names if runs(name))


def ninja(build, wanted):
    """Whether it could be built, and what ninja said."""
    command = [program_that_runs("ninja", "/usr/bin/ninja"), "-C", build, "-j", "1", *wanted]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode == 0, done.stdout


def is_c_test(name):
    return "::" not in name
