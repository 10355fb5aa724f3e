# SPDX-License-Identifier: MIT
"""Which test cases are about an operator: pytest's --op=NAME, for `tools/test --op NAME`.

These are the cases whose names have the operator's, as `Softmax` in brackets or `softmax` in a function's name. If there are
none, it is whole files: those that build nodes of it, or import a table of models that does.
"""
import re
from functools import lru_cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


@lru_cache(maxsize=None)
def snake(op):
    """ReduceMean: reduce_mean. DFT: dft."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()


def is_named(nodeid, op):
    """Whether there is the text is asked first: a search is a hundred times as dear."""
    function, _, case = nodeid.partition("[")
    return bool(op in case and re.search(rf"(?<![A-Za-z0-9_]){op}(?![A-Za-z0-9])", case) or
                snake(op) in function and re.search(rf"(?<![a-z0-9]){snake(op)}s?(?![a-z0-9])", function))


@lru_cache(maxsize=None)
def built(path):
    """What the file of tests, and the models that it imports, have as strings and names of enumerations."""
    text = path.read_text()
    modules = re.findall(r"^from (\w+)\.(\w+_models) import", text, re.MULTILINE)
    files = [TESTS / folder / f"{name}.py" for folder, name in modules]
    text = "\n".join([text, *(file.read_text() for file in files if file.exists())])
    return set(re.findall(r"[\"'.](\w+)", text))


def about(cases, op):
    """Of cases, (path of the file, name of the case), those that are about the operator: none about style."""
    cases = [case for case in cases if case[0].parent.name != "style"]
    return [case for case in cases if is_named(case[1], op)] or [case for case in cases if op in built(case[0])]
