# SPDX-License-Identifier: MIT
"""The programs, which read files of strangers, are built so that what is overwritten ends them."""
import platform
import re
import subprocess

import pytest

from conftest import build_directory

pytestmark = pytest.mark.unsanitized  # of which _FORTIFY_SOURCE would be no part

PROGRAMS = ["compiler/rnncc", "tools/rnnrun"]


def readelf(option, program):
    return subprocess.run(["readelf", option, build_directory() / program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_position_independent_and_its_tables_are_read_only(program):
    headers, dynamic = readelf("-lW", program), readelf("-dW", program)
    assert re.search(r"\(FLAGS\) .*BIND_NOW", dynamic) and re.search(r"\(FLAGS_1\) .*NOW.* PIE", dynamic)
    assert "GNU_RELRO" in headers and "TEXTREL" not in dynamic
    assert re.search(r"GNU_STACK .* RW ", headers)
    assert "RWE" not in headers


@pytest.mark.parametrize("program", PROGRAMS)
def test_its_stack_and_its_arrays_are_guarded(program):
    """Functions of libc that know how much room there is, such as __memcpy_chk, and the one that a broken guard calls."""
    wanted = subprocess.run(["nm", "-D", "--undefined-only", build_directory() / program], capture_output=True, text=True, check=True).stdout
    assert "__stack_chk_fail" in wanted
    assert len(set(re.findall(r"__\w+_chk\b", wanted))) >= 3


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not x86-64")
@pytest.mark.parametrize("program", PROGRAMS)
def test_its_functions_begin_where_a_call_may_go(program):
    """Control-flow enforcement: each function whose address is taken begins with endbr64."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", build_directory() / program], capture_output=True, text=True, check=True).stdout
    main = re.search(r"<main>:\n\s*\w+:\s+(\w+)", text)
    assert main and main[1] == "endbr64"
