# SPDX-License-Identifier: MIT
"""A module for this machine gets the runtime that was compiled when rnncc was built, if it is what the sources at hand make:
else rnncc compiles it, to the same bytes."""
import os
import platform
import shlex
import shutil
import subprocess

import pytest

from conftest import build_directory
from support.clang import clang_name
from support.installed import done, own_environment

KINDS = {"runtime.built": (), "runtime_mutable.built": ("--weights=mutable",)}


@pytest.fixture
def installed(root, tmp_path):
    """A program, its data and what was built with it, in a folder of its own."""
    for folder in ("bin", "lib/rnncc", "share/rnncc"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(build_directory() / "compiler" / "rnncc", tmp_path / "bin")
    for kind in KINDS:
        shutil.copy(build_directory() / "runtime" / kind, tmp_path / "lib" / "rnncc")
    for folder in ("templates", "schedules", "runtime"):
        shutil.copytree(root / folder, tmp_path / "share" / "rnncc" / folder, ignore=shutil.ignore_patterns("bindings"))
    return tmp_path


@pytest.fixture
def sources(installed, root):
    """sources(options, environment) -> (what clang was called for, the module), of a model of one layer."""
    log = installed / "log"
    clang = installed / "path" / clang_name()
    clang.parent.mkdir()
    clang.write_text(f'#!/bin/sh\nfor word; do case "$word" in *.c) echo "$word" >>{shlex.quote(str(log))};; esac; done\n'
                     f'exec {shutil.which(clang_name())} "$@"\n')
    clang.chmod(0o755)

    def compiled(*options, **more):
        log.write_text("")
        module, model = installed / "m.so", "gru" if "--weights=mutable" in options else "relu"
        model = root / "tests" / "fuzz" / "corpus" / "json_model" / f"{model}.json"
        environment = own_environment() | {"PATH": f"{clang.parent}:{os.environ['PATH']}"} | more
        it = done(installed / "bin" / "rnncc", model, "-o", module, "--sandbox=never", *options, env=environment, cwd=installed)
        assert it.returncode == 0, it.stderr
        return sorted(log.read_text().split()), module.read_bytes()

    return compiled


@pytest.mark.parametrize("options", KINDS.values(), ids=["fixed", "mutable"])
def test_clang_does_not_compile_it_for_the_same_module(sources, options):
    compiled, module = sources(*options)
    assert "network.c" in compiled and "runtime.c" not in compiled
    assert sources(*options, RNNCC_CLANG=clang_name()) == (sorted([*compiled, "runtime.c"]), module)


def damaged(folder):
    path = folder / "lib" / "rnncc" / "runtime.built"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_short(folder):
    path = folder / "lib" / "rnncc" / "runtime.built"
    path.write_bytes(path.read_bytes()[:40])


def without(folder):
    """The one in the build is another program's."""
    shutil.rmtree(folder / "lib")


def of_other_sources(folder):
    with open(folder / "share" / "rnncc" / "runtime" / "pool.c", "a", encoding="utf-8") as source:
        source.write("/* changed */\n")


@pytest.mark.parametrize("change", [damaged, *(pytest.param(change, marks=pytest.mark.long) for change in (cut_short, without)),
                                    of_other_sources])
def test_another_runtime_is_compiled(sources, installed, change):
    module = sources()[1]
    change(installed)
    assert sources() == (["network.c", "runtime.c"], module)


ANOTHER_VERSION = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
typedef struct { const void *data; unsigned flags; } CXString;
static CXString version(void) { return (CXString){"clang version 0.0.1", 0}; }
/* By this rnncc finds libclang's functions. */
void *dlsym(void *library, const char *name) {
  void *(*of_libc)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!of_libc) of_libc = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return strcmp(name, "clang_getClangVersion") ? of_libc(library, name) : (void *)version;
}
"""


@pytest.mark.unsanitized
def test_after_clang_was_updated_it_is_compiled(sources, tmp_path):
    """Within its name, clang-19: it may make other code."""
    module, library = sources()[1], tmp_path / "another.so"
    subprocess.run([clang_name(), "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=ANOTHER_VERSION, text=True, check=True)
    assert sources(LD_PRELOAD=str(library)) == (["network.c", "runtime.c"], module)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its targets are of x86-64")
@pytest.mark.parametrize("options", [pytest.param(("--target=aarch64-linux-gnu",), marks=pytest.mark.long),
                                     ("--target=x86-64-v3,x86-64",), pytest.param(("--static",), marks=pytest.mark.long)],
                         ids=["another machine", "several targets", "static"])
def test_what_needs_another_runtime_compiles_it(sources, options):
    assert "runtime.c" in sources(*options)[0]
