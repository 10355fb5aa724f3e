# SPDX-License-Identifier: MIT
"""random_case(seed): a random graph of some operators, what it is run on, and how far results may be apart."""
from dataclasses import dataclass, replace

import numpy

from differential import grafts, layers, movement, reading  # noqa: F401 (their makers)
from differential.elementwise import MAKERS, makes
from differential.graph import Graph, Unsuitable, Value, filled
from support.model_builder import Model

GRAFTED = 0.1  # a share of operators
STATEFUL = 0.15  # of graphs
TRIES = 30  # operators that are drawn for one that fits
MOST_IN_BODY = 4


def step(graph, makers):
    """Adds one operator."""
    for _ in range(TRIES):
        op = graph.draw(makers)
        try:
            MAKERS[op](graph, op)
            return
        except Unsuitable:
            continue
    raise AssertionError(f"no operator fits {[v for v in graph.values]}")


# ---- control flow: bodies of other operators ----


def inner(graph):
    return [op for op in MAKERS if op not in CONTROL or graph.depth < 2]


def grown(graph):
    for _ in range(graph.integer(1, MOST_IN_BODY)):
        step(graph, inner(graph))


CONTROL = ("If", "Loop", "Scan")


def peer_only(graph):
    """The reference interpreter has no control flow."""
    if not graph.peer or not graph.bodies:
        raise Unsuitable


def carried(graph):
    """What a body may hand on from turn to turn."""
    return graph.pick(lambda v: v.fixed and v.exact and v.step and v.dtype in ("f32", "i64", "i32", "bool") and v.most < 2**20, lambda: graph.input("f32", graph.shape(2, 9)))


def handed_on(graph, value, body):
    """A value of the body of the same type, shape and bounds."""
    found = graph.pick(lambda v: v.name.startswith(body.prefix) and (v.dtype, v.shape) == (value.dtype, value.shape) and v.exact and v.step)
    return graph.within(found, value.most, value.step) if value.dtype != "bool" else found


def collected(graph, body):
    """A value that a body hands out in each turn."""
    return graph.pick(lambda v: v.name.startswith(body.prefix) and v.fixed and v.exact and v.step and v.dtype in ("f32", "i64", "i32", "bool"))


@makes("If")
def branches(graph, op):
    peer_only(graph)
    truth = graph.input("bool", (), 1.0)
    result = carried(graph)
    bodies, found = {}, []
    for name in ("then_branch", "else_branch"):
        with graph.nest([]) as body:
            graph.values.append(graph.add("Identity", [result], (result.dtype, result.shape, result.most, result.step)))
            grown(graph)
            found.append(handed_on(graph, result, body))
            body.close(found[-1:])
        bodies[name] = body
    graph.add(op, [truth], (result.dtype, result.shape, result.most, result.step), **bodies)


@makes("Loop")
def loop(graph, op):
    peer_only(graph)
    state = carried(graph)
    turns, extent = graph.scalar(graph.integer(1, 4), "i64"), None
    if graph.chance(0.6):
        turns = graph.add("Min", [graph.input("i64", (), 5, low=0), graph.scalar(4, "i64")], ("i64", (), 4.0)).name
        extent = graph.derived(f"turns({turns})", 0, 4)
    number, go = graph_values(("i64", (), 4.0), ("bool", (), 1.0))
    with graph.nest([number, go, state]) as body:
        grown(graph)
        state_out = handed_on(graph, state, body)
        scanned = [collected(graph, body)] if graph.chance(0.5) else []
        body.close([body.values[1], state_out, *scanned])
    extent = extent or int(graph.model.arrays[turns])
    graph.add(op, [turns, None, state], (state.dtype, state.shape, state.most, state.step),
              *((v.dtype, (extent, *v.shape), v.most, v.step) for v in scanned), body=body)


def graph_values(*kinds):
    return [Value("", *kind) for kind in kinds]


@makes("Scan")
def scan(graph, op):
    peer_only(graph)
    x = graph.pick(lambda v: v.rank and v.exact and v.step and v.dtype in ("f32", "i64") and graph.never_empty(v) and
                   all(isinstance(e, int) for e in v.shape[1:]) and graph.largest(v.shape[0]) <= 33, lambda: graph.input("f32", graph.shape(2, 9)))
    state = carried(graph)
    with graph.nest([state, replace(x, shape=x.shape[1:])]) as body:
        grown(graph)
        outputs = [handed_on(graph, state, body), collected(graph, body)]
        body.close(outputs)
    graph.add(op, [state, x], (state.dtype, state.shape, state.most, state.step),
              (outputs[1].dtype, (x.shape[0], *outputs[1].shape), outputs[1].most, outputs[1].step),
              body=body, num_scan_inputs=1, scan_input_directions=[graph.integer(0, 1)])


# ---- whole graphs ----

DUE = [op for op in MAKERS if op != grafts.GRAFT] + grafts.CASES


def due_step(graph, due):
    """Adds that operator or case, on inputs of its own if it must."""
    makes_it = MAKERS[due] if isinstance(due, str) else grafts.graft
    for peer in (graph.peer, graph.peer, graph.peer, due in CONTROL):
        graph.peer = peer
        for _ in range(TRIES):
            try:
                return makes_it(graph, due)
            except Unsuitable:
                graph.fresh("f32", graph.integer(1, 4))
    raise AssertionError(f"no {due}")


@dataclass
class Case:
    seed: tuple
    graph: Graph
    model: Model
    feeds: list  # of each run
    errors: dict  # output -> how far two right results may be apart: absolute, and relative to the largest, at least 1

    @property
    def winograd(self):
        return self.graph.winograd


def random_case(*seed, prefix="", winograd=False, most_steps=12):
    """The same for the same numbers; the last one says which operator, or case of other tests, it has at least. winograd: of
    graphs that may run by Winograd's algorithm."""
    rng = numpy.random.default_rng([*seed, winograd])
    due = DUE[seed[-1] % len(DUE)]
    graph = Graph(rng, prefix, peer=bool(rng.random() < 0.75) or due in CONTROL, winograd=winograd)
    graph.bodies = due in CONTROL or isinstance(due, str) and graph.chance(0.5)
    makers = sorted(MAKERS)
    favoured = [str(op) for op in rng.permutation(makers)[:10]]
    graph.fresh("f32")
    if graph.chance(STATEFUL):
        graph.carry()
    steps = graph.integer(2, most_steps)
    place = graph.integer(0, steps - 1)
    for k in range(steps):
        if k == place:
            due_step(graph, due)
        step(graph, [grafts.GRAFT] if not graph.bodies and graph.chance(GRAFTED) else favoured if graph.chance(0.5) else makers)
    graph.close_states()
    given = {*graph.fed, *(state.name for state in graph.states)}
    made = [value for value in graph.values if value.name not in given]
    read = {name for node in graph.model.nodes for name in node["inputs"]}
    wanted = [v for v in made if v.name not in read and v.name not in graph.extra or graph.chance(0.15)]
    errors = {v.name: (v.error, 0.0) for v in wanted} | {name: (0.0, bound) for name, bound in graph.extra.items()}
    errors |= {state["output"]: (0.0, 0.0) for state in graph.model.states}
    graph.model.output(*errors)
    return Case(seed, graph, graph.model, list(runs(graph, rng)), errors)


def runs(graph, rng):
    """Feeds of the usual extents, and of others where there are dims."""
    chosen = [{name: usual for name, (_, usual, _) in graph.dims.items()}]
    if graph.states:
        chosen *= 2
    if graph.dims:
        chosen.append({name: most for name, (_, _, most) in graph.dims.items()})
        chosen.append({name: int(rng.integers(least, most + 1)) for name, (least, _, most) in graph.dims.items()})
    for extents in chosen:
        yield filled(graph, rng, extents)
