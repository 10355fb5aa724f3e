# SPDX-License-Identifier: MIT
"""tools/bench deepcpu: its command line and its page. Its networks are tested in tests/pytorch."""
import sys

import pytest
from conftest import ROOT
from support.bench import assert_refused, listed

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "models")]

from benchmarks import deepcpu_run  # noqa: E402
from networks import READERS  # noqa: E402


def test_the_applications_are_listed():
    assert listed("deepcpu") == [*READERS] == [*deepcpu_run.CASES]
    assert listed("deepcpu", "*reader") == ["attention_sum_reader"]


@pytest.mark.parametrize("words, told", [(["bidafs"], "bidafs"), (["--without", "ncnn"], "ncnn"), (["--threads", "0"], "0")])
def test_what_is_not_there_is_refused(words, told):
    assert_refused("deepcpu", *words, told=told)


ROWS = [deepcpu_run.Row("bidaf", {"rnncc": 3.0, "onnxruntime": 5.0, "torch": 12.0}, {"onnxruntime": 0.6, "torch": 0.25},
                        [("phrase", 1.0), ("all else", 3.0)], ("a text", "phrase LSTM 50 to 100"), (3.1, 4.0, 0.78)),
        deepcpu_run.Row("text_similarity", {"rnncc": 18.0, "onnxruntime": 20.0, "torch": 40.0},
                        {"onnxruntime": 0.9, "torch": 0.45}, [("encoder", 18.0)], ("two texts", "encoder GRU 200 to 512"),
                        (18.1, 20.0, 0.91), {"rnncc": 1.2, "onnxruntime": 2.0, "torch": 4.0})]


def test_the_page_says_which_goals_are_met_and_where_the_time_goes():
    page = deepcpu_run.page(ROWS, 2, "a machine", {"PyTorch": "1"})
    assert "| 3.00 | 5.00 | 12.00 | 0.60 | 0.25 | 0.60 | 0.70 | yes |" in page
    assert "| 18.00 | 20.00 | 40.00 | 0.90 | 0.45 | 0.90 | 0.85 | no |" in page
    assert "| bidaf | all else | 3.00 | 75% |" in page and "a machine, 2 threads" in page
    assert "| bidaf | a text | phrase LSTM 50 to 100 |" in page and "| bidaf | 3.10 | 4.00 | 0.78 |" in page
    assert "| a query and its 33 documents, ms | 18.00 | 20.00 | 40.00 |" in page
    assert "| 33 pairs one by one, of the time at once | 2.2 | 3.3 | 3.3 |" in page


def test_what_is_printed_has_the_papers_three_tables():
    bidaf, similarity = ("\n".join(deepcpu_run.lines_of(row)) for row in ROWS)
    assert bidaf.startswith("bidaf:  rnncc 3.00 ms  onnxruntime 5.00 ms  torch 12.00 ms  of onnxruntime 0.60  of torch 0.25\n")
    assert "inputs: a text\n" in bidaf and "recurrent layers: phrase LSTM 50 to 100\n" in bidaf
    assert "runs a second:  rnncc 333  onnxruntime 200  torch 83\n" in bidaf
    assert "phrase                      1.00 ms\n" in bidaf and "apart: 4.00 ms, ratio 0.78" in bidaf
    assert "one document:  rnncc 1.20 ms  onnxruntime 2.00 ms  torch 4.00 ms" in similarity and "one document" not in bidaf


def test_sizes_of_the_networks_are_those_of_the_papers_table():
    """Zhang et al., table 2; its BiDAF has three layers, of which that of phrases reads two texts, and modelling is two."""
    found = {name: deepcpu_run.sizes(READERS[name]()) for name in READERS}
    assert found["text_similarity"] == ("query [1, 20], documents [33, 20]", "encoder GRU 200 to 512")
    assert found["attention_sum_reader"][1] == "context GRU 200 to 256, question GRU 200 to 256"
    assert found["bidaf"][1] == ("phrase LSTM 50 to 100, modelling0 LSTM 800 to 100, modelling1 LSTM 200 to 100, "
                                 "output LSTM 1400 to 100")
