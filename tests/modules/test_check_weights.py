# SPDX-License-Identifier: MIT
"""A module may check its weights: one flipped bit anywhere in them is found, and what is whole passes, of several targets and
networks, too."""
import random
import shutil

import numpy
import pytest

from conftest import ROOT
from support.module import rnncc as package

DAMAGED = "the weights are not those that were compiled (SHA-256): the file is damaged"
MODEL = ROOT / "models" / "digits_rnn.json"
EXIT_UNSUPPORTED = 3


@pytest.fixture(scope="module")
def parts(rnncc, tmp_path_factory):
    """A module, and its weights as they are in it."""
    folder = tmp_path_factory.mktemp("weights")
    for options in (["-o", folder / "m.so"], ["--emit=c", "-o", folder / "c"]):
        done = rnncc(MODEL, "--target=x86-64-v2", *options)
        assert done.returncode == 0, done.stderr
    return folder / "m.so", (folder / "c" / "weights.bin").read_bytes()


def flipped(module, place, to):
    image = bytearray(module.read_bytes())
    image[place // 8] ^= 1 << place % 8
    to.write_bytes(image)
    return to


def test_a_flipped_bit_is_found_wherever_it_is(parts, tmp_path):
    module, weights = parts
    begin = module.read_bytes().index(weights)
    rng = random.Random(1)
    places = [0, 8 * len(weights) - 1, *(rng.randrange(8 * len(weights)) for _ in range(50))]
    for number, place in enumerate(places):
        damaged = flipped(module, 8 * begin + place, tmp_path / f"{number}.so")
        with pytest.raises(package.UnsupportedError, match="file is damaged"):
            package.load(damaged, check_weights=True, threads=1)(numpy.zeros((1, 8, 8), numpy.float32))
        damaged.unlink()


def test_rnnrun_verify_always_looks(parts, rnnrun, tmp_path):
    module, weights = parts
    damaged = flipped(module, 8 * (module.read_bytes().index(weights) + 1000) + 3, tmp_path / "damaged.so")
    numpy.save(tmp_path / "x.npy", numpy.zeros((1, 8, 8), numpy.float32))
    done = rnnrun("run", module, "--input", f"x=@{tmp_path}/x.npy", "--output", f"probabilities=@{tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    command = ["--input", f"x=@{tmp_path}/x.npy", "--expect", f"probabilities=@{tmp_path}/y.npy"]
    assert rnnrun("verify", module, *command).returncode == 0
    done = rnnrun("verify", damaged, *command)
    assert done.returncode == EXIT_UNSUPPORTED and f"{damaged}: {DAMAGED}" in done.stderr


@pytest.mark.parametrize("options", [["--target=x86-64-v2,x86-64"], ["--target=x86-64-v2", "--precision=int8"]])
def test_weights_of_several_targets_and_types_are_whole(options, rnncc, tmp_path):
    done = rnncc(MODEL, "-o", tmp_path / "m.so", *options)
    assert done.returncode == 0, done.stderr
    assert package.load(tmp_path / "m.so", check_weights=True)(numpy.zeros((1, 8, 8), numpy.float32)).shape == (1, 10)


def test_weights_of_several_networks_are_whole(rnncc, tmp_path):
    for name in ("digits_rnn.json", "digits_rnn.safetensors", "digits_cnn.json", "digits_cnn.safetensors"):
        shutil.copy(ROOT / "models" / name, tmp_path)
    done = rnncc("bundle", tmp_path / "digits_rnn.json", tmp_path / "digits_cnn.json", "-o", tmp_path / "both.so")
    assert done.returncode == 0, done.stderr
    for network in ("digits_rnn", "digits_cnn"):
        assert package.load(tmp_path / "both.so", network, check_weights=True)(numpy.zeros((1, 8, 8), numpy.float32)).any()
