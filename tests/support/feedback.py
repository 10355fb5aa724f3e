# SPDX-License-Identifier: MIT
"""Integers that make up for each other's errors (compiler/ir/feedback.h), by NumPy."""
import numpy as np

SCALES, MOST_GROUP = 128, 16


def group_by_scale(w, carried, upper, scale, most):
    """(numbers, errors with their weights) of one group. scale: [columns]"""
    due, wanted, loss = np.zeros_like(w), carried.copy(), 0
    for k in range(w.shape[1]):
        due[:, k] = np.clip(np.rint(wanted[:, k].astype(np.float32) / scale), -most, most) * scale
        loss = loss + upper[k, k] * (due[:, k] - wanted[:, k]) ** 2
        wanted[:, k + 1:] += np.outer(w[:, k] - due[:, k].astype(float), upper[k, k + 1:])
    return due, loss


def lower_by_feedback(w, rows, precision):
    """w [columns, depth] as --precision has it where it multiplies such rows: each number in turn, after the errors of those
    before it have been added as far as the rows are alike there. H = U D U' is Cholesky's, from its last row on. Of small
    groups the scale is that one of many by which errors, so weighted, have the least sum of squares."""
    moments = rows.astype(float).T @ rows
    moments += np.eye(len(moments)) * 1e-3 * np.trace(moments) / len(moments)
    upper = np.linalg.cholesky(moments[::-1, ::-1])[::-1, ::-1]
    upper = upper / np.diag(upper) + np.diag(np.diag(upper) ** 2 - 1)  # D in place of the ones
    kind, _, given = precision.partition(":")
    most, given = 7 if kind == "int4" else 127, int(given or (32 if kind == "int4" else 0))
    group, chosen = given or w.shape[1], 0 < given <= MOST_GROUP
    due, carried = np.zeros_like(w), w.astype(float)
    for first in range(0, w.shape[1], group):
        part = slice(first, first + group)
        largest, least = np.abs(w[:, part]).max(1), np.inf
        for steps in [most, *(np.linspace(most + .5, .8 * most, SCALES) if chosen else [])]:
            scale = (largest / np.float64(steps)).astype(np.float32)
            numbers, loss = group_by_scale(w[:, part], carried[:, part], upper[part, part], scale, most)
            due[loss < least, part] = numbers[loss < least]
            least = np.minimum(loss, least)
        carried[:, first + group:] += (w[:, part] - due[:, part].astype(float)) @ upper[part, first + group:]
    return due
