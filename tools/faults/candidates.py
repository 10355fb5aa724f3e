# SPDX-License-Identifier: MIT
"""The tests that could catch a fault, those that cost least first."""
import collections
import re
from pathlib import Path

from faults import about, suite

# Of a C test each run costs a link, of a Python case its place on the command line.
MOST_C_TESTS, MOST_CASES, MOST_PROFILED = 30, 200, 60
MOST_SECONDS = 90  # of the C tests of a fault: what they took when they were profiled; and of CPU time of its Python cases
# A record that comes with rnncc names the text of its kernel: with any other text, right or wrong, it is stale.
KNOWS_TEXT = {"shipped_records"}
TOO_LONG = {"runtime_pool"}  # runtime_pool_tsan has the same tests, of fewer regions
THREADS = ["runtime_pool_memory", "runtime_bundle", "runtime_shared_pool", "runtime_steps_tsan", "runtime_pool_tsan", "runtime_tree_tsan"]


def includers(root, header):
    """The templates that include it, directly or not."""
    found, headers = set(), [header]
    texts = {path.relative_to(root / "templates"): path.read_text() for path in (root / "templates").rglob("*.[ch]")}
    seen = set()
    while headers:
        name = headers.pop()
        for path, text in texts.items():
            if path not in seen and re.search(rf'#include "(\w+/)*{re.escape(Path(name).name)}"', text):
                seen.add(path)
                (headers.append if path.suffix == ".h" else found.add)(str(path))
    return {Path(name).stem for name in found}


def varied(cases):
    """The cases in an order that takes one of each test function before it takes a second one."""
    seen = collections.Counter()
    ranks = []
    for place, name in enumerate(cases):
        function = name.split("[")[0]
        ranks.append((seen[function], place, name))
        seen[function] += 1
    return [name for _, _, name in sorted(ranks)]


def within(names, count, seconds):
    """The first of them, as many as may be and take no longer together. seconds: name -> what it takes."""
    kept, total = [], 0.0
    for name in names:
        if len(kept) < count and total + seconds.get(name, 1) <= MOST_SECONDS:
            kept.append(name)
            total += seconds.get(name, 1)
    return kept


class Candidates:
    """about: the Python tests that are about a piece of code; None: those that were profiled alone."""

    def __init__(self, root, coverage, c_tests, about=None):
        self.root, self.coverage, self.c_tests, self.about = root, coverage, c_tests, about
        self.kernel_tests = [name for name in coverage.seconds if name.startswith("tests/kernels/")]

    def naming(self, template):
        """Tests of modules that have this kernel: those that ran the line where the compiler names it; and tests of the
        kernel alone, by files that name it."""
        modules, alone = set(), set()
        for path in (self.root / "compiler/kernels").rglob("*.c"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if f'"{template}"' in line:
                    file = str(path.relative_to(self.root))
                    modules.update(self.coverage.of_line(file, number) or self.coverage.of_file(file))
        for path in (self.root / "tests/kernels").glob("test_*.py"):
            if re.search(rf"\b{template}\b", path.read_text()):
                file = str(path.relative_to(self.root))
                alone.update(name for name in self.kernel_tests if name.startswith(f"{file}::"))
        return modules, alone

    def of_template(self, fault):
        path = Path(fault.file)
        templates = {path.stem} if path.suffix == ".c" else includers(self.root, path.name)
        modules, alone = set(), set()
        for template in sorted(templates):
            of_modules, of_kernel = self.naming(template)
            modules |= of_modules
            alone |= of_kernel
        vocabulary = []
        if path.parent.name == "simd":
            isas = [isa for isa in ("avx512", "avx2", "sse42", "plain") if isa in path.name] or ["avx2", "plain"]
            kinds = ["vocabulary_int8"] if "int8" in path.name else ["vocabulary", "math_ulp", "double_check"]
            vocabulary = [f"{kind}_{isa}" for kind in kinds for isa in isas]
        modules = {name for name in modules - KNOWS_TEXT if not suite.is_c_test(name)}
        return [name for name in vocabulary if name in self.c_tests], [self.cheapest(alone), self.cheapest(modules)]

    def cheapest(self, names):
        return varied(sorted(names, key=lambda name: (self.coverage.seconds[name], name)))

    def of(self, fault):
        """(C tests, Python cases): those that ran the line, and then those that are about its file."""
        c_tests, cases = self.profiled(fault)
        if self.about:
            cases = list(dict.fromkeys(cases + self.about.of(fault)))
        return c_tests, cases[:MOST_CASES]

    def profiled(self, fault):
        if fault.file.startswith("templates/"):
            c_tests, (alone, modules) = self.of_template(fault)
            alone = within(alone, MOST_PROFILED // 2, self.coverage.seconds)
            return c_tests, alone + within(modules, MOST_PROFILED - len(alone), self.coverage.seconds)
        ran = self.coverage.of_line(fault.file, fault.line)
        if not ran and fault.where == "enum":
            ran = self.coverage.of_file(fault.file)
        stem = Path(fault.file).stem
        named = [name for name in (stem, f"runtime_{stem}") if name in self.c_tests]  # has inline code of its own
        named += [name for name in about.tests_about(fault.file)[0] if name in self.c_tests and name not in ran]
        found = named + [name for name in ran if name not in named]
        if fault.file.startswith("runtime/"):
            found += [name for name in THREADS if name not in found]
        c_tests = [name for name in found if name in self.c_tests and name not in TOO_LONG]
        cases = varied([name for name in found if not suite.is_c_test(name)])
        return (within(c_tests, MOST_C_TESTS, self.coverage.seconds), within(cases, MOST_PROFILED, self.coverage.seconds))
