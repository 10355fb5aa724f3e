# SPDX-License-Identifier: MIT
"""Shared by both digit networks: scikit-learn's 8x8 digits, the split, the training loop and the held-out files."""

import argparse
import pathlib

import numpy
import sklearn.datasets
import sklearn.model_selection
import torch

import export

SEED = 20261121
HELD_OUT = 360
BATCH = 64
SLOTS = 64  # images in one run; dimension B


def load():
    """Images [N,8,8] in 0..1 and labels, split with every digit equally frequent in both parts."""
    digits = sklearn.datasets.load_digits()
    images = (digits.images / 16).astype(numpy.float32)
    return sklearn.model_selection.train_test_split(
        images, digits.target, test_size=HELD_OUT, random_state=SEED, stratify=digits.target)


def train(network, images, labels, epochs, peak_rate):
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    optimiser = torch.optim.AdamW(network.parameters(), lr=peak_rate, weight_decay=1e-2)
    per_epoch = len(images) // BATCH  # the last, short batch is left out: the order changes every epoch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, peak_rate, total_steps=epochs * per_epoch)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.05)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for step in range(per_epoch):
            chosen = order[step * BATCH : (step + 1) * BATCH]
            optimiser.zero_grad()
            loss_of(network(images[chosen]), labels[chosen]).backward()
            optimiser.step()
            schedule.step()


def describe_output(dense, model, features):
    weight, bias = model.weight("output.weight", dense.weight), model.weight("output.bias", dense.bias)
    logits = model.node("Gemm", [features, weight, bias], "logits", transB=1)
    model.output(model.node("Softmax", [logits], "probabilities", axis=1))


def main(name, network_class, describe, epochs, peak_rate):
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    out = parser.parse_args().out
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    images, held_out, labels, truth = load()
    network = network_class()
    train(network, images, labels, epochs, peak_rate)

    with torch.no_grad():
        probabilities = network.eval()(torch.from_numpy(held_out)).softmax(dim=1).numpy()
    reached = float((probabilities.argmax(axis=1) == truth).mean())
    model = export.Model(name, {
        "task": "which digit an 8x8 grey image shows",
        "data": "scikit-learn's digits, a part of the UCI optical recognition of handwritten digits (CC BY 4.0)",
        "licence": "MIT",
        "script": f"models/train/{name}.py",
        "seed": SEED,
        "trained_on": f"{len(images)} images, {epochs} epochs",
        "held_out": f"{HELD_OUT} images, in held_out/digits.images.npy, with labels in held_out/digits.labels.npy",
        "accuracy": reached,
        "accuracy_is": "share of held-out images whose most probable digit is the right one",
    })
    model.dim("B", 1, 1, SLOTS)
    describe(network, model)
    model.write(out)
    model.check({"x": held_out}, probabilities, 1e-5)
    files = out / "held_out"
    files.mkdir(parents=True, exist_ok=True)
    numpy.save(files / "digits.images.npy", held_out)
    numpy.save(files / "digits.labels.npy", truth.astype(numpy.uint8))
    numpy.save(files / f"{name}.probabilities.npy", probabilities)
    ranked = numpy.sort(probabilities, axis=1)
    print(f"{name}: {reached:.2%} of {HELD_OUT} held-out images right; "
          f"closest decision {(ranked[:, -1] - ranked[:, -2]).min():.1e}")
