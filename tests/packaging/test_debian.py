# SPDX-License-Identifier: MIT
"""Debian's packages, as far as it is told without a build: each installed file is in one of them, they name what the rest of
the sources names, and lintian finds no fault in the source package. test_chroots.py builds, installs and removes them."""
import json
import re
import subprocess
import tarfile

import pytest

from conftest import ROOT, build_directory, sanitized
from support.installed import output, own_environment

pytestmark = pytest.mark.skipif(sanitized(), reason="a build with sanitizers is for no package")
DEBIAN = ROOT / "tools" / "packaging" / "debian"
RENAMED = {"usr/share/zsh/site-functions": "usr/share/zsh/vendor-completions"}  # by debian/rules


def patterns():
    """What the lists of files say: a path that meson installs, or of the sources and where it goes."""
    return [line.split() for path in DEBIAN.glob("*.install") for line in path.read_text().splitlines()]


def installed():
    told = json.loads(output("meson", "introspect", "--installed", build_directory()))
    prefix = json.loads(output("meson", "introspect", "--buildoptions", build_directory()))
    (prefix,) = [option["value"] for option in prefix if option["name"] == "prefix"]
    paths = ["usr" + path.removeprefix(prefix) for path in told.values()]
    for here, there in RENAMED.items():
        paths = [path.replace(here, there) for path in paths]
    return paths


def test_each_installed_file_is_in_one_package():
    words = [line[0] for line in patterns() if len(line) == 1]
    homes = {path: [word for word in words if path == word or path.startswith(word + "/")] for path in installed()}
    assert {path: home for path, home in homes.items() if len(home) != 1} == {}
    assert {word for word in words if [word] not in homes.values()} == set(), "of no file"
    assert [line for line in patterns() if len(line) == 2 and not (ROOT / line[0]).exists()] == []


def test_they_name_the_version_the_llvm_and_the_licence_of_the_sources():
    version = output("dpkg-parsechangelog", "-l", DEBIAN / "changelog", "-S", "Version")
    assert version.split("-")[0] == re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    setup = set(re.findall(r"\b(?:clang|lld|libclang)-\d+\S*", (ROOT / "tools" / "setup").read_text().split("package=(")[0]))
    control = (DEBIAN / "control").read_text().split("\nPackage: rnncc\n")
    assert set(re.findall(r"\b(?:clang|lld|libclang)-\d+[-\w]*", control[0])) == setup
    run = {word.replace("libclang-", "libclang1-").removesuffix("-dev") for word in setup}  # libclang is loaded, not linked
    assert set(re.findall(r"\b(?:clang|lld|libclang1)-\d+", control[1])) == run
    words = lambda text: re.sub(r"^ \.?", "", text, flags=re.MULTILINE).split()
    ours = words((ROOT / "LICENSE").read_text().split("authors\n", 1)[1])
    stated = words((DEBIAN / "copyright").read_text().split("\nLicense: Expat\n Permission")[1])
    assert ["Permission", *stated[:len(ours) - 1]] == ours


@pytest.mark.long
def test_lintian_finds_nothing_in_the_source_package_which_has_all_files(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("the sources are in no git")
    made = output(ROOT / "tools" / "package", "-o", tmp_path, "-S", "-d", env=own_environment()).splitlines()
    (description,) = [path for path in made if path.endswith(".dsc")]
    (sources,) = [path for path in made if path.endswith(".orig.tar.gz")]
    with tarfile.open(sources) as archive:
        names = {member.name.split("/", 1)[1] for member in archive.getmembers() if not member.isdir()}
    assert names == set(output("git", "-C", ROOT, "ls-files", "-z").split("\0")) - {""}
    judged = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", description], capture_output=True, text=True,
                            timeout=120, check=False)
    assert judged.returncode == 0 and judged.stdout == "", judged.stdout + judged.stderr
