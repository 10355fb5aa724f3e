# SPDX-License-Identifier: MIT
"""Modules where the system gives little or disturbs: their runs have the bits of one thread, and nothing is left. Each tensor
is between pages that may not be touched."""
import shutil
import subprocess

import pytest

from conftest import ROOT, build_directory
from support.amount import long_tests
from support.hard_networks import control, recurrent
from support.machine import need_quota

pytestmark = pytest.mark.unsanitized


@pytest.fixture
def modules(compile, tmp_path):
    """Recurrent layers, a network of If and Loop, a CNN, and hyphenate; planned for 8 threads. To optimise them takes a
    third of the CPU time that it saves in the runs."""
    models = [ROOT / "models" / "digits_cnn.json", ROOT / "models" / "hyphenate.json"]
    for make in recurrent, control:
        (tmp_path / make.__name__).mkdir()
        models.append(make()[0].write(tmp_path / make.__name__))
    return [compile(model, "--threads=8", optimised=True) for model in models]


def hard_run(trial, amount, modules, *before):
    program = build_directory() / "tests" / "modules" / "hard_run"
    done = subprocess.run([*before, program, trial, str(amount), *modules], capture_output=True, text=True, timeout=1800 if long_tests() else 300)
    assert done.returncode == 0, f"{trial}: {done.returncode} {done.stdout}{done.stderr}"


# Of what, and how much of it by default and in long tests.
TRIALS = {"few_threads": (6, 6), "one_cpu": (5, 50), "crowd": (2, 10), "forks": (30, 100), "host_threads": (10, 100),
          "disturbed": (150, 1000), "callers": (60, 1000), "soak": (1, 30)}


@pytest.mark.every_case
@pytest.mark.parametrize("trial", TRIALS)
def test_runs_have_the_bits_of_one_thread(trial, modules):
    hard_run(trial, TRIALS[trial][long_tests()], modules)


def test_eight_modules_at_once(modules, tmp_path):
    """Four, and copies of them, which are modules of their own."""
    copies = [shutil.copy(module, tmp_path / f"{i}.so") for i, module in enumerate(modules)]
    hard_run("together", 1000 if long_tests() else 50, [*modules, *copies])


def test_a_thousand_loads_leave_nothing(modules):
    hard_run("loads", 1000, modules[:1])
    hard_run("loads", 1000 if long_tests() else 300, modules[1:])


def test_half_a_cpu_is_one_thread(modules):
    """By a control group with a quota, in which the program starts."""
    with need_quota(microseconds=50000, of=100000) as join:
        hard_run("part_of_a_cpu", 200 if long_tests() else 10, modules, "sh", "-c", f'echo $$ >{join} && exec "$@"', "sh")
