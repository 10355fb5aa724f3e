# SPDX-License-Identifier: MIT
"""Makers of blocks of networks that read text: operators of the project's own, which ONNX Runtime has no kernels for."""
from differential.elementwise import FUNCTION_ERROR, makes
from differential.graph import Unsuitable
from differential.movement import changed

SUM_ERROR = 2.0**-22  # of a term of a sum, relative to the largest
STEEPEST = 0.25  # of a sigmoid


def text(graph, most):
    """[batch, words, features]: exact, so that scores are."""
    if graph.peer:
        raise Unsuitable

    def fits(v):
        return v.exact and v.step and isinstance(v.shape[2], int) and 0 < v.shape[2] < 50 and graph.never_empty(v) and graph.elements(v.shape) < 5000
    return graph.number(fits, rank=3, most=most, step=1)


def beside(graph, value, words, features, most=2):
    """An input of as many samples."""
    return graph.input("f32", (value.shape[0], words, features), most)


@makes("Highway")
def highway(graph, op):
    if graph.peer:
        raise Unsuitable
    x = graph.number(lambda v: v.rank > 1 and isinstance(v.shape[-1], int) and 0 < v.shape[-1] < 50 and v.error < 2.0**-16, most=4)
    F = x.shape[-1]
    weights = [operand for _ in range(2) for operand in (graph.whole((F, F), 1), graph.whole((F,), 2))]
    most = F * x.most + 2
    before = F * x.error + F * most * SUM_ERROR
    error = before * (1 + STEEPEST * (most + x.most)) + 2 * x.error + 2 * most * FUNCTION_ERROR
    graph.add(op, [x, *weights], ("f32", x.shape, most + x.most, 0.0, error), activation=graph.draw(("Relu", "Tanh")))


@makes("AdditiveAttention")
def additive(graph, op):
    values = text(graph, 4)
    B, T, D = values.shape
    U, S = graph.extent(33), graph.integer(1, 9)
    inputs = [beside(graph, values, S, U), beside(graph, values, T, U), values, graph.whole((U,), 1)]
    if graph.chance(0.3):
        inputs.append(beside(graph, values, S, T, 3))
    of_scores = U * (FUNCTION_ERROR + U * SUM_ERROR)
    error = 2 * of_scores + graph.largest(T) * SUM_ERROR + 2 * FUNCTION_ERROR
    graph.add(op, inputs, ("f32", (B, S, D), values.most, 0.0, 2 * values.most * error), ("f32", (B, S, T), 1.0, 0.0, error))


@makes("AttentionFlow")
def flow(graph, op):
    context = text(graph, 2)
    B, T, D = context.shape
    J = graph.integer(1, 9)
    inputs = [context, beside(graph, context, J, D), graph.whole((3 * D,), 1)]
    error = 4 * ((J + graph.largest(T)) * SUM_ERROR + 2 * FUNCTION_ERROR)
    graph.add(op, inputs, ("f32", changed(context.shape, 2, 4 * D), 4.0, 0.0, 2 * error))


@makes("AttentionSum")
def attention_sum(graph, op):
    if graph.peer:
        raise Unsuitable
    a = graph.number(lambda v: isinstance(v.shape[1], int), rank=2)
    words, candidates = (graph.input("i64", shape, 4) for shape in (a.shape, (a.shape[0], graph.integer(1, 9))))
    terms = a.shape[1]
    error = terms * a.error and terms * a.error + terms * a.most * SUM_ERROR
    graph.settle(op, [a, words, candidates], candidates.shape, terms * a.most, a.step, error)
