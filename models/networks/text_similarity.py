# SPDX-License-Identifier: MIT
"""How near each of some documents is to a query: M. Zhang et al., DeepCPU, USENIX ATC 2018, table 2 (TS): one
encoder, a bidirectional GRU of 512 units, reads all texts of 20 words, of 200 features each, and the cosine of its last
states compares them. A query comes with 33 documents."""
from networks.reader import Reader

WORDS, FEATURES, UNITS, LENGTH = 20000, 200, 512, 20
DOCUMENTS = 33


def text_similarity(batch=None):
    """batch: at most so many documents, whose number is known at run time; default: 33, always."""
    net = Reader("text_similarity")
    documents = net.dim("D", 1, batch, batch) if batch else DOCUMENTS
    words, encoder = net.embedding("words", WORDS, FEATURES), net.cell("encoder", "GRU", FEATURES, UNITS)

    def encoded(tokens):
        return net.joined_ends(net.read("GRU", net.embed(tokens, words), encoder)[1])

    query = encoded(net.tokens("query", WORDS, 1, LENGTH))
    texts = encoded(net.tokens("documents", WORDS, documents, LENGTH))
    product = net.call("MatMul", texts, net.call("Transpose", query, perm=[1, 0]))
    lengths = [net.call("ReduceL2", vectors, net.integers(1)) for vectors in (texts, query)]
    net.finish(net.shaped(net.call("Div", product, net.call("Mul", *lengths)), -1), "similarity")
    return net
