# SPDX-License-Identifier: MIT
"""README.md and the pages of tools/docs, and the programs in them."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "tools" / "docs"
README = ROOT / "README.md"


def all_pages():
    return [README, *sorted(DOCS.glob("*.md"))]


def text(name):
    return (DOCS / f"{name}.md").read_text()


def block(name, language):
    """The page's one block of that language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text(name), re.MULTILINE | re.DOTALL)
    return found


def program(page, title):
    """The block of that title: ```c title="digit.c"."""
    return programs(text(page))[title]


def programs(of_page):
    return dict(re.findall(r"^```\w+ title=\"(.*?)\"\n(.*?)^```$", of_page, re.MULTILINE | re.DOTALL))
