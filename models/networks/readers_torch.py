# SPDX-License-Identifier: MIT
"""The networks that read text, as PyTorch programs of their own: what a user would write, and what tests and
`tools/bench deepcpu` compare with.

    module = torch_reader("bidaf", READERS["bidaf"]())      with that network's weights
    begin, end = module(context, context_letters, question, question_letters)
"""
import torch
from torch import nn
from torch.nn import functional

GATES = {"GRU": [1, 0, 2], "LSTM": [0, 2, 3, 1]}  # places of PyTorch's r z n, i f g o in ONNX's order


class TextSimilarity(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20000, 200)
        self.encoder = nn.GRU(200, 512, bidirectional=True)

    def encoded(self, tokens):
        return self.encoder(self.words(tokens.T))[1].transpose(0, 1).flatten(1)

    def forward(self, query, documents):
        return functional.cosine_similarity(self.encoded(documents), self.encoded(query))


class AttentionSumReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20000, 200)
        self.context = nn.GRU(200, 256, bidirectional=True)
        self.question = nn.GRU(200, 256, bidirectional=True)

    def forward(self, context, question, candidates):
        places = self.context(self.words(context.T))[0].transpose(0, 1)
        asked = self.question(self.words(question.T))[1].transpose(0, 1).flatten(1)
        attention = torch.softmax((places @ asked[:, :, None])[:, :, 0], 1)
        there = candidates[:, :, None] == context[:, None, :]
        return (there * attention[:, None, :]).sum(2)


class Highway(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gate, self.layer = nn.Linear(features, features), nn.Linear(features, features)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.layer(x)) + (1 - gate) * x


def directions(layer, x):
    """[T,features] -> [T,200]"""
    return layer(x[:, None])[0][:, 0]


class Bidaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.letters = nn.Embedding(20000, 25), nn.Embedding(70, 8)
        self.filters = nn.Conv1d(8, 25, 5)
        self.highway0, self.highway1 = Highway(50), Highway(50)
        self.phrase = nn.LSTM(50, 100, bidirectional=True)
        self.flow = nn.ParameterDict({"both": torch.empty(1, 200), "context": torch.empty(200, 1),
                                      "question": torch.empty(200, 1)})
        self.modelling0 = nn.LSTM(800, 100, bidirectional=True)
        self.modelling1 = nn.LSTM(200, 100, bidirectional=True)
        self.output = nn.LSTM(1400, 100, bidirectional=True)
        self.begin, self.end = nn.Linear(1000, 1), nn.Linear(1000, 1)

    def read(self, words, letters):
        of_letters = torch.relu(self.filters(self.letters(letters).transpose(1, 2))).amax(2)
        features = torch.cat([of_letters, self.words(words)], 1)
        return directions(self.phrase, self.highway1(self.highway0(features)))

    def attended(self, context, question):
        scores = (context * self.flow["both"]) @ question.T + context @ self.flow["context"] + (question @ self.flow["question"]).T
        asked = torch.softmax(scores, 1) @ question
        asking = torch.softmax(scores.amax(1), 0) @ context
        return torch.cat([context, asked, context * asked, context * asking], 1)

    def forward(self, context, context_letters, question, question_letters):
        flow = self.attended(self.read(context, context_letters), self.read(question, question_letters))
        modelled = directions(self.modelling1, directions(self.modelling0, flow))
        begin = torch.softmax(self.begin(torch.cat([flow, modelled], 1))[:, 0], 0)
        there = (begin @ modelled).expand_as(modelled)
        last = directions(self.output, torch.cat([flow, modelled, there, modelled * there], 1))
        return begin, torch.softmax(self.end(torch.cat([flow, last], 1))[:, 0], 0)


def recurrent_weights(layer, net, name):
    """PyTorch's name -> array, gates in PyTorch's order."""
    order, found = GATES[layer.mode], {}
    for direction, suffix in enumerate(("_l0", "_l0_reverse")):
        weights = [net.arrays[f"{name}.{part}"][direction] for part in "WR"]
        biases = net.arrays[f"{name}.B"][direction].reshape(2, -1)
        for torch_name, array in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), [*weights, *biases]):
            gates = torch.from_numpy(array).chunk(len(order))
            found[f"{name}.{torch_name}{suffix}"] = torch.cat([gates[place] for place in order])
    return found


def weights_of(module, net):
    """Those of the network, by the module's names."""
    found = {}
    for name, part in module.named_modules():
        if isinstance(part, nn.RNNBase):
            found |= recurrent_weights(part, net, name)
        elif isinstance(part, nn.Embedding):
            found[f"{name}.weight"] = torch.from_numpy(net.arrays[name])
        elif isinstance(part, (nn.Linear, nn.Conv1d)):
            weight = torch.from_numpy(net.arrays[f"{name}.weight"])
            found[f"{name}.weight"] = weight.T if isinstance(part, nn.Linear) else weight
            found[f"{name}.bias"] = torch.from_numpy(net.arrays[f"{name}.bias"])
        elif isinstance(part, nn.ParameterDict):
            found |= {f"{name}.{key}": torch.from_numpy(net.arrays[f"{name}.{key}"]) for key in part}
    return found


MODULES = {"text_similarity": TextSimilarity, "attention_sum_reader": AttentionSumReader, "bidaf": Bidaf}


def torch_reader(name, net):
    module = MODULES[name]().eval()
    module.load_state_dict(weights_of(module, net))
    return module
