# SPDX-License-Identifier: MIT
"""python -m pretrained.g2p FOLDER: how English words are pronounced, by the network of the package g2p_en.

K. Park and J. Kim, g2pE, 2019: a GRU reads a word's letters, another gives its phonemes one after the other. They are
two models, because the second runs once for each phoneme, on all hypotheses of a beam search at once:

    g2p_encoder   letters i64 [T]                             -> hidden f32 [1,1,256]
    g2p_decoder   phoneme i64 [K], hidden f32 [1,K,256]       -> log_probability f32 [K,74], next_hidden f32 [1,K,256]

LETTERS and PHONEMES say what the numbers mean. A word ends with END_OF_WORD; its phonemes begin with START and end with
END.
"""
import sys
from pathlib import Path

import numpy

from pretrained import package_folder
from support.model_builder import Model

LETTERS = ("<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz")
END_OF_WORD = 2
PHONEMES = ("<pad>", "<unk>", "<s>", "</s>",
            *"AA0 AA1 AA2 AE0 AE1 AE2 AH0 AH1 AH2 AO0 AO1 AO2 AW0 AW1 AW2 AY0 AY1 AY2 B CH D DH EH0 EH1 EH2 ER0 ER1 ER2 "
            "EY0 EY1 EY2 F G HH IH0 IH1 IH2 IY0 IY1 IY2 JH K L M N NG OW0 OW1 OW2 OY0 OY1 OY2 P R S SH T TH UH0 UH1 UH2 "
            "UW UW0 UW1 UW2 V W Y Z ZH".split())
START, END = 2, 3
MAX_WORD = 64  # letters and the end
MAX_BEAM = 16


def reset_update_new_to_zrh(matrix):
    """The package's gates stand as PyTorch's do: reset, update, new."""
    reset, update, new = numpy.split(matrix, 3)
    return numpy.concatenate([update, reset, new])


def gru(model, weights, part, x, hidden=None):
    """x [T,B,I]; the last hidden state, [1,B,H]."""
    gates = {key: reset_update_new_to_zrh(weights[f"{part}_{key}"]) for key in ("w_ih", "w_hh", "b_ih", "b_hh")}
    bias = numpy.concatenate([gates["b_ih"], gates["b_hh"]])
    constants = [model.constant(array[numpy.newaxis], f"{part}.{name}") for name, array in
                 (("W", gates["w_ih"]), ("R", gates["w_hh"]), ("B", bias))]
    size = gates["w_hh"].shape[1]
    return model.node("GRU", [x, *constants, None, hidden], ["", f"{part}.hidden"], hidden_size=size, linear_before_reset=1)[1]


def encoder(weights):
    model = Model("g2p_encoder")
    letters = model.input("letters", "i64", [model.dim("T", 1, 8, MAX_WORD)])
    embedding = model.constant(weights["enc_emb"], "letter_embedding")
    x = model.node("Unsqueeze", [model.node("Gather", [embedding, letters]), model.constant(numpy.array([1]))])
    model.output(model.node("Identity", [gru(model, weights, "enc", x)], ["hidden"]))
    return model


def decoder(weights):
    model = Model("g2p_decoder")
    beam, size = model.dim("K", 1, 1, MAX_BEAM), weights["dec_w_hh"].shape[1]
    phoneme = model.input("phoneme", "i64", [beam])
    hidden = model.input("hidden", "f32", [1, beam, size])
    embedding = model.constant(weights["dec_emb"], "phoneme_embedding")
    front = model.constant(numpy.array([0]))
    x = model.node("Unsqueeze", [model.node("Gather", [embedding, phoneme]), front])
    after = gru(model, weights, "dec", x, hidden)
    logits = model.node("Gemm", [model.node("Squeeze", [after, front]), model.constant(weights["fc_w"], "classes"),
                                 model.constant(weights["fc_b"], "classes_bias")], transB=1)
    model.output(model.node("LogSoftmax", [logits], ["log_probability"]), model.node("Identity", [after], ["next_hidden"]))
    return model


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    weights = numpy.load(package_folder("g2p_en") / "checkpoint20.npz")
    for model in (encoder(weights), decoder(weights)):
        print(model.write(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m pretrained.g2p FOLDER")
    main(Path(sys.argv[1]))
