# SPDX-License-Identifier: MIT
"""`rnncc quantize --feedback`: integers make up for each other's errors in products with what the samples show, also those of
layers in bodies; --group: scales for groups."""
import numpy as np
import pytest
from support.bodies import Body
from support.feedback import lower_by_feedback
from support.model_builder import Model
from support.quantised import Written, error, quantise, rows, save

I, H, T, RUNS = 24, 16, 9, 8
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def drawn(seed, *shape):
    """Rows of few directions, as those of a network are."""
    rng = np.random.default_rng(seed)
    few = rng.normal(size=(4, shape[-1]))
    return (rng.normal(size=(*shape[:-1], 4)) @ few + 0.05 * rng.normal(size=shape)).astype(np.float32)


def weights(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 4


def used(arrays):
    """The runs that are not held out."""
    return [array for k, array in enumerate(arrays) if k % 4 != 3]


def stood_for(written, value):
    """What the integers of a constant stand for, one row a channel; their type is i8."""
    integers, scale = written.dequantised(value)
    attributes = written.producer[value]["attributes"]
    assert integers.dtype == np.int8
    scale = np.repeat(scale, attributes["block_size"], axis=attributes["axis"])
    return integers.astype(np.float32) * scale[tuple(map(slice, integers.shape))]


def assert_alike(got, due, weights, samples):
    """The same integers, but in rows of which one fell on half a step; and a smaller error than the nearest ones have."""
    assert (got == due).all(axis=1).mean() > 0.9, np.flatnonzero((got != due).any(axis=1))
    step = np.abs(weights).max(axis=1, keepdims=True) / 127
    nearest = np.rint(weights / step) * step
    errors = [np.square(samples @ (numbers - weights).T).sum() for numbers in (got, nearest)]
    assert errors[0] < 0.9 * errors[1], errors


@pytest.mark.parametrize("op, group", [("GRU", 8), ("LSTM", 0), ("RNN", 16)])
def test_weights_of_layers_are_chosen_by_what_they_multiply(rnncc, tmp_path, op, group):
    model = Model("cell")
    w, r = weights(1, 1, GATES[op] * H, I), weights(2, 1, GATES[op] * H, H)
    x, h = model.input("x", "f32", [T, 2, I]), model.input("h", "f32", [1, 2, H])
    model.node(op, [x, model.constant(w, "W"), model.constant(r, "R"), "", "", h], outputs=["y"], hidden_size=H)
    model.output("y")
    runs = [{"x": drawn(10 + k, T, 2, I), "h": drawn(50 + k, 1, 2, H)} for k in range(RUNS)]
    for name in "xh":
        save(tmp_path, name, [run[name] for run in runs])
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", "--feedback", *([f"--group={group}"] if group else []),
                    f"--data=x={tmp_path}/x*.npy", f"--data=h={tmp_path}/h*.npy")
    written, node = Written(tmp_path / "q.json"), Written(tmp_path / "q.json").node("n0", op)
    states = [array for run in used(runs) for array in (model.onnx_run(run)["y"], run["h"])]
    for value, given, seen, depth in ((node["inputs"][1], w, [run["x"] for run in used(runs)], I), (node["inputs"][2], r, states, H)):
        samples = np.concatenate([array.reshape(-1, depth) for array in seen])
        due = lower_by_feedback(given[0], samples, f"int8:{group}" if group else "int8")
        assert_alike(stood_for(written, value)[0], due, given[0], samples)
    assert rows(done)["n0"][5] == "int8 weights" and 0 < error(done) < 0.05


def looped(w, steps=5):
    """x = tanh(x W), so many times. What goes on is computed, lest the loop be unrolled."""
    model = Model("loop")
    x, trips = model.input("x", "f32", [3, I]), model.constant(np.array(steps), "trips")
    step = Body(model, i="i64", go="bool", x="f32")
    inner = step.inputs[-1]
    go = step.node("Less", [step.node("ReduceMax", [inner], keepdims=0), model.constant(np.float32(1e9))])
    step.output(go, step.node("Tanh", [step.node("MatMul", [inner, model.constant(w, "w")])]))
    model.output(model.node("Loop", [trips, None, x], ["last"], body=step))
    return model


def inner_value(written):
    (loop,) = [node for node in written.model["nodes"] if node["op"] == "Loop"]
    nodes = {name: node for node in loop["attributes"]["body"]["nodes"] for name in node["outputs"]}
    written.producer |= nodes
    (product,) = [node for node in nodes.values() if node["op"] == "MatMul"]
    return product["inputs"][1]


def test_weights_in_a_body_are_chosen_by_what_all_iterations_multiply(rnncc, tmp_path):
    w = weights(3, I, I) * 2
    model = looped(w)
    runs = [drawn(20 + k, 3, I) for k in range(RUNS)]
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", "--feedback", "--group=8", data=save(tmp_path, "x", runs))
    written, samples, x = Written(tmp_path / "q.json"), [], np.concatenate(used(runs))
    for _ in range(5):
        samples.append(x)
        x = np.tanh(x @ w)
    samples = np.concatenate(samples)
    assert_alike(stood_for(written, inner_value(written)).T, lower_by_feedback(w.T.copy(), samples, "int8:8"), w.T, samples)
    assert 0 < error(done) < 0.05


@pytest.mark.parametrize("options", [[], ["--group=8"]])
def test_weights_in_a_body_are_small_without_samples(rnncc, compile, tmp_path, options):
    w = weights(4, I, I)
    quantise(rnncc, looped(w).write(tmp_path), tmp_path / "q.json", *options)
    written = Written(tmp_path / "q.json")
    value = inner_value(written)
    numbers, scale = written.dequantised(value)
    assert numbers.dtype == np.int8 and scale.size == (I if not options else I * I // 8)
    compile(tmp_path / "q.json")


@pytest.mark.parametrize("bound, precision", [("1e-9", "f32"), ("0.5", "int8 weights")])
def test_layers_of_bodies_go_back_to_f32_last(rnncc, tmp_path, bound, precision):
    model = looped(weights(5, I, I))
    data = save(tmp_path, "x", [drawn(30 + k, 3, I) for k in range(RUNS)])
    done = quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", f"--max-error={bound}", data=data)
    assert f"{int(precision != 'f32')} of 1 layers in int8" in done.stdout and precision in done.stdout.splitlines()[1]
    assert error(done) <= float(bound)
