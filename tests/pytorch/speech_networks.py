# SPDX-License-Identifier: MIT
"""Networks of speech and sound, as people write them in PyTorch; streams carry their past as inputs and outputs."""
import torch
from torch import nn

from pytorch.modules import network


class DsCnn(nn.Module):
    """Keywords in a second of sound: depthwise separable convolutions (Zhang et al., 2017)."""

    def __init__(self, channels=16, words=12):
        super().__init__()
        layers = [nn.Conv2d(1, channels, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(channels), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Conv2d(channels, channels, 3, padding=1, groups=channels), nn.BatchNorm2d(channels), nn.ReLU(),
                       nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels), nn.ReLU()]
        self.features = nn.Sequential(*layers, nn.AvgPool2d((25, 5)))
        self.out = nn.Linear(channels, words)

    def forward(self, coefficients):
        return torch.softmax(self.out(self.features(coefficients).flatten(1)), 1)


@network
def ds_cnn():
    return DsCnn(), (torch.randn(2, 1, 49, 10),), ({0: "batch"},)


class Vocoder(nn.Module):
    """Sound from a mel spectrogram: each step makes a sequence as many times as long (HiFi-GAN: Kong et al., 2020)."""

    def __init__(self, mels=80, channels=256, steps=(8, 8, 2)):
        super().__init__()
        self.first = nn.Conv1d(mels, channels, 7, padding=3)
        self.longer, self.residual = nn.ModuleList(), nn.ModuleList()
        for step in steps:
            self.longer.append(nn.ConvTranspose1d(channels, channels // 2, 2 * step, step, step // 2))
            channels //= 2
            self.residual.append(nn.Conv1d(channels, channels, 3, padding=3, dilation=3))
        self.out = nn.Conv1d(channels, 1, 7, padding=3)

    def forward(self, mels):
        x = self.first(mels)
        for longer, residual in zip(self.longer, self.residual):
            x = longer(nn.functional.leaky_relu(x, 0.1))
            x = x + residual(nn.functional.leaky_relu(x, 0.1))
        return torch.tanh(self.out(nn.functional.leaky_relu(x)))


@network
def vocoder():
    return Vocoder(), (torch.randn(1, 80, 40),), ({2: "frames"},)


class WaveNetStep(nn.Module):
    """Gated dilated convolutions (van den Oord et al., 2016), a sample at a time: each layer's past is a ring of samples,
    of which the oldest is read and replaced."""

    def __init__(self, channels=8, layers=3):
        super().__init__()
        self.first = nn.Linear(1, channels)
        self.old = nn.ModuleList([nn.Linear(channels, 2 * channels, bias=False) for _ in range(layers)])
        self.new = nn.ModuleList([nn.Linear(channels, 2 * channels) for _ in range(layers)])
        self.out = nn.Linear(channels, 4)

    def forward(self, sample, ring1, ring2, ring4):
        x, rings, total = self.first(sample), [], 0
        for ring, old, new in zip((ring1, ring2, ring4), self.old, self.new, strict=True):
            value, gate = (old(ring[:, 0]) + new(x)).chunk(2, 1)
            rings.append(torch.cat([ring[:, 1:], x.unsqueeze(1)], 1))
            y = torch.tanh(value) * torch.sigmoid(gate)
            x, total = x + y, total + y
        return self.out(torch.relu(total)), *rings


@network
def wavenet_step():
    rings = [torch.randn(2, length, 8) for length in (1, 2, 4)]
    return WaveNetStep(), (torch.randn(2, 1), *rings), ({0: "batch"},) * 4


class WaveNet(nn.Module):
    """The same network over a whole sound."""

    def __init__(self, channels=8):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        self.layers = nn.ModuleList([nn.Conv1d(channels, 2 * channels, 2, dilation=2**k) for k in range(3)])
        self.mixes = nn.ModuleList([nn.Conv1d(channels, channels, 1) for _ in range(3)])
        self.out = nn.Conv1d(channels, 4, 1)

    def forward(self, sound):
        x, total = self.first(sound), 0
        for layer, mix in zip(self.layers, self.mixes, strict=True):
            value, gate = layer(nn.functional.pad(x, (layer.dilation[0], 0))).chunk(2, 1)
            y = mix(torch.tanh(value) * torch.sigmoid(gate))
            x, total = x + y, total + y
        return self.out(torch.relu(total))


@network
def wavenet():
    return WaveNet(), (torch.randn(2, 1, 25),), ({0: "batch", 2: "steps"},)


class StreamingTcn(nn.Module):
    """Causal convolutions over chunks of a stream; what a layer needs of the last chunk goes out and comes in again."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(6, 8, 3), nn.Conv1d(8, 8, 3, dilation=2)
        self.out = nn.Conv1d(8, 2, 1)

    def forward(self, chunk, past1, past2):
        x = torch.cat([past1, chunk], 2)
        y = torch.relu(self.first(x))
        z = torch.cat([past2, y], 2)
        return self.out(torch.relu(self.second(z))), x[:, :, -2:], z[:, :, -4:]


@network
def streaming_tcn():
    return (StreamingTcn(), (torch.randn(2, 6, 8), torch.randn(2, 6, 2), torch.randn(2, 8, 4)),
            ({0: "batch", 2: "steps"}, {0: "batch"}, {0: "batch"}))


class Transducer(nn.Module):
    """An encoder of sound, a network of the words so far, and what joins each step of one with each of the other
    (Graves, 2012)."""

    def __init__(self, words=11, width=12):
        super().__init__()
        self.encode = nn.LSTM(10, width, batch_first=True)
        self.embed, self.predict = nn.Embedding(words, 8), nn.GRU(8, width, batch_first=True)
        self.join = nn.Linear(width, words)

    def forward(self, sound, words):
        heard, told = self.encode(sound)[0], self.predict(self.embed(words))[0]
        return torch.log_softmax(self.join(torch.tanh(heard.unsqueeze(2) + told.unsqueeze(1))), 3)


@network
def transducer():
    return (Transducer(), (torch.randn(2, 9, 10), torch.randint(0, 11, (2, 5))),
            ({0: "batch", 1: "length"}, {0: "batch", 1: "steps"}))


class Conformer(nn.Module):
    """Half a feed-forward, attention, a convolution, the other half (Gulati et al., 2020), then a GRU."""

    def __init__(self, width=16, heads=4, kernel=5):
        super().__init__()
        self.heads = heads
        self.before, self.after = self.feed(width), self.feed(width)
        self.norm, self.project, self.mix = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm_conv = nn.LayerNorm(width)
        self.conv = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width),
                                  nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))
        self.gru = nn.GRU(width, width, batch_first=True)

    @staticmethod
    def feed(width):
        return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        return self.mix(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.before(x) / 2
        x = x + self.attend(x)
        x = x + self.conv(self.norm_conv(x).transpose(1, 2)).transpose(1, 2)
        return self.gru(x + self.after(x) / 2)[0]


@network
def conformer():
    return Conformer(), (torch.randn(2, 9, 16),), ({0: "batch", 1: "length"},)


class MaskEstimator(nn.Module):
    """Noise off a spectrum, frame by frame, with the LSTM's state as input and output."""

    def __init__(self, bins=33, hidden=16):
        super().__init__()
        self.norm = nn.LayerNorm(bins)
        self.lstm = nn.LSTM(bins, hidden, num_layers=2, batch_first=True)
        self.mask = nn.Sequential(nn.Linear(hidden, bins), nn.Sigmoid())

    def forward(self, spectrum, h, c):
        y, (h, c) = self.lstm(self.norm(torch.log(spectrum.abs() + 1e-6)), (h, c))
        return self.mask(y) * spectrum, h, c


@network
def mask_estimator():
    state = torch.zeros(2, 1, 16)
    return MaskEstimator(), (torch.randn(1, 4, 33), state, torch.zeros_like(state)), ({1: "length"}, {}, {})


class VoiceActivity(nn.Module):
    """A convolution with the weights of a Fourier transform, its size, convolutions, a GRU, a decision a frame."""

    def __init__(self):
        super().__init__()
        angle = torch.outer(torch.arange(9), torch.arange(16)) * torch.pi / 8
        basis = torch.cat([torch.cos(angle), torch.sin(angle)]).unsqueeze(1) * torch.hann_window(16)
        self.register_buffer("basis", basis)
        self.conv = nn.Sequential(nn.Conv1d(9, 8, 3, padding=1), nn.PReLU(), nn.Conv1d(8, 8, 3, 2, 1), nn.LeakyReLU(0.1))
        self.gru = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, sound):
        parts = nn.functional.conv1d(sound.unsqueeze(1), self.basis, stride=8)
        size = torch.sqrt(parts[:, :9]**2 + parts[:, 9:]**2 + 1e-9)
        y, _ = self.gru(self.conv(size).transpose(1, 2))
        return torch.sigmoid(self.out(y)).squeeze(2)


@network
def voice_activity():
    return VoiceActivity(), (torch.randn(2, 80),), ({0: "batch", 1: "frames"},)


class Wav2Letter(nn.Module):
    """Letters from a spectrogram by convolutions with gated linear units alone (Collobert et al., 2016)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(12, 32, 5, 2, 2), nn.GLU(1), nn.Conv1d(16, 32, 5, 1, 2), nn.GLU(1),
                                    nn.Conv1d(16, 10, 1))

    def forward(self, frames):
        return torch.log_softmax(self.layers(frames), 1).transpose(1, 2)


@network
def wav2letter():
    return Wav2Letter(), (torch.randn(2, 12, 41),), ({0: "batch", 2: "frames"},)
