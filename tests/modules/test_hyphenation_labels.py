# SPDX-License-Identifier: MIT
"""Liang's algorithm, which labels the hyphenator's training words, on patterns small enough to check by hand."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "models" / "train"))
from liang import Hyphenator, hyphenated  # noqa: E402  (a script's folder is no package)


@pytest.fixture
def hyphenate(tmp_path):
    def of(word, *patterns):
        path = tmp_path / "patterns.dic"
        path.write_text("\n".join(["UTF-8", "LEFTHYPHENMIN 2", "RIGHTHYPHENMIN 3", *patterns]) + "\n", encoding="utf-8")
        return hyphenated(word, Hyphenator(path).breaks(word))

    return of


def test_the_greatest_digit_at_a_place_decides_and_odd_ones_break(hyphenate):
    # The patterns that apply to Liang's own example (thesis, 1983, chapter 2): hy3phe2n5a4t2io2n.
    patterns = ("hy3ph", "he2n", "hena4", "hen5at", "1na", "n2at", "1tio", "2io", "o2n")
    assert hyphenate("hyphenation", *patterns) == "hy-phen-ation"


def test_dots_tie_a_pattern_to_the_edge_of_a_word(hyphenate):
    assert hyphenate("tetetete", ".te1t") == "te-tetete"
    assert hyphenate("tetetete", "e1tete.") == "tete-tete"
    assert hyphenate("tetetete", "e1te") == "te-te-tete"


def test_two_letters_stay_on_the_left_and_three_on_the_right(hyphenate):
    assert hyphenate("aaaaaaa", "a1") == "aa-a-a-aaa"
    assert hyphenate("aaaa", "a1") == "aaaa"


def test_an_exception_beats_every_other_pattern(hyphenate):
    assert hyphenate("present", "e1s", "s1e", ".pr8e8s8e8nt.") == "present"
    assert hyphenate("table", "b2l", ".ta9b8le.") == "ta-ble"


def test_patterns_of_a_kind_it_does_not_know_are_refused(hyphenate):
    with pytest.raises(AssertionError, match="not a plain pattern"):
        hyphenate("schiffahrt", "schif1fahrt/ff=f,5,2")
