# SPDX-License-Identifier: MIT
"""Which models `rnncc --train` makes training modules of, and by which loss; what it refuses, and names."""
import json
import re

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.bodies import Body
from support.model_builder import Model
from support.module import rnncc as package
from support.onnx_files import F32, model_of, write


def refused(rnncc, tmp_path, model, *options):
    done = rnncc(model.write(tmp_path), "--train", *options, "-o", tmp_path / "step.so")
    assert not (tmp_path / "step.so").exists()
    return done.returncode, done.stderr


def test_operators_without_gradient_are_named_all_at_once(rnncc, tmp_path):
    model = Model()
    w = model.node("Mul", [model.input("x", "f32", [3, 3]), model.constant(numpy.eye(3, dtype=numpy.float32), "w")])
    d, lrn = model.node("Det", [w]), model.node("LpNormalization", [w])
    model.output(model.node("Det", [model.inputs[0]["name"]]))
    model.output(model.node("Add", [d, model.node("ReduceSum", [lrn], keepdims=0)]))
    status, said = refused(rnncc, tmp_path, model, "--loss=v5_0")
    assert status == 3
    assert "`n1`, Det, has no gradient" in said and "`n2`, LpNormalization, has no gradient" in said and "`n3`" not in said


def test_what_a_rule_lacks_is_named(rnncc, tmp_path):
    model = Model()
    w = model.node("Mul", [model.input("x", "f32", [2, 3]), model.constant(numpy.ones((2, 3), numpy.float32), "w")])
    model.output(model.node("ReduceSum", [model.node("Pad", [w], mode="reflect", pads=[1, 1, 0, 0])], keepdims=0))
    status, said = refused(rnncc, tmp_path, model)
    assert status == 3 and "`n1`, Pad, has no gradient for a `mode` other than constant" in said


def weighed(model, *shape):
    return model.node("Mul", [model.input("x", "f32", shape), model.constant(numpy.ones(shape, numpy.float32), "w")])


def of_halves():
    """An export of mixed precision: the product reads the weight in f16."""
    model = Model()
    half = model.node("Cast", [weighed(model, 2, 3)], to="f16")
    model.output(model.node("ReduceSum", [model.node("Cast", [half], to="f32")], keepdims=0))
    return model


def of_a_mean():
    model = Model()
    x = weighed(model, 2, 3)
    ones = model.constant(numpy.ones(3, numpy.float32))
    mean = model.node("ReduceMean", [x, model.constant(numpy.array([0]))], keepdims=0)
    model.output(model.node("ReduceSum", [model.node("BatchNormalization", [x, ones, ones, mean, ones])], keepdims=0))
    return model


def through_an_unrolled_loop():
    model = Model()
    body = Body(model, i="i64", c="bool", y="f32")
    body.output(body.inputs[1], body.node("Mul", [body.inputs[2], "w"]))
    y = model.node("Loop", [model.constant(numpy.array(3)), None, weighed(model, 2, 3)], body=body)
    model.output(model.node("ReduceSum", [y], keepdims=0))
    return model


def test_a_loop_of_few_known_turns_is_trained(compile, tmp_path):
    """It is unrolled, and its body's weights with it: x w^4."""
    trainer = package.load(compile(through_an_unrolled_loop().write(tmp_path), "--train"), threads=1).trainer()
    trainer.set_weights({"w": numpy.full((2, 3), 2, numpy.float32)})
    x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    assert trainer(x) == 16 * x.sum()
    trainer.backward()
    assert (trainer.gradients()["w"] == 32 * x).all()


def of_an_empty_part():
    model = Model()
    model.dim("T", 1, 4, 9)
    x = model.node("Mul", [model.input("x", "f32", ["T", 3]), model.constant(numpy.ones(3, numpy.float32), "w")])
    ends = [model.constant(numpy.array([n])) for n in (0, -1, 0)]
    model.output(model.node("ReduceSum", [model.node("Slice", [x, *ends])], keepdims=0))
    return model


def test_a_part_that_may_be_empty_is_trained(compile, tmp_path):
    """All rows but the last one: of one row none, whose gradient is padded to zeros."""
    trainer = package.load(compile(of_an_empty_part().write(tmp_path), "--train"), threads=1).trainer()
    for T in (4, 1, 9, 2, 1):
        x = numpy.random.default_rng(T).integers(-9, 10, (T, 3)).astype(numpy.float32)
        assert trainer(x) == x[:-1].sum()
        trainer.backward()
        assert (trainer.gradients()["w"] == x[:-1].sum(axis=0)).all()


@pytest.mark.parametrize("first, last, step", [(-1, 0, -2), (-1, 1, -1), (100, 0, -2), (1, 5, -2), (2, 2, -2), (2, 100, 3), (5, 1, -2)])
def test_a_part_of_steps_that_may_be_empty_is_trained(compile, tmp_path, first, last, step):
    model = Model("backwards")
    model.dim("T", 1, 8, 16)
    x = model.node("Mul", [model.input("x", "f32", [2, "T"]), model.constant(numpy.ones((2, 1), numpy.float32), "w")])
    limits = [model.constant(numpy.array([n])) for n in (first, last, 1, step)]
    model.output(model.node("ReduceSum", [model.node("Slice", [x, *limits])], keepdims=0))
    trainer = package.load(compile(model.write(tmp_path), "--train"), threads=1).trainer()
    for T in (1, 3, 9, 16):
        x = numpy.arange(2 * T, dtype=numpy.float32).reshape(2, T)
        assert trainer(x) == x[:, first:last:step].sum()
        trainer.backward()
        assert (trainer.gradients()["w"] == x[:, first:last:step].sum(axis=1, keepdims=True)).all()


@pytest.mark.parametrize("model, words", [
    (of_halves, "`n2`, Cast, has no gradient for elements of f16"), (of_a_mean, "`n2`, BatchNormalization, has no gradient for input 3")])
def test_what_would_be_wrong_without_a_word_is_refused(rnncc, tmp_path, model, words):
    status, said = refused(rnncc, tmp_path, model())
    assert status == 3 and words in said, said


def test_layers_of_any_gate_order_and_of_fewer_outputs_are_trained(compile, tmp_path):
    rng, model = numpy.random.default_rng(1), Model()
    W, R = (model.constant(rng.standard_normal((1, 8, n)).astype(numpy.float32), name) for name, n in (("W", 3), ("R", 2)))
    y = model.node("LSTM", [model.input("x", "f32", [4, 2, 3]), W, R], ["y"], hidden_size=2)
    model.output(model.node("ReduceSum", [y], keepdims=0))
    x, text = rng.standard_normal((4, 2, 3)).astype(numpy.float32), json.loads(model.write(tmp_path).read_text())
    for order in ("iofc", "ifco"):
        text["nodes"][0]["gate_order"] = order
        (tmp_path / "model.json").write_text(json.dumps(text))
        trainer = package.load(compile(tmp_path / "model.json", "--train"), threads=1).trainer()
        assert sorted(trainer.names) == ["R", "W"]
        trainer(x)
        trainer.backward()
        assert all(numpy.abs(d).max() > 0 for d in trainer.gradients().values())


def test_a_weight_that_an_operator_hands_on_as_it_is_is_trained(compile, tmp_path):
    model = Model()
    x = model.input("x", "f32", [2])
    w = model.node("CastLike", [model.constant(numpy.ones(2, numpy.float32), "w"), x])
    model.output(model.node("ReduceSum", [model.node("Mul", [w, x])], keepdims=0))
    trainer = package.load(compile(model.write(tmp_path), "--train"), threads=1).trainer()
    trainer(numpy.array([2, 3], numpy.float32))
    trainer.backward()
    assert (trainer.gradients()["w"] == [2, 3]).all()


def test_a_weight_that_is_not_trained_is_a_constant_of_what_hands_it_on(rnncc, tmp_path):
    model = Model()
    x = model.input("x", "f32", [2])
    constants = [model.constant(numpy.ones(2, numpy.float32), name) for name in ("w", "fixed")]
    w, fixed = (model.node("CastLike", [constant, x]) for constant in constants)
    model.output(model.node("ReduceSum", [model.node("Mul", [model.node("Mul", [w, x]), fixed])], keepdims=0))
    path = model.write(tmp_path)
    copies = {trained: rnncc(path, trained, "--dump-after=decompose", "-o", tmp_path / "it.so").stderr.count("Identity")
              for trained in ("--train", "--train=w")}
    assert copies == {"--train": 2, "--train=w": 1}


def test_a_power_of_nothing_has_no_slope(compile, tmp_path):
    model = Model()
    w = model.constant(numpy.array([0, 2], numpy.float32), "w")
    power = model.node("Pow", [w, model.input("e", "f32", [2])])
    model.output(model.node("ReduceSum", [power], keepdims=0))
    trainer = package.load(compile(model.write(tmp_path), "--train"), threads=1).trainer()
    trainer(numpy.array([0, 3], numpy.float32))
    trainer.backward()
    assert (trainer.gradients()["w"] == [0, 12]).all()


def two_outputs():
    model = Model()
    x = model.input("x", "f32", [3])
    y = model.node("Mul", [x, model.constant(numpy.ones(3, numpy.float32), "w")], ["vector"])
    model.output(y, model.node("ReduceSum", [y], ["one"], keepdims=0), model.node("ReduceMean", [y], ["other"], keepdims=0))
    return model


@pytest.mark.parametrize("options, words", [
    ([], "`one` and `other` are both scalars: expected --loss=NAME"),
    (["--loss=vector"], "--loss: expected one f32 number, found `vector`"),
    (["--loss=nothing"], "--loss: the model has no output `nothing`"),
    (["--loss=one", "--train=nothing"], "depends on no weight that is trained"),
    (["--loss=one", "--train="], "expected PATTERN or !PATTERN"),
    (["--loss=one", "--train=a,,b"], "expected PATTERN or !PATTERN"),
])
def test_a_loss_that_is_none_is_refused(rnncc, tmp_path, options, words):
    status, said = refused(rnncc, tmp_path, two_outputs(), *options)
    assert status == 2 and words in said


def test_the_build_record_says_what_was_to_be_trained(rnncc, rnnrun, tmp_path):
    """A pattern that would end a comment in C, too."""
    done = rnncc(two_outputs().write(tmp_path), "--train=*/weight,w,!/*", "--loss=one", "-o", tmp_path / "step.so")
    assert done.returncode == 0, done.stderr
    assert " --train=*/weight,w,!/* --loss=one, model" in rnnrun("inspect", tmp_path / "step.so").stdout


def test_the_loss_is_chosen_by_name(compile, tmp_path):
    path = two_outputs().write(tmp_path)
    for loss, due in (("one", 1), ("other", 1 / 3)):
        trainer = package.load(compile(path, "--train", f"--loss={loss}"), threads=1).trainer()
        trainer(numpy.ones(3, numpy.float32))
        trainer.backward()
        assert numpy.allclose(trainer.gradients()["w"], due)


def steps_of_cross_entropy(rnncc, folder, results):
    model = Model()
    x, labels = model.input("x", "f32", [50, 8]), model.input("labels", "i64", [50])
    scores = model.node("MatMul", [x, model.constant(numpy.ones((8, 3000), numpy.float32), "w")])
    found = model.node("SoftmaxCrossEntropyLoss", [scores, labels], results)
    model.output(*([found] if results == 1 else found))
    text = rnncc("inspect", "--train", model.write(folder)).stdout
    steps = [line.split() for line in text[text.index("step node"):].splitlines()]
    return [words[2] for words in steps if words[1] == "n1"]


def test_cross_entropy_is_a_kernel_each_way(rnncc, tmp_path):
    assert steps_of_cross_entropy(rnncc, tmp_path, 1) == ["CrossEntropy", "ReduceMean", "CrossEntropyGradient"]


def test_the_gradient_of_cross_entropy_has_no_rows_of_zeros(rnncc, tmp_path):
    """Where log-probabilities are an output: what the labels' classes hand back is added to what all classes do, neither
    zeros of each class nor a sum of them."""
    of_loss = steps_of_cross_entropy(rnncc, tmp_path, 2)
    assert of_loss.count("ScatterElements") == 2 and of_loss.count("LogSoftmax") == 1, of_loss
    assert not {"Expand", "ReduceSum", "Exp", "Sub"} & set(of_loss), of_loss


def test_what_only_gradients_need_is_no_part_of_a_kernel_of_run(rnncc, tmp_path):
    """Element-wise nodes of one shape: 1 - tanh^2, times x, is computed by backward()."""
    model = Model()
    x, w = model.input("x", "f32", [4, 60]), model.constant(numpy.ones((4, 60), numpy.float32), "w")
    tanh = model.node("Tanh", [model.node("Mul", [x, w])])
    model.output(model.node("ReduceSum", [tanh], keepdims=0))
    text = rnncc("inspect", "--train", model.write(tmp_path)).stdout
    assert re.findall(r"^\d.* k\d+_(\w+)", text, re.MULTILINE) == ["elementwise", "reduce", "elementwise_chain"], text


def test_a_bundle_has_no_network_that_trains(rnncc, tmp_path):
    path = two_outputs().write(tmp_path)
    done = rnncc("bundle", f"a={path}", f"b={path}", "--train", "-o", tmp_path / "step.so")
    assert done.returncode == 2 and "--train goes with rnncc compile and rnncc inspect, not with rnncc bundle" in done.stderr
    assert not (tmp_path / "step.so").exists()


def test_a_loss_needs_training(rnncc, tmp_path):
    done = rnncc(two_outputs().write(tmp_path), "--loss=one", "-o", tmp_path / "step.so")
    assert done.returncode == 2 and "--loss goes with --train" in done.stderr


def test_what_a_step_keeps_is_where_gradients_will_be(rnncc, tmp_path):
    """Of a stack of layers each weight's gradient is larger than the layer's result. Besides, two layers' gradients of results
    are there at once."""
    layers, batch_size, width = 24, 64, 128
    model = Model()
    y = model.input("x", "f32", [batch_size, width])
    for _ in range(layers):
        w = model.constant(numpy.zeros((width, width), numpy.float32) + numpy.float32(0.01))
        y = model.node("Tanh", [model.node("MatMul", [y, w])])
    model.output(model.node("ReduceMean", [y], keepdims=0))
    done = rnncc("inspect", "--train", model.write(tmp_path))
    arena = int(next(line for line in done.stdout.splitlines() if line.startswith("arena")).split()[1])
    assert arena <= 2 * 4 * batch_size * width


def test_a_small_weight_of_whole_numbers_is_trained_where_it_is_moved(compile, tmp_path):
    """Shape arithmetic knows the elements of small constants, and would make its results constants, too."""
    model = Model("moved")
    x = model.input("x", "f32", [3, 4])
    bias = model.constant(numpy.zeros(4, numpy.float32), "bias")
    row = model.node("Reshape", [model.node("Concat", [bias, bias], axis=0), model.constant(numpy.array([2, 4]), "rows")])
    model.output(model.node("ReduceSum", [model.node("Mul", [model.node("ReduceSum", [row, model.constant(
        numpy.array([0]), "first")], keepdims=1), x])], ["loss"], keepdims=0))
    trainer = package.load(compile(model.write(tmp_path), "--train")).trainer()
    trainer.set_weights({"bias": numpy.ones(4, numpy.float32)})
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    assert trainer(x) == 2 * x.sum()
    trainer.backward()
    assert numpy.array_equal(trainer.gradients()["bias"], 2 * x.sum(0))


def constants(**arrays):
    return [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numpy.array(array, "f"))) for name, array in arrays.items()]


def moved_weight_before(op, **attributes):
    """An ONNX model: x times w, which is ones, as a row; then an old operator that is read by the rank of its input."""
    rows = [helper.make_node("Unsqueeze", ["w"], ["row"], axes=[0]), helper.make_node("Mul", ["x", "row"], ["product"]),
            helper.make_node(op, ["product"], ["y"], **attributes), helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)]
    return model_of(rows, {"x": (F32, [3, 4])}, {"loss": (F32, []), "y": (F32, [3, 4])}, {"w": numpy.ones(4, "f")}, opset=11)


def test_a_weight_is_no_constant_while_a_model_is_read_either(compile, tmp_path):
    """The reader infers ranks as far as it has come."""
    path = write(tmp_path, moved_weight_before("LogSoftmax", axis=1))
    x, w = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) / 8, numpy.array([2, 1, 0.5, 3], numpy.float32)
    scores = x * w
    due = scores - numpy.log(numpy.exp(scores).sum(1, keepdims=True))
    trainer = package.load(compile(path, "--train", "--loss=loss")).trainer()
    trainer.set_weights({"w": w})
    numpy.testing.assert_allclose(trainer(x)[1], due, rtol=1e-5)
    trainer.backward()
    slope = x - 4 * x * numpy.exp(due)
    numpy.testing.assert_allclose(trainer.gradients()["w"], slope.sum(0), rtol=1e-4, atol=1e-5)
    network = package.load(compile(path, "--weights=mutable"))
    network.weights["w"] = w
    numpy.testing.assert_allclose(network(x)[1], due, rtol=1e-5)


@pytest.mark.parametrize("option", ["--train", "--weights=mutable"])
@pytest.mark.parametrize("made_by", ["Concat", "Mul", "Cast", "sizes"])
def test_scales_that_are_computed_of_constants_are_no_weights(compile, tmp_path, made_by, option):
    """As PyTorch's exporter writes an interpolation by a factor."""
    halves = {"Concat": lambda: constants(two=[1, 1], more=[0.5, 1.5]), "Mul": lambda: constants(two=[2, 2, 1, 1], more=[.5, .5, .5, 1.5])}
    nodes, wholes = [helper.make_node("Conv", ["x", "w"], ["h"])], halves.get(made_by, lambda: constants(two=[1, 1, 0.5, 1.5]))()
    if made_by == "sizes":
        nodes += [helper.make_node("Shape", ["h"], ["extents"]), helper.make_node("Cast", ["extents"], ["float"], to=F32),
                  helper.make_node("Mul", ["float", "two"], ["longer"]), helper.make_node("Floor", ["longer"], ["whole"]),
                  helper.make_node("Cast", ["whole"], ["sizes"], to=TensorProto.INT64)]
    else:
        inputs, attributes = (["two"], {"to": F32}) if made_by == "Cast" else (["two", "more"], {"axis": 0} if made_by == "Concat" else {})
        nodes += [helper.make_node(made_by, inputs, ["scales"], **attributes)]
    nodes += [helper.make_node("Resize", ["h", "", *(["", "sizes"] if made_by == "sizes" else ["scales"])], ["y"], mode="linear"),
              helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)]
    model = model_of([*wholes, *nodes], {"x": (F32, [1, 1, 4, 4])}, {"loss": (F32, [])}, {"w": numpy.ones((1, 1, 1, 1), "f")}, opset=18)
    network, x = package.load(compile(write(tmp_path, model), option)), numpy.ones((1, 1, 4, 4), numpy.float32)
    run = network.trainer() if option == "--train" else network
    assert run(x) == 2 * 6
    assert option != "--train" or list(run.names) == ["w"]


@pytest.mark.parametrize("op", ["Pad", "OneHot"])
def test_a_number_that_fills_places_has_the_gradient_of_these_alone(compile, tmp_path, op):
    """An infinity beside them is none of theirs."""
    model = Model("filled")
    values = model.constant(numpy.ones(2 if op == "OneHot" else 1, numpy.float32), "w")
    if op == "OneHot":
        model.output(model.node("OneHot", [model.input("x", "i64", [2]), model.constant(numpy.array(3)), values], ["y"]))
        x, d, due = numpy.array([1, 1]), [[1, numpy.inf, 2], [3, numpy.inf, 4]], [10, numpy.inf]
    else:
        value, pads = model.node("Squeeze", [values]), model.constant(numpy.array([1, 2]))
        model.output(model.node("Pad", [model.input("x", "f32", [2]), pads, value], ["y"]))
        x, d, due = numpy.ones(2, numpy.float32), [1, numpy.inf, -numpy.inf, 2, 3], [6]
    trainer = package.load(compile(model.write(tmp_path), "--train", "--outer-loss"), threads=1).trainer()
    trainer(x)
    trainer.backward_from({"y": numpy.array(d, numpy.float32)})
    numpy.testing.assert_array_equal(trainer.gradients()["w"], due)
