# SPDX-License-Identifier: MIT
"""What ONNX Runtime makes of a network, by its optimiser, its script for transformers and its quantiser, is compiled and
computes what ONNX Runtime does with the original."""
import numpy
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from graphs.optimised_networks import NETWORKS, feeds_of
from support import amount
from support.emitted import run_module
from support.machine import peers_saturate
from support.onnx_files import described, onnxruntime_run, write

LEVELS = {"basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}
BOUND = 2.0**-16  # relative to the largest: optimisers reorder sums, and multiply constants ahead
# One step of 8 bits, of the range of results on both sides of 0: a number halfway between two steps may be rounded to
# either. DynamicQuantizeLSTM has ranges of its own.
STEP = 2 / 255
LEFT_BEHIND = {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "FastGelu", "FusedConv", "FusedGemm", "FusedMatMul", "Gelu",
               "MatMulIntegerToFloat", "NhwcMaxPool", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearConv",
               "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu",
               "SkipLayerNormalization"}


class OneBatch(CalibrationDataReader):
    def __init__(self, feeds):
        self.batches = iter([feeds])

    def get_next(self):
        return next(self.batches, None)


def optimised(path, level, without=()):
    """The file that ONNX Runtime writes, beside the given one."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = LEVELS[level], 4
    options.optimized_model_filepath = str(path.with_suffix(f".{level}.onnx"))
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(without))
    return path.with_suffix(f".{level}.onnx")


def dynamic(path, feeds, output):
    quantize_dynamic(str(path), output, weight_type=QuantType.QInt8, reduce_range=peers_saturate())


def static(form, activations, columns=False):
    def quantise(path, feeds, output):
        quantize_static(str(path), output, OneBatch(feeds), quant_format=form, activation_type=activations, per_channel=columns,
                        weight_type=QuantType.QInt8, reduce_range=peers_saturate())
    return quantise


QUANTISERS = {"dynamic": dynamic, "operators": static(QuantFormat.QOperator, QuantType.QUInt8),
              "signed_operators": static(QuantFormat.QOperator, QuantType.QInt8, True),
              "pairs": static(QuantFormat.QDQ, QuantType.QUInt8), "signed_pairs": static(QuantFormat.QDQ, QuantType.QInt8, True)}


def assert_near(got, due, bound):
    assert got.shape == due.shape
    numpy.testing.assert_allclose(got, due, rtol=0, atol=bound * abs(due).max())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NETWORKS)
def test_an_optimised_network_computes_what_the_original_does(reference, tmp_path, name, level):
    model = NETWORKS[name]()
    feeds = feeds_of(model)
    path = optimised(write(tmp_path, model), level, without=["NchwcTransformer"])
    assert_near(reference.run(described(model), path, feeds)["y"], onnxruntime_run(model, feeds)["y"], BOUND)


QUANTISED = [(name, quantiser) for k, name in enumerate(NETWORKS) for quantiser in amount.half(list(QUANTISERS), k)]


@pytest.mark.parametrize(("name", "quantiser"), QUANTISED)
def test_a_quantised_network_computes_what_onnx_runtime_does_at_every_level(reference, tmp_path, name, quantiser):
    model = NETWORKS[name]()
    feeds = feeds_of(model)
    path = tmp_path / "quantised.onnx"
    QUANTISERS[quantiser](write(tmp_path, model), feeds, str(path))
    due = onnxruntime_run(onnx.load(path), feeds)["y"]
    for file in [path, *(optimised(path, level, without=["NchwcTransformer"]) for level in LEVELS)]:
        assert_near(reference.run(described(model), file, feeds)["y"], due, STEP)


@pytest.mark.parametrize("name", ["masked_encoder", "recurrent", "upsampled"])
def test_modules_of_optimised_networks_compute_what_the_originals_do(compile, tmp_path, name):
    model = NETWORKS[name]()
    feeds = feeds_of(model)
    path = optimised(write(tmp_path, model), "extended")
    assert_near(run_module(compile(path), feeds, threads=(1, 2))["y"], onnxruntime_run(model, feeds)["y"], BOUND)


def test_the_networks_leave_these_operators(tmp_path):
    """Else the tests above would not be of them."""
    left = set()
    for name, quantisers in (("encoder", []), ("decoder", []), ("scaled_products", ["operators"]), ("residual", ["operators"]),
                             ("upsampled", ["operators"]), ("conformer", ["operators", "dynamic"]), ("recurrent", ["dynamic"]),
                             ("depthwise", [])):
        model = NETWORKS[name]()
        paths = [write(tmp_path, model, f"{name}.onnx")]
        for quantiser in quantisers:
            paths.append(tmp_path / f"{name}_{quantiser}.onnx")
            QUANTISERS[quantiser](paths[0], feeds_of(model), str(paths[-1]))
        for path in paths:
            nodes = onnx.load(optimised(path, "all", without=["NchwcTransformer"])).graph.node
            left |= {node.op_type for node in nodes if node.domain == "com.microsoft"}
    assert left >= LEFT_BEHIND


def test_the_layout_of_one_machine_is_refused_with_the_level_that_does_not_write_it(rnncc, tmp_path):
    path = optimised(write(tmp_path, NETWORKS["residual"]()), "all")
    layouts = {node.op_type for node in onnx.load(path).graph.node if node.domain == "com.microsoft.nchwc"}
    if not layouts:
        pytest.skip("ONNX Runtime has no blocked layout for this machine")
    done = rnncc(path, "--emit=graph", "-o", tmp_path / "graph.json")
    assert done.returncode == 3
    assert done.stderr.count("com.microsoft.nchwc") == 1 and "save it at ORT_ENABLE_EXTENDED" in done.stderr, done.stderr


TRANSFORMERS = [("encoder", "bert", 4), ("masked_encoder", "bert", 2), ("decoder", "gpt2", 4),
                ("conformer", "conformer", 4), ("residual", "vae", 4), ("depthwise", "unet", 4)]


@pytest.mark.parametrize(("name", "kind", "heads"), TRANSFORMERS)
def test_what_the_script_for_transformers_writes_computes_what_the_original_does(reference, tmp_path, name, kind, heads):
    from onnxruntime.transformers import optimizer  # noqa: PLC0415: takes a second
    model = NETWORKS[name]()
    feeds, path = feeds_of(model), tmp_path / "optimised.onnx"
    given = str(write(tmp_path, model))
    optimizer.optimize_model(given, model_type=kind, num_heads=heads, hidden_size=16, opt_level=0).save_model_to_file(str(path))
    assert any(node.domain == "com.microsoft" for node in onnx.load(path).graph.node)
    assert_near(reference.run(described(model), path, feeds)["y"], onnxruntime_run(model, feeds)["y"], BOUND)


@pytest.mark.parametrize(("name", "quantiser"), [
    ("residual", "pairs"), ("residual", "signed_pairs"), ("upsampled", "signed_pairs"), ("encoder", "pairs"),
    ("conformer", "signed_pairs"), ("depthwise", "pairs"), ("scaled_products", "signed_pairs")])
def test_modules_of_pairs_compute_what_the_pairs_say(compile, reference, tmp_path, name, quantiser):
    """The module multiplies numbers; the reference what they stand for, in floats."""
    model = NETWORKS[name]()
    feeds = feeds_of(model)
    path = tmp_path / "quantised.onnx"
    QUANTISERS[quantiser](write(tmp_path, model), feeds, str(path))
    due = reference.run(described(model), path, feeds)["y"]
    assert_near(run_module(compile(path), feeds, threads=(1, 2))["y"], due, STEP)


@pytest.mark.parametrize("quantiser", ["operators", "signed_operators", "pairs", "signed_pairs"])
@pytest.mark.parametrize("name", ["residual", "depthwise", "upsampled"])
def test_all_products_of_quantised_images_are_of_bytes(rnncc, tmp_path, name, quantiser):
    model, path = NETWORKS[name](), tmp_path / "quantised.onnx"
    QUANTISERS[quantiser](write(tmp_path, model), feeds_of(model), str(path))
    done = rnncc("inspect", path, "--explain=int8", "--target=x86-64-v3")
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("100.0% of "), done.stdout
