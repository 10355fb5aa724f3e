# SPDX-License-Identifier: MIT
"""tools/bench deepcpu: the three applications of DeepCPU (M. Zhang et al., USENIX ATC 2018, tables 2 to 4) beside ONNX
Runtime, OpenVINO and PyTorch, in turns: latency, what a query takes with its documents and without, what is gained by
layers of equal weights running as one, and where the time goes."""
import os
import statistics
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

from benchmarks.arguments import add_turns, case_parser, parse_cases
from benchmarks.environment import BUILD, PEERS, Missing, exit_code, output_of
from benchmarks.report import table
from benchmarks.turns import check_equal, ratios_of, rounds_of

RNNCC = BUILD / "compiler" / "rnncc"
Case = namedtuple("Case", "title at_most")  # at_most: goal for the ratio to the best peer
CASES = {"text_similarity": Case("a query and 33 documents, bidirectional GRU 200 to 512", 0.85),
         "attention_sum_reader": Case("10 questions on 10 texts, bidirectional GRUs 200 to 256", 0.8),
         "bidaf": Case("a question on a text, five bidirectional LSTMs to 100", 0.7)}
# milliseconds: by contestant; ratios: by peer; layers: (name, ms) of rnncc's; sizes: the network's inputs and layers, in
# words; apart: (ms, ms, ratio) of rnncc's and of a module whose layers of equal weights run one by one, in turns of
# their own; pair: of text_similarity, the milliseconds of a query and one document, by contestant
Row = namedtuple("Row", "case milliseconds ratios layers sizes apart pair", defaults=(None,))
PAIRED = "text_similarity"


def parser():
    top = case_parser(
        "deepcpu",
        "Runs the three applications of DeepCPU's paper in turns with ONNX Runtime, OpenVINO and PyTorch. Results "
        "must agree to 1e-4.")
    add_turns(top, PEERS["deepcpu"])
    return top


def parse(words):
    return parse_cases(parser(), words, CASES)


APART = "apart.so"  # the module whose layers of equal weights run one by one


class ReaderJob:
    """A network, its files and module, inputs, and memory for outputs, as benchmarks.contestants takes them."""

    def __init__(self, name, folder, threads, **of):
        """of: what the network is made of, if not of what it usually is."""
        import numpy
        import onnx
        from networks import READERS
        self.name, self.folder, self.net = name, folder, READERS[name](**of)
        onnx.save(self.net.onnx(), folder / "model.onnx")
        model = self.net.write(folder)
        output_of(RNNCC, model, "-o", folder / "module.so", f"--threads={threads}")
        output_of(RNNCC, model, "-o", folder / APART, f"--threads={threads}", "--without=join_layers")
        self.feeds = self.net.feeds(1)
        self.outputs = {output: numpy.zeros_like(array) for output, array in self.net.onnx_run(self.feeds).items()}


def opened(job, given):
    """Runners by name, rnncc's first."""
    from benchmarks.contestants import OnnxRuntime, OpenVino, Rnncc
    from benchmarks.torch_runner import TorchRunner
    from networks.readers_torch import torch_reader
    makers = {"onnxruntime": lambda: OnnxRuntime().open(job, given.threads),
              "openvino": lambda: OpenVino().open(job, given.threads), "torch": lambda: TorchRunner(torch_reader(job.name, job.net), job, given.threads)}
    return {"rnncc": Rnncc().open(job, given.threads),
            **{peer: makers[peer]() for peer in PEERS["deepcpu"] if peer not in given.without}}


def sizes(net):
    """The inputs and the recurrent layers of a network, as table 2 has them."""
    texts = ", ".join(f"{given['name']} {given['shape']}" for given in net.inputs)
    cells = {node["inputs"][1]: node["op"] for node in net.nodes if node["op"] in ("GRU", "LSTM")}
    shapes = {name: net.arrays[name].shape for name in cells}  # W, [2, gates * units, features]
    gates = {"GRU": 3, "LSTM": 4}
    layers = ", ".join(f"{name.removesuffix('.W')} {op} {shapes[name][2]} to {shapes[name][1] // gates[op]}"
                       for name, op in cells.items())
    return texts, layers


def medians(rounds):
    """Milliseconds by name."""
    return {who: 1e3 * statistics.median(each) for who, each in rounds.items()}


def in_turns(name, runners, turns):
    check_equal(name, runners)
    rounds = rounds_of(runners, turns)
    for runner in runners.values():
        runner.close()
    return rounds


def apart(job, given):
    """Milliseconds of the usual module, of one without joined layers, and the ratio of the former to the latter."""
    from benchmarks.contestants import Rnncc
    rounds = in_turns(job.name, {"rnncc": Rnncc().open(job, given.threads), "apart": Rnncc(APART).open(job, given.threads)},
                      given.turns)
    return *medians(rounds).values(), ratios_of(rounds)["apart"]


def pair(given):
    """Milliseconds of a query and one document, by contestant."""
    with tempfile.TemporaryDirectory() as folder:
        job = ReaderJob(PAIRED, Path(folder), given.threads, batch=1)
        return medians(in_turns(PAIRED, opened(job, given), given.turns))


def times_by_layer(job, threads):
    """(recurrent layer, milliseconds) of rnncc, and the rest; a layer of two directions that run at once counts once."""
    from benchmarks import layers
    cells = {node["name"] for node in job.net.nodes if node["op"] in ("GRU", "LSTM")}
    found = dict.fromkeys([node["name"] for node in job.net.nodes if node["name"] in cells] + ["all else"], 0.0)
    for entry in layers.profile(job.folder / "module.so", job.feeds, threads):
        found[entry["node"] if entry["node"] in cells else "all else"] += 1e3 * entry["seconds"]
    return list(found.items())


def measured(name, given):
    with tempfile.TemporaryDirectory() as folder:
        job = ReaderJob(name, Path(folder), given.threads)
        rounds = in_turns(name, opened(job, given), given.turns)
        row = Row(name, medians(rounds), ratios_of(rounds), times_by_layer(job, given.threads), sizes(job.net),
                  apart(job, given))
    return row._replace(pair=pair(given)) if name == PAIRED else row


# The page

TITLES = {"rnncc": "rnncc", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch"}


def times_of(row):
    best = max(row.ratios.values(), default=float("nan"))
    goal = CASES[row.case].at_most
    return [CASES[row.case].title, *(f"{each:.2f}" for each in row.milliseconds.values()),
            *(f"{each:.2f}" for each in row.ratios.values()), f"{best:.2f}", f"{goal:.2f}", "yes" if best <= goal else "no"]


def pairs_of(row):
    """Table 4: what a query costs with its documents, beside pairs of texts one by one."""
    from networks.text_similarity import DOCUMENTS
    columns = [(f"{alone:.2f}", f"{row.milliseconds[who]:.2f}", f"{row.milliseconds[who] / DOCUMENTS:.3f}",
                f"{DOCUMENTS * alone / row.milliseconds[who]:.1f}") for who, alone in row.pair.items()]
    names = ["a query and one document, ms", f"a query and its {DOCUMENTS} documents, ms", "of these a document, ms",
             f"{DOCUMENTS} pairs one by one, of the time at once"]
    return [["", *(TITLES[who] for who in row.pair)], [[name, *each] for name, each in zip(names, zip(*columns))]]


def page(rows, threads, machine, versions):
    peers = list(rows[0].ratios)
    head = ["application", *(f"{TITLES[who]}, ms" for who in rows[0].milliseconds), *(f"of {TITLES[peer]}" for peer in peers),
            "of the best", "at most", "met"]
    throughput = [[CASES[row.case].title, *(f"{1e3 / each:.0f}" for each in row.milliseconds.values())] for row in rows]
    layers = [[row.case, name, f"{each:.2f}", f"{100 * each / sum(part for _, part in row.layers):.0f}%"]
              for row in rows for name, each in row.layers]
    alone = [[row.case, *(f"{each:.2f}" for each in row.apart)] for row in rows]
    pairs = [part for row in rows if row.pair
             for part in ("## A query and its documents", "", "Table 4 of the paper.", "", table(*pairs_of(row)), "")]
    return "\n".join([
        "# DeepCPU's applications", "",
        f"`tools/bench deepcpu` on {machine}, {threads} threads: medians of runs in turns. "
        f"{', '.join(' '.join(pair) for pair in versions.items())}. Ratios are medians of the turns'. The sizes are those of "
        "table 2 of DeepCPU's paper; `models/generate` writes the networks, with seeded weights. All results agree to 1e-4.",
        "", table(head, map(times_of, rows)),
        "", "## The networks", "", "Table 2 of the paper. All layers have two directions.", "",
        table(["application", "inputs", "recurrent layers"], [[row.case, *row.sizes] for row in rows]),
        "", "## Runs a second", "", table(["application", *(TITLES[who] for who in rows[0].milliseconds)], throughput), "",
        *pairs, "## Layers of equal weights as one", "",
        "A query is encoded once for all of its documents, and in one batch with them: the compiler joins layers of equal "
        "weights. *Apart* is the module of `--without=join_layers`.", "",
        table(["application", "rnncc, ms", "apart, ms", "of apart"], alone),
        "", "## Where rnncc's time goes", "",
        "Table 3 of the paper. A layer's time is its input's product and its steps, of both directions; directions take turns "
        "here.", "", table(["application", "layer", "ms", "part"], layers), ""])


def write_page(path, rows, threads):
    from importlib.metadata import version
    from benchmarks import machine
    versions = {TITLES[peer]: version(peer) for peer in rows[0].ratios}
    path.write_text(page(rows, threads, f"{machine.cpu_name()}, {machine.best_isa()}", versions))


def each_of(by_contestant, form):
    return "".join(f"  {who} {form.format(number)}" for who, number in by_contestant.items())


def lines_of(row):
    """What is printed of an application: what the tables of the page have, but the goal."""
    texts, layers = row.sizes
    throughput = {who: 1e3 / each for who, each in row.milliseconds.items()}
    yield f"{row.case}:{each_of(row.milliseconds, '{:.2f} ms')}" + "".join(f"  of {peer} {of:.2f}" for peer, of in row.ratios.items())
    yield f"    inputs: {texts}"
    yield f"    recurrent layers: {layers}"
    yield f"    runs a second:{each_of(throughput, '{:.0f}')}"
    for layer, each in row.layers:
        yield f"    {layer:24}{each:8.2f} ms"
    yield f"    layers of equal weights apart: {row.apart[1]:.2f} ms, ratio {row.apart[2]:.2f}"
    if row.pair:
        yield f"    one document:{each_of(row.pair, '{:.2f} ms')}"


def run(given):
    rows = []
    for name in given.names:
        rows.append(measured(name, given))
        print("\n".join(lines_of(rows[-1])), flush=True)
    if given.record:
        write_page(given.record, rows, given.threads)
    return 0


def main(words):
    from benchmarks.contestants import Failed  # needs the venv's packages
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return exit_code(run, parse(words), also=Failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
