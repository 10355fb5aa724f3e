# SPDX-License-Identifier: MIT
"""What mkdocs.yml leaves to code: the site is README.md, the pages of its navigation, and all files of the sources that
they and the files behind them link to."""
import re
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s#:]+)[^)]*\)")
TITLE = re.compile(r'^(```\w+)((?: \w+="[^"\n]*")+)$', re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def linked(name):
    """Files that a page links to."""
    if name.endswith(".md"):
        text = FENCED.sub("", (ROOT / name).read_text())
        for target in LINK.findall(text):
            path = ((ROOT / name).parent / target).resolve()
            if path.is_file() and path.is_relative_to(ROOT):
                yield str(path.relative_to(ROOT))


def in_navigation(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            yield from (name for below in entry.values() for name in in_navigation(below))


def on_files(files, config):
    names, todo = set(), list(in_navigation(config["nav"]))
    while todo:
        name = todo.pop()
        if name not in names:
            names.add(name)
            todo += linked(name)
    theme = [file for file in files if file.src_dir != config["docs_dir"]]
    return Files([*theme, *(File(name, str(ROOT), config["site_dir"], config["use_directory_urls"]) for name in sorted(names))])


def on_page_markdown(markdown, page, config, files):
    """A fence has attributes for the tests; Python's Markdown knows of none. A title stands above its block."""
    def plain(fence):
        title = re.search(r'title="(.*?)"', fence[2])
        return (f"\n`{title[1]}`:\n\n" if title else "") + fence[1]

    return TITLE.sub(plain, markdown)
