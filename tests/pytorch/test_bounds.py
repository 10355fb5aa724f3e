# SPDX-License-Identifier: MIT
"""Lengths that PyTorch programs compute from data: a mask as long as the longest length, and a decoder that ends at a
symbol, or after some steps; the compiled module returns as much as PyTorch does."""
import numpy

from pytorch.apart import apart
from support import machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402

STEPS, WIDTH, END = 12, 6, 3


class Mask(torch.nn.Module):
    def forward(self, lengths):
        longest = lengths.max().clamp(0, 40)
        return torch.arange(longest)[None] < lengths[:, None]


@torch.jit.script
def greedy(h, w, end: int, steps: int):
    found = torch.zeros([0], dtype=torch.int64)
    i = 0
    done = False
    while i < steps and not done:
        h = torch.tanh(h @ w)
        best = h.argmax().reshape(1)
        found = torch.cat([found, best])
        done = bool(best[0] == end)
        i += 1
    return found


class Greedy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.end, self.steps = END, STEPS
        self.w = torch.nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, h):
        return greedy(h, self.w, self.end, self.steps)


def export(module, inputs, path, **options):
    torch.onnx.export(module.eval(), inputs, path, dynamo=False, **options)


def test_a_mask_is_as_long_as_the_longest_length(compile, tmp_path):
    path = tmp_path / "mask.onnx"
    apart(lambda: export(Mask(), (torch.tensor([2, 4]),), path, input_names=["lengths"], dynamic_axes={"lengths": {0: "B"}}))
    with Module(compile(path, "--dim=B=1..5")) as module, module.context(2) as context:
        for lengths in ([2, 4], [0], [40, 1, 40, 3, 2], [-3, 0], [7, 5, 6]):
            [mask] = context.run({"lengths": numpy.array(lengths)}).values()
            numpy.testing.assert_array_equal(mask, Mask()(torch.tensor(lengths)).numpy())


def test_a_decoder_returns_what_it_has_found(compile, tmp_path):
    path, torch_module, rng, found = tmp_path / "greedy.onnx", Greedy(), numpy.random.default_rng(0), set()
    apart(lambda: export(torch.jit.script(torch_module), (torch.randn(WIDTH),), path, input_names=["h"]))
    with Module(compile(path)) as module, module.context(2) as context:
        for _ in range(100):
            h = rng.standard_normal(WIDTH, numpy.float32)
            [symbols] = context.run({"h": h}).values()
            numpy.testing.assert_array_equal(symbols, torch_module(torch.from_numpy(h)).numpy())
            found.add(len(symbols))
    assert {1, STEPS} <= found
