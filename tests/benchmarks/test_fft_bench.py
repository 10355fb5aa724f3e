# SPDX-License-Identifier: MIT
"""tools/bench fft: its command line, its models, and its ratios. Its kernels are tested in graphs/test_fourier.py."""
import sys

import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path.insert(0, str(ROOT / "tools"))

from benchmarks import fft_run, turns  # noqa: E402


def test_each_length_is_a_case_there_and_back():
    assert len(listed("fft")) == 4 * len(fft_run.LENGTHS)
    assert listed("fft", "real_960*") == ["real_960x1", "real_960x100"]


@pytest.mark.parametrize("words, told", [(["real_257x1"], "real_257x1"), (["--rounds", "0"], "--rounds")])
def test_what_is_no_case_or_count_is_refused(words, told):
    assert_refused("fft", *words, told=told)


@pytest.mark.parametrize("kind", ["real", "inverse"])
def test_a_module_computes_what_is_expected(compile, tmp_path, kind):
    from support.module import Module
    model, x = fft_run.model_of(kind, 320, 3)
    want = fft_run.expected(kind, 320, x)
    with Module(compile(model.write(tmp_path))) as module, module.context(1) as context:
        got, = context.run({"x": x}).values()
    assert got.shape == want.shape and abs(got - want).max() <= 1e-5 * abs(want).max()


def test_a_ratio_is_the_median_of_those_of_rounds():
    rounds = {"rnncc": [1.0, 2.0, 9.0], **{peer: [2.0, 2.0, 3.0] for peer in fft_run.PEERS}}
    assert turns.ratios_of(rounds) == pytest.approx(dict.fromkeys(fft_run.PEERS, 1.0))
