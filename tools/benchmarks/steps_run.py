# SPDX-License-Identifier: MIT
"""tools/bench steps: forward and backward of losses and of convolutional networks, beside PyTorch, in turns."""
import os
import statistics
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

from benchmarks.arguments import case_parser, parse_cases, positive
from benchmarks.environment import Missing, exit_code
from benchmarks.train_run import TOLERANCE, OwnRunner, add_clock, turns_of
from benchmarks.turns import ratios_of

Case = namedtuple("Case", "title build flops")  # flops: of the products of both ways; 0: there are none to speak of
CASES = {}


class Network:
    """A model to train, and beside it the same in PyTorch: a function of the weights and the labels."""

    def __init__(self, name):
        import numpy
        from support.model_builder import Model
        self.model, self.weights, self.rng, self.numpy = Model(name), {}, numpy.random.default_rng(3), numpy

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        size = self.numpy.prod(shape[1:]) if len(shape) > 1 else 4.0
        self.weights[name] = (self.rng.standard_normal(shape) / size**0.5).astype("f")
        return self.model.constant(self.weights[name], name)

    def labels(self, count, *shape):
        self.feeds = {"labels": self.rng.integers(0, count, shape)}
        return self.model.input("labels", "i64", list(shape))

    def call(self, op, *inputs, **attributes):
        return self.model.node(op, list(inputs), **attributes)


def case(title, flops=0):
    """Registers a function that adds a loss to a Network, and returns it and the PyTorch function."""
    def register(build):
        CASES[build.__name__] = Case(title, build, flops)
        return build
    return register


# Losses


def cross_entropy(net, *shape):
    import torch
    scores = net.weight(*shape)
    return (net.call("SoftmaxCrossEntropyLoss", scores, net.labels(shape[1], shape[0])),
            lambda labels, scores: torch.nn.functional.cross_entropy(scores, labels))


@case("cross entropy, 64 x 50257")
def cross_entropy_64x50257(net):
    return cross_entropy(net, 64, 50257)


@case("cross entropy, 32 x 1000")
def cross_entropy_32x1000(net):
    return cross_entropy(net, 32, 1000)


@case("cross entropy, 1600 x 64")
def cross_entropy_1600x64(net):
    return cross_entropy(net, 1600, 64)


# Convolutional networks


def products_of(batch, *layers):
    """layers: (channels, kernels, points of the window, pixels of the output). The weights' gradient of the first, and no
    more of it, is computed."""
    return sum(2 * batch * c * k * points * pixels * (3 if layer else 2) for layer, (c, k, points, pixels) in enumerate(layers))


def convolution(net, x, channels, kernels, size=3, group=1, **attributes):
    return net.call("Conv", x, net.weight(kernels, channels // group, size, size), net.weight(kernels), group=group,
                    pads=[size // 2] * 4, **attributes)


def classified(net, x, features, classes, batch):
    """The mean of each plane, a dense layer and the loss."""
    x = net.call("Flatten", net.call("GlobalAveragePool", x))
    scores = net.call("Gemm", x, net.weight(classes, features), net.weight(classes), transB=1)
    return net.call("SoftmaxCrossEntropyLoss", scores, net.labels(classes, batch))


def images(net, *shape):
    net.images = net.rng.standard_normal(shape).astype("f")
    return net.model.constant(net.images)


def torch_classified(x, weight, bias, labels):
    import torch
    return torch.nn.functional.cross_entropy(x.mean((2, 3)) @ weight.T + bias, labels)


@case("images of 3 x 32 x 32, batch 32: 3x3 convolutions 3 to 32 to 64, pools, 64 to 64",
      products_of(32, (3, 32, 9, 1024), (32, 64, 9, 1024), (64, 64, 9, 256)))
def cnn_32(net):
    import torch
    functional = torch.nn.functional
    x = net.call("Relu", convolution(net, images(net, 32, 3, 32, 32), 3, 32))
    x = net.call("MaxPool", net.call("Relu", convolution(net, x, 32, 64)), kernel_shape=[2, 2], strides=[2, 2])
    x = net.call("Relu", convolution(net, x, 64, 64))
    pictures = torch.from_numpy(net.images)

    def loss(labels, w0, b0, w1, b1, w2, b2, w3, b3):
        x = torch.relu(functional.conv2d(pictures, w0, b0, padding=1))
        x = functional.max_pool2d(torch.relu(functional.conv2d(x, w1, b1, padding=1)), 2)
        return torch_classified(torch.relu(functional.conv2d(x, w2, b2, padding=1)), w3, b3, labels)
    return classified(net, x, 64, 10, 32), loss


@case("strided and depthwise, batch 16: 3x3 convolution 3 to 32, 3x3/2 32 to 64, depthwise 3x3, 1x1 64 to 128",
      products_of(16, (3, 32, 9, 1024), (32, 64, 9, 256), (1, 64, 9, 256), (64, 128, 1, 256)))
def cnn_strided(net):
    import torch
    functional = torch.nn.functional
    x = net.call("Relu", convolution(net, images(net, 16, 3, 32, 32), 3, 32))
    x = net.call("Relu", convolution(net, x, 32, 64, strides=[2, 2]))
    x = net.call("Relu", convolution(net, x, 64, 64, group=64))
    x = net.call("Relu", convolution(net, x, 64, 128, size=1))
    pictures = torch.from_numpy(net.images)

    def loss(labels, w0, b0, w1, b1, w2, b2, w3, b3, w4, b4):
        x = torch.relu(functional.conv2d(pictures, w0, b0, padding=1))
        x = torch.relu(functional.conv2d(x, w1, b1, stride=2, padding=1))
        x = torch.relu(functional.conv2d(x, w2, b2, padding=1, groups=64))
        return torch_classified(torch.relu(functional.conv2d(x, w3, b3)), w4, b4, labels)
    return classified(net, x, 128, 10, 16), loss


# Measuring


class Own(OwnRunner):
    def gradients(self):
        return self.trainer.gradients()


class Torch:
    """PyTorch's autograd."""

    def __init__(self, net, loss, threads):
        import torch
        self.torch, self.loss, self.threads = torch, loss, threads
        self.weights = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in net.weights.items()}
        self.labels = torch.from_numpy(net.feeds["labels"])
        self.optimizer = torch.optim.SGD(self.weights.values(), lr=1e-9)

    def both_ways(self):
        self.torch.set_num_threads(self.threads)
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.labels, *self.weights.values()).backward()

    def step(self):
        self.optimizer.step()

    def gradients(self):
        return {name: weight.grad.numpy() for name, weight in self.weights.items()}


def check(name, runners):
    for runner in runners.values():
        runner.both_ways()
    own, other = (runner.gradients() for runner in runners.values())
    for weight, due in other.items():
        error = float(abs(own[weight] - due).max()) / float(abs(due).max())
        if not error <= TOLERANCE:
            raise Missing(f"{name}: the gradient of {weight} differs from PyTorch's by {error:.1g} of its largest value")


def measured(name, given):
    net = Network(name)
    loss, of_torch = CASES[name].build(net)
    net.model.output(loss)
    trained = "--train=w*"
    with tempfile.TemporaryDirectory() as folder:
        runners = {"rnncc": Own(net.model, net.feeds, Path(folder), given.threads, given.threads, trained),
                   "torch": Torch(net, of_torch, given.threads)}
        check(name, runners)
        turns, gflops = turns_of(runners, given.threads, given)
    seconds = {who: turn.seconds for who, turn in turns.items()}
    return ({who: statistics.median(each) for who, each in seconds.items()}, ratios_of(seconds),
            CASES[name].flops / (1e9 * gflops * given.threads))


def line(name, seconds, ratios, limit):
    """limit: seconds of the products at the peak of all cores."""
    times = "".join(f"  {who} {1e6 * each:.0f} us" for who, each in seconds.items())
    part = f"  {100 * limit / seconds['rnncc']:.0f}% of the peak" if limit else ""
    return f"{name:24}{times}  of torch {ratios['torch']:.2f}{part}"


def parser():
    top = case_parser("steps", "Times forward and backward of losses and small convolutional networks in turns with "
                      "PyTorch's autograd. Gradients must agree to 1e-4.")
    add_clock(top)
    top.add_argument("--threads", type=positive(int), default=1, metavar="N", help="of both (1)")
    top.add_argument("--turns", type=positive(int), default=9, metavar="N", help="of each (9)")
    return top


def parse(words):
    return parse_cases(parser(), words, CASES)


def run(given):
    for name in given.names:
        print(line(name, *measured(name, given)), flush=True)
    return 0


def main(words):
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return exit_code(run, parse(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
