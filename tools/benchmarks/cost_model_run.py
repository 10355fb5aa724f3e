# SPDX-License-Identifier: MIT
"""tools/bench model: predicted times of the networks' convolutions beside measured ones. Only Python's own library."""
import argparse
import datetime
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks import cost_model_page, isas
from benchmarks.arguments import chosen_names
from benchmarks.cnn_cases import CASES
from benchmarks.cost_model import parse_explained, read_measured
from benchmarks.environment import BUILD, ENVIRONMENT_ERROR, ROOT, Missing, build, run_quietly
from benchmarks.machine import caches, cpu_name

HERE = Path(__file__).resolve().parent
RNNCC = BUILD / "compiler" / "rnncc"


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench model",
        description="How good the compiler's predicted times of convolutions are: measures schedules with `rnncc "
                    "tune`, and compares. Schedules that were measured before are not measured again.",
        epilog="Writes MODEL_RESULTS.avx512.md, or that of another instruction set, to build/bench, and after a run of "
               "all networks to tools/benchmarks. Times mean something on an idle machine only.")
    top.add_argument("network", nargs="*", help="of --list, or a pattern of names; default: all")
    top.add_argument("--list", action="store_true", help="prints the names of the networks")
    top.add_argument("--records", type=Path, default=BUILD / "bench" / "model.jsonl", metavar="FILE",
                     help="file of measured times, read and appended to (build/bench/model.jsonl)")
    top.add_argument("--trials", type=int, default=24, metavar="N", help="schedules of a convolution (24); 0: measures "
                     "nothing")
    top.add_argument("--budget", type=float, default=3600, metavar="S", help="seconds for a network at most (3600)")
    top.add_argument("--target", default="native", help="(native)")
    top.add_argument("--output", type=Path, metavar="DIRECTORY", help="where the page goes")
    return top


def model_of(network):
    """The model's file; it is generated once."""
    folder = BUILD / "bench" / network
    path = folder / f"{network}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run_quietly(f"cannot generate {network}", ROOT / "models" / "generate", network, "-o", folder)
    return path


def output_of(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{done.stderr}{shlex.join(map(str, command))} ended with status {done.returncode}")
    return done.stdout


def target_and_isa(given):
    """Their names. given: such as native."""
    lines = output_of(RNNCC, "targets").split("\n\n")[0].splitlines()[1:]
    found = next((line.split() for line in lines if given in (line.split()[0], line.split()[-1])), None)
    if not found:
        raise Missing(f"--target: expected one of {', '.join(line.split()[0] for line in lines)}, found {given}")
    return found[:2]


def workloads_of(network, given):
    """With both times."""
    options = [f"--target={given.target}", *(["--machine=native"] if given.target != "native" else [])]
    model = model_of(network)
    if given.trials > 0:
        command = [RNNCC, "tune", model, "-o", given.records, f"--trials={given.trials}", f"--budget={given.budget}"]
        subprocess.run([*command, *options], check=False)  # the page shows what could be measured
    explained = output_of(RNNCC, "inspect", model, "--explain=conv", "-v", "--schedules=none", *options)
    workloads = parse_explained(explained)
    lines = given.records.read_text().splitlines() if given.records.exists() else []
    measured = read_measured(lines, target_and_isa(given.target)[0])
    for workload in workloads:
        workload.measured = measured.get(workload.name, {})
    return workloads


def about(words, target, isa):
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    title = isas.ISAS[isa].title if isa in isas.ISAS else isa
    return (f"`{shlex.join(['tools/bench', 'model', *words])}`, {date}, on {cpu_name()} ({', '.join(caches())}), with "
            f"{title}, for `{target}`.")


def run(given, names, words):
    target, isa = target_and_isa(given.target)
    output = given.output or BUILD / "bench"
    output.mkdir(parents=True, exist_ok=True)
    path = output / isas.of_file(cost_model_page.PAGE_FILE, isa)
    networks = {}
    print(cost_model_page.heading())
    for name in names:
        networks[name] = workloads_of(name, given)
        print(cost_model_page.line(name, networks[name]), flush=True)
        path.write_text(cost_model_page.page(networks, about(words, target, isa)))
    if not given.network and not given.output:
        path = Path(shutil.copy(path, HERE))
    print(f"\n{cost_model_page.summary_text(networks)}\n\n{path}")
    return 0


def main(words):
    top = parser()
    given = top.parse_args(words)
    names = chosen_names(given.network, [case.network for case in CASES], "network", top)
    if given.list:
        print("\n".join(names))
        return 0
    try:
        build()
        return run(given, names, words)
    except Missing as reason:
        print(f"tools/bench: {reason}", file=sys.stderr)
        return ENVIRONMENT_ERROR
