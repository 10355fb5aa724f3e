# SPDX-License-Identifier: MIT
"""tools/bench deepcpu: its command line and its page. Its networks are tested in tests/pytorch."""
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import deepcpu_run  # noqa: E402
from networks import READERS  # noqa: E402


def bench(*words):
    return subprocess.run([ROOT / "tools" / "bench", "deepcpu", *words], capture_output=True, text=True, timeout=60)


def test_the_applications_are_listed():
    assert bench("--list").stdout.split() == [*READERS] == [*deepcpu_run.CASES]
    assert bench("--list", "*reader").stdout.split() == ["attention_sum_reader"]


@pytest.mark.parametrize("words, told", [(["bidafs"], "bidafs"), (["--without", "ncnn"], "ncnn"), (["--threads", "0"], "0")])
def test_what_is_not_there_is_refused(words, told):
    done = bench(*words)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr


def test_the_page_says_which_goals_are_met_and_where_the_time_goes():
    rows = [deepcpu_run.Row("bidaf", {"rnncc": 3.0, "onnxruntime": 5.0, "torch": 12.0}, {"onnxruntime": 0.6, "torch": 0.25},
                            [("phrase", 1.0), ("all else", 3.0)]),
            deepcpu_run.Row("text_similarity", {"rnncc": 18.0, "onnxruntime": 20.0, "torch": 40.0},
                            {"onnxruntime": 0.9, "torch": 0.45}, [("encoder", 18.0)])]
    page = deepcpu_run.page(rows, 2, "a machine", {"PyTorch": "1"})
    assert "| 3.00 | 5.00 | 12.00 | 0.60 | 0.25 | 0.60 | 0.70 | yes |" in page
    assert "| 18.00 | 20.00 | 40.00 | 0.90 | 0.45 | 0.90 | 0.85 | no |" in page
    assert "| bidaf | all else | 3.00 | 75% |" in page and "a machine, 2 threads" in page
