# SPDX-License-Identifier: MIT
"""Blocks of networks that read text, as PyTorch exports them: they compute what PyTorch does, of any extents, and their scores
and pairs are not stored element by element."""
import re

import pytest

from pytorch.apart import apart
from support import machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402

BOUND = 1e-5  # relative to the largest value: sums of up to 150 products
B, S, T, F = 2, 3, 40, 50  # samples, queries or words of a question, words, features


class Additive(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.score = nn.Linear(F, F), nn.Linear(F, F, bias=False), nn.Linear(F, 1, bias=False)

    def forward(self, query, keys):
        sums = self.query(query)[:, :, None] + self.key(keys)[:, None]
        return torch.softmax(self.score(torch.tanh(sums))[..., 0], 2) @ keys


class Pooled(nn.Module):
    """Attention of no query: each word has its weight."""

    def __init__(self):
        super().__init__()
        self.hidden, self.score = nn.Linear(F, F), nn.Linear(F, 1)

    def forward(self, words):
        weights = torch.softmax(self.score(torch.tanh(self.hidden(words))), 1)
        return (weights * words).sum(1), words.relu().amax(1)


class Step(nn.Module):
    """Attention of one query, as a decoder's step has it."""

    def forward(self, query, keys):
        weights = torch.softmax(torch.bmm(keys, query[:, :, None])[:, :, 0] / F ** 0.5, 1)
        return torch.bmm(weights[:, None], keys)[:, 0]


class Similarity(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(3 * F, 1)

    def forward(self, question, words):
        h = words[:, :, None].expand(-1, -1, question.shape[1], -1)
        u = question[:, None].expand(-1, words.shape[1], -1, -1)
        return self.score(torch.cat([h, u, h * u], 3))[..., 0]


INPUTS = {"query": ((B, S, F), {0: "B", 1: "S"}), "keys": ((B, T, F), {0: "B", 1: "T"}), "words": ((B, T, F), {0: "B", 1: "T"}),
          "question": ((B, S, F), {0: "B", 1: "S"})}
CASES = {"additive": (Additive, ["query", "keys"], [r"= Tanh\("]), "pooled": (Pooled, ["words"], [r"= Mul\("]),
         "step": (Step, ["query", "keys"], [r"= MatMul\("]),
         "similarity": (Similarity, ["question", "words"], [r"= Concat\(", r"= Expand\("])}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_block_computes_what_pytorch_does_and_is_fused(rnncc, compile, tmp_path, name, known):
    kind, names, gone = CASES[name]
    torch.set_num_threads(1)  # a fork has none of PyTorch's threads
    torch.manual_seed(1)
    module = kind().eval()
    feeds = {key: torch.randn(B, F) if (name, key) == ("step", "query") else torch.randn(INPUTS[key][0]) for key in names}
    axes = {} if known else {key: {0: "B"} if feeds[key].ndim == 2 else INPUTS[key][1] for key in names}
    path = tmp_path / "block.onnx"
    apart(lambda: torch.onnx.export(module, tuple(feeds.values()), path, dynamo=False, input_names=names, dynamic_axes=axes))
    dims = [] if known else ["--dim=B=1..2..4", "--dim=T=1..40..60", "--dim=S=1..3..5"]
    dims = [dim for dim in dims if any(dim[6] in of.values() for of in axes.values())]
    done = rnncc("inspect", path, "--dump-after=fuse_reductions", "--threads=2", *dims)
    assert done.returncode == 0 and "ReducedChain" in done.stderr, done.stderr
    assert [pattern for pattern in gone if re.search(pattern, done.stderr)] == [], done.stderr
    with torch.inference_mode():
        wanted = module(*feeds.values())
    with Module(compile(path, *dims)) as compiled, compiled.context(2) as context:
        got = context.run({key: tensor.numpy() for key, tensor in feeds.items()})
    for array, tensor in zip(got.values(), wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        assert abs(array - tensor.numpy()).max() <= BOUND * abs(tensor).max()
