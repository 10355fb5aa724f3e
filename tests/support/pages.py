# SPDX-License-Identifier: MIT
"""README.md and the pages of tools/docs, and the blocks of code in them."""
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "tools" / "docs"
README = ROOT / "README.md"
BLOCK = re.compile(r'^```(\w+)((?: \w+="[^"\n]*")*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """```sh skip="needs a board"; title: the file that it becomes; given: files that the reader has, which
    tests/docs/given.py makes; long: why only --long runs it."""
    language: str
    code: str
    line: int
    title: str = ""
    skip: str = ""
    given: str = ""
    long: str = ""


def all_pages():
    return [README, *sorted(DOCS.glob("*.md"))]


def text(name):
    return (DOCS / f"{name}.md").read_text()


def blocks(of_page):
    return [Block(found[1], found[3], of_page[:found.start()].count("\n") + 1, **dict(re.findall(r'(\w+)="(.*?)"', found[2])))
            for found in BLOCK.finditer(of_page)]


def block(name, language):
    """The page's one block of that language."""
    (found,) = [one.code for one in blocks(text(name)) if one.language == language]
    return found


def programs(of_page):
    return {one.title: one.code for one in blocks(of_page) if one.title}


def program(page, title):
    return programs(text(page))[title]
