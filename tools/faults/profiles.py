# SPDX-License-Identifier: MIT
"""Profiles of clang's source-based coverage: which code of compiler/ and runtime/ ran.

A test has a folder of raw profiles, one for each program that it ran. They are mapped files (`%c`), so that what a program
counted is there however it ended, forks add to them, and no system call is made at the end; runs of the same program
share one (`%m`).
"""
import collections
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["-Doptimization=0",
           "-Dc_args=-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation",
           "-Dc_link_args=-fprofile-instr-generate"]
PATTERN = "%c%m.profraw"
ROOMS = ("compiler", "runtime")
SPARSE = "--sparse"  # leaves out what did not run


def objects(build):
    """What has the mapping from counters to code: each file of the compiler and of the runtime once, and of programs that
    call what stands in headers of the runtime."""
    first, *others = [build / "compiler/librnncc.a", build / "compiler/rnncc", build / "runtime/librnncc_runtime.a",
                      build / "tools/rnnrun", build / "tests/unit/runtime_load_test", build / "tests/unit/runtime_wave_test"]
    return [first, *[f"--object={other}" for other in others]]


def merge(raw, merged):
    listed = merged.with_suffix(".list")
    listed.write_text("\n".join(map(str, raw)))
    subprocess.run(["llvm-profdata-19", "merge", SPARSE, "-f", listed, "-o", merged], check=True)
    listed.unlink()


def export(build, merged, form):
    """The text of llvm-cov export."""
    command = ["llvm-cov-19", "export", *objects(build), f"--instr-profile={merged}", f"--format={form}",
               "--skip-expansions"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def relative(path, root=ROOT):
    """`compiler/main.c`; None for files of no room, and generated ones."""
    path = Path(re.sub(r"[^/]+/\.\./", "", path))
    if not path.is_relative_to(root):
        return None
    path = path.relative_to(root)
    return str(path) if path.parts[0] in ROOMS else None


def lines_run(build, merged, root=ROOT, also_not_run=False):
    """file -> the lines that ran, or all that have code."""
    ran, file = collections.defaultdict(list), None
    for line in export(build, merged, "lcov").splitlines():
        if line.startswith("SF:"):
            file = relative(line[3:], root)
        elif file and line.startswith("DA:"):
            number, count = line[3:].split(",")
            if also_not_run or count != "0":
                ran[file].append(int(number))
    return ran


def files(build, merged, root=ROOT):
    """file -> what llvm-cov says about it."""
    told = json.loads(export(build, merged, "text"))["data"][0]["files"]
    return {name: file for file in told if (name := relative(file["filename"], root))}
