# SPDX-License-Identifier: MIT
"""A fault planted in a copy of the tree, and the tests that could catch it."""
import itertools
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass

from faults import suite
from faults.candidates import MOST_SECONDS

BATCHES = [1, 3]  # C tests that are linked at once, the last again and again: most faults are caught by the first

UNKNOWN = 2  # seconds of CPU time of a C test that was not profiled, such as those of ThreadSanitizer


@dataclass(slots=True)
class Outcome:
    verdict: str  # caught, survived, not built, cost only
    by: str = ""  # the test that caught it, or why no test could
    seconds: float = 0.0
    tests: int = 0  # that were run


class Tree:
    """A copy of the files that git has or would take, with a build of its own that is not optimised."""

    def __init__(self, root, place):
        place = place.resolve()  # by which meson names what it builds
        self.root, self.build = place / "tree", place / "tree" / "build"
        self.make(root)

    def make(self, root):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, check=True,
                                capture_output=True, text=True).stdout.split("\0")
        for name in filter(None, listed):
            source, copy = root / name, self.root / name
            if not source.is_file() or source.is_symlink():
                continue
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        venv = self.root / ".venv"
        if not venv.exists():
            venv.symlink_to((root / ".venv").resolve())
        environment = {**os.environ, "CC": "clang-19"}
        subprocess.run(["tools/build", "build", "-Doptimization=0", "-Dwerror=false"], cwd=self.root, check=True,
                       env=environment)

    def plant(self, fault):
        path = self.root / fault.file
        text = path.read_text()
        assert text[fault.start:fault.start + len(fault.before)] == fault.before, f"{fault.file} has changed"
        path.write_text(text[:fault.start] + fault.after + text[fault.start + len(fault.before):])
        return text

    def restore(self, fault, text):
        (self.root / fault.file).write_text(text)


def caught_by_c_tests(tree, described, names, coverage):
    """The first test that fails, or `does not compile`; and how many ran."""
    ran = first = 0
    for size in itertools.chain(BATCHES, itertools.repeat(BATCHES[-1])):
        batch = names[first:first + size]
        first += size
        if not batch:
            return None, ran
        wanted = [target for name in batch for target in suite.targets(tree.build, described[name])]
        built, said = suite.ninja(tree.build, wanted)
        if not built:
            return "does not compile: " + said[-1000:], ran
        for name in batch:
            ran += 1
            status, said, _ = suite.run_c_test(tree.build, described[name], seconds=coverage.seconds.get(name, UNKNOWN))
            if status:
                return f"{name}: exit {status}", ran


# Of pytest's statuses these say that no case failed: none did, the budget was used up, none could be run.
NONE_FAILED = {0, 2, 5}


def caught_by_cases(tree, cases, budget):
    built, said = suite.ninja(tree.build, suite.PYTHON_PROGRAMS)
    if not built:
        return "does not compile: " + said[-1000:], 0
    status, said = suite.run_python_cases(tree.root, tree.build, cases, budget)
    passed = re.search(r"(\d+) passed", said)
    ran, failed = int(passed[1]) if passed else 0, re.findall(r"^(?:FAILED|ERROR) .*", said, re.MULTILINE)
    if failed:
        return failed[0][:300], ran + 1
    if status < 0:
        return f"pytest: exit {status}: {said[-300:]}", ran + 1
    if status not in NONE_FAILED:
        raise RuntimeError(f"pytest ended with status {status}: {said[-3000:]}")
    return None, ran


def attempt(tree, fault, described, candidates, budget=MOST_SECONDS):
    """budget: seconds of CPU time for the Python cases; 0: none is run."""
    c_tests, cases = candidates.of(fault)
    if not c_tests and not cases:
        return Outcome("survived", "no test runs this line")
    start = time.monotonic()
    text = tree.plant(fault)
    try:
        by, ran = caught_by_c_tests(tree, described, c_tests, candidates.coverage)
        if not by and cases and budget:
            by, more = caught_by_cases(tree, cases, budget)
            ran += more
    finally:
        tree.restore(fault, text)
    seconds = round(time.monotonic() - start, 1)
    if by and by.startswith("does not compile"):
        return Outcome("not built", by, seconds, ran)
    return Outcome("caught" if by else "survived", by or "", seconds, ran)
