# SPDX-License-Identifier: MIT
"""tools/bench except its measurements: no time is judged here. PyTorch and OpenVINO are only in the other venv."""
import ctypes
import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import ROOT, build_directory
from support.bench import assert_refused, bench, listed
from support.machine import need_isa

os.environ.setdefault("RNNCC_BUILD", str(build_directory()))
sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import (arguments, contestants, environment, isas, machine, measure, networks, report,  # noqa: E402
                        run)
from benchmarks.cases import CASES, LISTED, OF_ISA, QUICK, Case, case_named  # noqa: E402

SMALL = [Case("LSTM", 8, T=5, B=3), Case("GRU", 8, T=5, B=3), Case("RNN", 8, T=5), Case("LSTM", 8, T=5, layers=3),
         Case("LSTM", 8, T=5, B=2, bidirectional=True), Case("GRU", 8, T=5, B=2, bidirectional=True),
         Case("LSTM", 8, T=1), Case("GRU", 8, T=1, B=2)]


# The command line


def test_cases_have_names_of_their_own():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) and set(QUICK) < set(names)


def test_a_name_says_all_of_a_case():
    assert [case_named(case.name) for case in CASES + SMALL] == CASES + SMALL
    for name in ("lstm", "lstm_0", "lstm_08", "lstm_8_t100", "lstm_8_b2_t3", "lstm_8_1layers", "lstm_8x", "LSTM_8"):
        assert case_named(name) is None


def test_help_says_what_each_benchmark_compares():
    """tools/bench lists those with command lines of their own a second time."""
    source = (ROOT / "tools" / "bench").read_text()
    assert {*re.findall(r'"(\w+)": \w+_run', source), "model"} == set(arguments.OWN)
    said = bench("--help").stdout
    for name in (*arguments.OWN, "rnn", "cnn", "products", "lowp", "ablation", "compare"):
        assert re.search(rf"^    {name}  +\S", said, re.M), name


def test_list_prints_the_cases_that_patterns_choose():
    assert listed("rnn", "--case", "gru_64*") == ["gru_64", "gru_64_b10"]


@pytest.mark.parametrize("words, complaint", [
    ([], "required"), (["dnn"], "dnn"), (["cnn", "--without", "torch"], "torch"), (["rnn", "--case", "lstm_x"], "lstm_x"), (["rnn", "--threads", "1,0"], "1,0"),
    (["rnn", "--threads", ""], "thread counts"), (["rnn", "--rounds", "0"], "0"),
    (["rnn", "--without", "numpy"], "numpy"), (["rnn", "--target", "x86-64-v5"], "x86-64-v5"),
    (["rnn", "--rnncc=--target=x86-64-v3"], "give it to tools/bench")])
def test_a_bad_argument_is_named_before_anything_is_set_up(words, complaint):
    assert_refused(*words, told=complaint)


def test_packages_that_cannot_be_had_end_it_with_exit_code_5(tmp_path):
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "bench", tmp_path / "tools")
    shutil.copytree(ROOT / "tools" / "benchmarks", tmp_path / "tools" / "benchmarks")
    no_network = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    no_network.update(PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null")
    done = subprocess.run([tmp_path / "tools" / "bench", "rnn", "--without", "torch"], capture_output=True, text=True,
                          timeout=300, env=no_network)
    assert done.returncode == 5, done.stderr
    assert "is there a network?" in done.stderr and "--without openvino" in done.stderr
    assert "torch" not in done.stderr and "Traceback" not in done.stderr


def test_a_peer_that_is_left_out_or_of_another_comparison_is_not_installed():
    text = environment.REQUIREMENTS.read_text()

    def wanted(what, *without):
        return {pin.split("==")[0] for pin in environment.wanted_packages(text, what, without)}

    assert wanted("rnn") >= {"onnxruntime", "openvino", "torch"} and not wanted("rnn") & {"ncnn", "pnnx"}
    assert wanted("cnn") >= {"onnxruntime", "openvino", "ncnn", "pnnx"} and "torch" not in wanted("cnn")
    assert wanted("rnn") - wanted("rnn", "torch") == {"torch"}
    assert wanted("cnn") - wanted("cnn", "ncnn") == {"ncnn", "pnnx"}


# Computations


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_the_reference_is_what_onnx_runtime_computes(case):
    outputs = networks.model(case).onnx_run(networks.feeds(case))
    assert networks.error(outputs, networks.reference(case)) < networks.tolerance(case) + networks.PEER_COARSENESS


@pytest.mark.every_case
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_the_c_loops_run_a_module_and_onnx_runtime(case, compile, tmp_path):
    import onnx
    model = networks.model(case)
    onnx.save(model.onnx(), tmp_path / "model.onnx")
    shutil.copy(compile(model.write(tmp_path)), tmp_path / "module.so")
    expected = networks.reference(case)
    for name in ("rnncc", "onnxruntime"):
        job = contestants.Job(case, tmp_path)
        runner = contestants.CONTESTANTS[name]().open(job, 2)
        assert len(runner.times(3)) == 3
        errors = measure.check(job, expected, {(name, 2): runner})
        assert errors[name] < networks.tolerance(case) + networks.PEER_COARSENESS
        runner.close()


class Fake:
    """A runner whose output is `change` of the right output."""

    def __init__(self, expected, change):
        self.outputs = {name: change(values).astype(np.float32) for name, values in expected.items()}

    def run(self):
        return self.outputs


def one_nan(values):
    changed = values.copy()
    changed.flat[-1] = math.nan
    return changed


@pytest.mark.parametrize("change", [lambda y: y + 1e-4, lambda y: y[..., ::-1], np.zeros_like, one_nan],
                         ids=["offset", "reversed", "zero", "nan"])
@pytest.mark.parametrize("name", ["rnncc", "torch"])
def test_an_output_that_disagrees_ends_the_case(name, change, tmp_path):
    job = contestants.Job(SMALL[0], tmp_path)
    expected = networks.reference(job.case)
    assert measure.check(job, expected, {(name, 1): Fake(expected, lambda values: values)})[name] < networks.EPS
    with pytest.raises(measure.Disagreement, match=name):
        measure.check(job, expected, {(name, 1): Fake(expected, change)})


# Measuring


class Slow:
    def __init__(self, seconds):
        self.seconds, self.runs = seconds, 0

    def times(self, runs):
        self.runs += runs
        return [self.seconds] * runs


def test_the_fewest_rounds_are_done_however_little_time_there_is():
    turns = {"a": measure.Turn(Slow(1e-3), 0)}
    assert measure.rounds(turns, 3, 20, 0) == 3 and len(turns["a"].seconds) == 3
    assert measure.rounds(turns, 3, 2, 100) == 2


def test_thread_counts_that_are_close_to_the_best_go_on():
    seconds = {("rnncc", 1): 1.3e-3, ("rnncc", 2): 1e-3, ("torch", 1): 5e-3, ("torch", 2): 5.5e-3}
    turns = {key: measure.Turn(Slow(value), 0) for key, value in seconds.items()}
    measure.rounds(turns, 1, 1, 0)
    assert sorted(measure.near_best(turns, 1.2)) == [("rnncc", 2), ("torch", 1), ("torch", 2)]


def test_a_turn_has_enough_runs_to_wake_threads_and_never_too_many():
    assert measure.Turn(Slow(1e-3), 0).runs == 10
    assert measure.Turn(Slow(1e-6), 0).runs == measure.MAX_RUNS
    assert measure.Turn(Slow(0.3), 0).runs == 1


@pytest.mark.parametrize("speeds, tries, most", [([100, 50, 50, 95], 3, 100), ([50, 100, 100], 1, 100), ([100, *[50] * 9], 4, 50)],
                         ids=["asleep", "faster than ever", "never again"])
def test_a_turn_begins_when_all_cpus_are_as_fast_as_they_were(speeds, tries, most, monkeypatch):
    """The first try is that of a turn before; a try takes a fifth of the longest wait. most: what is expected of the next turn."""
    left, clock, cpus = list(speeds), iter(range(100)), machine.Cpus()
    monkeypatch.setattr(machine, "speeds", lambda: types.SimpleNamespace(speed_multiply_add=lambda isa, n: left.pop(0)))
    monkeypatch.setattr(machine.time, "monotonic", lambda: next(clock) * machine.WAKING / 5)
    cpus.most = left.pop(0)
    cpus.wake()
    assert (len(speeds) - 1 - len(left), cpus.most) == (tries, most)


@pytest.mark.parametrize("seconds, times", [(0.01, 3), (1.6, 2), (9, 1)])
def test_slow_starts_are_taken_fewer_times(seconds, times, monkeypatch):
    taken = []
    monkeypatch.setattr(measure, "in_fork", lambda *_: taken.append(1) or {"seconds": seconds, "bytes": 1000})
    job = contestants.Job(SMALL[0], None)
    found = measure.starts({"rnncc": contestants.Contestant()}, job, 1)
    assert len(taken) == times
    assert found == {"rnncc": {"start_seconds": seconds, "bytes_beyond_weights": 1000 - job.weight_bytes}}


def test_a_process_that_dies_at_its_start_is_reported():
    with pytest.raises(contestants.Failed, match="died"):
        measure.in_fork(os._exit, 3)
    with pytest.raises(contestants.Failed, match="ZeroDivisionError"):
        measure.in_fork(lambda: 1 / 0)
    assert measure.in_fork(lambda: {"seconds": 1.5}) == {"seconds": 1.5}


# Reports

CORES = [{"threads": 1, "gflops": 100.0, "read": [{"bytes": 1 << 14, "forward": 200.0, "alternating": 180.0},
                                                  {"bytes": 1 << 20, "forward": 90.0, "alternating": 100.0},
                                                  {"bytes": 1 << 24, "forward": 10.0, "alternating": 20.0}]}]


def contestant(milliseconds, threads=1):
    return {"median_seconds": milliseconds * 1e-3, "threads": threads, "error": 1e-7, "version": "1.0",
            "turn_medians": [milliseconds * 1e-3] * 3,
            "start_seconds": 2e-3, "bytes_beyond_weights": 3 << 20}


def results(**milliseconds):
    return {"date": "today", "command": "tools/bench rnn", "machine": {
        "cpu": "CPU", "cpus": 1, "caches": ["L2 1M"], "system": "Linux", "isa": "avx512", "cores": CORES}, "cases": [
            {"case": "lstm_256", "rounds": 3, "bound": 1e-5,
             "contestants": {name: contestant(value) for name, value in milliseconds.items()}}]}


def test_the_page_shows_the_command_without_what_it_ran_under():
    shown = "tools/bench rnn --case 'lstm_*' --quick"
    for under in (["--under", "chrt -f 1"], ["--under=chrt -f 1"], []):
        assert run.shown_command(["rnn", "--case", "lstm_*", *under, "--quick"]) == shown


@pytest.mark.parametrize("ours, row", [(0.55, "| 0.550 | 0.58 | yes |"), (0.6, "| 0.600 | 0.58 | no |")])
def test_the_ratio_is_of_the_best_peer(ours, row):
    page = report.page(results(rnncc=ours, onnxruntime=1.5, openvino=1.0, torch=2.0))
    times = next(line for line in page.splitlines() if line.startswith("| LSTM 256, T=100 B=1"))
    assert times.endswith(row) and "1.50 (1) | 1.00 (1) | 2.00 (1)" in times


def test_a_machine_that_slows_down_for_some_rounds_leaves_the_paired_ratio_alone():
    unsteady = results(rnncc=0.5, onnxruntime=1.0)
    found = unsteady["cases"][0]["contestants"]
    found["rnncc"]["turn_medians"], found["onnxruntime"]["turn_medians"] = [1e-3, 2e-3, 2e-3], [2e-3, 4e-3, 4e-3]
    found["rnncc"]["median_seconds"], found["onnxruntime"]["median_seconds"] = 2e-3, 3e-3
    assert "| 0.500 | 0.667 | 0.58 | no |" in report.page(unsteady)


def test_a_case_that_is_not_listed_is_not_judged():
    unlisted = results(rnncc=0.5, onnxruntime=1.0)
    unlisted["cases"][0]["case"] = "lstm_257"
    assert "| 0.500 | - | - |" in report.page(unlisted)


def test_without_peers_there_is_a_page_without_ratios():
    assert "0.550 (1) | - | - | 0.58 | - |" in report.page(results(rnncc=0.55))


def test_cpus_that_share_a_core_for_a_while_are_no_limit_of_the_machine(monkeypatch):
    def cores(gflops):
        return {"cores": [{"threads": 1, "gflops": 118}, {"threads": 2, "gflops": gflops}]}
    for k in range(machine.MEASUREMENTS):
        found = iter([cores(117 if turn == k else 59) for turn in range(machine.MEASUREMENTS)])
        monkeypatch.setattr(machine, "measured", lambda counts, under, isa, found=found: next(found))
        assert machine.describe([1, 2], [], "avx2")["cores"][-1]["gflops"] == 117


def test_the_roofline_says_what_ratio_the_machine_allows():
    """1 MiB at 100 GB/s in each of 100 steps, and 2 x 256 x 1024 operations at 100 GFLOP/s: 1.57 ms."""
    page = report.page(results(rnncc=2.0, onnxruntime=3.0))
    assert "| 1.57 | 2.00 | 79% | 0.52 |" in page


def test_every_table_has_a_row_for_each_case():
    page = report.page(results(rnncc=0.5, onnxruntime=1.0))
    assert page.count("\n| LSTM 256, T=100 B=1 |") == 4


def test_times_are_printed_to_three_digits():
    assert [report.milliseconds(value * 1e-3) for value in (0.02345, 0.2345, 2.345, 23.45, 234.5)] == [
        "0.0235", "0.234", "2.35", "23.45", "234"]


def test_bandwidth_is_interpolated_in_the_better_direction():
    sizes = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 30)
    assert [machine.bandwidth(CORES[0], size) for size in sizes] == pytest.approx([200, 200, 150, 100, 60, 20])


def test_the_limit_is_the_slower_of_reading_and_computing():
    case = Case("LSTM", 256)  # 1 MB of recurrent weights, read at 100 GB/s, and as many for the input
    product = 2 * 256 * 1024 / 100e9
    assert machine.limit_on(CORES[0], case) == pytest.approx(100 * ((1 << 20) / 100e9) + 100 * product)
    batch = dataclasses.replace(case, B=10)
    assert machine.limit_on(CORES[0], batch) == pytest.approx(100 * 10 * product + 1000 * product)


# Instruction sets


def described(isa, best):
    return {**results(rnncc=1)["machine"], "isa": isa, "best_isa": best}


def held(**wider):
    """A page of AVX2 on a CPU that has AVX-512. wider: by contestant."""
    found = results(**{name: 1.0 for name in wider})
    found["machine"] = described("avx2", "avx512")
    for name, value in wider.items():
        found["cases"][0]["contestants"][name]["wider"] = value
    return report.page(found)


def test_modules_of_a_target_are_planned_for_this_machine():
    given = arguments.parse(["rnn", "--target=x86-64-v3"])
    assert run.modules_of(given) == {"module.so": ["--target=x86-64-v3", "--machine=native"]}
    assert run.modules_of(arguments.parse(["rnn"])) == {"module.so": []}


def test_each_instruction_set_has_goals_of_its_own():
    batch = case_named("lstm_256_b10")
    assert (batch.goal("avx512"), batch.goal("avx2"), case_named("gru_1024").goal("avx2")) == (0.85, 0.65, 0.82)
    assert isas.ISAS.keys() >= set(OF_ISA) and all(LISTED.keys() >= goals.keys() for goals in OF_ISA.values())


def test_rnncc_has_the_targets(rnncc):
    listed = dict(line.split()[:2] for line in rnncc("targets").stdout.split("\n\n")[0].splitlines()[1:])
    assert isas.OF_TARGET.items() <= listed.items()


@pytest.mark.parametrize("target, has, what, complaint", [
    ("x86-64-v4", {"avx2"}, "rnn", "this CPU cannot run modules for x86-64-v4: it has no AVX-512"),
    ("x86-64", {"plain", "avx2"}, "cnn", "peers cannot be held to SSE2 on a CPU that has AVX2"),
    ("x86-64", {"plain", "avx2"}, "compare", None), ("x86-64-v3", {"avx2"}, "rnn", None), (None, {"avx2"}, "rnn", None)])
def test_a_target_that_cannot_be_compared_is_named(target, has, what, complaint, monkeypatch):
    monkeypatch.setattr(machine, "best_isa", lambda: "avx2")
    monkeypatch.setattr(machine, "has_isa", lambda name: name in has)
    given = arguments.parse([what, *([sys.executable] if what == "compare" else []),
                             *([f"--target={target}"] if target else [])])
    if complaint:
        with pytest.raises(environment.Missing, match=complaint):
            run.isa_of(given)
    else:
        assert run.isa_of(given) == isas.OF_TARGET.get(target, "avx2")


@pytest.mark.parametrize("words, flags, wanted", [
    (["lowp"], {"amx_int8"}, "amx"), (["lowp"], set(), "avx512"), (["rnn"], {"amx_int8"}, "avx512"),
    (["lowp", "--target=x86-64-v3"], {"amx_int8"}, "avx2")])
def test_amx_is_an_instruction_set_where_numbers_are_small(words, flags, wanted, monkeypatch):
    """Its vectors are AVX-512's, and all that the CPU has: peers are not held."""
    monkeypatch.setattr(machine, "best_isa", lambda: "avx512")
    monkeypatch.setattr(machine, "has_isa", lambda name: True)
    monkeypatch.setattr(machine, "has_flag", lambda name: name in flags)
    assert run.isa_of(arguments.parse(words)) == wanted
    assert not run.is_held(described("amx", "avx512")) and isas.speeds_of("amx") == "avx512" and isas.speeds_of("avx2") == "avx2"


def test_an_instruction_set_that_is_not_known_is_named(monkeypatch):
    monkeypatch.setattr(machine, "best_isa", lambda: "mmx")
    with pytest.raises(environment.Missing, match="expected one of avx512, .*, found mmx"):
        run.isa_of(arguments.parse(["rnn"]))


def test_speeds_are_those_of_the_instruction_set():
    """Those with wider vectors multiply and add faster."""
    best = machine.best_isa()
    assert not machine.has_isa("missing") and machine.has_isa(best)
    found = machine.measured([1], [], best)
    assert found["isa"] == best and found["cores"][0]["gflops"] > 0
    with pytest.raises(environment.Missing, match="status 4"):
        machine.measured([1], [], "missing")


@pytest.mark.parametrize("isa, best", [("avx512", "avx512"), ("amx", "avx512"), ("avx2", "avx2"), ("plain", "avx2")])
def test_a_cpu_that_has_no_more_needs_no_holding(isa, best, tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "BUILD", tmp_path)
    run.hold(described(isa, best), ["onnxruntime"])
    assert run.variables(described(isa, best)) is None and not list(tmp_path.iterdir())


def test_peers_on_a_cpu_that_has_more_are_held(tmp_path, monkeypatch):
    """Their copies come first in Python's path."""
    monkeypatch.setattr(environment, "BUILD", tmp_path)
    monkeypatch.setattr(run.sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", "tools")
    (tmp_path / "site" / "onnxruntime").mkdir(parents=True)
    run.hold(described("avx2", "avx512"), ["rnncc", "onnxruntime", "torch"])
    found = run.variables(described("avx2", "avx512"))
    folder, rest = found["PYTHONPATH"].split(os.pathsep)
    assert (found["ONEDNN_MAX_CPU_ISA"], found["ATEN_CPU_CAPABILITY"], rest) == ("AVX2", "avx2", "tools")
    assert os.listdir(folder) == ["onnxruntime"]


ASKS = r"""
unsigned long with_zero(void) { unsigned low, high; __asm__("xorl %%ecx, %%ecx\n xgetbv" : "=a"(low), "=d"(high) : : "ecx");
  return low; }
unsigned long with_register(unsigned zero) { unsigned long low; __asm__("movl %1, %%esi\n movl %%esi, %%ecx\n xgetbv"
  : "=a"(low) : "r"(zero) : "ecx", "edx", "esi"); return low; }
unsigned long joined(unsigned zero) { unsigned long low, high; __asm__("xgetbv\n movl %%eax, %%eax\n shlq $32, %%rdx"
  : "=a"(low), "=d"(high) : "c"(zero)); return low; }
unsigned other(unsigned a, unsigned d) { __asm__("andl $15, %0\n addl %1, %0" : "+a"(a) : "d"(d)); return a; }
"""


def test_a_copied_library_finds_fewer_registers_saved_and_is_else_the_same(tmp_path):
    """`other` has the bytes of xgetbv inside of two instructions."""
    need_isa("avx2")
    source, copy = tmp_path / "site", tmp_path / "copy"
    (source / "ncnn" / "data").mkdir(parents=True)
    (source / "ncnn.libs").mkdir()
    (source / "ncnn" / "data" / "a.txt").write_text("words")
    (source / "ncnn.libs" / "libplain.so.1").write_bytes(b"nothing to change")
    (tmp_path / "asks.c").write_text(ASKS)
    library = source / "ncnn" / "asks.so.1.2"
    subprocess.run(["clang-19", "-O2", "-shared", "-fPIC", tmp_path / "asks.c", "-o", library], check=True)
    isas.copy_packages(["rnncc", "ncnn"], source, copy, 0x07)
    library = ctypes.CDLL(str(copy / "ncnn" / "asks.so.1.2"))
    assert (library.with_zero(), library.with_register(0), library.joined(0)) == (7, 7, 7)
    assert library.other(0x1234, 0x100) == 0x104
    assert (copy / "ncnn" / "data" / "a.txt").read_text() == "words"
    assert (copy / "ncnn.libs" / "libplain.so.1").is_symlink()
    isas.copy_packages([], source, copy, 0x07)
    assert not copy.exists()


def test_onnx_runtime_asks_which_registers_are_saved(tmp_path):
    """Else it could not be held."""
    need_isa("avx2")
    library = contestants.package_file("onnxruntime", "capi/libonnxruntime.so.*")
    isas.copy_library(library, tmp_path / "copy.so", 0x07)
    changed, original = (path.read_bytes() for path in (tmp_path / "copy.so", library))
    assert len(changed) == len(original) and changed != original


@pytest.mark.parametrize("lines, run_ends, used", [
    (["AVX512_elapsed_ms:\t-1", "AVX512_elapsed_ms:\t5000"], 0.1, False),
    (["AVX512_elapsed_ms:\t-1", "AVX512_elapsed_ms:\t20"], 0.1, True), (["other: 1"], 0.1, None), ([], 0.1, None)])
def test_the_kernel_says_whether_wide_registers_were_used(lines, run_ends, used, monkeypatch, tmp_path):
    for number, line in enumerate(lines):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "arch_status").write_text(line + "\n")
    monkeypatch.setattr(isas, "TASKS", tmp_path)
    clock = iter([100.0, 100.0 + run_ends])
    monkeypatch.setattr(isas.time, "monotonic", lambda: next(clock))
    assert isas.uses_avx512(lambda: None, 0) is used


def test_each_contestant_is_watched_by_itself(tmp_path, monkeypatch):
    class Instant(contestants.Contestant):
        def open(self, job, threads):
            return Slow(1e-3)

    monkeypatch.setattr(isas, "uses_avx512", lambda run, pause: run())
    assert measure.unheld({"rnncc": Instant(), "torch": Instant()}, contestants.Job(SMALL[0], tmp_path), 1) == {
        "rnncc": {"wider": None}, "torch": {"wider": None}}


def test_the_page_says_who_is_held_and_who_is_not():
    page = held(rnncc=False, onnxruntime=False, openvino=True, torch=None)
    assert "Instruction set: AVX2, of modules for `x86-64-v3`" in page and "The CPU has AVX-512, too." in page
    assert "**Not held, because they used wider registers: OpenVINO.**" in page
    assert "saw nothing in wider registers of rnncc, ONNX Runtime." in page
    assert "does not say whether wider registers were used by PyTorch." in page
    assert "| 1.000 | 1.000 | 0.65 | no |" in page
    assert "Peers are held" not in report.page(results(rnncc=1.0, onnxruntime=1.0))


def test_each_instruction_set_has_a_page_of_its_own(tmp_path):
    first, second = results(rnncc=1.0), results(rnncc=2.0)
    second["machine"] = described("avx2", "avx2")
    assert [report.write(each, tmp_path).name for each in (first, second)] == ["RESULTS.avx512.md", "RESULTS.avx2.md"]
    assert "(results.avx2.json)" in (tmp_path / "RESULTS.avx2.md").read_text()
    assert json.loads((tmp_path / "results.avx512.json").read_text()) == first


@pytest.mark.parametrize("words, full", [
    ([], True), (["--target=x86-64-v3"], True), (["--quick"], False), (["--case", "lstm_256"], False),
    (["--without", "torch"], False), (["--output", "x"], False), (["--rnncc=--schedules=none"], False)])
def test_the_page_in_the_tree_is_replaced_by_a_complete_one_only(words, full, tmp_path, monkeypatch):
    """Until then it may be of another machine."""
    given = arguments.parse(["rnn", *words])
    assert run.is_full(given) == full
    written = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "BUILD", tmp_path)
    monkeypatch.setattr(report, "write", lambda found, folder: written.append(folder) or folder)
    monkeypatch.setattr(machine, "describe", lambda *_: described("avx512", "avx512"))
    monkeypatch.setattr(run, "isa_of", lambda _: "avx512")
    given.cases = [case_named("lstm_64"), case_named("lstm_256")]
    outcomes = {"lstm_64": {}, "lstm_256": {}}
    monkeypatch.setattr(run, "measure", lambda case, *_: outcomes[case.name] or results(rnncc=1.0)["cases"][0])
    assert run.run(given, []) == 0
    grows = tmp_path / "bench" if "--output" not in words else run.Path("x")
    assert written == [grows, grows, run.HERE if full else grows]
    written.clear()
    outcomes["lstm_256"] = {"failure": "no"}
    assert run.run(given, []) == environment.ENVIRONMENT_ERROR and run.HERE not in written
