# SPDX-License-Identifier: MIT
"""The error of a network's output, compared with another program's output for the same weights and image.

Detections are discrete: if two scores differ by less than the rounding error, their rows may change places, and of two
that compete for the last row either may get it. So each detection is compared with the nearest one of its class on the
other side. If it is below the last row of the other side, and that side is full, it is compared with the score of that
row; if it is below the threshold of a detection, with that threshold. One case remains: rounding may decide which of
two overlapping boxes is dropped, and whether they overlap by enough. Such an image is unfit for a comparison.
"""
import numpy

from networks.ssd import LEAST


def error(got, expected):
    """For probabilities [N,classes] relative to the largest; for detections [N,BEST,6] absolute. NaN is an infinite
    error."""
    if got.shape != expected.shape or not numpy.isfinite(got).all():
        return numpy.inf
    if got.ndim < 3:
        return float(numpy.abs(got - expected).max() / numpy.abs(expected).max())
    return max(max(distance(a, b), distance(b, a)) for a, b in zip(got, expected))


def distance(rows, others):
    """The largest, over the detections of an image, of the distances to the nearest of the others."""
    cut = max(others[-1, 1], LEAST)
    return max((min(abs(row[1] - cut), nearest(row, others)) for row in rows if row[1] > 0), default=0.0)


def nearest(row, others):
    same = others[(others[:, 0] == row[0]) & (others[:, 1] > 0)]
    return float(numpy.abs(same[:, 1:] - row[1:]).max(axis=1).min(initial=numpy.inf))
