# SPDX-License-Identifier: MIT
"""python -m pretrained.g2p FOLDER [BEAM...]: how English words are pronounced, by the network of the package g2p_en.

K. Park and J. Kim, g2pE, 2019: a GRU reads a word's letters, another gives its phonemes one after the other. The model
has both, and the search for the likeliest phonemes of as many hypotheses as BEAM says; for each, FOLDER/g2p_BEAM.json:

    g2p    letters i64 [T]  ->  phonemes i64 [20], length i64 [1]

LETTERS and PHONEMES say what the numbers mean. A word ends with END_OF_WORD; `length` phonemes are its sound, END
follows.
"""
import sys
from pathlib import Path

import numpy

from pretrained import package_folder
from support.bodies import Body
from support.model_builder import Model

LETTERS = ("<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz")
END_OF_WORD = 2
PHONEMES = ("<pad>", "<unk>", "<s>", "</s>",
            *"AA0 AA1 AA2 AE0 AE1 AE2 AH0 AH1 AH2 AO0 AO1 AO2 AW0 AW1 AW2 AY0 AY1 AY2 B CH D DH EH0 EH1 EH2 ER0 ER1 ER2 "
            "EY0 EY1 EY2 F G HH IH0 IH1 IH2 IY0 IY1 IY2 JH K L M N NG OW0 OW1 OW2 OY0 OY1 OY2 P R S SH T TH UH0 UH1 UH2 "
            "UW UW0 UW1 UW2 V W Y Z ZH".split())
START, END = 2, 3
MAX_WORD = 64  # letters and the end
MAX_SOUND = 20  # phonemes of a word


def reset_update_new_to_zrh(matrix):
    """The package's gates stand as PyTorch's do: reset, update, new."""
    reset, update, new = numpy.split(matrix, 3)
    return numpy.concatenate([update, reset, new])


def gru(model, graph, weights, part, x, hidden=None):
    """x [T,B,I]; the last hidden state, [1,B,H]. graph: the model, or a body in it."""
    gates = {key: reset_update_new_to_zrh(weights[f"{part}_{key}"]) for key in ("w_ih", "w_hh", "b_ih", "b_hh")}
    bias = numpy.concatenate([gates["b_ih"], gates["b_hh"]])
    constants = [model.constant(array[numpy.newaxis], f"{part}.{name}") for name, array in
                 (("W", gates["w_ih"]), ("R", gates["w_hh"]), ("B", bias))]
    size = gates["w_hh"].shape[1]
    return graph.node("GRU", [x, *constants, None, hidden], 2, hidden_size=size, linear_before_reset=1)[1]


def encoded(model, weights):
    """The state that the decoder starts from, [1,1,H]."""
    letters = model.input("letters", "i64", [model.dim("T", 1, 8, MAX_WORD)])
    embedding = model.constant(weights["enc_emb"], "letter_embedding")
    x = model.node("Unsqueeze", [model.node("Gather", [embedding, letters]), model.constant(numpy.array([1]))])
    return gru(model, model, weights, "enc", x)


def decoder(model, weights):
    """A step of K hypotheses: their last phonemes [K] and states [1,K,H] give log probabilities [K,74], new states."""
    step = Body(model, phoneme="i64", hidden="f32")
    phoneme, hidden = step.inputs
    front = model.constant(numpy.array([0]))
    x = step.node("Unsqueeze", [step.node("Gather", [model.constant(weights["dec_emb"], "phoneme_embedding"), phoneme]), front])
    after = gru(model, step, weights, "dec", x, hidden)
    logits = step.node("Gemm", [step.node("Squeeze", [after, front]), model.constant(weights["fc_w"], "classes"),
                                model.constant(weights["fc_b"], "classes_bias")], transB=1)
    return step.output(step.node("LogSoftmax", [logits]), after)


def network(weights, beam):
    model = Model("g2p")
    hidden, start = encoded(model, weights), model.constant(numpy.array([START]))
    found = model.node("BeamSearch", [start, hidden], 2, body=decoder(model, weights), beam_size=beam, end_token=END,
                       max_length=MAX_SOUND, state_axes=[1])
    shapes = {"phonemes": [MAX_SOUND], "length": [1]}  # of the one word, and the best of its hypotheses
    for value, (name, shape) in zip(found, shapes.items()):
        model.output(model.node("Reshape", [value, model.constant(numpy.array(shape))], [name]))
    return model


def main(folder, *beams):
    folder.mkdir(parents=True, exist_ok=True)
    weights = numpy.load(package_folder("g2p_en") / "checkpoint20.npz")
    for beam in beams or (1,):
        print(network(weights, beam).write(folder, f"g2p_{beam}"))


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(beam.isdecimal() for beam in sys.argv[2:]):
        raise SystemExit("usage: python -m pretrained.g2p FOLDER [BEAM...]")
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
