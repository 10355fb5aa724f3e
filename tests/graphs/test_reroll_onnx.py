# SPDX-License-Identifier: MIT
"""Written-out LSTM, GRU and RNN cells become the recurrent op, in any spelling.

ONNX Runtime runs the written-out graph; the reference interpreter runs the graph after reroll_rnn.
"""
import re

import numpy
import onnx
import pytest

from support.amount import some
from support.cells import BLENDS, TURNED_BLENDS, Network, Speller, unrolled
from support.model_builder import Model
from support.module import Module
from support.reroll import (B, H, I, RECURRENT, bound, check, check_values, dump_after, ops_of,  # noqa: F401
                            random_feeds, rng)


# ---- unrolled ----

def random_case(seed):
    rng = numpy.random.default_rng([31, seed])

    def pick(*values):
        return values[rng.integers(len(values))]

    network = Network(pick("RNN", "GRU", "LSTM"), int(rng.integers(1, 7)), int(rng.integers(1, 7)), seed,
                      reset_after=pick(True, False), activation=pick("Tanh", "Relu"))
    how = {"initial": pick("zeros", "input"), "outputs": pick("last", "each", "stack", "stack1"),
           "time_axis": pick(0, 1), "way": pick("gather", "split", "slice"), "backwards": pick(True, False),
           "B": int(rng.integers(1, 4))}
    how["named_batch"] = how["initial"] == "input" and pick(True, False)
    return network, int(rng.integers(2, 7)), how, rng


@pytest.mark.parametrize("seed", some(range(72), 36))
def test_any_spelling_of_an_unrolled_network_becomes_one_op(check, seed):
    network, T, how, rng = random_case(seed)
    model, feeds = unrolled(network, rng, T, **how)
    assert check(model, feeds, T) == {network.kind: 1}


@pytest.mark.parametrize("blend", BLENDS + TURNED_BLENDS)
def test_every_way_to_blend_the_old_state_with_the_new(check, rng, blend):
    network = Network("GRU", I, H, reset_after=blend in BLENDS)
    model, feeds = unrolled(network, rng, 2, initial="input", blend=blend)
    assert check(model, feeds, 2) == {"GRU": 1}


@pytest.mark.parametrize("order", ["ifgo", "iofg", "ofig", "fiog"])
@pytest.mark.parametrize("product", ["gemm", "gemm_transposed", "matmul"])
@pytest.mark.parametrize("inputs", ["xh", "hx", "apart"])
def test_gates_in_any_order_in_one_product(check, rng, order, product, inputs):
    model, feeds = unrolled(Network("LSTM", I, H), rng, 3, initial="input", order=order, product=product,
                            inputs=inputs, together=True, hoisted=False)
    assert check(model, feeds, 3) == {"LSTM": 1}


def test_each_step_may_be_spelt_in_its_own_way(check, rng):
    model, network = Model(), Network("LSTM", I, H)
    X = model.input("x", "f32", [4, B, I])
    h, c = model.input("h", "f32", [B, H]), model.input("c", "f32", [B, H])
    for t in range(4):
        speller = Speller(model, network, rng, hoisted=False)
        h, c = speller.step(speller.op("Gather", X, speller.constant(numpy.array(t)), axis=0), h, c)
    model.output(h, c)
    assert check(model, random_feeds(model, rng), 4) == {"LSTM": 1}


def test_stacked_steps_leave_no_copy_a_step(rnncc, rng, tmp_path):
    """Time first, rows on one axis: X and Y are not copied."""
    model, _ = unrolled(Network("LSTM", I, H), rng, 6, initial="input", outputs="stack")
    ops = ops_of(rnncc, model.write(tmp_path))
    assert ops == {"LSTM": 1, "Reshape": 3}, "the states' and Y's shapes are views"


def test_steps_stacked_in_reverse_keep_their_order(check, rng):
    T, model = 3, Model()
    speller = Speller(model, Network("RNN", I, H), rng)
    hs, _ = speller.unroll(model.input("x", "f32", [T, B, I]), T, model.input("h", "f32", [B, H]))
    model.output(speller.stack(hs[::-1]))
    assert check(model, random_feeds(model, rng), T) == {"RNN": 1}


def test_the_last_state_alone_needs_no_y(rnncc, rng, tmp_path):
    model, _ = unrolled(Network("GRU", I, H), rng, 6, initial="input", outputs="last")
    line = next(line for line in dump_after(rnncc, model.write(tmp_path)).splitlines() if "= GRU(" in line)
    assert re.match(r"n\d+: _, t\d+ =", line), line


def test_backwards_in_time_is_the_reverse_direction(rnncc, rng, tmp_path):
    model, _ = unrolled(Network("GRU", I, H), rng, 3, outputs="stack", backwards=True)
    assert 'direction="reverse"' in dump_after(rnncc, model.write(tmp_path))


def test_zeros_for_a_batch_known_at_run_time_are_no_initial_state(rnncc, reference, rng, tmp_path):
    """Zeros expanded to the extent of x, as exporters write them."""
    model, network = Model(), Network("LSTM", I, H)
    model.dim("B", 1, 2, 4)
    speller = Speller(model, network, rng, hoisted=False)
    X = model.input("x", "f32", [3, "B", I])
    rows = speller.op("Shape", X, start=1, end=2)
    shape = speller.op("Concat", rows, speller.constant(numpy.array([H])), axis=0)
    h, c = (speller.op("Expand", speller.constant(numpy.zeros(n, numpy.float32)), shape) for n in ((), (1, 1)))
    hs, _ = speller.unroll(X, 3, h, c)
    model.output(speller.stack(hs))
    path = model.write(tmp_path)
    check_values(reference, model, path, random_feeds(model, rng), 3)
    assert ops_of(rnncc, path) == {"LSTM": 1, "Reshape": 1}


def test_steps_that_are_inputs_of_their_own_are_put_together(check, rng):
    model, network = Model(), Network("GRU", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    h = model.input("h", "f32", [B, H])
    for t in range(3):
        h, _ = speller.step(model.input(f"x{t}", "f32", [B, I]), h)
    model.output(h)
    assert check(model, random_feeds(model, rng), 3) == {"GRU": 1}


def test_a_part_of_a_longer_sequence(check, rng):
    model, network = Model(), Network("LSTM", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    xs = speller.steps_of(model.input("x", "f32", [9, B, I]), 9)[3:7]
    h, c = model.input("h", "f32", [B, H]), model.input("c", "f32", [B, H])
    for x in xs:
        h, c = speller.step(x, h, c)
    model.output(h)
    assert check(model, random_feeds(model, rng), 4) == {"LSTM": 1}


def test_one_row_without_a_batch_axis(check, rng):
    model, network = Model(), Network("LSTM", I, H)
    speller = Speller(model, network, rng, hoisted=False, product="matmul")
    h, c = model.input("h", "f32", [H]), model.input("c", "f32", [H])
    hs = []
    for x in speller.steps_of(model.input("x", "f32", [3, I]), 3):
        h, c = speller.step(x, h, c)
        hs.append(h)
    model.output(speller.stack(hs))
    assert check(model, random_feeds(model, rng), 3) == {"LSTM": 1}


# ---- several networks ----

@pytest.mark.parametrize("kind", sorted(RECURRENT))
@pytest.mark.parametrize("outer", ["steps", "layers"])
def test_each_layer_of_a_stack_is_an_op(check, rng, kind, outer):
    """Loops over steps and layers in either order."""
    T, model = 3, Model()
    layers = [Speller(model, Network(kind, width, H, seed), rng, hoisted=False)
              for seed, width in enumerate((I, H, H))]
    states = [[model.input(f"h{k}", "f32", [B, H]), model.input(f"c{k}", "f32", [B, H])] for k in range(3)]
    values = layers[0].steps_of(model.input("x", "f32", [T, B, I]), T)
    for t, k in ([(t, k) for t in range(T) for k in range(3)] if outer == "steps" else
                 [(t, k) for k in range(3) for t in range(T)]):
        values[t], states[k][1] = layers[k].step(values[t], *states[k])
        states[k][0] = values[t]
    model.output(layers[0].stack(values))
    assert check(model, random_feeds(model, rng), 3 * T) == {kind: 3}


def test_both_directions_are_two_ops_and_one_concat(rnncc, reference, rng, tmp_path):
    T, model = 4, Model()
    X = model.input("x", "f32", [T, B, I])
    forward, backward = (Speller(model, Network("LSTM", I, H, seed), rng) for seed in (1, 2))
    states = [model.constant(numpy.zeros((B, H), numpy.float32)) for _ in range(4)]
    hs, _ = forward.unroll(X, T, *states[:2])
    gs, _ = backward.unroll(X, T, *states[2:], backwards=True)
    model.output(forward.stack([forward.op("Concat", h, g, axis=-1) for h, g in zip(hs, gs)]))
    path = model.write(tmp_path)
    check_values(reference, model, path, random_feeds(model, rng), T)
    ops = ops_of(rnncc, path)
    assert ops["LSTM"] == 2 and ops["Concat"] == 1 and set(ops) <= RECURRENT | {"Concat", "Reshape"}


def test_a_step_that_reads_an_earlier_result_is_an_op_of_its_own(check, rng):
    """A decoder: the next x is computed from h."""
    model, network = Model(), Network("GRU", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    h, x = model.input("h", "f32", [B, H]), model.input("x", "f32", [B, I])
    for _ in range(3):
        h, _ = speller.step(x, h)
        x = speller.op("MatMul", h, speller.constant(rng.uniform(-1, 1, (H, I)).astype(numpy.float32)))
    model.output(x)
    assert check(model, random_feeds(model, rng), 3) == {"GRU": 3, "MatMul": 3}


def test_two_networks_that_read_each_other_alternate(check, rng):
    model = Model()
    a, b = (Speller(model, Network("LSTM", H, H, seed), rng, hoisted=False) for seed in (1, 2))
    ha, ca, hb, cb = (model.input(name, "f32", [B, H]) for name in ("ha", "ca", "hb", "cb"))
    for _ in range(3):
        (ha, ca), (hb, cb) = a.step(hb, ha, ca), b.step(ha, hb, cb)
    model.output(ha, hb)
    ops = check(model, random_feeds(model, rng), 3)
    assert set(ops) == {"LSTM"} and ops["LSTM"] >= 4


def test_an_inner_state_that_is_read_ends_the_chain(check, rng):
    model, network = Model(), Network("LSTM", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    h, c = model.input("h", "f32", [B, H]), model.input("c", "f32", [B, H])
    for t, x in enumerate(speller.steps_of(model.input("x", "f32", [4, B, I]), 4)):
        h, c = speller.step(x, h, c)
        if t == 1:
            model.output(c)
    model.output(h)
    assert check(model, random_feeds(model, rng), 4) == {"LSTM": 2}


def test_other_weights_begin_another_op(check, rng):
    model = Model()
    networks = [Network("GRU", I, H, seed) for seed in (1, 1, 2, 2, 2)]
    h = model.input("h", "f32", [B, H])
    xs = Speller(model, networks[0], rng).steps_of(model.input("x", "f32", [5, B, I]), 5)
    for x, network in zip(xs, networks):
        h, _ = Speller(model, network, rng, hoisted=False).step(x, h)
    model.output(h)
    assert check(model, random_feeds(model, rng), 5) == {"GRU": 2}


@pytest.mark.parametrize("changed", ["W", "R", "Wb", "Rb"])
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_one_other_number_begins_another_op(check, rng, kind, changed):
    model = Model()
    networks = [Network(kind, I, H) for _ in range(3)]
    getattr(networks[2], changed)[-1, 1] += numpy.float32(2.0**-10)
    h, c = model.input("h", "f32", [B, H]), model.input("c", "f32", [B, H])
    xs = Speller(model, networks[0], rng).steps_of(model.input("x", "f32", [3, B, I]), 3)
    for x, network in zip(xs, networks):
        h, c = Speller(model, network, rng, hoisted=False).step(x, h, c)
    model.output(h)
    assert check(model, random_feeds(model, rng), 3) == {kind: 2}


@pytest.mark.parametrize("swapped", ["gates", "inputs"])
def test_one_matrix_read_in_two_ways_is_two_networks(check, rng, swapped):
    """The last step multiplies by the same block of weights, but uses i as f, or h as x."""
    model, how = Model(), {"hoisted": False, "together": True, "product": "matmul", "bias": "none", "cut": "split"}
    first, second = Network("LSTM", H, H), Network("LSTM", H, H)
    if swapped == "gates":
        for weights in (second.W, second.R, second.Wb, second.Rb):
            weights[[0, 2]] = weights[[2, 0]]
        ways = [{"inputs": "xh", "order": "ifgo"}, {"inputs": "xh", "order": "figo"}]
    else:
        second.W, second.R = first.R, first.W
        ways = [{"inputs": "xh", "order": "ifgo"}, {"inputs": "hx", "order": "ifgo"}]
    h, c = model.input("h", "f32", [B, H]), model.input("c", "f32", [B, H])
    for t, (network, way) in enumerate(zip((first, first, second), (ways[0], *ways))):
        h, c = Speller(model, network, rng, **how, **way).step(model.input(f"x{t}", "f32", [B, H]), h, c)
    model.output(h)
    assert check(model, random_feeds(model, rng), 3) == {"LSTM": 2}


def test_of_two_steps_after_one_only_the_first_follows(check, rng):
    model = Model()
    speller = Speller(model, Network("GRU", I, H), rng, hoisted=False)
    h, x, left, right = (model.input(name, "f32", [B, H if name == "h" else I]) for name in ("h", "x", "left", "right"))
    h, _ = speller.step(x, h)
    model.output(speller.step(left, h)[0], speller.step(right, h)[0])
    assert check(model, random_feeds(model, rng), 2) == {"GRU": 2}


# ---- one step a call ----

@pytest.mark.parametrize("shape", [["B", H], [1, "B", H]])
@pytest.mark.parametrize("kind, reset_after", [("RNN", True), ("GRU", True), ("GRU", False), ("LSTM", True)])
def test_a_step_whose_state_the_context_carries(check, rng, kind, reset_after, shape):
    model, network = Model(), Network(kind, I, H, reset_after=reset_after)
    model.dim("B", 1, 2, 4)
    speller = Speller(model, network, rng, hoisted=False, product="matmul")
    x = model.input("x", "f32", [*shape[:-1], I])
    after = speller.step(x, "h", "c" if kind == "LSTM" else None)
    for name, value in zip("hc", after):
        if value:
            model.state(name, value, "f32", shape, batch_axis=len(shape) - 2)
    model.output(speller.op("Softmax", after[0], axis=-1))
    assert check(model, random_feeds(model, rng)) == {kind: 1, "Softmax": 1}


def test_states_packed_into_one(check, rng):
    """[c, h] in one tensor, cut and joined in each step."""
    model, network = Model(), Network("LSTM", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    packed = model.input("state", "f32", [B, 2 * H])
    for x in speller.steps_of(model.input("x", "f32", [3, B, I]), 3):
        c, h = model.node("Split", [packed], 2, axis=1, num_outputs=2)
        packed = speller.op("Concat", *speller.step(x, h, c)[::-1], axis=1)
    model.output(packed)
    assert check(model, random_feeds(model, rng), 3) == {"LSTM": 1}


def test_x_of_several_parts(check, rng):
    """The step's own input and one that stays the same, next to each other."""
    model, network = Model(), Network("GRU", I + 2, H)
    speller = Speller(model, network, rng, hoisted=False)
    h, context = model.input("h", "f32", [B, H]), model.input("context", "f32", [B, 2])
    for x in speller.steps_of(model.input("x", "f32", [3, B, I]), 3):
        h, _ = speller.step(speller.op("Concat", x, context, axis=1), h)
    model.output(h)
    assert check(model, random_feeds(model, rng), 3) == {"GRU": 1}


def test_x_whose_parts_change_from_step_to_step(check, rng):
    model, network = Model(), Network("GRU", 5, H)
    speller = Speller(model, network, rng, hoisted=False)
    h = model.input("h", "f32", [B, H])
    for t, widths in enumerate([(3, 2), (3, 2), (2, 3)]):
        parts = [model.input(f"x{t}_{k}", "f32", [B, width]) for k, width in enumerate(widths)]
        h, _ = speller.step(speller.op("Concat", *parts, axis=1), h)
    model.output(h)
    assert check(model, random_feeds(model, rng), 3) == {"GRU": 2}


@pytest.mark.parametrize("formula", ["(1-i)*c + i*g", "i*(g-c) + c", "f*c + (1-f)*g"])
def test_a_forget_gate_that_is_one_minus_the_input_gate(check, rng, formula):
    model, network = Model(), Network("LSTM", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    h, c = model.input("h", "f32", [B, H]), model.input("c", "f32", [B, H])
    for x in speller.steps_of(model.input("x", "f32", [3, B, I]), 3):
        gate = speller.gates("iog" if "i" in formula else "fog", x, h)
        c = speller.formula(formula, c=c, **{name: gate[name] for name in gate if name != "o"})
        h = speller.mul(gate["o"], speller.op("Tanh", c))
    model.output(h, c)
    assert check(model, random_feeds(model, rng), 3) == {"LSTM": 1}


# ---- anything ----

UNARY, BINARY = ["Sigmoid", "Tanh", "Relu", "Neg", "HardSigmoid"], ["Add", "Sub", "Mul"]


def shapes_of(model):
    described = onnx.shape_inference.infer_shapes(model.onnx()).graph
    return {value.name: tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
            for value in (*described.input, *described.value_info, *described.output)}


def change(model, rng, shapes):
    """Changes one node: another function, operator or operand, or one more reader."""
    k = int(rng.integers(len(model.nodes)))
    node = model.nodes[k]
    earlier = [i["name"] for i in model.inputs] + [name for n in model.nodes[:k] for name in n["outputs"]]
    kind = rng.integers(4)
    if kind == 0:
        model.output(*[name for name in node["outputs"] if name not in model.outputs])
    elif kind == 1 and node["op"] in UNARY:
        node["op"] = str(rng.choice(UNARY))
    elif kind == 2 and node["op"] in BINARY:
        node["op"] = str(rng.choice(BINARY))
    else:
        operand = int(rng.integers(len(node["inputs"])))
        fitting = [name for name in earlier if shapes.get(name) == shapes.get(node["inputs"][operand], ())]
        if fitting:
            node["inputs"][operand] = str(rng.choice(fitting))


@pytest.mark.parametrize("seed", some(range(60), 30))
def test_changed_networks_keep_their_meaning(reference, tmp_path, seed):
    """The reference interpreter, before and after the pass: both round only between nodes. A wrong gate, weight or step
    changes results far more than the tolerance. The rest of the network need not contract, so no bound is derived."""
    rng = numpy.random.default_rng([37, seed])
    kind = ("RNN", "GRU", "LSTM")[seed % 3]
    network = Network(kind, 3, 3, seed, reset_after=bool(rng.integers(2)))
    model, feeds = unrolled(network, rng, 3, initial="input", B=3, outputs=("last", "each", "stack")[rng.integers(3)],
                            backwards=bool(rng.integers(2)))
    shapes = shapes_of(model)
    for _ in range(rng.integers(1, 4)):
        change(model, rng, shapes)
    path = model.write(tmp_path)
    before, after = (reference.run(model, path, feeds, simplified=simplified) for simplified in (False, True))
    for name, array in before.items():
        scale = max(1, numpy.abs(array).max())
        numpy.testing.assert_allclose(after[name], array, rtol=0, atol=2e-6 * scale, err_msg=name)


# ---- the whole way ----

def test_the_compiled_module_computes_the_same(compile, rng, tmp_path):
    """One network of each kind in one module, and the module's states carried over calls."""
    T, model = 4, Model("rerolled")
    model.dim("B", 1, 2, 4)
    X = model.input("x", "f32", [T, "B", I])
    for seed, kind in enumerate(sorted(RECURRENT)):
        speller = Speller(model, Network(kind, I, H, seed), rng)
        names = [f"h{seed}", f"c{seed}"][:2 if kind == "LSTM" else 1]
        hs, c = speller.unroll(X, T, *names)
        for name, value in zip(names, (hs[-1], c)):
            model.state(name, value, "f32", ["B", H], batch_axis=0)
        model.output(speller.stack(hs))
    states = {s["input"]: numpy.zeros((B, H), numpy.float32) for s in model.states}
    with Module(compile(model.write(tmp_path))) as module, module.context(threads=2) as context:
        for call in range(3):
            feeds = {"x": rng.uniform(-1, 1, (T, B, I)).astype(numpy.float32)}
            expected = model.onnx_run(feeds | states)
            states = {s["input"]: expected[s["output"]] for s in model.states}
            got = context.run(feeds)
            for name in model.outputs:
                numpy.testing.assert_allclose(got[name], expected[name], rtol=0,
                                              atol=bound(feeds | states, T * (call + 1)))


def test_inspect_says_what_was_rerolled(rnncc, rng, tmp_path):
    model, _ = unrolled(Network("LSTM", I, H), rng, 10, outputs="last")
    path = model.write(tmp_path)
    line = r"n\d+\.\.n\d+ re-rolled: 10 steps of an LSTM cell \(I=3, H=5\)"
    assert re.search(r"^remarks  " + line + "$", rnncc("inspect", path).stdout, re.MULTILINE)
    assert re.search("^rnncc:   " + line + "$", rnncc(path, "--emit=dot", "-o", "-", "-v").stderr, re.MULTILINE)
