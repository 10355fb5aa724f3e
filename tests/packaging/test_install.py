# SPDX-License-Identifier: MIT
"""An installed rnncc, moved to another folder: the program alone, pkg-config, and a project of CMake."""
import fcntl
import os
import shutil
import time

import pytest

from conftest import ROOT, build_directory
from support.installed import done, install, output, own_environment, prefix  # noqa: F401 (a fixture)

HERE = ROOT / "tests" / "packaging"
AARCH64 = """set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
"""


@pytest.fixture
def one_at_a_time():
    with open(build_directory() / "install.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def project(tmp_path):
    """A folder with an application, a model and its weights."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("application.c", "CMakeLists.txt"):
        shutil.copy(HERE / name, folder)
    shutil.copy(ROOT / "models" / "digits_rnn.json", folder / "model.json")
    shutil.copy(ROOT / "models" / "digits_rnn.safetensors", folder)
    return folder


def test_the_program_needs_no_source_tree(prefix, project):
    environment = own_environment(HOME=str(project))
    output(prefix / "bin" / "rnncc", "model.json", "-o", "m.so", cwd=project, env=environment)
    assert "digits_rnn" in output(prefix / "bin" / "rnnrun", "inspect", "m.so", cwd=project, env=environment)


def test_pkg_config(prefix, project):
    environment = own_environment(PKG_CONFIG_PATH=str(prefix / "share" / "pkgconfig"))
    ask = lambda *words: output("pkg-config", *words, "rnncc", env=environment).strip()
    output(ask("--variable=rnncc"), "model.json", "--static", "--name=digits", cwd=project, env=environment)
    flags = ask("--cflags").replace("\\ ", " ")
    output("gcc", flags, "-I.", "application.c", "libdigits.a", "-pthread", "-ldl", "-o", "application", cwd=project)
    assert output("./application", cwd=project) == "linked: 3\n"
    assert ask("--modversion") == "0.1.0"


def configure(prefix, project, *words):
    return done("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *words,
                env=own_environment())


def build(project):
    return output("cmake", "--build", project / "build", "-v", env=own_environment())


def test_cmake(prefix, project):
    it = configure(prefix, project)
    assert it.returncode == 0, it.stdout + it.stderr
    build(project)
    module = project / "build" / "rnncc" / "digits-to-load" / "loaded.so"
    assert output(project / "build" / "application", module) == "linked: 3\nloaded: 3\n"
    assert "no work to do" in build(project)

    os.utime(project / "digits_rnn.safetensors", (time.time() + 10,) * 2)
    assert build(project).count("--depfile") == 2, "both are made of the weights"
    (project / "model.json").write_text("{")
    refused = done("cmake", "--build", project / "build", env=own_environment())
    assert refused.returncode != 0 and "expected a key in double quotes" in refused.stdout


@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-gcc") or not shutil.which("qemu-aarch64"), reason="no emulator")
def test_a_cross_build(prefix, project):
    (project / "aarch64.cmake").write_text(AARCH64)
    it = configure(prefix, project, f"-DCMAKE_TOOLCHAIN_FILE={project}/aarch64.cmake")
    assert it.returncode == 0, it.stdout + it.stderr
    build(project)
    module = project / "build" / "rnncc" / "digits-to-load" / "loaded.so"
    assert output("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", project / "build" / "application",
                  module) == "linked: 3\nloaded: 3\n"


@pytest.mark.parametrize("line, told", [
    ("find_package(rnncc 9 REQUIRED)", "0.1.0"),
    ("find_package(rnncc)\nrnncc_add_model(net model.json DIMS T=1)", "expected SHARED, NAME, DIM, STATE, FREEZE, ISA or"),
])
def test_what_cmake_refuses(prefix, project, line, told):
    (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\nproject(p C)\n{line}\n")
    it = configure(prefix, project)
    assert it.returncode != 0 and told in it.stderr


def test_a_broken_install_says_what_is_missing(prefix, project, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(prefix, broken)
    shutil.rmtree(broken / "share" / "rnncc" / "templates")
    it = done(broken / "bin" / "rnncc", "model.json", "-o", "m.so", cwd=project, env=own_environment())
    assert it.returncode == 5 and f"{broken}/bin/../share/rnncc/templates/" in it.stderr
    assert "cannot read this file of rnncc's own: No such file or directory; install rnncc again" in it.stderr
    (broken / "bin" / "rnncc").unlink()
    it = configure(broken, project)
    assert it.returncode != 0 and "bin/rnncc, found none" in " ".join(it.stderr.split())


def test_uninstalled_nothing_is_left(tmp_path, one_at_a_time):
    install(tmp_path / "there")
    assert list((tmp_path / "there").rglob("rnncc.h"))
    output("ninja", "-C", build_directory(), "uninstall", env=own_environment(DESTDIR=str(tmp_path / "there")))
    assert [path for path in (tmp_path / "there").rglob("*") if not path.is_dir()] == []
