# SPDX-License-Identifier: MIT
"""How many cases of a sweep run: by default some of each kind, in long tests (pytest --long) all; in quick tests
(pytest --quick) conftest.py leaves most of them out."""
import os


def long_tests():
    return bool(os.environ.get("RNNCC_LONG_TESTS"))


def quick_tests():
    return bool(os.environ.get("RNNCC_QUICK_TESTS"))


def some(cases, count):
    """The first `count` of the cases; in long tests all."""
    return cases if long_tests() else cases[:count]


def half(cases, of):
    """Every second case, beginning with the first if `of` is even, else with the second; in long tests all."""
    return cases if long_tests() else cases[of % 2::2]
