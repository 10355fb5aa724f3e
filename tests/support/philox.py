# SPDX-License-Identifier: MIT
"""What rnncc draws, by NumPy: Philox 4x32-10 by its paper, and the keys of rnncc's nodes."""
import struct

import numpy

MASK = 2**64 - 1
WORD = numpy.uint64(0xFFFFFFFF)


def philox(counter, key):
    """counter: [n, 4] of 32 bits, key: two numbers. Salmon, Moraes, Dror, Shaw: Parallel random numbers, SC 2011."""
    c = [counter[:, i].astype(numpy.uint64) for i in range(4)]
    k = list(key)
    for _ in range(10):
        first, second = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [second >> numpy.uint64(32) ^ c[1] ^ numpy.uint64(k[0]), second & WORD,
             first >> numpy.uint64(32) ^ c[3] ^ numpy.uint64(k[1]), first & WORD]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(c, axis=1)


def mixed(x):
    """The finaliser of SplitMix64."""
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def key_of_place(place, seed=0):
    return mixed((mixed((seed + 1) & MASK) + place) & MASK)


def key_of_seed(seed):
    return mixed(struct.unpack("<Q", struct.pack("<d", numpy.float32(seed)))[0])


def words(key, draw, blocks):
    block = numpy.arange(blocks, dtype=numpy.uint64)
    draws = numpy.full(blocks, draw & MASK, numpy.uint64)
    counter = numpy.stack([block & WORD, block >> numpy.uint64(32), draws & WORD, draws >> numpy.uint64(32)], axis=1)
    return philox(counter, (key & 0xFFFFFFFF, key >> 32))


def uniform(key, draw, count, double=False):
    """In [0, 1): of 24 bits, or of 53."""
    if not double:
        return ((words(key, draw, -(-count // 4)) >> numpy.uint64(8)).astype(float) / 2**24).ravel()[:count]
    pairs = words(key, draw, -(-count // 2)).reshape(-1, 2)
    return ((pairs[:, 1] >> numpy.uint64(5)).astype(float) * 2**26 + (pairs[:, 0] >> numpy.uint64(6)).astype(float))[:count] / 2**53


def normal(key, draw, count, double=False):
    """By Box and Muller."""
    if double:
        w = words(key, draw, -(-count // 2))
        units = ((w[:, 1] >> numpy.uint64(5)).astype(float) * 2**26 + (w[:, 0] >> numpy.uint64(6)).astype(float) + 1) / 2**53
        turns = w[:, 3].astype(numpy.longdouble) + (w[:, 2] >> numpy.uint64(1)).astype(numpy.longdouble) / 2**31
    else:
        w = words(key, draw, -(-count // 4)).reshape(-1, 2)
        units = ((w[:, 0] >> numpy.uint64(1)).astype(float) + 1) / 2**31
        turns = w[:, 1].astype(numpy.longdouble)
    radius, angle = numpy.sqrt(-2 * numpy.log(units.astype(numpy.longdouble))), 8 * numpy.arctan(numpy.longdouble(1)) * turns / 2**32
    return numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], axis=1).ravel()[:count].astype(float)
