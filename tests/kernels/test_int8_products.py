# SPDX-License-Identifier: MIT
"""Matrix products of 8-bit numbers equal NumPy's in 64 bits and f32, bit for bit, on every ISA: extremes,
all tails of rows, columns and depths, zero points of either side, each operator's scales, sums and activations behind them."""
import re

import numpy
import pytest
from onnx import helper

from support.amount import long_tests, some
from support.emitted import assert_same, run_module, run_by
from support.onnx_files import model_of, onnxruntime_run, write
from support.targets import FOREIGN

# By default products of four bytes, by matrices, of pairs with signs, of pairs that are widened, NEON's, and those of two rows.
SHORT = ["x86-64-v4+vnni", "x86-64-v4+vnni+amx", "x86-64-v3", "x86-64-v4", "aarch64-linux-gnu", "aarch64-linux-gnu+dotprod+fp16+bf16+i8mm"]
TARGETS = some([*SHORT, "x86-64-v3+vnni", "x86-64-v2", "x86-64",
                "aarch64-linux-gnu+sve256", "riscv64-linux-gnu+rvv128"], len(SHORT))
SIZES = [(1, 1, 1), (1, 7, 5), (1, 64, 300), (2, 2, 16), (3, 33, 17), (5, 9, 130), (13, 130, 65), (7, 4, 100), (31, 67, 129)]
# Of so many products that they are made by matrices in registers, if the CPU has them.
OF_MATRICES = [(37, 192, 72), (70, 150, 45), (300, 130, 15), (9, 700, 70), (16, 64, 400), (33, 1000, 17), (101, 49, 80)]
TYPES = {"u8": numpy.uint8, "i8": numpy.int8}
ONNX_TYPES = {numpy.dtype(numpy.uint8): 2, numpy.dtype(numpy.int8): 3, numpy.dtype(numpy.int32): 6, numpy.dtype(numpy.float32): 1}


def bytes_of(rng, dtype, shape, extreme):
    """extreme: the least and the greatest only, whose products would saturate 16 bits."""
    limits = numpy.iinfo(TYPES[dtype])
    if extreme:
        return numpy.where(rng.random(shape) < 0.5, limits.min, limits.max).astype(TYPES[dtype])
    return rng.integers(limits.min, limits.max + 1, shape).astype(TYPES[dtype])


class Network:
    """Nodes side by side, their constants, feeds and results."""

    def __init__(self):
        self.nodes, self.constants, self.feeds, self.wanted = [], {}, {}, {}

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy.asarray(array)
        return name

    def feed(self, array):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return name

    def node(self, op, inputs, result, **attributes):
        name = f"y{len(self.wanted)}"
        self.wanted[name] = result
        domain = "com.microsoft" if op in ("QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul") else ""
        self.nodes.append(helper.make_node(op, inputs, [name], domain=domain, **attributes))
        return name

    def model(self):
        def kinds(arrays):
            return {name: (ONNX_TYPES[array.dtype], array.shape) for name, array in arrays.items()}
        return model_of(self.nodes, kinds(self.feeds), kinds(self.wanted), self.constants)


def zeros(dtype):
    limits = numpy.iinfo(TYPES[dtype])
    return [0, limits.min, limits.max, 3]


def quantised(y, zero):
    limits = numpy.iinfo(zero.dtype)
    return numpy.clip(numpy.rint(y) + numpy.float32(zero), numpy.float32(limits.min), numpy.float32(limits.max)).astype(zero.dtype)


def sums_of(a, a_zero, b, b_zero):
    return (a.astype(numpy.int64) - int(a_zero)) @ (b.astype(numpy.int64) - b_zero.astype(numpy.int64))


def random_scale(rng, shape=()):
    return rng.uniform(1e-3, 3e-2, shape).astype(numpy.float32)


def operands(rng, k, shape, batch=()):
    """a and its zero point, b and its, all kinds of them in turn."""
    M, K, N = shape
    a_type, b_type = ["u8", "i8"][k % 2], ["i8", "u8"][k // 2 % 2]
    a, b = bytes_of(rng, a_type, (*batch, M, K), k % 3 == 0), bytes_of(rng, b_type, (K, N), k % 3 < 2)
    a_zero = numpy.array(zeros(a_type)[k % 4], a.dtype)
    b_zero = numpy.array(zeros(b_type)[k // 4 % 4], b.dtype)
    if k % 5 == 0:  # of each column; the differences are i8
        b_zero = numpy.full(N, 128 if b_type == "u8" else 0, b.dtype)
    return a, a_zero, b, b_zero


def add_integer(net, rng, k, shape):
    a, a_zero, b, b_zero = operands(rng, k, shape, batch=(2,) if k % 7 == 3 else ())
    frozen = net.constant if k % 2 else net.feed
    net.node("MatMulInteger", [net.feed(a), net.constant(b), frozen(a_zero), net.constant(b_zero)],
             sums_of(a, a_zero, b, b_zero).astype(numpy.int32))


def add_qlinear(net, rng, k, shape):
    a, a_zero, b, b_zero = operands(rng, k, shape)
    a_scale, y_scale, y_zero = random_scale(rng), numpy.float32(rng.uniform(0.1, 1)), bytes_of(rng, "u8" if a.dtype == numpy.uint8 else "i8", (), False)
    b_scale = random_scale(rng, shape[2] if b_zero.ndim else ())
    scale = a_scale * b_scale / y_scale
    net.node("QLinearMatMul", [net.feed(a), *map(net.constant, (a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero))],
             quantised(sums_of(a, a_zero, b, b_zero).astype(numpy.float32) * scale, y_zero))


def add_gemm(net, rng, k, shape):
    a, a_zero, b, b_zero = operands(rng, k, shape)
    bias = rng.integers(-10**6, 10**6, shape[2]).astype(numpy.int32)
    a_scale, b_scale, alpha = random_scale(rng), random_scale(rng), numpy.float32(1.5)
    y = (sums_of(a, a_zero, b, b_zero) + bias).astype(numpy.float32)
    inputs = [net.feed(a), *map(net.constant, (a_scale, a_zero, b.T if k % 2 else b, b_scale, b_zero, bias))]
    scale = a_scale * b_scale * alpha
    if k % 3:
        y_scale, y_zero = random_scale(rng), bytes_of(rng, ["u8", "i8"][k % 2], (), False)
        return net.node("QGemm", [*inputs, net.constant(y_scale), net.constant(y_zero)], quantised(y * (scale / y_scale), y_zero),
                        transB=k % 2, alpha=1.5)
    return net.node("QGemm", inputs, y * scale, transB=k % 2, alpha=1.5)


def add_to_float(net, rng, k, shape):
    a, a_zero, b, b_zero = operands(rng, k, shape)
    a_scale, b_scale = random_scale(rng), random_scale(rng, shape[2] if k % 2 else 1)
    bias = rng.standard_normal(shape[2]).astype(numpy.float32)
    y = sums_of(a, a_zero, b, b_zero).astype(numpy.float32) * (a_scale * b_scale) + bias
    frozen = net.constant if k % 3 else net.feed
    name = net.node("MatMulIntegerToFloat", [net.feed(a), net.constant(b), frozen(a_scale), net.constant(b_scale), frozen(a_zero),
                                             net.constant(b_zero), net.constant(bias)], y)
    if k % 2:
        return name
    del net.wanted[name]
    residual = rng.standard_normal(y.shape).astype(numpy.float32)
    total = f"t{k}"
    net.nodes.append(helper.make_node("Add", [name, net.feed(residual)], [total]))
    net.wanted["filler" + name] = numpy.maximum(y + residual, 0)
    net.nodes.append(helper.make_node("Relu", [total], ["filler" + name]))
    return name


def add_of_run(net, rng, k, shape):
    """B is an input, too, with batches of its own or one for all."""
    M, K, N = shape
    batch, b_batch = [((), ()), ((2,), (2,)), ((3, 2), (2,)), ((2,), (1,))][k % 4]
    a_type, b_type = ["u8", "i8"][k % 2], ["i8", "u8"][k // 2 % 2]
    a, b = bytes_of(rng, a_type, (*batch, M, K), k % 3 == 0), bytes_of(rng, b_type, (*b_batch, K, N), k % 3 < 2)
    a_zero, b_zero = numpy.array(zeros(a_type)[k % 4], a.dtype), numpy.array(zeros(b_type)[k // 4 % 4], b.dtype)
    a_scale, b_scale, y_scale, y_zero = random_scale(rng), random_scale(rng), numpy.float32(rng.uniform(0.1, 1)), a_zero
    sums = (a.astype(numpy.int64) - int(a_zero)) @ (b.astype(numpy.int64) - int(b_zero))
    net.node("QLinearMatMul", [net.feed(a), *map(net.constant, (a_scale, a_zero)), net.feed(b), *map(net.constant, (b_scale, b_zero, y_scale, y_zero))],
             quantised(sums.astype(numpy.float32) * (a_scale * b_scale / y_scale), y_zero))


def network(half=None, seed=1, sizes=SIZES):
    """Each shape twice, with other types, zero points and extremes. half: each once; those with an odd number are the other
    halves. In long tests all."""
    rng, net = numpy.random.default_rng(seed), Network()
    numbers = range(2 * len(sizes)) if half is None or long_tests() else [
        i + (i // 2 + half) % 2 * len(sizes) for i in range(len(sizes))]
    for k in numbers:
        shape = sizes[k % len(sizes)]
        for add in (add_integer, add_qlinear, add_gemm, add_to_float, add_of_run):
            add(net, rng, k + seed, shape)
    for k in 5, 6:  # workers begin within a batch of one row
        add_of_run(net, rng, k, (1, 40, 300))
    return net


@pytest.mark.every_case
@pytest.mark.parametrize("target", TARGETS)
def test_products_equal_numpy(target, compile, tmp_path, request):
    net = network(half=TARGETS.index(target), sizes=SIZES + OF_MATRICES if "+amx" in target else SIZES)
    module = compile(write(tmp_path, net.model()), f"--target={target}")
    if target in FOREIGN:
        got = run_by(request.getfixturevalue("rnnrun_of")(target), module, net.feeds, net.wanted, tmp_path)
    else:
        got = run_module(module, net.feeds, threads=(1, 2, 3, 5, 8))
    for name, want in net.wanted.items():
        assert got[name].dtype == want.dtype and got[name].tobytes() == want.tobytes(), name


def test_tiles_are_chosen_where_there_are_two_rows(rnncc, tmp_path):
    """Blocks of them begin with even rows: of 10 rows 6 and 4, not two of 5, which take a tile more."""
    found = []
    for rows in 1, 2, 6, 10:
        net, folder = Network(), tmp_path / str(rows)
        folder.mkdir()
        net.node("MatMulInteger", [net.feed(numpy.zeros((rows, 9), numpy.uint8)), net.constant(numpy.ones((9, 7), numpy.int8))],
                 numpy.zeros((rows, 7), numpy.int32))
        done = rnncc(write(folder, net.model()), "--target=aarch64-linux-gnu+dotprod+i8mm", "--emit=c", "-o", folder / "c")
        assert done.returncode == 0, done.stderr
        found += re.findall(r"gemm_int8 .* ROWS=(\d) MIN_ROWS=(\d) .*TILES=(\d)", (folder / "c" / "network.c").read_text())
    assert found == [("1", "1", "0"), ("2", "2", "1"), ("6", "6", "1"), ("6", "4", "1")]


def test_matrices_in_registers_are_chosen_where_they_gain(rnncc, tmp_path):
    """Not for few rows, low depths or few products, and with panels of two vectors where there is more than one of rows."""
    sizes = [*OF_MATRICES, (5, 1024, 1024), (512, 47, 512), (32, 64, 64)]
    net = Network()
    for M, K, N in sizes:
        net.node("MatMulInteger", [net.feed(numpy.zeros((M, K), numpy.uint8)), net.constant(numpy.ones((K, N), numpy.int8))],
                 numpy.zeros((M, N), numpy.int32))
    done = rnncc(write(tmp_path, net.model()), "--target=x86-64-v4+vnni+amx", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"gemm_int8_matrices VECTORS=(\d) TILES=(\d) .*TAIL=(\d+)", (tmp_path / "c" / "network.c").read_text())
    assert found == [("2", "2", "0"), ("2", "2", "22"), ("1", "4", "2"), ("4", "1", "60"), ("4", "1", "0"), ("2", "2", "40"), ("2", "2", "49")]


def test_they_run_by_kernels_of_bytes(rnncc, tmp_path):
    done = rnncc("inspect", write(tmp_path, network().model()), "--dump-after=decompose")
    text = done.stdout + done.stderr
    assert all(f"= {op}" in text or f" {op} " in text for op in ("MatMulInteger", "QLinearMatMul", "QGemm", "MatMulIntegerToFloat")), text


def dynamically_quantised(x, w, scale, bias):
    """As ONNX Runtime's quantiser writes a MatMul and its Add."""
    constants = {"w": w, "w_zero": numpy.zeros(scale.shape, w.dtype), "w_scale": scale, "bias": bias}
    nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
             helper.make_node("MatMulInteger", ["q", "w", "zero", "w_zero"], ["sums"]),
             helper.make_node("Cast", ["sums"], ["floats"], to=1), helper.make_node("Mul", ["scale", "w_scale"], ["scales"]),
             helper.make_node("Mul", ["floats", "scales"], ["product"]), helper.make_node("Add", ["bias", "product"], ["sum"]),
             helper.make_node("Add", ["sum", "x"], ["y"])]
    return model_of(nodes, {"x": (1, x.shape)}, {"y": (1, x.shape)}, constants)


@pytest.mark.optimised_here
@pytest.mark.parametrize("each_column", [False, True])
def test_a_dynamically_quantised_product_is_one_operator(each_column, rnncc, compile, tmp_path):
    """Its results are those of the operators one by one, bit for bit. Weights are of 7 bits: more would saturate ONNX
    Runtime's sums of two products, on a CPU without VNNI."""
    rng = numpy.random.default_rng(7)
    x, w = rng.standard_normal((2, 5, 40)).astype(numpy.float32), bytes_of(rng, "i8", (40, 40), False) // 2
    model = dynamically_quantised(x, w, random_scale(rng, 40 if each_column else ()), rng.standard_normal(40).astype(numpy.float32))
    path = write(tmp_path, model)
    done = rnncc("inspect", path, "--dump-after=fuse_quantised")
    assert "MatMulIntegerToFloat" in done.stderr and " MatMulInteger(" not in done.stderr and " Cast" not in done.stderr, done.stderr
    assert_same(run_module(compile(path), {"x": x}), onnxruntime_run(model, {"x": x}))


def test_weights_whose_sums_exceed_31_bits_are_split_or_added_exactly(compile, reference, tmp_path):
    """255 times -128, 66000 times: less than -2^31. Then the sum is that of i32, modulo 2^32."""
    K, net = 66000, Network()
    a, b = numpy.full((1, K), 255, numpy.uint8), numpy.full((K, 2), -128, numpy.int8)
    b[:, 1] = 127
    net.node("MatMulInteger", [net.feed(a), net.constant(b)], (a.astype(numpy.int64) @ b.astype(numpy.int64)).astype(numpy.int32))
    got = run_module(compile(write(tmp_path, net.model()), "--target=x86-64-v2"), net.feeds, threads=(1,))
    for name, want in net.wanted.items():
        numpy.testing.assert_array_equal(got[name], want)


def add_deep_products(net):
    """Products of depth 34000, of 255 times 255, each operator's: sums of more than 2^31."""
    K, one, y_scale, y_zero = 34000, numpy.uint8(0), numpy.float32(100), numpy.uint8(1)
    a, b, scale = numpy.full((1, K), 255, numpy.uint8), numpy.full((K, 2), 255, numpy.uint8), numpy.float32(2.0**-10)
    sums, squared = sums_of(a, 0, b, numpy.array(0, numpy.uint8)), numpy.float32(2.0**-20)
    of_a, of_result = [net.feed(a), *map(net.constant, (scale, one))], [net.constant(y_scale), net.constant(y_zero)]
    as_bytes = quantised(sums.astype(numpy.float32) * (squared / y_scale), y_zero)
    for matrix in (net.constant(b), net.feed(b)):
        net.node("QLinearMatMul", [*of_a, matrix, net.constant(scale), net.constant(one), *of_result], as_bytes)
    bias = numpy.full(2, 2**31 - 1, numpy.int32)
    net.node("QGemm", [*of_a, net.constant(b), net.constant(scale), net.constant(one), net.constant(bias), *of_result],
             quantised((sums + bias).astype(numpy.float32) * (squared / y_scale), y_zero))
    net.node("MatMulIntegerToFloat", [of_a[0], net.constant(b), of_a[1], of_a[1], of_a[2], of_a[2]], sums.astype(numpy.float32) * squared)


def add_large_biases(net):
    """Convolutions of few channels, and of so many that they are split, with the largest bias there is."""
    zero, scale, y_scale, y_zero = numpy.uint8(0), numpy.float32(2.0**-10), numpy.float32(16), numpy.uint8(1)
    for channels in 64, 600:
        x, w = numpy.full((1, channels, 1, 1), 255, numpy.uint8), numpy.full((2, channels, 1, 1), 255, numpy.uint8)
        bias = numpy.array([2**31 - 1, 0], numpy.int32)
        sums = (channels * 255**2 + bias.astype(numpy.int64)).astype(numpy.float32).reshape(1, 2, 1, 1)
        net.node("QLinearConv", [net.feed(x), *map(net.constant, (scale, zero, w, scale, zero, y_scale, y_zero, bias))],
                 quantised(sums * (scale * scale / y_scale), y_zero))


def test_sums_that_wrap_around_do_so_whatever_reads_them(compile, tmp_path):
    """A Cast and a Mul, with which the product could be one operator."""
    K, net, scale = 34000, Network(), numpy.float32(2.0**-20)
    a, b = numpy.full((1, K), 255, numpy.uint8), numpy.full((K, 2), 255, numpy.uint8)
    image, kernels = a.reshape(1, K, 1, 1), numpy.ascontiguousarray(b.T).reshape(2, K, 1, 1)
    for op, x, w in (("MatMulInteger", a, net.constant(b)), ("MatMulInteger", a, net.feed(b)), ("ConvInteger", image, net.constant(kernels))):
        sums = numpy.full((1, 2) + x.shape[2:], K * 255**2 - 2**32, numpy.int32)
        name = net.node(op, [net.feed(x), w], sums)
        del net.wanted[name]
        result = f"scaled {name}"
        net.nodes += [helper.make_node("Cast", [name], [f"floats {name}"], to=1),
                      helper.make_node("Mul", [f"floats {name}", net.constant(scale)], [result])]
        net.wanted[result] = sums.astype(numpy.float32) * scale
    got = run_module(compile(write(tmp_path, net.model())), net.feeds, threads=(1, 2))
    for name, want in net.wanted.items():
        assert got[name].tobytes() == want.tobytes(), (name, got[name], want)


@pytest.mark.parametrize("add", [add_deep_products, add_large_biases])
def test_sums_beyond_32_bits_that_are_not_the_result_are_whole(add, compile, tmp_path):
    """ONNX Runtime's wrap around."""
    net = Network()
    add(net)
    got = run_module(compile(write(tmp_path, net.model())), net.feeds, threads=(1, 2))
    for name, want in net.wanted.items():
        assert got[name].tobytes() == want.tobytes(), (name, got[name], want)
