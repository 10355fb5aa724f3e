# SPDX-License-Identifier: MIT
"""Makers of nodes with all their attributes: the models of one operator that other tests have, put into a graph. Their
inputs are values of the graph where these can be brought within the bounds of what the model is fed with, and results
that are exact go on."""
import numpy
import onnx

from differential.elementwise import FUNCTION_ERROR, makes
from differential.graph import CONTRIBUTED, NEWER, Unsuitable, Value
from differential.layers import WINOGRAD_BOUND
from differential.more_cases import MORE
from graphs.attention_models import ATTENTION
from graphs.contrib_models import CONTRIB, Constant
from graphs.expanded_models import EXPANDED
from graphs.movement_models import CASES as MOVEMENT
from graphs.normalisation_models import NORMALISATIONS
from graphs.op_models import CASES as OPERATORS
from graphs.op_models import INEXACT
from graphs.quantised_models import QUANTISED
from graphs.resize_models import OF_ANY_RANK, RESIZES
from graphs.sample_models import SAMPLES
from graphs.volume_models import ROUNDED, VOLUMES
from support.model_builder import TYPES, Model

TRANSFORMS = ("dft", "stft")

# Of each table: which cases are exact, and how far others may be off, relative to the largest result and at least 1.
# The bounds are those of the tables' own tests, where they are derived.
TABLES = [
    (OPERATORS, lambda name: name not in INEXACT, FUNCTION_ERROR), (MOVEMENT, lambda name: True, 0),
    (EXPANDED, lambda name: name in ("Hardmax",), FUNCTION_ERROR), (NORMALISATIONS, lambda name: False, 16 * FUNCTION_ERROR),
    (QUANTISED, lambda name: True, 0), (SAMPLES, lambda name: False, 4 * 14 * 3 * 2 * 2.0**-24),
    (VOLUMES, lambda name: name not in ROUNDED, 4 * FUNCTION_ERROR), (ATTENTION, lambda name: False, 2.0**-18),
    # Sums of at most 64 products; of transforms, ONNX Runtime rounds angles of up to 28 turns to f32.
    ({name: MORE[name] for name in TRANSFORMS}, lambda name: False, 2.0**-15),
    ({name: build for name, build in MORE.items() if name not in TRANSFORMS}, lambda name: name == "suppression", 2.0**-17),
    (RESIZES | {f"{name} of any rank": build for name, build in OF_ANY_RANK.items()}, lambda name: False, 2.0**-16),
]
# Those whose bound holds of any numbers within the inputs' bounds: no quotient by a deviation that may be 0.
STEADY = (OPERATORS, VOLUMES, RESIZES, ATTENTION)
DIVIDING = ("Mod", "Div", "Pow", "Reciprocal")  # by what must not be 0
BEYOND_PEER = {f"{name} of any rank" for name in OF_ANY_RANK}
DRAWN = 2.0**-18  # of CONTRIB
SHARE_OF_OTHERS = 0.6  # of inputs that could come from the graph


def contributed(name):
    """A case of CONTRIB as a Model."""
    def build(rng):
        op, arrays, outputs, attributes = CONTRIB[name](rng)
        model, names, feeds = Model(), [], {}
        for k, array in enumerate(arrays):
            if array is None:
                names.append("")
            elif isinstance(array, Constant):
                names.append(model.constant(numpy.asarray(array)))
            else:
                dtype = next(key for key, (kind, _) in TYPES.items() if numpy.asarray(array).dtype == kind)
                names.append(model.input(f"x{k}", dtype, array.shape))
                feeds[f"x{k}"] = array
        written = [f"y{k}" if wanted else "" for k, wanted in enumerate(outputs)]
        model.node(op, names, written, **attributes)
        model.output(*(y for y, wanted in zip(written, outputs) if wanted == 1))
        return model, feeds
    return build


def all_cases():
    """(name, build, whether it is exact, its bound)"""
    for table, exact, bound in TABLES:
        for name, build in table.items():
            yield name, build, exact(name), bound
    for name in CONTRIB:
        op, _, _, attributes = CONTRIB[name](numpy.random.default_rng(0))
        if op in CONTRIBUTED and not attributes.get("channels_last"):  # the reader of ONNX files transposes those
            yield name, contributed(name), False, DRAWN


# Linear attention is a loop, which the reference does not run, nor does ONNX Runtime: tests/graphs/test_attention.py.
CASES = [case for case in all_cases() if not case[0].startswith("linear")]


def in_shape(graph, value, shape):
    """Its elements, again from the first where there are too few, in another shape."""
    count, have = int(numpy.prod(shape)), graph.elements(value.shape)
    def node(op, others, shape, **attributes):
        return graph.add(op, [value, *others], (value.dtype, shape, value.most, value.step, value.error), **attributes)
    value = node("Reshape", [graph.indices(-1)], (have,))
    if have < count:
        times = -(-count // have)
        value = node("Tile", [graph.indices(times)], (have * times,))
        have *= times
    if have > count:
        value = node("Slice", [graph.indices(0), graph.indices(count)], (count,))
    return node("Reshape", [graph.indices(*shape)], shape)


def from_graph(graph, array):
    """A value for an input that is fed with such an array; None if none can be used."""
    if array.dtype != numpy.float32 or not array.size or not numpy.isfinite(array).all() or array.size > 4000:
        return None
    low, high = float(array.min()), float(array.max())
    whole = bool((array == numpy.trunc(array)).all())
    fitting = [v for v in graph.values if v.dtype == "f32" and v.fixed and v.exact and v.step and 0 < graph.elements(v.shape) < 4000]
    if not fitting or low >= high:
        return None
    value = graph.within(graph.draw(fitting[-4:]), None, 1.0 if whole else None)
    bounds = [graph.scalar(low), graph.scalar(high)]
    value = graph.add("Clip", [value, *bounds], ("f32", value.shape, max(abs(low), abs(high)), value.step if whole else 0.0))
    return in_shape(graph, value, array.shape) if value.shape != array.shape else value


def operand(graph, described, array, steady):
    """What an input of the case reads."""
    if steady and graph.chance(SHARE_OF_OTHERS) and all(isinstance(extent, int) for extent in described["shape"]):
        found = from_graph(graph, array)
        if found:
            return found.name
    finite = array.dtype.kind in "iub" or array.dtype == numpy.float32 and numpy.isfinite(array).all()
    most = float(numpy.abs(array.astype(float)).max(initial=0)) if finite else numpy.inf
    step = 1.0 if array.dtype != numpy.float32 or (array == numpy.trunc(array)).all() else 0.0
    value = graph.input(described["dtype"], array.shape, most, step, make=lambda rng, shape: array)
    if not finite:
        graph.values.remove(value)
    return value.name


def known(graph, model, renamed):
    """name -> (type, shape) of the outputs whose shape ONNX infers."""
    inferred = onnx.shape_inference.infer_shapes(model.onnx())
    for output in inferred.graph.output:
        kind = output.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim] if kind.HasField("shape") else [None]
        dtype = next((name for name, (_, code) in TYPES.items() if code == kind.elem_type), None)
        if dtype and None not in dims:
            yield renamed[output.name], dtype, tuple(dims)


def scaled_to_itself(model):
    """A Resize by scales that keep all extents: ONNX Runtime copies, though a scale is not 1."""
    node = model.nodes[0]
    scales = model.arrays.get(node["inputs"][2]) if node["op"] == "Resize" and len(node["inputs"]) > 2 else None
    if scales is None or not scales.size:
        return False
    shape = model.inputs[0]["shape"]
    axes = node["attributes"].get("axes") or range(len(shape))
    return all(int(shape[axis] * scale) == shape[axis] for axis, scale in zip(axes, scales))


def scaled_alike_from_the_end(model):
    """A Resize with a policy for axes that count from the end: ONNX Runtime leaves these axes as they are."""
    attributes = model.nodes[0]["attributes"]
    return "keep_aspect_ratio_policy" in attributes and min(attributes.get("axes") or [0]) < 0


def graft(graph, case):
    name, build, exact, bound = case
    if graph.depth:
        raise Unsuitable
    model, feeds = build(graph.rng)
    if any(hasattr(value, "json") for node in model.nodes for value in node["attributes"].values()):
        raise Unsuitable
    if scaled_to_itself(model) or scaled_alike_from_the_end(model):
        raise Unsuitable
    if graph.peer and (name in BEYOND_PEER or model.opset != Model.opset):
        raise Unsuitable  # ONNX Runtime lacks them
    if graph.winograd and any(node["op"] == "Conv" for node in model.nodes):
        exact, bound = False, max(bound, WINOGRAD_BOUND)
    if model.nodes[0]["op"] not in NEWER:
        graph.model.opset = max(graph.model.opset, model.opset)
    renamed = {"": ""}
    steady = (exact or any(name in table for table in STEADY)) and not name.startswith(DIVIDING)
    for described in model.inputs:
        renamed[described["name"]] = operand(graph, described, feeds[described["name"]], steady)
    for constant, array in model.arrays.items():
        renamed[constant] = graph.model.constant(array)
    for node in model.nodes:
        outputs = [f"{graph.prefix}v{len(graph.model.nodes)}_{k}" if output else "" for k, output in enumerate(node["outputs"])]
        renamed |= dict(zip(node["outputs"], outputs))
        graph.used.add(node["op"])
        graph.model.node(node["op"], [renamed[name] for name in node["inputs"]], outputs, **node["attributes"])
    graph.grafted.append(name)
    graph.extra |= {renamed[output]: bound for output in model.outputs}
    if exact and graph.chance(0.7):
        for output, dtype, shape in known(graph, model, renamed):
            go_on(graph, output, dtype, shape)


def go_on(graph, output, dtype, shape):
    """An exact result, whose numbers may be any."""
    if dtype not in ("f32", "i64", "i32"):
        graph.values.append(Value(output, dtype, shape, 1.0 if dtype == "bool" else 2.0**62, 1.0))
        return
    value = Value(output, dtype, shape, 2.0**62, 0.0 if dtype == "f32" else 1.0)
    graph.within(value, 32.0)


GRAFT = "a case of its own"


@makes(GRAFT)
def any_graft(graph, _):
    if graph.bodies:
        raise Unsuitable
    graft(graph, graph.draw(CASES))
