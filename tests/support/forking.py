# SPDX-License-Identifier: MIT
"""Programs that fork for each run that is asked of them: what they load at first takes longer than most runs."""
import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path


def running(session):
    """The processes of a session, in whichever groups."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, of, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(of) == session and state != "Z":
                yield int(folder.name)


class Forking:
    """One process of the program, and another when that has ended."""

    def __init__(self, program, seconds):
        """seconds: a run may take."""
        self.program, self.seconds = program, seconds
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

    def ask(self, words, command):
        """The exit status of the run that these words ask for; errors have the command."""
        if self.process.poll() is not None:
            self.start()
        self.process.stdin.write(b"".join(os.fsencode(str(word)) + b"\0" for word in words))
        if not select.select([self.process.stdout], [], [], self.seconds)[0]:
            self.kill()
            raise subprocess.TimeoutExpired(command, self.seconds)
        status = self.process.stdout.readline()
        assert status, f"{self.process.args[0]} ended with {self.process.wait()}"
        return int(status)
