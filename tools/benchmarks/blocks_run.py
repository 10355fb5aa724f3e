# SPDX-License-Identifier: MIT
"""tools/bench blocks: the blocks between the recurrent layers of networks that read text (DeepCPU, USENIX ATC 2018, section
6), each beside the same graph without the steps that make it one kernel, ONNX Runtime and PyTorch, in turns."""
import os
import statistics
import sys
import tempfile
import zlib
from collections import namedtuple
from pathlib import Path

from benchmarks.arguments import add_turns, case_parser, parse_cases
from benchmarks.environment import BUILD, PEERS, Missing, exit_code, output_of
from benchmarks.report import table
from benchmarks.turns import check_equal, ratios_of, rounds_of

RNNCC = BUILD / "compiler" / "rnncc"
STEPS = "fuse_attention,split_weighted_sums,products_by_vectors,fuse_epilogue,fuse_chains,fuse_reductions"
TITLES = {"rnncc": "rnncc", "unfused": "unfused", "onnxruntime": "ONNX Runtime", "torch": "PyTorch"}
Case = namedtuple("Case", "title build")
Row = namedtuple("Row", "case microseconds ratios")  # by contestant; of rnncc's to each other one's
CASES = {}


class Network:
    """A model, and beside it the same in PyTorch: each operation is added to both."""

    def __init__(self, name):
        import numpy
        from support.model_builder import Model
        self.model, self.feeds = Model(name), {}
        self.rng, self.numpy = numpy.random.default_rng(zlib.crc32(name.encode())), numpy

    def uniform(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype("f") * self.numpy.float32(shape[0] ** -0.5)

    def fed(self, *shape):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.rng.uniform(-1, 1, shape).astype("f")
        return self.model.input(name, "f32", list(shape))

    def tokens(self, count, *shape):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.rng.integers(0, count, shape)
        return self.model.input(name, "i64", list(shape))

    def weight(self, *shape):
        array = self.uniform(*shape)
        return self.model.constant(array), array

    def call(self, op, *inputs, **attributes):
        return self.model.node(op, list(inputs), **attributes)

    def axes(self, *axes):
        return self.model.constant(self.numpy.array(axes))

    def dense(self, x, features, outputs):
        """The value, and the same in PyTorch as a function of x."""
        (weight, w), (bias, b) = self.weight(features, outputs), self.weight(outputs)
        import torch
        return self.call("Add", self.call("MatMul", x, weight), bias), dense_of(*map(torch.from_numpy, (w, b)))


def dense_of(weight, bias):
    return lambda x: x @ weight + bias


def case(title):
    """Registers a function that adds a block to a Network, and returns its output and the PyTorch function of its inputs."""
    def register(build):
        CASES[build.__name__] = Case(title, build)
        return build
    return register


def highway(net, rows, features):
    x = net.fed(rows, features)
    (gate, gate_of), (layer, layer_of) = net.dense(x, features, features), net.dense(x, features, features)
    gate, layer = net.call("Sigmoid", gate), net.call("Relu", layer)
    y = net.call("Add", net.call("Mul", gate, net.call("Sub", layer, x)), x)

    def block(x):
        import torch
        gate = torch.sigmoid(gate_of(x))
        return gate * torch.relu(layer_of(x)) + (1 - gate) * x
    return y, block


@case("highway layer, 100 words of 100")
def highway_100(net):
    return highway(net, 100, 100)


@case("highway layer, one row of 256")
def highway_1(net):
    return highway(net, 1, 256)


@case("Relu and maximum over time, 100 steps of 512")
def maximum_over_time(net):
    import torch
    y = net.call("ReduceMax", net.call("Relu", net.fed(100, 512)), net.axes(0), keepdims=0)
    return y, lambda x: torch.relu(x).amax(0)


@case("perceptron, 4 rows, 256 to 256 to 64 to 1")
def perceptron(net):
    import torch
    y, layers = net.fed(4, 256), []
    for features, outputs in ((256, 256), (256, 64), (64, 1)):
        y, layer = net.dense(y, features, outputs)
        layers.append(layer)
        y = net.call("Relu", y) if outputs > 1 else y

    def block(x):
        for layer in layers[:-1]:
            x = torch.relu(layer(x))
        return layers[-1](x)
    return y, block


def additive(net, batch, queries, keys, units):
    import torch
    q, k = net.fed(batch, queries, 1, units), net.fed(batch, 1, keys, units)
    v, array = net.weight(units, 1)
    scores = net.call("Squeeze", net.call("MatMul", net.call("Tanh", net.call("Add", q, k)), v), net.axes(3))
    y = net.call("MatMul", net.call("Softmax", scores, axis=2), net.call("Squeeze", k, net.axes(1)))
    v = torch.from_numpy(array)
    return y, lambda q, k: torch.softmax((torch.tanh(q + k) @ v)[..., 0], 2) @ k[:, 0]


@case("additive attention, 1 query, 100 keys of 256, batch 8")
def additive_step(net):
    return additive(net, 8, 1, 100, 256)


@case("additive attention, 20 queries, 100 keys of 128, batch 4")
def additive_text(net):
    return additive(net, 4, 20, 100, 128)


def multiplicative(net, shape, keys, general=False):
    """shape: of the queries; K and V are the same."""
    import torch
    q, k = net.fed(*shape), net.fed(*shape[:-2], keys, shape[-1])
    asked, layer = net.dense(q, shape[-1], shape[-1]) if general else (q, lambda x: x)
    turn = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    scores = net.call("MatMul", asked, net.call("Transpose", k, perm=turn))
    y = net.call("MatMul", net.call("Softmax", scores, axis=-1), k)
    return y, lambda q, k: torch.softmax(layer(q) @ k.transpose(-1, -2), -1) @ k


@case("dot attention, 1 query, 100 keys of 512, batch 10")
def dot_step(net):
    return multiplicative(net, (10, 1, 512), 100)


@case("general attention, 1 query, 100 keys of 512, batch 10")
def general_step(net):
    return multiplicative(net, (10, 1, 512), 100, general=True)


@case("8 heads, 1 query, 128 keys of 64")
def heads_step(net):
    return multiplicative(net, (1, 8, 1, 64), 128)


@case("8 heads, 128 queries and keys of 64")
def heads_text(net):
    return multiplicative(net, (1, 8, 128, 64), 128)


@case("attention flow, 100 and 15 words of 200")
def attention_flow(net):
    import torch
    context, question = net.fed(1, 100, 200), net.fed(1, 15, 200)
    (of_context, a), (of_question, b), (of_both, c) = (net.weight(200, 1) for _ in range(3))
    both = net.call("Mul", context, net.call("Transpose", of_both, perm=[1, 0]))
    turned = net.call("Transpose", question, perm=[0, 2, 1])
    asked = net.call("Transpose", net.call("MatMul", question, of_question), perm=[0, 2, 1])
    scores = net.call("Add", net.call("Add", net.call("MatMul", both, turned), net.call("MatMul", context, of_context)), asked)
    attended = net.call("MatMul", net.call("Softmax", scores, axis=2), question)
    most = net.call("Softmax", net.call("ReduceMax", scores, net.axes(2)), axis=1)
    attending = net.call("MatMul", net.call("Transpose", most, perm=[0, 2, 1]), context)
    y = net.call("Concat", context, attended, net.call("Mul", context, attended), net.call("Mul", context, attending), axis=2)
    a, b, c = map(torch.from_numpy, (a, b, c))

    def block(h, u):
        scores = (h * c.T) @ u.transpose(1, 2) + h @ a + (u @ b).transpose(1, 2)
        attended = torch.softmax(scores, 2) @ u
        attending = torch.softmax(scores.amax(2, keepdim=True), 1).transpose(1, 2) @ h
        return torch.cat([h, attended, h * attended, h * attending], 2)
    return y, block


@case("attention sum, 10 texts of 100 words, 10 candidates")
def attention_sum(net):
    attention, tokens, candidates = net.fed(10, 100), net.tokens(50, 10, 100), net.tokens(50, 10, 10)
    there = net.call("Equal", net.call("Unsqueeze", candidates, net.axes(2)), net.call("Unsqueeze", tokens, net.axes(1)))
    y = net.call("Mul", net.call("Cast", there, to="f32"), net.call("Unsqueeze", attention, net.axes(1)))
    return (net.call("ReduceSum", y, net.axes(2), keepdims=0),
            lambda a, t, c: ((c[:, :, None] == t[:, None]) * a[:, None]).sum(2))


# Measuring


def parser():
    top = case_parser(
        "blocks",
        "Runs blocks of networks that read text in turns with the same graph unfused, ONNX Runtime and PyTorch. Results "
        "must agree to 1e-4.")
    add_turns(top, PEERS["blocks"])
    return top


def parse(words):
    return parse_cases(parser(), words, CASES)


class Job:
    """A block's files, inputs, memory for outputs, and its function in PyTorch, as benchmarks.contestants takes them."""

    def __init__(self, name, folder, threads):
        import numpy
        import onnx
        net = Network(name)
        y, self.module = CASES[name].build(net)
        net.model.output(y)
        self.folder, self.feeds = folder, net.feeds
        onnx.save(net.model.onnx(), folder / "model.onnx")
        path = net.model.write(folder)
        output_of(RNNCC, path, "-o", folder / "module.so", f"--threads={threads}")
        output_of(RNNCC, path, "-o", folder / "unfused.so", f"--threads={threads}", f"--without={STEPS}")
        self.outputs = {output: numpy.zeros_like(array) for output, array in net.model.onnx_run(self.feeds).items()}


def opened(job, given):
    """Runners by name, rnncc's first."""
    from benchmarks.contestants import OnnxRuntime, Rnncc
    from benchmarks.torch_runner import TorchRunner
    makers = {"onnxruntime": lambda: OnnxRuntime().open(job, given.threads),
              "torch": lambda: TorchRunner(job.module, job, given.threads)}
    return {"rnncc": Rnncc().open(job, given.threads), "unfused": Rnncc("unfused.so").open(job, given.threads),
            **{peer: makers[peer]() for peer in PEERS["blocks"] if peer not in given.without}}


def measured(name, given):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(name, Path(folder), given.threads)
        runners = opened(job, given)
        check_equal(name, runners)
        rounds = rounds_of(runners, given.turns)
        for runner in runners.values():
            runner.close()
    return Row(name, {who: 1e6 * statistics.median(each) for who, each in rounds.items()}, ratios_of(rounds))


# The page


def page(rows, threads, machine, versions):
    others = list(rows[0].ratios)
    head = ["block", *(f"{TITLES[who]}, us" for who in rows[0].microseconds), *(f"of {TITLES[who]}" for who in others)]
    lines = [[CASES[row.case].title, *(f"{each:.2f}" for each in row.microseconds.values()),
              *(f"{row.ratios[who]:.2f}" for who in others)] for row in rows]
    return "\n".join([
        "# Blocks of networks that read text", "",
        f"`tools/bench blocks` on {machine}, {threads} threads: medians of runs in turns. "
        f"{', '.join(' '.join(pair) for pair in versions.items())}. Ratios are medians of the turns'. Unfused is rnncc's module of the same "
        f"graph with `--without={STEPS}`. PyTorch is called from Python. All results agree to 1e-4.",
        "", table(head, lines), ""])


def write_page(path, rows, threads):
    from importlib.metadata import version
    from benchmarks import machine
    versions = {TITLES[peer]: version(peer) for peer in rows[0].ratios if peer in PEERS["blocks"]}
    path.write_text(page(rows, threads, f"{machine.cpu_name()}, {machine.best_isa()}", versions))


def run(given):
    rows = []
    for name in given.names:
        rows.append(measured(name, given))
        shown = "".join(f"  {who} {each:.2f} us" for who, each in rows[-1].microseconds.items())
        print(f"{name:18}{shown}" + "".join(f"  of {who} {ratio:.2f}" for who, ratio in rows[-1].ratios.items()), flush=True)
    if given.record:
        write_page(given.record, rows, given.threads)
    return 0


def main(words):
    from benchmarks.contestants import Failed  # needs the venv's packages
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return exit_code(run, parse(words), also=Failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
