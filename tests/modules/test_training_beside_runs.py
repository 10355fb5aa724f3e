# SPDX-License-Identifier: MIT
"""Trained weights change while contexts run: a run, and its way back, ends with the weights that it began with."""
import ctypes
import os
import resource
import signal
import subprocess
import threading

import numpy
import pytest

from conftest import ROOT
from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import same
from support.watched import made
from rnncc import abi

WIDTH = 4096


def twins(width=WIDTH):
    """y = v - w and the sum of x (v + w) as the loss: v and w begin alike, and have equal gradients."""
    model = Model("twins")
    x = model.input("x", "f32", [width])
    v, w = (model.constant(numpy.zeros(width, numpy.float32), name) for name in "vw")
    loss = model.node("ReduceSum", [model.node("Mul", [x, model.node("Add", [v, w])])], ["loss"], keepdims=0)
    model.output(loss, model.node("Sub", [v, w], ["y"]))
    return model


def layers(hidden=64):
    """Two products and a loss, whose gradients depend on all weights."""
    rng, model = numpy.random.default_rng(6), Model("layers")
    x, labels = model.input("x", "f32", [8, 24]), model.input("labels", "i64", [8])
    for name, shape in {"first": (24, hidden), "second": (hidden, hidden), "third": (hidden, 4)}.items():
        x = model.node("MatMul", [x, model.constant((0.3 * rng.standard_normal(shape)).astype(numpy.float32), name)])
        x = model.node("Tanh", [x])
    model.output(model.node("SoftmaxCrossEntropyLoss", [x, labels], ["loss"]))
    return model


@pytest.mark.unsanitized
@pytest.mark.parametrize("sanitizer", ["thread", pytest.param("address", marks=pytest.mark.long)])
def test_runs_steps_and_setters_at_once(rnncc, tmp_path, sanitizer):
    """The module's own C is built with the sanitizer, too."""
    done = rnncc(twins().write(tmp_path), "--train", "--emit=c", "-o", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    flags = f"-fsanitize={sanitizer} -shared-libsan"
    module = made(tmp_path / "c", f"clang-19 {flags}")
    subprocess.run(["clang++-19", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *flags.split(), f"-I{ROOT}/runtime",
                    f"-I{ROOT}/runtime/bindings/cpp", "-pthread", ROOT / "tests" / "bindings" / "trained_weights.cc", "-ldl",
                    "-o", tmp_path / "program"], check=True)
    name = f"libclang_rt.{sanitizer[0]}san-x86_64.so"
    library = subprocess.run(["clang-19", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run([tmp_path / "program", module, "200"], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(library), "ASAN_OPTIONS": "detect_leaks=0"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


# ---- in the middle of a run, by the host's own parallel_for ----

class Interrupted:
    """A trainer whose next run, or way back, calls `between` before its first piece of work."""

    def __init__(self, module):
        body_type, self.between = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int), None

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        def in_turn(_, n, body, arg):
            between, self.between = self.between, None
            if between:
                between()
            for index in range(n):
                body_type(body)(arg, index)

        self.held = in_turn
        self.module = package.load(module, threads=1)
        table = self.module._open().api
        options = abi.Options(struct_size=ctypes.sizeof(abi.Options), threads=2, by_steps=1, share_all=1,
                              parallel_for=ctypes.cast(in_turn, ctypes.c_void_p).value)
        model = ctypes.c_void_p()
        assert table.model_create(ctypes.byref(options), ctypes.byref(model), None) == 0
        native = self.module._open()
        self.destroy = lambda: table.model_destroy(model)
        native.handle, self.plain = model.value, native.handle
        self.first, self.second = self.module.trainer(), self.module.trainer()
        native.handle = self.plain

    def close(self):
        self.first.close()
        self.second.close()
        self.destroy()


@pytest.fixture
def interrupted(compile, tmp_path):
    made_here = Interrupted(compile(layers().write(tmp_path), "--train"))
    yield made_here
    made_here.close()


def batch(seed=0):
    rng = numpy.random.default_rng(seed)
    return rng.standard_normal((8, 24)).astype(numpy.float32), rng.integers(0, 4, 8)


def other_weights(trainer):
    return {name: array + numpy.float32(0.25) for name, array in trainer.weights().items()}


def changes(trainer):
    """What changes all weights, by another context of the model."""
    new = other_weights(trainer)
    trainer.set_weights(new)
    checkpoint = trainer.checkpoint()
    trainer.set_weights({name: array - numpy.float32(0.25) for name, array in new.items()})

    def step():
        trainer(*batch(1))
        trainer.backward()
        trainer.step("adam", 0.25)

    def one_by_one():
        for name, array in new.items():
            trainer.set_weights({name: array})

    return {"set": lambda: trainer.set_weights(new), "one by one": one_by_one, "step": step,
            "restore": lambda: trainer.restore(checkpoint)}


@pytest.mark.every_case
@pytest.mark.parametrize("how", ["set", "one by one", "step", "restore"])
def test_a_run_ends_with_the_weights_that_it_began_with(interrupted, how):
    first, second = interrupted.first, interrupted.second
    change = changes(second)[how]
    before = second.weights()
    old = first(*batch())
    interrupted.between = change
    assert first(*batch()) == old and interrupted.between is None
    after = second.weights()
    assert all((after[name] != before[name]).any() for name in before)
    with pytest.raises(package.ArgumentError, match="weights have changed since the run"):
        first.backward()
    new = first(*batch())
    assert new != old
    second.set_weights(before)
    assert first(*batch()) == old


@pytest.mark.every_case
@pytest.mark.parametrize("how", ["set", "one by one", "step", "restore"])
def test_so_does_its_way_back(interrupted, how):
    """A step uses the gradients that it has, and the weights of now."""
    first, second = interrupted.first, interrupted.second
    change = changes(second)[how]
    first(*batch())
    first.backward()
    due = first.gradients()
    first(*batch())
    interrupted.between = change
    first.backward()
    assert interrupted.between is None and same(first.gradients(), due)
    now = second.weights()
    first.step("sgd", 0.5)
    assert all((array == now[name] - numpy.float32(0.5) * due[name]).all() for name, array in first.weights().items())


# ---- memory and forks ----

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_stays_over_many_changes(compile, tmp_path):
    trainer = package.load(compile(layers(512).write(tmp_path), "--train"), threads=1).trainer()

    def change(n):
        trainer(*batch(n))
        trainer.backward()
        trainer.step("sgd", 0.01)
        trainer.set_weights({"first": numpy.ones((24, 512), numpy.float32)})

    for n in range(4):
        change(n)
    before = resident()
    for n in range(60):
        change(n)
    assert resident() - before < 512 * 512 * 4


class NoMemory:
    """While it lasts there is none of so many bytes at once."""

    def __init__(self, size):
        self.size, self.taken, self.libc = size, [], ctypes.CDLL(None)
        self.libc.malloc.restype, self.libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self.libc.free.argtypes = [ctypes.c_void_p]

    def __enter__(self):
        self.before = resource.getrlimit(resource.RLIMIT_AS)
        now = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + self.size // 2, self.before[1]))
        while (memory := self.libc.malloc(self.size)):
            self.taken.append(memory)

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_AS, self.before)
        for memory in self.taken:
            self.libc.free(memory)


def test_without_memory_for_weights_beside_those_of_a_run_nothing_changes(compile, tmp_path):
    """The run reads weights of before; those of now stay, too."""
    interrupted, found = Interrupted(compile(layers(1024).write(tmp_path), "--train")), []
    first, second = interrupted.first, interrupted.second

    def change():
        checkpoint = second.checkpoint()
        for _ in range(2):
            second(*batch(1))
            second.backward()
            if not found:
                found.append("a spare one was there")
                second.step("sgd", 0.25)
        now = second.weights()
        for call in (lambda: second.step("sgd", 0.25), lambda: second.restore(checkpoint)):
            with NoMemory(1024 * 1024 * 4):
                try:
                    call()
                except package.Error as error:
                    found.append(str(error))
        found.append(same(second.weights(), now))
        second.step("sgd", 0.25)
        found.append(same(second.weights(), now))

    interrupted.between = change
    first(*batch())
    interrupted.close()
    assert found == ["a spare one was there", "step: out of memory for weights beside those of runs",
                     "checkpoint_set: out of memory", True, False]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_that_came_in_the_middle_of_steps(compile, tmp_path):
    """In the child the lock is free, and the weights are those of one step: v and w alike."""
    loaded = package.load(compile(twins(1 << 18).write(tmp_path), "--train"), threads=1)
    training, x = True, numpy.ones(1 << 18, numpy.float32)

    def train(trainer, while_true=lambda: training):
        while while_true():
            trainer(x)
            trainer.backward()
            trainer.step("adam", 0.1)

    thread = threading.Thread(target=train, args=(loaded.trainer(),))
    thread.start()
    ends = []
    for _ in range(8):
        child = os.fork()
        if not child:
            signal.alarm(60)
            trainer, left = loaded.trainer(), [True, True, False]
            good = not loaded.context()(x)[1].any()
            trainer.reset_optimizer()
            train(trainer, lambda: left.pop(0))
            trainer.set_weights(trainer.weights())
            trainer.restore(trainer.checkpoint())
            os._exit(0 if good and not trainer(x)[1].any() else 1)
        ends.append(os.waitpid(child, 0)[1])
    training = False
    thread.join()
    assert ends == [0] * 8


# ---- several weights at once ----

def update(trainer, *weights, **changed):
    """The status and the words of weights_update, of a ctypes.Structure for each weight."""
    given = (abi.Weight * len(weights))()
    for one, (name, array) in zip(given, weights):
        one.struct_size, one.dtype, one.name = ctypes.sizeof(abi.Weight), 1, name
        one.data, one.bytes = array.ctypes.data, array.nbytes
    for name, value in changed.items():
        setattr(given[0], name, value)
    why = ctypes.create_string_buffer(200)
    status = trainer._training.weights_update(trainer._model, given, len(given), why, len(why))
    return status, why.value.decode()


def test_several_weights_are_set_together_or_not_at_all(compile, tmp_path):
    trainer = package.load(compile(layers().write(tmp_path), "--train"), threads=1).trainer()
    before, good = trainer.weights(), (b"first", numpy.zeros((24, 64), numpy.float32))
    small = numpy.zeros(3, numpy.float32)
    for arguments, changed, status, words in [
            ([good, (b"fourth", small)], {}, 1, "no weight `fourth` is trained, or its data is NULL"),
            ([good, (b"second", small)], {}, 5, "weight `second`: expected 16384 bytes, found 12"),
            ([good, good], {}, 1, "weight `first` is there twice"),
            ([good], {"dtype": 6}, 4, "weight `first`: expected element type f32"),
            ([good], {"data": None}, 1, "no weight `first` is trained, or its data is NULL"),
            ([good], {"name": None}, 1, "no weight `` is trained, or its data is NULL"),
            ([good], {"struct_size": 8}, 1, "weights_update: struct_size: expected at least 32, found 8")]:
        assert update(trainer, *arguments, **changed) == (status, words)
        assert same(trainer.weights(), before)
    assert update(trainer) == (0, "")
    assert update(trainer, good) == (0, "")
    assert same(trainer.weights(), {**before, "first": good[1]})
