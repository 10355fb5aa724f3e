# SPDX-License-Identifier: MIT
"""The recurrent cases, and for each the maximum ratio of rnncc's time to the best peer's.

Field letters: T steps, B sequences, I inputs, H units. In all cases I = H. A name describes its case completely, so a
case that is not listed can be measured, too.
"""
import re
from dataclasses import dataclass

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
F32 = 4  # bytes


@dataclass(frozen=True)
class Case:
    op: str
    H: int
    at_most: float = None  # maximum of rnncc's median over the best peer's on AVX-512; None: no goal
    T: int = 100
    B: int = 1
    layers: int = 1
    bidirectional: bool = False

    @property
    def name(self):
        parts = [self.op.lower(), str(self.H), "bidirectional" if self.bidirectional else "",
                 f"{self.layers}layers" if self.layers > 1 else "", f"t{self.T}" if self.T != 100 else "",
                 f"b{self.B}" if self.B != 1 else ""]
        return "_".join(filter(None, parts))

    def goal(self, isa):
        """at_most on an instruction set."""
        return OF_ISA.get(isa, {}).get(self.name, self.at_most)

    @property
    def title(self):
        how = " bidirectional" if self.bidirectional else f", {self.layers} layers" if self.layers > 1 else ""
        return f"{self.op} {self.H}{how}, T={self.T} B={self.B}"

    @property
    def D(self):
        return 2 if self.bidirectional else 1

    @property
    def streaming(self):
        """One step in each call: the caller passes the state and gets the new one. Longer sequences start from zero."""
        return self.T == 1

    @property
    def quick(self):
        return self.name in QUICK

    # of one layer; all layers are alike, as I = H

    @property
    def input_weight_bytes(self):
        return F32 * self.D * GATES[self.op] * self.H * self.H

    @property
    def recurrent_weight_bytes(self):
        return F32 * self.D * GATES[self.op] * self.H * self.H

    @property
    def weight_bytes(self):
        """Bytes of the weights of all layers, with biases: any implementation must hold them."""
        bias = F32 * self.D * 2 * GATES[self.op] * self.H
        return self.layers * (self.input_weight_bytes + self.recurrent_weight_bytes + bias)


def pairs(H, lstm, gru, **sizes):
    return [Case("LSTM", H, lstm, **sizes), Case("GRU", H, gru, **sizes)]


CASES = [
    *pairs(64, 0.55, 0.45),
    *pairs(128, 0.5, 0.45),
    *pairs(200, 0.53, 0.43),
    *pairs(256, 0.58, 0.45),
    *pairs(512, 0.67, 0.66),
    *pairs(1024, 0.86, 0.82),
    *pairs(64, 0.72, 0.45, B=10),
    *pairs(256, 0.85, 0.6, B=10),
    *pairs(1024, 0.8, 0.85, B=10),
    Case("LSTM", 256, 0.53, bidirectional=True),
    Case("LSTM", 256, 0.62, layers=3),
    *pairs(256, 0.36, 0.33, T=1),
    *pairs(1024, 0.86, 0.82, T=1),
    *pairs(800, 0.82, 0.78, T=300, B=20),
    Case("RNN", 256, 0.55),
]
# Where it is not that on AVX-512.
OF_ISA = {"avx2": {
    "lstm_64": 0.5, "lstm_128": 0.65, "lstm_200": 0.65, "lstm_256": 0.65, "lstm_512": 0.8,
    "lstm_1024": 0.8, "lstm_256_b10": 0.65, "gru_256_b10": 0.65, "lstm_1024_b10": 0.75, "gru_1024_b10": 0.75,
    "gru_800_t300_b20": 0.8}}
LISTED = {case.name: case for case in CASES}
QUICK = ["lstm_64", "lstm_256", "gru_256", "lstm_1024", "lstm_256_b10", "lstm_256_t1"]
NAME = re.compile(r"(lstm|gru|rnn)_(\d+)(_bidirectional|_\d+layers)?(_t\d+)?(_b\d+)?")


def case_named(name):
    """The case of that name, listed or not; None if the name describes no case."""
    found = NAME.fullmatch(name)
    if not found or name in LISTED:
        return LISTED.get(name)
    op, H, how, T, B = found.groups()
    how = {"bidirectional": True} if how == "_bidirectional" else {"layers": int(how[1:-6])} if how else {}
    case = Case(op.upper(), int(H), T=int(T[2:]) if T else 100, B=int(B[2:]) if B else 1, **how)
    return case if min(case.H, case.T, case.B, case.layers) > 0 and case.name == name else None
