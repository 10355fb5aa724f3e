# SPDX-License-Identifier: MIT
"""Runs the tests of an instrumented build, each with profiles of its own."""
import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from faults import profiles, suite

# Tests of one error each, in files of which only a share runs.
ERRORS = [
    "tests/bindings/test_module_wheel.py::test_a_folder_that_cannot_be_made_is_said",
    "tests/graphs/test_bounded_values.py::test_bounds_of_a_bundle",
    "tests/graphs/test_bounded_values.py::test_bounds_that_fit_nothing",
    "tests/graphs/test_recurrent_int8.py::test_weights_that_are_not_constant_are_refused",
    "tests/modules/test_lesser_cpu.py::test_an_instruction_set_that_cannot_be_masked_is_an_error",
    "tests/modules/test_outer_loss.py::test_outputs_that_can_have_no_gradient_are_told_by_type",
    "tests/modules/test_tune.py::test_a_model_that_runs_on_no_made_up_input_is_not_measured",
    "tests/modules/test_tune.py::test_an_output_that_cannot_be_written_is_reported_before_anything_is_measured",
    "tests/modules/test_tune_convolutions.py::test_a_module_that_cannot_be_built_is_no_result",
]
# Besides the C tests: bad input, each operator by the reference interpreter, and a share of networks that are compiled.
# Sweeps over kernels and schedules run the same code again and again.
PYTHON_TESTS = [
    ["tests/robustness", "--ignore=tests/robustness/test_setup.py", "--ignore=tests/robustness/test_faults.py",
     "tests/graphs/test_reference_onnx.py", "tests/graphs/test_sequences_onnx.py", "tests/graphs/test_contrib_onnx.py",
     "tests/modules/test_quantize_input.py", "tests/modules/test_bundle.py", "tests/modules/test_bundle_verbs.py",
     "tests/modules/test_targets.py", "tests/modules/test_schedules.py", "tests/modules/test_calibrate.py",
     "tests/modules/test_command_line.py", "tests/modules/test_tune_runner.py", "tests/modules/test_names_there.py",
     "tests/modules/test_training.py", "tests/modules/test_trainable_models.py", "tests/modules/test_trained_statistics.py",
     "tests/modules/test_mutable_weights.py", "tests/modules/test_setting_weights.py",
     "tests/modules/test_portable.py", "tests/modules/test_musl.py", "tests/graphs/test_precision.py", *ERRORS],
    ["--quick", "tests/graphs", "tests/kernels", "tests/modules"],
]
SECONDS = 60  # most C tests take less than one


def folder_for(folder, test):
    place = folder / hashlib.sha256(test.encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    return place


def run_c_tests(build, folder, jobs):
    """The names of those that failed."""
    described = suite.c_tests(build)

    def run(name):
        place = folder_for(folder, name)
        status, said, seconds = suite.run_c_test(build, described[name], place / profiles.PATTERN, SECONDS)
        (place / "test").write_text(name)
        (place / "seconds").write_text(f"{seconds:.3f}")
        return [f"{name}: exit {status}\n{said[-2000:]}"] if status else []

    with ThreadPoolExecutor(jobs) as pool:
        return sum(pool.map(run, described), [])


def run_python_tests(root, build, folder, jobs, tests):
    """Whether they passed."""
    session = folder / "session"
    session.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "RNNCC_BUILD": str(build), "RNNCC_PROFILES": str(folder), "PYTHONPATH": str(root / "tools"),
                   "LLVM_PROFILE_FILE": str(session / profiles.PATTERN)}
    command = [".venv/bin/python", "-m", "pytest", "-p", "faults.pytest_profiles", "-q", "-n", str(jobs), "--dist",
               "worksteal", *tests]
    return subprocess.run(command, cwd=root, env=environment).returncode == 0


def run(root, build, folder, jobs):
    """Whether all tests passed."""
    subprocess.run(["tools/build", build.name, *profiles.OPTIONS], cwd=root, check=True)
    # What only tests need, as a program for an emulator.
    subprocess.run([os.environ.get("NINJA", "ninja"), "-C", build, "meson-test-prereq"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = run_c_tests(build, folder, jobs)
    print("\n".join(failed), end="\n" if failed else "", flush=True)
    passed = [run_python_tests(root, build, folder, jobs, tests) for tests in PYTHON_TESTS]
    return not failed and all(passed)
