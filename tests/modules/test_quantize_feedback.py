# SPDX-License-Identifier: MIT
"""`rnncc quantize --feedback`: integers make up for each other's errors in products with what the samples show, also those of
layers in bodies; --group: scales for groups."""
import json

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


def inner_values(written, op="MatMul"):
    """Weights of the products of a body, in its order; that of a loop within it counts as the same."""
    nodes = list(written.model["nodes"])
    for node in nodes:
        nodes += node.get("attributes", {}).get("body", {}).get("nodes", [])
        written.producer |= {name: node for name in node["outputs"]}
    return [node["inputs"][1] for node in nodes if node["op"] == op]


def inner_value(written):
    (value,) = inner_values(written)
    return value


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


@pytest.mark.parametrize("options", [["--group=8"], ["--group=8", "--data"], ["--group=8", "--feedback", "--data"]], ids=" ".join)
def test_groups_of_zeros_stay_zeros_in_a_model_that_compiles(rnncc, compile, tmp_path, options):
    w = weights(6, I, I)
    w[8:16, 3] = 0
    w[:, 5] = 0
    data = save(tmp_path, "x", [drawn(40 + k, 3, I) for k in range(RUNS)]) if "--data" in options else None
    quantise(rnncc, looped(w).write(tmp_path), tmp_path / "q.json", *(option for option in options if option != "--data"), data=data)
    written = Written(tmp_path / "q.json")
    got = stood_for(written, inner_value(written))
    assert (got[w == 0] == 0).all() and np.abs(got - w).max() < 0.05
    compile(tmp_path / "q.json")


def cell(sides, directory, op="GRU", most=T, names=("y", "h_n")):
    """Layers, each of an (input, W, R), side by side; equal arrays are one constant."""
    model = Model("cells")
    model.dim("T", 1, T, most)
    for k, (x, w, r) in enumerate(sides):
        value = x if x in [given["name"] for given in model.inputs] else model.input(x, "f32", ["T", 2, I])
        outputs = [name and f"{name}{k}" for name in names]
        model.node(op, [value, model.constant(w, f"W{id(w)}"), model.constant(r, f"R{id(r)}")], outputs=outputs, hidden_size=H)
        model.output(*filter(None, outputs))
    return model.write(directory)


def test_a_unit_without_recurrent_weights_is_one_in_a_model_that_compiles(rnncc, compile, tmp_path):
    w, r = weights(7, 1, 3 * H, I), weights(8, 1, 3 * H, H)
    r[0, 5] = 0
    data = save(tmp_path, "x", [drawn(45 + k, T, 2, I) for k in range(RUNS)])
    quantise(rnncc, cell([("x", w, r)], tmp_path), tmp_path / "q.json", "--feedback", data=data)
    written = Written(tmp_path / "q.json")
    got = stood_for(written, written.node("n0", "GRU")["inputs"][2])
    assert (got[0, 5] == 0).all() and np.abs(got - r).max() < 0.05
    compile(tmp_path / "q.json")


@pytest.mark.parametrize("op, shape, attributes", [("MatMul", (1, 12), {}), ("Gemm", (1, 12), {}), ("Gemm", (12, 1), {"transB": 1}),
                                                   ("MatMul", (12, 12), {}), ("MatMul", (1, 1), {})])
def test_groups_stand_along_the_axis_that_is_summed_over(rnncc, compile, tmp_path, op, shape, attributes):
    model, w = Model("narrow"), weights(9, *shape)
    x = model.input("x", "f32", [3, shape[1] if attributes else shape[0]])
    model.output(model.node(op, [x, model.constant(w)], **attributes))
    quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", "--group=8")
    written = Written(tmp_path / "q.json")
    value = written.node("n0", op)["inputs"][1]
    assert written.producer[value]["attributes"]["axis"] == (1 if attributes else 0) or shape == (1, 1)
    assert np.abs(stood_for(written, value) - w).max() < 0.005
    compile(tmp_path / "q.json")


def growing():
    """A cache that gets a row in each iteration, and what is computed of its mean."""
    model = Model("cache")
    x, trips = model.input("x", "f32", [1, I]), model.constant(np.array(5), "trips")
    step = Body(model, i="i64", go="bool", cache="f32")
    cache = step.inputs[-1]
    keys = step.node("MatMul", [cache, model.constant(weights(11, I, I), "keys")])
    mean = step.node("ReduceMean", [keys, model.constant(np.array([0]), "axes")], keepdims=1)
    row = step.node("Tanh", [step.node("MatMul", [mean, model.constant(weights(12, I, I), "next")])])
    go = step.node("Less", [step.node("ReduceMax", [row], keepdims=0), model.constant(np.float32(1e9))])
    step.output(go, step.node("Concat", [cache, row], axis=0))
    model.output(model.node("ReduceMean", [model.node("Loop", [trips, None, x], body=step), "axes"], keepdims=1))
    return model, ["keys"], ["next"]


def nested():
    """A loop of as many iterations as a sum says, in a loop."""
    model = Model("nested")
    x, trips = model.input("x", "f32", [1, I]), model.constant(np.array(5), "trips")
    outer, inner = Body(model, i="i64", go="bool", x="f32"), Body(model, i="i64", go="bool", x="f32")
    large = model.constant(np.float32(1e9))

    def tanh(body, x, seed, name):
        y = body.node("Tanh", [body.node("MatMul", [x, model.constant(weights(seed, I, I), name)])])
        return body.node("Less", [body.node("ReduceMax", [y], keepdims=0), large]), y

    inner.output(*tanh(inner, inner.inputs[-1], 13, "inner"))
    between = outer.node("Loop", ["trips", None, outer.inputs[-1]], body=inner)
    outer.output(*tanh(outer, between, 14, "outer"))
    model.output(model.node("Loop", [trips, None, x], body=outer))
    return model, ["inner"], ["outer"]


@pytest.mark.parametrize("network", [growing, nested])
def test_what_has_another_shape_in_each_iteration_is_not_seen_and_a_warning_says_so(rnncc, tmp_path, network):
    model, hidden, seen = network()
    path, data = model.write(tmp_path), save(tmp_path, "x", [drawn(60 + k, 1, I) for k in range(RUNS)])
    plain = quantise(rnncc, path, tmp_path / "p.json", "--group=8", data=data)
    done = quantise(rnncc, path, tmp_path / "q.json", "--group=8", "--feedback", data=data)
    nearest, got = Written(tmp_path / "p.json").arrays, Written(tmp_path / "q.json").arrays
    assert all((nearest[name] == got[name]).all() for name in hidden)
    assert all((nearest[name] != got[name]).any() for name in seen)
    assert all(f"`{name}` has the nearest integers" in done.stderr for name in hidden)
    assert done.stderr.count("has the nearest integers") == len(hidden) and "nearest integers" not in plain.stderr


def test_a_warning_names_what_is_too_deep_to_be_chosen(rnncc, tmp_path):
    """Only what rounds otherwise than the option says: not R, and nothing where the option is not given."""
    model = Model("deep")
    x = model.input("x", "f32", [2, 1, 1025])
    for name in ("first", "second"):
        w, r = model.constant(weights(len(name), 1, 8, 1025), f"W_{name}"), model.constant(weights(1, 1, 8, 8), f"R_{name}")
        model.node("RNN", [x, w, r], outputs=[f"y_{name}"], hidden_size=8)
        model.output(f"y_{name}")
    path, data = model.write(tmp_path), save(tmp_path, "x", [drawn(k, 2, 1, 1025) for k in range(4)])
    done = quantise(rnncc, path, tmp_path / "q.json", "--feedback", data=data)
    assert ("--feedback: where products sum more than 1024 numbers, the integers are the nearest ones: `W_first` (K = 1025), "
            "`W_second` (K = 1025)\n") in done.stderr and "R_" not in done.stderr and done.stderr.count("K = ") == 2
    assert "feedback" not in quantise(rnncc, path, tmp_path / "q.json", data=data).stderr


def test_outside_loops_activations_of_any_size_are_seen(rnncc, tmp_path):
    w, r = weights(15, 1, 3 * H, I), weights(16, 1, 3 * H, H)
    data = save(tmp_path, "x", [drawn(70 + k, T, 2, I) for k in range(RUNS)])
    written = []
    for most in (T, 1 << 20):
        quantise(rnncc, cell([("x", w, r)], tmp_path, most=most, names=("", "h_n")), tmp_path / "q.json", "--feedback", data=data)
        written.append((tmp_path / "q.safetensors").read_bytes())
    assert written[0] == written[1]


def test_a_run_shows_no_rows_of_a_longer_one_before_it(rnncc, tmp_path):
    """So that the order of runs changes nothing: their numbers are small integers, of which sums are exact."""
    rng = np.random.default_rng(23)
    runs = [rng.integers(-4, 5, (steps, 2, I)).astype(np.float32) for steps in (T, 5, 4)]
    path, integers = cell([("x", weights(24, 1, H, I), weights(25, 1, H, H))], tmp_path, "RNN"), []
    for number, order in enumerate((runs, runs[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        quantise(rnncc, path, folder / "q.json", "--feedback", data=save(folder, "x", order))
        written = Written(folder / "q.json")
        integers.append(written.dequantised(written.node("n0", "RNN")["inputs"][1])[0])
    assert (integers[0] == integers[1]).all()


def test_equal_weights_stay_equal_and_are_chosen_by_all_that_they_multiply(rnncc, tmp_path):
    """Of three layers W is one; R is one of the first two."""
    w, r, other = weights(17, 1, H, I), weights(18, 1, H, H), weights(19, 1, H, H)
    sides = [("a", w, r), ("b", w, r), ("b", w, other)]
    runs = [{name: drawn(80 + k + 20 * (name == "b"), T, 2, I) for name in "ab"} for k in range(RUNS)]
    for name in "ab":
        save(tmp_path, name, [run[name] for run in runs])
    quantise(rnncc, cell(sides, tmp_path, "RNN"), tmp_path / "q.json", "--feedback",
             *(f"--data={name}={tmp_path}/{name}*.npy" for name in "ab"))
    written = Written(tmp_path / "q.json")
    values = [written.node(f"n{k}", "RNN")["inputs"][1:3] for k in range(3)]
    got = [[stood_for(written, value)[0] for value in pair] for pair in values]

    def states(x, r):
        h, made = np.zeros((2, H), np.float32), []
        for step in x:
            h = np.tanh(step @ w[0].T + h @ r[0].T)
            made.append(h)
        return np.concatenate(made)

    inputs = np.concatenate([run[name].reshape(-1, I) for run in used(runs) for name in "abb"])
    both, last = (np.concatenate([states(run[name], of) for run in used(runs) for name in names])
                  for names, of in (("ab", r), ("b", other)))
    assert_alike(got[0][0], lower_by_feedback(w[0], inputs, "int8"), w[0], inputs)
    assert_alike(got[0][1], lower_by_feedback(r[0], both, "int8"), r[0], both)
    assert_alike(got[2][1], lower_by_feedback(other[0], last, "int8"), other[0], last)
    assert all((got[k][0] == got[0][0]).all() for k in (1, 2)) and (got[1][1] == got[0][1]).all()


def test_weights_that_are_used_transposed_too_are_chosen_apart(rnncc, compile, tmp_path):
    model, w = Model("tied"), weights(20, I, H) * 2
    x, trips = model.input("x", "f32", [3, I]), model.constant(np.array(5), "trips")
    step = Body(model, i="i64", go="bool", x="f32")
    tied = model.constant(w, "tied")
    code = step.node("Tanh", [step.node("Gemm", [step.inputs[-1], tied])])
    back = step.node("Tanh", [step.node("Gemm", [code, tied], transB=1)])
    step.output(step.node("Less", [step.node("ReduceMax", [back], keepdims=0), model.constant(np.float32(1e9))]), back)
    model.output(model.node("Loop", [trips, None, x], body=step))
    runs = [drawn(120 + k, 3, I) for k in range(RUNS)]
    quantise(rnncc, model.write(tmp_path), tmp_path / "q.json", "--feedback", "--group=8", data=save(tmp_path, "x", runs))
    written, x, seen = Written(tmp_path / "q.json"), np.concatenate(used(runs)), ([], [])
    for _ in range(5):
        seen[0].append(x)
        seen[1].append(np.tanh(x @ w))
        x = np.tanh(seen[1][-1] @ w.T)
    for value, given, samples in zip(inner_values(written, "Gemm"), (w.T, w), map(np.concatenate, seen)):
        got = stood_for(written, value)
        got = got.T if given is not w else got
        assert_alike(got, lower_by_feedback(np.ascontiguousarray(given), samples, "int8:8"), given, samples)
    compile(tmp_path / "q.json")


@pytest.mark.parametrize("options", [["--feedback"], ["--recurrent=static"]], ids=" ".join)
def test_a_layer_without_outputs_is_no_obstacle(rnncc, compile, tmp_path, options):
    w, r = weights(21, 1, H, I), weights(22, 1, H, H)
    data = save(tmp_path, "x", [drawn(140 + k, T, 2, I) for k in range(RUNS)])
    path = cell([("x", w, r), ("x", w, r)], tmp_path, "RNN")
    model = json.loads(path.read_text())
    model["nodes"][1]["outputs"], model["outputs"] = [], ["y0", "h_n0"]
    path.write_text(json.dumps(model))
    quantise(rnncc, path, tmp_path / "q.json", *options, data=data)
    compile(tmp_path / "q.json")
