# SPDX-License-Identifier: MIT
"""RNNTraining, GRUTraining, LSTMTraining and their gradients, RNNGradient, GRUGradient, LSTMGradient, over all attributes:
against central differences in double precision. Layers without a bias that are trained."""
import re

import numpy as np
import pytest

from support.amount import long_tests, some
from support.emitted import run_by
from support.model_builder import Model
from support.module import Module
from support.recurrent import OUTPUTS
from support.recurrent_gradients import OF_INPUTS, Trained, check_gradients, model_of_training, training_configuration
from support.recurrent_groups import GROUP, in_groups
from support.refusal import refused
from support.trainers import gradients_of, trainer_of

CONFIGURATIONS = [training_configuration(seed) for seed in some(range(300), 60)]


def extents_of(configuration):
    rng = np.random.default_rng([2029, configuration.seed])
    return int(rng.integers(1, 10)), int(rng.integers(1, 7))


def fixed_of(group):
    """T and B of a group's runs, which in half of the groups are known at compile time."""
    T, B = extents_of(group[0])
    return T, B, group[0].seed // GROUP % 2 == 0


def compiled(group, compile, tmp_path, *options):
    T, B, fixed = fixed_of(group)
    model = model_of_training(group, *((T, B) if fixed else ()), constants=group[0].seed // GROUP % 4 == 3)
    return model, compile(model.write(tmp_path), *options, optimised=not options and group[0].seed == 0)


def feeds_of(group, model, T, B):
    given = {i["name"] for i in model.inputs}
    named = {name: array for c in group for name, array in c.named(c.to_layout(c.all_feeds(T, B))).items()}
    return {name: array for name, array in named.items() if name in given}


RUNS = {}


def outputs_of(group, model, path, threads=2):
    key = path, threads
    if key not in RUNS:
        T, B, _ = fixed_of(group)
        with Module(path) as module, module.context(threads) as context:
            RUNS[key] = context.run(feeds_of(group, model, T, B))
    return RUNS[key]


def check_target(configuration, group, compile, tmp_path, *options):
    model, path = compiled(group, compile, tmp_path, *options)
    T, B, _ = fixed_of(group)
    got = configuration.from_layout(configuration.own(outputs_of(group, model, path)))
    check_gradients(configuration, configuration.all_feeds(T, B), got)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda c: f"{c.seed}-{c.name}")
def test_the_reference_agrees_with_central_differences(configuration, reference, tmp_path):
    T, B = extents_of(configuration)
    feeds = configuration.all_feeds(T, B)
    model = model_of_training([configuration], constants=configuration.seed % 5 == 0)
    given = {i["name"].removeprefix(configuration.prefix) for i in model.inputs}
    arrays = configuration.named(configuration.to_layout({name: a for name, a in feeds.items() if name in given}))
    got = configuration.from_layout(configuration.own(reference.run(model, model.write(tmp_path), arrays)))
    values = configuration.values({k: a for k, a in feeds.items() if k in "WRBP"}, configuration.layer(feeds))
    assert np.abs(got["Y"] - values["Y"]).max(initial=0) < 1e-6, "the layer computes what it does without training"
    check_gradients(configuration, feeds, got)


OPERATORS = {"RNN": ("RNNTraining", "RNNGradient"), "GRU": ("GRUTraining", "GRUGradient"),
             "LSTM": ("LSTMTraining", "LSTMGradient")}
BAD = [*((op, dict(clip=1.0), 3, "a layer with `clip` has no gradient") for op in OPERATORS),
       ("RNN", dict(activations=["Elu"], alpha=[-1]), 3, "activation 0 has alpha -1, with which it has no gradient"),
       ("RNN", dict(activations=["ScaledTanh"], alpha=[0], beta=[1]), 3, "activation 0 has alpha 0"),
       ("RNN", dict(activations=["Tangent"]), 2, 'activation 0 is "Tangent"')]


@pytest.mark.parametrize("op, fields, code, words", BAD, ids=[f"{op}-{words}" for op, _, _, words in BAD])
def test_what_has_no_gradient_is_named(rnncc, tmp_path, op, fields, code, words):
    configuration = Trained(op=op, I=3, H=2, **fields)
    model, (training, gradient) = model_of_training([configuration]), OPERATORS[op]
    refused(rnncc, tmp_path, model.write(tmp_path), code, f"{training}: {words}")
    saved = model.nodes[0]["outputs"]
    model.nodes, model.outputs = model.nodes[1:], model.nodes[1]["outputs"][:1]
    model.input(saved[0], "f32", ["T", 1, "B", 2])
    if configuration.saved:
        model.input(saved[-1], "f32", ["T", "B", 1, {"GRU": 8, "LSTM": 10}[op]])
    refused(rnncc, tmp_path, model.write(tmp_path), code, f"{gradient}: {words}")


@in_groups(CONFIGURATIONS, 3)
def test_kernels_agree_with_central_differences(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path)


# By default GRUs, half of them with the reset gate before the product.
@in_groups(CONFIGURATIONS[GROUP:6 * GROUP] if long_tests() else CONFIGURATIONS[4 * GROUP:5 * GROUP])
def test_avx2_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64-v3")


@in_groups(CONFIGURATIONS[:some(range(6), 1)[-1] * GROUP + GROUP])
def test_plain_c_computes_the_same(configuration, group, compile, tmp_path):
    check_target(configuration, group, compile, tmp_path, "--target=x86-64")


@in_groups(CONFIGURATIONS[2 * GROUP:some(range(6), 3)[-1] * GROUP + GROUP])
def test_neon_under_qemu_computes_the_same(configuration, group, compile, aarch64_rnnrun, tmp_path):
    model, path = compiled(group, compile, tmp_path, "--target=aarch64-linux-gnu")
    T, B, _ = fixed_of(group)
    key = path, "qemu"
    if key not in RUNS:
        RUNS[key] = run_by(aarch64_rnnrun, path, feeds_of(group, model, T, B), model.outputs, tmp_path)
    check_gradients(configuration, configuration.all_feeds(T, B), configuration.from_layout(configuration.own(RUNS[key])))


@in_groups(CONFIGURATIONS, 3)
def test_thread_counts_are_bit_identical(configuration, group, compile, tmp_path):
    model, path = compiled(group, compile, tmp_path)
    one, *others = [configuration.own(outputs_of(group, model, path, threads)) for threads in (1, 2, 3, 8)]
    assert any(name.startswith("d") for name in one)
    for name in one:
        for other in others:
            assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), name


@pytest.mark.every_case
@pytest.mark.parametrize("op, fields", [("RNN", {}), ("GRU", {}), ("GRU", dict(linear_before_reset=1)), ("LSTM", dict(peepholes=True))],
                         ids=["RNN", "GRU", "GRU_after", "LSTM"])
def test_each_gradient_alone_is_what_it_is_among_all(op, fields, compile, tmp_path):
    """As where the other weights do not learn: what these need has no memory, and is not computed."""
    configuration = Trained(op=op, I=5, H=18, direction="bidirectional", bias=True, h0=True, outputs=OUTPUTS[op], **fields)
    model = model_of_training([configuration], 6, 3)
    whole = model.nodes[-1]
    wanted = [(k, name) for k, name in enumerate(whole["outputs"]) if name]
    for k, name in wanted:
        outputs = [""] * k + [f"{name}_alone"]
        model.node(whole["op"], whole["inputs"], outputs, **whole["attributes"])
        model.output(outputs[-1])
    path = compile(model.write(tmp_path))
    with Module(path) as module, module.context(2) as context:
        results = context.run(configuration.named(configuration.all_feeds(6, 3)))
    alone = [name for name in results if name.endswith("_alone")]
    assert len(alone) == len(wanted) >= 5
    for name in alone:
        assert np.array_equal(results[name], results[name.removesuffix("_alone")]), name


@pytest.mark.parametrize("op", OPERATORS)
def test_what_stands_beyond_a_length_changes_nothing(op, compile, tmp_path):
    """Not even NaN, in X and in what comes back."""
    configuration = Trained(op=op, I=5, H=18, direction="bidirectional", lengths=True, h0=True, outputs=OUTPUTS[op])
    model = model_of_training([configuration], 6, 3)
    feeds = configuration.all_feeds(6, 3)
    feeds["lengths"] = np.array([6, 2, 0], np.int32)
    garbage = dict(feeds, x=feeds["x"].copy(), gY=feeds["gY"].copy())
    for sample, length in enumerate(feeds["lengths"]):
        garbage["x"][length:, sample] = garbage["gY"][length:, :, sample] = np.nan
    path = compile(model.write(tmp_path))
    with Module(path) as module, module.context(2) as context:
        clean, dirty = context.run(configuration.named(feeds)), context.run(configuration.named(garbage))
    for name in clean:
        assert np.array_equal(clean[name], dirty[name]), name


@pytest.mark.parametrize("op", ("GRU", "LSTM"))
def test_a_layer_that_is_trained_needs_a_place_to_save(rnncc, tmp_path, op):
    model = model_of_training([Trained(op=op, I=3, H=2)])
    model.nodes, y = model.nodes[:1], model.nodes[0]["outputs"][0]
    model.nodes[0]["outputs"], model.outputs = [y], [y]
    refused(rnncc, tmp_path, model.write(tmp_path), 2, f"{OPERATORS[op][0]}: output", "S, is absent")


@pytest.mark.parametrize("op", OPERATORS)
def test_what_is_saved_for_nobody_changes_no_result(op, compile, tmp_path):
    """It has no value to stand in, but the steps need it."""
    configuration, results = Trained(op=op, I=7, H=20, direction="bidirectional", outputs=("Y",)), []
    for seen in (True, False):
        model = model_of_training([configuration], 5, 3)
        model.nodes, model.name = model.nodes[:1], f"seen{seen}"
        names = model.nodes[0]["outputs"]
        model.outputs = names if seen else names[:1]
        with Module(compile(model.write(tmp_path))) as module, module.context(2) as context:
            given = {i["name"] for i in model.inputs}
            feeds = configuration.named(configuration.all_feeds(5, 3))
            results.append(context.run({name: array for name, array in feeds.items() if name in given})[names[0]])
    assert np.array_equal(*results)


@pytest.mark.parametrize("op", OPERATORS)
def test_gradients_that_nobody_reads_change_no_other(op, compile, tmp_path):
    """Each alone has the bits that it has among all."""
    configuration = Trained(op=op, I=7, H=20, direction="bidirectional", h0=True, outputs=("Y",))
    feeds, whole = configuration.named(configuration.all_feeds(5, 3)), model_of_training([configuration], 5, 3)

    def run(model):
        with Module(compile(model.write(tmp_path))) as module, module.context(2) as context:
            return context.run(feeds)

    expected, wanted = run(whole), whole.nodes[1]["outputs"]
    for kept in wanted:
        part = model_of_training([configuration], 5, 3)
        part.nodes[1]["outputs"] = [name if name == kept else "" for name in wanted[:wanted.index(kept) + 1]]
        part.outputs, part.name = [kept], f"only_{kept}"
        assert np.array_equal(run(part)[kept], expected[kept]), kept


MANY = [Trained(op="LSTM", I=21, H=34, direction="bidirectional", peepholes=True, h0=True, c0=True),
        Trained(op="LSTM", I=5, H=20, lengths=True, layout=1, outputs=("Y", "Y_c")),
        Trained(op="GRU", I=21, H=34, direction="bidirectional", linear_before_reset=1),
        Trained(op="GRU", I=9, H=66, direction="reverse", h0=True),
        Trained(op="RNN", I=21, H=34, direction="bidirectional", h0=True),
        Trained(op="RNN", I=5, H=20, layout=1, direction="bidirectional", lengths=True)]
IN_TURNS = [(configuration, 50) for configuration in MANY]  # chunks so short that X and H take turns
AT_ONCE = [(Trained(op="LSTM", I=5, H=66, lengths=True), 250)]  # three longer ones


def model_of_many(configuration, T, B, others):
    """The gradient of Y is computed. Besides Y and the gradients, `others` are outputs."""
    model, prefix = model_of_training([configuration], T, B), configuration.prefix
    gradient, given = model.nodes.pop(), prefix + "gY"
    made = model.node("Neg", [given])
    gradient["inputs"] = [made if name == given else name for name in gradient["inputs"]]
    model.nodes.append(gradient)
    model.outputs = [name for name in (prefix + "Y", *gradient["outputs"]) if name]
    model.output(*(prefix + name for name in configuration.saved if others), *[made][:others])
    return model


def id_of(part):
    return f"{part.op}-{part.direction}-{part.H}" if isinstance(part, Trained) else f"T{part}"


@pytest.mark.parametrize("configuration, T", IN_TURNS + AT_ONCE, ids=id_of)
def test_rows_of_many_chunks_with_gradients_over_what_was_saved(configuration, T, compile, rnncc, tmp_path):
    """Central differences; and the same bits where nothing can be written over S and Y's gradient, since they are
    outputs. The gates' gradients take no memory of their own, except of an RNN whose Y has other rows."""
    B = 6
    feeds = configuration.all_feeds(T, B)
    given = configuration.named(configuration.to_layout(feeds | {"gY": -feeds["gY"]}))

    def run(others):
        model = model_of_many(configuration, T, B, others)
        model.name = f"others{others}"
        path = model.write(tmp_path)
        plan = rnncc("inspect", path, "--memory").stdout
        (over,) = re.findall(r"^t\d+ .*? (t\d+ )? *gates' gradients$", plan, re.MULTILINE)
        with Module(compile(path)) as module, module.context(2) as context:
            return bool(over), context.run(given)

    (is_over_apart, expected), (is_over, got) = run(others=1), run(others=0)
    for name in got:
        assert np.array_equal(got[name], expected[name]), name
    check_gradients(configuration, feeds, configuration.from_layout(configuration.own(got)))
    assert not is_over_apart and is_over == (configuration.op != "RNN" or bool(configuration.layout))


IN_PARTS = {"lstm": Trained(op="LSTM", I=7, H=528, h0=True, c0=True, lengths=True),
            "gru_after": Trained(op="GRU", I=7, H=528, h0=True, lengths=True, linear_before_reset=1)}


@pytest.mark.parametrize("target", ("x86-64-v3", "x86-64"))
@pytest.mark.parametrize("cell", IN_PARTS)
def test_panels_in_parts_agree_with_central_differences(cell, target, compile, rnncc, tmp_path):
    """Sixteen registers hold few rows of all gates, whose panel is then in parts, two of an LSTM's gates or each of a GRU's:
    of more samples than those rows, and backwards with more gates than a block of the depth."""
    configuration, T, B = IN_PARTS[cell], 3, 11
    feeds = configuration.all_feeds(T, B)
    path = model_of_training([configuration], T, B).write(tmp_path)
    assert f"Training {cell}_i7h528_r6" in " ".join(rnncc("inspect", path, f"--target={target}").stdout.split())
    with Module(compile(path, f"--target={target}")) as module, module.context(2) as context:
        got = context.run(configuration.named(feeds))
    check_gradients(configuration, feeds, configuration.own(got))


@pytest.mark.parametrize("op, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_layer_without_a_bias_is_trained_as_one_whose_bias_is_zeros(compile, tmp_path, op, gates):
    """What it begins with stands behind the bias, and is trained, too."""
    rng, found = np.random.default_rng(5), []
    shapes = {"W": (1, gates * 4, 3), "R": (1, gates * 4, 4), "h0": (1, 2, 4), "B": (1, gates * 8)}
    arrays = {name: (name != "B") * rng.uniform(-0.7, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
    x, scale = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 2, 3), (5, 1, 2, 4)))
    for bias in ("", "B"):
        model = Model(f"layer{bias}")
        W, R, h0 = (model.constant(arrays[name], name) for name in ("W", "R", "h0"))
        B = model.constant(arrays["B"], "B") if bias else None
        steps = model.node(op, [model.input("x", "f32", x.shape), W, R, B, None, h0], ["steps"], hidden_size=4)
        model.output(model.node("ReduceSum", [model.node("Mul", [steps, model.input("scale", "f32", scale.shape)])], keepdims=0))
        found.append(gradients_of(trainer_of(compile(model.write(tmp_path), "--train")), {"x": x, "scale": scale})[1])
    assert found[0].keys() == {"W", "R", "h0"} == found[1].keys() - {"B"}
    for name, gradient in found[0].items():
        assert np.abs(gradient).max() > 0.1 and np.abs(gradient - found[1][name]).max() < 1e-5, name
