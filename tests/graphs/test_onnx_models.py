# SPDX-License-Identifier: MIT
"""The parts of an ONNX file besides operators, and the settings of a model on the command line."""
import json
import re
import resource
import shlex

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.dtypes import BY_NAME, DTYPES, limits
from support.module import Module
from support.onnx_files import F32, I64, model_of, onnxruntime_run, tensor_info, write
from support.refusal import small_model

LENGTHS = [1, 3, 8]


def compiled(rnncc, folder, model, *options):
    path = model if not isinstance(model, onnx.ModelProto) else write(folder, model)
    output = folder / "module.so"
    done = rnncc(path, "-o", output, *options)
    assert done.returncode == 0, done.stderr
    return output


def run(path, feeds):
    with Module(path) as module, module.context() as context:
        return context.run(feeds)


def graph_of(rnncc, folder, model, *options):
    """The graph that rnncc reads, as rnncc's JSON."""
    output = folder / "out.json"
    done = rnncc(write(folder, model), "--emit=graph", "-o", output, *options)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())


def floats(*shape, seed=3):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def dense(steps="T"):
    """y = Relu(x W + b) over `steps` rows."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], "product"), helper.make_node("Add", ["p", "b"], ["s"], "sum"),
             helper.make_node("Relu", ["s"], ["y"], "relu")]
    return model_of(nodes, {"x": (F32, [steps, 5])}, {"y": (F32, [steps, 6])}, {"w": floats(5, 6), "b": floats(6)})


def gru_stream():
    nodes = [helper.make_node("GRU", ["x", "w", "r", "", "", "h0"], ["steps", "hN"], "gru", hidden_size=4)]
    return model_of(nodes, {"x": (F32, ["T", 1, 3]), "h0": (F32, [1, 1, 4])}, {"steps": (F32, None), "hN": (F32, None)},
                    {"w": floats(1, 12, 3), "r": floats(1, 12, 4)}, opset=14)


@pytest.mark.parametrize("rows", LENGTHS)
def test_a_named_dim_is_a_run_time_size(rnncc, tmp_path, rows):
    model, x = dense(), floats(rows, 5, seed=rows)
    module = compiled(rnncc, tmp_path, model, "--dim", "T=1..2..8")
    numpy.testing.assert_allclose(run(module, {"x": x})["y"], onnxruntime_run(model, {"x": x})["y"], rtol=1e-6, atol=1e-6)
    with Module(module) as loaded:
        assert loaded.dims == {"T": (1, 2, 8)}


@pytest.mark.parametrize("given, bounds", [("T=1..8", {"min": 1, "opt": 8, "max": 8}),
                                           ("T=2..3..4", {"min": 2, "opt": 3, "max": 4})])
def test_the_bounds_of_a_dim_have_two_forms(rnncc, tmp_path, given, bounds):
    assert graph_of(rnncc, tmp_path, dense(), "--dim", given)["dims"] == {"T": bounds}


def test_a_dim_of_one_length_is_a_constant(rnncc, tmp_path):
    assert graph_of(rnncc, tmp_path, dense(), "--dim", "T=4")["inputs"][0]["shape"] == [4, 5]


def test_bounds_of_dims_are_assumed_and_told_with_the_option_that_changes_them(rnncc, tmp_path):
    relu = helper.make_node("Relu", ["x"], ["y"])
    model = model_of([relu], {"x": (F32, ["N", 3, None, "W"]), "T": (F32, ["W", 4])}, {"y": (F32, None)})
    assumed = "--dim 'N=1..1..16' --dim 'x_2=1..16..256' --dim 'W=1..16..256'"
    done = rnncc(write(tmp_path, model), "--emit=graph", "-o", tmp_path / "a.json", "--target=x86-64-v3,x86-64")
    assert done.returncode == 0 and done.stderr == (
        f'{tmp_path}/model.onnx: note: nothing bounds "N" (axis 0 of `x`), "x_2" (axis 2 of `x`), "W" (axis 3 of `x`); assumed: {assumed}\n')
    told = rnncc(write(tmp_path, model), "--emit=graph", "-o", tmp_path / "b.json", *shlex.split(assumed))
    assert told.returncode == 0 and told.stderr == ""
    assume, give = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert assume["dims"] == give["dims"] and len(give["dims"]) == 3
    one = rnncc("inspect", write(tmp_path, model), "--dim=W=5")
    assert one.returncode == 0 and "'W=" not in one.stderr and "1..16, optimised for 1" in one.stdout


def test_a_message_about_extents_says_where_named_dims_stand(rnncc, tmp_path):
    nodes = [helper.make_node("Transpose", ["tok"], ["t"], perm=[1, 2, 0]), helper.make_node("Conv", ["t", "w"], ["y"], "conv")]
    model = model_of(nodes, {"tok": (F32, ["s17", 1, 3])}, {"y": (F32, None)}, {"w": numpy.ones((2, 3, 4), numpy.float32)})
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so")
    assert done.returncode == 2
    assert "only s17 at the dimensions' minima; give them larger ones (s17: axis 0 of `tok`)" in done.stderr


def test_a_constant_length_that_only_some_runs_reach_is_checked_in_the_run(rnncc, tmp_path):
    rng = numpy.random.default_rng(1)
    weights = {name: rng.standard_normal(shape).astype(numpy.float32) for name, shape in (("w", (1, 4, 3)), ("r", (1, 4, 4)))}
    node = helper.make_node("RNN", ["x", "w", "r", "", "n"], ["y"], hidden_size=4)
    model = model_of([node], {"x": (F32, ["T", 2, 3])}, {"y": (F32, None)}, {**weights, "n": numpy.array([3, 5], numpy.int32)})
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so", "--dim=T=1..8")
    assert done.returncode == 0, done.stderr
    x = rng.standard_normal((6, 2, 3)).astype(numpy.float32)
    numpy.testing.assert_allclose(run(tmp_path / "m.so", {"x": x})["y"], onnxruntime_run(model, {"x": x})["y"], rtol=1e-5, atol=1e-6)
    with pytest.raises(Exception, match="value"):
        run(tmp_path / "m.so", {"x": x[:4]})
    over = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so", "--dim=T=1..4")
    assert over.returncode == 2 and "a sequence length is 5, but there are only T steps" in over.stderr


@pytest.mark.parametrize("option, value", [("--dim", "T"), ("--dim", "T=0..3"), ("--dim", "T=5..3"), ("--dim", "T=1..2..3..4"),
                                           ("--dim", "T=1.."), ("--dim", "=3"), ("--state", "h0"), ("--freeze", "x"),
                                           ("--dim", "T=99999999999999999999")])
def test_a_setting_of_another_form_is_refused(rnncc, tmp_path, option, value):
    done = rnncc(write(tmp_path, dense()), "-o", tmp_path / "m.so", option, value)
    assert done.returncode == 2 and option in done.stderr


@pytest.mark.parametrize("options, text", [(["--dim", "S=1"], 'no named dim "S"'), (["--freeze", "X=1"], 'no input "X"'),
                                           (["--state", "h=y"], 'no input "h"; it has "x"\n'),
                                           (["--state", "x=z"], 'no output "z"; it has "y"\n'),
                                           (["--freeze", "x=[1]"], "not of the shape"),
                                           (["--freeze", "x=[[1,2,3,4,5],[1]]"], "a list of 1"),
                                           (["--freeze", "x=[[1,2,3,4,\"a\"]]"], "--freeze x"),
                                           (["--freeze", "x=[[1,2,3,4"], "--freeze x")])
def test_a_setting_that_does_not_fit_the_model_is_refused(rnncc, tmp_path, options, text):
    done = rnncc(write(tmp_path, dense()), "-o", tmp_path / "m.so", "--dim", "T=1..8", *options)
    assert done.returncode == 2 and text in done.stderr, done.stderr


def test_a_state_is_carried_from_run_to_run(rnncc, tmp_path):
    model, x = gru_stream(), floats(6, 1, 3)
    whole = onnxruntime_run(model, {"x": x, "h0": numpy.zeros((1, 1, 4), numpy.float32)})["steps"]
    module = compiled(rnncc, tmp_path, model, "--dim", "T=1..8", "--state", "h0=hN")
    with Module(module) as loaded, loaded.context() as context:
        assert [i.name for i in loaded.inputs] == ["x"] and [o.name for o in loaded.outputs] == ["steps"]
        chunks = [context.run({"x": part})["steps"] for part in (x[:1], x[1:4], x[4:])]
    numpy.testing.assert_allclose(numpy.concatenate(chunks), whole, rtol=1e-5, atol=1e-6)


def test_a_frozen_input_is_a_constant(rnncc, tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Mul", ["r", "scale"], ["y"])]
    model = model_of(nodes, {"x": (F32, [2, 6]), "shape": (I64, [2]), "scale": (F32, [])}, {"y": (F32, None)})
    x = floats(2, 6)
    module = compiled(rnncc, tmp_path, model, "--freeze", "shape=[3,-1]", "--freeze", "scale=0.5")
    numpy.testing.assert_array_equal(run(module, {"x": x})["y"], x.reshape(3, 4) * numpy.float32(0.5))


def test_json_models_take_the_same_settings(rnncc, tmp_path):
    model = small_model()
    model["inputs"].append({"name": "k", "dtype": "f32", "shape": [1]})
    model["nodes"][0]["inputs"] = ["x", "k"]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    done = rnncc(path, "--emit=graph", "-o", tmp_path / "out.json", "--dim", "T=2..9", "--freeze", "k=1.5")
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["dims"] == {"T": {"min": 2, "opt": 9, "max": 9}} and [i["name"] for i in written["inputs"]] == ["x"]


def sources_of(rnncc, folder, model, *options):
    """The files from which the module is built, byte for byte, without the model file's hash in the build record."""
    output = folder / (model.name + ".d")
    done = rnncc(model, "--emit=c", "-o", output, *options)
    assert done.returncode == 0, done.stderr
    files = {path.relative_to(output): path.read_bytes() for path in output.rglob("*") if path.is_file()}
    return {path: re.sub(rb"model sha256 [0-9a-f]{64}", b"", data) for path, data in files.items()}


@pytest.mark.parametrize("model, options", [(dense(), ["--dim", "T=1..8"]),
                                            (gru_stream(), ["--dim", "T=1..8", "--state", "h0=hN"])], ids=["dense", "gru"])
def test_the_graph_that_is_written_compiles_to_the_same_module(rnncc, tmp_path, model, options):
    graph = tmp_path / "graph.json"
    name = "--name=same"  # not by the file
    first = sources_of(rnncc, tmp_path, write(tmp_path, model), name, *options)
    assert rnncc(tmp_path / "model.onnx", "--emit=graph", "-o", graph, *options).returncode == 0
    assert sources_of(rnncc, tmp_path, graph, name) == first


def test_an_input_with_an_initializer_is_a_constant(rnncc, tmp_path):
    model = dense()
    model.graph.input.append(tensor_info("b", F32, [6]))
    assert [i["name"] for i in graph_of(rnncc, tmp_path, model, "--dim", "T=1..8")["inputs"]] == ["x"]


def scaled_function():
    """scaled(x) = alpha * x + x, with alpha from an attribute."""
    nodes = [helper.make_node("Constant", [], ["a"]), helper.make_node("Mul", ["x", "a"], ["m"]),
             helper.make_node("Add", ["m", "x"], ["out"])]
    nodes[0].attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT))
    return helper.make_function("local", "scaled", ["x"], ["out"], nodes, [helper.make_opsetid("", 17)], ["alpha"])


def calling_function():
    """twice(x) = scaled(scaled(x)), with the same names as inside `scaled`."""
    nodes = [helper.make_node("scaled", ["x"], ["m"], domain="local", alpha=2.0),
             helper.make_node("scaled", ["m"], ["out"], domain="local", alpha=0.5)]
    return helper.make_function("local", "twice", ["x"], ["out"], nodes,
                                [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])


def test_functions_take_the_place_of_their_calls(rnncc, tmp_path):
    nodes = [helper.make_node("twice", ["x"], ["m"], "call", domain="local"), helper.make_node("Relu", ["m"], ["y"])]
    model = model_of(nodes, {"x": (F32, [7])}, {"y": (F32, [7])}, functions=[scaled_function(), calling_function()])
    x = floats(7)
    numpy.testing.assert_allclose(run(compiled(rnncc, tmp_path, model), {"x": x})["y"], numpy.maximum(0, x * 3 * 1.5),
                                  rtol=1e-6)


def test_a_function_may_leave_out_inputs_and_pass_others_through(rnncc, tmp_path):
    body = [helper.make_node("Clip", ["x", "low", "high"], ["clipped"])]
    function = helper.make_function("local", "both", ["x", "low", "high"], ["clipped", "x"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("both", ["x", "", "h"], ["c", "same"], "call", domain="local"),
             helper.make_node("Sub", ["same", "c"], ["y"])]
    model = model_of(nodes, {"x": (F32, [7])}, {"y": (F32, [7])}, {"h": numpy.float32(0.1)}, functions=[function])
    x = floats(7)
    got = run(compiled(rnncc, tmp_path, model), {"x": x})["y"]
    numpy.testing.assert_array_equal(got, x - numpy.minimum(x, numpy.float32(0.1)))


def test_a_function_has_defaults_and_overloads(rnncc, tmp_path):
    plain, other = scaled_function(), scaled_function()
    for function, overload, alpha in ((plain, "", 2.0), (other, "half", 0.5)):
        function.overload = overload
        function.attribute.remove("alpha")
        function.attribute_proto.append(helper.make_attribute("alpha", alpha))
    nodes = [helper.make_node("scaled", ["x"], ["m"], "one", domain="local"),
             helper.make_node("scaled", ["m"], ["y"], "two", domain="local", overload="half")]
    model = model_of(nodes, {"x": (F32, [7])}, {"y": (F32, [7])}, functions=[plain, other])
    x = floats(7)
    numpy.testing.assert_allclose(run(compiled(rnncc, tmp_path, model), {"x": x})["y"], x * 3 * 1.5, rtol=1e-6)


def with_default(function, name, value):
    function.attribute_proto.append(helper.make_attribute(name, value))
    return function


def referring(node, name, to):
    """The node with an attribute that stands for the call's attribute `to`."""
    node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=onnx.AttributeProto.FLOAT))
    return node


@pytest.mark.parametrize("given", [{}, {"a": 0.6}], ids=["left out", "given"])
@pytest.mark.parametrize("outer_default", [None, 0.7])
def test_a_default_holds_for_what_a_call_hands_on_without_having_it(rnncc, tmp_path, outer_default, given):
    """f(a) calls g(alpha = a), whose default is 0.3; the model calls f with or without a."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    inner = helper.make_function("local", "g", ["x"], ["y"], [referring(helper.make_node("LeakyRelu", ["x"], ["y"]), "alpha", "alpha")], opsets)
    calling = referring(helper.make_node("g", ["x"], ["y"], domain="local"), "alpha", "a")
    outer = helper.make_function("local", "f", ["x"], ["y"], [calling], opsets, [] if outer_default else ["a"])
    if outer_default:
        with_default(outer, "a", outer_default)
    model = model_of([helper.make_node("f", ["x"], ["y"], domain="local", **given)], {"x": (F32, [7])}, {"y": (F32, [7])},
                     functions=[with_default(inner, "alpha", 0.3), outer])
    x = floats(7)
    got = run(compiled(rnncc, tmp_path, model), {"x": x})["y"]
    numpy.testing.assert_array_equal(got, onnxruntime_run(model, {"x": x})["y"])
    alpha = numpy.float32(given.get("a", outer_default or 0.3))
    numpy.testing.assert_array_equal(got, numpy.where(x < 0, x * alpha, x))


@pytest.mark.unsanitized  # which takes address space of its own
def test_a_function_s_defaults_are_read_once(rnncc, tmp_path):
    """Of 1 MB, in 2000 calls: 2 GB if each call kept its own."""
    function = with_default(with_default(scaled_function(), "unused", [0.5] * 250_000), "alpha", 2.0)
    function.attribute.remove("alpha")
    nodes = [helper.make_node("scaled", [f"x{k}" if k else "x"], [f"x{k + 1}" if k < 1999 else "y"], domain="local") for k in range(2000)]
    model = model_of(nodes, {"x": (F32, [7])}, {"y": (F32, [7])}, functions=[function])

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    done = rnncc(write(tmp_path, model), "--emit=graph", "-o", tmp_path / "out.json", preexec_fn=limit)
    assert done.returncode == 0, done.stderr


def test_external_data_is_read_from_the_models_folder(rnncc, tmp_path):
    model, x = dense(3), floats(3, 5)
    expected = onnxruntime_run(model, {"x": x})["y"]
    onnx.save_model(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    module = compiled(rnncc, tmp_path, tmp_path / "model.onnx")
    numpy.testing.assert_allclose(run(module, {"x": x})["y"], expected, rtol=1e-6, atol=1e-6)


TYPED = {dtype.onnx: dtype.name for dtype in DTYPES}


@pytest.mark.parametrize("raw", [False, True], ids=["list", "raw"])
@pytest.mark.parametrize("code", TYPED, ids=TYPED.values())
def test_elements_are_read_as_lists_and_as_bytes(rnncc, tmp_path, code, raw):
    array = numpy.array([[0, 1, 1], [0, 0, 1]], helper.tensor_dtype_to_np_dtype(code))
    if code in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        array = array * array.dtype.type(-0.75)
    elif array.dtype != numpy.bool_:
        ends = limits(TYPED[code])
        array = numpy.where(array, ends.max, ends.min).astype(array.dtype)
    nodes = [helper.make_node("Concat", ["c", "x"], ["y"], axis=0)]
    model = model_of(nodes, {"x": (code, [1, 3])}, {"y": (code, [3, 3])})
    given = numpy_helper.from_array(array, "c") if raw else helper.make_tensor("c", code, array.shape, array.flatten())
    assert given.HasField("raw_data") == raw
    model.graph.initializer.append(given)
    graph_of(rnncc, tmp_path, model)
    if BY_NAME[TYPED[code]].safetensors:
        assert array.tobytes() in (tmp_path / "out.safetensors").read_bytes()
    else:
        written = json.loads((tmp_path / "out.json").read_text())["constants"]["c"]
        assert written == {"dtype": TYPED[code], "shape": [2, 3], "data": array.astype(float).flatten().tolist()}


def test_all_that_is_unsupported_is_reported_at_once_with_its_nodes(rnncc, tmp_path):
    nodes = [helper.make_node("Foo", ["x"], ["a"], "first"), helper.make_node("Foo", ["a"], ["b"], "second"),
             helper.make_node("Bar", ["b"], ["c"], "third", domain="elsewhere"),
             helper.make_node("Relu", ["c"], ["d"], "fourth", slope=2.0),
             helper.make_node("Gelu", ["d"], ["y"], "fifth", approximate="no")]
    model = model_of(nodes, {"x": (F32, [3]), "s": (TensorProto.STRING, [3])}, {"y": (F32, [3])}, opset=20)
    done = rnncc(write(tmp_path, model), "-o", tmp_path / "m.so")
    assert done.returncode == 3
    for text in ['the operator Foo is not supported (2 times: "first", "second")', 'Bar of elsewhere', '"third"',
                 "the attribute `slope` of Relu", '"fourth"', '`approximate`="no" of Gelu', "the element type string"]:
        assert text in done.stderr, done.stderr


def relu_of(opset, op="Relu"):
    return model_of([helper.make_node(op, ["x"], ["y"], name="first")], {"x": (F32, [3])}, {"y": (F32, [3])}, opset=opset)


def test_an_opset_below_the_first_is_refused(rnncc, tmp_path):
    done = rnncc(write(tmp_path, relu_of(0)), "--emit=graph", "-o", tmp_path / "out.json")
    assert done.returncode == 3 and "opset 0; opsets from 7 on" in done.stderr


@pytest.mark.parametrize("opset", [7, onnx.defs.onnx_opset_version(), onnx.defs.onnx_opset_version() + 1])
def test_a_newer_opset_than_is_known_is_read_with_a_note(rnncc, tmp_path, opset):
    """The newest that is known is the package's: where that has a newer one, what changed must be looked at first."""
    newest = onnx.defs.onnx_opset_version()
    done = rnncc(write(tmp_path, relu_of(opset)), "--emit=graph", "-o", tmp_path / "out.json")
    assert done.returncode == 0
    assert (f"opset {opset} is newer than opset {newest}" in done.stderr) == (opset > newest), done.stderr


def test_of_a_newer_opset_operators_that_are_not_known_are_named(rnncc, tmp_path):
    done = rnncc(write(tmp_path, relu_of(onnx.defs.onnx_opset_version() + 1, "Newer")), "-o", tmp_path / "m.so")
    assert done.returncode == 3 and 'the operator Newer is not supported (1 time: "first")' in done.stderr, done.stderr
