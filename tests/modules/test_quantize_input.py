# SPDX-License-Identifier: MIT
"""What `rnncc quantize` says of samples that do not fit, of networks with nothing to quantise, and of ranges at their ends;
where it fails, nothing is written."""
import itertools
import os

import numpy as np
import pytest
from support.amount import long_tests
from support.model_builder import Model
from support.preloaded import preloaded
from support.quantised import Written, error, quantise, rows, save

rng = np.random.default_rng(9)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def dense(weights=None, name="dense", bias=None):
    model = Model(name)
    model.dim("B", 1, 4, 8)
    x = model.input("x", "f32", ["B", 6])
    weights = normal(6, 5) if weights is None else weights
    inputs = [x, model.constant(weights)] + ([] if bias is None else [model.constant(bias)])
    model.output(model.node("Gemm", inputs, outputs=["y"]))
    return model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return dense().write(tmp_path_factory.mktemp("model"))


def refused(rnncc, model, tmp_path, code, words, *options, output="out.json"):
    folder = tmp_path / "written"
    folder.mkdir()
    done = rnncc("quantize", model, "-o", folder / output, *options)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr and "internal error" not in done.stderr, done.stderr
    assert not list(folder.iterdir())
    return done


def good(count=4):
    return normal(count, 6)


@pytest.mark.parametrize("array, words", [
    (normal(4, 7), "its shape is [4, 7], but the input is `x` f32[B, 6]"),
    (normal(4, 6, 1), "its shape is [4, 6, 1], but the input is `x` f32[B, 6]"),
    (normal(0, 6), "its shape is [0, 6], but the input is `x` f32[B, 6]"),
    (np.float32(1), "its shape is [], but the input is `x` f32[B, 6]"),
    (good().astype(np.float64), "it is of f64, but input x is of f32"),
    (good().astype(np.int8), "it is of i8, but input x is of f32"),
    (good().astype(">f4"), "its dtype is '>f4'"),
    (good().astype(np.complex64), "its dtype is '<c8'"),
    (np.asfortranarray(good()), "Fortran order is not supported"),
    (np.zeros(3, [("a", "<f4")]), "structured arrays are not supported"),
    (np.where(np.arange(24).reshape(4, 6) == 13, np.nan, 1).astype(np.float32), "element 13 is NaN; expected numbers"),
    (np.where(np.arange(24).reshape(4, 6) == 2, -np.inf, 1).astype(np.float32), "element 2 is infinite; expected numbers"),
], ids=lambda value: value[:30] if isinstance(value, str) else "")
def test_samples_that_do_not_fit_are_named(rnncc, model, tmp_path, array, words):
    np.save(tmp_path / "a0.npy", good())
    np.save(tmp_path / "a1.npy", array)
    done = refused(rnncc, model, tmp_path, 2, words, f"--data={tmp_path}/a*.npy")
    assert f"{tmp_path}/a1.npy: " in done.stderr


@pytest.mark.parametrize("count, extent", [(0, 4), (3, 4), (6, 4), (7, 0)])
def test_a_file_of_a_constant_extent_has_whole_samples(rnncc, tmp_path, count, extent):
    model = Model("whole")
    model.output(model.node("MatMul", [model.input("x", "f32", [extent, 6]), model.constant(normal(6, 5))]))
    np.save(tmp_path / "a.npy", good(count))
    refused(rnncc, model.write(tmp_path), tmp_path, 2, f"its shape is [{count}, 6], but the input is `x` f32[{extent}, 6]",
            f"--data={tmp_path}/a.npy")


@pytest.mark.parametrize("bounds, count, words", [
    ((3, 4, 8), 9, "a piece of input x has B = 1; expected 3 or more"),
    ((2, 4, 8, 2), 11, "input x has B = 3, which is no multiple of 2")])
def test_the_last_piece_of_a_file_must_fit(rnncc, tmp_path, bounds, count, words):
    model = Model("pieces")
    model.dim("B", *bounds)
    model.output(model.node("MatMul", [model.input("x", "f32", ["B", 6]), model.constant(normal(6, 5))]))
    np.save(tmp_path / "a.npy", good(count))
    done = refused(rnncc, model.write(tmp_path), tmp_path, 2, words, f"--data={tmp_path}/a.npy")
    assert f"{tmp_path}/a.npy: " in done.stderr


@pytest.mark.parametrize("options, words", [
    (["--data={0}/none*.npy"], "{0}/none*.npy: error: no file matches"),
    (["--data=z={0}/a.npy"], "--data z: the model has no such input"),
    (["--data={0}/a.npy", "--data=x={0}/a.npy"], "--data of input x is given twice"),
    (["--data={0}"], "is a folder; a regular file is needed"),
    (["--data="], "--data"),
    (["--max-error=0.1"], "--max-error needs samples: expected --data, found none"),
    (["--plot={0}/p.svg"], "--plot needs samples: expected --data, found none"),
    (["--data={0}/a.npy", "--max-error=-1"], "--max-error: expected a number that is not negative"),
    (["--data={0}/a.npy", "--ranges=widest"], "--ranges: expected mse, minmax, percentile"),
    (["--data={0}/a.npy", "--ranges=percentile:101"], "--ranges: expected mse, minmax, percentile"),
    (["--data={0}/a.npy", "--ranges=percentile:nan"], "--ranges: expected mse, minmax, percentile"),
    (["--data={0}/a.npy", "--ranges=mse:3"], "--ranges: expected mse, minmax, percentile"),
    (["--data={0}/a.npy", "--recurrent=fast"], "--recurrent: expected weights, dynamic or static"),
    (["--data={0}/a.npy", "--seven-bits"], "--seven-bits is for products of integers: expected --recurrent=dynamic or static"),
    (["--feedback"], "--feedback needs samples: expected --data, found none"),
    (["--data={0}/a.npy", "--group=12"], "--group: expected a power of two from 8 to 1024"),
    (["--recurrent=static"], "--recurrent=static needs samples: expected --data, found none"),
    (["--data={0}/a.npy", "--target=x86-64,x86-64-v2"], "quantize: expected one target, found 2"),
    (["--data={0}/a.npy", "--target=riscv64-linux-gnu"],
     "--data: the network runs on this machine, which cannot run riscv64-linux-gnu; expected a --target that it can run"),
])
def test_wrong_options_are_named(rnncc, model, tmp_path, options, words):
    np.save(tmp_path / "a.npy", good())
    refused(rnncc, model, tmp_path, 2, words.format(tmp_path), *(option.format(tmp_path) for option in options))


@pytest.mark.parametrize("start, words", [
    (b"\x93NUMPY\x03\x00", ".npy version 3 is not supported; 1 and 2 are"),
    (b"\x93NUMPY\x02\x00" + (1 << 30).to_bytes(4, "little"), "its header is of 1073741824 bytes; expected at most "),
    (b"\x93NUMPZ\x01\x00", "not a .npy file"),
], ids=["version", "length", "name"])
def test_files_of_another_form_are_named(rnncc, model, tmp_path, start, words):
    (tmp_path / "a.npy").write_bytes(start.ljust(200, b" "))
    refused(rnncc, model, tmp_path, 2, words, f"--data={tmp_path}/a.npy")


def test_a_model_without_inputs_takes_no_samples(rnncc, tmp_path):
    model = Model("none")
    model.state("h", "hN", "f32", [4, 4])
    model.output(model.node("MatMul", ["h", model.constant(normal(4, 4))], ["hN"]))
    np.save(tmp_path / "a.npy", normal(4, 4))
    for name in ("", "h="):
        done = rnncc("quantize", model.write(tmp_path), f"--data={name}{tmp_path}/a.npy", "-o", tmp_path / "out.json")
        assert done.returncode == 2 and "the model has no input to give samples of" in done.stderr and not (tmp_path / "out.json").exists()


@pytest.mark.unsanitized
def test_a_module_that_gets_no_memory_or_cannot_be_loaded_ends_it(rnncc, model, tmp_path):
    """The networks that compare precisions are modules, and loaded."""
    np.save(tmp_path / "a.npy", good())
    library, failed, names = preloaded("fail_module", tmp_path), tmp_path / "failed", set()
    for number in itertools.count(1) if long_tests() else (1, 2, 7, 8, 100):
        failed.write_text("")
        faults = {"LD_PRELOAD": library, "FAIL_CALL": str(number), "FAILED_CALL": str(failed)}
        done = rnncc("quantize", model, f"--data={tmp_path}/a.npy", "-o", tmp_path / "out.json", env={**os.environ, **faults})
        if not failed.read_text():
            break
        name, call = failed.read_text().split()[0], f"call {number}: exit {done.returncode}, {failed.read_text()}: {done.stderr}"
        assert done.returncode == (5 if name == "dlopen" else 4) and "error: " in done.stderr and "internal" not in done.stderr, call
        assert not (tmp_path / "out.json").exists()
        names.add(name)
    assert done.returncode == 0 and names == {"dlopen", "calloc", "aligned_alloc"}, done.stderr


def two_inputs():
    model = Model("two")
    model.dim("T", 1, 4, 8)
    a, b = model.input("a", "f32", ["T", 6]), model.input("b", "f32", ["T", 6])
    model.output(model.node("MatMul", [model.node("Sub", [a, b]), model.constant(normal(6, 4))]))
    return model


@pytest.mark.parametrize("options, words", [
    (["--data=a={0}/a*.npy"], "--data of input b is missing: --data b="),
    (["--data={0}/a*.npy"], "the model has 2 inputs: expected --data NAME={0}/a*.npy for each, found no name"),
    (["--data=a={0}/a*.npy", "--data=b={0}/a0.npy"], "found 2 of a and 1 of b"),
    (["--data=a={0}/a*.npy", "--data=b={0}/b*.npy"], "input b has T = 4, but another input has 3"),
    (["--data=a={0}/long.npy", "--data=b={0}/longer.npy"], "it has 5 pieces of input b, but {0}/long.npy has 3 of input a"),
])
def test_files_of_several_inputs_must_belong_together(rnncc, tmp_path, options, words):
    model = two_inputs().write(tmp_path)
    for name, lengths in {"a": (4, 3), "b": (4, 4)}.items():
        for k, length in enumerate(lengths):
            np.save(tmp_path / f"{name}{k}.npy", good(length))
    np.save(tmp_path / "long.npy", good(12))
    np.save(tmp_path / "longer.npy", good(20))
    refused(rnncc, model, tmp_path, 2, words.format(tmp_path), *(option.format(tmp_path) for option in options))


def test_a_file_that_is_cut_short_is_refused_wherever_it_ends(rnncc, model, tmp_path):
    np.save(tmp_path / "whole.npy", good())
    whole = (tmp_path / "whole.npy").read_bytes()
    for length in [*range(0, 12), *range(12, 128, 7), 127, 128, 129, len(whole) - 1, len(whole) + 1]:
        (tmp_path / "cut.npy").write_bytes((whole + b"?")[:length])
        done = rnncc("quantize", model, f"--data={tmp_path}/cut.npy", "-o", tmp_path / "out.json")
        assert done.returncode == 2 and f"{tmp_path}/cut.npy: error: " in done.stderr, done.stderr
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("header, words", [
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 99999999999999999999), }", "not a .npy header"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904), }", "too large"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (4, -6), }", "not a .npy header"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 4, 6), }", "more than 8 axes"),
    ("{'descr': '<f4', 'shape': (4, 6), }", "not a .npy header"),
    ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4, 6), }", "not a .npy header"),
    ("{'descr': '<f4", "not a .npy header"),
    ("", "not a .npy header"),
])
def test_headers_that_numpy_does_not_write_are_refused(rnncc, model, tmp_path, header, words):
    text = header.encode() + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + good().tobytes()
    (tmp_path / "a.npy").write_bytes(data)
    refused(rnncc, model, tmp_path, 2, words, f"--data={tmp_path}/a.npy")


@pytest.mark.parametrize("count, words", [
    (1, ["1 sample: none is held out", "1 sample: the ranges may not hold for others; expected 8 or more"]),
    (3, ["3 samples: none is held out", "3 samples: the ranges may not"]),
    (5, ["5 samples: the ranges may not"]),
    (8, []),
])
def test_few_samples_are_told(rnncc, model, tmp_path, count, words):
    data = save(tmp_path, "a", [good() for _ in range(count)])
    done = quantise(rnncc, model, tmp_path / "out.json", data=data)
    assert done.stderr.count("warning") == len(words)
    assert all(word in done.stderr for word in words), done.stderr
    told = "gave the ranges" if count < 4 else "held out"
    assert told in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("value", [0, 5, -3, 1e-42, 1e-30, 1e30])
def test_a_constant_activation_has_a_scale(rnncc, compile, tmp_path, value):
    model = dense().write(tmp_path)
    data = save(tmp_path, "a", [np.full((4, 6), value, np.float32) for _ in range(8)])
    done = quantise(rnncc, model, tmp_path / "out.json", data=data)
    scale, _ = Written(tmp_path / "out.json").grid(Written(tmp_path / "out.json").node("n0", "Gemm")["inputs"][0])
    assert 0 < scale < np.inf
    assert rows(done)["n0"][5] == "int8"
    assert error(done) < 0.02 or 0 < abs(value) < 1e-20  # such numbers are 0 in steps of the least scale
    compile(tmp_path / "out.json")


def test_channels_of_zeros_and_biases_beyond_their_steps_stay_what_they_are(rnncc, compile, rnnrun, tmp_path):
    weights = normal(6, 5)
    weights[:, 1] = 0
    weights[:, 2] *= 1e-9
    bias = np.array([1, -7, 300, 1e6, 0], np.float32)
    model = dense(weights, bias=bias).write(tmp_path)
    data = save(tmp_path, "a", [good() for _ in range(8)])
    quantise(rnncc, model, tmp_path / "out.json", "--no-bias-correction", data=data)
    run = rnnrun("run", compile(tmp_path / "out.json"), "--input", f"x=@{tmp_path}/a000.npy", "--output", f"y=@{tmp_path}/y.npy")
    assert run.returncode == 0, run.stderr
    expected = np.load(tmp_path / "a000.npy").astype(float) @ weights + bias
    off = np.abs(np.load(tmp_path / "y.npy") - expected)
    assert (off <= np.array([0.2, 1e-5, 1e-3, 1, 0.2])).all(), off


def test_nothing_to_quantise_is_said(rnncc, tmp_path):
    model = Model("none")
    model.output(model.node("Relu", [model.input("x", "f32", [3])]))
    refused(rnncc, model.write(tmp_path), tmp_path, 3, "no layer can be in int8: expected a Conv, MatMul")


def test_layers_that_cannot_be_in_int8_stay_and_say_why(rnncc, tmp_path):
    model = Model("mixed")
    x = model.input("x", "f32", [4, 6])
    weights = normal(6, 6)
    weights[2, 3] = np.inf
    product = model.node("MatMul", [x, model.node("Transpose", [x])])
    masked = model.node("Add", [product, model.constant(np.where(np.eye(4), -np.inf, 0).astype(np.float32))])
    model.output(model.node("MatMul", [x, model.constant(normal(6, 3))]),
                 model.node("MatMul", [masked, model.constant(np.abs(normal(4, 3)))]),
                 model.node("MatMul", [x, model.constant(weights)]),
                 model.node("Gemm", [x, model.constant(normal(6, 2)), model.constant(np.array([1, -np.inf], np.float32))]))
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "out.json",
                    data=save(tmp_path, "a", [good() for _ in range(8)]))
    whys = {"n1": "its weights are not constant", "n4": "its data are not finite on the samples", "n5": "its weights are not finite",
            "n6": "its bias is not finite"}
    for name, why in whys.items():
        assert rows(done)[name][5] == "f32" and why in done.stdout
    assert rows(done)["n3"][5] == "int8"


def test_a_bound_that_f32_meets_only_leaves_f32(rnncc, model, tmp_path):
    done = quantise(rnncc, model, tmp_path / "out.json", "--max-error=1e-5", data=save(tmp_path, "a", [good() for _ in range(8)]))
    assert rows(done)["n0"][5] == "f32" and error(done) <= 1e-5
    assert "QuantizeLinear" not in (tmp_path / "out.json").read_text()


def test_the_model_is_not_replaced_and_a_folder_must_be_there(rnncc, model, tmp_path):
    before = model.read_bytes()
    done = rnncc("quantize", model, "-o", model)
    assert done.returncode == 2 and model.read_bytes() == before, done.stderr
    done = rnncc("quantize", model, "-o", tmp_path / "none" / "out.json")
    assert done.returncode == 5 and "cannot write in its folder" in done.stderr


def test_a_network_that_refuses_the_samples_is_told(rnncc, tmp_path):
    model = Model("gather")
    rows_of = model.input("rows", "i64", [3])
    taken = model.node("Gather", [model.constant(normal(5, 6)), rows_of])
    model.output(model.node("MatMul", [taken, model.constant(normal(6, 2))]))
    np.save(tmp_path / "r.npy", np.array([1, 2, 9]))
    refused(rnncc, model.write(tmp_path), tmp_path, 2, f"{tmp_path}/r.npy: error: the network does not take it: ",
            f"--data={tmp_path}/r.npy")
