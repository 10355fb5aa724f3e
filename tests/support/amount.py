# SPDX-License-Identifier: MIT
"""How many cases of a sweep run: by default some of each kind, in long tests (pytest --long) all; in quick tests
(pytest --quick) conftest.py leaves most of them out."""
import os
import zlib


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


def one_of(count, content):
    """Whether these bytes are of the one of so many that is chosen: cases that share a model agree."""
    return zlib.crc32(content) % count == 0
