# SPDX-License-Identifier: MIT
"""The package's README says what happens: its Python runs, in order, and prints the lines beneath it."""
import contextlib
import io
import re

from conftest import ROOT
from support.module import PACKAGE

EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n((?:    [^\n]*\n)+))?", re.DOTALL)


def test_the_examples_print_what_the_readme_says(rnncc, monkeypatch):
    monkeypatch.setenv("RNNCC", str(rnncc.path))
    monkeypatch.chdir(ROOT)
    names, examples = {}, EXAMPLE.findall((PACKAGE / "README.md").read_text())
    for code, printed in examples:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(code, names)
        assert said.getvalue() == re.sub("^    ", "", printed, flags=re.MULTILINE), code
    assert len(examples) == 6


def test_a_first_result_takes_three_lines():
    code, _ = EXAMPLE.findall((PACKAGE / "README.md").read_text())[0]
    assert len(code.splitlines()) == 3
