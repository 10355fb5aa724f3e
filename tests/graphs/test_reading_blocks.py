# SPDX-License-Identifier: MIT
"""Highway, AdditiveAttention, AttentionFlow and AttentionSum, operators of the project's own, compute what their papers say,
of any extents and with masks, on every target; their scores are not stored element by element; bad inputs are told."""
import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from support.emitted import TARGETS, run_module
from support.model_builder import Model
from support.reading_blocks import additive, attention_sum, flow, highway

BOUND = 1e-5  # relative to the largest value: sums of up to 150 products, exponentials of their differences


class Blocks(Model):
    def __init__(self, seed=0):
        super().__init__()
        self.rng, self.feeds, self.expected = numpy.random.default_rng(seed), {}, {}
        self.same = numpy.random.default_rng(0)  # weights: whatever is fed, it is one model

    def fed(self, array, names=None):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        dtype = {"float32": "f32", "int64": "i64", "int32": "i32", "bool": "bool"}[str(array.dtype)]
        return self.input(name, dtype, list(names or array.shape))

    def numbers(self, *shape, scale=1.0):
        return self.rng.uniform(-scale, scale, shape).astype("f")

    def weights(self, *shape, scale=1.0):
        return self.same.uniform(-scale, scale, shape).astype("f")

    def truths(self, *shape):
        """At least one in each row."""
        truths = self.rng.random(shape) < 0.6
        truths[..., self.rng.integers(shape[-1])] = True
        return truths

    def block(self, op, formula, arrays, names, outputs=1, weights=(), **attributes):
        """arrays: None for absent ones; weights: numbers of those that are constants."""
        inputs = ["" if array is None else self.constant(array) if k in weights else self.fed(array, names[k])
                  for k, array in enumerate(arrays)]
        made = self.node(op, inputs, outputs, **attributes)
        made = made if isinstance(made, (list, tuple)) else [made]
        self.output(*made)
        wanted = formula(*(array.astype("d") if array is not None and array.dtype.kind == "f" else array for array in arrays), **attributes)
        self.expected |= dict(zip(made, wanted if isinstance(wanted, tuple) else [wanted], strict=True))

    def check(self, outputs):
        assert outputs.keys() == self.expected.keys()
        for name, wanted in self.expected.items():
            assert outputs[name].shape == wanted.shape
            assert abs(outputs[name] - wanted).max() <= BOUND * abs(wanted).max(), name


def network(B, S, T, F, known=True):
    """All blocks, with and without masks. known: extents are; else F alone is."""
    net = Blocks(seed=[B, S, T])
    b, s, t = (B, S, T) if known else (net.dim("B", 1, 2, 4), net.dim("S", 1, 2, 70), net.dim("T", 1, 20, 70))
    weights = [net.weights(F, F, scale=F ** -0.5), net.weights(F)]
    for activation in ("Relu", "Tanh"):
        net.block("Highway", highway, [net.numbers(B, T, F), *weights, *weights], [(b, t, F)], weights=range(1, 5), activation=activation)
    for mask, names in ((None, None), (net.truths(B, 1, T), (b, 1, t)), (net.numbers(S, T), (s, t))):
        arrays = [net.numbers(B, S, F), net.numbers(B, T, F), net.numbers(B, T, 9), net.weights(F), mask]
        net.block("AdditiveAttention", additive, arrays, [(b, s, F), (b, t, F), (b, t, 9), None, names], 2, weights=[3])
    for masks in ((None, None), (net.truths(B, T), net.truths(B, S))):
        arrays = [net.numbers(B, T, F), net.numbers(B, S, F), net.weights(3 * F), *masks]
        net.block("AttentionFlow", flow, arrays, [(b, t, F), (b, s, F), None, (b, t), (b, s)], weights=[2])
    for dtype in ("i32", "i64"):
        words = [net.rng.integers(0, 5, shape).astype(dtype.replace("i", "int")) for shape in ((B, T), (B, S))]
        net.block("AttentionSum", attention_sum, [net.numbers(B, T), *words], [(b, t), (b, t), (b, s)])
    return net


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_of_known_extents_compute_what_their_papers_say(compile, tmp_path, target):
    net = network(3, 4, 37, 21)
    net.check(run_module(compile(net.write(tmp_path), f"--target={target}", "--verify-each"), net.feeds))


def test_blocks_of_extents_known_at_run_time_do_too(compile, tmp_path):
    for B, S, T in [(1, 1, 1), (4, 70, 19)]:
        net = network(B, S, T, 50, known=False)
        net.check(run_module(compile(net.write(tmp_path)), net.feeds))


def test_scores_are_not_stored_element_by_element(rnncc, tmp_path):
    net = Blocks()
    net.block("AdditiveAttention", lambda *x: additive(*x)[0], [net.numbers(2, 3, 20), net.numbers(2, 8, 20), net.numbers(2, 8, 9), net.numbers(20)],
              [None] * 4, weights=[3])
    net.block("AttentionFlow", flow, [net.numbers(2, 8, 20), net.numbers(2, 3, 20), net.numbers(60)], [None] * 3, weights=[2])
    done = rnncc("inspect", net.write(tmp_path), "--dump-after=fuse_reductions", "--threads=2")
    assert done.returncode == 0 and "ReducedChain" in done.stderr
    assert "[2, 3, 8, 20]" not in done.stderr and "[2, 8, 3, " not in done.stderr, "a tensor of queries, keys and units"


BAD = [
    ("Highway", [(4, 5), (5, 6), (5,), (5, 5), (5,)], "[features, features]"),
    ("Highway", [(4, 5), (5, 5), (5,), (5, 5), (6,)], "[features]"),
    ("AdditiveAttention", [(2, 3, 5), (2, 4, 6), (2, 4, 7), (5,)], "[batch, keys, units]"),
    ("AdditiveAttention", [(2, 3, 5), (1, 4, 5), (2, 4, 7), (5,)], "[batch, keys, units]"),
    ("AdditiveAttention", [(2, 3, 5), (2, 4, 5), (2, 3, 7), (5,)], "[batch, keys, units]"),
    ("AdditiveAttention", [(2, 3, 5), (2, 4, 5), (1, 4, 7), (5,)], "[batch, keys, features]"),
    ("AdditiveAttention", [(2, 3, 5), (2, 4, 5), (2, 4, 7), (4,)], "[units]"),
    ("AttentionFlow", [(2, 3, 5), (2, 4, 5), (10,)], "[3*features]"),
    ("AttentionFlow", [(2, 3, 5), (2, 4, 6), (15,)], "[batch, words, features]"),
    ("AttentionFlow", [(2, 3, 5), (2, 4, 5), (15,), (2, 4), (2, 4)], "[batch, words of the context]"),
    ("AttentionFlow", [(2, 3, 5), (2, 4, 5), (15,), (2, 3), (2, 3)], "[batch, words of the question]"),
    ("AttentionSum", [(2, 3), (2, 4), (2, 6)], "[batch, words]"),
    ("AttentionSum", [(2, 3), (2, 3), (1, 6)], "[batch, candidates]"),
]
OTHER_TYPES = {("AttentionFlow", 3): "bool", ("AttentionFlow", 4): "bool", ("AttentionSum", 1): "i64", ("AttentionSum", 2): "i64"}


@pytest.mark.parametrize("op, shapes, told", BAD)
def test_a_wrong_shape_is_told(rnncc, tmp_path, op, shapes, told):
    model = Model()
    inputs = [model.input(f"x{k}", OTHER_TYPES.get((op, k), "f32"), list(shape)) for k, shape in enumerate(shapes)]
    model.output(model.node(op, inputs))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 2 and told in done.stderr and op in done.stderr, done.stderr


def test_a_mask_that_does_not_broadcast_is_told(rnncc, tmp_path):
    model = Model()
    inputs = [model.input(f"x{k}", "f32", shape) for k, shape in enumerate([[2, 3, 5], [2, 4, 5], [2, 4, 7], [5], [2, 3, 3]])]
    model.output(*model.node("AdditiveAttention", inputs, 2))
    done = rnncc(model.write(tmp_path), "-o", tmp_path / "m.so")
    assert done.returncode == 2 and "the mask f32[2, 3, 3] does not broadcast" in done.stderr.replace("`x4` ", "")


@pytest.mark.optimised_here
def test_an_onnx_file_calls_them_by_their_domain(compile, tmp_path):
    values = [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in
              (("attention", TensorProto.FLOAT, [1, 3]), ("tokens", TensorProto.INT64, [1, 3]), ("candidates", TensorProto.INT64, [1, 2]))]
    node = helper.make_node("AttentionSum", [value.name for value in values], ["answers"], domain="ai.rnncc")
    graph = helper.make_graph([node], "reader", values, [helper.make_tensor_value_info("answers", TensorProto.FLOAT, [1, 2])])
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("ai.rnncc", 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=9), tmp_path / "reader.onnx")
    feeds = {"attention": numpy.array([[0.5, 0.25, 0.25]], "f"), "tokens": numpy.array([[7, 9, 7]]), "candidates": numpy.array([[7, 8]])}
    assert run_module(compile(tmp_path / "reader.onnx"), feeds)["answers"].tolist() == [[0.75, 0]]
