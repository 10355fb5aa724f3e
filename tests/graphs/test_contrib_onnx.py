# SPDX-License-Identifier: MIT
"""Operators of ONNX Runtime's domain, com.microsoft, compute what ONNX Runtime does, and bad ones of other domains are told
with their node's name. ONNX's conformance suite has FlexAttention."""
import numpy
import pytest
from onnx import TensorProto, helper

from graphs.contrib_models import CONTRIB, GROUPED, Constant, bytes_of, constant, grouped
from graphs.op_models import uniform
from support.emitted import run_module
from support.onnx_files import described, model_of, onnxruntime_run, write

BOUND = 2.0**-18  # relative to the largest: sums of at most 63 products, and ONNX Runtime's approximations of functions
# ONNX Runtime cannot run these without their optional inputs: it gets what their absence means.
NEEDED = {"QLinearAdd": numpy.uint8, "QLinearMul": numpy.uint8, "QLinearAveragePool": numpy.uint8, "Attention": numpy.float32}


def node_of(name, prefix=""):
    """The node, and its inputs and outputs by name."""
    op, arrays, outputs, attributes = CONTRIB[name](numpy.random.default_rng(list(name.encode())))
    inputs = {f"{prefix}x{k}": array for k, array in enumerate(arrays)}
    written = [f"{prefix}y{k}" if wanted else "" for k, wanted in enumerate(outputs)]
    results = [name for name, wanted in zip(written, outputs) if wanted == 1]
    names = [key if array is not None else "" for key, array in inputs.items()]
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    return helper.make_node(op, names, written, name=name, domain=domain, **attributes), inputs, results


def model_with(nodes, inputs, results):
    constants = {name: numpy.asarray(array) for name, array in inputs.items() if isinstance(array, Constant)}
    kinds = {name: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in fed(inputs).items()}
    model = model_of(nodes, kinds, {name: (TensorProto.FLOAT, None) for name in results}, constants)
    for output in model.graph.output:
        output.ClearField("type")  # is inferred
    return model


def present(inputs):
    return {name: array for name, array in inputs.items() if array is not None}


def fed(inputs):
    return {name: array for name, array in present(inputs).items() if not isinstance(array, Constant)}


def peer_run(name):
    node, inputs, results = node_of(name)
    if node.op_type in NEEDED:
        like = inputs["x0"].dtype if node.op_type.startswith("Q") else numpy.float32
        absent = [key for k, (key, array) in enumerate(inputs.items()) if array is None and (k == 2 or node.op_type[0] == "Q")]
        for key in absent:
            place = list(inputs).index(key)
            shape = inputs["x1"].shape[1:] if node.op_type == "Attention" else ()
            inputs[key] = numpy.zeros(shape, like)
            node.input[place] = key
    return onnxruntime_run(model_with([node], present(inputs), results), fed(inputs))


def whole_model(names):
    """Their nodes in one model, so that a test compiles once."""
    nodes, inputs, results = [], {}, []
    for k, name in enumerate(names):
        node, its_inputs, its_results = node_of(name, f"n{k}_")
        nodes.append(node)
        inputs |= present(its_inputs)
        results += its_results
    return model_with(nodes, inputs, results), fed(inputs)


def assert_alike(got, due, name):
    assert got.dtype == due.dtype and got.shape == due.shape, name
    bound = BOUND * max(1, abs(due).max(initial=0)) if due.dtype.kind == "f" else 0
    numpy.testing.assert_allclose(got.astype(float), due.astype(float), rtol=0, atol=bound, err_msg=name)


def first_of_each_operator():
    return list({CONTRIB[name](numpy.random.default_rng())[0]: name for name in reversed(CONTRIB)}.values())


def assert_all_alike(outputs, names):
    for k, name in enumerate(names):
        for output, due in peer_run(name).items():
            assert_alike(outputs[f"n{k}_{output}"], due, name)


def test_operators_of_com_microsoft_compute_what_onnx_runtime_does(reference, tmp_path):
    model, feeds = whole_model(CONTRIB)
    assert_all_alike(reference.run(described(model), write(tmp_path, model), feeds), CONTRIB)


def test_operators_of_com_microsoft_run_in_a_module(compile, tmp_path):
    names = first_of_each_operator()
    model, feeds = whole_model(names)
    assert_all_alike(run_module(compile(write(tmp_path, model)), feeds, threads=(1, 3)), names)


@pytest.mark.parametrize("sink", ["a sink", "a smooth softmax"])
def test_heads_of_16_bits_have_a_sink_too(sink, reference, tmp_path):
    name = f"GroupQueryAttention, {sink}"
    node, inputs, results = node_of(name)
    halves = {key: array.astype(numpy.float16) if array.dtype == numpy.float32 else array for key, array in present(inputs).items()}
    model = model_with([node], halves, results)
    outputs = reference.run(described(model), write(tmp_path, model), halves)
    for key, due in peer_run(name).items():
        numpy.testing.assert_allclose(outputs[key].astype(float), due, rtol=0, atol=2.0**-8)


F32, U8, I8, I32, I64 = (
    numpy.zeros((), dtype) for dtype in (numpy.float32, numpy.uint8, numpy.int8, numpy.int32, numpy.int64))


def of(shape, like=F32):
    return numpy.zeros(shape, like.dtype)


BAD = {
    "an activation that it does not know": (
        3, '`activation`="Cosine" of FusedConv', "FusedConv", [of((1, 2, 5, 5)), of((3, 2, 3, 3))], {"activation": "Cosine"}),
    "too many numbers of an activation": (
        2, '`activation_params` has 2 numbers; "LeakyRelu" takes at most 1', "FusedConv",
        [of((1, 2, 5, 5)), of((3, 2, 3, 3))], {"activation": "LeakyRelu", "activation_params": [0.5, 0.5]}),
    "a sum of another shape": (
        2, "input 3 must be what is added", "FusedConv", [of((1, 2, 5, 5)), of((3, 2, 3, 3)), None, of((1, 3, 5, 5))], {}),
    "a convolution without weights": (2, "FusedConv has 2 to 4 inputs, found 1", "FusedConv", [of((1, 2, 5, 5))], {}),
    "an absent image": (2, "input 0 of FusedConv is absent", "FusedConv", [None, of((3, 2, 3, 3))], {}),
    "distances of longer rows": (2, "differ in length", "CDist", [of((2, 4)), of((3, 5))], {"metric": "euclidean"}),
    "a vector that is turned": (2, "input 0 must have at least rank 2", "FusedMatMul", [of(4), of((4, 3))], {"transA": 1}),
    "products that do not fit": (2, "inner extents", "FusedMatMul", [of((2, 4)), of((4, 3))], {"transA": 1}),
    "a bias of another length": (2, "input 1 must be the bias", "BiasGelu", [of((2, 4)), of(3)], {}),
    "a scalar with a bias": (2, "input 0 must have at least rank 1", "FastGelu", [of(()), of(3)], {}),
    "a skip of another shape": (
        2, "does not fit `x0`", "SkipLayerNormalization", [of((2, 3, 4)), of((2, 1, 4)), of(4)], {}),
    "a gamma of another length": (
        2, "input 2 must be as long as the last axis", "SkipLayerNormalization", [of((2, 3, 4)), of((2, 3, 4)), of(3)], {}),
    "segments without a table": (
        2, "belong together", "EmbedLayerNormalization",
        [of((2, 3), I32), of((2, 3), I32), of((5, 4)), of((5, 4)), None, of(4), of(4)], {}),
    "fewer positions than words": (
        2, "has fewer positions than", "EmbedLayerNormalization",
        [of((2, 3), I32), None, of((5, 4)), of((2, 4)), None, of(4), of(4)], {}),
    "a scale of each channel": (
        3, "input 1 must be a single number", "QLinearSigmoid", [of((2, 3), U8), of(3), U8, F32, U8], {}),
    "a zero point of another type": (
        2, "inputs 0 and 2 of QLinearAdd must have one type", "QLinearAdd", [U8, F32, I8, U8, F32, U8, F32, U8], {}),
    "an absent scale": (2, "input 1 of QLinearMul is absent", "QLinearMul", [U8, None, U8, U8, F32, U8, F32, U8], {}),
    "half a part": (2, "expected 2 inputs and 3 for each part, found 6", "QLinearConcat",
                    [F32, U8, of(3, U8), F32, U8, of(3, U8)], {"axis": 0}),
    "a part of floats": (2, "expected a tensor of u8 or i8", "QLinearConcat", [F32, U8, of(3), F32, F32], {"axis": 0}),
    "a concatenation without an axis": (2, "QLinearConcat needs the attribute `axis`", "QLinearConcat",
                                        [F32, U8, of(3, U8), F32, U8], {}),
    "a zero point without a scale": (2, "y_zero_point (input 8) has no y_scale", "QGemm",
                                     [of((2, 3), U8), F32, U8, of((3, 4), I8), F32, I8, None, None, U8], {}),
    "channels in the middle": (2, "`perm` has 5 axes", "QLinearAveragePool", [of((1, 4, 4, 2), U8), F32, U8, F32, U8],
                               {"kernel_shape": [2, 2, 2], "channels_last": 1}),
    "packed queries, keys and values": (3, "packed queries, keys and values of com.microsoft's MultiHeadAttention",
                                        "MultiHeadAttention", [of((2, 3, 2, 3, 4))], {"num_heads": 2}),
    "a mask of lengths of keys and queries": (3, "a mask of lengths that is not one a sample", "MultiHeadAttention",
                                              [of((2, 3, 8))] * 3 + [None, of(8, I32)], {"num_heads": 2}),
    "a mask of four axes": (3, "a mask that has not 2 or 3 axes", "MultiHeadAttention",
                            [of((2, 3, 8))] * 3 + [None, of((2, 1, 3, 3), I32)], {"num_heads": 2}),
    "a quantised cache": (3, "a quantised cache of com.microsoft's GroupQueryAttention", "GroupQueryAttention",
                          [of((2, 3, 8)), of((2, 3, 8)), of((2, 3, 8)), None, None, of(2, I32), I32, *[None] * 5, of(1)],
                          {"num_heads": 2, "kv_num_heads": 2}),
    "keys without values": (3, "keys without values", "GroupQueryAttention", [
        of((2, 3, 8)), of((2, 3, 8)), None, None, None, of(2, I32), I32], {"num_heads": 2, "kv_num_heads": 2}),
    "grouped heads of no number": (3, "`num_heads` or `kv_num_heads` below 1", "GroupQueryAttention", [
        *[of((2, 3, 8))] * 3, None, None, of(2, I32), I32], {"num_heads": 2}),
    "packed heads that do not fit": (3, "packed queries, keys and values whose width", "GroupQueryAttention", [
        of((2, 3, 9)), *[None] * 4, of(2, I32), I32], {"num_heads": 2, "kv_num_heads": 1}),
    "scores that are wanted": (3, "`qk_output` of com.microsoft's GroupQueryAttention", "GroupQueryAttention", [
        *[of((2, 3, 8))] * 3, None, None, of(2, I32), I32], {"num_heads": 2, "kv_num_heads": 2, "qk_output": 1}),
    "no lengths": (3, "absent queries or lengths", "GroupQueryAttention", [of((2, 3, 8))] * 3, {"num_heads": 2, "kv_num_heads": 2}),
    "turned heads without angles": (3, "absent cosines or sines", "GroupQueryAttention", [
        *[of((2, 3, 8))] * 3, None, None, of(2, I32), I32], {"num_heads": 2, "kv_num_heads": 2, "do_rotary": 1}),
    "packed samples": (3, "`is_packed_batching`", "RotaryEmbedding", [
        of((2, 3, 8)), of(1, I64), of((5, 4)), of((5, 4))], {"is_packed_batching": 1}),
    "angles without positions": (2, "input 1 of RotaryEmbedding is absent", "RotaryEmbedding", [
        of((2, 3, 8)), None, of((5, 4)), of((5, 4))], {}),
    "quantised attention without scales": (3, "absent weights, input or scales of com.microsoft's QAttention", "QAttention",
                                           [of((2, 3, 5), U8), of((5, 24), I8), of(24)], {"num_heads": 2}),
    "a recurrent layer without scales": (
        3, "weights without a scale of each direction", "DynamicQuantizeLSTM",
        [of((3, 2, 5)), of((1, 5, 16), I8), of((1, 4, 16), I8)], {"hidden_size": 4}),
    "a recurrent layer of an LSTM's layout": (
        3, "`layout` of com.microsoft's DynamicQuantizeLSTM", "DynamicQuantizeLSTM", [of((3, 2, 5)), of((1, 5, 16), I8)],
        {"hidden_size": 4, "layout": 1}),
    "a recurrent layer of another precision": (
        3, "`precision` of com.microsoft's DynamicQuantizeLSTM", "DynamicQuantizeLSTM", [of((3, 2, 5)), of((1, 5, 16), I8)],
        {"hidden_size": 4, "precision": "f32"}),
    "a recurrent layer with an input more": (
        3, "input 12 of com.microsoft's DynamicQuantizeLSTM", "DynamicQuantizeLSTM", [of((3, 2, 5))] * 13, {"hidden_size": 4}),
    "a pool of no kernel": (3, "channels on the last axis of images of unknown rank", "NhwcMaxPool", [of((2, 5, 5, 3), U8)], {}),
    "a convolution of scalars": (3, "channels on the last axis of images of unknown rank", "QLinearConv", [
        of((2, 5, 5, 3), U8), F32, U8, U8, F32, U8, F32, U8], {"channels_last": 1}),
    "weights of 3 bits": (3, "`bits` is 3; it may be 2, 4 or 8", "MatMulNBits",
                          [of((2, 40)), of((5, 3, 8), U8), of((5, 3))], {"K": 40, "N": 5, "block_size": 16, "bits": 3}),
    "blocks of 20": (2, "`block_size` is 20; it must be a power of two", "MatMulNBits",
                     [of((2, 40)), of((5, 2, 10), U8), of((5, 2))], {"K": 40, "N": 5, "block_size": 20}),
    "weights of other blocks": (2, "the weights, [N, blocks, bytes]", "MatMulNBits",
                                [of((2, 40)), of((5, 2, 8), U8), of((5, 3))], {"K": 40, "N": 5, "block_size": 16}),
    "scales of other blocks": (2, "input 2 must be [5, 3], or as many in a row", "MatMulNBits",
                               [of((2, 40)), of((5, 3, 8), U8), of((5, 2))], {"K": 40, "N": 5, "block_size": 16}),
    "zero points that are not packed": (2, "input 3 must be [5, 2]", "MatMulNBits", [
        of((2, 40)), of((5, 3, 8), U8), of((5, 3)), of((5, 3), U8)], {"K": 40, "N": 5, "block_size": 16}),
    "rows of another length": (2, "must be `K`, 40", "MatMulNBits",
                               [of((2, 41)), of((5, 3, 8), U8), of((5, 3))], {"K": 40, "N": 5, "block_size": 16}),
    "an order of groups": (3, "g_idx (input 4)", "MatMulNBits", [
        of((2, 40)), of((5, 3, 8), U8), of((5, 3)), None, of(40, I32)], {"K": 40, "N": 5, "block_size": 16}),
    "weights packed for a device": (3, "`weight_prepacked`", "MatMulNBits", [
        of((2, 40)), of((5, 3, 8), U8), of((5, 3))], {"K": 40, "N": 5, "block_size": 16, "weight_prepacked": 1}),
    "a product of no size": (2, "`K` and `N` are 0 and 5", "MatMulNBits",
                             [of((2, 0)), of((5, 0, 8), U8), of((5, 0))], {"K": 0, "N": 5, "block_size": 16}),
    "a product without its size": (2, "MatMulNBits needs the attribute `N`", "MatMulNBits",
                                   [of((2, 40)), of((5, 3, 8), U8), of((5, 3))], {"K": 40, "block_size": 16}),
    "rows of bytes along which blocks lie": (2, "of bytes `gather_axis` must be 0", "GatherBlockQuantized",
                                             [of((7, 8), U8), of(2, I32), of((7, 1))], {"quantize_axis": 0, "block_size": 16}),
    "scales of other rows": (2, "those of each block", "GatherBlockQuantized",
                             [of((7, 8), U8), of(2, I32), of((7, 2))], {"block_size": 16}),
    "a choice of floats": (3, "input 0 of QLinearWhere", "QLinearWhere", [
        of(3), of(3, U8), F32, U8, of(3, U8), F32, U8, F32, U8], {}),
    "attention without heads": (2, "`q_num_heads` is 0", "MultiHeadAttention", [of((2, 3, 8))] * 3, {}),
    "rotary attention": (3, "`do_rotary` of com.microsoft's Attention", "Attention", [of((2, 3, 5)), of((5, 24)), of(24)],
                         {"num_heads": 2, "do_rotary": 1}),
    "an input that it does not have": (3, "a shared cache of com.microsoft's Attention", "Attention",
                                       [of((2, 3, 5)), of((5, 24)), of(24), None, None, None, I32], {"num_heads": 2}),
    "a softmax over an axis that is not there": (2, "axis is 4; it must be in -3..2", "QLinearSoftmax",
                                                       [of((2, 3, 4), U8), F32, U8, F32, U8], {"axis": 4, "opset": 11}),
    "an operator that it does not know": (3, "the operator LongformerAttention of com.microsoft", "LongformerAttention",
                                          [of((2, 3, 8))] * 3, {"num_heads": 2}),
}


def test_outputs_that_attention_does_not_have_are_refused(rnncc, tmp_path):
    inputs = {"x": of((2, 3, 5)), "w": of((5, 24)), "b": of(24)}
    node = helper.make_node("Attention", list(inputs), ["y", "p", "", "z"], name="the_node", domain="com.microsoft", num_heads=2)
    done = rnncc(write(tmp_path, model_with([node], inputs, ["y", "p", "z"])), "--emit=c", "-o", tmp_path / "out")
    assert done.returncode == 3 and "output 2 of com.microsoft's Attention" in done.stderr, done.stderr


def module_run(compile, folder, model, feeds):
    return run_module(compile(write(folder, model)), feeds, threads=(1, 2))


@pytest.mark.parametrize("past", [None, 0], ids=["no_cache", "empty_cache"])
def test_samples_that_are_filled_up_do_not_see_what_they_are_filled_with(compile, tmp_path, past):
    lengths = (4, 2)
    arrays = grouped(numpy.random.default_rng(7), past=past, lengths=lengths, steps=4, rotary=16)
    inputs = {f"x{k}": array for k, array in enumerate(arrays) if array is not None}
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(arrays)]
    node = helper.make_node("GroupQueryAttention", names, ["y", "k", "v"], name="n", domain="com.microsoft", do_rotary=1, **GROUPED)
    model = model_with([node], inputs, ["y", "k", "v"])
    got, due = module_run(compile, tmp_path, model, inputs), onnxruntime_run(model, inputs)
    for sample, length in enumerate(lengths):
        assert_alike(got["y"][sample, :length], due["y"][sample, :length], "y")
        for name in "kv":
            assert_alike(got[name][sample, :, :length], due[name][sample, :, :length], name)


def test_heads_are_normalised_before_they_are_turned(compile, tmp_path):
    """ONNX Runtime's CPU kernel has no norms of its own: it gets normalised queries and keys."""
    rng = numpy.random.default_rng(8)
    arrays = grouped(rng, past=4, lengths=(5, 4), steps=1, rotary=16)
    inputs = {f"x{k}": array for k, array in enumerate(arrays) if array is not None}
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(arrays)]
    norms = {name: rng.uniform(0.5, 2, 16).astype(numpy.float32) for name in ("nq", "nk")}
    attributes = {"domain": "com.microsoft", "do_rotary": 1, **GROUPED}
    own = helper.make_node("GroupQueryAttention", [*names, "", "", "", *norms], ["y"], name="n", qk_norm_epsilon=0.01, **attributes)
    before, constants = [], {"apart": numpy.array([0, 0, -1, 16]), "flat": numpy.array([0, 0, -1])}
    for name, norm in zip(names[:2], norms):
        before += [helper.make_node("Reshape", [name, "apart"], [f"{name}_apart"]),
                   helper.make_node("SimplifiedLayerNormalization", [f"{name}_apart", norm], [f"{name}_norm"], epsilon=0.01),
                   helper.make_node("Reshape", [f"{name}_norm", "flat"], [f"{name}_flat"])]
    cache = ["y", "k", "v"]
    after = helper.make_node("GroupQueryAttention", ["x0_flat", "x1_flat", *names[2:]], cache, **attributes)
    feeds = inputs | norms
    due = onnxruntime_run(model_with([*before, after], feeds | {k: constant(v) for k, v in constants.items()}, ["y"]), feeds)
    assert_alike(module_run(compile, tmp_path, model_with([own], feeds, ["y"]), feeds)["y"], due["y"], "y")


@pytest.mark.parametrize("constant_weights", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("dtype", [numpy.int8, numpy.uint8])
@pytest.mark.parametrize("columns", [False, True], ids=["whole", "columns"])
def test_a_dynamically_quantised_lstm_is_near_one_of_its_weights_in_floats(compile, tmp_path, columns, dtype, constant_weights):
    """Constant weights are multiplied as integers: results differ by what rounds X and the state to 255 steps of their
    range, and weights of more than 127 steps. Others are computed in floats, which round nothing."""
    rng = numpy.random.default_rng(9)
    T, B, I, H, D = 5, 3, 7, 6, 2
    weights = {"w": bytes_of(rng, dtype, D, I, 4 * H), "r": bytes_of(rng, dtype, D, H, 4 * H)}
    extents = (D, 4 * H) if columns else (D,)
    quantisers = {name: (rng.uniform(0.001, 0.004, extents).astype(numpy.float32), bytes_of(rng, dtype, *extents)) for name in weights}
    rest = {"b": uniform(rng, D, 8 * H), "lengths": numpy.array([5, 2, 4], numpy.int32), "h": uniform(rng, D, B, H),
            "c": uniform(rng, D, B, H), "p": uniform(rng, D, 3 * H)}
    x = {"x": uniform(rng, T, B, I)}
    given = weights if constant_weights else {}
    fed = x | {name: array for name, array in weights.items() if name not in given}
    parameters = {f"{name}_{kind}": constant(array) for name, pair in quantisers.items() for kind, array in zip("sz", pair)}
    inputs = {name: fed[name] if name in fed else constant(array) for name, array in (x | weights | rest).items()} | parameters
    outputs, attributes = ["y", "hN", "cN"], {"hidden_size": H, "direction": "bidirectional"}
    node = helper.make_node("DynamicQuantizeLSTM", list(inputs), outputs, name="n", domain="com.microsoft", **attributes)

    def floats(name):
        scale, zero_point = (array.reshape(D, 1, -1) for array in quantisers[name])
        return ((weights[name].astype(numpy.float32) - zero_point) * scale).transpose(0, 2, 1).astype(numpy.float32)

    plain = x | {name: constant(floats(name)) for name in weights} | {name: constant(array) for name, array in rest.items()}
    due = onnxruntime_run(model_with([helper.make_node("LSTM", list(plain), outputs, **attributes)], plain, outputs), x)
    got = module_run(compile, tmp_path, model_with([node], inputs, outputs), fed)
    # Half a step of each element, times the weights of a row; and half a step of these, of 127, times elements up to 1.
    # A gate passes on a quarter of what its sum is off, a candidate all; each step adds to what the cell has kept.
    w, r = floats("w"), floats("r")
    off = T * sum((numpy.abs(m).sum(axis=2) / 255 + numpy.abs(m).max(axis=2) / 254 * m.shape[2]).max() for m in (w, r))
    for name in outputs:
        if constant_weights:
            assert 0 < numpy.abs(got[name] - due[name]).max() < off, name
        else:
            assert_alike(got[name], due[name], name)


@pytest.mark.optimised_here
@pytest.mark.parametrize("dtype", [numpy.int8, numpy.uint8])
@pytest.mark.parametrize("of_columns", ["", "s", "z", "sz"], ids=["whole", "scales", "zeros", "columns"])
def test_of_one_sample_and_step_a_dynamically_quantised_lstm_is_onnx_runtimes(compile, tmp_path, of_columns, dtype):
    """There each range is of what ONNX Runtime takes it of. Weights that fit s8 are not rounded again, so that the sums
    are the same integers. of_columns: scales, or zero points, are one for each column."""
    rng = numpy.random.default_rng(10)
    I, H = 70, 40
    weights = {name: rng.integers(-60, 61, (1, rows, 4 * H)) for name, rows in (("w", I), ("r", H))}
    if dtype is numpy.int8:  # beside positive ones: on a CPU without VNNI ONNX Runtime's sums of two products saturate
        weights["r"][:, ::10], weights["r"][:, 1::10] = -128, abs(weights["r"][:, 1::10])
    middle = 0 if dtype is numpy.int8 else 100
    scales, zeros = ((1, 4 * H) if kind in of_columns else (1,) for kind in "sz")
    weights = {name: (array + middle).astype(dtype) for name, array in weights.items()}
    quantisers = {name: (rng.uniform(0.001, 0.002, scales).astype(numpy.float32), numpy.full(zeros, middle, dtype)) for name in weights}
    rest = {"b": uniform(rng, 1, 8 * H), "": None, "h": uniform(rng, 1, 1, H), "c": uniform(rng, 1, 1, H)}
    x, p = {"x": uniform(rng, 1, 1, I)}, uniform(rng, 1, 3 * H)
    constants = {name: constant(array) for name, array in (weights | rest | {"p": p}).items() if array is not None}
    parameters = {f"{name}_{kind}": constant(array) for name, pair in quantisers.items() for kind, array in zip("sz", pair)}
    outputs = ["y", "hN", "cN"]
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "h", "c", "p", *parameters], outputs, name="n",
                            domain="com.microsoft", hidden_size=H)
    model = model_with([node], x | constants | parameters, outputs)
    due, got = onnxruntime_run(model, x), module_run(compile, tmp_path, model, x)
    for name in outputs:  # one integer that is another would be some 1e-3
        assert numpy.abs(got[name] - due[name]).max() < 2e-5, name


def test_a_quantised_softmax_of_older_opsets_runs_at_run_time_extents(rnncc, reference, tmp_path):
    x = numpy.random.default_rng(5).integers(0, 256, (2, 3, 4, 5)).astype(numpy.uint8)
    constants = {"s": numpy.float32(0.125), "z": numpy.uint8(7), "t": numpy.float32(2.0**-8), "u": numpy.uint8(3)}
    node = helper.make_node("QLinearSoftmax", ["x", "s", "z", "t", "u"], ["y"], domain="com.microsoft", axis=2, opset=11)
    model = model_of([node], {"x": (TensorProto.UINT8, ["A", "B", "C", "D"])}, {"y": (TensorProto.UINT8, None)},
                     {name: numpy.array(value) for name, value in constants.items()})
    graph = tmp_path / "graph.json"
    done = rnncc(write(tmp_path, model), "--emit=graph", "-o", graph, *[f"--dim={name}=1..9" for name in "ABCD"])
    assert done.returncode == 0, done.stderr
    got = reference.run(described(model), graph, {"x": x})["y"]
    numpy.testing.assert_array_equal(got, onnxruntime_run(model, {"x": x})["y"])


@pytest.mark.parametrize("name", BAD)
def test_a_bad_operator_of_com_microsoft_is_told_with_its_node(rnncc, tmp_path, name):
    code, message, op, arrays, attributes = BAD[name]
    names = ["" if array is None else f"x{k}" for k, array in enumerate(arrays)]
    node = helper.make_node(op, names, ["y"], name="the_node", domain="com.microsoft", **attributes)
    inputs = {f"x{k}": array for k, array in enumerate(arrays) if array is not None}
    done = rnncc(write(tmp_path, model_with([node], inputs, ["y"])), "--emit=c", "-o", tmp_path / "out")
    assert done.returncode == code, done.stderr
    assert message in done.stderr and "the_node" in done.stderr


def body(nodes, inputs=("s",), outputs=("t",)):
    def infos(names):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    return helper.make_graph(nodes, "body", infos(inputs), infos(outputs))


SQUARED = [helper.make_node("Mul", ["s", "s"], ["t"])]
BAD_FLEX = {
    "a body of two inputs": (2, "`score_mod` of FlexAttention must be a graph of one input and one output",
                             (6, 2), {"score_mod": body(SQUARED, ("s", "u"))}),
    "a body that is none": (2, "`prob_mod` of FlexAttention must be a graph", (6, 2), {"prob_mod": 3}),
    "a body that reads what is around it": (3, "a body that reads what is around it of FlexAttention", (6, 2), {
        "score_mod": body([helper.make_node("Mul", ["s", "q"], ["t"])])}),
    "heads that do not fit": (2, "5 heads of queries must be a multiple of the 2 of keys", (5, 2), {}),
    "a narrow softmax": (3, "a `softmax_precision` other than f32 of FlexAttention", (6, 2),
                         {"softmax_precision": TensorProto.FLOAT16}),
}


@pytest.mark.parametrize("name", BAD_FLEX)
def test_bad_flex_attention_is_told_with_its_node(rnncc, tmp_path, name):
    code, message, (heads, kv_heads), attributes = BAD_FLEX[name]
    inputs = {"q": of((1, heads, 3, 4)), "k": of((1, kv_heads, 5, 4)), "v": of((1, kv_heads, 5, 4))}
    node = helper.make_node("FlexAttention", list(inputs), ["y"], name="the_node", domain="ai.onnx.preview", **attributes)
    done = rnncc(write(tmp_path, model_with([node], inputs, ["y"])), "--emit=c", "-o", tmp_path / "out")
    assert done.returncode == code, done.stderr
    assert message in done.stderr and "the_node" in done.stderr
