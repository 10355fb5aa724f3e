# SPDX-License-Identifier: MIT
"""A training that goes on from a checkpoint has the bits of one that was never stopped; what is no checkpoint of the network
is refused, and changes nothing."""
import re
import struct
import subprocess

import numpy
import pytest

from conftest import ROOT
from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import same, trainer_of

RULES = {"sgd": {"momentum": 0.9, "nesterov": True}, "adam": {"weight_decay": 0.01}, "adamw": {"weight_decay": 0.01}}
STEPS = 6
HEAD, SUM, SUMMED = 40, 24, 32  # bytes, as runtime/checkpoint.c has them; the sum is of what is from SUMMED on


def network(classes=4):
    """Recurrent layers with dropout between them, batch normalisation, and a product wide enough to be shared by workers."""
    hidden, rng, model = 32, numpy.random.default_rng(4), Model("resumed")
    x, labels = model.input("x", "f32", [5, 8, 6]), model.input("labels", "i64", [8])

    def weight(name, *shape):
        return model.constant((0.3 * rng.standard_normal(shape)).astype(numpy.float32), name)

    def drop(y):
        return model.node("Dropout", [y, model.constant(numpy.float32(0.3))])

    y, _ = model.node("LSTM", [x, weight("W0", 1, 4 * hidden, 6), weight("R0", 1, 4 * hidden, hidden)], 2, hidden_size=hidden)
    y = drop(model.node("Squeeze", [y, model.constant(numpy.array([1]))]))
    _, h = model.node("GRU", [y, weight("W1", 1, 3 * hidden, hidden), weight("R1", 1, 3 * hidden, hidden)], 2, hidden_size=hidden)
    h = model.node("Squeeze", [h, model.constant(numpy.array([0]))])
    scale, bias, mean, variance = (model.constant(rng.uniform(0.5, 2, hidden).astype(numpy.float32), name)
                                   for name in ("scale", "bias", "mean", "variance"))
    model.node("BatchNormalization", [h, scale, bias, mean, variance], ["normal", "mean_1", "variance_1"], training_mode=1)
    wide = drop(model.node("Tanh", [model.node("MatMul", ["normal", weight("wide", hidden, 2400)])]))
    scores = model.node("MatMul", [wide, weight("out", 2400, classes)])
    model.output(model.node("SoftmaxCrossEntropyLoss", [scores, labels], ["loss"]))
    return model


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return network().write(tmp_path_factory.mktemp("resumed"))


@pytest.fixture
def module(compile, path):
    return compile(path, "--train")


def batch(step):
    rng = numpy.random.default_rng(step)
    return rng.standard_normal((5, 8, 6)).astype(numpy.float32), rng.integers(0, 4, 8)


def train(trainer, steps, rule="adam", **options):
    """The bits of each loss, and of all weights at the end."""
    losses = []
    for step in steps:
        losses.append(trainer(*batch(step)).tobytes())
        trainer.backward()
        trainer.step(rule, 0.02 / (step + 1), max_norm=1.0, **options)
    return losses, {name: array.tobytes() for name, array in trainer.weights().items()}


# ---- the bits ----

@pytest.mark.every_case
@pytest.mark.parametrize("rule", RULES)
def test_a_resumed_training_has_the_bits_of_one_that_was_never_stopped(module, rule):
    """Another model, with another number of threads. What was not restored differs: the steps depend on all of it."""
    losses, weights = train(trainer_of(module), range(STEPS), rule, **RULES[rule])
    for before, after in ((1, 3), (3, 1)):
        stopped = trainer_of(module, before)
        assert train(stopped, range(STEPS // 2), rule, **RULES[rule])[0] == losses[:STEPS // 2]
        resumed, weights_alone = trainer_of(module, after), trainer_of(module, after)
        resumed.restore(stopped.checkpoint())
        weights_alone.set_weights(stopped.weights())
        found = [train(it, range(STEPS // 2, STEPS), rule, **RULES[rule]) for it in (resumed, weights_alone)]
        assert found[0] == (losses[STEPS // 2:], weights)
        assert found[1][1] != weights


def test_in_c_too(module, tmp_path):
    """Each part in a process of its own."""
    program = tmp_path / "resumed_training"
    subprocess.run(["clang-19", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'runtime'}",
                    ROOT / "tests" / "modules" / "resumed_training.c", "-ldl", "-o", program], check=True)

    def lines(*arguments):
        return subprocess.run([program, module, *map(str, arguments)], capture_output=True, text=True, check=True).stdout.splitlines()

    for rule in range(len(RULES)):
        whole = lines(1, rule, 0, STEPS)
        first = lines(1, rule, 0, 2, "-", tmp_path / "a")
        second = lines(3, rule, 2, 4, tmp_path / "a", tmp_path / "b")
        third = lines(1, rule, 4, STEPS, tmp_path / "b")
        assert first[:2] + second[:2] + third == whole
        assert len(set(whole[:STEPS])) == STEPS


def test_a_checkpoint_keeps_its_bytes_and_the_model_its_state(module):
    trainer = trainer_of(module)
    train(trainer, range(2))
    kept = trainer.checkpoint()
    assert trainer.checkpoint() == kept
    train(trainer, range(2, 4))
    assert trainer.checkpoint() != kept
    for form in (kept, bytearray(kept), memoryview(b"." + kept)[1:], numpy.frombuffer(kept, numpy.uint8)):
        trainer.restore(form)
        assert trainer.checkpoint() == kept


def test_a_module_for_another_cpu_takes_it_up(compile, path, module):
    trainer, other = trainer_of(module), trainer_of(compile(path, "--train", "--target=x86-64"))
    train(trainer, range(2))
    other.restore(trainer.checkpoint())
    assert other.checkpoint() == trainer.checkpoint()


def test_a_header_has_the_sizes(rnncc, path, module, tmp_path):
    """Of static memory: what the module itself says, or a little more for a context."""
    done = rnncc(path, "--train", "--emit=h", "--name=it", "-o", tmp_path / "it.h")
    assert done.returncode == 0, done.stderr
    said = dict(re.findall(r"^  it_(\w+) = (\d+),$", (tmp_path / "it.h").read_text(), re.MULTILINE))
    trainer = trainer_of(module)
    assert int(said["CHECKPOINT_BYTES"]) == len(trainer.checkpoint())
    size = trainer._api.context_size(trainer._model)
    assert size <= int(said["CONTEXT_BYTES"]) <= size + 1024


def test_a_run_of_before_has_no_way_back(module):
    trainer = trainer_of(module)
    start = trainer.checkpoint()
    trainer(*batch(0))
    trainer.restore(start)
    with pytest.raises(package.ArgumentError, match="expected a run"):
        trainer.backward()


def test_gradients_of_before_are_forgotten(module):
    """Those of the last way back, and those that were kept."""
    trainer = trainer_of(module)
    start = trainer.checkpoint()
    trainer(*batch(0))
    trainer.backward()
    due = trainer.gradients()
    trainer.keep_gradients()
    trainer.restore(start)
    with pytest.raises(package.ArgumentError, match="step: expected a backward"):
        trainer.step("sgd", 0.1)
    trainer(*batch(0))
    trainer.backward()
    assert same(trainer.gradients(), due)


# ---- what is refused ----

def refused(trainer, data, error, words):
    before = trainer.checkpoint()
    with pytest.raises(error, match=words):
        trainer.restore(data)
    assert trainer.checkpoint() == before


@pytest.fixture
def kept(module):
    trainer = trainer_of(module)
    train(trainer, range(2))
    return trainer, trainer.checkpoint()


def test_what_is_no_checkpoint_is_refused(kept):
    trainer, data = kept
    for short in (b"", data[:HEAD - 1], data[:8]):
        refused(trainer, short, package.SizeError, f"expected {len(data)} bytes, found {len(short)}")
    for other in (data[:-1], data[:100], data + b"."):
        refused(trainer, other, package.SizeError, f"expected {len(data)} bytes, found {len(other)}")
    refused(trainer, bytes(len(data)), package.ArgumentError, "expected what checkpoint_get")
    for wrong in (5, None, "text"):
        refused(trainer, wrong, package.ArgumentError, "restore: expected what checkpoint\\(\\) gives, found")


def test_a_flipped_bit_is_found_wherever_it_is(kept):
    trainer, data = kept
    for at in [*range(HEAD), *range(HEAD, len(data), len(data) // 50), len(data) - 1]:
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        refused(trainer, bad, (package.ArgumentError, package.DataError), "checkpoint_set: ")


def test_two_flipped_bits_are_found_where_they_are_alike(kept):
    """The first of each byte, in the sum's words of eight bytes: the highest of all have their own way to cancel."""
    trainer, data = kept
    begin = HEAD + 8 * len(trainer.names)
    for byte in range(8):
        for apart in (8, 16, 800):
            bad = bytearray(data)
            bad[begin + byte] ^= 0x80
            bad[begin + byte + apart] ^= 0x80
            refused(trainer, bad, package.DataError, "checkpoint_set: ")


def test_another_networks_is_refused(compile, tmp_path, module):
    other = trainer_of(compile(network(classes=5).write(tmp_path), "--train")).checkpoint()
    refused(trainer_of(module), other, package.ArgumentError, "of a network whose weights or states have other names or shapes")


def test_fewer_weights_that_are_trained_are_another_network(compile, path, module):
    other = trainer_of(compile(path, "--train=!out")).checkpoint()
    refused(trainer_of(module), other, package.ArgumentError, "of a network whose weights")


def with_its_sum(data):
    """The same bytes, whose sum is right again."""
    found, bits = 0xcbf29ce484222325, (1 << 64) - 1
    for (word,) in struct.iter_unpack("<Q", data[SUMMED:] + bytes(-len(data) % 8)):
        found = (found ^ word) * 0x100000001b3 & bits
        found ^= found >> 32
    return data[:SUM] + struct.pack("<Q", found) + data[SUMMED:]


@pytest.mark.every_case
@pytest.mark.parametrize("number", [numpy.nan, numpy.inf])
def test_weights_that_are_not_finite_are_named(kept, number):
    """By whoever would make the checkpoint, and by whoever takes it."""
    trainer, data = kept
    assert with_its_sum(data) == data
    first, begin = next(iter(trainer.weights())), HEAD + 8 * len(trainer.names)
    refused(trainer, with_its_sum(data[:begin] + struct.pack("<f", number) + data[begin + 4:]), package.DataError,
            f"checkpoint_set: the weight of '{first}' has a number that is not finite")
    weight = trainer.weights()["out"]
    trainer.set_weights({"out": numpy.where(numpy.arange(weight.size).reshape(weight.shape) == 5, number, weight)})
    with pytest.raises(package.DataError, match="checkpoint_get: the weight of 'out' has a number that is not finite"):
        trainer.checkpoint()
    trainer.set_weights({"out": weight})
    assert trainer.checkpoint() == data


def test_means_that_are_not_finite_make_no_checkpoint(module):
    """The gradients are finite, and their squares are not, in f32."""
    trainer = trainer_of(module)
    train(trainer, range(1), gradient_scale=1.0)
    trainer(*batch(1))
    trainer.backward()
    trainer.step("adam", 0.01, gradient_scale=1e30)
    with pytest.raises(package.DataError, match="checkpoint_get: the mean of squares of '.*' has a number that is not finite"):
        trainer.checkpoint()
    trainer.reset_optimizer()
    trainer_of(module).restore(trainer.checkpoint())


def test_a_count_of_steps_that_makes_no_sense_is_refused(kept):
    trainer, data = kept
    for count in (-1, 1 << 62):
        refused(trainer, with_its_sum(data[:HEAD] + struct.pack("<q", count) + data[HEAD + 8:]), package.DataError, "damaged")


def test_what_one_rule_keeps_is_for_no_other(module):
    """Nor after a checkpoint. Steps without momentum keep nothing."""
    trainer, other = trainer_of(module), trainer_of(module)
    train(trainer, range(1), "sgd")
    train(trainer, range(1), "adam")
    other.restore(trainer.checkpoint())
    for it in (trainer, other):
        for rule, options in (("adamw", {}), ("sgd", {"momentum": 0.9})):
            before = it.checkpoint()
            it(*batch(0))
            it.backward()
            with pytest.raises(package.ArgumentError, match=f"expected the rule adam, .* found {rule}; optimizer_reset"):
                it.step(rule, 0.1, **options)
            it.restore(before)
        train(it, range(1), "sgd")
        it.reset_optimizer()
        train(it, range(1), "sgd", momentum=0.9)
        with pytest.raises(package.ArgumentError, match="expected the rule sgd"):
            train(it, range(1), "adam")
