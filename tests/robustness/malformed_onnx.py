# SPDX-License-Identifier: MIT
"""Malformed models in ONNX: each with its exit code and all lines that rnncc says of it, without the file's name and "error: "
before them. Most are the small model y = Relu(x + c) but for one thing. Their bytes and tensors: malformed_onnx_bytes.py,
malformed_onnx_tensors.py."""
import numpy
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from support.onnx_files import BOOL, F32, I64, model_of, tensor_info

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
NAN, INF = float("nan"), float("inf")


# ---- the small model, changed ----


def small(shape=(2, 3)):
    """y = Relu(x + c)."""
    nodes = [helper.make_node("Add", ["x", "c"], ["s"], "add"), helper.make_node("Relu", ["s"], ["y"], "relu")]
    return model_of(nodes, {"x": (F32, shape)}, {"y": (F32, shape)}, {"c": numpy.array([1, 2, 3], numpy.float32)})


def changed(change):
    model = small()
    change(model)
    return model


def input_as(*kind):
    """x of another type or shape."""
    return lambda model: model.graph.input[0].CopyFrom(tensor_info("x", *kind))


def input_of(make):
    """x of a type that is no tensor's: make() fills it."""
    def change(model):
        model.graph.input[0].type.Clear()
        make(model.graph.input[0].type)

    return change


def with_default(shape, dtype=F32):
    """c, which has an initializer, as an input, too."""
    return lambda model: model.graph.input.append(tensor_info("c", dtype, shape))


def length(axis_0):
    def change(model):
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = axis_0

    return change


def functions_of(*opsets):
    """Functions that nothing calls, each of an opset."""
    def change(model):
        for k, version in enumerate(opsets):
            model.functions.append(helper.make_function("local", f"f{k}", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])],
                                                        [helper.make_opsetid("", version)]))

    return change


def calls_without_opset(model):
    """Of ONNX's operators only those of a function: neither it nor the model says what opset they are of."""
    opset(1, "local")(model)
    del model.graph.node[:]
    model.graph.node.append(helper.make_node("Own", ["x"], ["y"], "call", domain="local"))
    model.functions.append(helper.make_function("local", "Own", ["a"], ["b"], [helper.make_node("Softmax", ["a"], ["b"])],
                                                [helper.make_opsetid("local", 1)]))


def opset(version, domain=""):
    def change(model):
        model.opset_import[0].CopyFrom(helper.make_opsetid(domain, version))

    return change


def renamed(list_name, name):
    def change(model):
        getattr(model.graph, list_name)[0].name = name

    return change


def twice(list_name):
    def change(model):
        entries = getattr(model.graph, list_name)
        entries.append(entries[0])

    return change


def without(list_name):
    return lambda model: model.graph.ClearField(list_name)


MODELS = [
    ("opset 0", opset(0), 3, ["opset 0; opsets from 7 on are supported"]),
    ("an opset below 0", opset(-3), 3, ["opset -3; opsets from 7 on are supported"]),
    ("no opset of ONNX's own operators", opset(1, "com.microsoft"), 2,
     ["the model has operators of ONNX's own domain, but names no opset of it"]),
    ("no opset of a function's operators", calls_without_opset, 2,
     ["the function Own has operators of ONNX's own domain, but neither it nor the model names an opset of it"]),
    ("opset 0 in each of 120 functions", functions_of(*[0] * 120), 3, ["opset 0; opsets from 7 on are supported"]),
    ("opsets below 1 and past the newest in functions", functions_of(0, -3, 98, 99), 3,
     ["opset -3; opsets from 7 on are supported",
      "note: opset 99 is newer than opset 28, the newest that is known: its operators are read as those of opset 28"]),
    ("what training left", lambda model: model.training_info.add(), 3, ["the model has training information"]),
    ("no nodes", without("node"), 2, ["the model has no nodes; expected at least one"]),
    ("no outputs", without("output"), 2, ["the model has no outputs; expected at least one"]),
    ("an input without a name", renamed("input", ""), 2, ["input 0: the name is empty"]),
    ("an output without a name", renamed("output", ""), 2, ["output 0: the name is empty"]),
    ("an initializer without a name", renamed("initializer", ""), 2, ["initializer 0: the name is empty"]),
    ("an input that nothing reads, and one that is not there", renamed("input", "images"), 2,
     ['add: nothing produces the tensor "x"']),
    ("an initializer of another name", renamed("initializer", "cc"), 2, ['add: nothing produces the tensor "c"']),
    ("an output that nothing makes", renamed("output", "z"), 2, ['output 0: nothing produces the tensor "z"']),
    ("two inputs of one name", twice("input"), 2, ['input 1: the tensor "x" is already declared at input 0']),
    ("two initializers of one name", twice("initializer"), 2,
     ['initializer 1: the tensor "c" is already declared at initializer 0']),
    ("an output twice", twice("output"), 2, ['output 1: the output "y" is listed twice']),
    ("a node twice", twice("node"), 2, ['add: the tensor "s" is already declared at add']),
    ("an input without a type", lambda model: model.graph.input[0].ClearField("type"), 2, ["x: the input has no element type"]),
    ("an input of no element type", input_as(0, [2, 3]), 2, ["x: the input has no element type"]),
    ("an input of an element type that is none", input_as(99, [2, 3]), 3,
     ["x: the input is of element type 99, which ONNX does not have"]),
    ("an input of strings", input_as(TensorProto.STRING, [2, 3]), 3,
     ["the element type string of a graph's input is not supported (1 time: \"x\")"]),
    ("an input without a shape", input_as(F32, None), 3, ["x: the input has no shape in the file; its rank must be known"]),
    ("an input of rank 9", input_as(F32, [1] * 9), 3, ["x: the input has rank 9; at most 8 is supported"]),
    ("an input that is a sequence", input_of(lambda of: of.sequence_type.elem_type.tensor_type.SetInParent()), 3,
     ["a sequence as a graph's input is not supported (1 time: \"x\")"]),
    ("an input that is a map", input_of(lambda of: of.map_type.SetInParent()), 3,
     ["a map as a graph's input is not supported (1 time: \"x\")"]),
    ("an input that is optional", input_of(lambda of: of.optional_type.SetInParent()), 3,
     ["an optional value as a graph's input is not supported (1 time: \"x\")"]),
    ("an input that is sparse", input_of(lambda of: of.sparse_tensor_type.SetInParent()), 3,
     ["a sparse tensor as a graph's input is not supported (1 time: \"x\")"]),
    ("a length below -1", length(-5), 2, ["x: axis 0 is -5 long; expected 0 or more, or a name"]),
    ("a length past 2^40 bytes", length(2**62), 4, ["x: the tensor may have more than 1099511627776 bytes"]),
    ("a length that does not fit", input_as(F32, [2, 4]), 2,
     ["add: Add: `c` f32[3] does not broadcast with [2, 4]: 3 and 4 are neither equal nor 1"]),
    ("an input whose initializer has another type", with_default([3], I64), 2,
     ["input 1: expected an initializer of type i64, which is the input's, found f32"]),
    ("an input whose initializer has another rank", with_default([3, 1]), 2,
     ["input 1: expected an initializer of rank 2, which is the input's, found 1"]),
    ("an input whose initializer is shorter", with_default([4]), 2,
     ["input 1: expected an initializer with 4 on axis 0, which the input has, found 3"]),
    ("a sparse initializer", lambda model: setattr(model.graph.sparse_initializer.add().values, "name", "sparse"), 3,
     ['a sparse initializer is not supported (1 time: "sparse")']),
]

# ---- other nodes than the small model's ----


def make(op, inputs, outputs, name="n", **attributes):
    return helper.make_node(op, inputs, outputs, name, **attributes)


def relu(inputs, outputs, name="n"):
    return make("Relu", inputs, outputs, name)


def attribute(node, **fields):
    node.attribute.append(AttributeProto(**fields))
    return node


def body(nodes, outputs, inputs=()):
    return helper.make_graph(nodes, "body", list(inputs), [tensor_info(name, F32, None) for name in outputs])


def branches(then, other=None, condition="go"):
    good = body([relu(["x"], ["good"])], ["good"])
    return make("If", [condition], ["y"], then_branch=then, else_branch=other or good)


def known_branches(condition):
    """Of a constant condition."""
    return [make("Constant", [], ["known"], "constant", value=numpy_helper.from_array(condition)),
            branches(body([relu(["x"], ["t"])], ["t"]), condition="known")]


def loop(nodes, outputs, carried=("h",), made=("y",)):
    infos = [tensor_info("i", I64, ()), tensor_info("more", BOOL, ()), *(tensor_info(name, F32, None) for name in carried)]
    return make("Loop", ["three", "", "x"], list(made), body=body(nodes, outputs, infos))


def text_with_nul():
    return attribute(make("DepthToSpace", ["image"], ["y"], blocksize=1), name="mode", type=AttributeProto.STRING, s=b"D\0R")


def ring():
    return [make("Add", ["x", "b"], ["a"], "one"), relu(["a"], ["b"], "two"), relu(["b"], ["y"])]


def zeros(*shape):
    return numpy.zeros(shape, numpy.float32)


INPUTS = {"x": (F32, (2, 3)), "image": (F32, (1, 4, 5, 5)), "steps": (F32, (7, 1, 3)), "go": (BOOL, ()), "doubles": (TensorProto.DOUBLE, (7, 1, 3)),
          "both": (BOOL, (2,)), "n": (I64, (2,))}
CONSTANTS = {"c": numpy.array([1, 2, 3], numpy.float32), "three": numpy.array(3), "w": zeros(3, 4, 3, 3), "flat": zeros(3, 4, 0, 3), "W": zeros(1, 8, 3), "W5": zeros(1, 8, 5),
             "R": zeros(1, 8, 2), "D": numpy.zeros((1, 8, 3)), "minus": numpy.array([-1, -1]), "five": zeros(5)}

NODES = [
    ("a cycle", ring(), 2, ['one: nodes read from each other in a cycle: "one" <- "two" <- "one"']),
    ("a loop of one", [make("Add", ["x", "y"], ["y"], "self")], 2, ['self: the node "self" reads its own output']),
    ("a name that nothing makes", [relu(["z"], ["y"], "reader")], 2, ['reader: nothing produces the tensor "z"']),
    ("a name that nothing makes but nearly", [relu(["x"], ["score"]), relu(["socre"], ["y"], "reader")], 2,
     ['reader: nothing produces the tensor "socre"; did you mean "score"?']),
    ("a node without a name", [relu(["x"], ["a"], ""), relu(["z"], ["y"], "")], 2, ['Relu_1: nothing produces the tensor "z"']),
    ("a tensor that two nodes make", [relu(["x"], ["y"], "first"), relu(["x"], ["y"], "second")], 2,
     ['second: the tensor "y" is already declared at first']),
    ("a tensor that one node makes twice", [make("Split", ["image"], ["y", "y"], axis=1, num_outputs=2)], 2,
     ['n: the tensor "y" is already declared at n']),
    ("a tensor made twice and read", [relu(["x"], ["a"], "first"), make("Shape", ["x"], ["a"], "second"), relu(["a"], ["y"])], 2,
     ['second: the tensor "a" is already declared at first']),
    ("an input that is made", [relu(["c"], ["x"], "maker"), relu(["x"], ["y"])], 2,
     ['maker: the tensor "x" is already declared at input 0']),
    ("a constant that is made", [relu(["x"], ["c"], "maker"), relu(["c"], ["y"])], 2,
     ['maker: the tensor "c" is already declared at initializer 0']),
    ("an unknown operator", [make("Foo", ["x"], ["y"], "odd")], 3, ['the operator Foo is not supported (1 time: "odd")']),
    ("an operator in small letters", [make("relu", ["x"], ["y"], "odd")], 3,
     ['the operator relu (did you mean Relu?) is not supported (1 time: "odd")']),
    ("three times an unknown operator", [make("Foo", ["x"], ["a"], "1"), make("Foo", ["a"], ["b"], "2"), make("Foo", ["b"], ["y"], "3")], 3,
     ['the operator Foo is not supported (3 times: "1", "2", "3")']),
    ("an unknown domain", [make("Relu", ["x"], ["y"], "odd", domain="of.mine")], 3,
     ['the operator Relu of of.mine is not supported (1 time: "odd")']),
    ("an unknown operator of com.microsoft", [make("Relu", ["x"], ["y"], "odd", domain="com.microsoft")], 3,
     ['the operator Relu of com.microsoft is not supported (1 time: "odd")']),
    ("ONNX Runtime's own layout", [make("Conv", ["image", "w"], ["y"], "odd", domain="com.microsoft.nchwc")], 3,
     ["the layout of com.microsoft.nchwc, in which ONNX Runtime's highest level of optimisation saves models for one machine (save it at ORT_ENABLE_EXTENDED) is not supported (1 time: \"odd\")"]),
    ("too few inputs", [make("Add", ["x"], ["y"])], 2, ["n: Add has exactly 2 inputs, found 1"]),
    ("no inputs", [relu([], ["y"])], 2, ["n: Relu has exactly 1 input, found 0"]),
    ("too many inputs", [make("Add", ["x", "c", "c"], ["y"])], 3, ['input 2 of Add (it has 2) is not supported (1 time: "n")']),
    ("too many outputs", [relu(["x"], ["y", "z"])], 3, ['output 1 of Relu (it has 1) is not supported (1 time: "n")']),
    ("no outputs, of a node", [relu(["x"], []), relu(["x"], ["y"])], 2, ["n: Relu has exactly 1 output, found 0"]),
    ("an output that must be there", [relu(["x"], [""], "odd"), relu(["x"], ["y"])], 2,
     ["odd: Relu has exactly 1 output, found 0"]),
    ("an input that must be there", [make("Add", ["", "x"], ["y"])], 2, ['n: input 0 of Add is absent (""), but it is required']),
    ("an attribute of another kind", [make("Softmax", ["x"], ["y"], axis=1.5)], 2,
     ["n: `axis` of Softmax must be an integer, found a number"]),
    ("an attribute of an unknown name", [make("Softmax", ["x"], ["y"], axes=1)], 3,
     ['the attribute `axes` of Softmax (it has axis) is not supported (1 time: "n")']),
    ("an attribute where there are none", [make("Relu", ["x"], ["y"], alpha=1.0)], 3,
     ['the attribute `alpha` of Relu (it has none) is not supported (1 time: "n")']),
    ("an attribute of no kind", [attribute(relu(["x"], ["y"]), name="a", type=AttributeProto.TENSORS)], 3,
     ['the kind of the attribute `a` of Relu is not supported (1 time: "n")']),
    ("an attribute twice", [attribute(make("Softmax", ["x"], ["y"], axis=1), name="axis", i=1, type=AttributeProto.INT)], 2,
     ["n: `axis` is given twice"]),
    ("an attribute without its value", [attribute(relu(["x"], ["y"]), name="then", type=AttributeProto.GRAPH)], 2,
     ["n: the attribute `then` has no value of its kind"]),
    ("an attribute that is missing", [make("Concat", ["x", "x"], ["y"])], 2,
     ["n: Concat needs the attribute `axis`, an integer"]),
    ("an attribute that is infinite", [make("Elu", ["x"], ["y"], alpha=INF)], 3,
     ['an infinite or NaN `alpha` of Elu is not supported (1 time: "n")']),
    ("an attribute that is no number", [make("ThresholdedRelu", ["x"], ["y"], alpha=NAN)], 3,
     ['an infinite or NaN `alpha` of ThresholdedRelu is not supported (1 time: "n")']),
    ("a word that the attribute does not know", [make("Gelu", ["x"], ["y"], approximate="exact")], 3,
     ['`approximate`="exact" of Gelu (it may be none|tanh) is not supported (1 time: "n")']),
    ("an attribute of a function's call, without one", [attribute(make("Softmax", ["x"], ["y"]), name="axis", ref_attr_name="of_call",
                                                                  type=AttributeProto.INT)], 2,
     ["n: `axis` of Softmax refers to the attribute `of_call` of a function's call, but the node is in no function"]),
    ("a Constant of a function's call, without one", [attribute(make("Constant", [], ["y"], "seven"), name="value_int", ref_attr_name="of_call",
                                                                type=AttributeProto.INT)], 2,
     ["seven: `value_int` of Constant refers to the attribute `of_call` of a function's call, but the node is in no function"]),
    ("a sequence as an output", [make("SequenceConstruct", ["x", "x"], ["y"])], 3,
     ['a sequence as a graph\'s output is not supported (1 time: "y")']),
    ("an empty optional value as an output", [make("Optional", [], ["y"], type=helper.make_tensor_type_proto(F32, [2, 3]))], 3,
     ['a sequence as a graph\'s output is not supported (1 time: "y")']),
    ("a sequence as a branch's result", [branches(body([make("SequenceConstruct", ["x", "x"], ["t"])], ["t"]))], 3,
     ['a sequence as a body\'s output is not supported (1 time: "t")']),
    ("a text with a NUL", [text_with_nul()], 2, ["n: the text of `mode` has a NUL in it"]),
    ("a Constant of nothing", [make("Constant", [], ["y"], "none")], 2,
     ["none: expected one attribute of Constant, its value; found 0"]),
    ("a Constant of two values", [make("Constant", [], ["y"], "both", value_int=1, value_float=1.0)], 2,
     ["both: expected one attribute of Constant, its value; found 2"]),
    ("a Constant of a text", [make("Constant", [], ["y"], "text", value_string="text")], 3,
     ['a Constant of `value_string` is not supported (1 time: "y")']),
    ("a type of no number", [make("Cast", ["x"], ["y"], to=99)], 2, ["n: `to` of Cast: expected an element type, found 99"]),
    ("a type of another size of number", [make("Cast", ["x"], ["y"], to=2**32 + 1)], 2,
     ["n: `to` of Cast: expected an element type, found 4294967297"]),
    ("a type that is not supported", [make("Cast", ["x"], ["y"], to=TensorProto.STRING)], 3,
     ['`to`=string of Cast is not supported (1 time: "n")']),
    ("no type", [make("Cast", ["x"], ["y"])], 2, ["n: Cast needs the attribute `to`, an element type"]),
    ("an axis past the end", [make("Softmax", ["x"], ["y"], axis=2**31)], 2,
     ["n: Softmax: axis is 2147483648; it must be in -2..1"]),
    ("INT_MIN as an axis", [make("Softmax", ["x"], ["y"], axis=-2**63)], 2,
     ["n: Softmax: axis is -9223372036854775808; it must be in -2..1"]),
    ("an axis twice", [make("Transpose", ["x"], ["y"], perm=[0, 0])], 2, ["n: Transpose: axis 0 is given twice"]),
    ("a permutation from the end", [make("Transpose", ["x"], ["y"], perm=[-1, 0])], 2,
     ["n: Transpose: `perm` has -1; axes of a permutation are 0 to 1"]),
    ("two lengths to be found", [make("Reshape", ["x", "minus"], ["y"])], 2,
     ["n: Reshape: the target has -1 on axes 0 and 1; one at most"]),
    ("lengths that do not broadcast", [make("Add", ["x", "five"], ["y"])], 2,
     ["n: Add: `five` f32[5] does not broadcast with [2, 3]: 5 and 3 are neither equal nor 1"]),
    ("depths that differ", [make("MatMul", ["x", "five"], ["y"])], 2,
     ["n: MatMul: `x` f32[2, 3] times `five` f32[5]: inner extents 3 and 5 differ"]),
    ("lengths that do not join", [make("Concat", ["image", "w"], ["y"], axis=0)], 2,
     ["n: Concat: inputs may differ on axis 0 only, found `image` f32[1, 4, 5, 5] and `w` f32[3, 4, 3, 3]"]),
    ("no groups", [make("Conv", ["image", "w"], ["y"], group=0)], 2, ["n: Conv: `group` is 0; it must be at least 1"]),
    ("groups that do not divide the channels", [make("Conv", ["image", "w"], ["y"], group=3)], 2,
     ["n: Conv: `group` is 3; it must divide the channels, 4 in and 3 out"]),
    ("a window without points", [make("Conv", ["image", "flat"], ["y"])], 2,
     ["n: Conv: the weights are `flat` f32[3, 4, 0, 3], of a window without points"]),
    ("a stride of 0", [make("Conv", ["image", "w"], ["y"], strides=[0, 1])], 2,
     ["n: Conv: `strides` has 0; it must be from 1 to 1073741824"]),
    ("a window larger than the image", [make("MaxPool", ["image"], ["y"], kernel_shape=[9, 9])], 2,
     ["n: MaxPool: the kernel reaches over 9 on spatial axis 0, but the padded input has only 5"]),
    ("a layer of f64", [make("LSTM", ["doubles", "D", "D"], ["y"], hidden_size=2)], 3, ["n: input 0 of LSTM (`doubles`) is f64; it may be f32"]),
    ("weights of another type", [make("MatMul", ["x", "D"], ["y"])], 2,
     ["n: inputs 0 and 1 of MatMul must have one type, found f32 (`x`) and f64 (`D`)"]),
    ("weights of another input size", [make("LSTM", ["steps", "W5", "R"], ["y"], hidden_size=2)], 2,
     ["n: LSTM: input 1 must be W, [directions, gates*hidden_size, input_size] = [1, 8, 3], found `W5` f32[1, 8, 5]"]),
    ("a hidden size that the weights do not have", [make("LSTM", ["steps", "W", "R"], ["y"], hidden_size=4)], 2,
     ["n: LSTM: `hidden_size` is 4, and R is `R` f32[1, 8, 2], of the hidden size 2"]),
    ("a direction that is none", [make("LSTM", ["steps", "W", "R"], ["y"], hidden_size=2, direction="backward")], 3,
     ['`direction`="backward" of LSTM (it may be forward|reverse|bidirectional) is not supported (1 time: "n")']),
    ("types that differ", [make("Add", ["x", "n"], ["y"])], 2,
     ["n: inputs 0 and 1 of Add must have one type, found f32 (`x`) and i64 (`n`)"]),
    ("a type that the operator does not take", [make("LSTM", ["n", "W", "R"], ["y"], hidden_size=2)], 3,
     ["n: input 0 of LSTM (`n`) is i64; it may be f32"]),
    ("a body where none belongs", [make("Relu", ["x"], ["y"], "odd", body=body([relu(["x"], ["inner"])], ["inner"]))], 3,
     ['the attribute `body` of Relu (it has none) is not supported (1 time: "odd")']),
    ("an If without branches", [make("If", ["go"], ["y"])], 2,
     ["n: If needs the attribute `else_branch`, a graph",
      "n: If needs the attribute `then_branch`, a graph"]),
    ("a condition of two", [branches(body([relu(["x"], ["t"])], ["t"]), condition="both")], 2,
     ["n: If: the condition must have one element, found `both` bool[2]"]),
    ("a constant condition of nothing", known_branches(numpy.zeros(0, bool)), 2,
     ["n: If: the condition must have one element, found `known` bool[0]"]),
    ("a constant condition of two", known_branches(numpy.array([True, False])), 2,
     ["n: If: the condition must have one element, found `known` bool[2]"]),
    ("a constant condition that is a number", known_branches(numpy.array(256)), 3,
     ["n: input 0 of If (`known`) is i64; it may be bool"]),
    ("branches of different ranks", [branches(body([make("Identity", ["c"], ["t"])], ["t"]))], 3,
     ["n: If: output 0 is `t` f32[3] or, of the other branch, `good` f32[2, 3]; type and rank must be the same"]),
    ("a branch without a result", [branches(body([relu(["x"], ["t"])], []))], 2,
     ["n: If: `then_branch` has 0 outputs, the node 1"]),
    ("a branch whose result nothing makes", [branches(body([relu(["x"], ["t"])], ["u"]))], 2,
     ['n.then_branch output 0: nothing produces the tensor "u"']),
    ("a branch whose result has no name", [branches(body([relu(["x"], ["t"])], [""]))], 2,
     ["n.then_branch output 0: the name is empty"]),
    ("a branch that reads what nothing makes", [branches(body([relu(["inner"], ["t"], "reader")], ["t"]))], 2,
     ['reader: nothing produces the tensor "inner"']),
    ("a branch that makes a tensor twice", [branches(body([relu(["x"], ["t"], "first"), relu(["x"], ["t"], "second")], ["t"]))], 2,
     ['second: the tensor "t" is already declared at first']),
    ("a branch of a cycle", [branches(body(ring(), ["a"]))], 2,
     ['one: nodes read from each other in a cycle: "one" <- "two" <- "one"']),
    ("a branch with an unknown operator", [branches(body([make("Foo", ["x"], ["t"], "odd")], ["t"]))], 3,
     ['the operator Foo is not supported (1 time: "odd")']),
    ("a loop whose body takes one tensor less", [loop([relu(["x"], ["h2"])], ["more", "h2"], carried=())], 2,
     ["n: Loop: the body has 2 inputs; expected 3: as many as the node"]),
    ("a loop whose body makes one tensor less", [loop([relu(["h"], ["h2"])], ["more"])], 2,
     ["n: Loop: the body has 1 outputs; expected at least 2: a condition, and those of the node"]),
    ("a loop that collects what its body does not make", [loop([relu(["h"], ["h2"])], ["more", "h2"], made=("z", "y"))], 2,
     ["n: Loop: the body has 2 outputs; expected at least 3: a condition, and those of the node"]),
    ("a loop whose body takes a tensor twice", [loop([relu(["i"], ["h2"])], ["more", "h2"], carried=("i",))], 2,
     ['n.body input 2: the tensor "i" is already declared at n.body input 0']),
    ("a Scan that does not say what it scans", [make("Scan", ["x"], ["y"], body=body([relu(["e"], ["r"])], ["r"], [tensor_info("e", F32, None)]))], 2,
     ["n: Scan needs the attribute `num_scan_inputs`, an integer"]),
]

# ---- of old opsets ----

INTEGERS = {"x": (TensorProto.INT16, [3])}
OLD = [
    ("Clip to a number past i16", 6, [make("Clip", ["x"], ["y"], max=1e21)], 2,
     ["n: expected a value of type i16 as `max`, found 1e+21"]),
    ("Clip from a number below i16", 6, [make("Clip", ["x"], ["y"], min=-32769.0)], 2,
     ["n: expected a value of type i16 as `min`, found -32769"]),
    ("Clip from a fraction", 6, [make("Clip", ["x"], ["y"], min=0.5)], 2,
     ["n: expected a value of type i16 as `min`, found 0.5"]),
    ("Clip from no number", 6, [make("Clip", ["x"], ["y"], min=NAN)], 2, ["n: expected a value of type i16 as `min`, found nan"]),
    ("Pad with a fraction", 6, [make("Pad", ["x"], ["y"], pads=[1, 1], value=0.5)], 2,
     ["n: expected a value of type i16 as `value`, found 0.5"]),
    ("Pad with a number past i16", 6, [make("Pad", ["x"], ["y"], pads=[1, 1], value=1e21)], 2,
     ["n: expected a value of type i16 as `value`, found 1e+21"]),
    ("a Scan of opset 8", 8, [make("Scan", ["", "x"], ["y"], num_scan_inputs=1,
                                   body=body([relu(["e"], ["r"])], ["r"], [tensor_info("e", F32, None)]))], 3,
     ['Scan of opset 8 is not supported (1 time: "n")']),
]

# ---- functions ----


def function(inputs, outputs, *nodes, name="Own"):
    return helper.make_function("local", name, inputs, outputs, list(nodes), OPSETS)


def call(*inputs, outputs=("y",), name="Own", **attributes):
    return helper.make_node(name, list(inputs), list(outputs), "call", domain="local", **attributes)


def doubling(levels):
    """f0(x) = Relu(x); fk calls f(k-1) twice: 2^levels nodes."""
    functions = [function(["x"], ["y"], relu(["x"], ["y"]), name="f0")]
    for k in range(1, levels + 1):
        nodes = [helper.make_node(f"f{k - 1}", [a], [b], domain="local") for a, b in (("x", "m"), ("m", "y"))]
        functions.append(function(["x"], ["y"], *nodes, name=f"f{k}"))
    return functions


FUNCTIONS = [
    ("a function without its result", call("x"), [function(["a"], ["b"], relu(["a"], ["c"]))], 2,
     ['call: no node of the function Own makes its output "b"']),
    ("a function called with too much", call("x", "x"), [function(["a"], ["b"], relu(["a"], ["b"]))], 2,
     ["call: the call has 2 inputs, the function Own only 1"]),
    ("a function called for too much", call("x", outputs=["y", "z"]), [function(["a"], ["b"], relu(["a"], ["b"]))], 2,
     ["call: the call has 2 outputs, the function Own only 1"]),
    ("a function called with too little", call(), [function(["a"], ["b"], relu(["a"], ["b"]))], 2,
     ['call/n: input 0 of Relu is absent (""), but it is required']),
    ("a function that calls itself", call("x"), [function(["a"], ["b"], call("a", outputs=["b"]))], 2,
     ["call/call: the function Own calls itself"]),
    ("a function that reads what nothing makes", call("x"), [function(["a"], ["b"], relu(["x"], ["b"]))], 2,
     ['call/n: nothing produces the tensor "x"']),
    ("a function that makes a tensor twice", call("x"), [function(["a"], ["b"], relu(["a"], ["b"], "first"), relu(["a"], ["b"], "second"))], 2,
     ['call/second: the tensor "b" is already declared at call']),
    ("a function that takes a tensor twice", call("x", "x"), [function(["a", "a"], ["b"], relu(["a"], ["b"]))], 2,
     ['call: the tensor "a" is already declared at call']),
    ("a function with an unknown operator", call("x"), [function(["a"], ["b"], make("Foo", ["a"], ["b"], "odd"))], 3,
     ['the operator Foo is not supported (1 time: "call/odd")']),
    ("a function that is not there", call("x", name="Others"), [function(["a"], ["b"], relu(["a"], ["b"]))], 3,
     ['the operator Others of local is not supported (1 time: "call")']),
    ("a function whose result is an input that its call leaves out", call("x", outputs=["y", "z"]),
     [function(["a", "low"], ["b", "low"], relu(["a"], ["b"]))], 2,
     ['call: the output "z" is the input "low" of Own, which the call leaves out']),
    ("a function with a branch whose result is an input that its call leaves out", call("x"),
     [function(["a", "low"], ["b"], make("Constant", [], ["go"], value=numpy_helper.from_array(numpy.array(True))),
               make("If", ["go"], ["b"], then_branch=body([], ["low"]), else_branch=body([relu(["a"], ["r"])], ["r"])))], 2,
     ['call/n.then_branch output 0: the result "low" is an input that the function\'s call leaves out']),
    ("a function whose result is a Constant of texts", call(),
     [function([], ["b"], make("Constant", [], ["b"], "texts", value=helper.make_tensor("t", TensorProto.STRING, [1], [b"text"])))], 3,
     ['the element type string of a constant is not supported (1 time: "b")']),
    ("a call whose attribute is of another call, without one", attribute(call("x"), name="alpha", ref_attr_name="of_call", type=AttributeProto.FLOAT),
     [function(["a"], ["b"], relu(["a"], ["b"]))], 2,
     ["call: `alpha` of Own refers to the attribute `of_call` of a function's call, but the node is in no function"]),
    ("functions that multiply", call("x", name="f30"), doubling(30), 4,
     ["the model's functions are called more than 65536 times"]),
    ("functions that call each other 40 deep", call("x", name="f40"), doubling(40), 4,
     ["call/f39_1/f38_3/f37_5/f36_7/f35_9/f34_11/f33_13/f32_15/f31_17/f30_19/f29_21/f28_23/f27_25/f26_27/f25_29/f24_31/f23_33/f22_35/f21_37/f20_39/f19_41/f18_43/f17_45/f16_47/f15_49/f14_51/f13_53/f12_55/f11_57/f10_59/f9_61/f8_63: functions call each other more than 32 deep"]),
]


def einsum(equation, *shapes):
    names = [f"x{k}" for k in range(len(shapes))]
    return model_of([make("Einsum", names, ["y"], "product", equation=equation)], {name: (F32, shape) for name, shape in zip(names, shapes)},
                    {"y": (F32, None)})


def lstm_of_any_input_size():
    return model_of([make("LSTM", ["x", "w", "r"], ["", "y"], "cell", hidden_size=2)], {"x": (F32, [3, 1, "I"]), "w": (F32, [1, 8, "I"])},
                    {"y": (F32, None)}, {"r": zeros(1, 8, 2)})


def convolution_of_any_channels():
    return model_of([make("Conv", ["x", "w"], ["y"], "conv")], {"x": (F32, (1, "C", 9, 9))}, {"y": (F32, None)}, {"w": zeros(3, 4, 3, 3)})


OTHERS = [
    ("channels that are not known", convolution_of_any_channels(), 3,
     ["note: nothing bounds \"C\" (axis 1 of `x`); assumed: --dim 'C=1..16..256'",
      "conv: Conv: channels must be constant, found `x` f32[1, C, 9, 9] and `w` f32[3, 4, 3, 3]; they are equal where C is 4: bound it so, as --dim 'C=4' does (C: axis 1 of `x`)"]),
    ("an Einsum of ten axes", einsum("abcde,fghij,abcdefgh->ij", [2] * 5, [2] * 5, [2] * 8), 3,
     ["product: Einsum: a product of two operands has 10 axes; at most 8 are supported"]),
    ("an Einsum that sums over what only the run knows", einsum("abij,ij->ab", ["A", "B", "I", "J"], ["I", "J"]), 3,
     ["note: nothing bounds \"A\" (axis 0 of `x0`), \"B\" (axis 1 of `x0`), \"I\" (axis 2 of `x0`), \"J\" (axis 3 of `x0`); assumed: --dim 'A=1..1..16' --dim 'B=1..16..256' --dim 'I=1..16..256' --dim 'J=1..16..256'",
      "product: `product`: 2 extents that are merged are known at run time only; one may be"]),
    ("a layer whose input size is found when it runs", lstm_of_any_input_size(), 3,
     ["note: nothing bounds \"I\" (axis 2 of `x`); assumed: --dim 'I=1..16..256'",
      "cell: the input size, axis 2 of W (`w`), must be known at compile time"]),
]

# Name, model, exit code, what is said.
ROWS = [(name, changed(change), code, lines) for name, change, code, lines in MODELS]
ROWS += [(name, model_of(nodes, INPUTS, {"y": (F32, None)}, CONSTANTS, opset=21), code, lines) for name, nodes, code, lines in NODES]
ROWS += [(name, model_of(nodes, INTEGERS, {"y": (TensorProto.INT16, None)}, opset=version), code, lines)
         for name, version, nodes, code, lines in OLD]
ROWS += [(name, model_of([node], {"x": (F32, (2, 3))}, {"y": (F32, None)}, functions=functions), code, lines)
         for name, node, functions, code, lines in FUNCTIONS]
ROWS += OTHERS
