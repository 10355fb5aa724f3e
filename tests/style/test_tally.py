# SPDX-License-Identifier: MIT
"""tools/tally: the closing lines of tools/test. The options of tools/test, and those that tools/build gives to meson."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

# As meson writes them: a program that runs nothing, and one with a skipped case.
MESON = """<testsuites>
<testsuite name="rnncc"><testcase name="vocabulary_avx512"><skipped/>
  <system-out>1..0 # SKIP this CPU has no AVX-512</system-out></testcase></testsuite>
<testsuite name="rnncc.pool"><testcase name="1 - protocol"/>
  <testcase name="2"><skipped/><system-out>not installed: spin</system-out></testcase>
  <system-out>ok 1 - protocol\nok 2 # SKIP not installed: spin</system-out></testsuite>
</testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="a" name="test_runs"/>
<testcase classname="a" name="test_wide"><skipped type="pytest.skip" message="this CPU has no AVX-512">a.py:7</skipped></testcase>
</testsuite></testsuites>"""
FAILED = """<testsuite name="pytest"><testcase classname="a" name="test_fails"><failure message="0 == 1">a.py:9</failure></testcase>
</testsuite>"""
# A program that itself ends with 77, as libFuzzer does.
UNEXPLAINED = """<testsuite name="rnncc"><testcase name="fuzz"><skipped/><system-out>ALARM: 10 s</system-out></testcase></testsuite>"""


def tally(folder, *stages, **files):
    for name, text in files.items():
        (folder / f"{name}.xml").write_text(text)
    for stage in stages:
        (folder / f"{stage}.log").write_text("no compiler\n")
    done = subprocess.run([sys.executable, ROOT / "tools" / "tally", folder, *stages], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_all_passed_is_one_line(tmp_path):
    assert tally(tmp_path, python='<testsuite><testcase name="a"/></testsuite>') == (0, ["1 passed, 0 failed"])


def test_skips_are_counted_by_what_is_lacking(tmp_path):
    assert tally(tmp_path, c=MESON, python=PYTEST) == (0, [
        "   2 skipped: this CPU has no AVX-512",
        "   1 skipped: not installed: spin",
        "2 passed, 0 failed, 3 skipped"])


def test_a_failure_is_reported_with_its_words(tmp_path):
    status, lines = tally(tmp_path, python=FAILED)
    assert status == 1 and lines == ["FAILED python: a: test_fails", "    a.py:9", "0 passed, 1 failed"]


def test_a_skip_without_a_reason_is_a_failure(tmp_path):
    status, lines = tally(tmp_path, c=UNEXPLAINED)
    assert status == 1 and lines[0] == "FAILED c: rnncc: fuzz" and lines[-1] == "0 passed, 1 failed"
    assert "    skipped, and does not say what this machine lacks:" in lines and "    ALARM: 10 s" in lines


def test_a_stage_that_ends_badly_without_a_failed_case_is_one(tmp_path):
    status, lines = tally(tmp_path, "torch-tests")
    assert status == 1 and lines[0].startswith("FAILED torch-tests") and lines[1:] == ["    no compiler", "0 passed, 1 failed"]


def asked(*options):
    done = subprocess.run([ROOT / "tools" / "test", *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("options, said", [
    (["--quik"], "unknown option --quik; expected"),
    (["--without=sse"], "unknown option --without=sse; expected --quick, --long, --coverage or --op=NAME, --without=avx512"),
    (["--quick", "--without=avx2", "--long"], "--quick and --long exclude each other"),
    (["--op=Convolve"], "Convolve is none of the operators that tools/docs/operators.md lists"),
    (["--op=Conv", "--quick"], "--quick and --op exclude each other"),
    (["tests/graphs"], "unknown option tests/graphs"),
])
def test_a_wrong_option_is_reported(options, said):
    status, out, error = asked(*options)
    assert (status, out) == (2, "") and error.startswith("tools/test: ") and said in error and error.count("\n") == 1


def test_help_names_every_option():
    status, out, error = asked("--help")
    assert (status, error) == (0, "") and out.startswith("tools/test ")
    for option in ("--quick", "--long", "--op=", "--without=", "--help"):
        assert f"\n  {option}" in out


def test_of_the_folders_in_memory_those_of_ended_runs_are_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    for process in (ended.pid, os.getpid()):
        (tmp_path / f"rnncc-test-{process}-a1B2c3" / "files").mkdir(parents=True)
    (tmp_path / f"other-test-{ended.pid}-a1B2c3").mkdir()
    function = re.search(r"^remove_left\(\) \{\n.*?^\}\n", (ROOT / "tools" / "test").read_text(), re.MULTILINE | re.DOTALL)[0]
    subprocess.run(["bash", "-euc", f"{function}remove_left {tmp_path}"], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {f"rnncc-test-{os.getpid()}-a1B2c3", f"other-test-{ended.pid}-a1B2c3"}


def test_a_build_directory_gets_options_that_it_was_not_configured_with(tmp_path):
    """By a meson and a ninja that only write down what they are asked for."""
    (tmp_path / "tools").mkdir()
    for name in ("build", "programs.sh"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    asked_for, folder = tmp_path / "asked", tmp_path / "out"
    folder.mkdir()
    for name in ("meson", "ninja"):
        (tmp_path / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo "{name} $*" >>"$ASKED"\n')
        (tmp_path / name).chmod(0o755)

    def built(*options):
        asked_for.write_text("")
        subprocess.run([tmp_path / "tools" / "build", "out", *options], check=True,
                       env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(asked_for)})
        (folder / "build.ninja").touch()
        return asked_for.read_text().splitlines()

    compiled = "ninja -C out"
    assert built("-Da=1") == ["meson setup out -Da=1", compiled]
    assert built("-Da=1") == built() == [compiled]
    assert built("-Da=2") == ["meson configure out -Da=2", compiled]
    assert built("-Da=2") == [compiled]


def test_python_keeps_what_it_compiles_apart_from_the_sources(tmp_path):
    """Also where the environment forbids it to write that: some hundred interpreters import the same."""
    lines = re.search(r"^unset PYTHONDONTWRITEBYTECODE\nexport PYTHONPYCACHEPREFIX=.*\n", (ROOT / "tools" / "test").read_text(), re.MULTILINE)[0]
    (tmp_path / "imported.py").touch()
    subprocess.run(["bash", "-euc", f"{lines}{sys.executable} -c 'import imported'"], cwd=tmp_path,
                   env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, check=True)
    assert {path.parent for path in tmp_path.rglob("imported.*.pyc")} == {tmp_path / "build" / "pycache" / tmp_path.relative_to("/")}
