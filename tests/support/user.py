# SPDX-License-Identifier: MIT
"""Programs as a user runs them who has nothing but a folder."""
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class User:
    """A folder of its own, and programs run there by its owner: nobody, where the tests run as root."""

    def __init__(self):
        self.folder, self.prefix = Path(tempfile.mkdtemp(prefix="rnncc-user-")), []
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.prefix = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        kept = ("LANG", "LD_LIBRARY_PATH")
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder),
                            **{name: os.environ[name] for name in kept if name in os.environ}}

    def run(self, *words, **environment):
        return subprocess.run([*self.prefix, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**self.environment, **environment})

    def must(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def venv(self, name):
        """(its programs, its packages) of a fresh one that has pip; NumPy is that of the tests."""
        import numpy
        self.must(sys.executable, "-m", "venv", name)
        (packages,) = (self.folder / name / "lib").glob("python*/site-packages")
        (packages / "numpy_of_the_tests.pth").write_text(f"{Path(numpy.__file__).parents[1]}\n")
        return self.folder / name / "bin", packages

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
