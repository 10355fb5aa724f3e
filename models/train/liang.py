# SPDX-License-Identifier: MIT
"""Liang's hyphenation algorithm over a pattern file of the hyphen library (Debian's hyph_en_US.dic).

A pattern is letters with digits between them: `hy3ph` says 3 for the place after "hy" wherever "hyph" occurs; `.`
stands for a word's edge. Of all the digits that fall on one place the greatest wins, and an odd one allows a break.
Exceptions are patterns too: whole words between dots, with 8 (never) and 9 (always), which no other digit beats.

F. M. Liang, Word Hy-phen-a-tion by Com-put-er, Stanford 1983.
"""

import re


class Hyphenator:
    def __init__(self, path):
        self.left_minimum, self.right_minimum = 2, 3  # letters that stay together at the word's edges
        self.levels = {}  # pattern letters -> one digit before each letter and one after the last
        with open(path, encoding="utf-8") as lines:
            assert next(lines).strip() == "UTF-8", path
            for line in lines:
                self._read(line.strip())
        self.longest = max(map(len, self.levels))

    def _read(self, line):
        if line.startswith("LEFTHYPHENMIN"):
            self.left_minimum = int(line.split()[1])
        elif line.startswith("RIGHTHYPHENMIN"):
            self.right_minimum = int(line.split()[1])
        elif line and not line.startswith(("%", "#")):
            # Fail on what this reader does not know: replacements (a/b=c,1,2), NEXTLEVEL, compound words.
            assert not re.search(r"[A-Z/=,\s]", line), f"{line}: not a plain pattern"
            digits, letters = [0], ""
            for character in line:
                if character.isdigit():
                    digits[-1] = int(character)
                else:
                    letters += character
                    digits.append(0)
            self.levels[letters] = digits

    def breaks(self, word):
        """For each letter of a lower-case word: 1 if the word may break after it."""
        edged = f".{word}."
        values = [0] * (len(edged) + 1)
        for start in range(len(edged)):
            for end in range(start + 1, min(start + self.longest, len(edged)) + 1):
                for offset, digit in enumerate(self.levels.get(edged[start:end], ())):
                    values[start + offset] = max(values[start + offset], digit)
        # values[k] stands before edged[k], so after letter i (edged[i + 1]) stands values[i + 2].
        first, last = self.left_minimum - 1, len(word) - self.right_minimum - 1
        return [values[i + 2] % 2 if first <= i <= last else 0 for i in range(len(word))]


def hyphenated(word, breaks, mark="-"):
    return "".join(letter + mark * bool(after) for letter, after in zip(word, breaks))
