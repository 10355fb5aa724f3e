# SPDX-License-Identifier: MIT
"""Each message that the page of errors quotes is one of the compiler's, the runtime's or the tools'."""
import functools
import re

from conftest import ROOT
from support import pages

SOURCES = [("compiler", "**/*.[ch]"), ("compiler", "**/*.def"), ("runtime", "**/*.[ch]"), ("tools/command", "*.c"),
           ("tools/rnnrun", "*.c"), ("runtime/bindings", "**/*.py"), ("runtime/bindings", "**/*.hpp")]
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+|what|CLANG_PACKAGES)?\s*"(?:[^"\\\n]|\\.)*")*')
DIRECTIVE = re.compile(r"%[-+0-9.*]*(?:l|ll|z|j)?[a-zA-Z]|\{[^{}]*\}")
GAP = "\0"
LEAST = 12  # characters of a message that are its own


def as_text(literals):
    """Adjacent literals as one, what is formatted as a gap."""
    joined = re.sub(r'"\s*(?:PRI\w+|what|CLANG_PACKAGES)\s*"', GAP, literals)
    joined = re.sub(r'"\s*"', "", joined)[1:-1]
    return DIRECTIVE.sub(GAP, joined.replace('\\"', '"').replace("%%", "%"))


@functools.cache
def messages():
    found = set()
    for folder, pattern in SOURCES:
        for path in (ROOT / folder).glob(pattern):
            found |= {as_text(literals[0]) for literals in LITERALS.finditer(path.read_text())}
    return sorted(found)


def quoted():
    return re.findall(r"^### `(.*)`$", pages.text("faq"), re.MULTILINE)


def is_said(message):
    """Whether one message of the sources has its parts in their order."""
    pattern = re.compile(".*".join(re.escape(part.strip()) for part in message.split("...")), re.DOTALL)
    return any(pattern.search(said) for said in messages())


def test_messages_of_the_page_are_those_of_the_sources():
    assert len(quoted()) >= 20
    for message in quoted():
        assert sum(len(part.strip()) for part in message.split("...")) >= LEAST, message
        assert is_said(message), message


def test_a_message_that_nobody_says_is_found():
    assert not is_said("the model has no named dimension ...")
    assert not is_said("was compiled for ..., but ... is")
