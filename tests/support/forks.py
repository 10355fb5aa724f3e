# SPDX-License-Identifier: MIT
"""Runs of rnncc that are forks of one process: see rnncc_forks.c. For tests about what modules compute. Long tests run the
program that users have, and so do builds with sanitizers or counters and all tests of how rnncc fails."""
import functools
import os
import subprocess
import tempfile
from pathlib import Path

from support import amount
from support.forking import Forking

MAX_SECONDS = 600  # a run may take


@functools.cache
class Forks(Forking):
    def __init__(self, program):
        super().__init__(program, MAX_SECONDS)
        self.place = tempfile.TemporaryDirectory()

    def run(self, command, environment):
        """What subprocess.run() gives, with text."""
        settings = [f"{name}={value}" for name, value in environment.items()]
        words = [self.place.name, os.getcwd(), len(settings), *settings, len(command), *command]
        status = self.ask(words, command)
        said, wrong = ((Path(self.place.name) / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(command, status, said, wrong)


def program_of(build):
    """None: there is none, or it is of an older compiler, as where only rnncc was built anew."""
    program, library = Path(build) / "tests" / "support" / "rnncc_forks", Path(build) / "compiler" / "librnncc.a"
    if program.exists() and library.exists() and program.stat().st_mtime_ns >= library.stat().st_mtime_ns:
        return program
    return None


def run_rnncc(build, command, environment):
    """Runs the command, whose program is the rnncc of the build."""
    program = program_of(build)
    if amount.long_tests() or not program or "RNNCC_PROFILES" in os.environ:
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=MAX_SECONDS)
    return Forks(program).run(command, environment)
