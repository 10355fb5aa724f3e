# SPDX-License-Identifier: MIT
"""The cases of `tools/bench lowp`: layers and networks of the other comparisons, in low precision, and what each is to
reach.

A name is that of `tools/bench rnn`, `cnn` or `products`. With `_dynamic` at its end, the scales of a network's
activations are of each run, as those of recurrent layers always are; else they are known when the model is quantised.
"""
from dataclasses import dataclass

from benchmarks import cases, cnn_cases, product_cases


@dataclass(frozen=True)
class Goal:
    """The median of `who` is to be at most this part of that of `of`. BEST: of the best peer."""
    who: str
    of: str
    at_most: float


BEST = "best peer"
KINDS = {cases.Case: "recurrent", cnn_cases.Case: "image", product_cases.Case: "product"}
DIES = {"densenet121"}  # OpenVINO 2026.4 does, of its quantised concatenations
WEIGHTS = ("bf16_weights", "int8_weights")  # rnncc's, of which only the weights are of another type: recurrent layers
PRODUCTS = "bf16_products"  # rnncc's with what it multiplies rounded to bf16: where it multiplies matrices in registers
CONTESTANTS = ("rnncc", *WEIGHTS, PRODUCTS, "f32", "onnxruntime_int8", "onnxruntime", "openvino_int8", "openvino_bf16")


@dataclass(frozen=True)
class Case:
    base: object  # the case of the other comparison
    dynamic: bool

    @property
    def kind(self):
        return KINDS[type(self.base)]

    @property
    def marked(self):
        """Recurrent layers have no other form."""
        return self.dynamic and self.kind != "recurrent"

    @property
    def name(self):
        return f"{self.base.name}_dynamic" if self.marked else self.base.name

    @property
    def title(self):
        return f"{self.base.title}, dynamic" if self.marked else self.base.title

    @property
    def quantised(self):
        """Whether ONNX Runtime's quantisers can. They have no GRU, so its f32 is the peer."""
        return self.kind != "recurrent" or self.base.op == "LSTM"

    @property
    def contestants(self):
        """OpenVINO computes what has dynamic scales in f32."""
        left = ["onnxruntime" if self.quantised else "onnxruntime_int8"]
        left += ["openvino_int8"] * (self.dynamic or self.name in DIES) + [*WEIGHTS] * (self.kind != "recurrent")
        return [name for name in CONTESTANTS if name not in left]

    @property
    def without(self):
        return [name for name in CONTESTANTS if name not in self.contestants]

    @property
    def quick(self):
        return self.name in QUICK

    def goals(self, isa):
        return GOALS[self.kind](self.base, isa)


# What is to be reached. AVX-512 has VNNI where the CPU does; AVX2 is without.

EACH_IMAGE, ALL_IMAGES = {"avx512": 0.85, "amx": 0.85}, {"avx512": 0.75, "amx": 0.75, "avx2": 1.0}  # of the best peer; ALL: the geometric mean


def recurrent_goals(base, isa):
    own = {(1, 1024): 0.35, (10, 1024): 0.5, (100, 512): 0.45, (100, 1024): 0.45}.get(
        (base.B if base.B > 1 else base.T, base.H))
    peer = Goal("rnncc", "onnxruntime_int8", 0.6) if base.op == "LSTM" else Goal("rnncc", "onnxruntime", 0.3)
    peer = [peer] if base.T == 100 and base.B == 1 else []
    weights = {256: 0.75, 512: 0.62, 1024: 0.62}.get(base.H) if base.T == 100 and base.B == 1 else None
    return (peer + ([Goal("rnncc", "f32", own)] if own else []) +
            ([Goal("bf16_weights", "f32", weights)] if weights else []))


def image_goals(base, isa):
    own = 0.8 if isa == "avx2" else 0.45 if base.network == "resnet50" else None
    found = [Goal("rnncc", BEST, EACH_IMAGE[isa])] if isa in EACH_IMAGE else []
    return found + ([Goal("rnncc", "f32", own)] if own else [])


GOALS = {"recurrent": recurrent_goals, "image": image_goals, "product": lambda base, isa: []}


# The list


def case_named(name):
    """The case of that name; None if the name describes no case."""
    if name.endswith("_dynamic"):
        base = product_cases.case_named(name.removesuffix("_dynamic"))
        return base and Case(base, dynamic=True)
    base = cases.case_named(name)
    if base:
        return Case(base, dynamic=True) if base.op in ("LSTM", "GRU") else None
    base = cnn_cases.case_named(name) or product_cases.case_named(name)
    return base and Case(base, dynamic=False)


NAMES = (*(f"{op}_{sizes}" for sizes in ("256", "512", "1024", "1024_t1", "1024_b10") for op in ("lstm", "gru")),
         "resnet18", "resnet50", "resnet101", "vgg16", "densenet121", "inception_v3", "mobilenet_v2", "squeezenet",
         "ssd_resnet50", "encoder_t128_b1", "encoder_t128_b1_dynamic")
QUICK = ("lstm_256", "lstm_1024", "gru_512", "resnet50", "mobilenet_v2", "encoder_t128_b1")
CASES = [case_named(name) for name in NAMES]
