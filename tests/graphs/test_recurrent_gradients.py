# SPDX-License-Identifier: MIT
"""RNNTraining, GRUTraining, LSTMTraining and their gradients, RNNGradient, GRUGradient, LSTMGradient, over all attributes:
against central differences in double precision."""
import numpy as np
import pytest

from support.amount import some
from support.recurrent_gradients import Trained, check_gradients, model_of_training, training_configuration
from support.refusal import refused

CONFIGURATIONS = [training_configuration(seed) for seed in some(range(300), 60)]


def extents_of(configuration):
    rng = np.random.default_rng([2029, configuration.seed])
    return int(rng.integers(1, 10)), int(rng.integers(1, 7))


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
    model.input(saved[-1], "f32", ["T", 1, "B", {"RNN": 2, "GRU": 8, "LSTM": 10}[op]])
    refused(rnncc, tmp_path, model.write(tmp_path), code, f"{gradient}: {words}")
