# SPDX-License-Identifier: MIT
"""C as tokens, with as much of its structure as the search for places of faults needs."""
import re
from dataclasses import dataclass

PATTERN = re.compile(r"""
    (?P<space>\s+|/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\.|[^\n\\])*)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>(?:0[xX](?:[0-9a-fA-F.]|[pP][+-]?)+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|<<|>>|\.\.\.|.)
""", re.DOTALL | re.MULTILINE | re.VERBOSE)

# Calls whose arguments are for people: a fault there changes a message, or what a call is said to cost, of which predictions
# and profiles are made.
DIAGNOSTICS = {"call_flops", "call_flops_of", "call_bytes", "call_bytes_of", "call_touches", "call_products",
               "error_at", "fatal_at", "bug", "bug_at", "warn_at", "note_at", "graph_remark", "static_assert",
               "_Static_assert"}


@dataclass(slots=True)
class Token:
    kind: str  # string, number, word or sign
    text: str
    start: int  # in the file
    line: int
    spaced: bool  # there is space before it and behind it
    where: str = ""  # function, enum, or data: outside both
    function: str = ""  # its name
    parentheses: int = 0  # that are open, in a function
    said: bool = False  # an argument of DIAGNOSTICS

    @property
    def end(self):
        return self.start + len(self.text)


def tokens_of(text):
    tokens, line = [], 1
    for found in PATTERN.finditer(text):
        if found.lastgroup not in ("space", "directive"):
            after = text[found.end():found.end() + 1]
            spaced = text[found.start() - 1:found.start()].isspace() and after.isspace()
            tokens.append(Token(found.lastgroup, found[0], found.start(), line, spaced))
        line += found[0].count("\n")
    place(tokens)
    return tokens


def kind_of_braces(before):
    """What a brace at the top level opens, by the tokens before it."""
    if before and before[-1].text == ")":
        return "function"
    for token in reversed(before):
        if token.text in (";", "}", "=", "(", ")"):
            return "data"
        if token.text == "enum":
            return "enum"
    return "data"


def name_of_function(before):
    """Of what a brace behind `name(...)` opens."""
    depth = 0
    for index in range(len(before) - 1, 0, -1):
        depth += (before[index].text == ")") - (before[index].text == "(")
        if depth == 0:
            return before[index - 1].text
    return ""


def place(tokens):
    """Sets where, function, parentheses and said."""
    depth, where, function, parentheses, said = 0, "data", "", 0, None
    for index, token in enumerate(tokens):
        if token.text == "{":
            if depth == 0:
                where = kind_of_braces(tokens[max(0, index - 8):index])
                function = name_of_function(tokens[:index]) if where == "function" else ""
            depth += 1
        elif token.text == "}":
            depth -= 1
            where = where if depth else "data"
        parentheses += (token.text == "(") - (token.text == ")")
        if said is None and token.text == "(" and tokens[index - 1].text in DIAGNOSTICS:
            said = parentheses
        token.where, token.parentheses, token.said = where, parentheses, said is not None
        token.function = function if where == "function" else ""
        if said is not None and parentheses < said:
            said = None


def closing(tokens, index):
    """The index of what closes the bracket there."""
    pairs, depth = {"(": ")", "[": "]", "{": "}"}, 0
    opens, closes = tokens[index].text, pairs[tokens[index].text]
    for at in range(index, len(tokens)):
        depth += (tokens[at].text == opens) - (tokens[at].text == closes)
        if depth == 0:
            return at
    return None
