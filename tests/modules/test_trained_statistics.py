# SPDX-License-Identifier: MIT
"""BatchNormalization in training: its running statistics are weights that step() changes, and nothing else does."""
import numpy
import pytest

from support.bodies import Body
from support.model_builder import Model
from support.module import rnncc as package
from support.trainers import same, trainer_of

MOMENTUM, CHANNELS, SHAPE = 0.75, 3, (5, 3, 4)


def network(mode=1, twice=False):
    rng, model = numpy.random.default_rng(8), Model()
    x = model.input("x", "f32", SHAPE)
    scale, bias, mean, variance = (model.constant(rng.uniform(0.5, 2, CHANNELS).astype(numpy.float32), name)
                                   for name in ("scale", "bias", "mean", "variance"))
    for k in range(1 + twice):
        outputs = [f"y{k}", f"mean{k}", f"variance{k}"] if mode else [f"y{k}"]
        model.node("BatchNormalization", [x, scale, bias, mean, variance], outputs, momentum=MOMENTUM, training_mode=mode)
        x = outputs[0]
    model.output(model.node("ReduceMean", [model.node("Tanh", [x])], ["loss"], keepdims=0))
    return model


def batch(seed=0):
    return numpy.random.default_rng(seed).normal(1, 2, SHAPE).astype(numpy.float32)


def train(trainer, x):
    trainer(x)
    trainer.backward()
    trainer.step("sgd", 0.1)


def statistics(trainer):
    return {name: array for name, array in trainer.weights().items() if name in ("mean", "variance")}


def test_a_step_takes_the_statistics_of_its_run_and_a_run_alone_does_not(compile, tmp_path):
    """A mean of 20 numbers in f32."""
    trainer = package.load(compile(network().write(tmp_path), "--train"), threads=2, share_all=True).trainer()
    assert set(trainer.names) == {"scale", "bias"}
    due = statistics(trainer)
    trainer(batch(7))
    trainer.backward()
    assert same(statistics(trainer), due)
    for seed in range(3):
        x = batch(seed).astype(float)
        train(trainer, batch(seed))
        now = {"mean": x.mean((0, 2)), "variance": x.var((0, 2))}
        due = {name: MOMENTUM * due[name] + (1 - MOMENTUM) * now[name] for name in due}
        for name, array in statistics(trainer).items():
            assert numpy.abs(array - due[name]).max() < 2.0**-20 * numpy.abs(due[name]).max(), name


def test_they_are_those_of_the_weight_that_a_node_reads_a_copy_of(compile, tmp_path):
    model = network()
    model.nodes[0]["inputs"][3] = "copy"
    model.nodes.insert(0, {"op": "Identity", "inputs": ["mean"], "outputs": ["copy"]})
    trainer = package.load(compile(model.write(tmp_path), "--train"), threads=1).trainer()
    plain = package.load(compile(network().write(tmp_path, "plain"), "--train"), threads=1).trainer()
    for it in (trainer, plain):
        train(it, batch())
    assert set(statistics(trainer)) == {"mean", "variance"} and same(statistics(trainer), statistics(plain))


def test_they_are_set_by_name_and_have_no_gradient(compile, tmp_path):
    trainer = package.load(compile(network().write(tmp_path), "--train"), threads=1).trainer()
    zeros = {name: numpy.zeros(CHANNELS, numpy.float32) for name in ("mean", "variance")}
    trainer.set_weights(zeros)
    assert same(statistics(trainer), zeros)
    trainer(batch())
    trainer.backward()
    assert trainer.gradients().keys() == {"scale", "bias"}
    with pytest.raises(package.ArgumentError, match="no weight mean is trained; expected one of scale, bias$"):
        trainer.gradient("mean")
    norm = numpy.sqrt(sum((g.astype(float)**2).sum() for g in trainer.gradients().values()))
    assert abs(trainer.gradient_norm() - norm) < 1e-6 * norm


def test_a_step_that_is_refused_leaves_them(compile, tmp_path):
    trainer = package.load(compile(network().write(tmp_path), "--train"), threads=1).trainer()
    before, x = trainer.weights(), batch()
    x[1, 2, 3] = numpy.nan
    trainer(x)
    trainer.backward()
    with pytest.raises(package.DataError, match="gradient of 'scale' has a number that is not finite"):
        trainer.step("adam", 0.1)
    assert same(trainer.weights(), before)


def test_a_statistic_that_is_not_finite_is_named(compile, tmp_path):
    """Squares beyond f32, of a channel whose results are finite all the same."""
    trainer = package.load(compile(network().write(tmp_path), "--train"), threads=1).trainer()
    before, x = trainer.weights(), batch()
    trainer(x * numpy.float32(1e30))
    trainer.backward()
    with pytest.raises(package.DataError, match="of '(scale|variance)' has a number that is not finite"):
        trainer.step("sgd", 0.1)
    assert same(trainer.weights(), before)


def test_what_a_pattern_leaves_out_stays(compile, tmp_path):
    trainer = package.load(compile(network().write(tmp_path), "--train=*,!variance"), threads=1).trainer()
    assert trainer.weights().keys() == {"scale", "bias", "mean"}
    before = trainer.weights()["mean"]
    train(trainer, batch())
    assert (trainer.weights()["mean"] != before).all()


def test_by_the_statistics_of_the_model_they_are_constants(compile, tmp_path):
    trainer = package.load(compile(network(0).write(tmp_path), "--train"), threads=1).trainer()
    assert trainer.weights().keys() == {"scale", "bias"}
    train(trainer, batch())


def test_results_have_the_same_bits_on_any_number_of_threads(compile, tmp_path):
    module, seen = compile(network().write(tmp_path), "--train"), set()
    for threads in (1, 2, 8):
        trainer = trainer_of(module, threads)
        for seed in range(3):
            train(trainer, batch(seed))
        seen.add(b"".join(array.tobytes() for array in trainer.weights().values()))
    assert len(seen) == 1


def test_statistics_of_two_nodes_are_refused(rnncc, tmp_path):
    done = rnncc(network(twice=True).write(tmp_path), "--train", "-o", tmp_path / "m.so")
    assert done.returncode == 3 and "`mean` is the running statistic of two nodes" in done.stderr, done.stderr
    assert "`variance` is the running statistic" in done.stderr


def test_a_statistic_that_the_loss_depends_on_is_refused(rnncc, tmp_path):
    model = network()
    loss = model.nodes.pop()
    total = model.node("ReduceSum", ["mean"], keepdims=0)
    model.nodes.append({**loss, "name": "last", "inputs": [model.node("Mul", [*loss["inputs"], total])]})
    done = rnncc(model.write(tmp_path), "--train", "-o", tmp_path / "m.so")
    assert done.returncode == 3 and "expected --train='!mean'" in done.stderr and "variance" not in done.stderr, done.stderr
    assert "nodes[0]: " in done.stderr and "`mean` is a running statistic, and the loss depends on it" in done.stderr
    assert rnncc(model.write(tmp_path), "--train=*,!mean", "--emit=h", "-o", tmp_path / "m.h").returncode == 0


def test_a_statistic_of_a_node_in_a_body_is_refused(rnncc, tmp_path):
    model, bodies = Model(), []
    x, ones = model.input("x", "f32", SHAPE), numpy.ones(CHANNELS, numpy.float32)
    weights = [model.constant(ones, name) for name in ("scale", "bias", "mean", "variance")]
    for mode in (0, 1):
        bodies.append(Body(model))
        y = bodies[-1].node("BatchNormalization", [x, *weights], 3 if mode else 1, training_mode=mode)
        bodies[-1].output(y[0] if mode else y)
    y = model.node("If", [model.input("c", "bool", [])], then_branch=bodies[0], else_branch=bodies[1])
    model.output(model.node("ReduceMean", [y], ["loss"], keepdims=0))
    done = rnncc(model.write(tmp_path), "--train", "-o", tmp_path / "m.so")
    assert done.returncode == 3, done.stderr
    for name in ("mean", "variance"):
        assert f"`{name}` is a running statistic of a node in a body, which no step would change; expected --train='!{name}'" \
            in done.stderr, done.stderr


def in_a_branch():
    """Both branches read statistics."""
    model = network()
    body = Body(model)
    body.output(body.node("Add", ["mean", "mean"]))
    model.output(model.node("If", [model.input("c", "bool", [])], then_branch=body, else_branch=body_of(model)))
    return model


def body_of(model):
    body = Body(model)
    return body.output(body.node("Neg", ["variance"]))


def test_bodies_read_the_statistics_as_steps_have_changed_them(compile, tmp_path):
    trainer = package.load(compile(in_a_branch().write(tmp_path), "--train", "--loss=loss"), threads=1).trainer()
    for truth, name, factor in ((True, "mean", 2), (False, "variance", -1), (True, "mean", 2)):
        due = factor * trainer.weights()[name]
        found = trainer(batch(), numpy.array(truth))[-1]
        trainer.backward()
        trainer.step("sgd", 0.1)
        assert numpy.allclose(found, due, rtol=1e-6) and (factor * trainer.weights()[name] != due).any()
