# SPDX-License-Identifier: MIT
"""What must not change a module's results, on random graphs: nodes in another order, nodes that only pass values on, names
of tensors, a batch in parts, a sequence in pieces."""
import copy
import re

import numpy
import pytest

from differential import plans
from differential.check import THREADS, Checker, differences, feeds_of, side_by_side
from differential.elementwise import FUNCTION_ERROR
from differential.graph import Graph, Unsuitable, filled
from differential.grow import MAKERS, random_case
from differential.shrink import names_read
from support.amount import long_tests
from support.machine import need_target
from support.model_builder import Model
from support.module import Module
from support.recurrent import GATES

SEED = 2
GRAPHS = 25
GROUPS = 4 if long_tests() else 1
STEPS = 12 if long_tests() else 3
OPTIONS = (plans.EXACT,)


def group_of(number):
    return [random_case(SEED, number * GRAPHS + k, prefix=f"g{k}_", most_steps=STEPS) for k in range(GRAPHS)]


def compiled(checker, model, name, *options):
    module = checker.folder / f"{name}.so"
    done = checker.compile(model.write(checker.folder), module, options or OPTIONS)
    assert done.returncode == 0, done.stderr
    return module


def outputs_of(module, feeds, threads=1):
    with Module(module) as loaded, loaded.context(threads) as context:
        return context.run(feeds)


# ---- the same graph, written otherwise ----


def reordered(model, rng):
    """Another topological order."""
    made = {name: k for k, node in enumerate(model.nodes) for name in node["outputs"] if name}
    waits = [{made[name] for name in names_read(node) if name in made} for node in model.nodes]
    order, ready = [], []
    while len(order) < len(model.nodes):
        ready = [k for k in range(len(model.nodes)) if k not in order and waits[k] <= set(order)]
        order.append(ready[int(rng.integers(len(ready)))])
    model.nodes = [model.nodes[k] for k in order]
    return model


def with_identities(model, rng):
    """A node that passes a value on before a third of all inputs of nodes."""
    nodes, given = [], {described["name"] for described in model.inputs} | {state["input"] for state in model.states}
    made = given | {name for node in model.nodes for name in node["outputs"] if name}
    for node in model.nodes:
        for k, name in enumerate(node["inputs"]):
            if name in made and rng.random() < 0.35:
                through = f"{name}_{len(nodes)}"
                nodes.append({"op": "Identity", "name": through, "inputs": [name], "outputs": [through], "attributes": {}})
                node["inputs"][k] = through
        nodes.append(node)
    model.nodes = nodes
    return model


@pytest.mark.parametrize("number", range(GROUPS))
def test_the_same_graph_written_otherwise_computes_the_same(tmp_path, number):
    """Results that are exact to the bit, others within their bounds: other nodes may become one kernel."""
    checker, cases = Checker(tmp_path), group_of(number)
    plain, feeds = side_by_side(cases), feeds_of(cases, 0)
    expected = outputs_of(compiled(checker, plain, "plain"), feeds)
    for rewrite in reordered, with_identities:
        other = rewrite(copy.deepcopy(plain), numpy.random.default_rng(number))
        assert [node["name"] for node in other.nodes] != [node["name"] for node in plain.nodes]
        got = outputs_of(compiled(checker, other, rewrite.__name__), feeds)
        for case in cases:
            assert not differences(got, expected, case.errors), (rewrite.__name__, case.seed)


# ---- names ----

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\n]*', re.DOTALL)  # strings and comments


def emitted(checker, cases, name):
    folder = checker.folder / name
    done = checker.compile(side_by_side(cases).write(checker.folder), folder, (*OPTIONS, "--emit=c"))
    assert done.returncode == 0, done.stderr
    return {file.name: file.read_text() for file in sorted(folder.iterdir()) if file.suffix in (".c", ".h")}


def test_names_are_in_the_emitted_c_as_text_alone(tmp_path):
    """All tensors and dims have other names, in another order: what is neither string nor comment stays."""
    checker = Checker(tmp_path)
    before, after = (emitted(checker, [random_case(SEED, 500 + k, prefix=name(k), most_steps=STEPS) for k in range(GRAPHS)], name(0))
                     for name in (lambda k: f"a{k:03}_", lambda k: f"z{900 - k}_"))
    assert before.keys() == after.keys() and "network.c" in before
    assert before["network.c"] != after["network.c"]
    for file, content in before.items():
        assert TEXT.sub("", content) == TEXT.sub("", after[file]), file


# ---- a batch in parts ----

ROWS = 7
BY_ROW = ("Abs", "Neg", "Relu", "LeakyRelu", "Tanh", "Sigmoid", "Gelu", "Add", "Sub", "Mul", "Max", "Where", "Clip", "Greater", "Cast", "MatMul",
          "Conv", "MaxPool", "AveragePool", "BatchNormalization", "LayerNormalization", "GlobalAveragePool", "Softmax", "ReduceMax", "ReduceSum",
          "Concat", "Slice", "Transpose", "QuantizeLinear", "Flatten", "InstanceNormalization", "Resize")


def batched(number):
    """A graph on inputs of B rows, whose outputs have B rows."""
    rng = numpy.random.default_rng([SEED, number])
    graph = Graph(rng, f"g{number}_")
    graph.dims[f"{graph.prefix}D0"] = (1, 4, ROWS)
    B = graph.model.dim(f"{graph.prefix}D0", 1, 4, ROWS)
    for shape in ((B, 5), (B, 17, 6, 9), (B, 8, 33)):
        graph.input("f32", shape)
    for op in rng.choice(BY_ROW, 16):
        try:
            MAKERS[str(op)](graph, str(op))
        except Unsuitable:
            continue
    rows = [value for value in graph.values if value.shape[:1] == (B,) and value.name not in graph.fed
            and all(isinstance(extent, int) for extent in value.shape[1:])]
    graph.model.output(*(value.name for value in rows))
    return graph, {value.name: (2 * value.error, 0.0) for value in rows}


def rows_of(graph, feeds, rows):
    """Of each input that has B rows, along whatever axis."""
    B = f"{graph.prefix}D0"
    return {name: array[tuple(rows if extent == B else slice(None) for extent in graph.fed[name].value.shape)]
            for name, array in feeds.items()}


def in_parts(graph, feeds, run):
    """The results of two parts of the batch, as one."""
    parts = [run(rows_of(graph, feeds, rows)) for rows in (slice(0, 3), slice(3, ROWS))]
    return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("number", range(40 if long_tests() else 4))
def test_a_batch_in_parts_computes_the_same(tmp_path, number):
    """Of outputs whose rows depend on each other, by what the reference computes, there are few."""
    checker = Checker(tmp_path)
    graph, errors = batched(number)
    feeds = filled(graph, numpy.random.default_rng(number), {name: usual for name, (_, usual, _) in graph.dims.items()} | {f"{graph.prefix}D0": ROWS})
    path = graph.model.write(tmp_path)
    def by_reference(some):
        return checker.reference.run(graph.model, path, some)
    whole, parts = by_reference(feeds), in_parts(graph, feeds, by_reference)
    by_row = {name: bound for name, bound in errors.items() if not differences(parts, whole, {name: bound})}
    assert len(by_row) >= 0.6 * len(errors) > 0
    with Module(compiled(checker, graph.model, "module")) as module, module.context(2) as context:
        wrong = differences(in_parts(graph, feeds, context.run), context.run(feeds), by_row)
    assert not wrong, wrong


# ---- a sequence in pieces ----

T, BATCH = 24, 3
PIECES = (5, 1, 11, 7)


def layers(number):
    """Recurrent layers that the context carries on, with element-wise nodes and products of each step between them. How
    far two right results may be apart, too: each layer adds what its own functions are off in a step."""
    rng = numpy.random.default_rng([SEED, number])
    model = Model(f"layers{number}")
    model.dim("T", 1, 8, T)
    width = int(rng.integers(1, 20))
    value, error = model.input("x", "f32", ["T", BATCH, width]), 0.0
    for k in range(int(rng.integers(1, 4))):
        op, H = str(rng.choice(list(GATES))), int(rng.choice([1, 7, 8, 16, 17, 33]))
        W, R, B = (model.constant((rng.uniform(-0.5, 0.5, shape) / scale).astype(numpy.float32)) for shape, scale in
                   (((1, GATES[op] * H, width), width), ((1, GATES[op] * H, H), H), ((1, 2 * GATES[op] * H), 1)))
        names = [f"{kind}{k}" for kind in (("h", "c") if op == "LSTM" else ("h",))]
        states = [model.state(name, f"{name}_out", "f32", [1, BATCH, H]) for name in names]
        y = f"y{k}"
        model.node(op, [value, W, R, B, None, *states], [y, *(f"{name}_out" for name in names)], hidden_size=H)
        value = model.node(str(rng.choice(["Relu", "Tanh", "Neg"])), [model.node("Squeeze", [y, model.constant(numpy.array([1]))])])
        error = 4 * error + 4 * T * FUNCTION_ERROR
        if rng.random() < 0.5:
            N = int(rng.choice([3, 16, 17]))
            value = model.node("MatMul", [value, model.constant((rng.uniform(-1, 1, (H, N)) / H).astype(numpy.float32))])
            H, error = N, error + H * 2.0**-22
        width = H
    model.output(value)
    return model, {value: (error, 0.0)}, {"x": rng.integers(-4, 5, (T, BATCH, int(model.inputs[0]["shape"][2]))).astype(numpy.float32)}


@pytest.mark.parametrize("number", range(40 if long_tests() else 4))
def test_a_sequence_in_pieces_computes_the_same(tmp_path, number):
    model, errors, feeds = layers(number)
    target = f"--target={plans.TARGETS[number % 2]}"
    need_target(target)
    module = compiled(Checker(tmp_path), model, "module", target)
    with Module(module) as loaded:
        results = {}
        for threads in THREADS:
            with loaded.context(threads) as context:
                whole = context.run(feeds)
                context.state_reset()
                ends = numpy.cumsum(PIECES)
                pieces = [context.run({"x": feeds["x"][end - length:end]}) for end, length in zip(ends, PIECES)]
            joined = {name: numpy.concatenate([piece[name] for piece in pieces]) for name in errors}
            assert not differences(joined, whole, errors)
            results[threads] = {name: (whole[name].tobytes(), joined[name].tobytes()) for name in errors}
    assert all(result == results[1] for result in results.values())
