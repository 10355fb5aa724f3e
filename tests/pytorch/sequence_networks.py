# SPDX-License-Identifier: MIT
"""Networks of text and other sequences, as people write them in PyTorch."""
import torch
from torch import nn

from pytorch.modules import network


class PackedBiLstm(nn.Module):
    """A tagger that knows how long its sequences are."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 10)
        self.lstm = nn.LSTM(10, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(24, 5)

    def forward(self, words, lengths):
        lengths = lengths.clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        y, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.size(1))
        return self.out(y)


@network
def packed_bilstm():
    return PackedBiLstm(), (torch.randint(0, 30, (3, 9)), torch.tensor([9, 5, 7])), ({0: "batch"}, {0: "batch"})


class AdditiveAttention(nn.Module):
    """Bahdanau et al., 2015."""

    def __init__(self, width):
        super().__init__()
        self.of_keys, self.of_query = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, query, keys):
        scores = self.score(torch.tanh(self.of_keys(keys) + self.of_query(query).unsqueeze(1)))
        weights = torch.softmax(scores, dim=1)
        return (weights * keys).sum(1)


class Translator(nn.Module):
    """A sequence to a sequence: a GRU reads, another writes by greedy choice with attention over what was read."""

    def __init__(self, words=20, width=16, written=6):
        super().__init__()
        self.written = written
        self.embed = nn.Embedding(words, width)
        self.read = nn.GRU(width, width, batch_first=True)
        self.attend = AdditiveAttention(width)
        self.write = nn.GRUCell(2 * width, width)
        self.out = nn.Linear(width, words)

    def forward(self, text):
        keys, state = self.read(self.embed(text))
        state, word, scores = state[0], text[:, 0], []
        for _ in range(self.written):
            state = self.write(torch.cat([self.embed(word), self.attend(state, keys)], 1), state)
            scores.append(self.out(state))
            word = scores[-1].argmax(1)
        return torch.stack(scores, 1)


@network
def translator():
    return Translator(), (torch.randint(0, 20, (3, 7)),), ({0: "batch", 1: "length"},)


class TextCnn(nn.Module):
    """Convolutions of several widths over words, the largest response of each (Kim, 2014)."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 12)
        self.convs = nn.ModuleList([nn.Conv1d(12, 8, width) for width in (1, 2, 3)])
        self.out = nn.Linear(24, 3)

    def forward(self, words):
        x = self.embed(words).transpose(1, 2)
        return self.out(torch.cat([torch.relu(conv(x)).amax(2) for conv in self.convs], 1))


@network
def text_cnn():
    return TextCnn(), (torch.randint(0, 50, (2, 11)),), ({0: "batch", 1: "steps"},)


class CharacterWords(nn.Module):
    """Words by their characters: convolutions, a highway layer, an LSTM (Kim et al., 2016)."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(26, 6)
        self.convs = nn.ModuleList([nn.Conv1d(6, 8, width, padding=width // 2) for width in (1, 3)])
        self.gate, self.change = nn.Linear(16, 16), nn.Linear(16, 16)
        self.lstm = nn.LSTM(16, 10, batch_first=True)

    def forward(self, characters):
        batch, words, length = characters.shape
        x = self.embed(characters).view(batch * words, length, 6).transpose(1, 2)
        x = torch.cat([torch.tanh(conv(x)).max(2)[0] for conv in self.convs], 1)
        gate = torch.sigmoid(self.gate(x))
        x = gate * torch.relu(self.change(x)) + (1 - gate) * x
        return self.lstm(x.view(batch, words, -1))[0]


@network
def character_words():
    return CharacterWords(), (torch.randint(0, 26, (2, 6, 8)),), ({0: "batch"},)


class NormalisedLstm(nn.Module):
    """A cell with LayerNorm on its gates (Ba et al., 2016), step by step."""

    def __init__(self, inputs=5, hidden=8):
        super().__init__()
        self.hidden = hidden
        self.of_input, self.of_state = nn.Linear(inputs, 4 * hidden), nn.Linear(hidden, 4 * hidden, bias=False)
        self.norm_input, self.norm_state = nn.LayerNorm(4 * hidden), nn.LayerNorm(4 * hidden)
        self.norm_cell = nn.LayerNorm(hidden)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.hidden)
        c, outputs = h, []
        for step in x.unbind(1):
            i, f, g, o = (self.norm_input(self.of_input(step)) + self.norm_state(self.of_state(h))).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(self.norm_cell(c))
            outputs.append(h)
        return torch.stack(outputs, 1)


@network
def normalised_lstm():
    return NormalisedLstm(), (torch.randn(2, 6, 5),), ({0: "batch"},)


class Forecaster(nn.Module):
    """The mean and spread of a series' next values, with its age as a covariate (Salinas et al., 2017)."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 12, num_layers=2, batch_first=True)
        self.mean, self.spread = nn.Linear(12, 1), nn.Linear(12, 1)

    def forward(self, series):
        size = series.abs().mean(1, keepdim=True) + 1
        age = torch.arange(series.size(1), dtype=series.dtype, device=series.device)
        age = torch.log1p(age).expand(series.size(0), -1)
        y, _ = self.gru(torch.stack([series / size, age], 2))
        return self.mean(y).squeeze(2) * size, nn.functional.softplus(self.spread(y)).squeeze(2) * size


@network
def forecaster():
    return Forecaster(), (torch.randn(3, 10),), ({0: "batch", 1: "length"},)


class NBeats(nn.Module):
    """Blocks, each of which takes off what it explains (Oreshkin et al., 2020)."""

    def __init__(self, past=12, future=4):
        super().__init__()
        self.past = past
        self.blocks = nn.ModuleList([
            nn.Sequential(nn.Linear(past, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, past + future))
            for _ in range(3)])

    def forward(self, series):
        forecast = 0
        for block in self.blocks:
            y = block(series)
            series, forecast = series - y[:, :self.past], forecast + y[:, self.past:]
        return forecast


@network
def n_beats():
    return NBeats(), (torch.randn(2, 12),), ({0: "batch"},)


class Autoencoder(nn.Module):
    """A sequence in one vector and back: how wrong it is tells what is unusual."""

    def __init__(self):
        super().__init__()
        self.read, self.write = nn.LSTM(4, 8, batch_first=True), nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        _, (h, _) = self.read(x)
        y, _ = self.write(h[-1].unsqueeze(1).repeat(1, x.size(1), 1))
        return ((self.out(y) - x)**2).mean((1, 2))


@network
def lstm_autoencoder():
    return Autoencoder(), (torch.randn(2, 9, 4),), ({0: "batch", 1: "length"},)


class Decoder(nn.Module):
    """A Transformer decoder layer written out: causal attention, and attention over what an encoder gave."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.query, self.own, self.other = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.cross, self.mix, self.mix_cross = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.feed = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, width))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def attend(self, query, keys_values, causal):
        keys, values = keys_values.chunk(2, -1)
        y = nn.functional.scaled_dot_product_attention(self.split(query), self.split(keys), self.split(values),
                                                       is_causal=causal)
        return y.transpose(1, 2).flatten(2)

    def forward(self, x, memory):
        y = self.norms[0](x)
        x = x + self.mix(self.attend(self.query(y), self.own(y), True))
        x = x + self.mix_cross(self.attend(self.cross(self.norms[1](x)), self.other(memory), False))
        return x + self.feed(self.norms[2](x))


@network
def decoder():
    return (Decoder(), (torch.randn(2, 7, 16), torch.randn(2, 5, 16)), ({0: "batch", 1: "length"}, {0: "batch", 1: "steps"}))


class ProjectedLstm(nn.Module):
    """Two streams, compared by the cosine of their last states."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 16, batch_first=True)
        self.project = nn.Linear(16, 8, bias=False)

    def vector(self, x):
        return nn.functional.normalize(self.project(self.rnn(x)[1][0][-1]), dim=1)

    def forward(self, first, second):
        return nn.functional.cosine_similarity(self.vector(first), self.vector(second))


@network
def siamese():
    return (ProjectedLstm(), (torch.randn(2, 8, 6), torch.randn(2, 6, 6)),
            ({0: "batch", 1: "length"}, {0: "batch", 1: "steps"}))


class ElmanTagger(nn.Module):
    """The oldest of them, with ReLU, in both directions."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = nn.RNN(8, 10, num_layers=2, nonlinearity="relu", bidirectional=True)
        self.out = nn.Linear(20, 4)

    def forward(self, words):
        return self.out(self.rnn(self.embed(words).transpose(0, 1))[0]).argmax(2)


@network
def elman_tagger():
    return ElmanTagger(), (torch.randint(0, 20, (2, 9)),), ({0: "batch", 1: "length"},)
