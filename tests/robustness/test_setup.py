# SPDX-License-Identifier: MIT
"""tools/setup asks for the packages of one purpose, and names what is missing. Programs on PATH replace Debian's."""
import json
import os
import subprocess

import pytest

TOOLS_OF_TESTS = {"slurm-wlm", "spin", "qemu-user", "clang-tidy-19", "clang-format-19", "espeak-ng", "libcmocka-dev", "gcc"}
NEEDED_TO_BUILD = {"clang-19", "lld-19", "libclang-19-dev", "libcjson-dev", "meson", "ninja-build"}
EXIT_ENVIRONMENT, EXIT_USAGE = 5, 2


class Machine:
    """A machine on which the `missing` packages, or all, are not installed."""

    def __init__(self, root, folder, missing, user=1000, apt="exit 0"):
        self.root, self.folder, self.asked = root, folder, folder / "asked"
        absent = "true" if missing == "all" else f"[[ ' {' '.join(missing)} ' == *\" ${{@: -1}} \"* ]]"
        self.program("dpkg-query", f"if {absent}; then exit 1; fi; printf 'installed '")
        self.program("id", f"echo {user}")
        self.program("apt-get", f'echo "$*" >>{self.asked}; {apt}')

    def program(self, name, body):
        path = self.folder / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run(self, tool, *arguments):
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        return subprocess.run([self.root / "tools" / tool, *arguments], capture_output=True, text=True, timeout=60,
                              env=environment)


@pytest.fixture
def machine(root, tmp_path):
    return lambda missing, **how: Machine(root, tmp_path, missing, **how)


def named(done):
    """The packages in the command that the message proposes."""
    assert done.returncode == EXIT_ENVIRONMENT, done.stderr
    command = done.stderr.split("apt-get install -y --no-install-recommends ")[1]
    return set(command.split())


@pytest.mark.parametrize("tool", [("setup",), ("setup", "build"), ("demo",), ("demo", "some text")], ids=" ".join)
def test_building_and_the_demo_need_no_tool_of_the_tests(machine, tool):
    packages = named(machine("all").run(*tool))
    assert NEEDED_TO_BUILD <= packages and not TOOLS_OF_TESTS & packages


@pytest.mark.parametrize("tool", [("setup", "test"), ("test",)], ids=" ".join)
def test_the_tests_need_both(machine, tool):
    assert NEEDED_TO_BUILD | TOOLS_OF_TESTS <= named(machine("all").run(*tool))


def test_packages_of_debian_need_no_tool_of_the_tests(machine):
    packages = named(machine("all").run("package"))
    assert NEEDED_TO_BUILD | {"debhelper", "build-essential"} <= packages and not TOOLS_OF_TESTS & packages


def test_the_demo_that_listens_needs_a_voice(machine):
    assert named(machine("all").run("demo", "vad")) - named(machine("all").run("demo")) == {"espeak-ng", "python3-venv"}


def test_without_root_what_is_missing_for_the_purpose_is_named(machine):
    some = machine(["spin", "lld-19"])
    assert named(some.run("setup", "build")) == {"lld-19"}
    assert named(some.run("setup", "test")) == {"spin", "lld-19"}
    assert not some.asked.exists()


def test_where_nothing_is_missing_it_is_silent(machine):
    done = machine([]).run("setup", "test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_root_installs_only_what_is_missing(machine):
    some = machine(["spin", "lld-19"], user=0)
    assert some.run("setup", "build").returncode == 0
    assert some.asked.read_text().splitlines() == ["update", "install -y --no-install-recommends lld-19"]


def test_packages_of_another_architecture_make_it_known_first(machine):
    some = machine(["spin", "musl-dev:arm64"], user=0)
    some.program("dpkg", f'echo "dpkg $*" >>{some.asked}')
    assert some.run("setup", "test").returncode == 0
    assert some.asked.read_text().splitlines() == ["dpkg --add-architecture arm64", "update",
                                                   "install -y --no-install-recommends spin musl-dev:arm64"]


def test_a_package_of_two_architectures_is_installed(machine):
    """dpkg-query prints what its format says for each."""
    some = machine([])
    some.program("dpkg-query", "said=${2#-f=}; said=${said/'${db:Status-Status}'/installed}; printf \"$said$said\"")
    assert some.run("setup", "test").returncode == 0


def test_a_failed_installation_is_reported(machine):
    done = machine(["spin"], user=0, apt="echo 'E: no network'; exit 100").run("setup", "test")
    assert done.returncode == EXIT_ENVIRONMENT and "E: no network" in done.stderr and "spin" in done.stderr


def test_another_purpose_is_refused(machine):
    done = machine([]).run("setup", "everything")
    assert done.returncode == EXIT_USAGE and "tools/setup [build | package | test]" in done.stderr


def test_the_programs_are_built_without_the_tests_packages(root, tmp_path):
    """pkg-config finds what `tools/setup build` installs, but not cmocka."""
    for name in ("libcjson", "libprotobuf-c"):
        folder = subprocess.run(["pkg-config", "--variable=pcfiledir", name], capture_output=True, text=True, check=True)
        (tmp_path / f"{name}.pc").symlink_to(f"{folder.stdout.strip()}/{name}.pc")
    environment = os.environ | {"PKG_CONFIG_LIBDIR": str(tmp_path), "PKG_CONFIG_PATH": "", "CC": "clang-19", "CC_LD": "lld"}
    configure = f"source tools/programs.sh && $meson setup {tmp_path}/build && $meson introspect --targets {tmp_path}/build"
    done = subprocess.run(["bash", "-c", configure], cwd=root, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout
    targets = json.loads(done.stdout.splitlines()[-1])
    assert "rnncc" in {target["name"] for target in targets}
    assert not [target["name"] for target in targets if "/tests/" in target["defined_in"]]


def test_an_llvm_in_a_folder_of_its_own_is_taken(root, tmp_path):
    """Its libclang is not where the loader looks, nor started: here it has no function."""
    llvm = tmp_path / "llvm"
    (llvm / "lib" / "clang" / "19").mkdir(parents=True)
    (llvm / "include").symlink_to("/usr/lib/llvm-19/include")
    subprocess.run(["clang-19", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-Wl,-soname,libclang-own.so.1", "-o", llvm / "lib" / "libclang.so"],
                   check=True)
    clang = tmp_path / "clang"
    clang.write_text(f'#!/bin/sh\n[ "$1" != -print-resource-dir ] || exec echo {llvm}/lib/clang/19\nexec clang-19 "$@"\n')
    clang.chmod(0o755)
    done = subprocess.run(["bash", "-c", f"source tools/programs.sh && $meson setup {tmp_path}/build"], cwd=root, capture_output=True, text=True,
                          env=os.environ | {"CC": str(clang), "CC_LD": "lld"}, timeout=120)
    assert done.returncode == 0, done.stdout
    commands = (tmp_path / "build" / "compile_commands.json").read_text()
    assert 'RNNCC_LIBCLANG=\\"libclang-own.so.1\\"' in commands and f'RNNCC_LLVM_LIBRARIES=\\"{llvm}/lib\\"' in commands


def test_a_compiler_other_than_clang_is_refused(root, tmp_path):
    configure = f"source tools/programs.sh && $meson setup {tmp_path}/build"
    done = subprocess.run(["bash", "-c", configure], cwd=root, capture_output=True, text=True, timeout=120,
                          env=os.environ | {"CC": "gcc"})
    assert done.returncode != 0 and "ERROR: Problem encountered: expected clang 15 or newer, found gcc" in done.stdout
    assert "tools/setup build installs clang-19, and CC=clang-19 takes it" in done.stdout
