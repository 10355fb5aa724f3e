# SPDX-License-Identifier: MIT
"""ONNX files that are broken, have wrong contents, or lead elsewhere."""
import os
import re
import subprocess

import numpy
import pytest
from onnx import AttributeProto, TensorProto, helper

from support.onnx_files import BOOL, F32, I64, model_of, tensor_info, write
from support.refusal import refused

SAFE_NAMES = ['x;system("id");//', "*/", '"', "%n%s", "??/", "int", "\x1b[31m", "n" * 1000000, "-o", "$(id)", "a\nb"]


def small(shape=(2, 3)):
    """y = Relu(x + c)."""
    nodes = [helper.make_node("Add", ["x", "c"], ["s"], "add"), helper.make_node("Relu", ["s"], ["y"], "relu")]
    return model_of(nodes, {"x": (F32, shape)}, {"y": (F32, shape)}, {"c": numpy.array([1, 2, 3], numpy.float32)})


def refused_file(rnncc, folder, data, code, *texts):
    return refused(rnncc, folder, write(folder, data), code, "model.onnx", *texts)


def field(number, wire, payload=b""):
    return varint(number << 3 | wire) + payload


def varint(value):
    data = b""
    while value > 0x7f:
        data, value = data + bytes([value & 0x7f | 0x80]), value >> 7
    return data + bytes([value])


def message(number, payload):
    return field(number, 2, varint(len(payload)) + payload)


def nested(depth):
    """A body in a body in ..., by the fields attribute (5) and g (6)."""
    graph = b""
    for _ in range(depth):
        graph = message(1, message(5, message(6, graph)))
    return message(7, graph)


@pytest.mark.parametrize("length", range(0, len(small().SerializeToString()), 3))
def test_a_file_cut_short_is_refused(rnncc, tmp_path, length):
    refused(rnncc, tmp_path, write(tmp_path, small().SerializeToString()[:length]), 2, "model.onnx")


BYTES = {
    "text": (b"this is no model at all", 2, ["byte"]),
    "a length past the end": (message(7, b"") + b"\x3a\x7f", 2, ["byte 4", "longer than what holds it"]),
    "a length of 64 bits": (field(7, 2, varint(2**63)), 2, ["longer than what holds it"]),
    "a number of 80 bits": (field(1, 0, b"\xff" * 11 + b"\x01"), 2, ["more than 64 bits"]),
    "a number that is cut off": (field(1, 0, b"\xff"), 2, ["cut off"]),
    "field number 0": (b"\x00\x00", 2, ["no such field number"]),
    "a group": (field(99, 3), 2, ["encoding"]),
    "another wire type": (field(7, 0, b"\x00"), 2, ["not encoded as its kind is"]),
    "a name that is no UTF-8": (message(7, message(2, b"\xff")), 2, ["not UTF-8"]),
    "a name with a NUL": (message(7, message(2, b"a\0b")), 2, ["NUL"]),
    "bodies in bodies": (nested(100), 4, ["inside each other"]),
    "bodies in bodies without end": (nested(20000), 4, ["inside each other"]),
    "no graph": (field(1, 0, b"\x08"), 2, ["no graph"]),
    "no opset": (message(7, b""), 2, ["no opset"]),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_model_are_refused(rnncc, tmp_path, name):
    data, code, texts = BYTES[name]
    refused_file(rnncc, tmp_path, data, code, *texts)


AT_ONCE = 50  # operators in a file: 100 errors are shown


def readers(op, bad):
    """Nodes whose older form needs the rank of their input, one of them in a body."""
    then = helper.make_graph([helper.make_node("Softmax", [bad], [f"t_{op}"])], "then", [], [tensor_info(f"t_{op}", F32, [3])])
    other = helper.make_graph([helper.make_node("Relu", ["x"], [f"e_{op}"])], "else", [], [tensor_info(f"e_{op}", F32, [3])])
    return [helper.make_node("Pow", [bad, "x"], [f"p_{op}"], "reader"), helper.make_node("Softmax", [bad], [f"s_{op}"], "reader"),
            helper.make_node("If", ["go"], [f"i_{op}"], "reader", then_branch=then, else_branch=other)]


def test_nothing_is_inferred_from_a_node_with_an_error(rnncc, root, tmp_path):
    """Each operator without its last input."""
    rows = subprocess.run(["clang-19", "-E", "-P", f"-I{root}/compiler", "-x", "c", "-"], capture_output=True, text=True,
                          check=True, input='#define OP(name, least, ...) ROW name least\n#include "ir/ops.def"\n').stdout
    needed = {op: int(count) for op, count in re.findall(r"^ROW (\w+) ([1-9]\d*)$", rows, re.MULTILINE)}
    said = ""
    for start in range(0, len(needed), AT_ONCE):
        ops = list(needed)[start:start + AT_ONCE]
        nodes = []
        for op in ops:
            nodes += [helper.make_node(op, ["x"] * (needed[op] - 1), [f"bad_{op}"], f"bad {op}"), *readers(op, f"bad_{op}")]
        model = model_of(nodes, {"x": (F32, [3]), "go": (BOOL, [])}, {f"p_{ops[0]}": (F32, None)}, opset=12)
        said += refused(rnncc, tmp_path, write(tmp_path, model), 2)
    assert "reader" not in said and len(needed) > 100
    assert [op for op in needed if f"bad {op}: " not in said] == []


def changed(change):
    model = small()
    change(model.graph)
    return model


def rename(list_name, index, name):
    def change(graph):
        getattr(graph, list_name)[index].name = name

    return change


def with_nodes(*nodes):
    def change(graph):
        del graph.node[:]
        graph.node.extend(nodes)

    return change


def with_tensor(**fields):
    def change(graph):
        tensor = graph.initializer[0]
        for name, value in fields.items():
            if isinstance(value, (list, tuple)):
                del getattr(tensor, name)[:]
                getattr(tensor, name).extend(value)
            else:
                setattr(tensor, name, value)

    return change


def with_axis(length):
    def change(graph):
        graph.input[0].type.tensor_type.shape.dim[0].dim_value = length

    return change


def sparse(graph):
    graph.sparse_initializer.add().values.name = "sparse"


def add(inputs, outputs, name="n", **attributes):
    return helper.make_node("Add", inputs, outputs, name, **attributes)


def attribute(node, **fields):
    node.attribute.append(AttributeProto(**fields))
    return node


def relu(inputs, outputs, name="n"):
    return helper.make_node("Relu", inputs, outputs, name)


def body_of(name):
    """A Relu with a body, which reads a tensor from outside."""
    body = helper.make_graph([relu([name], ["inner"])], "body", [], [tensor_info("inner", F32, [2, 3])])
    return helper.make_node("Relu", [name], ["y"], "odd", body=body)


GRAPHS = {
    "a cycle": (with_nodes(add(["x", "b"], ["a"], "one"), relu(["a"], ["b"], "two"), relu(["b"], ["y"])), 2,
                ["cycle", '"one"', '"two"']),
    "a loop of one": (with_nodes(add(["x", "y"], ["y"], "self")), 2, ['"self" reads its own output']),
    "a name that nothing makes": (with_nodes(relu(["z"], ["y"], "reader")), 2, ["reader", '"z"']),
    "an output that nothing makes": (with_nodes(relu(["x"], ["z"])), 2, ['"y"']),
    "a tensor that two nodes make": (with_nodes(relu(["x"], ["y"]), relu(["x"], ["y"])), 2, ["already declared"]),
    "an input that is made": (with_nodes(relu(["c"], ["x"]), relu(["x"], ["y"])), 2, ["already declared"]),
    "two inputs of one name": (lambda graph: graph.input.append(graph.input[0]), 2, ["already declared"]),
    "an output twice": (lambda graph: graph.output.append(graph.output[0]), 2, ["listed twice"]),
    "an input without a name": (rename("input", 0, ""), 2, ["name is empty"]),
    "an input without a type": (lambda graph: graph.input[0].ClearField("type"), 2, ["element type"]),
    "an input of no element type": (lambda graph: graph.input[0].CopyFrom(tensor_info("x", 99, [2, 3])), 2, ["element type"]),
    "an input without a shape": (lambda graph: graph.input[0].CopyFrom(tensor_info("x", F32, None)), 3, ["shape"]),
    "an input of rank 9": (lambda graph: graph.input[0].CopyFrom(tensor_info("x", F32, [1] * 9)), 3, ["rank 9"]),
    "no nodes": (with_nodes(), 2, ["no nodes"]),
    "no outputs": (lambda graph: graph.ClearField("output"), 2, ["no outputs"]),
    "a sparse initializer": (sparse, 3, ["sparse"]),
    "an unknown operator": (with_nodes(helper.make_node("Foo", ["x"], ["y"], "odd")), 3, ["Foo", '"odd"']),
    "too few inputs": (with_nodes(add(["x"], ["y"])), 2, ["Add has exactly 2 inputs, found 1"]),
    "too many outputs": (with_nodes(relu(["x"], ["y", "z"])), 3, ["output 1 of Relu"]),
    "an input that must be there": (with_nodes(add(["", "x"], ["y"])), 2, ["absent"]),
    "an attribute of another kind": (with_nodes(helper.make_node("Softmax", ["x"], ["y"], axis=1.5)), 2, ["axis", "an integer"]),
    "an attribute of no kind": (with_nodes(attribute(relu(["x"], ["y"]), name="a", type=AttributeProto.TENSORS)), 3, ["kind of the attribute `a`"]),
    "an attribute twice": (with_nodes(attribute(helper.make_node("Softmax", ["x"], ["y"], axis=1), name="axis", i=1,
                                                type=AttributeProto.INT)), 2, ["given twice"]),
    "a Constant of nothing": (with_nodes(helper.make_node("Constant", [], ["y"], "none")), 2,
                              ["none", "expected one attribute of Constant, its value; found 0"]),
    "an attribute that is not finite": (with_nodes(helper.make_node("Elu", ["x"], ["y"], alpha=float("inf"))), 3,
                                       ["infinite `alpha`"]),
    "an attribute without its value": (with_nodes(attribute(relu(["x"], ["y"]), name="then",
                                                              type=AttributeProto.GRAPH)), 2,
                                       ["`then` has no value"]),
    "a body where none belongs": (with_nodes(add(["x", "x"], ["s"]), body_of("s")), 3, ["the attribute `body` of Relu"]),
    "a type of no number": (with_nodes(helper.make_node("Cast", ["x"], ["y"], to=99)), 2, ["expected an element type"]),
    "a type of another size of number": (with_nodes(helper.make_node("Cast", ["x"], ["y"], to=2**32 + 1)), 2, ["expected an element type"]),
    "an axis past the end": (with_nodes(helper.make_node("Softmax", ["x"], ["y"], axis=2**31)), 2, ["Softmax"]),
    "INT_MIN as an axis": (with_nodes(helper.make_node("Softmax", ["x"], ["y"], axis=-2**63)), 2, ["Softmax"]),
    "a negative length": (with_axis(-5), 2, ["axis 0 is -5 long"]),
    "a length past 2^40 bytes": (with_axis(2**62), 4, ["bytes"]),
    "data of another length": (with_tensor(raw_data=bytes(8)), 2, ["c: ", "8 bytes", "12"]),
    "more axes than data": (with_tensor(dims=[2**20, 2**20]), 2, ["12 bytes"]),
    "a product that wraps": (with_tensor(dims=[2**32, 2**32, 3]), 4, ["more elements"]),
    "a negative axis": (with_tensor(dims=[-3]), 2, ["axis 0 of the tensor is -3"]),
    "rank 9": (with_tensor(dims=[1] * 8 + [3]), 3, ["rank 9"]),
    "elements of a type that is none": (with_tensor(data_type=99), 3, ["element type 99"]),
    "elements of strings": (with_tensor(data_type=TensorProto.STRING), 3, ["string"]),
    "bools that are neither": (with_tensor(data_type=TensorProto.BOOL, raw_data=b"\0\1\2"), 2, ["element 2, found 2"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_an_invalid_graph_is_refused(rnncc, tmp_path, name):
    change, code, texts = GRAPHS[name]
    refused_file(rnncc, tmp_path, changed(change), code, *texts)


@pytest.mark.parametrize("code, values, text", [(TensorProto.INT8, [1, 200, 3], "element 1 is 200"),
                                                (TensorProto.UINT8, [1, 2, -3], "element 2 is -3"),
                                                (TensorProto.BOOL, [1, 2, 0], "element 1 is 2")])
def test_a_list_of_numbers_that_do_not_fit_is_refused(rnncc, tmp_path, code, values, text):
    def change(graph):
        del graph.initializer[:]
        graph.initializer.add(name="c", data_type=code, dims=[3], int32_data=values)

    refused_file(rnncc, tmp_path, changed(change), 2, text)


@pytest.mark.parametrize("number", [1e21, -32769.0, 0.5, float("nan")])
@pytest.mark.parametrize("op, name", [("Clip", "min"), ("Clip", "max"), ("Pad", "value")])
def test_a_number_that_the_type_does_not_hold_is_refused(rnncc, tmp_path, op, name, number):
    """An attribute of an old opset that became an input of the type of x."""
    others = {"pads": [1, 1]} if op == "Pad" else {}
    model = model_of([helper.make_node(op, ["x"], ["y"], **{name: number}, **others)], {"x": (TensorProto.INT16, [3])},
                     {"y": (TensorProto.INT16, None)}, opset=6)
    refused_file(rnncc, tmp_path, model, 2, *([f"expected a value of type i16 as `{name}`"] if number == number else []))


def external(graph, **entries):
    tensor = graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


EXTERNAL = {
    "no location": ({}, 2, ["without a location"]),
    "a file that is not there": ({"location": "gone.bin"}, 2, ["gone.bin"]),
    "an empty location": ({"location": ""}, 2, ["empty"]),
    "an absolute path": ({"location": "/etc/passwd"}, 2, ["absolute path"]),
    "a path to the parent": ({"location": "../secret.bin"}, 2, ['leaves the model\'s folder through ".."']),
    "a path to the parent inside": ({"location": "sub/../../secret.bin"}, 2, [".."]),
    "a link that leads out": ({"location": "link.bin"}, 2, ["leads out of the model's folder"]),
    "a folder": ({"location": "sub"}, 2, ["a folder"]),
    "a pipe": ({"location": "pipe"}, 2, ["a pipe"]),
    "an offset past the end": ({"location": "w.bin", "offset": "99"}, 2, ["byte 99"]),
    "a length past the end": ({"location": "w.bin", "offset": "4", "length": "12"}, 2, ["12 bytes", "byte 4"]),
    "an offset that wraps": ({"location": "w.bin", "offset": str(2**64 - 4), "length": "16"}, 2, ["offset"]),
    "a negative offset": ({"location": "w.bin", "offset": "-1"}, 2, ["offset", "expected a number"]),
    "an offset that is none": ({"location": "w.bin", "offset": "4x"}, 2, ["offset", "expected a number"]),
    "data of another length": ({"location": "w.bin", "length": "8"}, 2, ["8 bytes", "12"]),
}


@pytest.mark.parametrize("name", EXTERNAL)
def test_external_data_that_is_not_there_is_refused(rnncc, tmp_path, name):
    entries, code, texts = EXTERNAL[name]
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(bytes(12))
    (folder / "w.bin").write_bytes(bytes(12))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    os.mkfifo(folder / "pipe")
    said = refused_file(rnncc, folder, changed(lambda graph: external(graph, **entries)), code, *texts)
    assert "c: error" in said


def chain(length):
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [relu([a], [b], "") for a, b in zip(names, names[1:])]
    return model_of(nodes, {"x": (F32, [2])}, {"y": (F32, [2])})


def test_a_long_chain_costs_no_stack(rnncc, tmp_path):
    done = rnncc(write(tmp_path, chain(200000)), "--emit=graph", "-o", tmp_path / "out.json", timeout=60)
    assert done.returncode == 0, done.stderr


def doubling(levels):
    """f0(x) = Relu(x); fk calls f(k-1) twice: 2^levels nodes."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = [helper.make_function("local", "f0", ["x"], ["y"], [relu(["x"], ["y"])], imports)]
    for k in range(1, levels + 1):
        nodes = [helper.make_node(f"f{k - 1}", [a], [b], domain="local") for a, b in (("x", "m"), ("m", "y"))]
        functions.append(helper.make_function("local", f"f{k}", ["x"], ["y"], nodes, imports))
    call = helper.make_node(f"f{levels}", ["x"], ["y"], domain="local")
    return model_of([call], {"x": (F32, [2])}, {"y": (F32, [2])}, functions=functions)


@pytest.mark.parametrize("levels, code, text", [(30, 4, "called more than"), (40, 2, "deep")])
def test_functions_that_multiply_are_refused(rnncc, tmp_path, levels, code, text):
    refused_file(rnncc, tmp_path, doubling(levels), code, text)


def test_a_function_that_calls_itself_is_refused(rnncc, tmp_path):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    call = helper.make_node("f", ["x"], ["y"], domain="local")
    function = helper.make_function("local", "f", ["x"], ["y"], [call], imports)
    refused_file(rnncc, tmp_path, model_of([call], {"x": (F32, [2])}, {"y": (F32, [2])}, functions=[function]), 2, "deep")


@pytest.mark.parametrize("name", SAFE_NAMES, ids=range(len(SAFE_NAMES)))
def test_names_are_only_names(rnncc, tmp_path, name):
    model = model_of([helper.make_node("Relu", [name], ["y"], name)], {name: (F32, [2])}, {"y": (F32, [2])})
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr


def test_to_the_end_survives(rnncc, tmp_path):
    ends = {"s": numpy.array([1], numpy.int64), "e": numpy.array([2**63 - 1], numpy.int64)}
    model = model_of([helper.make_node("Slice", ["x", "s", "e"], ["y"])], {"x": (I64, [5])}, {"y": (I64, [4])}, ends)
    done = rnncc(write(tmp_path, model), "--emit=graph", "-o", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert numpy.int64(2**63 - 1).tobytes() in (tmp_path / "out.safetensors").read_bytes()
