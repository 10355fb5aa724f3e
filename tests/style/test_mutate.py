# SPDX-License-Identifier: MIT
"""tools/mutate plants the faults that it says, catches one that a test sees, and tells one that none does. tools/coverage
finds the errors that nothing reached."""
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from faults import about, candidates, coverage_map, errors, places, suite, trial  # noqa: E402

CODE = """/* SPDX-License-Identifier: MIT */
/* if (comments) hold = nothing; */
#include "most.h"
int clamp(int x, int most) {
  if (x > most) return most;
  return x;
}
"""
TEST = """int clamp(int x, int most);
int main(void) { return clamp(5, 3) == 3 && clamp(1, 3) == 1 ? 0 : 1; }
"""
MESON = """project('tiny', 'c')
test('clamp', executable('clamp_test', 'tests/clamp_test.c', 'compiler/passes/clamp.c'))
"""
FILE = "compiler/passes/clamp.c"


def planted(code, name="compiler/passes/a.c"):
    """kind -> (before, after) of all faults."""
    found = {}
    for place in places.Places(name, f"void f(void) {{\n{code}\n}}\n").places:
        for fault in place:
            found.setdefault(fault.kind, set()).add((fault.before, fault.after))
    return found


@pytest.mark.parametrize("code, kind, before, after", [
    ("n = a < b;", "comparison", "<", "<="),
    ("n = a < b;", "comparison", "<", ">"),
    ("n = a + b;", "operator", "+", "-"),
    ("n = a && b;", "operator", "&&", "||"),
    ("if (!a) g();", "operator", "!", ""),
    ("if (!a) g();", "condition", "(!a)", "(false)"),
    ("g(a, 7);", "constant", "7", "8"),
    ("g(a, 7);", "statement", "g(a, 7);", "{}"),
    ("a->b[3] = x;", "statement", "a->b[3] = x;", "{}"),
    ("team_barrier(team);", "barrier", "team_barrier(team);", "{}"),
    ("atomic_store_explicit(&a, 1, memory_order_release);", "memory order", "memory_order_release", "memory_order_relaxed"),
    ("p += i * s->row_stride;", "stride", "row_stride", "row_stride * 2"),
    ("return min_int(a, b);", "word", "min_int", "max_int"),
])
def test_a_fault_of_each_kind_is_planted(code, kind, before, after):
    assert (before, after) in planted(code)[kind]


@pytest.mark.parametrize("code", [
    "error_at(where, 2, \"%d\", a + 1);",
    "call_bytes(call, 8 * (rows + 1), EXTENTS(n));",
    "/* a = b < 2; */",
    "int buffer[16];",
    "free(memory);",
    "const char *text = \"a + 1 < 2\";",
    "Node *node;",
])
def test_where_a_fault_would_do_nothing_there_is_none(code):
    assert planted(code) == {}


def test_knobs_of_a_template_are_left_alone():
    knobs = "enum { TILE = 4 };\n"
    assert places.Places("templates/a.c", knobs).places == []
    assert [fault.after for fault in places.Places("compiler/passes/a.c", knobs).places[0]] == ["5", "3"]


def test_the_seed_decides_which_faults():
    first, again, other = ([fault.key for fault, _ in zip(places.drawn(ROOT, seed, "pool", lambda fault: True), range(20))]
                           for seed in (1, 1, 2))
    assert first == again and first != other and len(set(first)) == 20
    assert sum(places.quotas(300).values()) == 300


@pytest.fixture
def history(tmp_path):
    """git in a project with one commit of the file, of five lines; returns its path."""
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True,
                       capture_output=True)

    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text("one\ntwo\nthree\nfour\nfive\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    return path, git


def test_lines_since_a_commit_are_those_that_are_new_or_differ(history):
    path, git = history
    root = path.parents[2]
    assert places.changed_lines(root, "HEAD") == {}
    path.write_text("zero\none\ntwo\nthird\nthird, too\nfive\n")
    assert places.changed_lines(root, "HEAD") == {FILE: {1, 4, 5}}
    git("commit", "-qam", "second")
    path.write_text("zero\ntwo\nthird\nthird, too\nfive\n")
    assert places.changed_lines(root, "HEAD") == {FILE: set()}
    assert places.changed_lines(root, "HEAD^") == {FILE: {1, 3, 4}}


def test_of_a_renamed_file_lines_since_a_commit_are_those_that_differ(history):
    path, git = history
    renamed = path.with_name("renamed.c")
    git("mv", str(path), str(renamed))
    renamed.write_text("one\ntwo\nthree\nfour\nsixth\n")
    assert places.changed_lines(path.parents[2], "HEAD") == {"compiler/passes/renamed.c": {5}}


def test_a_commit_that_git_does_not_know_is_a_usage_error():
    done = subprocess.run(["tools/mutate", "--unprofiled", "--since=nosuch"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tools/mutate: --since=nosuch: git knows no such commit\n"


def signatures(path):
    """name -> the text before its body, of the functions of a file of C."""
    found = re.findall(r"^((?:static )?\w[\w *]*?\b(\w+)\([^;{]*\)) \{", path.read_text(), re.MULTILINE)
    return {name: text for text, name in found}


def test_what_only_costs_computes_a_number_and_changes_nothing():
    """It has a result, and gets what it reads as const."""
    listed = places.cost_only()
    assert len(set(listed.values())) > 5
    for file, name in listed:
        found = signatures(ROOT / file)
        assert name == "*" or name in found, f"{file}: {name} is gone; tools/faults/cost_only.txt should not have it"
        for function, text in found.items() if name == "*" else [(name, found[name])]:
            given = text.partition("(")[2]
            # A graph is asked for its nodes' dims, which are kept in tables.
            changed = re.sub(r"const \w+ \*(const \*)?|Graph \*graph|void \*(left|right|spans)|const \w+ \w+\[", "", given)
            assert "*" not in changed, f"{file}: {function} may change what it is given: {text}"
            assert not re.match(r"(static )?void\b", text), f"{file}: {function} has no result: {text}"


def test_a_fault_knows_its_function():
    code = "static int first(int (*of)(int a), int b) {\n  return of(b + 1);\n}\nenum { MOST = 4 };\nint second(void) {\n  return 7;\n}\n"
    named = {fault.line: fault.function for place in places.Places("compiler/passes/a.c", code).places for fault in place}
    assert named == {2: "first", 4: "", 6: "second"}


def test_every_file_has_tests_that_are_about_it():
    files = [file for group in places.GROUPS for file in places.files_of(ROOT, group)]
    for file in files:
        assert about.tests_about(file)[not file.startswith("runtime/")], file
    programs, scripts = zip(*map(about.tests_about, files))
    built = (ROOT / "tests/unit/meson.build").read_text()
    assert all((ROOT / "tests/unit" / f"{name}_test.c").exists() or f"'{name}'" in built for name in sum(programs, []))
    assert all((ROOT / "tests" / name).exists() for name in sum(scripts, []))
    for start in about.TABLE:
        assert any(re.match(start, file) for file in files), f"{start} is no beginning of a file"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A project of one function and one test, and the copy that faults are planted in."""
    root = tmp_path_factory.mktemp("tiny")
    for name, text in {FILE: CODE, "compiler/passes/most.h": "", "tests/clamp_test.c": TEST, "meson.build": MESON}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "tools").mkdir()
    for name in ("build", "programs.sh"):
        shutil.copy(ROOT / "tools" / name, root / "tools" / name)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return trial.Tree(root, tmp_path_factory.mktemp("copy"))


@pytest.fixture
def attempt(tree):
    coverage = coverage_map.CoverageMap({"clamp": 0.1}, {FILE: {"5": ["clamp"], "6": ["clamp"]}}, {FILE: [4, 5, 6]}, {})
    tests = suite.c_tests(tree.build)
    chosen = candidates.Candidates(tree.root, coverage, tests)

    def tried(kind, after):
        fault = next(fault for place in places.Places(FILE, CODE).places for fault in place
                     if (fault.kind, fault.after) == (kind, after))
        return trial.attempt(tree, fault, tests, chosen)

    return tried


def test_a_fault_that_a_test_sees_is_caught(tree, attempt):
    outcome = attempt("comparison", "<")
    assert (outcome.verdict, outcome.by, outcome.tests) == ("caught", "clamp: exit 1", 1)
    assert (tree.root / FILE).read_text() == CODE


def test_a_fault_that_no_test_sees_survives(attempt):
    outcome = attempt("comparison", ">=")  # clamp(3, 3) is 3 either way
    assert (outcome.verdict, outcome.by, outcome.tests) == ("survived", "", 1)


def test_the_test_of_the_same_name_comes_first():
    coverage = coverage_map.CoverageMap({"slow": 2.0, "ring": 9.0, "quick": 1.0}, {FILE: {"5": ["quick", "slow"]}}, {}, {})
    chosen = candidates.Candidates(ROOT, coverage, {"slow": {}, "clamp": {}, "quick": {}, "shipped_records": {}})
    fault = next(fault for place in places.Places(FILE, CODE).places for fault in place)
    assert fault.line == 5 and chosen.of(fault) == (["clamp", "quick", "slow"], [])


CASES = """import time

def test_passes():
    assert True

def test_takes_long():
    until = time.process_time() + 0.5
    while time.process_time() < until:
        pass

def test_fails():
    assert False
"""


@pytest.fixture
def python_cases(tmp_path):
    """What pytest makes of some cases of a file, with so many seconds: (status, what it said)."""
    (tmp_path / ".venv").symlink_to((ROOT / ".venv").resolve())
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    (tmp_path / "test_some.py").write_text(CASES)
    return lambda budget, *names: suite.run_python_cases(tmp_path, tmp_path, [f"test_some.py::test_{name}" for name in names], budget)


def test_cases_run_until_one_fails_or_their_time_is_used_up(python_cases):
    status, said = python_cases(60, "passes", "takes_long", "fails")
    assert status == 1 and "FAILED test_some.py::test_fails" in said and "2 passed" in said
    status, said = python_cases(0.1, "takes_long", "fails")
    assert status == 2 and "1 passed" in said and "failed" not in said
    assert python_cases(60, "passes", "takes_long")[0] == 0


def test_cases_that_are_about_a_file_follow_those_that_ran_the_line():
    class Known:
        def of(self, fault):
            return ["tests/a.py::test_a", "tests/b.py::test_b"]

    coverage = coverage_map.CoverageMap({"tests/b.py::test_b": 2.0}, {FILE: {"5": ["tests/b.py::test_b"]}}, {}, {})
    chosen = candidates.Candidates(ROOT, coverage, {}, Known())
    fault = next(fault for place in places.Places(FILE, CODE).places for fault in place)
    assert chosen.of(fault) == ([], ["tests/b.py::test_b", "tests/a.py::test_a"])


def test_an_endless_loop_is_caught(tree):
    described = suite.c_tests(tree.build)["clamp"] | {"cmd": ["sh", "-c", "while :; do :; done"]}
    assert suite.limited(described["cmd"], 0, 60)[0] < 0


def test_errors_that_nothing_reached_are_told(tmp_path):
    code = 'void f(int a) {\n  if (a) error_at(where, 2, "a is %d", a);\n  fatal_at(where, 2, "no b");\n}\n'
    (tmp_path / "compiler").mkdir()
    (tmp_path / "compiler/f.c").write_text(code)
    # line, column, count, has a count, begins a region, is a gap: clang's segments
    segments = [[1, 15, 7, True, True, False], [2, 10, 0, True, True, False], [2, 47, 7, True, False, False],
                [4, 2, 0, False, False, False]]
    assert errors.unreached(tmp_path, {"compiler/f.c": {"segments": segments}}) == [
        'compiler/f.c:2: no test reaches the error "a is %d"',
        *errors.unreached(tmp_path, {})]
