# SPDX-License-Identifier: MIT
"""Beam search as BeamSearch means it, in plain Python: without batches, and never over before its last step."""


def search(step, start, states, end, beam, length, best=1, penalty=0):
    """(score, tokens) of the best hypotheses. step(token, *states): the next tokens' log probabilities, the new states."""
    still, ended = [(0, [], start, *states)], []
    for t in range(length):
        found = []
        for score, tokens, last, *before in still:
            chances, *after = step(last, *before)
            found += [(score + chance, [*tokens, v], v, *after) for v, chance in enumerate(chances)]
        found = sorted(found, key=lambda h: -h[0])[:2 * beam]  # of equal ones the earlier, as in all that follows
        ended += [(h[0] * (t + 1.0) ** -penalty, h[1][:-1]) for h in found[:beam] if h[2] == end]
        ended = sorted(ended, key=lambda h: -h[0])[:best]
        still = [h for h in found if h[2] != end][:beam]
    return sorted(ended + [(h[0] * float(length) ** -penalty, h[1]) for h in still], key=lambda h: -h[0])[:best]
