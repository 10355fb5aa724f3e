# SPDX-License-Identifier: MIT
"""The style rules that a machine can check. A case is a folder and a rule: one process checks many files faster."""
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("compiler", "models", "runtime", "templates", "tests", "tools")
LICENCE = "/* SPDX-License-Identifier: MIT */\n"


def folders(rooms, *suffixes):
    """The files with these suffixes, by folder."""
    found = defaultdict(list)
    for path in sorted(path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in suffixes):
        found[str(path.parent.relative_to(ROOT))].append(str(path.relative_to(ROOT)))
    return [pytest.param(files, id=folder) for folder, files in found.items()]


def check(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("files", folders(ROOMS, ".c", ".h"))
def test_clang_format_would_change_nothing(files):
    check("clang-format-19", "--dry-run", "-Werror", *files)


@pytest.mark.parametrize("files", folders(ROOMS, ".c", ".h"))
def test_first_line_names_the_licence(files):
    assert [path for path in files if not (ROOT / path).read_text().startswith(LICENCE)] == []


@pytest.mark.parametrize("files", folders(ROOMS, ".def"))
def test_lines_of_tables_have_at_most_120_columns(files):
    """clang-format, which holds other files to that, would break the rows of a table."""
    lines = [(path, number, line) for path in files for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)]
    assert [f"{path}:{number}" for path, number, line in lines if len(line) > 120] == []


def test_the_build_lists_all_files_of_the_runtime():
    """The runtime that is compiled with rnncc is made again when one of them changes: its digest is of all."""
    lists = re.findall(r"^runtime_(?:sources|headers) = files\((.*?)\)", (ROOT / "runtime" / "meson.build").read_text(),
                       re.DOTALL | re.MULTILINE)
    files = [path.name for path in (ROOT / "runtime").iterdir() if path.suffix in (".c", ".h", ".def")]
    assert sorted(re.findall(r"'(.*?)'", "".join(lists))) == sorted(files)


def test_include_guards_are_unique():
    """If two headers have the same guard, a file that includes both gets only the first."""
    guards = defaultdict(list)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.h"):
            for guard in re.findall(r"^#ifndef (\w+)\n#define \1$", path.read_text(), re.MULTILINE)[:1]:
                guards[guard].append(str(path.relative_to(ROOT)))
    assert {guard: paths for guard, paths in guards.items() if len(paths) > 1} == {}


COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
ELSEWHERE = {"posix_spawn", "clang_visitChildren", "network.c", "network_x86_64_v3.c", "immintrin.h", "elf.h", "futex.h", "pool_attributes.h",
             "riscv_vector.h", "cmocka.h"}  # of other projects, and files that rnncc writes


def test_comments_name_functions_and_files_that_there_are():
    texts = {path: path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".c", ".h", ".def")}
    there = {path.name for room in ROOMS for path in (ROOT / room).rglob("*.*")} | ELSEWHERE
    for text in texts.values():
        there.update(re.findall(r"\w+", COMMENT.sub(" ", text)))
    named = [(path, name) for path, text in texts.items() for comment in COMMENT.findall(text)
             for name in re.findall(r"\b([a-z]\w*)\(\)|(?<![.<])\b(\w+\.(?:c|h|def|py))\b", comment) for name in name if name]
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in named if name not in there] == []


@pytest.mark.parametrize("files", folders(["compiler", "runtime", "tools"], ".c"))
def test_clang_tidy_finds_nothing(files):
    check("clang-tidy-19", "-p", "build", "--quiet", *files)


# Programs of tests are built in many ways, some more than once: what any of them needs. Of these macros no value matters.
MACROS = ["_GNU_SOURCE", "SIMD_PLAIN", "RNNCC_MUTABLE", *(f'{name}=""' for name in ("TEST_DATA", "INTRINSICS", "UNIT_HEADERS", "EXPORTS", "CLANG", "RNNCC_FUZZ_FOLDER"))]
INCLUDED = ["runtime", "templates", "tests/unit", "tools", "tools/command", "tools/rnnrun", "/usr/include/cjson"]
SYSTEM = ["compiler", "build/compiler", "/usr/lib/llvm-19/include"]  # as the build has it


@pytest.fixture(scope="module")
def written(rnncc, tmp_path_factory):
    """Headers that tests have rnncc write, or write themselves."""
    folder = tmp_path_factory.mktemp("written")
    for options in (["--profile=edge", "--dim=B=1", "-o", folder / "digits_rnn.h"], ["--name=digits", "-o", folder / "digits.h"]):
        done = rnncc(ROOT / "models" / "digits_rnn.json", "--emit=h", *options)
        assert done.returncode == 0, done.stderr
    (folder / "image.h").write_text("static const float image[] = {0};\n")
    return folder


@pytest.mark.parametrize("files", [folder for folder in folders(["tests"], ".c") if folder.id != "tests/unit/data/templates"])
def test_clang_tidy_finds_nothing_in_tests(files, written):
    check("clang-tidy-19", "--quiet", *files, "--", "-std=gnu11", *(f"-D{macro}" for macro in MACROS),
          *(f"-I{folder}" for folder in [*INCLUDED, written]), *(f"-isystem{folder}" for folder in SYSTEM))
