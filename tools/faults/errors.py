# SPDX-License-Identifier: MIT
"""The errors of the user's input that no test reaches.

unreachable.txt has those for which there is a reason: file, message as it stands in the call, reason, separated by tabs.
"""
import bisect
from pathlib import Path

from faults.tokens import closing, tokens_of

CALLS = {"error_at", "fatal_at"}
REASONS = Path(__file__).with_name("unreachable.txt")


def calls(text):
    """(line, column, message) of each call: the first string of its arguments."""
    tokens = tokens_of(text)
    for index, token in enumerate(tokens):
        if token.text in CALLS and token.where == "function":
            last = closing(tokens, index + 1)
            message = next((t.text for t in tokens[index:last] if t.kind == "string"), "")
            column = token.start - text.rfind("\n", 0, token.start)
            yield token.line, column, message.strip('"')


def count_at(segments, line, column):
    """How often what is at that place ran; None: it is not code here."""
    index = bisect.bisect_right(segments, (line, column), key=lambda segment: (segment[0], segment[1])) - 1
    return segments[index][2] if index >= 0 and segments[index][3] else None


def reasons():
    """(file, message) -> reason."""
    rows = [line.split("\t") for line in REASONS.read_text().splitlines() if line and not line.startswith("#")]
    return {(file, message): reason for file, message, reason in rows}


def unreached(root, files):
    """What is to be told: errors without a test and without a reason, and reasons of errors that are reached."""
    known, told, used = reasons(), [], set()
    for name, file in sorted(files.items()):
        if not name.endswith(".c") or name == "compiler/support/diagnostics.c":
            continue
        for line, column, message in calls((root / name).read_text()):
            if count_at(file["segments"], line, column) == 0:
                used.add((name, message))
                if (name, message) not in known:
                    told.append(f"{name}:{line}: no test reaches the error \"{message}\"")
    told += [f"{name}: the error \"{message}\" is reached, or gone: unreachable.txt should not have it"
             for name, message in known if (name, message) not in used]
    return told
