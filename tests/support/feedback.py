# SPDX-License-Identifier: MIT
"""Integers that make up for each other's errors (compiler/ir/feedback.h), by NumPy."""
import numpy as np


def lower_by_feedback(w, rows, precision):
    """w [columns, depth] as --precision has it where it multiplies such rows: each number in turn, after the errors of those
    before it have been added as far as the rows are alike there. H = U D U' is Cholesky's, from its last row on."""
    moments = rows.astype(float).T @ rows / len(rows)
    moments += np.eye(len(moments)) * 1e-3 * np.trace(moments) / len(moments)
    upper = np.linalg.cholesky(moments[::-1, ::-1])[::-1, ::-1]
    upper = upper / np.diag(upper)
    kind, _, group = precision.partition(":")
    most, group = 7 if kind == "int4" else 127, int(group or (32 if kind == "int4" else w.shape[1]))
    due, carried = np.zeros_like(w), w.astype(float)
    for k in range(w.shape[1]):
        scale = np.abs(w[:, k // group * group:(k // group + 1) * group]).max(1) / np.float32(most)
        due[:, k] = np.clip(np.rint(carried[:, k].astype(np.float32) / scale), -most, most) * scale
        carried[:, k + 1:] += np.outer(w[:, k] - due[:, k].astype(float), upper[k, k + 1:])
    return due
