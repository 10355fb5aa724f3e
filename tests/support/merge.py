# SPDX-License-Identifier: MIT
"""Several models side by side in one, so that a test compiles once for many cases."""
from support.model_builder import Model


def merged(parts):
    """parts: (Model, feeds) pairs with inputs, constants, nodes and outputs. Names are prefixed with the part's number."""
    whole, all_feeds = Model(), {}
    for k, (part, feeds) in enumerate(parts):
        def renamed(name, k=k):
            return f"p{k}_{name}" if name else ""

        whole.dims |= part.dims
        for described in part.inputs:
            whole.input(renamed(described["name"]), described["dtype"], described["shape"])
        for name, array in part.arrays.items():
            whole.constant(array, renamed(name))
        for node in part.nodes:
            whole.node(node["op"], [renamed(name) for name in node["inputs"]],
                       [renamed(name) for name in node["outputs"]], **node["attributes"])
        whole.output(*[renamed(name) for name in part.outputs])
        all_feeds |= {renamed(name): array for name, array in feeds.items()}
    return whole, all_feeds
