# SPDX-License-Identifier: MIT
"""rnncc.hpp: a module from C++, by two compilers and two standards, under sanitizers."""
import shutil
import subprocess

import pytest

from conftest import ROOT, build_directory
from support.trained_lines import line_alone, line_to_learn

CPP = ROOT / "runtime" / "bindings" / "cpp"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


@pytest.mark.parametrize("words", [
    ["clang++-19", "-std=c++17", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    ["clang++-19", "-std=c++17", "-fsanitize=thread"],
    pytest.param(["clang++-19", "-std=c++20"], marks=pytest.mark.long),
    ["g++", "-std=c++17"],
], ids=["asan", "tsan", "c++20", "gcc"])
def test_streams(words, tmp_path):
    subprocess.run([*words, "-g", "-O1", *WARNINGS, f"-I{ROOT / 'runtime'}", f"-I{CPP}", "-pthread",
                    ROOT / "tests" / "bindings" / "streams.cc", "-ldl", "-o", tmp_path / "streams"], check=True)
    modules = build_directory() / "tests" / "unit"
    second = shutil.copy(modules / "runtime_fake_module.so", tmp_path / "second.so")
    words = [tmp_path / "streams", modules / "runtime_fake_module.so", second, modules / "runtime_older_module.so"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@pytest.mark.parametrize("words", [["clang++-19", "-std=c++17", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
                                   pytest.param(["g++", "-std=c++17"], marks=pytest.mark.long)], ids=["asan", "gcc"])
def test_training(words, compile, tmp_path):
    subprocess.run([*words, "-g", "-O1", *WARNINGS, f"-I{ROOT / 'runtime'}", f"-I{CPP}", "-pthread",
                    ROOT / "tests" / "bindings" / "training.cc", "-ldl", "-o", tmp_path / "training"], check=True)
    path, alone = line_to_learn().write(tmp_path), line_alone().write(tmp_path, "line")
    modules = [compile(path, "--train"), compile(path), compile(alone, "--train", "--outer-loss")]
    done = subprocess.run([tmp_path / "training", *modules], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
