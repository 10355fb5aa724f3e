# SPDX-License-Identifier: MIT
"""Where small faults can be planted, and which.

None is planted in what is said to people, in directives, in what the preprocessor left out, or where it would do nothing by
construction: the knobs of a template, which the specialiser overwrites; memory that is given back; what a call is said to
cost; checks of our own mistakes that never fail.
"""
import collections
import hashlib
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from faults.tokens import DIAGNOSTICS, closing, tokens_of

# Kinds of code, the files, and how many of a hundred faults they get.
GROUPS = {
    "passes": (20, ["compiler/passes/*.c", "compiler/program/*.c", "compiler/layout/*.c", "compiler/reroll/*.c",
                    "compiler/expand/*.c"]),
    "kernels": (25, ["compiler/kernels/*/*.c"]),
    "specialiser": (5, ["compiler/template/*.c"]),
    "differentiate": (5, ["compiler/differentiate/*.c"]),
    "emit": (5, ["compiler/emit/*.c"]),
    "link": (5, ["compiler/link/*.c"]),
    "quantise": (5, ["compiler/quantise/*.c"]),
    "templates": (20, ["templates/*.[ch]", "templates/parts/*.h", "templates/simd/math.h", "templates/simd/pow.h",
                       "templates/simd/trig.h", "templates/simd/plain.h", "templates/simd/avx2.h",
                       "templates/simd/avx512.h", "templates/simd/int8_plain.h", "templates/simd/int8_avx2.h"]),
    "pool": (10, [f"runtime/{name}" for name in
                  ("pool.c", "epoch.c", "turns.c", "team.c", "team.h", "tree.h", "ring.h", "wave.h", "fork_guard.c",
                   "shared_pool.c", "steps.c", "fiber.c", "steer.c")]),
}

COMPARISONS = {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="]}
OPERATORS = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "&&": "||",
             "||": "&&", "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|="}
WORDS = {"true": "false", "false": "true", "continue": "", "min_int": "max_int", "max_int": "min_int",
         "min_i64": "max_i64", "max_i64": "min_i64", "min_double": "max_double", "max_double": "min_double",
         "vmin": "vmax", "vmax": "vmin"}
ORDERS = {f"memory_order_{order}" for order in ("acquire", "release", "acq_rel", "seq_cst")}
BARRIER = re.compile(r"(^|_)(barrier|fence|wait|wake|arrive|publish|meet|epoch|lock|unlock)(_|$)")
STRIDE = re.compile(r"stride|pitch|leading|(row|plane|panel|step|block)_(bytes|size|elements|floats)", re.IGNORECASE)
TOLD = re.compile(r"(dump|explain)_")  # functions that tell people about a program
KEYWORDS = {"return", "case", "sizeof", "else", "do", "goto", "if", "for", "while", "switch"}
COST_ONLY = Path(__file__).with_name("cost_only.txt")
HARMLESS = {"free", "arena_free", "munmap", "close", "fclose", "closedir", "assert", "prefetch", "vprefetch", "va_end"}


def digest_of(*parts):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


@dataclass(slots=True)
class Fault:
    place: str  # a digest of the line and the kind: it stays what it is when other lines change
    file: str
    line: int
    kind: str
    start: int  # what is replaced, in the file
    before: str
    after: str
    where: str  # function, or enum
    function: str = ""  # its name

    @property
    def key(self):
        return digest_of(self.place, self.after)[:12]

    def as_dict(self):
        return {"key": self.key, **asdict(self)}


class Places:
    """All faults of one file, grouped by the place where they would be."""

    def __init__(self, name, text):
        self.name, self.text, self.tokens, self.places = name, text, tokens_of(text), []
        self.is_template = name.startswith("templates/")
        self.lines, self.seen = text.splitlines(), collections.Counter()
        for index, token in enumerate(self.tokens[1:-1], 1):
            told = token.said or TOLD.match(token.function)
            if not told and token.where != "data" and not (self.is_template and token.where == "enum"):
                self.look(index, token)

    def add(self, kind, first, last, *replacements):
        before = self.text[first.start:last.end]
        same = (self.name, self.lines[first.line - 1].strip(), kind, before)
        self.seen[same] += 1
        place = digest_of(*same, self.seen[same])
        self.places.append([Fault(place, self.name, first.line, kind, first.start, before, after, first.where,
                                  first.function)
                            for after in replacements])

    def look(self, index, token):
        before, after = self.tokens[index - 1], self.tokens[index + 1]
        if token.kind == "number":
            self.constant(token, before, after)
        elif token.where != "function":
            return
        elif token.text in ORDERS:
            self.add("memory order", token, token, "memory_order_relaxed")
        elif token.text in WORDS:
            self.add("word", token, token, WORDS[token.text])
        elif token.text == "if" and after.text == "(":
            self.condition(index)
        elif token.kind == "word" and STRIDE.search(token.text):
            self.stride(token, before, after)
        elif token.text in COMPARISONS and token.spaced:
            self.add("comparison", token, token, *COMPARISONS[token.text])
        elif token.text in OPERATORS and token.spaced and self.is_operand(before):
            self.add("operator", token, token, OPERATORS[token.text])
        elif token.text == "!":
            self.add("operator", token, token, "")
        if token.kind == "word" and token.where == "function" and before.text in (";", "{", "}", ")", "else"):
            self.statement(index)

    @staticmethod
    def is_operand(token):
        return token.text in (")", "]") or (token.kind in ("word", "number") and token.text not in KEYWORDS)

    def constant(self, token, before, after):
        only = before.text == "{" and after.text == "}"  # of `= {0}`
        declared = before.text == "[" and after.text == "]" and self.declares(token)
        if only or declared:
            return
        if re.fullmatch(r"\d+", token.text):
            value = int(token.text)
            others = [value + 1, value - 1] if value else [1]
            self.add("constant", token, token, *map(str, others))
        elif re.search(r"[.pP]", token.text):
            self.add("constant", token, token, f"({token.text} * 1.5f)")

    def declares(self, token):
        line = self.text[self.text.rfind("\n", 0, token.start) + 1:token.start]
        return re.match(r"\s*(static |const )*\w+ \**\w+\[$", line)

    def stride(self, token, before, after):
        read = before.text in ("*", "+", "(", "->", ".", ",", "=", "return")
        if read and after.text in (")", "]", ";", ",", "+", "-", "*") and not (before.text == "*" and not before.spaced):
            self.add("stride", token, token, f"{token.text} * 2")

    def condition(self, index):
        last = closing(self.tokens, index + 1)
        if last is None or self.tokens[last + 1].text in ("bug", "bug_at"):
            return
        first, end = self.tokens[index + 1], self.tokens[last]
        if first.parentheses == 1:  # not in a macro's argument
            self.add("condition", first, end, "(true)", "(false)")

    def statement(self, index):
        """A call, or an assignment, that stands alone."""
        tokens, before = self.tokens, self.tokens[index - 1]
        if tokens[index].parentheses or tokens[index].text in HARMLESS | DIAGNOSTICS | KEYWORDS:
            return
        if before.text == ")" and not self.ends_condition(index - 1):
            return
        at = index + 1
        while tokens[at].text in ("->", ".", "[") or (tokens[at].kind == "word" and tokens[at - 1].text in ("->", ".")):
            at = closing(tokens, at) + 1 if tokens[at].text == "[" else at + 1
        if tokens[at].text == "(":
            last, kind = closing(tokens, at), "barrier" if BARRIER.search(tokens[index].text) else "statement"
            if last is None or tokens[last + 1].text != ";":
                return
        elif re.fullmatch(r"[-+*/|&]?=", tokens[at].text):
            last, kind = at, "statement"
            while tokens[last + 1].text != ";":
                last += 1
                if tokens[last].text == "{":
                    return
        else:
            return
        self.add(kind, tokens[index], tokens[last + 1], "{}")

    def ends_condition(self, index):
        """Whether a `)` closes the head of an if, for or while."""
        depth = 0
        for at in range(index, -1, -1):
            depth += (self.tokens[at].text == ")") - (self.tokens[at].text == "(")
            if depth == 0:
                return self.tokens[at - 1].text in ("if", "for", "while")
        return False


def files_of(root, group):
    """Without what only tells people about a program."""
    names = {str(path.relative_to(root)) for pattern in GROUPS[group][1] for path in Path(root).glob(pattern)}
    return sorted(name for name in names if not re.match(r"dump|explain|draw_memory", Path(name).name))


def changed_lines(root, commit):
    """file -> numbers of the lines that are new, or differ, since the commit: in a file that was renamed those that differ,
    in one that git does not have yet none."""
    said = subprocess.run(["git", "diff", "--unified=0", "--find-renames", "--no-color", "--no-ext-diff",
                           "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", commit, "--"],
                          cwd=root, check=True, capture_output=True, text=True).stdout
    lines = {}
    for name, first, count in re.findall(r"^\+\+\+ b/(.*)|^@@ -\S+ \+(\d+)(?:,(\d+))? @@", said, re.MULTILINE):
        if name:
            of_file = lines.setdefault(name, set())
        else:
            of_file.update(range(int(first), int(first) + int(count or 1)))
    return lines


def drawn(root, seed, group, allowed):
    """Yields the group's faults in the order of the seed, one of a place. allowed(fault): whether it may be planted."""
    places = [place for name in files_of(root, group) for place in Places(name, (Path(root) / name).read_text()).places]
    for place in sorted(places, key=lambda place: digest_of(seed, place[0].place)):
        fault = place[int(digest_of(seed, "which", place[0].place), 16) % len(place)]
        if allowed(fault):
            yield fault


def cost_only():
    """(file, function) -> why a fault in it changes no result; function: its name, or *."""
    rows = [line.split("\t") for line in COST_ONLY.read_text().splitlines() if not line.startswith("#")]
    return {(file, function): reason for file, functions, reason in rows for function in functions.split()}


def quotas(count):
    """group -> faults, `count` together."""
    shares = {group: count * share // 100 for group, (share, _) in GROUPS.items()}
    shares["passes"] += count - sum(shares.values())
    return shares
