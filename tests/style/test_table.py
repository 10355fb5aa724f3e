# SPDX-License-Identifier: MIT
"""tests/README.md has a row for every file of tests, and none for a file that is gone."""
import re

from conftest import ROOT

TESTS = ROOT / "tests"
NAMED = re.compile(r"`(\w+/\w+\.(?:py|c))`")


def files_with_tests():
    found = [*TESTS.glob("*/test_*.py"), *TESTS.glob("unit/*_test.c"), *TESTS.glob("modules/*_test.c"),
             TESTS / "conformance" / "run.py"]
    return {str(path.relative_to(TESTS)) for path in found}


def test_the_table_names_every_file_of_tests():
    """Counts names in the columns of the current tests: a name that is struck out was an earlier file."""
    rows = [line.split("|") for line in (TESTS / "README.md").read_text().splitlines() if line.startswith("|")]
    named = {name for row in rows for name in NAMED.findall(row[2])}
    assert files_with_tests() - named == set(), "files without a row"
    assert {name for name in named if not (TESTS / name).exists()} == set(), "rows without a file"
