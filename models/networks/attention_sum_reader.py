# SPDX-License-Identifier: MIT
"""Which of some words answers a question on a text: R. Kadlec et al., Text Understanding with the Attention Sum Reader
Network, ACL 2016, in the sizes of DeepCPU (M. Zhang et al., USENIX ATC 2018, table 2, ASR): bidirectional GRUs of 256 units
read 10 texts of 100 words and questions of 20, of 200 features a word. A candidate's probability is the attention to all
places where it stands."""
from networks.reader import Reader

WORDS, FEATURES, UNITS, QUESTION, CONTEXT, CANDIDATES = 20000, 200, 256, 20, 100, 10
TEXTS = 10


def attention_sum_reader(batch=None):
    """batch: at most so many texts, each with a question, whose number is known at run time; default: 10, always."""
    net = Reader("attention_sum_reader")
    texts = net.dim("N", 1, batch, batch) if batch else TEXTS
    words = net.embedding("words", WORDS, FEATURES)
    inputs = {name: net.tokens(name, WORDS, texts, length)
              for name, length in (("context", CONTEXT), ("question", QUESTION))}
    candidates = net.choices("candidates", "context", texts, CANDIDATES)

    def read(name):
        return net.read("GRU", net.embed(inputs[name], words), net.cell(name, "GRU", FEATURES, UNITS))

    places = net.shaped(net.call("Transpose", read("context")[0], perm=[2, 0, 1, 3]), 0, 0, -1)  # [N,T,2*units]
    question = net.call("Unsqueeze", net.joined_ends(read("question")[1]), net.integers(2))
    attention = net.call("Softmax", net.call("MatMul", places, question), axis=1)
    there = net.call("Equal", net.call("Unsqueeze", candidates, net.integers(2)),
                     net.call("Unsqueeze", inputs["context"], net.integers(1)))  # [N,candidates,T]
    answers = net.call("MatMul", net.call("Cast", there, to="f32"), attention)
    net.finish(net.call("Squeeze", answers, net.integers(2)), "answers")
    return net
