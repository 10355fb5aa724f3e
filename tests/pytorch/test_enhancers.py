# SPDX-License-Identifier: MIT
"""Speech enhancers with the transform inside, of the kind of DTLN and DeepFilterNet, as streams: a hop in and a hop out,
what remains in states. Over 10 s they give what PyTorch computes of the whole signal at once."""
import functools
import logging

import numpy
import pytest

from pytorch.apart import apart
from support import machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402

SECONDS = 10
TOLERANCE = 1e-4  # relative to the largest sample


class Masking(nn.Module):
    """DTLN's kind (Westhausen and Meyer, 2020): a mask on the spectrum of a frame by an LSTM, then one on learned features
    of its signal by a second; frames overlap and are added."""
    rate, n, hop, width = 16000, 512, 128, 48

    def __init__(self):
        super().__init__()
        bins, features = self.n // 2 + 1, 64
        self.first, self.mask1 = nn.LSTM(bins, self.width, batch_first=True), nn.Linear(self.width, bins)
        self.encode, self.norm = nn.Linear(self.n, features, bias=False), nn.LayerNorm(features)
        self.second, self.mask2 = nn.LSTM(features, self.width, batch_first=True), nn.Linear(self.width, features)
        self.decode = nn.Linear(features, self.n, bias=False)

    def states(self):
        return [torch.zeros(1, 1, self.width) for _ in range(4)]

    def frames(self, x, h1, c1, h2, c2):
        """x: [1, frames, n]."""
        spectra = torch.view_as_real(torch.fft.rfft(x, n=self.n))
        magnitude = torch.sqrt((spectra * spectra).sum(-1) + 1e-7)
        y, (h1, c1) = self.first(torch.log(magnitude), (h1, c1))
        masked = spectra * torch.sigmoid(self.mask1(y)).unsqueeze(-1)
        signal = torch.fft.irfft(torch.view_as_complex(masked), n=self.n)
        features = self.encode(signal)
        y, (h2, c2) = self.second(self.norm(features), (h2, c2))
        return self.decode(features * torch.sigmoid(self.mask2(y))), h1, c1, h2, c2


class Filtering(nn.Module):
    """DeepFilterNet's kind (Schroeter et al., 2022): gains of bands, and for the low bins complex filters over the last
    frames, both by a GRU."""
    rate, n, hop, width, bands, low, taps = 48000, 960, 480, 40, 24, 60, 3

    def __init__(self):
        super().__init__()
        bins = self.n // 2 + 1
        edges = torch.linspace(0, bins, self.bands + 1).long()
        members = torch.stack([(torch.arange(bins) >= a) & (torch.arange(bins) < b) for a, b in zip(edges, edges[1:])]).float()
        self.register_buffer("members", members)
        self.register_buffer("window", torch.sqrt(torch.hann_window(self.n)))
        self.gru = nn.GRU(self.bands, self.width, batch_first=True)
        self.gain, self.filter = nn.Linear(self.width, self.bands), nn.Linear(self.width, self.low * self.taps * 2)

    def states(self):
        return [torch.zeros(1, 1, self.width), torch.zeros(1, self.taps - 1, self.low, 2)]

    def frames(self, x, h, before):
        spectra = torch.view_as_real(torch.fft.rfft(x * self.window, n=self.n))
        energy = torch.log((spectra * spectra).sum(-1) @ (self.members / self.members.sum(1, keepdim=True)).T + 1e-7)
        y, h = self.gru(energy, h)
        gained = spectra * (torch.sigmoid(self.gain(y)) @ self.members).unsqueeze(-1)
        count, low = x.shape[1], torch.cat([before, spectra[:, :, :self.low]], 1)
        taps = torch.tanh(self.filter(y)).view(1, count, self.taps, self.low, 2)
        re = im = 0
        for k in range(self.taps):
            a, w = low[:, k:k + count], taps[:, :, k]
            re = re + a[..., 0] * w[..., 0] - a[..., 1] * w[..., 1]
            im = im + a[..., 0] * w[..., 1] + a[..., 1] * w[..., 0]
        whole = torch.cat([torch.stack([re, im], -1), gained[:, :, self.low:]], 2)
        signal = torch.fft.irfft(torch.view_as_complex(whole), n=self.n)
        return signal * self.window, h, low[:, count:]


class Stream(nn.Module):
    """A hop in, a hop out: the samples before it, and those that later frames add to, are states."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x, heard, added, *states):
        frame = torch.cat([heard, x], 1)
        y, *states = self.network.frames(frame.unsqueeze(1), *states)
        hop = self.network.hop
        total = torch.cat([added, torch.zeros(1, hop)], 1) + y.squeeze(1)
        return total[:, :hop], frame[:, hop:], total[:, hop:], *states


def whole(network, x):
    """All frames at once, overlapped and added by fold()."""
    n, hop = network.n, network.hop
    frames = torch.nn.functional.pad(x, (n - hop, 0)).unfold(1, n, hop)
    y = network.frames(frames, *network.states())[0]
    length = (y.shape[1] - 1) * hop + n
    return torch.nn.functional.fold(y.transpose(1, 2), (1, length), (1, n), stride=(1, hop)).view(1, length)[:, :x.shape[1]]


def export(network, path):
    logging.getLogger("torch").setLevel(logging.ERROR)
    kept = [torch.zeros(1, network.n - network.hop) for _ in range(2)] + network.states()
    names = [f"state{k}" for k in range(len(kept))]
    written = functools.partial(torch.onnx.export, dynamo=True, verbose=False, input_names=["x", *names],
                                output_names=["y", *(f"{name}_next" for name in names)])
    apart(written, Stream(network).eval(), (torch.randn(1, network.hop), *kept), str(path))
    return [f"--state={name}={name}_next" for name in names]


@pytest.mark.parametrize("kind", [Masking, Filtering])
def test_a_stream_gives_what_the_whole_signal_does(compile, tmp_path, kind):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = kind().eval()
    states = export(network, tmp_path / "model.onnx")
    signal = torch.randn(1, SECONDS * network.rate // network.hop * network.hop) * 0.1
    with torch.no_grad():
        want = whole(network, signal).numpy()
    with Module(compile(tmp_path / "model.onnx", *states)) as module, module.context(1) as context:
        hops = signal.numpy().reshape(-1, 1, network.hop)
        got = numpy.concatenate([context.run({"x": hop})["y"].copy() for hop in hops], 1)
    numpy.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * float(abs(want).max()))
