# SPDX-License-Identifier: MIT
"""Runners take turns, so that all are measured under the same conditions."""
import statistics


def rounds_of(runners, turns):
    """Seconds of a round by name, round after round; each begins with another."""
    from benchmarks.measure import PEER_PAUSE, Turn
    each = {name: Turn(runner, PEER_PAUSE) for name, runner in runners.items()}
    for number in range(turns):
        for turn in list(each.values())[::1 if number % 2 else -1]:
            turn.take()
    return {name: [statistics.median(part) for part in turn.seconds] for name, turn in each.items()}
