# SPDX-License-Identifier: MIT
"""tools/bench as a user calls it, but for its measuring."""
import subprocess

from conftest import ROOT


def bench(*words, timeout=60, **options):
    """The process, which has ended."""
    return subprocess.run([ROOT / "tools" / "bench", *words], capture_output=True, text=True, timeout=timeout, **options)


def listed(*words):
    """What --list prints: the cases that patterns choose, or all of them."""
    done = bench(*words, "--list")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def assert_refused(*words, told):
    """It names what is wrong before it sets anything up."""
    done = bench(*words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert told in done.stderr and "Traceback" not in done.stderr
