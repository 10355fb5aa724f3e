# SPDX-License-Identifier: MIT
"""The Rust crate, built by Debian's cargo without a network."""
import os
import re
import shutil
import subprocess

import numpy

from conftest import ROOT, build_directory
from support.module import rnncc as package
from support.trained_lines import line_alone, line_to_learn

RULES = [("sgd", 0.05, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
         ("adam", 0.1, {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6, "max_norm": 0.5}),
         ("adamw", 0.1, {"weight_decay": 0.01})]


def numbers_of_python(module):
    """Of each rule: the losses of forty steps, and the weights then."""
    x = numpy.arange(8, dtype=numpy.float32) / 4
    found = []
    for rule, rate, options in RULES:
        trainer = package.load(module, threads=1).trainer()
        for _ in range(40):
            found.append(trainer(x, 3 * x - 1))
            trainer.backward()
            trainer.step(rule, rate, **options)
        found += trainer.weights().values()
    return numpy.concatenate([numpy.ravel(it) for it in found]).astype(numpy.float32)


def test_the_crate_and_its_tests(compile, tmp_path):
    """The crate's folder stays as it is."""
    crate = tmp_path / "rnncc"
    shutil.copytree(ROOT / "runtime" / "bindings" / "rust", crate)
    modules = build_directory() / "tests" / "unit"
    trained = compile(line_to_learn().write(tmp_path), "--train")
    outer = compile(line_alone().write(tmp_path, "line"), "--train", "--outer-loss")
    numbers_of_python(trained).tofile(tmp_path / "numbers")
    environment = {**os.environ, "RUSTC": "/usr/bin/rustc", "RUSTDOC": "/usr/bin/rustdoc",
                   "RUSTFLAGS": "-Dwarnings", "CARGO_HOME": str(tmp_path / "home"),
                   "RNNCC_FAKE_MODULE": str(modules / "runtime_fake_module.so"),
                   "RNNCC_SECOND_MODULE": shutil.copy(modules / "runtime_fake_module.so", tmp_path / "second.so"),
                   "RNNCC_OLDER_MODULE": str(modules / "runtime_older_module.so"),
                   "RNNCC_TRAINED_MODULE": str(trained), "RNNCC_OUTER_MODULE": str(outer),
                   "RNNCC_TRAINED_NUMBERS": str(tmp_path / "numbers"),
                   "RNNCC_MUTABLE_MODULE": str(compile(ROOT / "models" / "digits_rnn.json", "--weights=mutable"))}
    done = subprocess.run(["/usr/bin/cargo", "test", "--offline"], cwd=crate, env=environment, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [int(count) for count in re.findall(r"(\d+) passed", done.stdout)]
    assert [count for count in passed if count] == [10, 10, 2], "tests/streams.rs, tests/training.rs, and the examples"
