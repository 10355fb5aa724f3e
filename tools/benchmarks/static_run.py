# SPDX-License-Identifier: MIT
"""tools/bench static: the hot loops of the networks' kernels on cores that nobody has here, read from their object code
(hot_loops.py). No clock is asked: the page is the same on every machine."""
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cases, cnn_cases, environment, hot_loops, static_page
from benchmarks.arguments import case_parser, parse_cases
from benchmarks.cost_model_run import model_of
from benchmarks.environment import BUILD, Missing, exit_code, output_of

HERE = Path(__file__).resolve().parent
RNNCC = BUILD / "compiler" / "rnncc"
RECURRENT = {case.name: case for case in cases.CASES}
TRANSPOSED = ("picture_generator", "vocoder")  # transposed_networks.NETWORKS, which needs the venv's packages
CASES = [*RECURRENT, *(case.name for case in cnn_cases.CASES), *TRANSPOSED]
THREADS = 2


@dataclass(frozen=True)
class Found:
    """A hot loop of a case, and its cycles on each core of llvm-mca."""
    loop: hot_loops.Loop
    cycles: dict


def parser():
    top = case_parser(
        "static",
        "Reads the hot loops of compiled networks: no vector should go to the stack, and by llvm-mca no "
        "loop should wait for its own results.",
        epilog="What is found is written to STATIC_RESULTS.md and static_results.json in build/bench, or with --record "
               "to those in tools/benchmarks, whose other cases and targets stay. Exit 1 if a hot loop moves a vector to "
               "the stack.")
    top.add_argument("--record", action="store_true", help="on the page of tools/benchmarks")
    top.add_argument("--target", action="append", choices=list(hot_loops.ARCHITECTURES), metavar="NAME",
                     help=f"may be repeated; default: {', '.join(hot_loops.ARCHITECTURES)}")
    return top


def written(name, folder):
    """The case's model."""
    from benchmarks import networks, transposed_networks  # need the venv's packages
    if name in TRANSPOSED:
        return transposed_networks.model(name).write(folder)
    return networks.model(RECURRENT[name]).write(folder) if name in RECURRENT else model_of(name)


def compiled(rnncc, model, folder, target, *options):
    """The emitted C, and the object file of it, as rnncc has it compiled but for the line tables: one section, so that an
    address is of one function."""
    output_of(rnncc, model, "--emit=c", "-o", folder, f"--target={target}", f"--threads={THREADS}", *options)
    made = folder / "network.o"
    # The Makefile's last flags, which only its static library uses itself.
    flags = f"-gline-tables-only -fno-function-sections {hot_loops.flags_of(target)}"
    output_of("make", "-s", "-C", folder, "network.o", f"STATIC_FLAGS={flags}")
    return (folder / "network.c").read_text(), made


def measured(loops, target):
    """Each distinct loop of a kernel once, with its cycles on every core."""
    loops = list({(loop.kernel, hot_loops.assembly(loop)): loop for loop in loops}.values())
    by_core = {core: hot_loops.cycles(loops, core) for core in hot_loops.cores_of(target)}
    return [Found(loop, {core: by_core[core][k] for core in by_core}) for k, loop in enumerate(loops)]


def found_in(rnncc, model, folder, target, *options):
    """The hot loops of a model's kernels, and those of transforms, whose cycles are not asked for."""
    source, made = compiled(rnncc, model, folder, target, *options)
    loops = hot_loops.kernel_loops(made, source, target)
    transforms = [Found(loop, {}) for loop in loops if loop.transforms]
    return measured(hot_loops.hot(loops), target) + transforms


def record(output, known, results):
    """The page and its data: what was known, but for the results."""
    merged = static_page.merged(known, results, CASES, list(hot_loops.ARCHITECTURES))
    output.mkdir(parents=True, exist_ok=True)
    (output / static_page.PAGE_FILE).write_text(static_page.page(merged))
    (output / static_page.DATA_FILE).write_text(static_page.text(merged))


def run(names, targets, output, known):
    results = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            model = written(name, Path(folder))
            for target in targets:
                loops = found_in(RNNCC, model, Path(folder) / target, target)
                results[name, target] = static_page.summary(loops, target)
                print(static_page.line(name, target, results[name, target]), flush=True)
        record(output, known, results)
    print(f"\n{output / static_page.PAGE_FILE}")
    return 1 if any(found["spills"] for found in results.values()) else 0


def parse(words):
    return parse_cases(parser(), words, CASES)


def prepare():
    for tool in hot_loops.TOOLS:
        if not shutil.which(tool):
            raise Missing(f"{tool} not found; tools/setup test installs it")
    environment.prepare("static", ())


def main(words):
    given = parse(words)
    targets, output = given.target or list(hot_loops.ARCHITECTURES), HERE if given.record else BUILD / "bench"
    known = json.loads((HERE / static_page.DATA_FILE).read_text()) if given.record else {}
    return exit_code(run, given.names, targets, output, known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
