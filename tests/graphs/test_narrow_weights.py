# SPDX-License-Identifier: MIT
"""Weights that are kept in fewer bits. Of 16 bits, results are bit for bit those of f32 weights of the same values, on
every target. Of integers, whose sums are scaled at their end, they are as near to double precision's as f32 weights' are,
the same with one row as with many, and exact where f32's sums are."""
import itertools
import re

import numpy as np
import pytest

from support.amount import long_tests, some
from support.feedback import lower_by_feedback
from support.model_builder import Model
from support.targets import SCALABLE

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
T, B = 5, 3
TARGETS = ["x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "aarch64-linux-gnu", "riscv64-linux-gnu", *SCALABLE]


class Int8:
    """Numbers of 8 bits, the extremes among them, and a scale for each output channel."""

    def __init__(self, rng, shape, axis):
        self.axis = axis
        self.numbers = rng.integers(-127, 128, shape).astype(np.int8)
        self.numbers.flat[:2] = 127, -127
        lengths = [length if k == axis else 1 for k, length in enumerate(shape)]
        self.scales = rng.uniform(1e-3, 1e-2, lengths).astype(np.float32)

    def wide(self):
        return self.numbers.astype(np.float32) * self.scales

    def node(self, net):
        return net.node("DequantizeLinear", [net.constant(self.numbers), net.constant(self.scales.ravel())], axis=self.axis)


class Int8Rows(Int8):
    """Rows of [D, gates * units, depth], which DequantizeLinear knows as blocks as long as an axis."""

    def __init__(self, rng, shape):
        self.numbers = rng.integers(-127, 128, shape).astype(np.int8)
        self.scales = rng.uniform(1e-3, 1e-2, (*shape[:2], 1)).astype(np.float32)

    def node(self, net):
        return net.node("DequantizeLinear", [net.constant(self.numbers), net.constant(self.scales)], axis=2,
                        block_size=self.numbers.shape[2])


def recurrent(net, rng, narrow, op, inputs, units, directions=1, **attributes):
    rows = GATES[op] * units
    weights = [Int8Rows(rng, (directions, rows, depth)) if directions > 1 else Int8(rng, (1, rows, depth), 1)
               for depth in (inputs, units)]
    made = [it.node(net) if narrow else net.constant(it.wide()) for it in weights]
    bias = net.constant(rng.uniform(-.1, .1, (directions, 2 * rows)).astype(np.float32))
    x = net.input(f"x{len(net.inputs)}", "f32", ["T", "B", inputs])
    return net.node(op, [x, *made, bias], hidden_size=units, **attributes,
                 **({"direction": "bidirectional"} if directions > 1 else {}))


LAYERS = [("LSTM", 17, 37, {}), ("LSTM", 5, 16, {"directions": 2}), ("GRU", 9, 33, {}),
          ("GRU", 33, 9, {"linear_before_reset": 1}), ("RNN", 7, 50, {"directions": 2})]
PRODUCTS = [(rows, *product) for rows in (1, 2, 13) for product in [("MatMul", (45, 67), 1, {}), ("Gemm", (67, 45), 0, {"transB": 1})]]


def network(narrow, part=slice(None)):
    """Layers of odd sizes, and products of one row and of many. part: of the list of all."""
    rng = np.random.default_rng(7)
    net = Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, B, 8)
    for kind, *what in [*(("layer", *layer) for layer in LAYERS), *(("product", *product) for product in PRODUCTS)][part]:
        if kind == "layer":
            op, inputs, units, more = what
            net.output(recurrent(net, rng, narrow, op, inputs, units, **more))
        else:
            rows, op, shape, axis, more = what
            b = Int8(rng, shape, axis)
            x = net.input(f"x{len(net.inputs)}", "f32", [rows, 45])
            net.output(net.node(op, [x, b.node(net) if narrow else net.constant(b.wide())], **more))
    return net


def part_for(target):
    """Vectors of a width that clang is told take clang longest, and the widths have the same C: each has a part of all, those
    of SVE have all together; in long tests each has all."""
    if long_tests() or target not in SCALABLE:
        return slice(None)
    if "+rvv" in target:
        return slice(0 if "rvv256" in target else 2, None, 5)
    return slice([name for name in SCALABLE if "+sve" in name].index(target), None, 3)


def feeds_of(net):
    rng = np.random.default_rng(3)
    sizes = {"T": T, "B": B}
    return {it["name"]: rng.standard_normal([sizes.get(axis, axis) for axis in it["shape"]]).astype(np.float32)
            for it in net.inputs}


def assert_close(wide, narrow):
    """Sums of 67 products of up to 15 in all round by 2e-6. A step of the RNN passes on up to twice such an error."""
    for a, b in zip(wide.values(), narrow.values()):
        assert a.shape == b.shape and np.abs(a - b).max() <= 2e-5 * max(1, np.abs(a).max()), np.abs(a - b).max()


# Of RVV, which takes longest, one width; the other one has a case below.
@pytest.mark.parametrize("target", TARGETS if long_tests() else [target for target in TARGETS if "rvv128" not in target])
def test_kept_in_8_bits_they_compute_the_same(target, run_for, tmp_path):
    results = []
    for narrow in (False, True):
        folder = tmp_path / str(narrow)
        folder.mkdir()
        net = network(narrow, part_for(target))
        results.append(run_for(target, net.write(folder), feeds_of(net), list(net.outputs)))
    assert_close(*results)


@pytest.mark.parametrize("rows", [1, 2, 13])
def test_sums_of_integers_that_f32_holds_are_exact(rows, run_for, tmp_path):
    """x are small integers and scales powers of two, so no order of products and sums rounds anything."""
    rng, net = np.random.default_rng(11), Model()
    b = Int8(rng, (259, 67), 1)
    b.scales = np.exp2(rng.integers(-9, 9, b.scales.shape)).astype(np.float32)
    x = rng.integers(-64, 65, (rows, 259)).astype(np.float32)
    net.output(net.node("MatMul", [net.input("x", "f32", [rows, 259]), b.node(net)]))
    (y,) = run_for("native", net.write(tmp_path), {"x": x}, list(net.outputs)).values()
    assert np.array_equal(y, (x.astype(np.float64) @ b.wide().astype(np.float64)).astype(np.float32))


def test_a_row_gives_the_same_bits_alone_and_among_others(run_for, tmp_path):
    rng, results = np.random.default_rng(12), {}
    b, x = Int8(rng, (300, 200), 1), rng.standard_normal((13, 300)).astype(np.float32)
    for rows in (1, 3, 13):
        net = Model()
        folder = tmp_path / str(rows)
        folder.mkdir()
        net.output(net.node("MatMul", [net.input("x", "f32", [rows, 300]), b.node(net)]))
        (results[rows],) = run_for("native", net.write(folder), {"x": x[:rows]}, list(net.outputs)).values()
    assert all(np.array_equal(results[13][:rows], results[rows]) for rows in results)


@pytest.mark.parametrize("shape, axis", [((45, 67), 0), ((45, 67), 1), ((2, 45, 67), 2), ((2, 45, 67), 0)])
def test_scales_of_any_axis(shape, axis, run_for, tmp_path):
    """Those along the depth, or of several matrices, are none of a column: such weights stay in f32."""
    rng, results = np.random.default_rng(13), []
    b, x = Int8(rng, shape, axis), rng.standard_normal((2, 5, 45)).astype(np.float32)
    for narrow in (False, True):
        net = Model()
        folder = tmp_path / str(narrow)
        folder.mkdir()
        a = net.input("x", "f32", [2, 5, 45])
        net.output(net.node("MatMul", [a, b.node(net) if narrow else net.constant(b.wide())]))
        results.append(run_for("native", net.write(folder), {"x": x}, list(net.outputs)))
    assert_close(*results)


def rounded(array, precision):
    """As --precision has it. Rows of the last axis but one of a recurrent layer, and columns of B, share a scale."""
    if precision == "bf16":
        bits = array.view(np.uint32).astype(np.uint64)
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    if precision == "f16":
        return array.astype(np.float16).astype(np.float32)
    axis = 2 if array.ndim == 3 else 0 if array.shape == (45, 67) else 1
    kind, _, group = precision.partition(":")
    group = int(group or (32 if kind == "int4" else array.shape[axis]))
    parts = []
    for at in range(0, array.shape[axis], group):
        part = array.take(range(at, min(at + group, array.shape[axis])), axis)
        scale = np.abs(part).max(axis=axis, keepdims=True) / np.float32(7 if kind == "int4" else 127)  # 0: of zeros alone
        parts.append(np.rint(np.divide(part, scale, out=np.zeros_like(part), where=scale != 0)) * scale)
    return np.concatenate(parts, axis)


PRECISIONS = ["bf16", "int8", "f16", "int4"]
SHORT = [("x86-64-v4", "bf16"), ("x86-64-v4", "int8"), ("x86-64-v3", "int4"), ("x86-64-v3", "f16"), ("x86-64", "int8"),
         ("aarch64-linux-gnu", "int4"), ("riscv64-linux-gnu+rvv128", "int4"), ("native", "int8:16")]  # by default
ROUNDED_FOR = ["x86-64-v4", "x86-64-v3", "x86-64", "aarch64-linux-gnu", "riscv64-linux-gnu+rvv128"]
ALL = [*SHORT, ("x86-64-v3", "int4:64"), ("native", "int4:8"), *itertools.product(ROUNDED_FOR, PRECISIONS)]
CASES = some(list(dict.fromkeys(ALL)), len(SHORT))


@pytest.mark.every_case
@pytest.mark.parametrize("target, precision", CASES)
def test_rounded_by_the_option_they_are_what_they_are_rounded_to(target, precision, run_for, compile, tmp_path):
    """The model's weights against those that NumPy has rounded."""
    results = []
    for by_numpy in (False, True):
        folder = tmp_path / str(by_numpy)
        folder.mkdir()
        net = network(False, part_for(target))
        for name, array in net.arrays.items():
            if by_numpy and (array.ndim == 3 or array.shape in ((45, 67), (67, 45))):
                net.arrays[name] = rounded(array, precision)
        options = [] if by_numpy else [f"--precision={precision}"]
        results.append(run_for(target, net.write(folder), feeds_of(net), list(net.outputs), *options))
    if precision.startswith("int"):
        assert_close(*results)
    else:
        assert all(np.array_equal(a.view(np.uint32), b.view(np.uint32)) for a, b in zip(*(result.values() for result in results)))


ROWS, DEPTH, UNITS = 20, 64, 16


def read_from_a_table(op, rows=ROWS, given=None):
    """A layer of rows that a Gather takes. given: its W, or B as [columns][depth]."""
    rng, net = np.random.default_rng(17), Model()
    table = rng.standard_normal((rows, DEPTH)).astype(np.float32)
    w = rng.standard_normal((GATES.get(op, 3) * UNITS, DEPTH)).astype(np.float32)
    r = rng.integers(-127, 128, (1, GATES.get(op, 3) * UNITS, UNITS)).astype(np.float32) / 512  # integers of 8 bits
    r[:, :, 0] = 127 / 512
    w = w if given is None else given
    x = net.node("Gather", [net.constant(table), net.input("i", "i64", [rows])])
    if op in GATES:
        x = net.node("Unsqueeze", [x, net.constant(np.array([1]))])
        net.output(net.node(op, [x, net.constant(w[np.newaxis]), net.constant(r)], hidden_size=UNITS))
    elif op == "Gemm":
        net.output(net.node(op, [x, net.constant(w)], transB=1))
    else:
        net.output(net.node(op, [net.node("Reshape", [x, net.constant(np.array([2, -1, DEPTH]))]),
                                 net.constant(np.ascontiguousarray(w.T))]))
    return net, table, w, {"i": np.arange(rows)}


@pytest.mark.parametrize("op", ["MatMul", "Gemm", "GRU"])
@pytest.mark.parametrize("precision", ["int8", "int8:8", "int4:16", "int4:32"])
def test_rows_of_a_table_are_multiplied_by_numbers_that_err_least_on_them(op, precision, run_for, tmp_path):
    net, table, w, feeds = read_from_a_table(op)
    expected = lower_by_feedback(w, table, precision)
    nearest = rounded(w[np.newaxis], precision)[0]
    errors = [float(np.square(table @ (numbers - w).T).sum()) for numbers in (expected, nearest)]
    assert errors[0] < errors[1] / 3
    asked = f"{precision},*.R=int8" if op == "GRU" else precision
    results = []
    for k, (model, options) in enumerate([(net, [f"--precision={asked}"]), (read_from_a_table(op, given=expected)[0], [])]):
        folder = tmp_path / str(k)
        folder.mkdir()
        results.append(run_for("native", model.write(folder), feeds, list(model.outputs), *options))
    assert_close(*results)


def test_rows_of_a_long_table_are_multiplied_by_the_nearest_numbers(run_for, tmp_path):
    """As many directions are in use as there are: errors have nowhere to go."""
    net, _, w, feeds = read_from_a_table("Gemm", rows=4 * DEPTH + 1)
    results = []
    for k, (model, options) in enumerate([(net, ["--precision=int8"]), (read_from_a_table(
            "Gemm", rows=4 * DEPTH + 1, given=rounded(w[np.newaxis], "int8")[0])[0], [])]):
        folder = tmp_path / str(k)
        folder.mkdir()
        results.append(run_for("native", model.write(folder), feeds, list(model.outputs), *options))
    assert_close(*results)


@pytest.mark.parametrize("dtype, options", [("i8", []), ("bf16", ["--precision=bf16"]), ("f16", ["--precision=f16"]),
                                            ("i8", ["--precision=int8"]), ("i8", ["--precision=int8:64"]),
                                            ("i4", ["--precision=int4"])])
def test_recurrent_layers_keep_them_so(dtype, options, rnncc, tmp_path):
    """inspect says how many bytes of weights there are of each type."""
    rng, net = np.random.default_rng(1), Model()
    net.dim("T", 1, T, 8)
    net.dim("B", 1, B, 8)
    net.output(*[recurrent(net, rng, not options, op, 64, 64) for op in GATES])
    done = rnncc("inspect", net.write(tmp_path), *options)
    assert done.returncode == 0, done.stderr
    (types,) = [line for line in done.stdout.splitlines() if line.startswith("types")]
    sizes = {name: int(number) for number, name in re.findall(r"(\d+)(?: bytes)? of (\w+)", types)}
    elements = sum(GATES.values()) * 64 * (64 + 64)
    assert sizes[dtype] >= elements * {"i4": .5, "i8": 1}.get(dtype, 2) and sizes["f32"] < elements, types


@pytest.mark.optimised
def test_the_module_has_a_quarter_of_the_weights(compile, tmp_path):
    sizes = {}
    for narrow in (False, True):
        folder = tmp_path / str(narrow)
        folder.mkdir()
        net, rng = Model(), np.random.default_rng(1)
        b = Int8(rng, (256, 512), 1)
        net.output(net.node("MatMul", [net.input("x", "f32", [1, 256]), b.node(net) if narrow else net.constant(b.wide())]))
        sizes[narrow] = compile(net.write(folder)).stat().st_size
    assert 256 * 512 * 3 - 4096 < sizes[False] - sizes[True] < 256 * 512 * 3 + 4096 * 3


class Blocks:
    """B of MatMulNBits, [K, N], in blocks along K, with the extremes among its numbers."""

    def __init__(self, rng, K, N, bits, block, zeros):
        self.sizes, self.blocks = {"K": K, "N": N, "bits": bits, "block_size": block}, -(-K // block)
        self.numbers = rng.integers(0, 2**bits, (N, self.blocks * block)).astype(np.uint8)
        self.numbers[0, :2] = 0, 2**bits - 1
        self.scales = rng.uniform(1e-3, 1e-2, (N, self.blocks)).astype(np.float32)
        self.zeros = rng.integers(*zeros, (N, self.blocks)).astype(np.uint8) if zeros else None

    def packed(self, rows):
        bits = self.sizes["bits"]
        if bits == 8:
            return rows
        rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
        return (rows[:, ::2] | rows[:, 1::2] << 4).astype(np.uint8)

    def wide(self):
        middle = 2**(self.sizes["bits"] - 1)
        zeros = np.full_like(self.numbers[:, :self.blocks], middle) if self.zeros is None else self.zeros
        spread = [np.repeat(part, self.sizes["block_size"], axis=1) for part in (zeros, self.scales)]
        whole = (self.numbers.astype(np.float64) - spread[0]) * spread[1]
        return whole[:, :self.sizes["K"]].T

    def model(self, rows, path):
        """An ONNX file, for ONNX Runtime as well."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        N, K = self.sizes["N"], self.sizes["K"]
        constants = {"b": self.packed(self.numbers).reshape(N, self.blocks, -1), "scales": self.scales.ravel()}
        if self.zeros is not None:
            constants["zeros"] = self.packed(self.zeros).ravel()
        node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **self.sizes)
        graph = helper.make_graph([node], "blocks", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, K])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, N])],
                                  [numpy_helper.from_array(array, name) for name, array in constants.items()])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
        return path


BLOCKS = [(4, 32, None, "i4"), (4, 16, (7, 9), "i8"), (4, 64, (0, 16), "i8"), (8, 32, None, "i8"), (8, 16, (100, 110), "f32")]


@pytest.mark.optimised_here
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("bits, block, zeros, kept", BLOCKS)
def test_blocks_stay_packed(bits, block, zeros, kept, rows, rnncc, run_for, tmp_path):
    """MatMulNBits computes what its integers stand for in double precision, and what ONNX Runtime does. Numbers that
    are none of 8 bits less their zero points are kept in f32."""
    import onnxruntime
    rng = np.random.default_rng(bits * block)
    b, x = Blocks(rng, 200, 67, bits, block, zeros), rng.standard_normal((rows, 200)).astype(np.float32)
    model = b.model(rows, tmp_path / "model.onnx")
    (y,) = run_for("native", model, {"x": x}, ["y"]).values()
    exact, terms = x.astype(np.float64) @ b.wide(), np.abs(x).astype(np.float64) @ np.abs(b.wide())
    assert (np.abs(y - exact) <= 16 * 2.0**-24 * terms).all()  # rounding errors of a sum of 200, of which few add up
    (peer,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert np.allclose(y, peer, rtol=1e-4, atol=1e-4)
    types = next(line for line in rnncc("inspect", model).stdout.splitlines() if line.startswith("types"))
    assert re.search(rf"\d+(?: bytes)? of {kept}\b", types) and (kept == "f32" or not re.search(r"\d{5,} bytes of f32", types)), types


ODD = {"zero": (0, "i4"), "negative": (-.25, "i4"), "the least": (2.0**-126, "i4"), "denormal": (1e-40, "f32"),
       "infinite": (np.inf, "f32"), "NaN": (np.nan, "f32"), "too large": (3e38, "f32")}


@pytest.mark.parametrize("name", ODD)
def test_blocks_of_any_scale_compute_what_they_say(name, rnncc, run_for, tmp_path):
    """One block of column 3 has it. Denormal numbers count as 0, of weights as of all others."""
    scale, kept = ODD[name]
    rng = np.random.default_rng(8)
    b, x = Blocks(rng, 64, 20, 4, 32, None), rng.uniform(.5, 2, (2, 64)).astype(np.float32)
    b.numbers[3] = 12  # 4, so that nothing cancels
    b.scales[3, 1] = scale
    model = b.model(2, tmp_path / "model.onnx")
    (y,) = run_for("native", model, {"x": x}, ["y"]).values()
    b.scales[np.abs(b.scales) < 2.0**-126] = 0
    with np.errstate(all="ignore"):
        exact, terms = (part(x).astype(np.float64) @ part(b.wide()) for part in (np.asarray, np.abs))
        exact = exact.astype(np.float32)
        near = np.abs(y - exact) <= 16 * 2.0**-24 * terms
    assert (near | (np.isnan(y) & np.isnan(exact)) | (y == exact)).all(), (y[:, 3], exact[:, 3])
    types = next(line for line in rnncc("inspect", model).stdout.splitlines() if line.startswith("types"))
    assert f" of {kept}" in types and (kept == "i4" or "of i4" not in types), types


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["INT4", "UINT4", "INT8"])
def test_dequantised_blocks_stay_packed(dtype, axis, rnncc, run_for, tmp_path):
    """DequantizeLinear with blocks along the depth of a matrix product, against double precision."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng, kind = np.random.default_rng(5), getattr(TensorProto, dtype)
    least, most, zero = {"INT4": (-8, 7, 0), "UINT4": (0, 15, 8), "INT8": (-127, 127, 0)}[dtype]
    shape = (96, 67) if axis == 0 else (67, 96)
    numbers = rng.integers(least, most + 1, shape)
    scales = rng.uniform(1e-3, 1e-2, [length // 32 if k == axis else length for k, length in enumerate(shape)]).astype(np.float32)
    constants = [helper.make_tensor("numbers", kind, shape, numbers.ravel()), numpy_helper.from_array(scales, "scales")]
    if zero:
        constants.append(helper.make_tensor("zeros", kind, scales.shape, np.full(scales.size, zero)))
    nodes = [helper.make_node("DequantizeLinear", [tensor.name for tensor in constants], ["b"], axis=axis, block_size=32),
             helper.make_node("Gemm", ["x", "b"], ["y"], transB=axis)]
    graph = helper.make_graph(nodes, "blocks", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 96])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 67])], constants)
    model, x = tmp_path / "model.onnx", rng.standard_normal((3, 96)).astype(np.float32)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
    (y,) = run_for("native", model, {"x": x}, ["y"]).values()
    wide = (numbers - zero) * np.repeat(scales.astype(np.float64), 32, axis=axis)
    wide = wide.T if axis else wide
    assert (np.abs(y - x @ wide) <= 16 * 2.0**-24 * (np.abs(x) @ np.abs(wide))).all()
    types = next(line for line in rnncc("inspect", model).stdout.splitlines() if line.startswith("types"))
    assert f"of {'i8' if dtype == 'INT8' else 'i4'}" in types, types
