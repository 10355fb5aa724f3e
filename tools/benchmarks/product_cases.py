# SPDX-License-Identifier: MIT
"""The matrix products, and the networks that mostly consist of them, with the maximum ratio of rnncc's time to ONNX
Runtime's, or the least share of the multiply-adds' peak.

Field letters: M, N, K of a product; B sequences, T steps. A name describes a product, or a network of that many steps,
completely, so one that is not listed can be measured, too.
"""
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    network: str  # of product_networks.py
    title: str
    sizes: tuple  # (name, value): that function's arguments
    at_most: float = None  # maximum of rnncc's median over ONNX Runtime's; None: no goal
    at_least: float = None  # minimum share of the peak of the threads that take part; None: no goal

    @property
    def quick(self):
        return self.name in QUICK


NETWORKS = {"encoder": "Transformer encoder", "decoder": "attention decoder", "bilstm": "2 BiLSTM layers",
            "conformer": "conformer block"}
PRODUCTS = {"matmul": "product of two inputs", "linear": "product with weights"}
PEAK_SHARE, NETWORK_RATIO = 0.85, 0.8
PRODUCT = re.compile(r"(matmul|linear)_([1-9]\d*)x([1-9]\d*)x([1-9]\d*)")
NETWORK = re.compile(r"(encoder|decoder|bilstm|conformer)_t([1-9]\d*)_b([1-9]\d*)")


def case_named(name):
    """The case of that name; None if the name describes no case."""
    found = PRODUCT.fullmatch(name)
    if found:
        M, N, K = map(int, found.groups()[1:])
        least = PEAK_SHARE if min(M, N, K) >= 64 else None
        return Case(name, found[1], f"{PRODUCTS[found[1]]}, {M} x {N} x {K}", (("M", M), ("N", N), ("K", K)),
                    at_least=least)
    found = NETWORK.fullmatch(name)
    if not found:
        return None
    T, B = int(found[2]), int(found[3])
    return Case(name, found[1], f"{NETWORKS[found[1]]}, T={T} B={B}", (("T", T), ("B", B)), at_most=NETWORK_RATIO)


CASES = [case_named(name) for name in (
    *(f"{kind}_{n}x{n}x{n}" for kind in PRODUCTS for n in (64, 128, 256, 512)),
    "linear_256x1024x256", "linear_256x256x1024", "linear_17x100x300",
    *(f"encoder_t{T}_b1" for T in (64, 128, 256, 512)),
    "bilstm_t400_b8", "decoder_t32_b8", "conformer_t200_b1")]
QUICK = ["linear_64x64x64", "linear_256x256x256", "encoder_t128_b1", "decoder_t32_b8"]
