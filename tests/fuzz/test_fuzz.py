# SPDX-License-Identifier: MIT
"""A finding of a fuzzer fails the test, however the fuzzer ends."""
import subprocess

import pytest


@pytest.mark.parametrize("end", ["exit 77", "exit 70", "exit 1", "kill -KILL $$"])
def test_a_finding_is_no_skipped_test(root, tmp_path, end):
    fuzzer = tmp_path / "fuzzer"
    fuzzer.write_text(f"#!/bin/sh\n{end}\n")
    fuzzer.chmod(0o755)
    done = subprocess.run([root / "tests" / "fuzz" / "fuzz.sh", fuzzer, tmp_path / "found", tmp_path])
    assert done.returncode == 1


def test_a_run_without_findings_passes(root, tmp_path):
    assert subprocess.run([root / "tests" / "fuzz" / "fuzz.sh", "true", tmp_path / "found", tmp_path]).returncode == 0
