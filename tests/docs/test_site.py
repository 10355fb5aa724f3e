# SPDX-License-Identifier: MIT
"""The pages are a site that MkDocs builds without a warning: every link has its target, every page is in the navigation."""
import html
import re
import subprocess
import sys

import pytest

from support import machine, pages

machine.need_package("mkdocs")
CODE = re.compile(r"<pre><code.*?>(.*?)</code></pre>", re.DOTALL)
INDENTED = re.compile(r"(?:^|\n)\n(?: {4}.*\n)+")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", pages.DOCS / "mkdocs.yml", "-d", folder],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def made(site, page):
    return (site / "index.html" if page == pages.README else site / "tools" / "docs" / f"{page.stem}.html").read_text()


@pytest.mark.parametrize("page", pages.all_pages(), ids=lambda page: page.stem)
def test_page_is_there_with_its_blocks_of_code(site, page):
    text = made(site, page)
    shown = [html.unescape(code).strip() for code in CODE.findall(text)]
    for block in pages.blocks(page.read_text()):
        assert block.code.strip() in shown, f"{page.name}:{block.line}"
    assert "```" not in text


def test_every_page_is_in_the_navigation(site):
    start = made(site, pages.README)
    for page in pages.all_pages()[1:]:
        assert f'href="tools/docs/{page.stem}.html"' in start


def test_tables_and_pictures_are_shown(site):
    assert "<td><code>-o, --output=PATH</code></td>" in (site / "tools" / "docs" / "options.html").read_text()
    assert (site / "tools" / "docs" / "speed.svg").exists() and 'src="tools/docs/speed.svg"' in made(site, pages.README)
