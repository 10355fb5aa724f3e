# SPDX-License-Identifier: MIT
"""Networks of attention in a size that people use: 256 wide, 64 to 512 tokens."""
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from pytorch.modules import network
from pytorch.speech_networks import Conformer


class EncoderLayer(nn.Module):
    """Attention and a feed-forward layer, each added and then normalised (Vaswani et al., 2017)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        return self.mix(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


@network
def wide_encoder():
    return nn.Sequential(*(EncoderLayer(256, 4) for _ in range(4))), (torch.randn(1, 256, 256),), ({1: "tokens"},)


@network
def wide_conformer():
    return Conformer(256, kernel=15), (torch.randn(1, 256, 256),), ({1: "tokens"},)
