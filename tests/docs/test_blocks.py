# SPDX-License-Identifier: MIT
"""Each block of code in README.md and the pages of tools/docs runs as it stands, in the order of its page, in a folder that
looks like that of the sources; and prints what the page says."""
import os
import re
import subprocess
import sys

import pytest

import given
from conftest import ROOT, build_directory
from support import amount, pages

RUN = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
FENCES = re.compile(r"^ *```", re.MULTILINE)


@pytest.fixture
def folder(tmp_path):
    """Like that of the sources, but for what is made in it."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith((".", "build")):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "build").symlink_to(build_directory())
    return tmp_path


@pytest.fixture
def environment(folder):
    programs = [build_directory() / "compiler", build_directory() / "tools", ROOT / ".venv" / "bin"]
    return {**os.environ, "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT / "runtime" / "bindings" / "python"), "HOME": str(folder)}


def told(output, expected):
    """Whether the output is that, whose `...` stand for anything."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, output.strip(), re.DOTALL)


def run(block, earlier, folder, environment):
    """The blocks of Python of a page share their names: the earlier ones run again, silently."""
    for name in block.given.split():
        given.make(name, folder)
    code = block.code
    if block.language == "python" and earlier:
        code = f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    exec({''.join(earlier)!r})\n{code}"
    return subprocess.run([*RUN[block.language], code], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=600, check=False)


@pytest.mark.parametrize("page", pages.all_pages(), ids=lambda page: page.stem)
def test_blocks_run_and_print_what_the_page_says(page, folder, environment):
    earlier, done = [], None
    for block in pages.blocks(page.read_text()):
        place = f"{page.name}:{block.line}"
        if block.skip or block.long and not amount.long_tests():
            done = None
        elif block.title:
            (folder / block.title).write_text(block.code)
        elif block.language == "text":
            assert done is None or told(done.stdout, block.code), f"{place}: printed\n{done.stdout}"
        else:
            assert block.language in RUN, f"{place}: expected a title, or skip=, found a block that cannot run"
            done = run(block, earlier, folder, environment)
            assert done.returncode == 0, f"{place}: {done.stdout}{done.stderr}"
            earlier += [block.code] if block.language == "python" else []


@pytest.mark.parametrize("page", pages.all_pages(), ids=lambda page: page.stem)
def test_every_fence_is_a_block_with_a_language(page):
    text = page.read_text()
    assert 2 * len(pages.blocks(text)) == len(FENCES.findall(text))


def test_output_is_compared():
    assert told("a 1 b\n", "a ... b") and not told("a 1 c\n", "a ... b") and not told("a 1 b c\n", "a ... b")
