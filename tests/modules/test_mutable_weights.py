# SPDX-License-Identifier: MIT
"""--weights=mutable: a model whose weights were set computes, bit for bit, what a module compiled with them does, in every
family of kernels; what constant weights give within rounding. What is refused, and other outputs than modules."""
import copy
import ctypes
import os
import re
import subprocess

import numpy
import pytest

from conftest import ROOT, WITHOUT_PASSES
from support import machine
from support.amount import long_tests, some
from support.convolutional import RandomNetwork, random_convolution
from support.model_builder import Model
from support.module import rnncc as package
from rnncc import abi
from support.recurrent import model_of, random_configuration
from support.stacks import feeds_of, random_stack
from support.stacks import model_of as stack_model
from support.watched import made

MUTABLE = "--weights=mutable"
EXIT_INVALID, EXIT_UNSUPPORTED = 2, 3


def values(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(numpy.float32)


def changed(model, names):
    """The same network with other weights, which are named."""
    other, rng = copy.copy(model), numpy.random.default_rng(1)
    other.arrays = {name: rng.permutation(array.ravel()).reshape(array.shape) * array.dtype.type(0.5)
                    if array.dtype.kind == "f" and array.ndim and name in names else array
                    for name, array in model.arrays.items()}
    return other


def written(model, folder):
    folder.mkdir()
    return model.write(folder)


def check(compile, tmp_path, model, feeds, bound, *options):
    """bound: of the difference to constant weights, in parts of the largest result."""
    first = written(model, tmp_path / "first")
    with package.load(compile(first, MUTABLE, *options), threads=2, share_all=True) as ours:
        assert len(ours.weights) > 0
        other = changed(model, ours.weights)  # thresholds of NonMaxSuppression are none
        second = written(other, tmp_path / "second")
        ours.weights.update({name: other.arrays[name] for name in ours.weights})
        for name in ours.weights:
            assert numpy.array_equal(ours.weights[name], other.arrays[name]), name
        got = ours.run(feeds)
    with package.load(compile(second, MUTABLE, *options), threads=1) as compiled, \
            package.load(compile(second, *options), threads=1) as constant:
        due, near = compiled.run(feeds), constant.run(feeds)
    for name, array in got.items():
        assert numpy.array_equal(array, due[name], equal_nan=True), name
        assert numpy.abs(array - near[name]).max() <= bound * max(1, numpy.abs(near[name]).max()), name


# ---- families ----

@pytest.mark.parametrize("seed", some(range(60), 6))
def test_recurrent_layers(compile, tmp_path, seed):
    """Each cell, with and without what it may have."""
    configuration = random_configuration(seed * 7)
    feeds = configuration.named(configuration.to_layout(configuration.random_feeds(5, 3, 0)))
    check(compile, tmp_path, model_of([configuration]), feeds, 1e-5)


@pytest.mark.parametrize("seed", some(range(20), 1))
def test_stacks_of_recurrent_layers(compile, tmp_path, seed):
    stack = random_stack(seed)
    check(compile, tmp_path, stack_model([stack]), feeds_of([stack], 5, 3), 1e-5)


@pytest.mark.parametrize("seed", some(range(60), 5))
def test_convolutions(compile, tmp_path, seed):
    """Direct, depthwise and plain; of integers, so that sums are exact in any order. test_mutable_winograd.py has Winograd's
    algorithm."""
    model, feeds = random_convolution(numpy.random.default_rng(seed))
    check(compile, tmp_path, model, feeds, 1e-6)


@pytest.mark.parametrize("seed", some(range(30), 2))
def test_random_networks(compile, tmp_path, seed):
    network = RandomNetwork(numpy.random.default_rng(seed))
    model = network.grow(6).finish()
    check(compile, tmp_path, model, network.feeds(2), 1e-5)


def normalised(rng, before, group=1):
    """Batch normalisations behind convolutions, and before one, where the padding keeps it from moving."""
    model, feeds = Model(), {"x": values(rng, 1, 16, 9, 9)}
    x = model.input("x", "f32", [1, 16, 9, 9])

    def norm(x, channels):
        parameters = [values(rng, channels), values(rng, channels), values(rng, channels), rng.uniform(0.5, 2, channels)]
        return model.node("BatchNormalization", [x, *(model.constant(p.astype(numpy.float32)) for p in parameters)])

    if before:
        x = model.node("Relu", [norm(x, 16)])
    x = norm(model.node("Conv", [x, model.constant(values(rng, 32, 16 // group, 3, 3) / 8)], pads=[1] * 4, group=group), 32)
    x = norm(model.node("ConvTranspose", [model.node("Relu", [x]), model.constant(values(rng, 32, 20, 2, 2) / 8),
                                          model.constant(values(rng, 20))], strides=[2, 2]), 20)
    model.output(x)
    return model, feeds


@pytest.mark.parametrize("before, group", [(False, 1), (True, 1), (False, 2)])
def test_batch_normalisations_are_folded_again(compile, tmp_path, before, group):
    model, feeds = normalised(numpy.random.default_rng(5), before, group)
    check(compile, tmp_path, model, feeds, 1e-5)


def mixed(rng):
    """An embedding, products, a scale of one element, and a gate order of PyTorch's."""
    model = Model()
    feeds = {"i": numpy.array([[3, 0, 7]], numpy.int64)}
    x = model.node("Gather", [model.constant(values(rng, 9, 12)), model.input("i", "i64", [1, 3])])
    x = model.node("LSTM", [x, *(model.constant(values(rng, *shape) / 4) for shape in ((1, 40, 12), (1, 40, 10), (1, 80)))],
                   hidden_size=10, layout=1)
    model.nodes[-1]["gate_order"] = "ifgo"
    x = model.node("Reshape", [x, model.constant(numpy.array([3, 10]))])
    x = model.node("Gemm", [x, model.constant(values(rng, 17, 10)), model.constant(values(rng, 17))], transB=1)
    x = model.node("Mul", [x, model.constant(values(rng, 1))])
    x = model.node("MatMul", [x, model.constant(values(rng, 17, 1))])
    model.output(model.node("Add", [x, model.constant(values(rng, 1))]))
    return model, feeds


@pytest.mark.parametrize("options", [[], ["--target=x86-64-v3"], ["--precision=bf16"]], ids=["", "avx2", "bf16"])
def test_embeddings_products_and_orders_of_gates(compile, tmp_path, options):
    model, feeds = mixed(numpy.random.default_rng(6))
    check(compile, tmp_path, model, feeds, 2e-2 if "bf16" in str(options) else 1e-5, *options)


# ---- one weight among others ----

def test_only_what_is_set_changes(compile, tmp_path):
    """Each weight alone, against a module compiled with that one changed."""
    model, feeds = mixed(numpy.random.default_rng(7))
    with package.load(compile(written(model, tmp_path / "first"), MUTABLE), threads=1) as ours:
        for name in ("constant1", "constant3", "constant8"):
            other = copy.copy(model)
            other.arrays = {**model.arrays, name: model.arrays[name] * numpy.float32(0.75)}
            ours.weights[name] = other.arrays[name]
            with package.load(compile(written(other, tmp_path / name), MUTABLE), threads=1) as compiled:
                assert numpy.array_equal(*(next(iter(it.run(feeds).values())) for it in (ours, compiled))), name
            ours.weights[name] = model.arrays[name]


def test_models_of_one_module_have_weights_of_their_own(compile):
    path = compile(ROOT / "models" / "digits_rnn.json", MUTABLE)
    with package.load(path, threads=1) as one, package.load(path, threads=1) as other:
        before = other.weights["output.bias"]
        one.weights["output.bias"] = before + 1
        assert numpy.array_equal(other.weights["output.bias"], before)


def test_a_weight_recomputes_what_depends_on_it(rnncc, tmp_path):
    """Two convolutions with batch normalisations that become part of them: the derivation has a part for each. Its C counts
    how often they run."""
    done = rnncc(ROOT / "models" / "digits_cnn.json", MUTABLE, "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    unit = tmp_path / "c" / "network_derivation.c"
    text, found = re.subn(r"(static void part_(\d)\(const Run \*run, Team \*team\) \{)", r"\1 part_runs[\2] += team->rank == 0;",
                          unit.read_text())
    assert found == 2
    unit.write_text('__attribute__((visibility("default"))) int part_runs[2];\n' + text)
    made(tmp_path / "c", "clang-19")
    with package.load(tmp_path / "c" / "module.so", threads=2) as ours, \
         package.load(tmp_path / "c" / "module.so", threads=2) as other:
        runs = (ctypes.c_int * 2).in_dll(ctypes.CDLL(str(tmp_path / "c" / "module.so")), "part_runs")
        first = list(runs)
        steps = [(next(name for name in ours.weights if name.startswith(layer)), part)
                 for layer, part in (("conv1", 0), ("conv2", 1), ("output", None))]
        new = {name: ours.weights[name] * 1.5 for name, _ in steps}
        for name, part in steps:
            before = list(runs)
            ours.weights[name] = new[name]
            assert [now - then for now, then in zip(runs, before)] == [int(k == part) for k in range(2)], name
        other.weights.update(new)
        x = numpy.random.default_rng(3).random((2, 8, 8), numpy.float32)
        assert first == [2, 2] and numpy.array_equal(ours(x), other(x))


# ---- bad input ----

@pytest.fixture
def digits(compile):
    with package.load(compile(ROOT / "models" / "digits_rnn.json", MUTABLE), threads=1) as loaded:
        yield loaded


@pytest.mark.parametrize("name, array, error, words", [
    ("gru.w", numpy.zeros(3, numpy.float32), package.ArgumentError,
     "no weight gru.w; expected one of: gru.W, gru.R, gru.B, output.weight, output.bias"),
    ("output.bias", numpy.zeros(9, numpy.float32), package.ShapeError,
     "weight output.bias: expected the shape [10], found [9]"),
    ("output.bias", numpy.zeros(10), package.DTypeError, "weight output.bias: expected f32, found float64"),
])
def test_wrong_arrays_are_refused(digits, name, array, error, words):
    before = digits.weights["output.weight"]
    with pytest.raises(error) as raised:
        digits.weights.update({"output.weight": before + 1, name: array})
    assert str(raised.value) == words
    assert numpy.array_equal(digits.weights["output.weight"], before)


def test_get_has_a_default(digits):
    assert digits.weights.get("gru.w") is None and digits.weights.get("gru.w", 3) == 3
    assert digits.weights.get("output.bias").shape == (10,)


def test_what_weights_get_refuses(digits):
    model, room = digits._open(), numpy.zeros(44, numpy.uint8)
    address = room.ctypes.data + -room.ctypes.data % 4
    why = ctypes.create_string_buffer(512)
    get = lambda name, at, size, why=why: model.api.weights_get(model.handle, name, at, size, why, 512)
    assert get(b"output.bias", address, 40) == 0
    assert get(b"output.bias", address + 1, 40) == 1
    assert why.value == b"weight `output.bias`: its data is not aligned to its element"
    assert get(b"output.bias", address, 36) == 5
    assert get(b"x", address, 40, None) == 1


def refusal(loaded, *weights, model=True, room=512, why=True):
    """What weights_set() itself says: (status, words)."""
    api, given = loaded._open().api, (abi.Weight * max(1, len(weights)))()
    for one, (name, dtype, array, size) in zip(given, weights):
        one.struct_size, one.dtype, one.name = ctypes.sizeof(abi.Weight), dtype, name
        one.data, one.bytes = array.ctypes.data if array is not None else None, size
    words = ctypes.create_string_buffer(room)
    status = api.weights_set(loaded._open().handle if model else None, given, len(weights), words if why else None, room)
    return status, words.value.decode()


def test_the_module_refuses_in_words(digits, compile):
    ten = numpy.zeros(10, numpy.float32)
    status = {"argument": 1, "dtype": 4, "size": 5, "unsupported": 8}
    good = (b"output.bias", 1, ten, 40)
    assert refusal(digits) == (0, "")
    assert refusal(digits, good) == (0, "")
    assert refusal(digits, (b"x", 1, ten, 40)) == (
        status["argument"], "no weight `x`; expected one of: gru.W, gru.R, gru.B, output.weight, output.bias")
    assert refusal(digits, (b"x", 1, ten, 40), room=30)[1] == "no weight `x`; expected one o"
    assert refusal(digits, (b"x", 1, ten, 40), why=False) == (status["argument"], "")
    assert refusal(digits, (None, 1, ten, 40)) == (status["argument"], "weights_set: a name is NULL")
    assert refusal(digits, (b"output.bias", 1, None, 40)) == (status["argument"], "weight `output.bias`: its data is NULL")
    assert refusal(digits, (b"output.bias", 1, ten, 36)) == (
        status["size"], "weight `output.bias`: expected 40 bytes, found 36")
    assert refusal(digits, (b"output.bias", 3, ten, 40)) == (
        status["dtype"], "weight `output.bias`: expected element type 1 of rnncc_dtype, found 3")
    assert refusal(digits, good, good) == (status["argument"], "weight `output.bias` is there twice")
    assert refusal(digits, good, model=False) == (status["argument"], "weights_set: the model is NULL")
    with package.load(compile(ROOT / "models" / "digits_rnn.json"), threads=1) as constant:
        assert refusal(constant, good) == (
            status["unsupported"], "weights_set: the module's weights are constant; compile it with --weights=mutable")
        assert not constant.weights and not constant.info.weights
        with pytest.raises(package.UnsupportedError, match="--weights=mutable"):
            constant.weights["output.bias"] = ten


def test_what_cannot_change_is_named(rnncc, tmp_path):
    """Single numbers stay constant, and inspect says so; what packs by arithmetic is refused with its node."""
    rng = numpy.random.default_rng(8)
    model, _ = mixed(rng)
    model.output(model.node("Mul", [model.input("s", "f32", [2]), model.constant(numpy.float32(3), "three")]))
    done = rnncc("inspect", model.write(tmp_path), MUTABLE)
    assert done.returncode == 0 and "three                    it is a single number" in done.stdout, done.stdout
    assert "mutable  constant0                f32[9, 12]" in done.stdout
    model, _ = mixed(rng)
    model.state("h", model.constant(values(rng, 2), "next"), "f32", [2])
    nothing = model.node("Concat", ["h", model.constant(values(rng, 0), "none")], axis=0)
    model.output(model.node("Add", [nothing, model.constant(values(rng, 2), "shown")]), "shown")
    done = rnncc("inspect", model.write(tmp_path), MUTABLE)
    for name, why in {"next": "a state's new value", "none": "empty", "shown": "an output"}.items():
        assert f"{name:24s} it is {why}" in done.stdout, done.stdout + done.stderr
    model, _ = mixed(rng)
    for precision in ("int8", "int8-dynamic"):
        done = rnncc("inspect", model.write(tmp_path), MUTABLE, f"--precision={precision}")
        assert done.returncode == EXIT_UNSUPPORTED and MUTABLE in done.stderr, done.stderr
    model = Model("numbers")
    model.output(model.node("Add", [model.input("x", "f32", [2]), model.constant(numpy.float32(3), "three")]))
    done = rnncc(model.write(tmp_path), MUTABLE, "-o", tmp_path / "m.so")
    assert done.returncode == EXIT_UNSUPPORTED and "the model has no weight that can change" in done.stderr


def test_a_device_has_no_memory_for_them(rnncc, tmp_path):
    done = rnncc(ROOT / "models" / "digits_rnn.json", MUTABLE, "--static", "--profile=edge", "-o", tmp_path / "l.a")
    assert done.returncode == EXIT_INVALID and "--profile=edge" in done.stderr


def one_window(rng):
    """Windows that are the whole input, one with a batch normalisation in it: --precision makes them products."""
    model, feeds = Model(), {"x": values(rng, 2, 12, 3, 3)}
    x = model.node("Conv", [model.input("x", "f32", [2, 12, 3, 3]), model.constant(values(rng, 20, 12, 3, 3) / 4)])
    parameters = [values(rng, 20), values(rng, 20), values(rng, 20), rng.uniform(0.5, 2, 20).astype(numpy.float32)]
    x = model.node("Relu", [model.node("BatchNormalization", [x, *(model.constant(p) for p in parameters)])])
    model.output(model.node("Conv", [x, model.constant(values(rng, 7, 20, 1, 1)), model.constant(values(rng, 7))]))
    return model, feeds


def test_convolutions_that_become_products(rnncc, compile, tmp_path):
    model, feeds = one_window(numpy.random.default_rng(9))
    check(compile, tmp_path, model, feeds, 2e-2, "--precision=bf16")
    done = rnncc("inspect", tmp_path / "first" / "model.json", MUTABLE, "--precision=bf16")
    assert " Gemm " in done.stdout and " Conv " not in done.stdout, done.stdout
    done = rnncc("inspect", tmp_path / "first" / "model.json", MUTABLE, "--precision=int8")
    assert done.returncode == EXIT_UNSUPPORTED and "a weight with scales, of i8, is not packed again" in done.stderr, done.stderr


# ---- other outputs ----

def test_several_targets_and_networks(rnncc, tmp_path):
    """Each network of each target has its own derivation; weights are there once."""
    machine.need_target("--target=x86-64-v3")
    models = [ROOT / "models" / f"{name}.json" for name in ("digits_cnn", "digits_rnn")]
    environment = {**os.environ, "RNNCC_CLANG_WITHOUT_PASSES": WITHOUT_PASSES}
    done = rnncc("bundle", *models, MUTABLE, "--target=x86-64-v3,x86-64", "-o", tmp_path / "b.so", env=environment)
    assert done.returncode == 0, done.stderr
    x = numpy.ones((1, 8, 8), numpy.float32)
    with package.load(tmp_path / "b.so", "digits_cnn", threads=1, check_weights=True) as ours:
        before = ours(x)
        ours.weights["norm2.bias"] = ours.weights["norm2.bias"] + 1
        assert not numpy.array_equal(ours(x), before)
        assert ours.network("digits_rnn").weights.shape("gru.W") == (1, 192, 8)


def test_networks_may_have_any_names(rnncc, tmp_path):
    """Also such as the compiler might have for its own units."""
    models = [f"{name}={ROOT}/models/digits_cnn.json" for name in ("a", "a_derivation", "derivation")]
    done = rnncc("bundle", *models, MUTABLE, "-o", tmp_path / "b.so", env={**os.environ, "RNNCC_CLANG_WITHOUT_PASSES": WITHOUT_PASSES})
    assert done.returncode == 0, done.stderr
    x = numpy.ones((1, 8, 8), numpy.float32)
    with package.load(tmp_path / "b.so", "a_derivation", threads=1) as ours:
        before = ours(x)
        ours.weights["norm2.bias"] = ours.weights["norm2.bias"] + 1
        assert not numpy.array_equal(ours(x), before) and numpy.array_equal(ours.network("a")(x), before)


def test_other_modules_have_nothing_of_it(compile):
    words = b"no weight `%.200s`"
    assert [words in open(compile(ROOT / "models" / "digits_rnn.json", *options), "rb").read() for options in ([], [MUTABLE])] == [
        False, True]


def test_a_static_library_has_them(rnncc, tmp_path):
    done = rnncc(ROOT / "models" / "digits_cnn.json", MUTABLE, "--static", "--name=d", "-o", tmp_path / "libd.a")
    assert done.returncode == 0, done.stderr
    program = tmp_path / "p.c"
    program.write_text("""#include <stdio.h>
#include "rnncc.h"
const rnncc_api *d_module_query(uint32_t abi, const char **why);
int main(void) {
  const rnncc_api *api = d_module_query(RNNCC_ABI, NULL);
  rnncc_model *model;
  float bias[10];
  if (api->model_create(NULL, &model, NULL)) return 1;
  printf("%s %d\\n", rnncc_weight_at(api->info, 0)->name, api->weights_get(model, "output.bias", bias, sizeof bias, NULL, 0));
  api->model_destroy(model);
}
""")
    subprocess.run(["clang-19", f"-I{ROOT}/runtime", program, tmp_path / "libd.a", "-pthread", "-o", tmp_path / "p"], check=True)
    done = subprocess.run([tmp_path / "p"], capture_output=True, text=True, check=True)
    assert done.stdout == "conv1.weight 0\n"


if long_tests():
    from support.some_networks import NETWORKS, SOME_NETWORKS

    @pytest.mark.parametrize("name", SOME_NETWORKS)
    def test_networks(compile, tmp_path, name):
        size = 107 if name == "inception_v3" else 64
        model = NETWORKS[name](size=size, width=0.25)
        rng = numpy.random.default_rng(0)
        feeds = {it["name"]: rng.standard_normal(it["shape"]).astype(numpy.float32) for it in model.inputs}
        check(compile, tmp_path, model, feeds, 2e-3)
