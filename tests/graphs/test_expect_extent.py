# SPDX-License-Identifier: MIT
"""Extents that operators want to be equal, of which only the run knows whether they are: where they are the results are
ONNX Runtime's, on any number of threads, and else the run fails, as ONNX Runtime's does."""
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.model_builder import Model
from support.module import Module

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(7)
TO_HALF = {"s": np.array([0]), "e": np.array([1 << 40]), "last": np.array([-1]), "two": np.array([2])}


def weights(*shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], output, **attributes)


HALF = node("Slice", "x s e last two", "half")
BY_MASK = [node("Compress", "a m", "i", axis=0), node("Compress", "b m", "j", axis=0)]
FLOATS = [node("NonZero", "m", "places"), node("Cast", "places", "f", to=F32)]


def masks(*counts):
    return [{"m": rng.permutation(np.arange(9) < n)} for n in counts]


def drawn(feeds, **shapes):
    return [{**feed, **{name: weights(*shape) for name, shape in shapes.items()}} for feed in feeds]


TWO_MASKS = [node("Compress", "a m", "i", axis=0), node("Compress", "b n", "j", axis=0)]
TO_NUMBERS = [node("NonZero", "m", "places"), node("NonZero", "n", "others"), node("Cast", "others", "numbers", to=F32)]


def of_two_masks(nodes, **constants):
    """m and n, and a [9, 2] and b [9, 2] of which they leave rows."""
    def feeds(*counts):
        return [{**first, "n": masks(b)[0]["m"]} for a, b in counts for first in drawn(masks(a), a=(9, 2), b=(9, 2))]
    inputs = {"m": (BOOL, [9]), "n": (BOOL, [9]), "a": (F32, [9, 2]), "b": (F32, [9, 2])}
    return nodes, inputs, constants, feeds((4, 4), (9, 9)), feeds((4, 5), (7, 2))


def layer(op, gates):
    numbers = {"w": weights(1, 3 * gates, 4), "r": weights(1, 3 * gates, 3) / 8}
    return ([HALF, node(op, "half w r", "y", hidden_size=3)], {"x": (F32, ["S", 2, "T"])}, {**TO_HALF, **numbers},
            drawn([{}], x=(5, 2, 8)), drawn([{}], x=(5, 2, 10)))


# What is new [2, S] behind a past [2, P], and an input of N, of which the file does not say that it is P + S.
ALL = node("Concat", "past new", "all", axis=1)
ALL_AND_OWN = {"past": (F32, [2, "P"]), "new": (F32, [2, "S"])}


def of_all_and_own(last, own, good, bad):
    """good, bad: P, S, N."""
    def feeds(extents):
        return [feed for P, S, N in extents
                for feed in drawn([{}], past=(2, P), new=(2, S), own=[N if extent == "N" else extent for extent in own])]
    return [ALL, last], {**ALL_AND_OWN, "own": (F32, own)}, {}, feeds(good), feeds(bad)


HEADS = {"q": (F32, [1, 2, "S", 4]), "k": (F32, [1, 2, "S", 4]), "v": (F32, [1, 2, "S", 4]), "mask": (F32, ["S", "N"]),
         "past_k": (F32, [1, 2, "P", 4]), "past_v": (F32, [1, 2, "P", 4])}


def heads(P, S, N):
    extents = {"P": P, "S": S, "N": N}
    return drawn([{}], **{name: [extents.get(extent, extent) for extent in shape] for name, (_, shape) in HEADS.items()})


# Nodes, inputs, constants; feeds that fit; feeds that do not.
CASES = {
    "MatMul of a computed extent": ([HALF, node("MatMul", "half w", "y")], {"x": (F32, [2, "T"])}, {**TO_HALF, "w": weights(4, 3)},
                                    drawn([{}], x=(2, 7)) + drawn([{}], x=(2, 8)), drawn([{}], x=(2, 6)) + drawn([{}], x=(2, 40))),
    "MatMul from the left": ([HALF, node("Transpose", "half", "t"), node("MatMul", "w t", "y")], {"x": (F32, [2, "T"])},
                             {**TO_HALF, "w": weights(3, 4)}, drawn([{}], x=(2, 8)), drawn([{}], x=(2, 9))),
    "Gemm": ([HALF, node("Gemm", "half w", "y", transB=1)], {"x": (F32, [2, "T"])}, {**TO_HALF, "w": weights(3, 4)},
             drawn([{}], x=(2, 7)), drawn([{}], x=(2, 3))),
    "Gemm of a flattened plane": ([node("Flatten", "x", "flat"), node("Gemm", "flat w", "y")], {"x": (F32, [2, "H", "W"])},
                                  {"w": weights(12, 5)}, drawn([{}], x=(2, 3, 4)) + drawn([{}], x=(2, 12, 1)), drawn([{}], x=(2, 3, 3))),
    **{op: layer(op, gates) for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))},
    "MatMul of a count": ([*FLOATS, node("MatMul", "f w", "y")], {"m": (BOOL, [9])}, {"w": weights(4, 3)}, masks(4), masks(0, 3, 9)),
    "Add of one count twice": ([*FLOATS, node("NonZero", "m", "again"), node("Add", "places again", "y")], {"m": (BOOL, [9])}, {},
                               masks(0, 1, 5, 9), []),
    "Add of Compress by one mask": ([*BY_MASK, node("Add", "i j", "y")], {"m": (BOOL, [9]), "a": (F32, [9, 2]), "b": (F32, [9, 2])}, {},
                                    drawn(masks(0, 1, 6, 9), a=(9, 2), b=(9, 2)), []),
    "Compress along two axes": ([BY_MASK[0], node("Compress", "a m", "j", axis=1), node("MatMul", "i j", "y")],
                                {"m": (BOOL, [9]), "a": (F32, [9, 9])}, {}, drawn(masks(1, 4, 9), a=(9, 9)), []),
    "Where of three": ([*BY_MASK, node("Less", "i j", "less"), node("Where", "less i j", "y")],
                       {"m": (BOOL, [9]), "a": (F32, [9, 2]), "b": (F32, [9, 2])}, {}, drawn(masks(0, 4), a=(9, 2), b=(9, 2)), []),
    "Add of two masks": ([node("NonZero", "m", "i"), node("NonZero", "n", "j"), node("Add", "i j", "y")],
                         {"m": (BOOL, [9]), "n": (BOOL, [9])}, {}, [{**a, "n": b["m"]} for a, b in zip(masks(4, 0), masks(4, 0))],
                         [{**a, "n": b["m"]} for a, b in zip(masks(4, 2, 5), masks(5, 0, 2))]),
    "Add of a mask's own dim": of_all_and_own(node("Add", "all own", "y"), ["N"], [(3, 2, 5), (1, 1, 2)], [(3, 2, 6), (3, 2, 4)]),
    "Add of a mask's own dim first": of_all_and_own(node("Add", "own all", "y"), [2, "N"], [(3, 2, 5)], [(3, 2, 6)]),
    "MatMul of an own dim": of_all_and_own(node("MatMul", "all own", "y"), ["N", 3], [(3, 2, 5), (1, 9, 10)], [(3, 2, 6)]),
    "Attention with a past and a mask's own dim": (
        [helper.make_node("Attention", "q k v mask past_k past_v".split(), ["y", "present_k", "present_v"])], HEADS, {},
        heads(3, 2, 5) + heads(1, 1, 2), heads(3, 2, 6)),
    "batches of a MatMul": of_two_masks([*TWO_MASKS, node("Unsqueeze", "i middle", "p"), node("Unsqueeze", "j last", "q"),
                                         node("MatMul", "p q", "y")], middle=np.array([1]), last=np.array([2])),
    "the bias of a Gemm": of_two_masks([*TWO_MASKS, node("Gemm", "i w j", "y")], w=weights(2, 2)),
    "letters of an Einsum": of_two_masks([*TWO_MASKS, node("Einsum", "i j", "y", equation="ab, ac -> abc")]),
    "updates of elements": of_two_masks([*TO_NUMBERS, node("Identity", "numbers", "f"),
                                         node("ScatterElements", "zeros places f", "y", axis=1)], zeros=weights(1, 9)),
    "updates of tuples": of_two_masks([*TO_NUMBERS, node("Transpose", "places", "tuples"), node("Squeeze", "numbers", "f"),
                                       node("ScatterND", "zeros tuples f", "y")], zeros=weights(9)),
    "an assignment by a mask": (
        [node("NonZero", "m", "places"), node("Transpose", "places", "tuples"), node("Reshape", "m all", "flat"),
         node("Cast", "flat", "ones", to=I64), node("ReduceSum", "ones", "count", keepdims=1), node("Expand", "five count", "f"),
         node("ScatterND", "x tuples f", "y")], {"m": (BOOL, [3, "S"]), "x": (F32, [3, "S"])},
        {"all": np.array([-1]), "five": np.float32(5)},
        [{"m": rng.random((3, S)) < part, "x": weights(3, S)} for S in (1, 7) for part in (0, 0.5, 1)], []),
    "a sum of conditions along an axis, which is no count of all": (
        [node("NonZero", "m", "places"), node("Cast", "m", "ones", to=I64), node("ReduceSum", "ones first", "some", keepdims=0),
         node("Cast", "some", "f", to=F32), node("Neg", "f", "y")], {"m": (BOOL, [3, "S"])}, {"first": np.array([0])},
        [{"m": rng.random((3, S)) < 0.5} for S in (1, 7)], []),
    "no places of a list of zeros": (
        [node("Shape", "x", "s"), helper.make_node("ConstantOfShape", ["s"], ["zeros"], value=numpy_helper.from_array(np.array([0]))),
         node("NonZero", "zeros", "places"), node("Cast", "places", "f", to=F32), node("Neg", "f", "y")], {"x": (F32, ["S"])}, {},
        drawn([{}], x=(1,)) + drawn([{}], x=(6,)), []),
    "the largest of few": (
        [node("Compress", "a m", "left", axis=0), node("Shape", "left", "size"), node("Min", "size three", "k"),
         helper.make_node("TopK", ["left", "k"], ["y", "places"])], {"m": (BOOL, [9]), "a": (F32, [9])}, {"three": np.array([3])},
        [{**feed, "a": rng.permutation(9).astype(np.float32)} for feed in masks(0, 1, 3, 9)], []),
    "MatMul of two counts": ([*BY_MASK, node("Transpose", "i", "t"), node("MatMul", "t j", "y")],
                             {"m": (BOOL, [9]), "a": (F32, [9, 2]), "b": (F32, [9, 2])}, {}, drawn(masks(1, 4), a=(9, 2), b=(9, 2)), []),
}


FIVE_MORE = ([*FLOATS, node("Concat", "f five", "more", axis=1), node("MatMul", "more w", "y")], {"m": (BOOL, [9])},
             {"five": weights(1, 5), "w": weights(4, 3)}, [], [])


def model_of(case, path):
    nodes, inputs, constants, _, _ = case
    ends = [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()]
    result = helper.make_tensor_value_info("y", I64 if "NonZero" in {n.op_type for n in nodes} and "f" not in nodes[-1].input else F32, None)
    graph = helper.make_graph(nodes, "g", ends, [result], [numpy_helper.from_array(value, name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)
    return path


@pytest.mark.parametrize("name", CASES)
def test_equal_extents_give_onnx_runtimes_results_and_others_fail(name, rnncc, tmp_path):
    _, _, _, good, bad = CASES[name]
    model = model_of(CASES[name], tmp_path / "m.onnx")
    done = rnncc("--verify-each", model, "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for threads in (1, 3):
        with Module(tmp_path / "m.so") as module, module.context(threads) as context:
            for feed in good:
                (peer,) = session.run(None, feed)
                np.testing.assert_allclose(context.run(feed)["y"], peer, rtol=1e-6, atol=1e-6)
            for feed in bad:
                with pytest.raises(Exception, match="value"):
                    context.run(feed)
    for feed in bad:
        with pytest.raises(Exception):
            session.run(None, feed)


def test_the_places_of_a_list_of_ones_are_as_many_as_it_has(rnncc, tmp_path):
    """So PyTorch's exporter writes an arange. No run checks a count."""
    nodes = [node("Shape", "x", "s"), helper.make_node("ConstantOfShape", ["s"], ["ones"], value=numpy_helper.from_array(np.array([3]))),
             node("NonZero", "ones", "places"), node("Squeeze", "places", "i"), node("Gather", "x i", "f"), node("Add", "f x", "y")]
    done = rnncc(model_of((nodes, {"x": (F32, ["S"])}, {}, [], []), tmp_path / "m.onnx"), "-o", tmp_path / "m.so")
    assert done.returncode == 0 and "each run checks" not in done.stderr, done.stderr
    with Module(tmp_path / "m.so") as module, module.context(2) as context:
        for S in (1, 6):
            x = weights(S)
            np.testing.assert_array_equal(context.run({"x": x})["y"], 2 * x)


def test_an_integer_that_is_cast_to_an_integer_stays_it(rnncc, tmp_path):
    """Amounts of a Pad are cast by PyTorch's exporter; the Reshape needs the sum of the extents that they give."""
    model = Model()
    model.dim("n", 3, 5, 8)
    x = model.input("x", "f32", ["n"])
    extent, five, none = model.node("Shape", [x]), model.constant(np.array([5])), model.constant(np.array([0]))
    amounts = model.node("Concat", [none, model.node("Sub", [extent, five])], axis=0)
    padded = model.node("Pad", [x, model.node("Cast", [amounts], to="i64")])
    double = model.node("Sub", [model.node("Add", [extent, extent]), five])
    model.output(model.node("Reshape", [padded, model.node("Concat", [double, model.constant(np.array([1]))], axis=0)]))
    assert rnncc(model.write(tmp_path), "-o", tmp_path / "m.so").returncode == 0
    with Module(tmp_path / "m.so") as module, module.context(1) as context:
        for n in (3, 5, 8):
            feeds = {"x": weights(n)}
            np.testing.assert_array_equal(context.run(feeds)[model.outputs[0]], model.onnx_run(feeds)[model.outputs[0]])


def test_what_each_run_checks_is_told(rnncc, tmp_path):
    done = rnncc(model_of(CASES["MatMul of a computed extent"], tmp_path / "m.onnx"), "-o", tmp_path / "m.so", "--dim=T=1..40")
    assert done.returncode == 0 and done.stderr.splitlines() == [
        f"{tmp_path}/m.onnx: y: note: MatMul: axis 1 of `half` f32[2, floor((T + 1) / 2)] must be 4, which each run checks; they are "
        "equal where T is 7 to 8: bound it so, as --dim 'T=7..8' does (T: axis 1 of `x`)"]


def test_an_own_dim_that_is_checked_is_told(rnncc, tmp_path):
    done = rnncc(model_of(CASES["Add of a mask's own dim first"], tmp_path / "m.onnx"), "-o", tmp_path / "m.so", "--dim=P=1..40",
                 "--dim=S=1..8", "--dim=N=2..48")
    assert done.returncode == 0 and done.stderr.splitlines() == [
        f"{tmp_path}/m.onnx: y: note: Add: axis 1 of `own` f32[2, N] must be P + S, which each run checks"]


@pytest.mark.parametrize("case, options, told", [
    (CASES["MatMul of a computed extent"], ["--dim=T=1..6"], "floor((T + 1) / 2)"),
    (CASES["LSTM"], ["--dim=T=9..20"], "floor((T + 1) / 2)"), (FIVE_MORE, [], "+ 5")])
def test_extents_that_are_never_equal_are_refused(case, options, told, rnncc, tmp_path):
    done = rnncc(model_of(case, tmp_path / "m.onnx"), "-o", tmp_path / "m.so", *options)
    assert done.returncode == 2 and told in done.stderr, done.stderr


@pytest.mark.parametrize("options, bounds", [((), (2, 7, 16)), (("--dim=P + S=2..3..20",), (2, 3, 20))])
def test_a_dim_named_as_a_sum_has_the_bounds_of_the_sum(compile, tmp_path, options, bounds):
    """Also before its parts are read; an option says otherwise."""
    nodes, inputs, *others = of_all_and_own(node("Add", "all own", "y"), [2, "P + S"], [], [])
    model_of((nodes, {"own": inputs.pop("own"), **inputs}, *others), tmp_path / "m.onnx")
    with Module(compile(tmp_path / "m.onnx", "--dim=P=1..4..9", "--dim=S=1..3..7", *options)) as module:
        assert module.dims == {"P": (1, 4, 9), "S": (1, 3, 7), "P + S": bounds}
        with module.context() as context:
            feeds = {"own": weights(2, 5), "past": weights(2, 2), "new": weights(2, 3)}
            np.testing.assert_array_equal(context.run(feeds)["y"], np.concatenate([feeds["past"], feeds["new"]], 1) + feeds["own"])
