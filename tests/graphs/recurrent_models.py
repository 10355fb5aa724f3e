# SPDX-License-Identifier: MIT
"""Random models of one recurrent op, over all of its attributes."""
import numpy

from support.model_builder import Model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS_EACH = {"RNN": 1, "GRU": 2, "LSTM": 3}
# Name; does it take alpha; does it take beta.
ACTIVATIONS = [("Relu", False, False), ("Tanh", False, False), ("Sigmoid", False, False), ("Affine", True, True),
               ("LeakyRelu", True, False), ("ThresholdedRelu", True, False), ("ScaledTanh", True, True),
               ("HardSigmoid", True, True), ("Elu", True, False), ("Softsign", False, False),
               ("Softplus", False, False)]


def random_activations(rng, count):
    """Names, alphas and betas; values for those that take one, for all or none. ThresholdedRelu always
    gets its alpha: without it, ONNX Runtime uses 0, but ONNX's default is 1."""
    chosen = [ACTIVATIONS[rng.integers(0, len(ACTIVATIONS))] for _ in range(count)]
    attributes = {"activations": [name for name, _, _ in chosen]}
    if rng.random() < 0.7 or "ThresholdedRelu" in attributes["activations"]:
        alphas = [float(rng.uniform(0.2, 0.9)) for _, takes, _ in chosen if takes]
        betas = [float(rng.uniform(0.2, 0.9)) for _, _, takes in chosen if takes]
        attributes |= {"activation_alpha": alphas or None, "activation_beta": betas or None}
    return attributes


def recurrent(rng, op, exotic=True):
    """(Model, feeds, steps). `exotic`: activations other than the defaults, clipping, peepholes, input_forget."""
    T, B, I, H = (int(rng.integers(1, most + 1)) for most in (9, 4, 12, 12))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    D, gates = (2 if direction == "bidirectional" else 1), GATES[op]
    model, feeds = Model(), {}

    def values(*shape, scale=1.0):
        return rng.uniform(-scale, scale, shape).astype(numpy.float32)

    def fed(name, array, dtype="f32"):
        feeds[name] = array
        return model.input(name, dtype, array.shape)

    def maybe(chance, make):
        return make() if rng.random() < chance else None

    scale = 1.0 / max(I, H)  # so that states stay small under the unbounded activations
    inputs = [fed("x", values(T, B, I)), model.constant(values(D, gates * H, I, scale=2 * scale)),
              model.constant(values(D, gates * H, H, scale=scale)),
              maybe(0.7, lambda: model.constant(values(D, 2 * gates * H))),
              maybe(0.5, lambda: fed("lengths", rng.integers(0, T + 1, B).astype(numpy.int32), "i32")),
              maybe(0.5, lambda: fed("h0", values(D, B, H)))]
    attributes = {"hidden_size": H, "direction": direction}
    if op == "LSTM":
        inputs += [maybe(0.5, lambda: fed("c0", values(D, B, H))),
                   maybe(0.5 if exotic else 0, lambda: model.constant(values(D, 3 * H)))]
        attributes["input_forget"] = int(exotic and rng.random() < 0.3)
    if op == "GRU":
        attributes["linear_before_reset"] = int(rng.integers(0, 2))
    if exotic and rng.random() < 0.5:
        attributes |= random_activations(rng, D * ACTIVATIONS_EACH[op])
    if exotic and rng.random() < 0.3:
        attributes["clip"] = float(rng.uniform(0.2, 1.0))
    wanted = [f"y{k}" if rng.random() < 0.8 else "" for k in range(3 if op == "LSTM" else 2)]
    if not any(wanted):
        wanted[0] = "y0"
    model.node(op, inputs, wanted, **attributes)
    model.output(*[name for name in wanted if name])
    return model, feeds, T


def batch_first(model, feeds, op):
    """The same model with layout = 1, which ONNX Runtime does not run: its input, states and outputs are transposed."""
    turned, node = Model(), model.nodes[0]
    turned.arrays = model.arrays
    fed = {name: array.swapaxes(0, 1) if name != "lengths" else array for name, array in feeds.items()}
    for described in model.inputs:
        turned.input(described["name"], described["dtype"], fed[described["name"]].shape)
    turned.node(op, node["inputs"], node["outputs"], layout=1, **node["attributes"])
    turned.output(*model.outputs)
    return turned, fed


def turned_output(name, array):
    """An output of the model in layout 0, transposed to layout 1: Y [T,D,B,H] -> [B,T,D,H], states [D,B,H] -> [B,D,H]."""
    return array.transpose(2, 0, 1, 3) if name == "y0" else array.swapaxes(0, 1)
