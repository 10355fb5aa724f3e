# SPDX-License-Identifier: MIT
"""The Rust crate, built by Debian's cargo without a network."""
import os
import shutil
import subprocess

from conftest import ROOT, build_directory


def test_the_crate_and_its_tests(compile, tmp_path):
    """The crate's folder stays as it is."""
    crate = tmp_path / "rnncc"
    shutil.copytree(ROOT / "runtime" / "bindings" / "rust", crate)
    modules = build_directory() / "tests" / "unit"
    environment = {**os.environ, "RUSTC": "/usr/bin/rustc", "RUSTDOC": "/usr/bin/rustdoc",
                   "RUSTFLAGS": "-Dwarnings", "CARGO_HOME": str(tmp_path / "home"),
                   "RNNCC_FAKE_MODULE": str(modules / "runtime_fake_module.so"),
                   "RNNCC_SECOND_MODULE": shutil.copy(modules / "runtime_fake_module.so", tmp_path / "second.so"),
                   "RNNCC_OLDER_MODULE": str(modules / "runtime_older_module.so"),
                   "RNNCC_MUTABLE_MODULE": str(compile(ROOT / "models" / "digits_rnn.json", "--weights=mutable"))}
    done = subprocess.run(["/usr/bin/cargo", "test", "--offline"], cwd=crate, env=environment, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout and "1 passed" in done.stdout, "tests/streams.rs, and the example of lib.rs"
