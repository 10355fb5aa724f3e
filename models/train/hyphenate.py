# SPDX-License-Identifier: MIT
"""Trains the hyphenator: two stacked bidirectional LSTMs over a word's letters say after which letter it may break.

Words are Debian's wamerican, labels come from Debian's hyphen-en-us by Liang's algorithm (liang.py). Besides the words
themselves the network sees splices, the head of one word with the tail of another: the patterns label any string, and
twice the data keeps it from learning the list by heart. Words of fewer than five letters have no place to break (two
letters stay on the left, three on the right) and are left out, of training and of the accuracy.

    python hyphenate.py [--epochs N] [--words FILE] [--patterns FILE] [--out DIRECTORY]
"""

import argparse
import pathlib
import random
import re
import time

import numpy
import torch

import export
from liang import Hyphenator, hyphenated

SEED = 20261121
EMBEDDING, HIDDEN = 32, 112
LONGEST = 64          # letters; dimension T
SLOTS = 16            # words in one run; dimension B
HELD_OUT = 2000
BATCH = 128           # words of one length, so that nothing is padded
PEAK_RATE = 4e-3


class Network(torch.nn.Module):
    """Letters [B,T] (1..26) -> logits [B,T]."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(27, EMBEDDING, padding_idx=0)
        self.lstm = torch.nn.LSTM(EMBEDDING, HIDDEN, num_layers=2, bidirectional=True)
        self.output = torch.nn.Linear(2 * HIDDEN, 1)

    def forward(self, letters, lengths=None):
        steps = self.embedding(letters.T)
        if lengths is None:
            y, _ = self.lstm(steps)
        else:
            packed = torch.nn.utils.rnn.pack_padded_sequence(steps, lengths, enforce_sorted=False)
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], total_length=letters.shape[1])
        return self.output(y).squeeze(-1).T


def ids(word):
    return [ord(letter) - ord("a") + 1 for letter in word]


def splice(words, taken, generator):
    while True:
        head, tail = generator.choice(words), generator.choice(words)
        word = head[: generator.randrange(2, len(head))] + tail[generator.randrange(1, len(tail) - 1) :]
        if 5 <= len(word) <= 20 and word not in taken:
            return word


def batches(words, labels, generator):
    """One pass over the words in batches of equal length, shuffled."""
    by_length = {}
    for word in generator.sample(words, len(words)):
        by_length.setdefault(len(word), []).append(word)
    cut = [group[i : i + BATCH] for group in by_length.values() for i in range(0, len(group), BATCH)]
    generator.shuffle(cut)
    for group in cut:
        yield (torch.tensor([ids(word) for word in group]),
               torch.tensor([labels(word) for word in group], dtype=torch.float32))


@torch.no_grad()
def decide(network, words):
    """For each word its break probabilities, one word at a time as the application does it."""
    return [torch.sigmoid(network(torch.tensor([ids(word)])))[0].tolist() for word in words]


def accuracy(probabilities, words, labels):
    """Share of the words whose breaks are all right."""
    right = sum([p > 0.5 for p in row] == [bool(b) for b in labels(word)]
                for row, word in zip(probabilities, words))
    return right / len(words)


def train(words, held_out, labels, epochs):
    generator = random.Random(SEED)
    network = Network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=PEAK_RATE, weight_decay=1e-3)
    steps = epochs * 2 * len(words) // BATCH + 40 * epochs  # an upper bound: short batches end each length
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_RATE, total_steps=steps, pct_start=0.15)
    loss_of = torch.nn.BCEWithLogitsLoss()
    taken, begin = set(held_out), time.monotonic()
    for epoch in range(epochs):
        splices = [splice(words, taken, generator) for _ in words]
        total = count = 0
        for letters, targets in batches(words + splices, labels, generator):
            optimiser.zero_grad()
            loss = loss_of(network(letters), targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, count = total + loss.item(), count + 1
        print(f"epoch {epoch + 1}/{epochs}: loss {total / count:.5f}, held-out words entirely right "
              f"{accuracy(decide(network, held_out[:500]), held_out[:500], labels):.1%} (of 500), "
              f"{time.monotonic() - begin:.0f} s", flush=True)
    return network


def describe(network, model):
    """The network as an rnncc graph. Padding past a word's length is skipped by the LSTMs, whose outputs there are 0."""
    model.dim("B", 1, 1, SLOTS)
    model.dim("T", 1, 12, LONGEST)
    letters, lengths = model.input("letters", "i64", ["B", "T"]), model.input("lengths", "i32", ["B"])
    steps = model.node("Transpose", [letters], "letters_first", perm=[1, 0])
    x = model.node("Gather", [model.weight("embedding", network.embedding.weight), steps], "steps", axis=0)
    both = model.constant(numpy.array([0, 0, -1]), "both_directions")
    for layer in range(2):
        weights = model.recurrent_weights(f"lstm{layer}", network.lstm, layer, export.IOFC)
        x = model.node("LSTM", [x, *weights, lengths], f"lstm{layer}", hidden_size=HIDDEN, direction="bidirectional")
        x = model.node("Transpose", [x], f"units{layer}", perm=[0, 2, 1, 3])
        x = model.node("Reshape", [x, both], f"features{layer}")
    x = model.node("MatMul", [x, model.weight("output.weight", network.output.weight.T)], "product")
    x = model.node("Add", [x, model.weight("output.bias", network.output.bias)], "logits")
    x = model.node("Sigmoid", [x], "steps_probability")
    x = model.node("Squeeze", [x, model.constant(numpy.array([2]), "last_axis")], "probability_steps")
    model.output(model.node("Transpose", [x], "probability", perm=[1, 0]))


def provenance(probabilities, held_out, words, labels, epochs):
    return {
        "task": "after which letter an English word may break",
        "data": "words: Debian's wamerican 2020.12.07-2; labels: Debian's hyphen-en-us 2.8.8-7 by Liang's algorithm",
        "licence": "MIT; the word list is in the public domain or under SCOWL's licence; the patterns, used to compute "
                   "the labels, are under GPL-2+, LGPL-2.1+ or MPL-1.1+",
        "script": "models/train/hyphenate.py",
        "seed": SEED,
        "trained_on": f"{len(words)} words, and as many splices of two words, in each of {epochs} epochs",
        "held_out": f"{len(held_out)} words, in held_out/hyphenate.txt",
        "accuracy": accuracy(probabilities, held_out, labels),
        "accuracy_is": "share of held-out words with every break right and none wrong",
    }


def write_held_out(directory, held_out, probabilities, labels):
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "hyphenate.txt", "w", encoding="ascii") as file:
        file.write("# word, as the patterns break it, as PyTorch breaks it\n")
        for word, row in zip(held_out, probabilities):
            file.write(f"{word} {hyphenated(word, labels(word))} {hyphenated(word, [p > 0.5 for p in row])}\n")


def check(network, model, words):
    """ONNX Runtime on the exported graph equals PyTorch, with words of several lengths in one run."""
    group = words[:SLOTS]
    lengths = torch.tensor([len(word) for word in group])
    letters = torch.tensor([ids(word) + [0] * (int(lengths.max()) - len(word)) for word in group])
    with torch.no_grad():
        expected = torch.sigmoid(network(letters, lengths)).numpy()
    model.check({"letters": letters.numpy(), "lengths": lengths.int().numpy()}, expected, 1e-5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--words", default="/usr/share/dict/american-english")
    parser.add_argument("--patterns", default="/usr/share/hyphen/hyph_en_US.dic")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    arguments = parser.parse_args()

    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    labels = Hyphenator(arguments.patterns).breaks
    with open(arguments.words, encoding="utf-8") as lines:
        words = sorted({line.strip() for line in lines if re.fullmatch(r"[a-z]{5,}\n", line)})
    random.Random(SEED).shuffle(words)
    held_out, words = sorted(words[:HELD_OUT]), words[HELD_OUT:]

    network = train(words, held_out, labels, arguments.epochs).eval()
    probabilities = decide(network, held_out)
    model = export.Model("hyphenate", provenance(probabilities, held_out, words, labels, arguments.epochs))
    describe(network, model)
    model.write(arguments.out)
    check(network, model, held_out)
    write_held_out(arguments.out / "held_out", held_out, probabilities, labels)
    closest = min(abs(p - 0.5) for row in probabilities for p in row)
    print(f"{model.provenance['accuracy']:.2%} of {len(held_out)} held-out words entirely right; "
          f"closest decision {closest:.1e} from 0.5")


if __name__ == "__main__":
    main()
