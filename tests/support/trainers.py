# SPDX-License-Identifier: MIT
"""Trainers of modules of --train, and what they compute, by name."""
import numpy

from support.module import rnncc


def trainer_of(module, threads=1):
    """Of a file. Small models are shared by the workers as large ones are."""
    return rnncc.load(module, threads=threads, share_all=True).trainer()


def gradients_of(trainer, feeds):
    """The results of a run, and the gradients of its way back."""
    results = trainer.run(feeds)
    trainer.backward()
    return results, trainer.gradients()


def same(a, b):
    """Have both the same names, and arrays?"""
    return a.keys() == b.keys() and all(numpy.array_equal(a[name], b[name]) for name in a)
