# SPDX-License-Identifier: MIT
"""Fresh systems of Debian 12 and 13: from a clone to answers by one command; a user without root; a wheel; Debian's packages
built, judged, installed, used and removed; and the container's image built on such a system. With Debian's mirror, minutes."""
import shutil
import subprocess
import time

import pytest

from conftest import ROOT, build_directory, sanitized
from support.amount import long_tests
from support.chroot import Chroot, chroots_possible

pytestmark = [pytest.mark.skipif(not long_tests() or sanitized(), reason="fresh systems are for long tests"),
              pytest.mark.skipif(not chroots_possible(), reason="only root makes a fresh Debian, by mmdebstrap")]
SUITES = ["bookworm", "trixie"]
PACKAGES = "rnncc rnnrun librnncc-dev python3-rnncc"
FIRST_RESULT = """import numpy, rnncc
m = rnncc.compile("rnncc/models/digits_rnn.json")
print(m(numpy.zeros((1, 8, 8), numpy.float32)).shape)
"""


def one_command_leads_to_answers(system):
    system.clone(ROOT, "root/rnncc")
    start = time.monotonic()
    told = system.must("rnncc/tools/demo")
    print(f"{system.suite}: {time.monotonic() - start:.0f} s from a clone to the end of tools/demo")  # pytest -rP shows it
    assert "358 of 360 held-out images right" in told and "held-out words entirely right" in told


def a_user_needs_no_root(system):
    system.add_user("someone")
    system.clone(ROOT, "home/someone/rnncc")
    assert "358 of 360 held-out images right" in system.must("rnncc/tools/demo", "someone")


def a_wheel_gives_a_first_result_in_three_lines(system):
    """NumPy is Debian's: the system's pip may know no way to PyPI."""
    system.must("apt-get install -y --no-install-recommends python3-venv python3-numpy")
    system.must("python3 -m venv --system-site-packages venv && venv/bin/pip install --no-index $(rnncc/tools/wheel)", "someone")
    (system.folder / "home" / "someone" / "first.py").write_text(FIRST_RESULT)
    assert system.must("venv/bin/python first.py", "someone") == "(1, 10)\n"


def files_of_rnncc(system):
    return system.must("find / -xdev \\( -path /proc -o -path /root -o -path /home -o -path /tmp -o -path /var/log \\) -prune "
                       "-o \\( -iname '*rnncc*' -o -iname '*rnnrun*' \\) -print")


def packages_are_built_installed_used_and_removed(system):
    system.must("rnncc/tools/package -o /tmp/packages")
    system.must("apt-get install -y --no-install-recommends lintian pkg-config")
    told = system.run("lintian --allow-root --fail-on=error,warning /tmp/packages/*.changes")
    assert told.returncode == 0, told.stdout + told.stderr
    assert files_of_rnncc(system) == ""
    names = " ".join(f"/tmp/packages/{name}_*.deb" for name in PACKAGES.split())
    system.must(f"apt-get install -y --no-install-recommends {names}")
    assert system.must("cd rnncc && tools/packaging/debian/tests/compile", "someone").endswith("(1, 10)\nlinked\n")
    assert "rnncc" in system.must("zcat /usr/share/man/man1/rnncc.1.gz")
    system.must(f"apt-get purge -y {PACKAGES}")
    assert files_of_rnncc(system) == ""


@pytest.mark.parametrize("suite", SUITES)
def test_a_fresh_debian(suite):
    """One case a system, for its parts need those before them."""
    with Chroot(suite) as system:
        one_command_leads_to_answers(system)
        a_user_needs_no_root(system)
        a_wheel_gives_a_first_result_in_three_lines(system)
        packages_are_built_installed_used_and_removed(system)


def test_an_image_is_built_and_compiles_a_network(tmp_path):
    """By buildah, on a first layer that is made here and not fetched."""
    assert shutil.which("buildah"), "tools/setup test buildah"
    words = ["buildah", "--root", tmp_path / "storage", "--runroot", tmp_path / "run", "--storage-driver", "vfs"]

    def buildah(*more):
        done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=3000, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    with Chroot("trixie") as system:
        system.archive(tmp_path / "debian.tar")
    subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "sources"], check=True)
    layer = buildah("from", "scratch")
    buildah("add", layer, tmp_path / "debian.tar", "/")
    buildah("commit", layer, "localhost/debian")
    buildah("build", "--isolation=chroot", "--build-arg", "BASE=localhost/debian", "-t", "rnncc",
            "-f", tmp_path / "sources" / "tools" / "packaging" / "Containerfile", tmp_path / "sources")
    container = buildah("from", "--pull-never", "rnncc")
    entry = buildah("inspect", "--format", "{{.OCIv1.Config.Entrypoint}}", "rnncc")
    assert entry == "[rnncc]"
    used = "rnncc models/digits_rnn.json -o d.so && rnnrun inspect d.so >inspected && python3 -c 'import rnncc; rnncc.load(\"d.so\")'"
    shutil.copytree(ROOT / "models", tmp_path / "work" / "models")  # results as files: buildah may lose what a command prints
    buildah("run", "--isolation=chroot", "--volume", f"{tmp_path / 'work'}:/work", container, "--", "sh", "-euc", used)
    assert "probabilities" in (tmp_path / "work" / "inspected").read_text()
