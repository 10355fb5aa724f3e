# SPDX-License-Identifier: MIT
"""shrunk(finding, checker): a smaller case that is wrong in the same way. Outputs and nodes are left out, values become
inputs with what the reference computes for them, nodes are bypassed, attributes dropped, dims fixed and extents lowered,
each as long as the case still fails as it did."""
import copy
import re
from dataclasses import replace

import numpy

from differential.check import CONTROL, Finding
from support.model_builder import type_name

MOST_TRIALS = 400


def kind_of(finding):
    """What makes two findings the same: not names, numbers and places."""
    return finding.against, re.sub(r"[\w./]*\d[\w.]*|`[^`]*`|\[[^]]*\]", "_", finding.what)[:60]


def names_read(node):
    """By the node and its bodies."""
    names = set(node["inputs"])
    for value in node["attributes"].values():
        if hasattr(value, "nodes"):
            names |= {name for inner in value.nodes for name in names_read(inner)} | set(value.outputs)
    return names


def without_dead(model, feeds):
    """Drops nodes, inputs and constants that no output needs."""
    wanted = {*model.outputs, *(state["output"] for state in model.states)}
    kept = []
    for node in reversed(model.nodes):
        if wanted & set(node["outputs"]):
            kept.append(node)
            wanted |= names_read(node)
    model.nodes = kept[::-1]
    inputs = [described for described in model.inputs if described["name"] in wanted]
    model.inputs = inputs or model.inputs[:1]
    fed = {described["name"] for described in model.inputs}
    model.arrays = {name: array for name, array in model.arrays.items() if name in wanted}
    used = {extent for described in model.inputs for extent in described["shape"]}
    model.dims = {name: dim for name, dim in model.dims.items() if name in used}
    return {name: array for name, array in feeds.items() if name in fed}


def variant(case, change):
    """A copy of the case that change(model, feeds, errors) has changed; None if that does not apply."""
    model, feeds, errors = copy.deepcopy(case.model), dict(case.feeds[0]), dict(case.errors)
    model._session = None
    if change(model, feeds, errors) is False:
        return None
    model.outputs = [name for name in model.outputs if name in errors]
    feeds = without_dead(model, feeds)
    graph = replace(case.graph, used={node["op"] for node in model.nodes}, model=model)
    return replace(case, graph=graph, model=model, feeds=[feeds], errors=errors)


# ---- changes, each a function of (model, feeds, errors) ----


def only_output(name):
    def change(model, feeds, errors):
        if set(errors) == {name}:
            return False
        bound = errors[name]
        errors.clear()
        errors[name] = bound
    return change


def fixed_dims(model, feeds, errors):
    if not model.dims:
        return False
    for described in model.inputs:
        described["shape"] = list(feeds[described["name"]].shape)


def without_state(model, feeds, errors):
    """States are inputs, at first zeros."""
    if not model.states:
        return False
    for state in model.states:
        model.input(state["input"], state["dtype"], state["shape"])
        feeds[state["input"]] = numpy.zeros(state["shape"], numpy.float32)
    model.states = []


def fed(name, array):
    """The value is an input."""
    def change(model, feeds, errors):
        if name in errors:
            return False
        for node in model.nodes:
            node["outputs"] = [f"{output}_gone" if output == name else output for output in node["outputs"]]
        model.input(name, type_name(array), array.shape)
        feeds[name] = array
    return change


def bypassed(k, source):
    """Readers of the node's output read one of its inputs."""
    def change(model, feeds, errors):
        node = model.nodes[k]
        old, new = node["outputs"][0], node["inputs"][source]
        if not new or old in errors:
            return False
        for other in model.nodes:
            other["inputs"] = [new if name == old else name for name in other["inputs"]]
    return change


def earlier_output(k, source):
    """An input of the last node is compared in its place."""
    def change(model, feeds, errors):
        name = model.nodes[k]["inputs"][source]
        if name not in {output for node in model.nodes for output in node["outputs"]}:
            return False
        bound = errors.get(model.nodes[k]["outputs"][0], (0.0, 0.0))
        errors.clear()
        errors[name] = bound
        model.outputs = [name]
    return change


def without_attribute(k, name):
    def change(model, feeds, errors):
        del model.nodes[k]["attributes"][name]
    return change


def lower_extent(old, new):
    """Each axis of that extent is cut, and each constant that says so is changed."""
    def cut(array):
        return array[tuple(slice(0, new) if extent == old else slice(None) for extent in array.shape)]

    def told(array):
        return numpy.where(array == old, new, array).astype(array.dtype) if array.dtype == numpy.int64 and array.size < 9 else array

    def change(model, feeds, errors):
        for described in model.inputs:
            described["shape"] = [new if extent == old else extent for extent in described["shape"]]
            feeds[described["name"]] = cut(feeds[described["name"]])
        model.arrays = {name: told(cut(array)) for name, array in model.arrays.items()}
        for node in model.nodes:
            for name in ("hidden_size", "num_groups", "group", "kernel_shape"):
                if node["attributes"].get(name) in (old, [old], [old, old]):
                    value = node["attributes"][name]
                    node["attributes"][name] = new if isinstance(value, int) else [new] * len(value)
    return change


def zeroed(name):
    def change(model, feeds, errors):
        of = feeds if name in feeds else model.arrays
        if not of[name].any():
            return False
        of[name] = numpy.zeros_like(of[name])
    return change


def changes(case, values):
    """Those that may leave most out come first. values: of the reference, by name."""
    model = case.model
    yield from (only_output(name) for name in case.errors)
    yield fixed_dims
    yield without_state
    for k in reversed(range(len(model.nodes))):
        yield from (earlier_output(k, source) for source in range(len(model.nodes[k]["inputs"])))
    for node in reversed(model.nodes):
        yield from (fed(name, values[name]) for name in node["outputs"] if name in values)
    for k, node in enumerate(model.nodes):
        yield from (bypassed(k, source) for source in range(len(node["inputs"])))
    for k, node in enumerate(model.nodes):
        yield from (without_attribute(k, name) for name in node["attributes"])
    extents = {extent for array in (*case.feeds[0].values(), *model.arrays.values()) for extent in array.shape if extent > 1}
    for extent in sorted(extents, reverse=True):
        yield from (lower_extent(extent, new) for new in (1, extent // 2, extent - 1))
    yield from (zeroed(name) for name in (*case.feeds[0], *model.arrays))


# ---- the search ----


def reference_values(case, checker):
    """What the reference computes for every value of the graph; nothing where it cannot run it."""
    model = copy.deepcopy(case.model)
    model._session = None
    if CONTROL & {node["op"] for node in model.nodes}:
        return {}
    model.outputs = [name for node in model.nodes for name in node["outputs"] if name]
    try:
        return checker.reference.run(model, model.write(checker.folder), case.feeds[0])
    except Exception:  # it is what fails
        return {}


def failing(case, checker, options, kind):
    """The finding, if the case fails in that way."""
    try:
        found = checker.check([case], *options)
    except Exception as wrong:  # a change has made no model of it
        return kind[0] == "crash" and Finding(case, repr(wrong), options, "crash")
    return next((finding for finding in found if kind_of(finding) == kind), None)


def first_failing_run(finding, checker):
    """The case with the feeds of one run, if it fails so."""
    for feeds in finding.case.feeds:
        alone = replace(finding.case, feeds=[feeds])
        if found := failing(alone, checker, finding.options, kind_of(finding)):
            return found
    return finding


def shrunk(finding, checker, most_trials=MOST_TRIALS):
    kind, best = kind_of(finding), first_failing_run(finding, checker)
    if len(best.case.feeds) > 1:
        return best  # it takes several runs
    trials, progress = 0, True
    while progress and trials < most_trials:
        progress = False
        for change in changes(best.case, reference_values(best.case, checker)):
            smaller = variant(best.case, change)
            if smaller is None:
                continue
            trials += 1
            if found := failing(smaller, checker, finding.options, kind):
                best, progress = found, True
                break
            if trials >= most_trials:
                break
    return best
