# SPDX-License-Identifier: MIT
"""What Highway, AdditiveAttention, AttentionFlow and AttentionSum compute, by the formulas of their papers in NumPy."""
import numpy


def softmax(x, axis):
    e = numpy.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def highway(x, gate_weight, gate_bias, weight, bias, activation="Relu"):
    gate, layer = 1 / (1 + numpy.exp(-(x @ gate_weight + gate_bias))), x @ weight + bias
    layer = numpy.tanh(layer) if activation == "Tanh" else numpy.maximum(layer, 0)
    return gate * layer + (1 - gate) * x


def masked(scores, mask):
    if mask is None:
        return scores
    return numpy.where(mask, scores, -numpy.inf) if mask.dtype == bool else scores + mask


def additive(q, k, v, weight, mask=None):
    weights = softmax(masked(numpy.tanh(q[:, :, None] + k[:, None]) @ weight, mask), 2)
    return weights @ v, weights


def flow(context, question, weight, context_mask=None, question_mask=None):
    shape = (*context.shape[:2], *question.shape[1:])
    both = [numpy.broadcast_to(context[:, :, None], shape), numpy.broadcast_to(question[:, None], shape)]
    scores = masked(numpy.concatenate([*both, both[0] * both[1]], 3) @ weight, None if question_mask is None else question_mask[:, None])
    attended = softmax(scores, 2) @ question
    attending = softmax(masked(scores.max(2), context_mask), 1)[:, None] @ context
    return numpy.concatenate([context, attended, context * attended, context * attending], 2)


def attention_sum(attention, tokens, candidates):
    return ((candidates[:, :, None] == tokens[:, None]) * attention[:, None]).sum(2)
