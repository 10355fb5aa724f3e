# SPDX-License-Identifier: MIT
"""Runs of rnncc that are forks of one process: see rnncc_forks.c. For tests about what modules compute. Long tests run the
program that users have, and so do builds with sanitizers or counters and all tests of how rnncc fails."""
import functools
import os
import select
import subprocess
import tempfile
from pathlib import Path

from support import amount

MAX_SECONDS = 600  # a run may take


@functools.cache
class Forks:
    """One process of the program."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.place = tempfile.TemporaryDirectory()

    def run(self, command, environment):
        """What subprocess.run() gives, with text."""
        settings = [f"{name}={value}" for name, value in environment.items()]
        words = [self.place.name, os.getcwd(), len(settings), *settings, len(command), *command]
        self.process.stdin.write(b"".join(os.fsencode(str(word)) + b"\0" for word in words))
        if not select.select([self.process.stdout], [], [], MAX_SECONDS)[0]:
            self.process.kill()
            raise subprocess.TimeoutExpired(command, MAX_SECONDS)
        status = self.process.stdout.readline()
        assert status, f"{self.process.args[0]} ended with {self.process.wait()}"
        said, wrong = ((Path(self.place.name) / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(command, int(status), said, wrong)


def run_rnncc(build, command, environment):
    """Runs the command, whose program is the rnncc of the build."""
    program = Path(build) / "tests" / "support" / "rnncc_forks"
    if amount.long_tests() or not program.exists() or "RNNCC_PROFILES" in os.environ:
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=MAX_SECONDS)
    return Forks(program).run(command, environment)
