# SPDX-License-Identifier: MIT
"""The audio plug-in of tools/examples: built by CMake from an installed rnncc, it computes in blocks of any length what its
models' formulas say of the whole recording, of each channel by itself, and allocates nothing meanwhile."""
import math
import shutil
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.installed import output, own_environment, prefix  # noqa: F401 (a fixture)

EXAMPLE = ROOT / "tools" / "examples" / "plugin"
BOUND = 1e-4  # of f32 over a recursion of 200 samples' memory
FRAMES = 20000


def leveled(x):
    """In double precision, sample by sample, from the formulas that stand in the models."""
    last = blocked = envelope = 0.0
    leveled, line = [], [0.0] * 3
    for sample in map(float, x):
        blocked, last = sample - last + 0.995 * blocked, sample
        envelope = 0.999 * envelope + 0.001 * abs(blocked)
        line = [*line[-3:], 0.2 * blocked / (envelope + 0.01)]
        leveled.append(0.9 * math.tanh(sum(tap * each for tap, each in zip((0.1, 0.2, 0.3, 0.4), line))))
    return leveled


@pytest.mark.parametrize("flags", [pytest.param("-O2", marks=pytest.mark.long), "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"],
                         ids=["plain", "sanitized"])
def test_it_plays_two_channels_as_its_formulas_say(flags, prefix, tmp_path):  # noqa: F811
    shutil.copytree(EXAMPLE, tmp_path / "plugin")
    compilers = ["-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_C_COMPILER=clang-19"] if "sanitize" in flags else []
    output("cmake", "-G", "Ninja", "-S", tmp_path / "plugin", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
           f"-DCMAKE_CXX_FLAGS={flags} -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror", *compilers,
           env=own_environment())
    output("cmake", "--build", tmp_path / "build", env=own_environment())
    rng, time = numpy.random.default_rng(1), numpy.arange(FRAMES) / 16000
    sound = numpy.stack([0.3 + 0.5 * numpy.sin(2 * math.pi * 220 * time), 0.05 * rng.standard_normal(FRAMES)]).astype(numpy.float32)
    played = subprocess.run([tmp_path / "build" / "host", tmp_path / "build" / "plugin.so"], input=sound.tobytes(),
                            capture_output=True, timeout=120)
    assert (played.returncode, played.stderr) == (0, b"0 allocations\n"), played.stderr.decode()
    first, again = numpy.frombuffer(played.stdout, numpy.float32).reshape(2, 2, FRAMES)
    assert numpy.array_equal(first, again), "after a reset it plays the same"
    for channel, wanted in zip(first, map(leveled, sound)):
        assert abs(channel - wanted).max() <= BOUND
