# SPDX-License-Identifier: MIT
"""Compiled MatMul and Gemm over operand shapes, constant and not, compared with double precision (integers: exactly).

One model holds many products, so that few compilations cover many shapes. Floats are bounded by the error of a sum in
order, K eps sum |a b|, and one rounding each for alpha, beta and the addend.
"""
import numpy as np
import pytest

from graphs.test_chains import kernels
from support.emitted import assert_same, run_module
from support.model_builder import Model
from support.module import Module

EPS = float(np.finfo(np.float32).eps)
MAX_M = 9  # of the run-time extent M


def floats(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


class Products:
    """A model of many products; `expect` holds (output, function of the feeds -> (value, bound))."""

    def __init__(self, rng, dtype="f32"):
        self.rng, self.dtype = rng, dtype
        self.model, self.feeds, self.expect = Model("products"), {}, []

    def array(self, shape):
        if self.dtype == "f32":
            return floats(self.rng, *shape)
        return self.rng.integers(-9, 9, shape).astype({"i32": np.int32, "i64": np.int64}[self.dtype])

    def operand(self, array, constant):
        if constant:
            return self.model.constant(array)
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return self.model.input(name, self.dtype, array.shape)

    def add(self, output, value, bound):
        self.model.output(output)
        self.expect.append((output, value, bound))

    def matmul(self, a_shape, b_shape, a_constant=False, b_constant=False, then=None):
        a, b = self.array(a_shape), self.array(b_shape)
        output = self.model.node("MatMul", [self.operand(a, a_constant), self.operand(b, b_constant)])
        value = np.matmul(wide(a), wide(b))
        bound = (a_shape[-1] + 3) * EPS * np.matmul(abs(wide(a)), abs(wide(b)))
        if then:
            output, value, bound = then(self, output, value, bound)
        self.add(output, value, bound)

    def gemm(self, m, n, k, c_shape, turn_a, turn_b, alpha, beta, constant):
        a, b = self.array((k, m) if turn_a else (m, k)), self.array((n, k) if turn_b else (k, n))
        c = None if c_shape is None else self.array(c_shape)
        inputs = [self.operand(a, False), self.operand(b, constant), c if c is None else self.operand(c, constant)]
        output = self.model.node("Gemm", inputs, transA=int(turn_a), transB=int(turn_b), alpha=alpha, beta=beta)
        a, b = wide(a.T if turn_a else a), wide(b.T if turn_b else b)
        added = 0 if c is None else beta * wide(c)
        value = alpha * (a @ b) + added
        bound = (k + 4) * EPS * (abs(alpha) * (abs(a) @ abs(b)) + abs(added))
        self.add(output, value, bound)

    def check(self, compile, tmp_path):
        with Module(compile(self.model.write(tmp_path))) as module:
            results = []
            for threads in (1, 2, 3):
                with module.context(threads) as context:
                    results.append(context.run(self.feeds))
        for output, value, bound in self.expect:
            got = results[0][output]
            assert got.shape == np.shape(value), output
            assert (abs(wide(got) - value) <= bound).all(), f"{output}: worst {abs(wide(got) - value).max()}"
            for other in results[1:]:
                assert np.array_equal(got, other[output]), f"{output} depends on the number of threads"


def wide(array):
    return array.astype(np.int64 if array.dtype.kind == "i" else np.float64)


MATMUL_SHAPES = [
    ((5, 7), (7, 3)), ((1, 64), (64, 200)), ((33, 1), (1, 70)), ((2, 3, 4), (4, 5)), ((6, 1, 3, 4), (1, 5, 4, 2)),
    ((3, 4), (2, 4, 5)), ((7,), (7, 9)), ((4, 7), (7,)), ((7,), (7,)), ((2, 4, 7), (7,)), ((7,), (3, 7, 2)),
    ((15, 130), (130, 129)), ((3, 5000), (5000, 17)), ((1, 4100), (4100, 70)), ((14, 33), (33, 48)),
]


@pytest.mark.parametrize("a_constant, b_constant", [(False, True), (False, False), (True, False)],
                         ids=["packed_ahead", "packed_at_run_time", "left_constant"])
def test_matmul_equals_double_precision(a_constant, b_constant, compile, tmp_path):
    products = Products(np.random.default_rng(1))
    for a_shape, b_shape in MATMUL_SHAPES:
        products.matmul(a_shape, b_shape, a_constant, b_constant)
    products.check(compile, tmp_path)


@pytest.mark.parametrize("width", range(1, 41, 13))
def test_every_column_tail(width, compile, tmp_path):
    products = Products(np.random.default_rng(width))
    for n in range(width, width + 13):
        for m in (1, 2, 7):
            products.matmul((m, 19), (19, n), b_constant=n % 2 == 0)
    products.check(compile, tmp_path)


@pytest.mark.parametrize("constant", [True, False], ids=["packed_ahead", "packed_at_run_time"])
def test_gemm_equals_double_precision(constant, compile, tmp_path):
    rng = np.random.default_rng(3)
    products = Products(rng)
    for c in (None, "scalar", "n", "1n", "m1", "mn", "1"):
        for turns in (len(str(c)) % 4, (len(str(c)) + 1) % 4):
            m, n, k = (int(extent) for extent in rng.integers(1, 40, 3))
            shape = {None: None, "scalar": (), "n": (n,), "1n": (1, n), "m1": (m, 1), "mn": (m, n), "1": (1,)}[c]
            alpha, beta = [(1.0, 1.0), (0.3, 1.0), (1.0, -0.7), (1.0, 0.0)][turns]
            products.gemm(m, n, k, shape, turns & 1, turns & 2, alpha, beta, constant)
    products.check(compile, tmp_path)


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integers_are_exact(dtype, compile, tmp_path):
    rng = np.random.default_rng(4)
    products = Products(rng, dtype)
    for a_shape, b_shape in MATMUL_SHAPES[:11]:
        products.matmul(a_shape, b_shape, b_constant=len(a_shape) % 2 == 0)
    for c_shape in (None, (5,), (4, 1), (4, 5)):
        products.gemm(4, 5, 6, c_shape, c_shape is None, c_shape is not None, 2.0, 3.0, False)
    products.check(compile, tmp_path)


def then_bias(products, output, value, bound):
    bias = floats(products.rng, value.shape[-1])
    output = products.model.node("Add", [products.operand(bias, True), output])
    return output, value + bias, bound + EPS * abs(value + bias)


def then_residual_and_relu(products, output, value, bound):
    residual = floats(products.rng, *value.shape)
    output = products.model.node("Add", [output, products.operand(residual, False)])
    output = products.model.node("Relu", [output])
    return output, np.maximum(value + residual, 0), bound + EPS * abs(value + residual)


def then_tanh_and_scale(products, output, value, bound):
    output = products.model.node("Tanh", [output])
    output = products.model.node("Mul", [output, products.operand(np.float32(3).reshape(()), True)])
    return output, 3 * np.tanh(value), 3 * bound + 20 * EPS


@pytest.mark.parametrize("then", [then_bias, then_residual_and_relu, then_tanh_and_scale])
def test_nodes_after_a_product_become_part_of_its_kernel(then, rnncc, compile, tmp_path):
    products = Products(np.random.default_rng(5))
    for a_shape, b_shape in [((5, 7), (7, 3)), ((1, 30), (30, 50)), ((2, 3, 4), (4, 33)), ((2, 3, 4), (2, 4, 5))]:
        products.matmul(a_shape, b_shape, b_constant=True, then=then)
    products.check(compile, tmp_path)


@pytest.mark.parametrize("then", [then_bias, then_residual_and_relu])
def test_a_sum_after_a_product_has_no_kernel_of_its_own(then, rnncc, tmp_path):
    products = Products(np.random.default_rng(5))
    for a_shape, b_shape in [((5, 7), (7, 3)), ((8, 30), (30, 50))]:
        products.matmul(a_shape, b_shape, b_constant=True, then=then)
    assert kernels(rnncc, tmp_path, products.model) == ["gemm_packed"] * 2


@pytest.mark.optimised_here
def test_rows_are_known_at_run_time(compile, tmp_path):
    """M and the batch are dims; K x N of the second product is an input of run-time extent, too."""
    rng = np.random.default_rng(6)
    w = floats(rng, 20, 37)
    model = Model("rows")
    model.dim("M", 1, 4, MAX_M)
    a, b = model.input("a", "f32", ["M", 20]), model.input("b", "f32", [3, "M", 11])
    product = model.node("MatMul", [a, model.constant(w)])
    turned = model.node("Transpose", [product], perm=[1, 0])
    model.output(product, model.node("MatMul", [turned, b]))
    with Module(compile(model.write(tmp_path))) as module, module.context(threads=2) as context:
        for m in range(1, MAX_M + 1):
            feeds = {"a": floats(rng, m, 20), "b": floats(rng, 3, m, 11)}
            got = list(context.run(feeds).values())
            expected = wide(feeds["a"]) @ wide(w)
            np.testing.assert_allclose(got[0], expected, rtol=0, atol=30 * EPS * 20)
            np.testing.assert_allclose(got[1], expected.T @ wide(feeds["b"]), rtol=0, atol=60 * EPS * 20 * m)


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_a_row_that_comes_from_memory_has_the_bits_it_has_among_others(target, compile, tmp_path):
    """A single row uses wider panels if the matrix is large."""
    rng, model, n, k = np.random.default_rng(6), Model("row"), 1003, 2200  # 8.8 MB: a quarter of 32 MB of cache, and more
    weights, bias = model.constant(floats(rng, k, n)), model.constant(floats(rng, n))
    rows = floats(rng, 3, k)
    for name, shape in (("one", (1, k)), ("all", (3, k))):
        model.output(model.node("Gemm", [model.input(name, "f32", shape), weights, bias]))
    with Module(compile(model.write(tmp_path), f"--target={target}", "--machine=native")) as module:
        for threads in (1, 2, 3):
            with module.context(threads) as context:
                one, all_rows = context.run({"one": rows[:1], "all": rows}).values()
            assert np.array_equal(one[0], all_rows[0]), f"{threads} threads"


def test_of_a_beta_of_0_nothing_is_added_also_of_constants(compile, reference, tmp_path):
    """Not even what is no number, in a module and in what is computed when compiling."""
    model = Model()
    a, b = (np.arange(6, dtype=np.float32).reshape(shape) for shape in ((2, 3), (3, 2)))
    c = model.constant(np.array([np.nan, np.inf], np.float32))
    fed = model.input("a", "f32", [2, 3]), model.input("b", "f32", [3, 2])
    for left, right in (fed, (model.constant(a), model.constant(b))):
        model.output(model.node("Gemm", [left, right, c], beta=0.0))
    path, feeds = model.write(tmp_path), {"a": a, "b": b}
    for got in (run_module(compile(path), feeds), reference.run(model, path, feeds)):
        assert_same(got, model.onnx_run(feeds))
        assert_same(got, dict.fromkeys(model.outputs, a @ b))
