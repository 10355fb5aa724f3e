# SPDX-License-Identifier: MIT
"""`rnncc quantize`: the integers, scales and biases that it writes are those of its rules; errors are those of the module
that is compiled from what it wrote; layers go back to f32 until the bound is met."""
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from support.model_builder import Model
from support.quantised import Written, error, quantise, relative_error, rows, save

rng = np.random.default_rng(3)
N, C, H, K = 12, 3, 10, 8


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


W1, W2, W3 = normal(K, C, 3, 3) * np.geomspace(0.2, 4, K, dtype=np.float32)[:, None, None, None], normal(K, 2 * K, 1, 1), \
    normal(5, K)
B1, B3 = normal(K), normal(5)
IMAGES = [normal(1, C, H, H) for _ in range(N)]


@pytest.fixture(autouse=True)
def same_numbers():
    """Each test draws its own, whichever run before it."""
    global rng
    rng = np.random.default_rng(4)


def network():
    """Two branches behind a pooling, concatenated; a residual sum, a mean, a dense layer."""
    model = Model("net")
    x = model.input("x", "f32", [1, C, H, H])
    first = model.node("Relu", [model.node("Conv", [x, model.constant(W1, "w1"), model.constant(B1, "b1")], outputs=["first"],
                                           pads=[1, 1, 1, 1])])
    pooled = model.node("MaxPool", [first], outputs=["pooled"], kernel_shape=[2, 2], strides=[2, 2])
    both = model.node("Concat", [pooled, pooled], outputs=["both"], axis=1)
    second = model.node("Conv", [both, model.constant(W2, "w2")], outputs=["second"])
    summed = model.node("Add", [second, pooled], outputs=["summed"])
    mean = model.node("GlobalAveragePool", [summed], outputs=["mean"])
    flat = model.node("Flatten", [mean], outputs=["flat"])
    model.output(model.node("Gemm", [flat, model.constant(W3, "w3"), model.constant(B3, "b3")], outputs=["scores"], transB=1))
    return model


def values(name):
    """An intermediate value of the f32 network by ONNX Runtime, on the runs that give ranges."""
    model = network()
    model.output(name)
    return np.stack([model.onnx_run({"x": x})[name] for k, x in enumerate(IMAGES) if k % 4 != 3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    network().write(folder)
    save(folder, "x", IMAGES)
    return folder


def quantised(rnncc, folder, tmp_path, *options):
    done = quantise(rnncc, folder / "net.json", tmp_path / "net.int8.json", *options, data=folder / "x*.npy")
    return done, Written(tmp_path / "net.int8.json")


def test_weights_are_symmetric_by_output_channel(rnncc, folder, tmp_path):
    _, written = quantised(rnncc, folder, tmp_path)
    for name, weights, axis in (("n0", W1, 0), ("n4", W2, 0), ("n8", W3, 0)):
        op = "Gemm" if name == "n8" else "Conv"
        integers, scale = written.dequantised(written.node(name, op)["inputs"][1])
        rows_of = weights.reshape(len(weights), -1)
        assert integers.dtype == np.int8 and np.abs(integers.reshape(len(weights), -1)).max(1).tolist() == [127] * len(weights)
        assert np.allclose(scale, np.abs(rows_of).max(1) / 127, rtol=1e-6)
        assert (np.abs(integers.reshape(rows_of.shape) * scale[:, None] - rows_of) <= scale[:, None] * (0.5 + 1e-5)).all()


def test_ranges_of_minmax_are_those_of_the_runs_that_are_not_held_out(rnncc, folder, tmp_path):
    _, written = quantised(rnncc, folder, tmp_path, "--ranges=minmax")
    for value, name, op in (("x", "n0", "Conv"), ("both", "n4", "Conv"), ("second", "n5", "Add"), ("summed", "n6", "GlobalAveragePool"),
                            ("mean", "n8", "Gemm")):
        seen = np.stack([x for k, x in enumerate(IMAGES) if k % 4 != 3]) if value == "x" else values(value)
        scale, zero = written.grid(written.node(name, op)["inputs"][0])
        least, most = min(seen.min(), 0), max(seen.max(), 0)
        assert scale == pytest.approx((most - least) / 255, rel=1e-5) and zero == round(-least / scale), value


def test_biases_are_in_steps_of_the_product_of_the_scales(rnncc, folder, tmp_path):
    _, written = quantised(rnncc, folder, tmp_path, "--no-bias-correction")
    for name, op, bias in (("n0", "Conv", B1), ("n8", "Gemm", B3)):
        node = written.node(name, op)
        integers, steps = written.dequantised(node["inputs"][2])
        _, weights = written.dequantised(node["inputs"][1])
        scale, _ = written.grid(node["inputs"][0])
        assert integers.dtype == np.int32 and np.allclose(steps, scale * weights, rtol=1e-6)
        assert (np.abs(integers * steps.astype(float) - bias) <= 0.51 * steps).all()
    assert len(written.node("n4", "Conv")["inputs"]) == 2  # it had no bias


def test_corrected_biases_take_away_the_mean_that_rounding_adds(rnncc, folder, tmp_path):
    _, written = quantised(rnncc, folder, tmp_path)
    node = written.node("n4", "Conv")
    integers, steps = written.dequantised(node["inputs"][2])
    rounded, scale = written.dequantised(node["inputs"][1])
    drift = (rounded[:, :, 0, 0] * scale[:, None] - W2[:, :, 0, 0]) @ values("both").mean((0, 1, 3, 4))
    assert np.abs(drift).max() > 3 * steps.max()
    assert (np.abs(integers * steps.astype(float) + drift) <= 0.51 * steps + 1e-5).all()


def onnxruntime_error(tmp_path):
    """Of what ONNX Runtime's quantiser makes of the same network by the same samples."""
    quantization = pytest.importorskip("onnxruntime.quantization")

    class Samples(quantization.CalibrationDataReader):
        left = iter([{"x": x} for k, x in enumerate(IMAGES) if k % 4 != 3])

        def get_next(self):
            return next(self.left, None)

    onnx.save(network().onnx(), tmp_path / "net.onnx")
    quantization.quantize_static(str(tmp_path / "net.onnx"), str(tmp_path / "q.onnx"), Samples(), per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    session = onnxruntime.InferenceSession(tmp_path / "q.onnx", providers=["CPUExecutionProvider"])
    held = IMAGES[3::4]
    return relative_error([session.run(None, {"x": x})[0] for x in held],
                          [network().onnx_run({"x": x})["scores"] for x in held])


def test_the_error_is_no_more_than_that_of_onnx_runtimes_quantiser(rnncc, folder, tmp_path):
    done, _ = quantised(rnncc, folder, tmp_path)
    assert all(row[5] == "int8" for row in rows(done).values())
    assert error(done) <= onnxruntime_error(tmp_path)


def test_what_moves_and_compares_keeps_the_scale(rnncc, folder, tmp_path):
    _, written = quantised(rnncc, folder, tmp_path)
    pool = written.node("n2", "MaxPool")
    concat = written.node("n3", "Concat")
    flat = written.node("n7", "Flatten")
    assert written.grid(pool["inputs"][0]) == written.grid(concat["inputs"][0]) == written.grid(concat["inputs"][1])
    assert written.grid(flat["inputs"][0]) == written.grid(written.node("n8", "Gemm")["inputs"][0])


@pytest.mark.every_case
@pytest.mark.parametrize("options", [(), ("--ranges=minmax", "--no-bias-correction"), ("--ranges=percentile:99",),
                                     ("--equalize",), ("--max-error=0.006",)], ids=" ".join)
def test_the_error_is_that_of_the_written_model_on_the_runs_that_are_held_out(rnncc, compile, rnnrun, folder, tmp_path, options):
    done, _ = quantised(rnncc, folder, tmp_path, *options)
    module = compile(tmp_path / "net.int8.json")
    got, expected = [], []
    for k in range(3, N, 4):
        run = rnnrun("run", module, "--input", f"x=@{folder}/x{k:03}.npy", "--output", f"scores=@{tmp_path}/y.npy")
        assert run.returncode == 0, run.stderr
        got.append(np.load(tmp_path / "y.npy"))
        expected.append(network().onnx_run({"x": IMAGES[k]})["scores"])
    # 1e-4: a value on the edge of two of the 256 may fall to either side where sums are in another order
    assert error(done) == pytest.approx(relative_error(got, expected), rel=0.01, abs=1e-4)
    assert 1e-4 < error(done) < 0.05


def test_the_most_sensitive_layers_go_back_until_the_bound_is_met(rnncc, folder, tmp_path):
    whole, _ = quantised(rnncc, folder, tmp_path)
    alone = {name: row[4] for name, row in rows(whole).items()}
    assert set(row[5] for row in rows(whole).values()) == {"int8"} and len(alone) == 6
    assert all(0 < value < 0.05 for value in alone.values())
    counts = []
    for bound in (error(whole) * 0.7, error(whole) * 0.4):
        done, written = quantised(rnncc, folder, tmp_path, f"--max-error={bound}")
        assert error(done) <= bound
        weighted = [name for name in ("n0", "n4", "n8")]
        back = [name for name in weighted if rows(done)[name][5] == "f32"]
        kept = [name for name in weighted if name not in back]
        assert back and min(alone[name] for name in back) >= max([alone[name] for name in kept], default=0)
        counts.append(sum(row[5] == "int8" for row in rows(done).values()))
    assert counts[0] > counts[1]


def test_the_error_of_a_layer_alone_has_none_of_the_layers_before_it(rnncc, tmp_path):
    """Of the first one most weights are less than half a step, by one that multiplies zeros."""
    model = Model("two")
    first = 0.01 * normal(32, 24)
    first[0] = 10
    hidden = model.node("MatMul", [model.input("x", "f32", [8, 32]), model.constant(first)])
    model.output(model.node("MatMul", [hidden, model.constant(normal(24, 6))]))
    data = save(tmp_path, "x", [normal(8, 32) * (np.arange(32) > 0) for _ in range(8)])
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", data=data)
    assert rows(done)["n0"][4] > 0.5 and 0 < rows(done)["n1"][4] < 0.05


def test_a_bound_that_all_layers_meet_keeps_them(rnncc, folder, tmp_path):
    free, written = quantised(rnncc, folder, tmp_path)
    bound, same = quantised(rnncc, folder, tmp_path, f"--max-error={error(free) * 1.01}")
    assert rows(bound) == rows(free) and written.model == same.model


def test_what_is_held_out_gives_no_range(rnncc, folder, tmp_path):
    save(tmp_path, "x", [1000 * x if k % 4 == 3 else x for k, x in enumerate(IMAGES)])
    held = quantise(rnncc, folder / "net.json", tmp_path / "a.json", "--ranges=minmax", data=tmp_path / "x*.npy")
    plain, _ = quantised(rnncc, folder, tmp_path, "--ranges=minmax")
    assert [row[:4] for row in rows(held).values()] == [row[:4] for row in rows(plain).values()]
    assert error(held) > 5 * error(plain)


def test_pieces_of_a_file_are_samples_in_a_row(rnncc, folder, tmp_path):
    np.save(tmp_path / "all.npy", np.concatenate(IMAGES))
    one = quantise(rnncc, folder / "net.json", tmp_path / "one.json", data=tmp_path / "all.npy")
    many = quantise(rnncc, folder / "net.json", tmp_path / "many.json", data=f"x={folder}/x*.npy")
    assert one.stdout == many.stdout
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "many.safetensors").read_bytes()


def dense(scale=1):
    """y = Relu(x W1 + c) W2; the hidden channels in these scales."""
    model = Model("dense")
    model.dim("B", 1, 64, 64)
    x = model.input("x", "f32", ["B", 32])
    hidden = model.node("Relu", [model.node("Gemm", [x, model.constant(SPREAD1 * scale, "a"), model.constant(SPREADB * scale, "c")])])
    model.output(model.node("Gemm", [hidden, model.constant(SPREAD2 / np.reshape(np.float32(scale), (-1, 1)), "b")], outputs=["y"]))
    return model


SPREAD1, SPREADB, SPREAD2 = normal(32, 24), normal(24), normal(24, 6)


def test_rules_of_ranges_cut_tails(rnncc, tmp_path):
    dense().write(tmp_path)
    data = rng.standard_t(3, size=(64 * 8, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", data)
    ranges, errors = {}, {}
    for rule in ("minmax", "percentile:99.9", "percentile:98", "mse"):
        done = quantise(rnncc, tmp_path / "dense.json", tmp_path / "q.json", f"--ranges={rule}", data=tmp_path / "x.npy")
        _, least, most, *_ = rows(done)["n0"]
        ranges[rule], errors[rule] = (least, most), error(done)
    calibrated = np.concatenate([data[64 * k:64 * k + 64] for k in range(8) if k % 4 != 3])
    assert ranges["minmax"] == pytest.approx((calibrated.min(), calibrated.max()), rel=1e-3)
    for rule, kept in (("percentile:99.9", 99.9), ("percentile:98", 98)):
        tails = np.percentile(calibrated, [(100 - kept) / 2, 100 - (100 - kept) / 2])
        bin_of = (calibrated.max() - calibrated.min()) / 2048
        assert np.abs(np.array(ranges[rule]) - tails).max() <= 2 * bin_of + 0.05 * abs(tails).max()
    assert ranges["minmax"][1] > ranges["mse"][1] > 0

    def grid_error(least, most):
        scale = (most - least) / 255
        zero = round(-least / scale)
        return (((np.clip(np.round(calibrated / scale) + zero, 0, 255) - zero) * scale - calibrated) ** 2).sum()

    assert grid_error(*ranges["mse"]) <= 1.02 * min(grid_error(*of) for of in ranges.values())


def test_equalising_undoes_channels_of_unlike_scales(rnncc, tmp_path):
    spread = np.geomspace(0.01, 100, 24).astype(np.float32)
    dense(spread).write(tmp_path)
    np.save(tmp_path / "x.npy", rng.normal(size=(64 * 8, 32)).astype(np.float32))
    plain = quantise(rnncc, tmp_path / "dense.json", tmp_path / "p.json", data=tmp_path / "x.npy")
    done = quantise(rnncc, tmp_path / "dense.json", tmp_path / "q.json", "--equalize", data=tmp_path / "x.npy")
    assert error(done) < 0.1 * error(plain) and error(done) < 0.02
    written = Written(tmp_path / "q.json")
    first, second = (written.dequantised(written.node(name, "Gemm")["inputs"][1]) for name in ("n0", "n2"))
    out = np.abs(first[0] * first[1]).max(0)
    into = np.abs(second[0] * second[1]).max(1)
    assert np.allclose(out, into, rtol=0.05)


def test_equalising_reaches_convolutions_and_groups(rnncc, tmp_path):
    """Behind a pooling, a convolution of two groups, then one of single pixels; hidden channels of unlike scales."""
    channels, spread = 8, np.geomspace(0.02, 50, 8).astype(np.float32)
    into = (1 / spread).reshape(2, -1).repeat(channels // 2, axis=0)
    weights = [normal(channels, 3, 3, 3) * spread.reshape(-1, 1, 1, 1),
               normal(channels, channels // 2, 3, 3) * into[:, :, None, None] * spread[::-1].reshape(-1, 1, 1, 1),
               normal(5, channels, 1, 1) / spread[::-1].reshape(1, -1, 1, 1)]
    model = Model("convs")
    value = model.input("x", "f32", [1, 3, 12, 12])
    for k, (own, group) in enumerate(zip(weights, (1, 2, 1), strict=True)):
        if k == 1:
            value = model.node("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
        bias = [model.constant(normal(len(own)) * np.abs(own).max((1, 2, 3)))] if k < 2 else []
        value = model.node("Conv", [value, model.constant(own), *bias], outputs=[f"conv{k}"], group=group)
        value = model.node("Relu", [value]) if k < 2 else value
    model.output(value)
    path, data = model.write(tmp_path), save(tmp_path, "x", [normal(1, 3, 12, 12) for _ in range(12)])
    plain = quantise(rnncc, path, tmp_path / "p.json", data=data)
    done = quantise(rnncc, path, tmp_path / "q.json", "--equalize", data=data)
    assert error(done) < 0.3 * error(plain)
    written = Written(tmp_path / "q.json")
    integers = [written.dequantised(node["inputs"][1]) for node in written.model["nodes"] if node["op"] == "Conv"]
    first, second, third = [np.abs(numbers * scale.reshape(-1, 1, 1, 1)) for numbers, scale in integers]
    assert np.allclose(first.max((1, 2, 3)), second.reshape(2, 4, 4, 9).max((1, 3)).ravel(), rtol=0.1)
    assert np.allclose(second.max((1, 2, 3)), third.max((0, 2, 3)), rtol=0.1)


def test_a_batch_normalisation_with_numbers_of_f16_is_part_of_its_convolution(rnncc, tmp_path):
    """As one with the same numbers in f32 is."""
    weights, data = normal(K, C, 3, 3), save(tmp_path, "x", [normal(1, C, H, H) for _ in range(4)])
    numbers = [np.abs(normal(K)).astype(np.float16) + np.float16(0.5) for _ in range(4)]
    scales = []
    for dtype in (np.float32, np.float16):
        model = Model("normal")
        x = model.node("Conv", [model.input("x", "f32", [1, C, H, H]), model.constant(weights)])
        constants = [model.constant(array.astype(dtype)) for array in numbers]
        model.output(model.node("BatchNormalization", [x, *constants], outputs=["y"]))
        quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", data=data)
        written = Written(tmp_path / "q.json")
        scales.append(written.dequantised(written.node("n0", "Conv")["inputs"][1])[1])
        assert not [node for node in written.model["nodes"] if node["op"] == "BatchNormalization"]
    np.testing.assert_allclose(scales[1], scales[0], rtol=1e-6)


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("directions", [1, 2])
def test_recurrent_weights_have_a_scale_by_row_and_direction(rnncc, rnnrun, compile, tmp_path, op, gates, directions):
    model = Model("cell")
    model.dim("T", 1, 6, 12)
    x = model.input("x", "f32", ["T", 2, 7])
    w, r = normal(directions, gates * 5, 7), normal(directions, gates * 5, 5)
    names = ["steps", "hN"]
    model.node(op, [x, model.constant(w, "W"), model.constant(r, "R")], outputs=names, hidden_size=5,
               direction="bidirectional" if directions == 2 else "forward")
    model.output("steps")
    model.write(tmp_path)
    data = save(tmp_path, "x", [normal(5 + k % 3, 2, 7) for k in range(8)])
    done = quantise(rnncc, tmp_path / "cell.json", tmp_path / "q.json", data=data)
    written = Written(tmp_path / "q.json")
    for value, weights in zip(written.node("n0", op)["inputs"][1:3], (w, r)):
        integers, scale = written.dequantised(value)
        expected = np.abs(weights).max(2) / 127
        assert np.allclose(scale.reshape(expected.shape), expected, rtol=1e-6)
        assert (np.abs(integers * expected[..., None] - weights) <= expected[..., None] * 0.501).all()
    assert rows(done)["n0"][5] == "int8 weights" and 0 < error(done) < 0.03
    small = quantise(rnncc, tmp_path / "cell.json", tmp_path / "w.json")
    assert (tmp_path / "w.safetensors").read_bytes() == (tmp_path / "q.safetensors").read_bytes()
    assert rows(small)["n0"][5] == "int8 weights"
    compile(tmp_path / "w.json")
    dynamic = quantise(rnncc, tmp_path / "cell.json", tmp_path / "d.json", "--recurrent=dynamic", data=data)
    assert Written(tmp_path / "d.json").node("n0", op)["attributes"]["precision"] == "int8-dynamic"
    assert rows(dynamic)["n0"][5] == "int8" and error(dynamic) != error(done) and 0 < error(dynamic) < 0.05


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("rule", ["minmax", "mse"])
def test_fixed_ranges_are_those_of_what_the_layer_reads_and_of_all_its_states(rnncc, tmp_path, op, gates, rule):
    """Of a layer that gives only its last state, and begins with one that is larger than those that it makes."""
    model, whole = Model("cell"), Model("whole")
    w, r = normal(1, gates * 5, 7), normal(1, gates * 5, 5)
    for net, names in ((model, ["", "hN"]), (whole, ["steps", "hN"])):
        net.dim("T", 1, 6, 12)
        x, h = net.input("x", "f32", ["T", 2, 7]), net.input("h", "f32", [1, 2, 5])
        net.node(op, [x, net.constant(w, "W"), net.constant(r, "R"), "", "", h], outputs=names, hidden_size=5)
        net.output(*filter(None, names))
        net.write(tmp_path)
    runs = [{"x": normal(5 + k % 3, 2, 7), "h": 2 * normal(1, 2, 5)} for k in range(8)]
    for name in "xh":
        save(tmp_path, name, [run[name] for run in runs])
    done = quantise(rnncc, tmp_path / "cell.json", tmp_path / "q.json", "--recurrent=static", f"--ranges={rule}",
                    f"--data=x={tmp_path}/x*.npy", f"--data=h={tmp_path}/h*.npy")
    node = Written(tmp_path / "q.json").node("n0", op)
    assert node["attributes"]["precision"] == "int8-static" and node["outputs"][0] == ""
    seen = [run for k, run in enumerate(runs) if k % 4 != 3]
    states = [array for run in seen for array in (run["h"], whole.onnx_run(run)["steps"])]
    for key, arrays in (("input_range", [run["x"] for run in seen]), ("hidden_range", states)):
        ends = [min(array.min() for array in arrays), max(array.max() for array in arrays)]
        least, most = node["attributes"][key]
        if rule == "minmax":
            assert (least, most) == pytest.approx(ends, rel=1e-4), key
        else:
            assert ends[0] * 1.001 <= least < 0.7 * ends[0] and 0.7 * ends[1] < most <= 1.001 * ends[1], key
    row = rows(done)["n0"]
    assert row[1:3] == pytest.approx(node["attributes"]["input_range"], rel=1e-3) and row[5] == "int8" and 0 < row[4] == error(done) < 0.05


@pytest.mark.parametrize("options", [[], ["--feedback"]])
def test_weights_of_seven_bits_are_63_at_most(rnncc, tmp_path, options):
    model = Model("cell")
    w, r = normal(1, 20, 7), normal(1, 20, 5)
    model.node("LSTM", [model.input("x", "f32", [6, 2, 7]), model.constant(w, "W"), model.constant(r, "R")], outputs=["y"], hidden_size=5)
    model.output("y")
    data = save(tmp_path, "x", [normal(6, 2, 7) for _ in range(8)])
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", "--recurrent=static", "--seven-bits", *options, data=data)
    written = Written(tmp_path / "q.json")
    for value, given in zip(written.node("n0", "LSTM")["inputs"][1:3], (w, r)):
        step = np.abs(given).max(2, keepdims=True) / 63
        integers = written.arrays[value] / step
        assert np.abs(integers - np.rint(integers)).max() < 1e-3 and np.abs(integers).max() < 63.01
    assert 0 < error(done) < 0.05


def test_products_of_integers_take_weights_of_any_size(rnncc, tmp_path):
    model = Model("large")
    x = model.input("x", "f32", [6, 1, 140])
    model.node("GRU", [x, model.constant(normal(1, 390, 140), "W"), model.constant(normal(1, 390, 130) / 9, "R")],
               outputs=["y", ""], hidden_size=130)
    model.output("y")
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", "--recurrent=dynamic",
                    data=save(tmp_path, "x", [normal(6, 1, 140) for _ in range(8)]))
    assert 0 < error(done) < 0.05
    weights = Written(tmp_path / "q.json").arrays["W"].astype(float)
    steps = weights / (np.abs(model.arrays["W"]).max(2, keepdims=True) / 127)
    assert np.abs(steps - np.round(steps)).max() < 1e-3 and np.abs(steps).max() < 127.01


def streaming():
    """A running mean in a state, and two inputs, one of them of integers."""
    model = Model("stream")
    model.dim("T", 1, 4, 4)
    x, rows_of = model.input("x", "f32", ["T", 6]), model.input("rows", "i64", ["T"])
    state = model.state("h", "h_next", "f32", [1, 6])
    table = model.node("Gather", [model.constant(normal(5, 6), "table"), rows_of])
    summed = model.node("Add", [model.node("Add", [x, table]), state])
    model.node("ReduceMean", [summed, model.constant(np.array([0]), "axes")], outputs=["h_next"])
    model.output(model.node("MatMul", [summed, model.constant(normal(6, 9), "w")], outputs=["y"]))
    return model


def test_states_pass_through_the_pieces_of_a_file_and_inputs_have_names(rnncc, tmp_path):
    model = streaming()
    model.write(tmp_path)
    given, seen = [], []
    for k in range(2):
        x, r = normal(16, 6), rng.integers(0, 5, 16)
        np.save(tmp_path / f"x{k}.npy", x)
        np.save(tmp_path / f"r{k}.npy", r)
        given.append((x, r))
        state = np.zeros((1, 6), np.float32)
        for i in range(0, 16, 4):
            out = model.onnx_run({"x": x[i:i + 4], "rows": r[i:i + 4], "h": state})
            if i // 4 + 4 * k not in (3, 7):
                seen.append(x[i:i + 4] + model.arrays["table"][r[i:i + 4]] + state)
            state = out["h_next"]
    done = quantise(rnncc, tmp_path / "stream.json", tmp_path / "q.json", f"--data=rows={tmp_path}/r*.npy", "--ranges=minmax",
                    data=f"x={tmp_path}/x*.npy")
    _, least, most, *_ = rows(done)["n4"]
    assert (least, most) == pytest.approx((min(0, np.min(seen)), np.max(seen)), rel=1e-3)
    assert "on 2 samples that were held out" in done.stdout and error(done) < 0.1


def test_the_picture_has_a_bar_for_each_layer(rnncc, folder, tmp_path):
    quantised(rnncc, folder, tmp_path, f"--plot={tmp_path}/layers.svg")
    svg = (tmp_path / "layers.svg").read_text()
    assert svg.startswith("<svg") and svg.endswith("</svg>\n")
    assert len(re.findall('<rect class="int8"', svg)) == 6 and "n8 (Gemm)" in svg


def test_the_default_output_is_in_this_folder(rnncc, folder, tmp_path):
    done = rnncc("quantize", folder / "net.json", cwd=tmp_path)
    assert done.returncode == 0 and sorted(path.name for path in tmp_path.iterdir()) == ["net.int8.json", "net.int8.safetensors"]
    assert (tmp_path / "net.int8.safetensors").stat().st_size < (folder / "net.safetensors").stat().st_size 


@pytest.mark.parametrize("product_first", [False, True])
def test_biases_are_corrected_by_means_of_their_own_layers_channels(rnncc, tmp_path, product_first):
    """A product along another axis reads the same data, which has fewer numbers there."""
    channels, points = 64, 4
    model = Model("axes")
    x = model.input("x", "f32", [1, channels, points])
    weights, bias, columns = normal(2, channels, 1), normal(2), normal(points, 5)

    def product():
        model.output(model.node("MatMul", [x, model.constant(columns, "m")]))

    if product_first:
        product()
    model.output(model.node("Conv", [x, model.constant(weights, "w"), model.constant(bias, "b")], outputs=["y"]))
    if not product_first:
        product()
    samples = [normal(1, channels, points) + np.arange(channels, dtype=np.float32)[:, None] % 7 for _ in range(8)]
    quantise(rnncc, model.write(tmp_path), tmp_path / "axes.int8.json", data=save(tmp_path, "x", samples))
    written = Written(tmp_path / "axes.int8.json")
    means = np.mean([sample for k, sample in enumerate(samples) if k % 4 != 3], axis=(0, 1, 3))
    node = next(node for node in written.model["nodes"] if node["op"] == "Conv")
    integers, scale = written.dequantised(node["inputs"][1])
    drift = (integers * np.reshape(scale, (-1, 1, 1)) - weights)[:, :, 0] @ means
    integers, scale = written.dequantised(node["inputs"][2])
    np.testing.assert_allclose(integers * scale, bias - drift, atol=np.max(scale))
