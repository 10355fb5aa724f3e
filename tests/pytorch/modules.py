# SPDX-License-Identifier: MIT
"""Small networks as people write them in PyTorch: NETWORKS[name]() -> (module, example inputs, dynamic axes).

Dynamic axes: names of each input's axes that are known only at run time; DIMS has their bounds, and exported_axes() those
of them that an exporter leaves dynamic.
"""
import torch
from torch import nn

NETWORKS = {}
DIMS = {"batch": (1, 5), "length": (1, 40), "steps": (3, 33), "width": (24, 96), "height": (24, 64), "frames": (20, 90),
        "tokens": (64, 512)}
EXPORTERS = ("script", "dynamo")
# PyTorch 2.13 cannot trace its own encoder layer ("argument 'is_causal' must be bool, not Tensor") and packed sequences
# ("argument 'size' failed to unpack").
NOT_EXPORTED = {("library_encoder", "script"), ("packed_bilstm", "dynamo")}
# It takes these extents for those of the example, or cannot decompose recurrent layers of that many steps.
STATIC_FOR_DYNAMO = {"deep_speech": {"frames"}, "voice_activity": {"frames"}, "elman_tagger": {"length"}}


def network(build):
    NETWORKS[build.__name__] = build
    return build


def exported_axes(name, exporter, axes):
    fixed = STATIC_FOR_DYNAMO.get(name, set()) if exporter == "dynamo" else set()
    return [{axis: dim for axis, dim in of_input.items() if dim not in fixed} for of_input in axes]


def sized(inputs, axes, extents):
    """Other inputs of the same kind, at these extents."""
    for tensor, of_input in zip(inputs, axes):
        shape = [extents.get(of_input.get(axis), extent) for axis, extent in enumerate(tensor.shape)]
        if tensor.is_floating_point():
            yield torch.randn(shape)
        else:
            yield torch.randint(0, int(tensor.max()) + 1, shape)


class Crnn(nn.Module):
    """Text in a picture: convolutions, one step for each column, two bidirectional LSTMs (Shi et al., 2015)."""

    def __init__(self, classes=11):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d((2, 2), (2, 1), (0, 1)), nn.Conv2d(32, 32, (8, 2)), nn.ReLU())
        self.first = nn.LSTM(32, 24, bidirectional=True)
        self.between = nn.Linear(48, 24)
        self.second = nn.LSTM(24, 24, bidirectional=True)
        self.classify = nn.Linear(48, classes)

    def forward(self, picture):
        columns = self.features(picture).squeeze(2).permute(2, 0, 1)
        steps, batch, _ = columns.size()
        hidden, _ = self.first(columns)
        hidden = self.between(hidden.reshape(steps * batch, -1)).view(steps, batch, -1)
        hidden, _ = self.second(hidden)
        return nn.functional.log_softmax(self.classify(hidden), dim=2)


@network
def crnn():
    return Crnn(), (torch.randn(2, 1, 32, 50),), ({0: "batch", 3: "width"},)


class BatchSequence(nn.Module):
    """A layer on [time, batch, features] taken as time * batch rows."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        steps, batch = x.size(0), x.size(1)
        return self.layer(x.reshape(steps * batch, -1)).view(steps, batch, -1)


class DeepSpeech(nn.Module):
    """Speech: convolutions over a spectrogram, bidirectional GRUs whose directions are added (Amodei et al., 2016)."""

    def __init__(self, bins=32, hidden=24, labels=9):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, (11, 5), stride=(2, 2), padding=(5, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20),
            nn.Conv2d(8, 8, (5, 5), stride=(2, 1), padding=(2, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20))
        self.rnns = nn.ModuleList([nn.GRU(8 * (bins // 4), hidden, bidirectional=True),
                                   nn.GRU(hidden, hidden, bidirectional=True)])
        self.norm = BatchSequence(nn.BatchNorm1d(hidden))
        self.out = nn.Sequential(BatchSequence(nn.BatchNorm1d(hidden)),
                                 BatchSequence(nn.Linear(hidden, labels, bias=False)))

    def forward(self, spectrogram):
        x = self.conv(spectrogram)
        batch, channels, bins, steps = x.size()
        x = x.view(batch, channels * bins, steps).permute(2, 0, 1).contiguous()
        for layer, rnn in enumerate(self.rnns):
            if layer:
                x = self.norm(x)
            x, _ = rnn(x)
            x = x.view(x.size(0), x.size(1), 2, -1).sum(2)
        return self.out(x).transpose(0, 1).softmax(-1)


@network
def deep_speech():
    return DeepSpeech(), (torch.randn(2, 1, 32, 41),), ({0: "batch", 3: "frames"},)


class CharacterModel(nn.Module):
    """The next character, with the state as input and output."""

    def __init__(self, characters=40, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(characters, 16)
        self.lstm = nn.LSTM(16, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, characters)

    def forward(self, text, h, c):
        y, (h, c) = self.lstm(self.embed(text), (h, c))
        return self.out(y), h, c


@network
def character_model():
    state = torch.randn(2, 3, 32)
    return (CharacterModel(), (torch.randint(0, 40, (3, 7)), state, torch.randn_like(state)),
            ({0: "batch", 1: "length"}, {1: "batch"}, {1: "batch"}))


class HandWrittenLstm(nn.Module):
    """A cell in products and gates, in a loop over a fixed number of steps."""

    def __init__(self, inputs=6, hidden=10):
        super().__init__()
        self.hidden = hidden
        self.from_input, self.from_state = nn.Linear(inputs, 4 * hidden), nn.Linear(hidden, 4 * hidden)

    def forward(self, x):
        h = x.new_zeros(x.size(0), self.hidden)
        c = x.new_zeros(x.size(0), self.hidden)
        for t in range(x.size(1)):
            i, f, g, o = (self.from_input(x[:, t]) + self.from_state(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


@network
def hand_written_lstm():
    return HandWrittenLstm(), (torch.randn(3, 8, 6),), ({0: "batch"},)


class Tcn(nn.Module):
    """Causal dilated convolutions with residuals (Bai et al., 2018)."""

    class Block(nn.Module):
        def __init__(self, inputs, outputs, dilation):
            super().__init__()
            self.cut = 2 * dilation
            self.first = nn.utils.parametrizations.weight_norm(
                nn.Conv1d(inputs, outputs, 3, padding=self.cut, dilation=dilation))
            self.second = nn.Conv1d(outputs, outputs, 3, padding=self.cut, dilation=dilation)
            self.fit = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

        def forward(self, x):
            y = torch.relu(self.first(x)[:, :, :-self.cut])
            y = torch.relu(self.second(y)[:, :, :-self.cut])
            return torch.relu(y + self.fit(x))

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[self.Block(4 if k == 0 else 12, 12, 2**k) for k in range(3)])
        self.out = nn.Linear(12, 5)

    def forward(self, x):
        return self.out(self.blocks(x)[:, :, -1])


@network
def tcn():
    return Tcn(), (torch.randn(2, 4, 30),), ({0: "batch", 2: "steps"},)


class UNet(nn.Module):
    """Down, then up by transposed convolutions, concatenated with the skipped tensors (Ronneberger et al., 2015)."""

    @staticmethod
    def twice(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = self.twice(3, 8), self.twice(8, 16), self.twice(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.join2, self.join1 = self.twice(32, 16), self.twice(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(nn.functional.max_pool2d(first, 2))
        y = self.up2(self.bottom(nn.functional.max_pool2d(second, 2)))
        y = self.up1(self.join2(torch.cat([second, y], 1)))
        return self.out(self.join1(torch.cat([first, y], 1)))


@network
def u_net():
    return UNet(), (torch.randn(1, 3, 36, 52),), ({0: "batch"},)


class UpsamplingUNet(nn.Module):
    """The same for odd height and width: upsampled tensors are padded to the size of the skipped ones."""

    def __init__(self):
        super().__init__()
        self.down, self.bottom = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.join = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x):
        first = torch.relu(self.down(x))
        y = self.up(torch.relu(self.bottom(nn.functional.max_pool2d(first, 2))))
        down, right = first.size(2) - y.size(2), first.size(3) - y.size(3)
        y = nn.functional.pad(y, [right // 2, right - right // 2, down // 2, down - down // 2])
        return self.join(torch.cat([first, y], 1))


@network
def upsampling_u_net():
    return UpsamplingUNet(), (torch.randn(1, 3, 21, 17),), ({0: "batch"},)


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        self.residual = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
            nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNet(nn.Module):
    """Inverted residuals (Sandler et al., 2018)."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), InvertedResidual(8, 8, 1, 2),
            InvertedResidual(8, 16, 2, 6), InvertedResidual(16, 16, 1, 6), nn.Conv2d(16, 64, 1), nn.ReLU6())
        self.classify = nn.Sequential(nn.Dropout(0.2), nn.Linear(64, 10))

    def forward(self, x):
        return self.classify(nn.functional.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


@network
def mobile_net():
    return MobileNet(), (torch.randn(2, 3, 48, 40),), ({0: "batch", 2: "height", 3: "width"},)


class ShuffleUnit(nn.Module):
    """Half of the channels pass, half are convolved, and both are shuffled (Ma et al., 2018)."""

    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1), nn.BatchNorm2d(half), nn.ReLU(),
            nn.Conv2d(half, half, 3, padding=1, groups=half), nn.BatchNorm2d(half), nn.Conv2d(half, half, 1), nn.ReLU())

    def forward(self, x):
        kept, convolved = x.chunk(2, dim=1)
        y = torch.cat([kept, self.branch(convolved)], 1)
        batch, channels, height, width = y.size()
        return y.view(batch, 2, channels // 2, height, width).transpose(1, 2).contiguous().view(batch, -1, height, width)


class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(3, 2, 1), ShuffleUnit(16),
                                      ShuffleUnit(16))
        self.classify = nn.Linear(16, 7)

    def forward(self, x):
        return self.classify(self.features(x).mean([2, 3]))


@network
def shuffle_net():
    return ShuffleNet(), (torch.randn(2, 3, 40, 48),), ({0: "batch", 2: "height", 3: "width"},)


class SqueezeExcite(nn.Module):
    """Channels weighted by a function of all pixels (Hu et al., 2018)."""

    def __init__(self, channels=16):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.weigh = nn.Sequential(nn.Linear(channels, 4), nn.ReLU(), nn.Linear(4, channels), nn.Hardsigmoid())

    def forward(self, x):
        x = nn.functional.hardswish(self.conv(x))
        batch, channels = x.shape[:2]
        return x * self.weigh(self.pool(x).view(batch, channels)).view(batch, channels, 1, 1)


@network
def squeeze_excite():
    return SqueezeExcite(), (torch.randn(2, 3, 30, 26),), ({0: "batch", 2: "height", 3: "width"},)


class AttentiveLstm(nn.Module):
    """A bidirectional LSTM, whose steps are weighted by a softmax over time; padding is masked."""

    def __init__(self, words=30, hidden=12):
        super().__init__()
        self.embed = nn.Embedding(words, 10, padding_idx=0)
        self.lstm = nn.LSTM(10, hidden, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * hidden, 1)
        self.out = nn.Linear(2 * hidden, 4)

    def forward(self, words):
        y, _ = self.lstm(self.embed(words))
        scores = self.score(torch.tanh(y)).squeeze(-1)
        scores = scores.masked_fill(words == 0, -1e9)
        weights = torch.softmax(scores, dim=1)
        return self.out(torch.bmm(weights.unsqueeze(1), y).squeeze(1)), weights


@network
def attentive_lstm():
    return AttentiveLstm(), (torch.randint(0, 30, (3, 9)),), ({0: "batch", 1: "length"},)


class Encoder(nn.Module):
    """A Transformer encoder layer, written out, with a causal mask (Vaswani et al., 2017)."""

    def __init__(self, width=24, heads=4):
        super().__init__()
        self.heads = heads
        self.project, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / (width // self.heads)**0.5
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        scores = scores.masked_fill(mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.mix(y)
        return x + self.feed(self.norm2(x))


@network
def encoder():
    return Encoder(), (torch.randn(2, 7, 24),), ({0: "batch", 1: "length"},)


@network
def library_encoder():
    """PyTorch's own layer."""
    layer = nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, norm_first=True)
    return layer, (torch.randn(2, 7, 24),), ({0: "batch", 1: "length"},)
