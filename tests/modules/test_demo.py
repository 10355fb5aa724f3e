# SPDX-License-Identifier: MIT
"""tools/demo shows right answers first, then one of each network's mistakes, and in the end a model that rnncc refuses."""
import re
import subprocess

from conftest import ROOT, build_directory
from support import amount


def test_digits_shows_what_it_reads_then_how_often_it_is_right_then_one_mistake(compile):
    held_out = ROOT / "models" / "held_out"
    done = subprocess.run([build_directory() / "tools" / "digits", compile(ROOT / "models" / "digits_rnn.json"),
                           held_out / "digits.images.npy", held_out / "digits.labels.npy"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = [line.strip() for line in done.stdout.splitlines() if not line.startswith("    ")]
    assert re.fullmatch(r"reads this as a \d:", told[0]) and re.fullmatch(r"\d+ of 360 held-out images right \(9.*%\)", told[1])
    assert re.fullmatch(r"takes this (\d) for a (?!\1)\d:", told[2]) and len(told) == 3
    assert sum(line.startswith("    ") for line in done.stdout.splitlines()) == 16


def test_demo_ends_with_a_model_that_is_refused(rnncc, tmp_path):
    """By its own commands, on the compiler under test."""
    (function,) = re.findall(r"^mistake\(\) {.*?^}$", (ROOT / "tools" / "demo").read_text(), re.MULTILINE | re.DOTALL)
    function = function.replace("build/compiler/rnncc", str(rnncc.path))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"modules={tmp_path}\n{function}\nmistake"], cwd=ROOT,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "GRU: `hidden_size` is 65, and R is `gru.R` f32[1, 192, 64], of the hidden size 64" in done.stdout


if amount.long_tests() and build_directory() == ROOT / "build":
    def test_demo_as_a_whole():
        done = subprocess.run([ROOT / "tools" / "demo"], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        places = [done.stdout.index(words) for words in ("reads this as", "takes this", "held-out words entirely right",
                                                         "a model with a mistake, which rnncc refuses:")]
        assert places == sorted(places)
