# SPDX-License-Identifier: MIT
"""The generated networks are those of the papers: they have the same parameters, multiply-adds and classes. And
models/generate works."""
import math
import os
import subprocess
import sys

import numpy
import onnx
import onnxruntime
import pytest
from conftest import ROOT
from support.module import Module

sys.path.insert(0, str(ROOT / "models"))

from networks import NETWORKS, READERS  # noqa: E402

# Parameters as PyTorch's torchvision counts them, without the statistics of batch normalisation; the multiply-adds of
# convolutions and dense layers in units of 10^9, with the digits on which the papers and surveys agree. ResNet's are those
# of the paper's version, whose bottlenecks shrink the image before their 3x3 convolution. SSD's are ResNet-50's without
# its classifier, at 512x512, and by hand the other layers: 8 convolutions, and 12 of 3x3 for 6132 prior boxes.
PUBLISHED = {
    "resnet18": (11689512, 1.81), "resnet34": (21797672, 3.66), "resnet50": (25557032, 3.86),
    "resnet101": (44549160, 7.57), "resnet152": (60192808, 11.28),
    "vgg11": (132863336, 7.61), "vgg13": (133047848, 11.31), "vgg16": (138357544, 15.47), "vgg19": (143667240, 19.63),
    "densenet121": (7978856, 2.83), "densenet161": (28681000, 7.73), "densenet169": (14149480, 3.36),
    "densenet201": (20013928, 4.29), "inception_v3": (23834568, 5.71), "mobilenet_v2": (3504872, 0.30),
    "squeezenet": (1235496, 0.35), "ssd_resnet50": (36450094, 22.33),
}
LEARNED = (".weight", ".bias", ".scale", ".shift")
SMALL = {"resnet50": 48, "vgg11": 32, "densenet121": 48, "inception_v3": 107, "mobilenet_v2": 48, "squeezenet": 64,
         "ssd_resnet50": 512}  # with a smaller image the last maps are mostly padding
RESULT = {**dict.fromkeys(NETWORKS, [1000]), "ssd_resnet50": [100, 6]}  # of an image


def graph_of(net):
    """Its ONNX graph with all shapes; without the weights' values, because only their shapes matter."""
    shapes = {name: array.shape for name, array in net.arrays.items() if array.size > 100}
    net.arrays |= dict.fromkeys(shapes, numpy.zeros(0, numpy.float32))
    model = net.onnx()
    for weights in model.graph.initializer:
        weights.dims[:] = shapes.get(weights.name, weights.dims)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True).graph


def shapes_of(graph):
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
              for value in [*graph.value_info, *graph.output, *graph.input]}
    return shapes | {weights.name: list(weights.dims) for weights in graph.initializer}


def multiply_adds(graph):
    shapes = shapes_of(graph)
    return sum(math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])
               for node in graph.node if node.op_type in ("Conv", "Gemm"))


class Zeros:
    """In place of the random weights, of which there are 560 million: only their shapes matter."""

    def standard_normal(self, shape, dtype):
        return numpy.lib.stride_tricks.as_strided(numpy.zeros(1, dtype), shape, [0] * len(shape))

    def uniform(self, low, high, shape):
        return numpy.zeros(shape)


def test_every_network_has_published_figures():
    assert PUBLISHED.keys() == NETWORKS.keys()


@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_and_multiply_adds_are_the_published_ones(name, monkeypatch):
    monkeypatch.setattr(numpy.random, "default_rng", lambda seed: Zeros())
    net = NETWORKS[name]()
    parameters, published = PUBLISHED[name]
    assert sum(array.size for part, array in net.arrays.items() if part.endswith(LEARNED)) == parameters
    graph = graph_of(net)
    assert multiply_adds(graph) * 1e-9 == pytest.approx(published, abs=0.006)
    assert shapes_of(graph)[graph.output[0].name] == [1, *RESULT[name]]


@pytest.mark.parametrize("name", SMALL)
def test_a_small_form_runs_on_any_number_of_images_and_its_values_are_of_order_one(name):
    net = NETWORKS[name](size=SMALL[name], width=0.3, batch=3)
    net.output(*(node["outputs"][0] for node in net.nodes if node["op"] in ("Conv", "Relu", "Add", "Gemm")))
    image = numpy.random.default_rng(1).standard_normal((3, 3, SMALL[name], SMALL[name]), numpy.float32)
    values = net.onnx_run({"image": image})
    assert values[net.outputs[0]].shape == (3, *RESULT[name])
    deviations = [float(numpy.sqrt((value ** 2).mean())) for value in list(values.values())[1:]]
    assert 0.1 < min(deviations) and max(deviations) < 8


# Of DeepCPU's table 2: (inputs, units) of the recurrent layers, in the order of the graph.
CELLS = {"text_similarity": [(200, 512), (200, 512)], "attention_sum_reader": [(200, 256), (200, 256)],
         "bidaf": [(50, 100), (50, 100), (800, 100), (200, 100), (1400, 100)]}


@pytest.mark.parametrize("name", READERS)
def test_layers_of_networks_that_read_are_those_of_the_paper(name):
    net = READERS[name]()
    shapes = [net.arrays[node["inputs"][1]].shape for node in net.nodes if node["op"] in ("GRU", "LSTM")]
    gates = 4 if name == "bidaf" else 3
    assert shapes == [(2, gates * units, inputs) for inputs, units in CELLS[name]]


@pytest.mark.parametrize("make", [lambda: NETWORKS["squeezenet"](size=64), READERS["bidaf"]])
def test_a_seed_gives_the_same_weights_again(make):
    first, second = make(), make()
    assert all(numpy.array_equal(array, second.arrays[name]) for name, array in first.arrays.items())


# models/generate


def generate(*words):
    """Runs it with this Python, not with the venv that models/generate would make."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ("models", "tests"))}
    return subprocess.run([sys.executable, "-m", "networks.generate", *map(str, words)], capture_output=True, text=True,
                          timeout=120, env=environment)


def test_both_forms_are_written_and_compute_the_same(tmp_path, compile):
    done = generate("mobilenet_v2", "-o", tmp_path / "new", "--size", 32, "--width", 0.25, "--batch", 2)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["mobilenet_v2.json", "mobilenet_v2.onnx", "mobilenet_v2.safetensors"]
    session = onnxruntime.InferenceSession(tmp_path / "new" / "mobilenet_v2.onnx", providers=["CPUExecutionProvider"])
    feeds = {"image": numpy.random.default_rng(3).standard_normal((2, 3, 32, 32), numpy.float32)}
    with Module(compile(tmp_path / "new" / "mobilenet_v2.json")) as module, module.context() as context:
        got, expected = context.run(feeds)["probabilities"], session.run(None, feeds)[0]
    assert numpy.abs(got - expected).max() < 1e-4 * expected.max()


@pytest.mark.parametrize("words, complaint", [(["resnet51", "-o", "x"], "resnet51"), (["resnet50"], "-o FOLDER"),
                                              (["-o", "x"], "NAME"), (["vgg16", "-o", "x", "--batch", "0"], "0"),
                                              (["bidaf", "-o", "x", "--batch", "2"], "bidaf has no --batch"),
                                              (["text_similarity", "-o", "x", "--size", "9"], "no --size")])
def test_a_bad_argument_is_named_and_nothing_is_written(words, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = generate(*words)
    assert done.returncode == 2 and complaint in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
