# SPDX-License-Identifier: MIT
"""Sequences and optional values that are settled when compiling: the tensors that come of them are ONNX Runtime's."""
import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.module import Module
from support.onnx_files import BOOL, F32, I64, model_of, onnxruntime_run, write

STEPS = 6


def at(position):
    return numpy.array(position)


def random_program(rng, inputs):
    """(nodes, constants, outputs): a sequence of some inputs, to which insertions and removals are done."""
    nodes = [helper.make_node("SequenceConstruct", inputs[:2], ["s0"])]
    constants, length = {}, 2
    for step in range(STEPS):
        insert = length < 2 or rng.random() < 0.6
        places = range(-length, length + insert)
        position = [] if rng.random() < 0.3 else [f"p{step}"]
        if position:
            constants[position[0]] = at(int(rng.choice(places)))
        operands = [f"s{step}", *([str(rng.choice(inputs))] if insert else []), *position]
        nodes.append(helper.make_node("SequenceInsert" if insert else "SequenceErase", operands, [f"s{step + 1}"]))
        length += 1 if insert else -1
    last = f"s{STEPS}"
    constants["first"] = at(-length)
    nodes += [helper.make_node("Identity", [last], ["same"]), helper.make_node("Optional", ["same"], ["maybe"]),
              helper.make_node("OptionalGetElement", ["maybe"], ["s"]),
              helper.make_node("OptionalHasElement", ["maybe"], ["holds"]),
              helper.make_node("SequenceAt", ["s", "first"], ["at"]), helper.make_node("SequenceLength", ["s"], ["length"]),
              helper.make_node("ConcatFromSequence", ["s"], ["joined"], axis=1),
              helper.make_node("ConcatFromSequence", ["s"], ["stacked"], axis=-1, new_axis=1)]
    outputs = {"at": (F32, None), "length": (I64, []), "joined": (F32, None), "stacked": (F32, None), "holds": (BOOL, [])}
    return nodes, constants, outputs


def same_as_onnxruntime(compile, tmp_path, model, feeds):
    expected = onnxruntime_run(model, feeds)
    with Module(compile(write(tmp_path, model))) as module, module.context() as context:
        found = context.run(feeds)
    for name, due in expected.items():
        numpy.testing.assert_array_equal(found[name], due, err_msg=name)
        assert found[name].dtype == due.dtype, name


@pytest.mark.parametrize("seed", range(3))
def test_tensors_go_through_sequences(compile, tmp_path, seed):
    rng = numpy.random.default_rng(seed)
    inputs = [f"x{k}" for k in range(4)]
    nodes, constants, outputs = random_program(rng, inputs)
    model = model_of(nodes, {name: (F32, [2, 3]) for name in inputs}, outputs, constants, opset=18)
    same_as_onnxruntime(compile, tmp_path, model, {name: rng.standard_normal((2, 3), "f") for name in inputs})


def mapped(inputs, nodes, outputs=("o",), names=("s",)):
    """SequenceMap over x0, x1 and x2, and what comes behind; inputs: of the body."""
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(name, F32, None) for name in inputs],
                             [helper.make_tensor_value_info(name, F32, None) for name in outputs])
    results = [f"t{k}" for k in range(len(outputs))]
    return [helper.make_node("SequenceConstruct", ["x0", "x1", "x2"], ["s"]), helper.make_node("SequenceConstruct", ["x2", "x2", "x0"], ["r"]),
            helper.make_node("SequenceMap", list(names), results, body=body)], results


@pytest.mark.parametrize("inputs, nodes, outputs, names", [
    (["a"], [helper.make_node("Neg", ["a"], ["o"])], ["o"], ["s"]),
    (["a", "b", "w"], [helper.make_node("Mul", ["a", "w"], ["m"]), helper.make_node("Sub", ["m", "b"], ["o"]),
                       helper.make_node("Relu", ["m"], ["p"])], ["o", "p"], ["s", "r", "x1"]),
    (["a"], [helper.make_node("Mul", ["a", "x1"], ["m"]), helper.make_node("SequenceAt", ["r", "one"], ["x"]),
             helper.make_node("Sub", ["x", "c"], ["d"]), helper.make_node("Add", ["m", "d"], ["o"])], ["o", "m"], ["s"])])
def test_a_body_is_done_for_each_tensor(compile, tmp_path, inputs, nodes, outputs, names):
    made, results = mapped(inputs, nodes, outputs, names)
    made += [helper.make_node("ConcatFromSequence", [name], [f"y{k}"], axis=0) for k, name in enumerate(results)]
    rng = numpy.random.default_rng(0)
    model = model_of(made, {f"x{k}": (F32, [2, 3]) for k in range(3)}, {f"y{k}": (F32, None) for k in range(len(results))},
                     {"c": numpy.array([1, 2, 4], "f"), "one": at(1)}, opset=17)
    same_as_onnxruntime(compile, tmp_path, model, {f"x{k}": rng.integers(-2, 3, (2, 3)).astype("f") for k in range(3)})


@pytest.mark.parametrize("inputs, nodes, names, code, words", [
    (["a", "b"], [helper.make_node("Add", ["a", "b"], ["o"])], ["s"], 2,
     "expected a `body` with an input for each of SequenceMap's 1, and as many outputs"),
    (["a", "b"], [helper.make_node("Add", ["a", "b"], ["o"])], ["s", "longer"], 3,
     "a sequence of as many tensors as the first of SequenceMap, not settled when compiling,")])
def test_a_body_that_does_not_fit_is_refused(rnncc, tmp_path, inputs, nodes, names, code, words):
    made, results = mapped(inputs, nodes, names=names)
    made.insert(2, helper.make_node("SequenceInsert", ["s", "x0"], ["longer"]))
    made.append(helper.make_node("ConcatFromSequence", results, ["y"], axis=0))
    model = model_of(made, {f"x{k}": (F32, [2, 3]) for k in range(3)}, {"y": (F32, None)}, opset=17)
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so")
    assert done.returncode == code and words in done.stderr


def test_a_body_is_not_done_for_too_many(rnncc, tmp_path):
    """Each tensor has a copy of all nodes."""
    n = 1025
    steps = [helper.make_node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(n)]
    body = helper.make_graph(steps, "body", [helper.make_tensor_value_info("v0", F32, None)], [helper.make_tensor_value_info(f"v{n}", F32, None)])
    model = model_of([helper.make_node("SequenceConstruct", ["x"] * n, ["s"]), helper.make_node("SequenceMap", ["s"], ["t"], body=body),
                      helper.make_node("SequenceLength", ["t"], ["y"])], {"x": (F32, [3])}, {"y": (I64, [])}, opset=17)
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so")
    assert done.returncode == 4 and "SequenceMap would have more than 1048576 nodes" in done.stderr, done.stderr


@pytest.mark.parametrize("split, keepdims", [(None, 1), (None, 0), (at(2), 1), (at([3, 1, 1]), 1)])
def test_a_tensor_is_split_into_a_sequence(compile, tmp_path, split, keepdims):
    nodes = [helper.make_node("SplitToSequence", ["x", *(["split"] if split is not None else [])], ["s"], axis=-1,
                              keepdims=keepdims),
             helper.make_node("SequenceAt", ["s", "last"], ["y"]), helper.make_node("SequenceLength", ["s"], ["n"])]
    constants = {"last": at(-1)} | ({"split": split} if split is not None else {})
    model = model_of(nodes, {"x": (F32, [2, 5])}, {"y": (F32, None), "n": (I64, [])}, constants, opset=18)
    same_as_onnxruntime(compile, tmp_path, model, {"x": numpy.arange(10, dtype="f").reshape(2, 5)})


# ---- sequences that a loop carries ----

def value_info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def inserting_loop(inserted=("item",), position=()):
    """`while (i < n) { s.insert(x[i:i + 2] * i); i += 1; }`, as PyTorch's exporter writes it."""
    nodes = [helper.make_node("Add", ["i", "one"], ["next"]), helper.make_node("Add", ["next", "one"], ["end"]),
             helper.make_node("Reshape", ["i", "minus_one"], ["from"]), helper.make_node("Reshape", ["end", "minus_one"], ["to"]),
             helper.make_node("Slice", ["x", "from", "to"], ["part"]), helper.make_node("Cast", ["i"], ["factor"], to=F32),
             helper.make_node("Mul", ["part", "factor"], ["item"])]
    names = ["s", *(f"s{k}" for k in range(1, len(inserted))), "longer"]
    nodes += [helper.make_node("SequenceInsert", [before, item, *position], [after], name=f"insert_{after}")
              for before, item, after in zip(names, inserted, names[1:])]
    nodes += [helper.make_node("Less", ["next", "n"], ["again"])]
    inputs = [value_info("number", I64, []), value_info("go_on", BOOL, []), helper.make_empty_tensor_value_info("s"),
              value_info("i", I64, [])]
    outputs = [value_info("again", BOOL, []), helper.make_empty_tensor_value_info("longer"), value_info("next", I64, [])]
    return helper.make_graph(nodes, "body", inputs, outputs)


def sequence_loop(begin, users, outputs, **settings):
    """x [T, 3] is read in n = T - 1 parts of two rows."""
    nodes = [helper.make_node("Shape", ["x"], ["T"], end=1), helper.make_node("Sub", ["T", "ones"], ["less"]),
             helper.make_node("Squeeze", ["less"], ["n"]), helper.make_node("Less", ["zero", "n"], ["begins"]), begin,
             helper.make_node("Loop", ["", "begins", "s0", "zero"], ["all", "last"], body=inserting_loop(**settings)), *users]
    constants = {"zero": at(0), "one": at(1), "ones": at([1]), "minus_one": at([-1])}
    return model_of(nodes, {"x": (F32, ["T", 3]), "p": (I64, [])}, outputs, constants, opset=18)


EMPTY = helper.make_node("SequenceEmpty", [], ["s0"])
JOINED = [{"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": 0, "new_axis": 1}, {"axis": 2, "new_axis": 1},
          {"axis": -2, "new_axis": 1}]


def check_loop(compile, tmp_path, model):
    path = compile(write(tmp_path, model), "--dim=T=3..9")
    with Module(path) as module, module.context() as context:
        for T in (3, 9, 4):
            feeds = {"x": numpy.arange(3 * T, dtype="f").reshape(T, 3), "p": at(T % 2 - 1)}
            expected, found = onnxruntime_run(model, feeds), context.run(feeds)
            for name, due in expected.items():
                numpy.testing.assert_array_equal(found[name], due, err_msg=name)
                assert found[name].dtype == due.dtype, name


def test_what_a_loop_inserts_is_joined(compile, tmp_path):
    users = [helper.make_node("ConcatFromSequence", ["all"], [f"y{k}"], **how) for k, how in enumerate(JOINED)]
    users += [helper.make_node("SequenceLength", ["all"], ["length"]), helper.make_node("SequenceAt", ["all", "p"], ["at"]),
              helper.make_node("Identity", ["last"], ["turns"])]
    outputs = {f"y{k}": (F32, None) for k in range(len(JOINED))}
    check_loop(compile, tmp_path, sequence_loop(EMPTY, users, {**outputs, "length": (I64, []), "at": (F32, None), "turns": (I64, [])}))


def test_a_loop_inserts_behind_what_was_there(compile, tmp_path):
    """What comes of it is as long as the input says: it meets the input's own rows."""
    users = [helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=1), helper.make_node("SequenceLength", ["all"], ["length"]),
             helper.make_node("ConcatFromSequence", ["all"], ["stacked"], axis=0, new_axis=1),
             helper.make_node("ReduceSum", ["stacked", "ones"], ["rows"], keepdims=0), helper.make_node("Mul", ["rows", "x"], ["z"])]
    begin = [helper.make_node("Slice", ["x", "zeros", "twos"], ["head"]), helper.make_node("SequenceConstruct", ["head"], ["s0"])]
    model = sequence_loop(begin[1], users, {"y": (F32, None), "length": (I64, []), "z": (F32, None)})
    model.graph.node.insert(0, begin[0])
    model.graph.initializer.extend(numpy_helper.from_array(at([number]), f"{name}s") for name, number in (("zero", 0), ("two", 2)))
    check_loop(compile, tmp_path, model)


@pytest.mark.parametrize("settings, node", [({"inserted": ("item", "part")}, "Loop"), ({"position": ("zero",)}, "SequenceInsert")])
def test_what_else_a_loop_inserts_is_named(rnncc, tmp_path, settings, node):
    users = [helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0)]
    done = rnncc(write(tmp_path, sequence_loop(EMPTY, users, {"y": (F32, None)}, **settings)), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and f"a sequence of {node}, not settled" in done.stderr, done.stderr


# ---- what is refused ----

def refused(rnncc, tmp_path, nodes, constants, output="y"):
    inputs = {"x": (F32, [2, 3]), "i": (I64, [])}
    return rnncc(write(tmp_path, model_of(nodes, inputs, {output: (F32, None)}, constants, opset=18)), "-o",
                 tmp_path / "m.so")


PAIR = helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="pair")


@pytest.mark.parametrize("node, constants, code, said", [
    (helper.make_node("SequenceAt", ["s", "i"], ["y"]), {}, 3, "SequenceAt whose input `i` is not known at compile time"),
    (helper.make_node("SequenceAt", ["s", "two"], ["y"]), {"two": at(2)}, 2,
     "expected a position from -2 to 1 in the sequence, found 2"),
    (helper.make_node("SequenceErase", ["s", "two"], ["y"]), {"two": at(-3)}, 2, "expected a position from -2 to 1"),
    (helper.make_node("Relu", ["s"], ["y"]), {}, 3, "a sequence as input 0 of Relu"),
    (helper.make_node("SequenceAt", ["x", "zero"], ["y"]), {"zero": at(0)}, 3, "a sequence of SequenceAt, not settled"),
    (helper.make_node("SequenceConstruct", ["s", "x"], ["y"]), {}, 3, "an input of SequenceConstruct, not settled"),
    (helper.make_node("SplitToSequence", ["x"], ["y"], axis=2), {}, 2, "expected an axis from -2 to 1, found 2"),
    (helper.make_node("SplitToSequence", ["x", "i"], ["y"]), {}, 3, "SplitToSequence whose input `i` is not known"),
], ids=lambda value: value.op_type if hasattr(value, "op_type") else "")
def test_what_is_not_settled_is_named(rnncc, tmp_path, node, constants, code, said):
    done = refused(rnncc, tmp_path, [PAIR, node], constants)
    assert done.returncode == code and said in done.stderr, done.stderr


def test_an_empty_optional_value_gives_nothing(rnncc, tmp_path):
    empty = helper.make_node("Optional", [], ["none"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    done = refused(rnncc, tmp_path, [empty, helper.make_node("OptionalGetElement", ["none"], ["y"], name="get")], {})
    assert done.returncode == 2 and "get: error: expected an optional value that holds something" in done.stderr, done.stderr
