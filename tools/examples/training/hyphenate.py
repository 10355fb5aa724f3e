#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hyphenate.py [--steps=N] [--threads=N] [--words=FILE --patterns=FILE]: trains the hyphenator of models/train twice, from
equal weights on equal batches: with PyTorch's LSTM, and with the same layer compiled. Each batch goes to one network and
then to the other, in turns. Prints both losses, how long they stay within 1e-4, and the ratio of the times.

By default it trains on the 2000 words of models/held_out. --words and --patterns: the shipped model's data, of Debian's
packages wamerican and hyphen-en-us. Needs torch, onnx and safetensors, and rnncc by $RNNCC, $PATH or its wheel.
"""
import argparse
import copy
import random
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "models" / "train"), str(ROOT / "runtime" / "bindings" / "python")]

import torch  # noqa: E402
import hyphenate as original  # noqa: E402 (of models/train)
from liang import Hyphenator  # noqa: E402

import rnncc.torch  # noqa: E402

WITHIN = 1e-4


def held_out():
    """Words, and the labels of each."""
    lines = (ROOT / "models" / "held_out" / "hyphenate.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    broken = {word: [int(bool(mark)) for mark in re.findall(r"[a-z](-?)", parts)] for word, parts, _ in rows}
    return list(broken), broken.__getitem__


def words_of(arguments):
    if not arguments.words:
        return held_out()
    with open(arguments.words, encoding="utf-8") as lines:
        words = sorted({line.strip() for line in lines if re.fullmatch(r"[a-z]{5,}\n", line)})
    return words, Hyphenator(arguments.patterns).breaks


class Student:
    """A network that learns, with its optimiser."""

    def __init__(self, network, steps):
        self.network = network
        self.optimiser = torch.optim.AdamW(network.parameters(), lr=original.PEAK_RATE, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimiser, original.PEAK_RATE, total_steps=steps + 1,
                                                            pct_start=0.15)
        self.losses, self.seconds = [], []

    def step(self, letters, targets):
        begin = time.perf_counter()
        self.optimiser.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(self.network(letters), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.schedule.step()
        self.seconds.append(time.perf_counter() - begin)
        self.losses.append(loss.item())


def batches(words, labels, steps):
    generator, done = random.Random(original.SEED), 0
    while True:
        for batch in original.batches(words, labels, generator):
            if done == steps:
                return
            yield batch
            done += 1


def at_least_one(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=at_least_one, default=150)
    parser.add_argument("--threads", type=at_least_one, default=2)
    parser.add_argument("--words")
    parser.add_argument("--patterns", default="/usr/share/hyphen/hyph_en_US.dic")
    arguments = parser.parse_args()
    torch.manual_seed(original.SEED)
    torch.set_num_threads(arguments.threads)
    words, labels = words_of(arguments)

    network = original.Network()
    fast = copy.deepcopy(network)
    fast.lstm = rnncc.torch.compile_rnn(fast.lstm, batch=original.BATCH)
    students = [Student(network, arguments.steps), Student(fast, arguments.steps)]
    for step, batch in enumerate(batches(words, labels, arguments.steps)):
        for student in students if step % 2 else students[::-1]:
            student.step(*batch)
        if step % 25 == 24 or step == arguments.steps - 1:
            print("step {}: loss {:.5f} with PyTorch's layer, {:.5f} with the compiled one".format(
                step + 1, *(student.losses[-1] for student in students)), flush=True)

    apart = [abs(a - b) for a, b in zip(*(student.losses for student in students))]
    within = next((step for step, error in enumerate(apart) if error > WITHIN), len(apart))
    print(f"losses are within {WITHIN:g} of each other for the first {within} of {len(apart)} steps; {max(apart):.1e} at most")
    # The first steps compile.
    medians = [1000 * statistics.median(student.seconds[len(apart) // 10:]) for student in students]
    ratios = [b / a for a, b in zip(*(student.seconds[len(apart) // 10:] for student in students))]
    print(f"a step takes {medians[0]:.1f} ms with PyTorch's layer, {medians[1]:.1f} ms with the compiled one: ratio of medians "
          f"{medians[1] / medians[0]:.2f}, median of ratios {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
