# SPDX-License-Identifier: MIT
"""Malformed models in JSON: each with its exit code and all lines that rnncc says of it, place, byte and message, without the
file's name and "error: " before them. Each is the small model of support/refusal.py but for one thing."""
import json

from support.dtypes import DTYPES as ALL
from support.refusal import small_model

TEXT = json.dumps(small_model()).encode()
DTYPES = ", ".join(dtype.name for dtype in ALL)


def changed(path, value):
    """The small model with the value at `path`, a list of keys, replaced; ... removes it."""
    model = small_model()
    place = model
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return model


def node(op, inputs, outputs, **fields):
    return {"op": op, "inputs": inputs, "outputs": outputs, **fields}


def state(**fields):
    return {"input": "h", "output": "s", "dtype": "f32", "shape": ["T", 3], "batch_axis": 0, **fields}


# What it is, the file, what is said. Exit code 2.
TEXTS = [
    ("empty", b"", ["byte 0: expected a value (an object, array, string, number, true, false or null), found the end of the text"]),
    ("byte order mark", b"\xef\xbb\xbf" + TEXT, ["byte 0: a byte order mark; JSON has none"]),
    ("trailing garbage", TEXT + b"x", ["byte 396: expected the end of the text, found 'x'"]),
    ("NUL", TEXT.replace(b"small", b"sm\0all"),
     ["byte 45: expected a character of a string (control characters are written \\n or \\u000a), found the byte 0x00"]),
    ("raw newline", TEXT.replace(b"small", b"sm\nall"),
     ["byte 45: expected a character of a string (control characters are written \\n or \\u000a), found the byte 0x0a"]),
    ("overlong UTF-8", TEXT.replace(b"small", b"sm\xc0\x80all"), ["byte 45: this is not valid UTF-8"]),
    ("007", TEXT.replace(b'"version": 1', b'"version": 007'), ["byte 31: a number has no leading zeros"]),
    ("1.", TEXT.replace(b'"version": 1', b'"version": 1.'), ["byte 33: expected a digit after the decimal point, found ','"]),
    ("10 MB of digits", TEXT.replace(b'"version": 1', b'"version": ' + b"9" * 10_000_000),
     ["byte 31: a number of 10000000 characters; at most 63 are read"]),
    ("100 brackets", TEXT.replace(b'"version": 1', b'"x-deep": ' + b"[" * 100 + b"]" * 100), ["byte 93: nested deeper than 64"]),
    ("a million brackets", b"[" * 1_000_000, ["byte 64: nested deeper than 64"]),
    ("1e400", TEXT.replace(b"[1, 2, 3]", b"[1, 1e400, 3]"), ["constants.c.data[1]: byte 240: 1e400 is past the range of a double"]),
    ("a key twice", TEXT.replace(b'"op": "Relu"', b'"op": "Relu", "op": "Tanh"'), ['nodes[1].op: byte 350: the key "op" is given twice']),
]

# Where the small model is changed, to what, exit code, what is said.
FIELDS = [
    (["format"], "onnx", 2, ['format: byte 11: expected the format "rnncc", found "onnx"']),
    (["version"], 2, 3, ["version: byte 31: version 2 of the format; this compiler reads version 1"]),
    (["version"], 1.0, 2, ["version: byte 31: expected an integer (no fraction, no exponent), found 1.0"]),
    (["name"], ..., 2, ['byte 0: the key "name" is missing']),
    (["nodes"], ..., 2, ['byte 0: the key "nodes" is missing']),
    (["nodes"], {}, 2, ["nodes: byte 258: expected an array, found an object"]),
    (["nodes"], [], 2, ["nodes: byte 258: the model has no nodes; expected at least one"]),
    (["inputs"], [], 2, ["inputs: byte 108: the model has no inputs; expected at least one"]),
    (["outputs"], [], 2, ["outputs: byte 171: the model has no outputs; expected at least one"]),
    (["outputs"], ["y", "y"], 2, ['outputs[1]: byte 177: the output "y" is listed twice']),
    (["outputs"], [3], 2, ["outputs[0]: byte 172: expected a string, found a number"]),
    (["output"], ["y"], 2, ['output: byte 407: unknown key "output"; did you mean "outputs"?']),
    (["comment"], "mine", 2, ['comment: byte 408: unknown key "comment"; a key of your own starts with x-']),
    (["nodes", 0, "input"], ["x"], 2, ['nodes[0].input: byte 337: unknown key "input"; did you mean "inputs"?']),
    (["nodes", 0, "op"], 7, 2, ["nodes[0].op: byte 266: expected a string, found a number"]),
    (["nodes", 0, "outputs"], "s", 2,
     ["nodes[0].outputs: byte 321: expected an array, found a string"]),
    (["nodes", 0, "outputs"], [3], 2, ["nodes[0].outputs[0]: byte 322: expected a string, found a number"]),
    (["inputs", 0, "dtype"], "float32", 3, ['inputs[0].dtype: byte 132: dtype "float32"; supported are ' + DTYPES]),
    (["inputs", 0, "shape"], ["N", 3], 2, ['inputs[0].shape[0]: byte 149: "dims" has no "N"']),
    (["inputs", 0, "shape"], ["t", 3], 2, ['inputs[0].shape[0]: byte 149: "dims" has no "t"; did you mean "T"?']),
    (["inputs", 0, "shape"], [-1, 3], 2, ["inputs[0].shape[0]: byte 149: expected 0 to 9223372036854775807, found -1"]),
    (["inputs", 0, "shape"], [2.5, 3], 2, ["inputs[0].shape[0]: byte 149: expected an integer (no fraction, no exponent), found 2.5"]),
    (["inputs", 0, "shape"], [2**63, 3], 2, ["inputs[0].shape[0]: byte 149: expected 0 to 9223372036854775807, found 9223372036854775808"]),
    (["inputs", 0, "shape"], [2**32, 2**32], 4, ["inputs[0].shape: byte 148: the tensor may have more than 1099511627776 bytes"]),
    (["inputs", 0, "shape"], [2**31, 2**31], 4, ["inputs[0].shape: byte 148: the tensor may have more than 1099511627776 bytes"]),
    (["inputs", 0, "shape"], [1] * 9, 3, ["inputs[0].shape: byte 148: rank 9; at most 8 is supported"]),
    (["inputs", 0, "shape"], [1] * 1_000_000, 3, ["inputs[0].shape: byte 148: rank 1000000; at most 8 is supported"]),
    (["dims", "T"], {"min": -1, "max": 4}, 2, ["dims.T.min: byte 73: expected 0 to 2147483647, found -1"]),
    (["dims", "T"], {"min": 5, "max": 4}, 2, ["dims.T: byte 65: expected min <= opt <= max, found 5, 4, 4"]),
    (["dims", "T"], {"min": 1, "opt": 9, "max": 4}, 2, ["dims.T: byte 65: expected min <= opt <= max, found 1, 9, 4"]),
    (["dims", "T"], {"max": 2**31}, 2, ["dims.T.max: byte 73: expected 0 to 2147483647, found 2147483648"]),
    (["dims", "T"], {}, 2, ['dims.T: byte 65: the key "max" is missing']),
    (["constants", "c", "data"], [1, 2], 2, ["constants.c.data: byte 236: 2 elements where the shape has 3"]),
    (["constants", "c", "data"], [1, 2, "3"], 2, ["constants.c.data[2]: byte 243: expected a number, found a string"]),
    (["constants", "c", "shape"], [2**62, 2**62], 4, ["constants.c.shape: byte 223: the shape has more elements than memory can hold"]),
    (["constants", "c", "dtype"], "c64", 3, ['constants.c.dtype: byte 207: dtype "c64"; supported are ' + DTYPES]),
    (["constants", "c"], {"dtype": "i64", "shape": [1], "data": [2**63]}, 2,
     ["constants.c.data[0]: byte 237: expected -9223372036854775808 to 9223372036854775807, found 9223372036854775808"]),
    (["constants", "c"], {"dtype": "i32", "shape": [1], "data": [2**31]}, 2,
     ["constants.c.data[0]: byte 237: expected -2147483648 to 2147483647, found 2147483648"]),
    (["constants", "c"], {"dtype": "u64", "shape": [1], "data": [2**64]}, 2,
     ["constants.c.data[0]: byte 237: expected 0 to 18446744073709551615, found 18446744073709551616"]),
    (["constants", "c"], {"dtype": "u8", "shape": [1], "data": [256]}, 2, ["constants.c.data[0]: byte 236: expected 0 to 255, found 256"]),
    (["constants", "c"], {"dtype": "u8", "shape": [1], "data": [-1]}, 2, ["constants.c.data[0]: byte 236: expected 0 to 255, found -1"]),
    (["constants", "c"], {"dtype": "i8", "shape": [1], "data": [128]}, 2, ["constants.c.data[0]: byte 236: expected -128 to 127, found 128"]),
    (["constants", "c"], {"dtype": "i8", "shape": [1], "data": [-129]}, 2, ["constants.c.data[0]: byte 236: expected -128 to 127, found -129"]),
    (["constants", "c"], {"dtype": "bool", "shape": [1], "data": [2]}, 2, ["constants.c.data[0]: byte 238: expected 0 to 1, found 2"]),
    (["constants", "c"], {"dtype": "i64", "shape": [1], "data": [0.5]}, 2,
     ["constants.c.data[0]: byte 237: expected an integer (no fraction, no exponent), found 0.5"]),
    (["format"], ..., 2, ['byte 0: the key "format" is missing']),
    (["format"], None, 2, ["format: byte 11: expected a string, found null"]),
    (["version"], "1", 2, ["version: byte 31: expected a number, found a string"]),
    (["version"], True, 2, ["version: byte 31: expected a number, found true or false"]),
    (["version"], 0, 2, ["version: byte 31: expected 1 to 9223372036854775807, found 0"]),
    (["name"], 7, 2, ["name: byte 42: expected a string, found a number"]),
    (["dims"], [], 2, ["dims: byte 59: expected an object, found an array"]),
    (["dims"], None, 2, ["dims: byte 59: expected an object, found null"]),
    (["dims", "T"], 4, 2, ["dims.T: byte 65: expected an object, found a number"]),
    (["dims", "T"], {"min": 1, "max": 4, "most": 4}, 2, ['dims.T.most: byte 94: unknown key "most"; a key of your own starts with x-']),
    (["dims", "T"], {"min": "1", "max": 4}, 2, ["dims.T.min: byte 73: expected a number, found a string"]),
    (["dims", "T"], {"min": 3, "max": 7, "multiple": 2}, 2, ["dims.T: byte 65: expected multiples of 2, found 3, 7, 7"]),
    (["dims", "T"], {"min": 2, "max": 8, "multiple": 0}, 2, ["dims.T.multiple: byte 98: expected 1 to 2147483647, found 0"]),
    (["dims", ""], {"max": 4}, 2, ['dims[""]: byte 101: the name is empty']),
    (["dims"], {}, 2, ['inputs[0].shape[0]: byte 114: "dims" has no "T"']),
    (["inputs"], ..., 2, ['byte 0: the key "inputs" is missing']),
    (["inputs"], "x", 2, ["inputs: byte 108: expected an array, found a string"]),
    (["inputs"], ["x"], 2, ["inputs[0]: byte 109: expected an object, found a string"]),
    (["inputs", 0, "name"], ..., 2, ['inputs[0]: byte 109: the key "name" is missing']),
    (["inputs", 0, "name"], 3, 2, ["inputs[0].name: byte 118: expected a string, found a number"]),
    (["inputs", 0, "name"], "", 2, ["inputs[0].name: byte 118: the name is empty"]),
    (["inputs", 0, "dtype"], ..., 2, ['inputs[0]: byte 109: the key "dtype" is missing']),
    (["inputs", 0, "dtype"], 32, 2, ["inputs[0].dtype: byte 132: expected a string, found a number"]),
    (["inputs", 0, "shape"], ..., 2, ['inputs[0]: byte 109: the key "shape" is missing']),
    (["inputs", 0, "shape"], 3, 2, ["inputs[0].shape: byte 148: expected an array, found a number"]),
    (["inputs", 0, "shape"], ["T", None], 2, ["inputs[0].shape[1]: byte 154: expected a number, found null"]),
    (["inputs", 0, "shape"], ["T", [3]], 2, ["inputs[0].shape[1]: byte 154: expected a number, found an array"]),
    (["inputs", 0, "optional"], True, 2, ['inputs[0].optional: byte 170: unknown key "optional"; a key of your own starts with x-']),
    (["inputs", 0, "shape"], ["T", 4], 2,
     ["nodes[0]: byte 259: Add: `c` f32[3] does not broadcast with [T, 4]: 3 and 4 are neither equal nor 1"]),
    (["outputs"], ..., 2, ['byte 0: the key "outputs" is missing']),
    (["outputs"], "y", 2, ["outputs: byte 171: expected an array, found a string"]),
    (["outputs"], [""], 2, ["outputs[0]: byte 172: the name is empty"]),
    (["outputs"], ["z"], 2, ['outputs[0]: byte 172: nothing produces the tensor "z"']),
    (["constants"], [], 2, ["constants: byte 191: expected an object, found an array"]),
    (["constants", "c"], 3, 2, ["constants.c: byte 197: expected an object, found a number"]),
    (["constants", "c", "dtype"], ..., 2, ['constants.c: byte 197: the key "dtype" is missing']),
    (["constants", "c", "shape"], ..., 2, ['constants.c: byte 197: the key "shape" is missing']),
    (["constants", "c", "data"], ..., 2, ['constants.c: byte 197: the key "data" is missing']),
    (["constants", "c", "data"], "1", 2, ["constants.c.data: byte 236: expected an array, found a string"]),
    (["constants", "c", "data"], [1, 2, 3, 4], 2, ["constants.c.data: byte 236: 4 elements where the shape has 3"]),
    (["constants", "c", "shape"], [-3], 2, ["constants.c.shape[0]: byte 224: expected 0 to 9223372036854775807, found -3"]),
    (["constants", "c", "shape"], ["T"], 2, ["constants.c.shape[0]: byte 224: expected a number, found a string"]),
    (["constants", "c", "data"], [1, 2, None], 2, ["constants.c.data[2]: byte 243: expected a number, found null"]),
    (["constants", "c", "dims"], [3], 2, ['constants.c.dims: byte 255: unknown key "dims"; a key of your own starts with x-']),
    (["constants", "x"], {"dtype": "f32", "shape": [1], "data": [1]}, 2,
     ['constants.x: byte 253: the tensor "x" is already declared at inputs[0].name']),
    (["nodes", 0], "Add", 2, ["nodes[0]: byte 259: expected an object, found a string"]),
    (["nodes", 0, "op"], ..., 2, ['nodes[0]: byte 259: the key "op" is missing']),
    (["nodes", 0, "op"], "", 3, ['nodes[0].op: byte 266: the operator "" is not supported']),
    (["nodes", 0, "inputs"], ..., 2, ["nodes[0]: byte 259: Add has exactly 2 inputs, found 0"]),
    (["nodes", 0, "inputs"], "x", 2, ["nodes[0].inputs: byte 298: expected an array, found a string"]),
    (["nodes", 0, "inputs"], ["x", 3], 2, ["nodes[0].inputs[1]: byte 304: expected a string, found a number"]),
    (["nodes", 0, "outputs"], ..., 2, ['nodes[0]: byte 259: the key "outputs" is missing']),
    (["nodes", 0, "outputs"], [""], 2, ['nodes[0]: byte 259: output 0 of Add is absent (""), but it is required']),
    (["nodes", 1, "inputs"], [""], 2, ['nodes[1]: byte 329: input 0 of Relu is absent (""), but it is required']),
    (["nodes", 0, "name"], 3, 2, ["nodes[0].name: byte 281: expected a string, found a number"]),
    (["nodes", 0, "attributes"], [], 2, ["nodes[0].attributes: byte 342: expected an object, found an array"]),
    (["nodes", 0, "attributes"], {"axis": 0}, 3, ["nodes[0].attributes.axis: byte 351: Add has no attributes, found `axis`"]),
    (["nodes", 0, "inputs"], ["x", "c", "c"], 2, ["nodes[0]: byte 259: Add has exactly 2 inputs, found 3"]),
    (["nodes", 1, "inputs"], ["s", "s"], 2, ["nodes[1]: byte 329: Relu has exactly 1 input, found 2"]),
    (["states"], {}, 2, ["states: byte 407: expected an array, found an object"]),
    (["states"], [3], 2, ["states[0]: byte 408: expected an object, found a number"]),
    (["states"], [{}], 2,
     ['states[0]: byte 408: the key "input" is missing',
      'states[0]: byte 408: the key "output" is missing',
      'states[0]: byte 408: the key "dtype" is missing',
      'states[0]: byte 408: the key "shape" is missing']),
    (["states"], [state(batch=1), {"input": "k", "output": "c", "dtype": "f32", "shape": [3]}], 2,
     ['states[0].batch: byte 499: unknown key "batch"; a key of your own starts with x-']),
    (["weights"], {}, 2, ["weights: byte 408: expected an array, found an object"]),
    (["weights"], ["w"], 2, ["weights[0]: byte 409: expected an object, found a string"]),
    (["weights"], [{}], 2, ['weights[0]: byte 409: the key "file" is missing']),
    (["weights"], [{"file": ""}], 2, ["weights[0].file: byte 418: the file name is empty"]),
    (["weights"], [{"file": 3}], 2, ["weights[0].file: byte 418: expected a string, found a number"]),
]

# Nodes in place of the small model's, exit code, what is said.
NODES = [
    ([node("Add", ["x", "y"], ["y"], name="loop")], 2, ['nodes[0]: byte 259: the node "loop" reads its own output']),
    ([node("Add", ["x", "b"], ["a"], name="one"), node("Relu", ["a"], ["b"], name="two"), node("Relu", ["b"], ["y"])], 2,
     ['nodes[0]: byte 259: nodes read from each other in a cycle: nodes[0] "one" <- nodes[1] "two" <- nodes[0] "one"']),
    ([node("Relu", ["s"], ["y"])], 2, ['nodes[0].inputs[0]: byte 285: nothing produces the tensor "s"']),
    ([node("Relu", ["x"], ["why"])], 2, ['outputs[0]: byte 172: nothing produces the tensor "y"']),
    ([node("Relu", ["x"], ["score"]), node("Relu", ["socre"], ["y"])], 2,
     ['nodes[1].inputs[0]: byte 340: nothing produces the tensor "socre"; did you mean "score"?']),
    ([node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])], 2,
     ['nodes[1].outputs[0]: byte 354: the tensor "y" is already declared at nodes[0].outputs[0]']),
    ([node("Relu", ["x"], ["x"]), node("Relu", ["x"], ["y"])], 2,
     ['nodes[0].outputs[0]: byte 303: the tensor "x" is already declared at inputs[0].name']),
    ([node("Relu", ["x"], ["c"]), node("Add", ["x", "c"], ["y"])], 2,
     ['nodes[0].outputs[0]: byte 303: the tensor "c" is already declared at constants.c']),
    ([node("Split", ["x"], ["y", "y", "z"], attributes={"axis": 1})], 2,
     ['nodes[0].outputs[1]: byte 309: the tensor "y" is already declared at nodes[0].outputs[0]']),
    ([node("Relu", ["x"], ["s"]), node("Shape", ["x"], ["s"]), node("Relu", ["s"], ["y"])], 2,
     ['nodes[1].outputs[0]: byte 355: the tensor "s" is already declared at nodes[0].outputs[0]']),
    ([node("Foo", ["x"], ["y"])], 3, ['nodes[0].op: byte 266: the operator "Foo" is not supported']),
    ([node("Lstm", ["x"], ["y"])], 3, ['nodes[0].op: byte 266: the operator "Lstm" is not supported; did you mean "LSTM"?']),
    ([node("If", ["x"], ["y"])], 2,
     ["nodes[0]: byte 259: If needs the attribute `else_branch`, a graph",
      "nodes[0]: byte 259: If needs the attribute `then_branch`, a graph"]),
    ([node("Foo", ["x"], ["s"]), node("Bar", ["s"], ["y"])], 3,
     ['nodes[0].op: byte 266: the operator "Foo" is not supported',
      'nodes[1].op: byte 316: the operator "Bar" is not supported']),
    ([node("Gather", ["x"], ["s"]), node("Pow", ["s"], ["y"])], 2,
     ["nodes[0]: byte 259: Gather has exactly 2 inputs, found 1",
      "nodes[1]: byte 312: Pow has exactly 2 inputs, found 1"]),
    ([node("Relu", ["x"], ["y"], attributes={"alpha": 1})], 3,
     ["nodes[0].attributes.alpha: byte 333: Relu has no attributes, found `alpha`"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axes": 1})], 3,
     ["nodes[0].attributes.axes: byte 335: Softmax has no attribute `axes`; did you mean `axis`? It has: axis"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": 1.5})], 2,
     ["nodes[0].attributes.axis: byte 335: `axis` of Softmax must be an integer, found a number"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": "1"})], 2,
     ["nodes[0].attributes.axis: byte 335: `axis` of Softmax must be an integer, found a string"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": None})], 2,
     ["nodes[0].attributes.axis: byte 335: `axis` of Softmax must be an integer, found null"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": True})], 2,
     ["nodes[0].attributes.axis: byte 335: `axis` of Softmax must be an integer, found true or false"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axis": 2**63})], 2,
     ["nodes[0].attributes.axis: byte 335: expected -9223372036854775808 to 9223372036854775807, found 9223372036854775808"]),
    ([node("Gelu", ["x"], ["y"], attributes={"approximate": "exact"})], 2,
     ['nodes[0].attributes.approximate: byte 339: `approximate` of Gelu is "exact"; it must be one of none|tanh']),
    ([node("Relu", ["x"], ["y"], attributes={"foo": None})], 3,
     ["nodes[0].attributes.foo: byte 331: Relu has no attributes, found `foo`"]),
    ([node("Softmax", ["x"], ["y"], attributes={"axes": [None]})], 3,
     ["nodes[0].attributes.axes: byte 335: Softmax has no attribute `axes`; did you mean `axis`? It has: axis"]),
    ([node("Concat", ["x", "x"], ["y"])], 2, ["nodes[0]: byte 259: Concat needs the attribute `axis`, an integer"]),
    ([node("Add", ["x"], ["y"])], 2, ["nodes[0]: byte 259: Add has exactly 2 inputs, found 1"]),
    ([node("Add", ["x", ""], ["y"])], 2, ['nodes[0]: byte 259: input 1 of Add is absent (""), but it is required']),
    ([node("Relu", ["x"], ["y", "z"])], 2, ["nodes[0]: byte 259: Relu has exactly 1 output, found 2"]),
    ([node("Relu", ["x"], [])], 2, ["nodes[0]: byte 259: Relu has exactly 1 output, found 0"]),
    ([node("Relu", ["x"], ["y"], lengths="x")], 2, ["nodes[0].lengths: byte 320: Relu takes no lengths; RNN, GRU and LSTM do"]),
    ([node("Relu", ["x"], ["y"], gate_order="iofc")], 2, ["nodes[0].gate_order: byte 323: Relu has no gate order; LSTM and GRU have"]),
]

# A state of the small model, exit code, what is said.
STATES = [
    (state(output="nowhere"), 2, ['states[0].output: byte 433: nothing produces the tensor "nowhere"']),
    (state(output=""), 2, ["states[0].output: byte 433: the name is empty"]),
    (state(shape=["T", 4]), 2,
     ["states[0]: byte 408: a state goes in as `h` f32[T, 4] and comes out as `s` f32[T, 3]; they must be the same"]),
    (state(dtype="f64"), 2,
     ["states[0]: byte 408: a state goes in as `h` f64[T, 3] and comes out as `s` f32[T, 3]; they must be the same"]),
    (state(shape=["T", "T"], batch_axis=1), 2,
     ['states[0].shape: byte 463: axis 0 is a named dim, which only the axis that "batch_axis" names may be']),
    (state(batch_axis=3), 2, ["states[0].batch_axis: byte 487: expected 0 to 1, found 3"]),
    (state(batch_axis=-1), 2, ["states[0].batch_axis: byte 487: expected 0 to 1, found -1"]),
    (state(shape=[], batch_axis=0), 2,
     ["states[0].batch_axis: byte 481: the state is one number, of the shape [], and has no axes"]),
    (state(batch_axis="T"), 2, ["states[0].batch_axis: byte 487: expected a number, found a string"]),
    (state(batch_axis=1), 2,
     ['states[0].shape: byte 463: axis 0 is a named dim, which only the axis that "batch_axis" names may be']),
    (state(input="x"), 2, ['states[0].input: byte 418: the tensor "x" is already declared at inputs[0].name']),
    (state(input="s"), 2, ['nodes[0].outputs[0]: byte 322: the tensor "s" is already declared at states[0].input']),
    (state(input=""), 2, ["states[0].input: byte 418: the name is empty"]),
    (state(dtype="float32"), 3, ['states[0].dtype: byte 447: dtype "float32"; supported are ' + DTYPES]),
    (state(**{"batch-axis": 0}), 2, ['states[0].batch-axis: byte 504: unknown key "batch-axis"; did you mean "batch_axis"?']),
]

MODELS = [(text, 2, lines) for _, text, lines in TEXTS]
MODELS += [(changed(path, value), code, lines) for path, value, code, lines in FIELDS]
MODELS += [(changed(["nodes"], nodes), code, lines) for nodes, code, lines in NODES]
MODELS += [(changed(["states"], [fields]), code, lines) for fields, code, lines in STATES]
