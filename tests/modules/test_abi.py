# SPDX-License-Identifier: MIT
"""Modules and applications of different ages work together while RNNCC_ABI is the same, and say so where it is not.

abi/first_2.txt is rnncc.h as it was when ABI 2 began, abi/pools_2.txt when it got pools. A header of the future is today's
with a field more at the end of each struct, and a later function in the table.
"""
import ctypes
import re
import subprocess

import pytest

from conftest import ROOT, build_directory

RUNTIME, HERE = ROOT / "runtime", ROOT / "tests" / "modules" / "abi"
GROWING = ("tensor", "dim_info", "tensor_info", "state_info", "info", "options", "profile_entry", "pool")
HEADERS = {"first": (HERE / "first_2.txt").read_text(), "pools": (HERE / "pools_2.txt").read_text(),
           "today": (RUNTIME / "rnncc.h").read_text()}
AGES_WITH_POOLS = ("pools", "today", "later")


def grown(header):
    """A header of the future."""
    for name in GROWING:
        header, count = re.subn(rf"}} rnncc_{name};", f"  int64_t later_{name}[3];\n}} rnncc_{name};", header)
        assert count == 1
    header, count = re.subn(r"} rnncc_api;", "  void (*later)(void);\n} rnncc_api;", header)
    assert count == 1
    return header


HEADERS["later"] = grown(HEADERS["today"])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with application-AGE of each header, and module-AGE.so."""
    folder = tmp_path_factory.mktemp("abi")
    for age, header in HEADERS.items():
        (folder / age).mkdir()
        (folder / age / "rnncc.h").write_text(header)
        clang = ["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                 "-Wno-missing-field-initializers", "-pthread", f"-I{RUNTIME}", f"-I{ROOT / 'tests' / 'unit'}"]
        # Other headers include the one beside them, unless this has been.
        clang += ["-include", folder / age / "rnncc.h"]
        for name in ("application", "pool") if age in AGES_WITH_POOLS else ("application",):
            subprocess.run([*clang, HERE / f"{name}.c", "-o", folder / f"{name}-{age}"], check=True)
        if age in ("first", "pools"):
            continue  # their modules had the runtimes of their time
        sources = [ROOT / "tests" / "unit" / "runtime_fake.c", *sorted(RUNTIME.glob("*.c"))]
        subprocess.run([*clang, "-shared", "-fPIC", "-fvisibility=hidden", "-DRNNCC_BUILDING_MODULE", *sources, "-o",
                        folder / f"module-{age}.so"], check=True)
    (folder / "module-older.so").symlink_to(build_directory() / "tests" / "unit" / "runtime_older_module.so")
    return folder


def output(built, application, *modules):
    done = subprocess.run([built / application, *[built / f"module-{module}.so" for module in modules]],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("application", ["first", "pools", "today", "later"])
@pytest.mark.parametrize("module", ["older", "today", "later"])
def test_ages_of_one_abi_work_together(built, application, module):
    text = output(built, f"application-{application}", module)
    assert text == output(built, "application-today", "today")
    assert "dim T: 0 5 16 x1" in text and "state runs: 8 bytes" in text and "leak y: 1 calls, 120 flops" in text
    assert "rank 3, as told: 1" in text


@pytest.mark.parametrize("application", AGES_WITH_POOLS)
@pytest.mark.parametrize("maker, guest", [("today", "later"), ("later", "today")])
def test_modules_of_different_ages_share_a_pool(built, application, maker, guest):
    lines = output(built, f"pool-{application}", maker, guest).splitlines()
    assert lines[0] == "3 threads, 0 waiting, greeted 0 1 1"
    assert lines[1:3] == lines[3:5] and lines[1] == "3 threads, 0 narrowed" and len(lines[2].split()) == 30


@pytest.mark.parametrize("application", AGES_WITH_POOLS)
def test_an_older_module_says_that_it_has_no_pools(built, application):
    assert output(built, f"pool-{application}", "older", "today") == "no pools\n"


@pytest.mark.parametrize("abi, told", [(1, "newer than the application's"), (3, "older than the application's")])
def test_another_abi_is_refused_in_words(built, abi, told):
    query = ctypes.CDLL(str(built / "module-today.so")).rnncc_module_query
    query.restype, why = ctypes.c_void_p, ctypes.c_char_p()
    assert query(ctypes.c_uint32(abi), ctypes.byref(why)) is None
    assert told in why.value.decode()


def structs_of(header):
    """name -> the fields of each struct, in their order."""
    structs = {}
    for body, name in re.findall(r"typedef struct rnncc_\w+ {(.*?)\n} (rnncc_\w+);", header, re.DOTALL):
        structs[name] = fields = []
        for line in re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(";"):
            pointer = re.search(r"\(\*(\w+)\)\(", line)
            fields += [pointer[1]] if pointer else re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", line.strip())
        assert fields, name
    return structs


@pytest.mark.parametrize("age", ["first", "pools"])
def test_structs_begin_as_they_did(age, tmp_path):
    """Every field of the older header is where it was, and so are the codes of types and statuses. No other is within its
    structs' sizes, in their padding, of which an older caller sets nothing."""
    checks, today = [], structs_of(HEADERS["today"])
    for name, fields in structs_of(HEADERS[age]).items():
        checks += [f"static_assert(offsetof(now::{name}, {field}) == offsetof(then::{name}, {field}) && "
                   f"sizeof(now::{name}::{field}) == sizeof(then::{name}::{field}));" for field in fields]
        checks += [f"static_assert(offsetof(now::{name}, {field}) >= sizeof(then::{name}));"
                   for field in today[name] if field not in fields and not field.startswith("unused")]
    for code in re.findall(r"^  (RNNCC_\w+) = ", HEADERS[age], re.MULTILINE):
        checks.append(f"static_assert(int(now::{code}) == int(then::{code}));")
    (tmp_path / "then.h").write_text(HEADERS[age])
    source = ["#include <cstddef>", "#include <cstdint>", "#define rnncc_module_query rnncc_first_query",
              "namespace then {", '#include "then.h"', "}", "#undef rnncc_module_query",
              "#undef RNNCC_H", "#undef RNNCC_ABI", "#undef RNNCC_MAX_RANK", "#undef RNNCC_DYNAMIC", "#undef RNNCC_HAS",
              "namespace now {", f'#include "{RUNTIME / "rnncc.h"}"', "}", *checks]
    (tmp_path / "same.cc").write_text("\n".join(source) + "\n")
    subprocess.run(["clang-19", "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof", tmp_path / "same.cc"],
                   check=True)
    assert len(checks) > 100
