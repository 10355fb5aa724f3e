# SPDX-License-Identifier: MIT
"""The objects that the tests keep are those of clang itself."""
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from support.amount import some
from support.clang import BUILD, ROOT, WITHOUT_PASSES, cached_clang, clang_name, prune

GNU_LINKER = "ld.gold" if os.access("/usr/bin/ld.gold", os.X_OK) else "ld.bfd"


@pytest.fixture
def unit(rnncc, root, tmp_path):
    """unit(target, *options) -> the folder of a small model's C."""

    def written(target, *options):
        model = root / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json"
        done = rnncc(model, "--emit=c", "-o", tmp_path / target, f"--target={target}", *options)
        assert done.returncode == 0, done.stderr
        return tmp_path / target

    return written


def objects_of(unit, clang, cache, level="-O0"):
    """The bytes of network.o and runtime.o, made as build_module() makes them, but for the level: what is kept does not depend
    on it."""
    makefile = dict(line.split(" = ", 1) for line in (unit / "Makefile").read_text().splitlines() if " = " in line)
    made = []
    for name in ("network", "runtime"):
        flags = makefile["KERNEL_FLAGS" if name == "network" else "RUNTIME_FLAGS"].replace("-O3", level).split()
        subprocess.run([clang, *flags, *makefile["CLANG_FLAGS"].split(), "-I.", "-c", f"{name}.c", "-o", f"{name}.o"], cwd=unit, check=True,
                       env=os.environ | cached_clang(cache))
        made.append((unit / f"{name}.o").read_bytes())
    return made


@pytest.mark.optimised
@pytest.mark.parametrize("target", some(["x86-64-v3", "aarch64-linux-gnu", "x86-64-v4", "x86-64"], 1))
def test_a_kept_object_is_clangs_own(unit, tmp_path, target):
    folder, cache = unit(target), tmp_path / "cache"
    clang = cached_clang(cache)["RNNCC_CLANG"]
    expected = objects_of(folder, clang_name(), cache, "-O3")
    assert not list(cache.iterdir()), "clang itself keeps nothing"
    assert objects_of(folder, clang, cache, "-O3") == expected
    assert len(list(cache.glob("*.o"))) == 2
    assert objects_of(folder, clang, cache, "-O3") == expected
    assert len(list(cache.glob("*.o"))) == 2

# ---- precompiled headers ----

CACHED = cached_clang()["RNNCC_CLANG"]
OFTEN_INCLUDED = {"knobs.h": "KNOBS_H", "simd/math.h": "SIMD_MATH_H", "panel_narrow.h": "PANEL_NARROW_H"}


@pytest.fixture
def apart(rnncc, root, tmp_path):
    """apart(clang, target, change of the text) -> what it does with a unit whose headers are not beside it: they are copies of
    rnncc's, and a libc's of our own is before the system's."""
    for name in ("templates", "runtime"):
        shutil.copytree(root / name, tmp_path / "rnncc" / name)
    (tmp_path / "libc").mkdir()
    (tmp_path / "libc" / "stdint.h").write_text("#include_next <stdint.h>\n")
    (tmp_path / "unit").mkdir()

    def compiled(clang, target="x86-64-v3", change=str):
        folder = tmp_path / f"c-{target}"
        if not folder.exists():
            done = rnncc(root / "models" / "digits_rnn.json", "--emit=c", "-o", folder, f"--target={target}")
            assert done.returncode == 0, done.stderr
        words = re.findall("^(?:KERNEL|CLANG)_FLAGS = (.*)$", (folder / "Makefile").read_text(), re.MULTILINE)
        flags = " ".join(words).replace("-O3", "-O0").split()
        shutil.copy(folder / "weights.bin", tmp_path / "unit")
        (tmp_path / "unit" / "network.c").write_text(change((folder / "network.c").read_text()))
        includes = [f"-I{tmp_path}/rnncc/runtime", f"-I{tmp_path}/rnncc/templates", "-isystem", tmp_path / "libc"]
        return subprocess.run([clang, *flags, *includes, "-I.", "-c", "network.c", "-o", "network.o"], cwd=tmp_path / "unit",
                              capture_output=True, text=True, env=os.environ | cached_clang(tmp_path / "cache"))

    return compiled


def succeeded(done):
    assert (done.returncode, done.stderr) == (0, "")


def precompiled(tmp_path):
    return set((tmp_path / "cache").glob("headers-*.pch"))


@pytest.mark.parametrize("target", some(["x86-64-v3", "aarch64-linux-gnu+sve256", "riscv64-linux-gnu+rvv128"], 2))
def test_precompiled_headers_change_no_bit(apart, tmp_path, target):
    made = []
    for clang in (clang_name(), CACHED):
        succeeded(apart(clang, target))
        made.append((tmp_path / "unit" / "network.o").read_bytes())
    assert made[0] == made[1] and len(precompiled(tmp_path)) == 1


@pytest.mark.parametrize("header", OFTEN_INCLUDED)
def test_a_unit_has_no_precompiled_header_that_it_does_not_include(apart, header):
    """Else tests would not see that it lacks one."""
    def asking(text):
        headers = text.partition("/* ---- kernel 0")[0]
        for name in ("panel.h", "simd/simd.h", *OFTEN_INCLUDED):
            headers = headers.replace(f'#include "{name}"\n', "")
        return f"{headers}#ifndef {OFTEN_INCLUDED[header]}\n#error lacking\n#endif\n"

    assert f"#define {OFTEN_INCLUDED[header]}" in (ROOT / "templates" / header).read_text()
    succeeded(apart(CACHED))
    assert "#error lacking" in apart(CACHED, change=asking).stderr


def test_a_changed_header_is_precompiled_anew(apart, tmp_path):
    succeeded(apart(CACHED))
    header = tmp_path / "rnncc" / "templates" / "knobs.h"
    first, rest = header.read_text().split("\n", 1)
    header.write_text(f"{'#error changed':{len(first)}}\n{rest}")  # clang itself sees a change of the size
    done = apart(CACHED)
    assert done.returncode == 1 and "#error changed" in done.stderr


def test_headers_beside_the_unit_are_not_precompiled(unit, tmp_path):
    """They are of one folder, which may soon be gone."""
    objects_of(unit("x86-64"), CACHED, tmp_path / "cache")
    assert not precompiled(tmp_path)


def test_headers_of_the_system_may_change(apart, tmp_path):
    """They are not part of what is kept: another libc makes no other module."""
    succeeded(apart(CACHED))
    before = precompiled(tmp_path)
    with open(tmp_path / "libc" / "stdint.h", "a") as header:
        header.write("/* newer */\n")
    for number in range(3):
        succeeded(apart(CACHED, change=lambda text: f"{text}int other_{number};\n"))
    assert precompiled(tmp_path) == before


@pytest.mark.parametrize("change", [lambda header: header.write_text("#include_next <stdint.h>\n/* newer */\n"), Path.unlink], ids=["other", "gone"])
def test_headers_of_the_system_may_change(apart, tmp_path, change):
    """They are not part of what is kept: another libc makes no other module."""
    succeeded(apart(CACHED))
    change(tmp_path / "libc" / "stdint.h")
    succeeded(apart(CACHED, change=lambda text: f"{text}int other;\n"))


@pytest.mark.optimised
def test_a_module_is_linked_as_by_clang(rnncc, root, tmp_path):
    """By the command that is kept, made anew where it is of other options or another clang."""
    cache, model = tmp_path / "cache", root / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json"

    def module(**environment):
        done = rnncc(model, "-o", tmp_path / "m.so", env=os.environ | cached_clang(cache) | environment)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "m.so").read_bytes()

    expected = module(RNNCC_CLANG=clang_name())
    assert module() == expected and module() == expected
    [kept] = cache.glob("link-*")
    heading, command = kept.read_text().splitlines()
    for no_longer_right in ("# another clang\nexit 1\n", f"{heading}\n{command.replace('-lc', '-lnone')}\n"):
        kept.write_text(no_longer_right)
        assert module() == expected


@pytest.mark.long
@pytest.mark.optimised
def test_units_of_several_targets_are_kept(rnncc, root, tmp_path):
    cache, model = tmp_path / "cache", root / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json"
    modules = []
    for clang in ({"RNNCC_CLANG": clang_name()}, {}, {}):
        done = rnncc(model, "--target=x86-64-v2,x86-64", "-o", tmp_path / "m.so", env=os.environ | cached_clang(cache) | clang)
        assert done.returncode == 0, done.stderr
        modules.append((tmp_path / "m.so").read_bytes())
    assert modules[0] == modules[1] == modules[2] and len(list(cache.glob("network-*.o"))) == 2


@pytest.mark.long
def test_a_runtime_that_no_other_module_has_is_without_passes_too(rnncc, root, tmp_path):
    """One that others have is always optimised."""
    cache, model = tmp_path / "cache", root / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json"
    kept = {}
    for target in ("x86-64", "x86-64-v2,x86-64"):
        for passes in ("", WITHOUT_PASSES):
            done = rnncc(model, "-o", tmp_path / "m.so", f"--target={target}",
                         env=os.environ | cached_clang(cache) | {"RNNCC_CLANG_WITHOUT_PASSES": passes})
            assert done.returncode == 0, done.stderr
        kept[target] = len(list(cache.glob("runtime-*.o")))
    assert kept == {"x86-64": 1, "x86-64-v2,x86-64": 3}


@pytest.mark.parametrize("target,linker", [("x86-64-v3", GNU_LINKER), ("aarch64-linux-gnu", "ld.lld")])
def test_a_module_without_passes_is_linked_by_the_faster_linker(rnncc, root, tmp_path, target, linker):
    cache, model = tmp_path / "cache", root / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json"

    def linked():
        done = rnncc(model, "-o", tmp_path / "m.so", f"--target={target}", env=os.environ | cached_clang(cache))
        assert done.returncode == 0, done.stderr

    linked()
    [kept] = cache.glob("link-*")
    alone = kept.read_text().removesuffix(f' 2>/dev/null || exec {clang_name()} "$@"\n')
    assert linker in alone.splitlines()[1].split()[0]
    kept.write_text(alone)
    linked()


def test_a_checkout_may_lie_in_a_path_with_a_space(rnncc, root, tmp_path):
    """Of it the linker reads the list of exports."""
    exports, own = tmp_path / "with a space, and a comma.map", tmp_path / "cached_clang"
    shutil.copy(root / "tests" / "support" / "exports.map", exports)
    [entry] = [entry for entry in json.loads((BUILD / "compile_commands.json").read_text()) if entry["file"].endswith("/cached_clang.c")]
    compiled = [f'-DEXPORTS="{exports}"' if word.startswith("-DEXPORTS=") else word for word in shlex.split(entry["command"])]
    for option in ("-o", "-MF"):
        compiled[compiled.index(option) + 1] = f"{own}{option}"
    subprocess.run(compiled, cwd=entry["directory"], check=True)
    others = [path for path in (BUILD / "tests" / "support" / "cached_clang.p").glob("*.o") if path.name != "cached_clang.c.o"]
    subprocess.run([clang_name(), f"{own}-o", *others, "-pthread", "-lm", "-o", own], check=True)
    environment = os.environ | cached_clang(tmp_path / "cache") | {"RNNCC_CLANG": str(own)}
    done = rnncc(root / "tests" / "fuzz" / "corpus" / "json_model" / "relu.json", "-o", tmp_path / "m.so", "--target=x86-64", env=environment)
    assert done.returncode == 0, done.stderr
    [kept] = (tmp_path / "cache").glob("link-gnu-*")
    assert GNU_LINKER != "ld.gold" or f"--version-script={exports}" in kept.read_text()


def test_headers_whose_time_changed_are_the_same(unit, tmp_path):
    """Of a precompiled header clang would compare the time of its source, too."""
    folder, cache = unit("x86-64"), tmp_path / "cache"
    clang = cached_clang(cache)["RNNCC_CLANG"]
    objects_of(folder, clang, cache)
    (ROOT / "tests" / "support" / "intrinsics.h").touch()
    (folder / "network.c").write_text("int other;\n" + (folder / "network.c").read_text())
    objects_of(folder, clang, cache)


@pytest.mark.parametrize("changed", some(["network.c", "simd/math.h", "weights.bin", "kernel.h", "dtypes.def"], 2))
def test_a_changed_source_makes_another_object(unit, tmp_path, changed):
    folder, cache = unit("x86-64-v3"), tmp_path / "cache"
    clang = cached_clang(cache)["RNNCC_CLANG"]
    objects_of(folder, clang, cache)
    with open(folder / changed, "a") as source:
        source.write("\n")
    kept = set(cache.glob("network-*.o"))
    objects_of(folder, clang, cache)
    assert len(set(cache.glob("network-*.o")) - kept) == 1


@pytest.mark.long
def test_a_changed_source_of_the_edge_runtime_makes_another_object(unit, tmp_path):
    folder, cache = unit("x86-64-v3", "--profile=edge"), tmp_path / "cache"
    clang = cached_clang(cache)["RNNCC_CLANG"]
    objects_of(folder, clang, cache)
    with open(folder / "edge" / "edge.c", "a") as source:
        source.write("\n")
    objects_of(folder, clang, cache)
    assert len(list(cache.glob("runtime-*.o"))) == 2


def test_what_clang_says_is_passed_on(unit, tmp_path):
    folder, cache = unit("x86-64"), tmp_path / "cache"
    clang = cached_clang(cache)["RNNCC_CLANG"]
    (folder / "network.c").write_text("this is no C")
    done = subprocess.run([clang, "-I.", "-c", "network.c", "-o", "network.o"], cwd=folder, capture_output=True, text=True,
                          env=os.environ | cached_clang(cache))
    assert done.returncode == 1 and "network.c:1:1: error: unknown type name 'this'" in done.stderr
    assert not list(cache.glob("*.o")) and not (folder / "network.o").exists()


def test_what_was_used_longest_ago_makes_room(tmp_path):
    for age, name in enumerate(["new.o", "used.o", "old.o", "older.o"]):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (0, 1000 - age))
    prune(tmp_path, 250)
    assert {path.name for path in tmp_path.iterdir()} == {"new.o", "used.o"}
    prune(tmp_path, 250)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_kept_object_that_is_used_is_new_again(unit, tmp_path):
    folder, cache = unit("x86-64"), tmp_path / "cache"
    clang = cached_clang(cache)["RNNCC_CLANG"]
    objects_of(folder, clang, cache)
    for path in cache.glob("*.o"):
        os.utime(path, (0, 1000))
    objects_of(folder, clang, cache)
    assert all(path.stat().st_mtime > 1000 for path in cache.glob("*.o"))
