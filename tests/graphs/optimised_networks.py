# SPDX-License-Identifier: MIT
"""Small networks in the forms that ONNX Runtime's optimiser and quantiser know: NETWORKS[name]() -> model. Their inputs are
floats, but for `ids`, which are words."""
import numpy
from onnx import TensorProto, helper

from support.onnx_files import F32, I64, model_of

NETWORKS = {}
WORDS = 11


def network(build):
    NETWORKS[build.__name__] = build
    return build


class Writer:
    """Nodes one after the other. A word is a value, anything else a constant."""

    def __init__(self, seed):
        self.rng, self.nodes, self.constants = numpy.random.default_rng(seed), [], {}

    def constant(self, value):
        if isinstance(value, str):
            return value
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy.asarray(value, None if isinstance(value, numpy.ndarray) else
                                             numpy.float32 if isinstance(value, float) else numpy.int64)
        return name

    def __call__(self, op, *inputs, outputs=None, **attributes):
        name = f"{op}_{len(self.nodes)}"
        results = outputs or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, [self.constant(x) for x in inputs], results, name, **attributes))
        return results[0]

    def weights(self, *shape, size=0.5):
        return (size * self.rng.standard_normal(shape)).astype(numpy.float32)

    def linear(self, x, inner, outer, bias=True):
        y = self("MatMul", x, self.weights(inner, outer, size=inner**-0.5))
        return self("Add", y, self.weights(outer)) if bias else y

    def norm(self, x, width):
        scale, shift = 1 + self.weights(width, size=0.1), self.weights(width, size=0.1)
        return self("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def split(self, x, heads):
        return self("Transpose", self("Reshape", x, [0, 0, heads, -1]), perm=[0, 2, 1, 3])

    def attention(self, x, width, heads, added=None):
        q, k, v = (self.split(self.linear(x, width, width), heads) for _ in range(3))
        scores = self("Div", self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2])), float(width // heads) ** 0.5)
        if added is not None:
            scores = self("Add", scores, added)
        y = self("MatMul", self("Softmax", scores, axis=-1), v)
        y = self("Reshape", self("Transpose", y, perm=[0, 2, 1, 3]), [0, 0, width])
        return self.linear(y, width, width)

    def gelu(self, x):
        return self("Mul", self("Mul", x, self("Add", self("Erf", self("Div", x, 2**0.5)), 1.0)), 0.5)

    def fast_gelu(self, x):
        cube = self("Add", x, self("Mul", self("Pow", x, 3.0), 0.044715))
        return self("Mul", self("Mul", x, 0.5), self("Add", self("Tanh", self("Mul", cube, (2 / numpy.pi) ** 0.5)), 1.0))

    def conv(self, x, inner, outer, kernel=3, norm=True, **attributes):
        group = attributes.get("group", 1)
        weights = self.weights(outer, inner // group, kernel, kernel, size=(inner // group * kernel**2) ** -0.5)
        y = self("Conv", x, weights, self.weights(outer, size=0.1), pads=[kernel // 2] * 4, **attributes)
        if not norm:
            return y
        return self("BatchNormalization", y, 1 + self.weights(outer, size=0.1), self.weights(outer, size=0.1),
                    self.weights(outer, size=0.1), numpy.abs(self.weights(outer)) + numpy.float32(0.5))

    def recurrent(self, op, x, inner, hidden, directions=1, start=None):
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
        w, r = (self.weights(directions, gates * hidden, n, size=n**-0.5) for n in (inner, hidden))
        states = [] if start is None else ["", start]
        return self(op, x, w, r, self.weights(directions, 2 * gates * hidden, size=0.1), *states, hidden_size=hidden,
                    direction="bidirectional" if directions == 2 else "forward")

    def model(self, output, **inputs):
        self.nodes.append(helper.make_node("Identity", [output], ["y"]))
        kinds = {name: (I64 if name == "ids" else F32, shape) for name, shape in inputs.items()}
        return model_of(self.nodes, kinds, {"y": (F32, None)}, self.constants)


def layer(write, x, width, heads, activation, added=None):
    x = write.norm(write("Add", x, write.attention(x, width, heads, added)), width)
    y = write.linear(activation(write.linear(x, width, 2 * width)), 2 * width, width)
    return write.norm(write("Add", x, y), width)


def words(write, width, length):
    return write("Add", write("Gather", write.weights(WORDS, width), "ids", axis=0), write.weights(1, length, width))


@network
def encoder():
    """BERT's kind: embeddings, attention, Gelu by Erf."""
    write = Writer(1)
    x = write.norm(words(write, 16, 6), 16)
    for _ in range(2):
        x = layer(write, x, 16, 4, write.gelu)
    return write.model(write("Tanh", write.linear(write("Gather", x, 0, axis=1), 16, 8)), ids=[2, 6])


@network
def masked_encoder():
    write = Writer(2)
    mask = write("Mul", write("Sub", 1.0, write("Unsqueeze", "mask", [1, 2])), -10000.0)
    x = layer(write, write.linear("x", 12, 16), 16, 2, write.fast_gelu, mask)
    return write.model(x, x=[2, 5, 12], mask=[2, 5])


@network
def decoder():
    """GPT-2's kind: normalised before each part, causal, Gelu by Tanh."""
    write = Writer(3)
    x, length, width = words(write, 16, 6), 6, 16
    causal = numpy.where(numpy.tri(length), 0, -10000.0).astype(numpy.float32)
    for _ in range(2):
        x = write("Add", x, write.attention(write.norm(x, width), width, 4, causal))
        y = write.fast_gelu(write.linear(write.norm(x, width), width, 4 * width))
        x = write("Add", x, write.linear(y, 4 * width, width))
    return write.model(write.linear(write.norm(x, width), width, WORDS, bias=False), ids=[2, 6])


@network
def rms_layers():
    """Llama's kind: RMS normalisation written out, SiLU gates."""
    write = Writer(4)
    x = words(write, 16, 6)
    for _ in range(2):
        root = write("Sqrt", write("Add", write("ReduceMean", write("Pow", x, 2.0), axes=[-1]), 1e-6))
        y = write("Mul", write("Div", x, root), 1 + write.weights(16, size=0.1))
        gate, up = (write.linear(y, 16, 32, bias=False) for _ in range(2))
        y = write("Mul", write("Mul", gate, write("Sigmoid", gate)), up)
        x = write("Add", x, write.linear(y, 32, 16, bias=False))
    return write.model(x, ids=[2, 6])


@network
def conformer():
    """Half a feed-forward, attention, a convolution along time with a gate, a GRU."""
    write = Writer(5)
    x, width = "x", 16
    y = write.linear(write.norm(x, width), width, 32)
    y = write.linear(write("Mul", y, write("Sigmoid", y)), 32, width)
    x = write("Add", x, write("Mul", y, 0.5))
    x = write("Add", x, write.attention(write.norm(x, width), width, 4))
    y = write("Transpose", write.norm(x, width), perm=[0, 2, 1])
    y = write("Conv", y, write.weights(2 * width, width, 1, size=0.25), write.weights(2 * width))
    halves = [f"half{k}" for k in range(2)]
    write("Split", y, [width, width], outputs=halves, axis=1)
    y = write("Mul", halves[0], write("Sigmoid", halves[1]))
    y = write("Conv", y, write.weights(width, 1, 5), write.weights(width), group=width, pads=[2, 2])
    x = write("Add", x, write("Transpose", y, perm=[0, 2, 1]))
    y = write.recurrent("GRU", write("Transpose", x, perm=[1, 0, 2]), width, 12)
    return write.model(write("Squeeze", y, [1]), x=[2, 9, 16])


@network
def residual():
    """ResNet's kind, with a concatenation, means and a product at the end."""
    write = Writer(6)
    x = write("MaxPool", write("Relu", write.conv("x", 3, 16)), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = write.conv(write("Relu", write.conv(x, 16, 16)), 16, 16)
    x = write("Relu", write("Add", x, y))
    x = write("Concat", x, write("LeakyRelu", write.conv(x, 16, 8, kernel=1), alpha=0.1), axis=1)
    x = write("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = write("Flatten", write("GlobalAveragePool", x))
    return write.model(write("Gemm", x, write.weights(10, 24), write.weights(10), transB=1), x=[2, 3, 18, 22])


@network
def depthwise():
    """MobileNet's kind: depthwise convolutions, Clip, HardSwish, a squeeze and excitation."""
    write = Writer(7)
    x = write("Clip", write.conv("x", 3, 16, strides=[2, 2]), 0.0, 6.0)
    y = write.conv(x, 16, 16, group=16)
    y = write("Mul", y, write("Div", write("Clip", write("Add", y, 3.0), 0.0, 6.0), 6.0))
    scale = write.conv(write("GlobalAveragePool", y), 16, 4, kernel=1, norm=False)
    scale = write("Sigmoid", write.conv(write("Relu", scale), 4, 16, kernel=1, norm=False))
    y = write.conv(write("Mul", y, scale), 16, 16, kernel=1)
    x = write("Add", x, y)
    return write.model(write("Softmax", write("Flatten", write("GlobalAveragePool", x))), x=[2, 3, 17, 20])


@network
def upsampled():
    """U-Net's kind: down, up by the nearest pixel, and a concatenation of both."""
    write = Writer(8)
    x = write("Relu", write.conv("x", 2, 8, norm=False))
    y = write("Relu", write.conv(write("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 8, 8))
    y = write("Resize", y, "", numpy.float32([1, 1, 2, 2]), mode="nearest", nearest_mode="floor",
              coordinate_transformation_mode="asymmetric")
    y = write("Tanh", write.conv(write("Concat", x, y, axis=1), 16, 8))
    return write.model(write("Sigmoid", write.conv(y, 8, 1, kernel=1)), x=[1, 2, 16, 12])


@network
def recurrent():
    """Layers of each kind, in both directions, and a product."""
    write = Writer(9)
    x = write.recurrent("LSTM", "x", 7, 12, directions=2)
    x = write("Reshape", write("Transpose", x, perm=[0, 2, 1, 3]), [0, 0, -1])
    x = write("Squeeze", write.recurrent("GRU", x, 24, 10), [1])
    x = write("Squeeze", write.recurrent("LSTM", x, 10, 8, start="h0"), [1])
    return write.model(write("Relu", write.linear(x, 8, 5)), x=[6, 2, 7], h0=[1, 2, 8])


@network
def scaled_products():
    """Products of turned and scaled matrices, which become one operator."""
    write = Writer(10)
    y = write("MatMul", "x", write("Transpose", "x", perm=[0, 2, 1]))
    y = write("Mul", y, 0.25)
    y = write("MatMul", write("Transpose", y, perm=[0, 2, 1]), "x")
    y = write("Gemm", write("Reshape", y, [-1, 8]), write.weights(8, 6), write.weights(6))
    return write.model(write("LeakyRelu", y, alpha=0.2), x=[2, 5, 8])


def feeds_of(model, seed=1):
    rng = numpy.random.default_rng(seed)

    def feed(value):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            return rng.integers(0, WORDS, shape)
        if value.name == "mask":
            return (numpy.arange(shape[1]) < numpy.array([[shape[1]], [3]])).astype(numpy.float32)
        return rng.standard_normal(shape).astype(numpy.float32)

    return {value.name: feed(value) for value in model.graph.input}
