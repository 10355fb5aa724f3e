# SPDX-License-Identifier: MIT
"""What is nearly a written-out LSTM, GRU or RNN cell stays as it is, and computes what ONNX Runtime does."""
import numpy
import pytest

from support.cells import Network, Speller
from support.model_builder import Model
from support.reroll import B, H, I, RECURRENT, check, random_feeds, rng  # noqa: F401


def lstm_end(s, gate, c):
    c = s.add(s.mul(gate["f"], c), s.mul(gate["i"], gate["g"]))
    return s.mul(gate["o"], s.op("Tanh", c)), c


def other_gate_function(s, x, h, c):
    sums = {name: s.sums(name, x, h) for name in "iofg"}
    gate = {name: s.op("HardSigmoid" if name == "f" else "Tanh" if name == "g" else "Sigmoid", sums[name])
            for name in sums}
    return lstm_end(s, gate, c)


def other_candidate_function(s, x, h, c):
    gate = s.gates("iof", x, h) | {"g": s.op("Relu", s.sums("g", x, h))}
    return lstm_end(s, gate, c)


def functions_swapped(s, x, h, c):
    gate = {name: s.op("Sigmoid" if name in "iog" else "Tanh", s.sums(name, x, h)) for name in "iofg"}
    return lstm_end(s, gate, c)


def other_output_function(s, x, h, c):
    gate = s.gates("iofg", x, h)
    c = s.add(s.mul(gate["f"], c), s.mul(gate["i"], gate["g"]))
    return s.mul(gate["o"], s.op("Sigmoid", c)), c


def extra_op_on_a_sum(s, x, h, c):
    gate = s.gates("iog", x, h)
    scaled = s.mul(s.sums("f", x, h), s.constant(numpy.full(H, 0.5, numpy.float32)))
    return lstm_end(s, gate | {"f": s.op("Sigmoid", scaled)}, c)


def extra_op_on_a_gate(s, x, h, c):
    gate = s.gates("iofg", x, h)
    return lstm_end(s, gate | {"i": s.op("Sqrt", gate["i"])}, c)


def clipped_cell_state(s, x, h, c):
    gate = s.gates("iofg", x, h)
    c = s.add(s.mul(gate["f"], c), s.mul(gate["i"], gate["g"]))
    c = s.op("Clip", c, s.constant(numpy.float32(-0.5)), s.constant(numpy.float32(0.5)))
    return s.mul(gate["o"], s.op("Tanh", c)), c


def difference_of_terms(s, x, h, c):
    gate = s.gates("iofg", x, h)
    c = s.op("Sub", s.mul(gate["f"], c), s.mul(gate["i"], gate["g"]))
    return s.mul(gate["o"], s.op("Tanh", c)), c


def peephole(s, x, h, c):
    gate = s.gates("iog", x, h)
    seen = s.mul(c, s.constant(s.rng.uniform(-1, 1, H).astype(numpy.float32)))
    return lstm_end(s, gate | {"f": s.op("Sigmoid", s.op("Add", s.sums("f", x, h), seen))}, c)


def gate_read_elsewhere(s, x, h, c):
    gate = s.gates("iofg", x, h)
    return *lstm_end(s, gate, c), s.op("Neg", gate["o"])


def sum_read_elsewhere(s, x, h, c):
    sums = s.sums("f", x, h)
    return *lstm_end(s, s.gates("iog", x, h) | {"f": s.op("Sigmoid", sums)}, c), s.op("Neg", sums)


def gate_is_an_output(s, x, h, c):
    gate = s.gates("iofg", x, h)
    return *lstm_end(s, gate, c), gate["f"]


def gate_without_the_state(s, x, h, c):
    f = s.op("Sigmoid", s.product(x, s.stacked("W", "f"), s.stacked("Wb", "f")))
    return lstm_end(s, s.gates("iog", x, h) | {"f": f}, c)


def gate_of_another_input(s, x, h, c):
    other = s.model.input("other", "f32", [B, I])
    return lstm_end(s, s.gates("iog", x, h) | {"f": s.op("Sigmoid", s.sums("f", other, h))}, c)


def gate_of_another_input_too(s, x, h, c):
    other = s.product(s.model.input("other", "f32", [B, I]), s.stacked("W", "f"))
    return lstm_end(s, s.gates("iog", x, h) | {"f": s.op("Sigmoid", s.op("Add", s.sums("f", x, h), other))}, c)


def same_gate_twice(s, x, h, c):
    gate = s.gates("iog", x, h)
    return lstm_end(s, gate | {"f": s.op("Add", gate["i"], gate["i"])}, c)


def learned_state_of_one_row(s, x, h, c):
    one = s.constant(s.rng.uniform(-1, 1, (1, H)).astype(numpy.float32))
    return lstm_end(s, s.gates("iofg", x, h), one)


def state_of_one_number(s, x, h, c):
    return lstm_end(s, s.gates("iofg", x, h), s.constant(numpy.float32(0.5)))


def weights_at_run_time(s, x, h, c):
    weights = s.model.input("weights", "f32", [I + H, H])
    f = s.op("Sigmoid", s.op("MatMul", s.op("Concat", x, h, axis=1), weights))
    return lstm_end(s, s.gates("iog", x, h) | {"f": f}, c)


def bias_by_row(s, x, h, c):
    rows = s.constant(s.rng.uniform(-1, 1, (B, H)).astype(numpy.float32))
    return lstm_end(s, s.gates("iog", x, h) | {"f": s.op("Sigmoid", s.op("Add", s.sums("f", x, h), rows))}, c)


def state_of_one_row(s, x, h, c):
    one = s.model.input("one", "f32", [1, H])
    return lstm_end(s, s.gates("iofg", x, h), one)


LSTM_MISSES = [other_gate_function, other_candidate_function, functions_swapped, other_output_function,
               extra_op_on_a_sum, extra_op_on_a_gate, clipped_cell_state, difference_of_terms, peephole,
               gate_read_elsewhere, sum_read_elsewhere, gate_is_an_output, gate_without_the_state, gate_of_another_input,
               gate_of_another_input_too, same_gate_twice,
               weights_at_run_time, bias_by_row, state_of_one_row,
               learned_state_of_one_row, state_of_one_number]


def gru_end(s, z, n, h):
    return s.formula("(1-z)*n + z*h", z=z, n=n, h=h),


def gru_gate(s, name, x, h, function="Sigmoid"):
    return s.op(function, s.sums(name, x, h))


def reset_of_the_input(s, x, h, c):
    r = gru_gate(s, "r", x, h)
    of_x, of_h = s.product(x, s.stacked("W", "n")), s.product(h, s.stacked("R", "n"))
    return gru_end(s, gru_gate(s, "z", x, h), s.op("Tanh", s.add(s.mul(r, of_x), of_h)), h)


def reset_of_some_of_the_state(s, x, h, c):
    """R h + r*(R h): h also enters without the gate."""
    r, of_h = gru_gate(s, "r", x, h), s.product(h, s.stacked("R", "n"))
    n = s.op("Tanh", s.add(s.product(x, s.stacked("W", "n")), s.product(h, s.stacked("R", "z")), s.mul(r, of_h)))
    return gru_end(s, gru_gate(s, "z", x, h), n, h)


def no_reset(s, x, h, c):
    return gru_end(s, gru_gate(s, "z", x, h), gru_gate(s, "n", x, h, "Tanh"), h)


def sigmoid_candidate(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h))
    return gru_end(s, gru_gate(s, "z", x, h), n, h)


def tanh_update_gate(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h), "Tanh")
    return gru_end(s, gru_gate(s, "z", x, h, "Tanh"), n, h)


def two_update_gates(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h), "Tanh")
    z, y = gru_gate(s, "z", x, h), gru_gate(s, "r", x, h)
    return s.formula("(1-z)*n + y*h", z=z, y=y, n=n, h=h),


def not_one_minus(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h), "Tanh")
    return s.formula("(2-z)*n + z*h", z=gru_gate(s, "z", x, h), n=n, h=h),


def another_value_is_kept(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h), "Tanh")
    return gru_end(s, gru_gate(s, "z", x, h), n, s.model.input("other", "f32", [B, H]))


def update_read_elsewhere(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h), "Tanh")
    z = gru_gate(s, "z", x, h)
    return *gru_end(s, z, n, h), s.op("Neg", z)


GRU_MISSES = [reset_of_the_input, reset_of_some_of_the_state, no_reset, sigmoid_candidate, tanh_update_gate,
              two_update_gates, not_one_minus, another_value_is_kept, update_read_elsewhere]


def plain_lstm(s, x, h, c):
    return lstm_end(s, s.gates("iog", x, h) | {"f": s.op("Sigmoid", s.sums("f", x, h))}, c)


def plain_gru(s, x, h, c):
    n = gru_gate(s, "n", x, s.mul(gru_gate(s, "r", x, h), h), "Tanh")
    return gru_end(s, gru_gate(s, "z", x, h), n, h)


def lstm_from_zero_cells(s, x, h, c):
    return lstm_end(s, s.gates("iofg", x, h), s.constant(numpy.zeros(1, numpy.float32)))


def lstm_from_learned_cells(s, x, h, c):
    return lstm_end(s, s.gates("iofg", x, h), s.constant(s.rng.uniform(-1, 1, (B, H)).astype(numpy.float32)))


@pytest.mark.parametrize("kind, cell", [("LSTM", plain_lstm), ("LSTM", lstm_from_zero_cells),
                                        ("LSTM", lstm_from_learned_cells), ("GRU", plain_gru)])
def test_the_cells_of_the_near_misses_are_recognised(check, rng, kind, cell):
    model = Model()
    speller = Speller(model, Network(kind, I, H), rng, hoisted=False)
    x, h, c = (model.input(name, "f32", [B, columns]) for name, columns in (("x", I), ("h", H), ("c", H)))
    model.output(*cell(speller, x, h, c))
    assert check(model, random_feeds(model, rng)) == {kind: 1}


@pytest.mark.parametrize("kind, miss", [("LSTM", miss) for miss in LSTM_MISSES] + [("GRU", miss) for miss in GRU_MISSES])
def test_a_near_miss_stays_as_it_is(check, rng, kind, miss):
    model = Model()
    speller = Speller(model, Network(kind, I, H), rng, hoisted=False)
    x, h, c = (model.input(name, "f32", [B, columns]) for name, columns in (("x", I), ("h", H), ("c", H)))
    model.output(*miss(speller, x, h, c))
    ops = check(model, random_feeds(model, rng))
    assert not RECURRENT & set(ops)


def test_a_projected_state_is_no_state(check, rng):
    """The next step reads h times a matrix, of other columns than c."""
    model, P = Model(), 4
    network = Network("LSTM", I, H)
    network.R = network.R[:, :, :P]
    speller = Speller(model, network, rng, hoisted=False)
    projection = rng.uniform(-1, 1, (H, P)).astype(numpy.float32)
    h, c = model.input("h", "f32", [B, P]), model.input("c", "f32", [B, H])
    for x in speller.steps_of(model.input("x", "f32", [2, B, I]), 2):
        h, c = speller.step(x, h, c)
        h = speller.op("MatMul", h, speller.constant(projection))
    model.output(h)
    assert not RECURRENT & set(check(model, random_feeds(model, rng), 2))


def test_rnn_steps_of_different_weights_are_layers_and_stay(check, rng):
    model = Model()
    h = model.input("h", "f32", [B, H])
    for t in range(3):
        speller = Speller(model, Network("RNN", I, H, seed=t), rng, hoisted=False)
        h, _ = speller.step(model.input(f"x{t}", "f32", [B, I]), h)
    model.output(h)
    assert not RECURRENT & set(check(model, random_feeds(model, rng), 3))


def test_one_rnn_step_without_a_state_is_a_layer_and_stays(check, rng):
    model = Model()
    speller = Speller(model, Network("RNN", I, H), rng, hoisted=False)
    model.output(speller.step(model.input("x", "f32", [B, I]), model.input("h", "f32", [B, H]))[0])
    assert not RECURRENT & set(check(model, random_feeds(model, rng)))


def test_a_state_that_reads_no_x_stays(check, rng):
    model = Model()
    h = model.node("MatMul", ["h", model.constant(rng.uniform(-0.3, 0.3, (H, H)).astype(numpy.float32))])
    h = model.node("Tanh", [h])
    model.state("h", h, "f32", [B, H], batch_axis=0)
    model.output(model.node("Neg", [h]))
    assert not RECURRENT & set(check(model, random_feeds(model, rng)))


def test_something_between_the_steps_ends_the_chain(check, rng):
    """h is squared before the next step: each cell becomes an op of one step."""
    model, network = Model(), Network("GRU", I, H)
    speller = Speller(model, network, rng, hoisted=False)
    h = model.input("h", "f32", [B, H])
    for x in speller.steps_of(model.input("x", "f32", [3, B, I]), 3):
        h, _ = speller.step(x, h)
        h = speller.op("Mul", h, h)
    model.output(h)
    assert check(model, random_feeds(model, rng), 3) == {"GRU": 3, "Mul": 3}
