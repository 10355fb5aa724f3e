# SPDX-License-Identifier: MIT
"""The promises of every run to its host: no allocation, no lock, no system call except those by which threads wait for
each other, no CPU time when idle; and the same bits for any number of threads. Steps of training allocate nothing either."""
import itertools
import math
import os
import subprocess

import numpy as np
import pytest

from conftest import ROOT, SHIPPED, build_directory
from support.amount import some
from support.bodies import Body
from support.model_builder import Model
from support.module import Module
from support.preloaded import preloaded

T, I, H = 12, 24, 72  # H: more vectors than threads, the last one not full
THREADS = (1, 2, 3, 5, 8)
RUNS = 5  # on a busy machine some of them run alone
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LAYERS = [(op, direction, reset)
          for op, reset in (("RNN", None), ("GRU", 0), ("GRU", 1), ("LSTM", None))
          for direction in ("forward", "bidirectional")]


def uniform(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(np.float32) / math.sqrt(shape[-1])


def recurrent_layers(B):
    """Each cell in each direction, side by side on one x[T,B,I]."""
    rng, model = np.random.default_rng(B), Model(f"layers_{B}")
    x = model.input("x", "f32", [T, B, I])
    for op, direction, reset in LAYERS:
        D, rows = (2 if direction == "bidirectional" else 1), GATES[op] * H
        weights = [model.constant(uniform(rng, *shape)) for shape in ((D, rows, I), (D, rows, H), (D, 2 * rows))]
        y, last = model.node(op, [x, *weights], 2, hidden_size=H, direction=direction, linear_before_reset=reset)
        model.output(y, last)
    return model


def stack():
    """Three layers, which may run as a wavefront."""
    rng, model = np.random.default_rng(3), Model("stack")
    y, rows = model.input("x", "f32", [T, 2, I]), GATES["LSTM"] * H
    for inputs in (I, H, H):
        weights = [model.constant(uniform(rng, *shape)) for shape in ((1, rows, inputs), (1, rows, H))]
        y = model.node("Squeeze", [model.node("LSTM", [y, *weights], hidden_size=H), model.constant(np.array([1]))])
    model.output(y)
    return model


def convolutional():
    rng, model = np.random.default_rng(0), Model("convolutional")
    x = model.input("x", "f32", [2, 3, 20, 20])
    for channels, filters in ((3, 24), (24, 40)):
        weights = model.constant(uniform(rng, filters, channels, 3, 3)), model.constant(uniform(rng, filters))
        x = model.node("Relu", [model.node("Conv", [x, *weights], kernel_shape=[3, 3], pads=[1, 1, 1, 1])])
        x = model.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = model.node("MatMul", [model.node("Flatten", [x]), model.constant(uniform(rng, 1000, 10))])
    model.output(model.node("Softmax", [x], axis=-1))
    return model


MODELS = {"layers_batch_1": (lambda: recurrent_layers(1), []), "layers_batch_10": (lambda: recurrent_layers(10), []),
          "stack": (stack, ["--rnn=chunk=5"]), "convolutional": (convolutional, [])}


@pytest.mark.every_case
@pytest.mark.parametrize("planned, name", some(
    [*itertools.product((2,), MODELS), (8, "layers_batch_10"), (1, "stack"), *((8, name) for name in MODELS if name != "layers_batch_10"),
     *((1, name) for name in MODELS if name != "stack")], len(MODELS) + 2))
def test_outputs_are_bit_identical_on_1_2_3_5_and_8_threads(planned, name, compile, tmp_path):
    make, options = MODELS[name]
    model = make()
    rng = np.random.default_rng(1)
    feeds = {x["name"]: rng.uniform(-1, 1, x["shape"]).astype(np.float32) for x in model.inputs}
    with Module(compile(model.write(tmp_path), f"--threads={planned}", *options)) as module:
        expected = None
        for threads in THREADS:
            with module.context(threads) as context:
                for _ in range(RUNS):
                    got = {name: array.tobytes() for name, array in context.run(feeds).items()}
                    expected = expected or got
                    assert [name for name in got if got[name] != expected[name]] == [], f"{threads} threads"


NO_SECCOMP = 77


def quiet_run(module, threads, **options):
    program = build_directory() / "tests" / "modules" / "quiet_run"
    done = subprocess.run([program, module, str(threads)], capture_output=True, text=True, timeout=60, **options)
    if done.returncode == NO_SECCOMP:
        pytest.skip("this kernel has no seccomp filters")
    assert (done.returncode, done.stdout) == (0, "quiet\n"), done.stderr


@pytest.mark.parametrize("model", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("threads", [1, 2])
def test_shipped_models_run_quietly(model, threads, compile):
    quiet_run(compile(model), threads)


@pytest.mark.every_case
@pytest.mark.parametrize("threads, name", some([*itertools.product([3], MODELS), *itertools.product([1], MODELS)], len(MODELS) + 1))
def test_layers_run_quietly(threads, name, compile, tmp_path):
    make, options = MODELS[name]
    quiet_run(compile(make().write(tmp_path), "--threads=8", *options), threads)


# ---- modules that train: run, backward, gradients, weights and steps of each rule ----

def loss_of(model, scores):
    labels = model.input("labels", "i64", [2])
    model.output(model.node("SoftmaxCrossEntropyLoss", [scores, labels], ["loss"]))
    return model


def trained_layers():
    """A bidirectional LSTM with lengths, Dropout, and a GRU, of as many steps as the run says."""
    rng, model = np.random.default_rng(5), Model("trained_layers")
    x, lengths = model.input("x", "f32", [model.dim("T", 1, T, 20), 2, I]), model.input("lengths", "i32", [2])
    weights = [model.constant(uniform(rng, *shape)) for shape in ((2, 4 * H, I), (2, 4 * H, H), (2, 8 * H))]
    y = model.node("LSTM", [x, *weights, lengths], hidden_size=H, direction="bidirectional")
    y = model.node("Reshape", [model.node("Transpose", [y], perm=[0, 2, 1, 3]), model.constant(np.array([0, 0, 2 * H]))])
    y = model.node("Dropout", [y, model.constant(np.float32(0.2))])
    weights = [model.constant(uniform(rng, *shape)) for shape in ((1, 3 * H, 2 * H), (1, 3 * H, H))]
    _, last = model.node("GRU", [y, *weights], 2, hidden_size=H)
    last = model.node("Squeeze", [last, model.constant(np.array([0]))])
    return loss_of(model, model.node("MatMul", [last, model.constant(uniform(rng, H, 5))]))


def trained_convolutions():
    rng, model = np.random.default_rng(6), Model("trained_convolutions")
    x = model.input("x", "f32", [2, 3, 20, 20])
    x = model.node("Conv", [x, model.constant(uniform(rng, 24, 3, 3, 3))], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    statistics = [model.constant(np.full(24, value, np.float32)) for value in (1, 0, 0, 1)]
    x = model.node("BatchNormalization", [x, *statistics], 3, training_mode=1)[0]
    x = model.node("MaxPool", [model.node("Relu", [x])], kernel_shape=[2, 2], strides=[2, 2])
    return loss_of(model, model.node("MatMul", [model.node("Flatten", [x]), model.constant(uniform(rng, 2400, 5))]))


def trained_cell():
    """A cell of one's own, in a Scan that stays one."""
    rng, model = np.random.default_rng(7), Model("trained_cell")
    x, w, r = model.input("x", "f32", [model.dim("T", 1, T, 20), 2, I]), *(
        model.constant(uniform(rng, *shape)) for shape in ((I, H), (H, H)))
    body = Body(model, h="f32", x="f32")
    h = body.node("Tanh", [body.node("Add", [body.node("MatMul", [body.inputs[1], w]), body.node("MatMul", [body.inputs[0], r])])])
    body.output(h, h)
    first = model.constant(np.zeros((2, H), np.float32))
    last, _ = model.node("Scan", [first, x], 2, body=body, num_scan_inputs=1)
    return loss_of(model, model.node("MatMul", [last, model.constant(uniform(rng, H, 5))]))


@pytest.mark.every_case
@pytest.mark.parametrize("make, threads", [(trained_layers, 3), (trained_convolutions, 1), (trained_convolutions, 3), (trained_cell, 3)])
def test_training_runs_quietly(make, threads, compile, tmp_path):
    quiet_run(compile(make().write(tmp_path), "--train", "--threads=8"), threads)


def test_without_seccomp_it_is_skipped(compile, tmp_path):
    """By a kernel without that system call; the rest of the promises are looked at before."""
    no_filters = {**os.environ, "LD_PRELOAD": preloaded("no_system_calls", tmp_path)}
    with pytest.raises(pytest.skip.Exception, match="no seccomp filters"):
        quiet_run(compile(SHIPPED[0]), 1, env=no_filters)


def test_a_module_knows_no_lock(compile):
    """It cannot call what it does not import: its threads wait on futexes alone."""
    lines = subprocess.run(["nm", "-D", "--undefined-only", compile(SHIPPED[0])], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    imports = {line.split()[-1].split("@")[0] for line in lines}
    assert "pthread_create" in imports, "nm is read rightly"
    locks = ("pthread_mutex", "pthread_cond", "pthread_rwlock", "pthread_spin", "pthread_barrier", "pthread_once",
             "sem_", "mtx_", "cnd_", "call_once", "lockf", "flock")
    assert [name for name in imports if name.startswith(locks)] == []
