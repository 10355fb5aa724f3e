# SPDX-License-Identifier: MIT
"""Runs of rnncc that are forks of one process: see rnncc_forks.c. For tests about what modules compute. Long tests run the
program that users have, and so do builds with sanitizers or counters and all tests of how rnncc fails."""
import contextlib
import functools
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from support import amount

MAX_SECONDS = 600  # a run may take


def running(session):
    """The processes of a session, in whichever groups."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, of, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(of) == session and state != "Z":
                yield int(folder.name)


@functools.cache
class Forks:
    """One process of the program, and another when that has ended."""

    def __init__(self, program):
        self.program = program
        self.place = tempfile.TemporaryDirectory()
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                        start_new_session=True)

    def kill(self):
        """With its run, and what that has started."""
        while found := list(running(self.process.pid)):
            for process in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)
        self.process.wait()

    def run(self, command, environment):
        """What subprocess.run() gives, with text."""
        settings = [f"{name}={value}" for name, value in environment.items()]
        words = [self.place.name, os.getcwd(), len(settings), *settings, len(command), *command]
        if self.process.poll() is not None:
            self.start()
        self.process.stdin.write(b"".join(os.fsencode(str(word)) + b"\0" for word in words))
        if not select.select([self.process.stdout], [], [], MAX_SECONDS)[0]:
            self.kill()
            raise subprocess.TimeoutExpired(command, MAX_SECONDS)
        status = self.process.stdout.readline()
        assert status, f"{self.process.args[0]} ended with {self.process.wait()}"
        said, wrong = ((Path(self.place.name) / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(command, int(status), said, wrong)


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
