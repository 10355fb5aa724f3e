# SPDX-License-Identifier: MIT
"""Where in a text the answer to a question begins and ends: M. Seo et al., Bidirectional Attention Flow for Machine
Comprehension, ICLR 2017, in the sizes of DeepCPU (M. Zhang et al., USENIX ATC 2018, table 2): a text of 100 words and a
question of 15, 50 features a word, of which here a convolution over letters makes half; LSTMs of 100 units a direction. The
input of the last LSTM, 1400 features, is that of the authors' program: it sees where the answer begins."""
from networks.reader import Reader

WORDS, LETTERS, LETTER_FEATURES, WORD_LETTERS, WIDTH = 20000, 70, 8, 16, 5
FEATURES, UNITS = 50, 100
HALF, BOTH = FEATURES // 2, 2 * UNITS
CONTEXT, QUESTION, HIGHWAYS = 100, 15, 2


class PhraseReader:
    """Words and their letters, [T] and [T,16] numbers, as [T,200], by the same weights for both texts."""

    def __init__(self, net):
        self.net = net
        self.words, self.letters = net.embedding("words", WORDS, HALF), net.embedding("letters", LETTERS, LETTER_FEATURES)
        scale = (LETTER_FEATURES * WIDTH) ** -0.5
        self.filters = [net.uniform("filters.weight", scale, HALF, LETTER_FEATURES, WIDTH),
                        net.uniform("filters.bias", scale, HALF)]
        self.highways = [[net.linear(f"highway{number}.{part}", FEATURES, FEATURES) for part in ("gate", "layer")]
                         for number in range(HIGHWAYS)]
        self.phrase = net.cell("phrase", "LSTM", FEATURES, UNITS)

    def embed(self, words, letters):
        net = self.net
        spelt = net.call("Transpose", net.call("Gather", self.letters, letters), perm=[0, 2, 1])
        found = net.call("Relu", net.call("Conv", spelt, *self.filters, kernel_shape=[WIDTH]))
        return net.call("Concat", net.call("ReduceMax", found, net.integers(2), keepdims=0),
                        net.call("Gather", self.words, words), axis=1)

    def highway(self, x, gate, layer):
        """Part of a layer's result, and x for the rest (R. Srivastava et al., Highway Networks, 2015)."""
        net = self.net
        open_part, result = net.call("Sigmoid", net.dense(x, gate)), net.call("Relu", net.dense(x, layer))
        return net.call("Add", net.call("Mul", open_part, net.call("Sub", result, x)), x)

    def __call__(self, words, letters):
        x = self.embed(words, letters)
        for gate, layer in self.highways:
            x = self.highway(x, gate, layer)
        return lstm(self.net, self.phrase, x)


def lstm(net, cell, x):
    """[T,features] as [T,200]."""
    steps = net.read("LSTM", net.call("Unsqueeze", x, net.integers(1)), cell)[0]
    return net.call("Squeeze", net.joined(steps), net.integers(1))


def attention_flow(net, context, question):
    """[T,200] and [J,200] as [T,800]: the context, what of the question each word attends to, products of both, and those
    with the context that the question attends to."""
    scale = 1  # some scores are clearly higher than others
    both = net.call("Mul", context, net.uniform("flow.both", scale, 1, BOTH))
    of_question = net.call("MatMul", question, net.uniform("flow.question", scale, BOTH, 1))
    scores = net.call("Add", net.call("MatMul", both, net.call("Transpose", question, perm=[1, 0])),
                      net.call("MatMul", context, net.uniform("flow.context", scale, BOTH, 1)))
    scores = net.call("Add", scores, net.call("Transpose", of_question, perm=[1, 0]))  # [T,J]
    attended = net.call("MatMul", net.call("Softmax", scores, axis=1), question)
    most = net.call("Softmax", net.call("ReduceMax", scores, net.integers(1)), axis=0)  # [T,1]
    attending = net.call("MatMul", net.call("Transpose", most, perm=[1, 0]), context)  # [1,200]
    return net.call("Concat", context, attended, net.call("Mul", context, attended),
                    net.call("Mul", context, attending), axis=1)


def place(net, name, *parts):
    """The probability of each word, [T,1]."""
    return net.call("Softmax", net.dense(net.call("Concat", *parts, axis=1), net.linear(name, 5 * BOTH, 1, scale=3)), axis=0)


def bidaf():
    net = Reader("bidaf")
    reader = PhraseReader(net)
    context, question = (
        reader(net.tokens(name, WORDS, length), net.tokens(f"{name}_letters", LETTERS, length, WORD_LETTERS))
        for name, length in (("context", CONTEXT), ("question", QUESTION)))
    flow = attention_flow(net, context, question)
    modelled = lstm(net, net.cell("modelling0", "LSTM", 4 * BOTH, UNITS), flow)
    modelled = lstm(net, net.cell("modelling1", "LSTM", BOTH, UNITS), modelled)
    begin = place(net, "begin", flow, modelled)
    beginning = net.call("MatMul", net.call("Transpose", begin, perm=[1, 0]), modelled)  # [1,200]
    every = net.call("Expand", beginning, net.integers(CONTEXT, BOTH))
    last = net.call("Concat", flow, modelled, every, net.call("Mul", modelled, beginning), axis=1)
    end = place(net, "end", flow, lstm(net, net.cell("output", "LSTM", 7 * BOTH, UNITS), last))
    for name, value in (("begin", begin), ("end", end)):
        net.finish(net.shaped(value, -1), name)
    return net
