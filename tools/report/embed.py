#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the page of the reports as C: embed.py page.html page.css SCRIPT.js... > page_parts.h

The page is cut where a program writes its own: before the title, between title and body, between body and data, after the
data."""
import re
import sys
from pathlib import Path

CUTS = re.compile(r"<!-- TITLE -->|<!-- BODY -->|/\* DATA \*/")
LINE = 100  # bytes of a literal: compilers need not take long ones


def quoted(text):
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "?": "\\?"}
    return '"' + "".join(escapes.get(c) or (c if " " <= c <= "~" else "".join(f"\\{b:03o}" for b in c.encode())) for c in text) + '"'


def main():
    page, style, *scripts = (Path(path).read_text(encoding="utf-8") for path in sys.argv[1:])
    page = page.replace("/* STYLE */", style.strip())
    page = page.replace("/* SCRIPT */", "\n".join(script.strip() for script in scripts))
    print("/* Made by tools/report/embed.py. */\nstatic const char *const page_parts[] = {")
    for part in CUTS.split(page):
        lines = [part[i:i + LINE] for i in range(0, len(part), LINE)]
        print("    " + "\n    ".join(map(quoted, lines)) + ",")
    print("};")


main()
