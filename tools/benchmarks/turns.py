# SPDX-License-Identifier: MIT
"""Runners take turns, so that all are measured under the same conditions."""
import statistics

from benchmarks.environment import Missing

TOLERANCE = 1e-4  # relative to the largest value


def check_equal(case, runners):
    """The first one's results are those of all."""
    import numpy
    expected = {}
    for who, runner in runners.items():
        outputs = runner.run()
        expected = expected or {name: array.copy() for name, array in outputs.items()}
        for name, wanted in expected.items():
            if not numpy.allclose(outputs[name], wanted, rtol=0, atol=TOLERANCE * float(abs(wanted).max())):
                raise Missing(f"{who} computes something else in {case} than rnncc")


def take_round(turns, number):
    """Round `number`: each begins at the other end."""
    for turn in list(turns)[::1 if number % 2 else -1]:
        turn.take()


def rounds_of(runners, turns):
    """Seconds of a round by name, round after round."""
    from benchmarks.measure import PEER_PAUSE, Turn
    each = {name: Turn(runner, PEER_PAUSE) for name, runner in runners.items()}
    for number in range(turns):
        take_round(each.values(), number)
    return {name: [statistics.median(part) for part in turn.seconds] for name, turn in each.items()}


def ratios_of(rounds):
    """Of rnncc's seconds to each other one's, as the median of rounds."""
    return {name: statistics.median(own / other for own, other in zip(rounds["rnncc"], each))
            for name, each in rounds.items() if name != "rnncc"}
