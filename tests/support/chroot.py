# SPDX-License-Identifier: MIT
"""A fresh Debian in a folder, made by mmdebstrap from Debian's mirror, and commands in it. Only root makes one."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of its own: mounts, so that none outlives the command, and processes.
INSIDE = ('mount -t proc proc "$0/proc" && exec chroot --userspec="$1" "$0" /usr/bin/env -i PATH="$2" HOME="$3" LC_ALL=C.UTF-8 '
          '/bin/sh -euc "cd \\"$3\\" && $4"')


class Chroot:
    """The least of packages: those that are essential, and apt."""

    def __init__(self, suite):
        self.folder = Path(tempfile.mkdtemp(prefix=f"rnncc-{suite}-"))
        self.suite = suite

    def __enter__(self):
        try:
            subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", "--quiet",
                            "--dpkgopt=force-unsafe-io", self.suite, self.folder], check=True, timeout=1200)
            shutil.copy("/etc/resolv.conf", self.folder / "etc" / "resolv.conf")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def archive(self, path):
        """The system as it is, for a container's first layer."""
        subprocess.run(["tar", "-C", self.folder, "--one-file-system", "-cf", path, "."], check=True)

    def run(self, command, user="root", timeout=3600):
        """A command of sh in the user's home."""
        home = "/root" if user == "root" else f"/home/{user}"
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return subprocess.run([*apart, "/bin/sh", "-c", INSIDE, self.folder, user, PATH, home, command], capture_output=True,
                              text=True, timeout=timeout, check=False)

    def must(self, command, user="root"):
        done = self.run(command, user)
        assert done.returncode == 0, f"{self.suite}: {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def add_user(self, name):
        self.must(f"useradd --create-home {name}")

    def clone(self, repository, path):
        """The committed sources, of the owner of the folder above."""
        there = self.folder / path
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", repository, there], check=True)
        owner = there.parent.stat()
        subprocess.run(["chown", "--recursive", f"{owner.st_uid}:{owner.st_gid}", there], check=True)


def chroots_possible():
    return os.getuid() == 0 and shutil.which("mmdebstrap") is not None
