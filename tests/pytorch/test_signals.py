# SPDX-License-Identifier: MIT
"""Spectra from both of PyTorch's exporters: STFT, its inverse by overlapping windows, and one-sided transforms there and
back; the compiled module computes the same as PyTorch."""
import numpy
import pytest

from pytorch.apart import apart
from support import amount, machine
from support.module import Module

machine.need_package("torch")
import torch  # noqa: E402

# Of the largest result: the two transforms of some 2 * 64 products each, rounded in any order, in PyTorch and here.
TOLERANCE = 4 * 2 * 64 * 2.0**-24


class RoundTrip(torch.nn.Module):
    """A short-time spectrum, halved, and back."""

    def __init__(self, n, hop, window, center=True):
        super().__init__()
        self.register_buffer("window", window)
        self.settings = dict(n_fft=n, hop_length=hop, win_length=n if window is None else len(window), center=center)

    def forward(self, x):
        spectra = torch.stft(x, window=self.window, return_complex=True, **self.settings)
        return torch.istft(spectra * 0.5, window=self.window, **self.settings)


class Spectra(torch.nn.Module):
    def __init__(self, n, hop, window):
        super().__init__()
        self.register_buffer("window", window)
        self.n, self.hop = n, hop

    def forward(self, x):
        return torch.stft(x, self.n, self.hop, window=self.window, center=False, return_complex=False)


class ThereAndBack(torch.nn.Module):
    """n: the input is padded or cut to that; None: its own length, which is even."""

    def __init__(self, n, axis):
        super().__init__()
        self.n, self.axis = n, axis

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x, n=self.n, dim=self.axis) * 0.5, n=self.n, dim=self.axis)


class Several(torch.nn.Module):
    """Of one input: an export takes seconds."""

    def __init__(self, *networks):
        super().__init__()
        self.networks = torch.nn.ModuleList(networks)

    def forward(self, x):
        return tuple(network(x) for network in self.networks)


HANN, SHORT = torch.hann_window(32), torch.hamming_window(20)
ROUND_TRIPS = Several(RoundTrip(32, 16, HANN), RoundTrip(32, 5, SHORT), RoundTrip(32, 16, None, center=False))
REAL = Several(ThereAndBack(None, -1), ThereAndBack(27, 1), ThereAndBack(41, 1), ThereAndBack(18, -1))
FRAMES = Several(Spectra(25, 10, torch.hann_window(25)), Spectra(32, 32, HANN))
# (network, shape of its input, run-time axes, exporter). Frames of istft have even lengths: for odd ones PyTorch 2.13's
# own export fails, "Expected input.size(2) == n_fft, got 24 != 25". The TorchScript exporter has no complex numbers.
NETWORKS = {
    "there_and_back": (REAL, (2, 27, 30), {0: "B"}, "dynamo"),
    "any_signal": (Several(RoundTrip(32, 8, HANN)), (2, 160), {0: "B", 1: "L"}, "dynamo"),
    "frames_by_script": (FRAMES, (2, 140), {}, "script"),
    "round_trips": (ROUND_TRIPS, (1, 128), {}, "dynamo"),
    "frames": (FRAMES, (2, 140), {}, "dynamo"),
}
BOUNDS = {"B": (1, 4), "L": (100, 300)}


def assert_same(context, network, x):
    with torch.no_grad():
        wants = [want.numpy() for want in network(x)]
    outputs = context.run({context.module.inputs[0].name: x.numpy()}).values()
    for got, want in zip(outputs, wants, strict=True):
        numpy.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * float(abs(want).max()))


@pytest.mark.parametrize("name", amount.some(list(NETWORKS), 3))
def test_spectra_are_those_of_pytorch(from_torch, compile, tmp_path, name):
    torch.manual_seed(0)
    network, shape, axes, exporter = NETWORKS[name]
    apart(from_torch.export, network, [torch.randn(shape)], [axes], tmp_path / "model.onnx", exporter)
    bounds = [f"--dim={dim}={BOUNDS[dim][0]}..{BOUNDS[dim][1]}" for dim in axes.values()]
    with Module(compile(tmp_path / "model.onnx", *bounds)) as module, module.context(2) as context:
        for pick in (0, 1):
            extents = [BOUNDS[axes[axis]][pick] if axis in axes else extent for axis, extent in enumerate(shape)]
            assert_same(context, network, torch.randn(extents))
