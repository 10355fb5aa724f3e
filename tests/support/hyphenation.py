# SPDX-License-Identifier: MIT
"""The held-out words of models/hyphenate.json, what it takes, and what it says of them."""
import numpy

from conftest import ROOT

SLOTS = 16  # words in one run


def held_out_words():
    """Rows of (word, as the patterns break it, as PyTorch breaks it)."""
    lines = (ROOT / "models" / "held_out" / "hyphenate.txt").read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def groups_of(words):
    """Rows that run together."""
    return [words[start:start + SLOTS] for start in range(0, len(words), SLOTS)]


def word_inputs(group):
    """The model's inputs for the words of some rows."""
    lengths = numpy.array([len(word) for word, *_ in group], numpy.int32)
    letters = numpy.zeros((len(group), lengths.max()), numpy.int64)
    for row, (word, *_) in zip(letters, group, strict=True):
        row[:len(word)] = [ord(letter) - ord("a") + 1 for letter in word]
    return {"letters": letters, "lengths": lengths}


def hyphenated(word, probabilities):
    return "".join(letter + "-" * bool(p > 0.5) for letter, p in zip(word, probabilities))


def as_by_patterns(groups, found):
    """For each word of the groups, whether it is hyphenated as the patterns do. found: probabilities, by group."""
    return [hyphenated(row[0], each) == row[1] for group, probabilities in zip(groups, found, strict=True)
            for row, each in zip(group, probabilities)]
