# SPDX-License-Identifier: MIT
"""What a profile counts is what the run did: operations and bytes of its own extents, in every turn of a loop, in no branch
that was not taken, on any number of threads."""
import numpy
import pytest

from support.bodies import Body
from support.dtypes import BY_NAME
from support.model_builder import Model
from support.module import rnncc
from support.stacks import Stack, layers_of

H, I = 24, 16


def zeros(network, **dims):
    """Arrays for its inputs; integers are 1."""
    return {i.name: numpy.ones([dims.get(n, n) for n in i.shape], BY_NAME[str(i.dtype)].numpy) if "int" in str(i.dtype)
            else numpy.zeros([dims.get(n, n) for n in i.shape], numpy.float32) for i in network.info.inputs}


def counted(compile, model, tmp_path, inputs, threads=1, runs=1, options=()):
    """{node: (flops, bytes)} of all its kernels."""
    rows = {}
    with rnncc.load(compile(model.write(tmp_path), *options), threads=threads) as module:
        network = module.default
        with network.profile() as entries:
            for _ in range(runs):
                network(*inputs.values())
        for entry in entries:
            flops, moved = rows.get(entry.node, (0, 0))
            rows[entry.node] = flops + entry.flops_done, moved + entry.bytes_done
    return rows


def f32(*shape):
    return numpy.zeros(shape, numpy.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("T", [1, 5, 20])
def test_a_product_is_counted_at_the_extents_that_ran(compile, tmp_path, T, threads):
    model = Model()
    model.dim("T", 1, 5, 20)
    model.output(model.node("MatMul", [model.input("x", "f32", ["T", I]), model.constant(f32(I, H))]))
    rows = counted(compile, model, tmp_path, {"x": f32(T, I)}, threads, runs=3)
    assert rows == {"n0": (3 * 2 * T * I * H, 3 * 4 * (T * I + I * H + T * H))}


def test_bytes_that_no_int_holds_are_added_up(rnncc, tmp_path):
    """Each of two tensors has a quarter of 2^32."""
    model = Model()
    model.output(model.node("Neg", [model.input("x", "f32", [2**28])]))
    done = rnncc(model.write(tmp_path), "--emit=c", "-o", tmp_path / "c")
    assert (done.returncode, done.stderr) == (0, "")
    assert "((double)1073741824 + 1073741824)" in (tmp_path / "c" / "network.c").read_text()


@pytest.mark.parametrize("N, W", [(1, 9), (2, 30)])
def test_a_convolution_counts_its_whole_window(compile, tmp_path, N, W):
    model = Model()
    model.dim("N", 1, 1, 2)
    model.dim("W", 3, 20, 40)
    x = model.input("x", "f32", ["N", 8, 6, "W"])
    model.output(model.node("Conv", [x, model.constant(f32(16, 8, 3, 3))], pads=[1, 1, 1, 1]))
    rows = counted(compile, model, tmp_path, {"x": f32(N, 8, 6, W)})
    assert sum(flops for flops, _ in rows.values()) == 2 * N * 16 * 6 * W * 8 * 9


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("variant", ["", "chunk=4", "input=step"])
def test_a_recurrent_layer_counts_the_steps_that_ran(compile, tmp_path, variant, threads):
    """An LSTM: four products with [I, H] and [H, H] for each step of each sample, however they are cut."""
    model = Model()
    model.dim("T", 1, 5, 20)
    model.dim("B", 1, 1, 4)
    x = model.input("x", "f32", ["T", "B", I])
    model.output(model.node("LSTM", [x, model.constant(f32(1, 4 * H, I)), model.constant(f32(1, 4 * H, H))], hidden_size=H))
    options = [f"--rnn={variant}"] if variant else []
    for T, B in [(5, 1), (19, 3)]:
        rows = counted(compile, model, tmp_path, {"x": f32(T, B, I)}, threads, options=options)
        assert sum(flops for flops, _ in rows.values()) == pytest.approx(2 * T * B * 4 * H * (I + H), rel=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_wavefront_counts_the_layers_of_all_workers(compile, tmp_path, threads):
    """Each layer of a chunk is run by one worker, whichever."""
    T, B, gates = 17, 2, {"LSTM": 4, "GRU": 3}
    options = ["--rnn=batch_parts=1,hide=0,depth_block=0,input=ahead,chunk=2"]
    for parts in ([("LSTM", H), ("GRU", 8)], [("LSTM", H), ("GRU", H), ("LSTM", 8)]):
        layers, model = layers_of(*parts), Model()
        model.dim("T", 1, 40, 40)
        model.dim("B", 1, 2, 3)
        Stack("s", layers).add_to(model)
        rows = counted(compile, model, tmp_path, {"s_x": f32(T, B, 7)}, threads, options=options)
        products = sum(2 * T * B * gates[layer.op] * layer.H * (layer.I + layer.H) for layer in layers)
        assert sum(flops for flops, _ in rows.values()) == pytest.approx(products, rel=1e-12)


def test_a_loop_counts_each_turn(compile, tmp_path):
    model = Model()
    trip, x = model.input("trip", "i64", []), model.input("x", "f32", [1, H])
    body = Body(model, i="i64", go="bool", h="f32")
    weights = model.constant(f32(H, H))
    body.output(body.inputs[1], body.node("MatMul", [body.inputs[2], weights]))
    model.output(model.node("Loop", [trip, None, x], body=body))
    for turns in (0, 1, 7):
        rows = counted(compile, model, tmp_path, {"trip": numpy.array(turns), "x": f32(1, H)})
        assert sum(flops for flops, _ in rows.values()) == turns * 2 * H * H


def test_a_branch_that_is_not_taken_counts_nothing(compile, tmp_path):
    model = Model()
    x, condition = model.input("x", "f32", [4, H]), model.input("c", "bool", [])
    wide, narrow = Body(model), Body(model)
    wide.output(wide.node("MatMul", [x, model.constant(f32(H, H))]))
    narrow.output(narrow.node("Relu", [x]))
    model.output(model.node("If", [condition], then_branch=wide, else_branch=narrow))
    flops = [sum(flops for flops, _ in counted(compile, model, tmp_path, {"x": f32(4, H), "c": numpy.array(c)}).values())
             for c in (True, False)]
    assert flops == [2 * 4 * H * H, 4 * H]


def test_what_the_data_decide_is_counted_as_found(compile, tmp_path):
    """NonZero finds how many columns there are to add."""
    model = Model()
    found = model.node("NonZero", [model.input("x", "f32", [50])])
    model.output(model.node("Add", [found, found]))
    for n in (3, 40):
        x = f32(50)
        x[:n] = 1
        assert counted(compile, model, tmp_path, {"x": x})["n1"] == (n, 8 * 3 * n)


def test_an_older_program_finds_its_fields_where_they_were(compile, tmp_path):
    model = Model()
    model.dim("T", 1, 5, 20)
    model.output(model.node("MatMul", [model.input("x", "f32", ["T", I]), model.constant(f32(I, H))]))
    with rnncc.load(compile(model.write(tmp_path)), threads=1) as module, module.default.profile() as entries:
        module(f32(20, I))
    assert [entry.flops for entry in entries] == [2 * 5 * I * H]
