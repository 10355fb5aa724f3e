# SPDX-License-Identifier: MIT
"""tools/bench predict: what rnncc predicts of the benchmarks' networks beside what they take on this machine."""
import argparse
import datetime
import json
import shlex
import sys
from pathlib import Path

from benchmarks import cases, cnn_cases, isas, predict, predict_page
from benchmarks.arguments import chosen_names
from benchmarks.cost_model_run import model_of
from benchmarks.environment import BUILD, ENVIRONMENT_ERROR, Missing, output_of
from benchmarks.machine import caches, cpu_name, has_isa

HERE = Path(__file__).resolve().parent
RNNCC = BUILD / "compiler" / "rnncc"
RECURRENT = {case.name: case for case in cases.CASES}
CASES = [*RECURRENT, *(case.network for case in cnn_cases.CASES)]
# As many distinct convolutions have all networks: the others repeat these.
DISTINCT = [*RECURRENT, "resnet18", "resnet50", "vgg19", "densenet161", "densenet201", "inception_v3", "mobilenet_v2",
            "squeezenet", "ssd_resnet50"]


def parser():
    top = argparse.ArgumentParser(
        prog="tools/bench predict",
        description="How good the compiler's predicted times are, with the speeds of a table and with measured ones: "
                    "measures this machine, compiles, and runs each module in slices, one in each round over all; those "
                    "that began while the cores were slower than at other times, or met more slowly, and those that took "
                    "longer than the fastest do not count.",
        epilog="Writes PREDICT_RESULTS.avx512.md, or that of another instruction set, to build/bench, and after a run of "
               "all default cases to tools/benchmarks. A module that is newer than rnncc is not compiled again.")
    top.add_argument("case", nargs="*", help="of --list, or a pattern of names; default: all recurrent ones, and nine "
                     "networks that have all of the distinct convolutions")
    top.add_argument("--list", action="store_true", help="prints the names of the cases")
    top.add_argument("--target", choices=list(isas.OF_TARGET), default="x86-64-v4", metavar="NAME", help="(x86-64-v4)")
    top.add_argument("--threads", type=int, default=2, metavar="N", help="threads that are planned for, and run (2)")
    top.add_argument("--slices", type=int, default=6, metavar="N", help="of each module (6)")
    top.add_argument("--seconds", type=float, default=0.1, metavar="S", help="of a slice (0.1)")
    top.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                     help="measures under this command, such as 'chrt -f 1'")
    return top


def parse(words):
    top = parser()
    given = top.parse_args(words)
    given.names = chosen_names(given.case, CASES, "case", top) if given.case or given.list else DISTINCT
    return given


def model(name):
    if name not in RECURRENT:
        return model_of(name)
    from benchmarks import networks  # needs the venv's packages
    folder = BUILD / "bench" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.json" if (folder / f"{name}.json").exists() else networks.model(RECURRENT[name]).write(folder)


def compiled(path, options, given):
    module = path.parent / f"predicted.{given.target}.so"
    newest = max(RNNCC.stat().st_mtime, path.stat().st_mtime)
    if not module.exists() or module.stat().st_mtime < newest:
        output_of(RNNCC, path, "-o", module, *options)
    return module


def measured(case, given):
    """Its next slice, by predict_measure.py."""
    settings = {"module": str(case["module"]), "threads": given.threads, "isa": isas.OF_TARGET[given.target],
                "profile": case["kind"] == "conv", "seconds": given.seconds}
    return json.loads(output_of(*given.under, sys.executable, "-m", "benchmarks.predict_measure", json.dumps(settings)))


def explained(path, kind, options):
    return output_of(RNNCC, "inspect", path, f"--explain={kind}", "-v", *options)


def prepared(name, calibration, given):
    """The case's module and explanations, and no slices yet."""
    path = model(name)
    kind = "rnn" if name in RECURRENT else "conv"
    common = [f"--target={given.target}", f"--threads={given.threads}"]
    native, calibrated = [*common, "--machine=native"], [*common, f"--machine={calibration}"]
    return {"kind": kind, "module": compiled(path, native, given), "explained": explained(path, kind, native),
            "calibrated": explained(path, kind, calibrated), "slices": []}


def measure_all(found, given):
    """In rounds: what disturbs a virtual machine lasts for seconds or minutes, and would take all slices of a case."""
    for turn in range(given.slices):
        for case in found.values():
            case["slices"].append(measured(case, given))
        print(f"round {turn + 1} of {given.slices}", flush=True)


def best_of(found):
    return predict.Best.of([each for case in found.values() for each in case["slices"]])


def pairs_of(found):
    """Of all cases. Slices are compared with the best of the whole run."""
    best = best_of(found)
    pairs = []
    for name, case in found.items():
        words = name, case["explained"], case["calibrated"]
        if case["kind"] == "rnn":
            pairs.append(predict.recurrent(*words, predict.measured_run(case["slices"], best)))
        else:
            pairs += predict.convolutions(*words, predict.measured_nodes(case["slices"], best))
    return pairs


def kept(found):
    """(slices that count, all)."""
    best = best_of(found)
    return (sum(len(predict.undisturbed(case["slices"], best)) for case in found.values()),
            sum(len(case["slices"]) for case in found.values()))


def about(given, words, found):
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    shown = shlex.join(["tools/bench", "predict", *(word for word in words if not word.startswith("--under"))])
    quiet, all_slices = kept(found)
    title = isas.ISAS[isas.OF_TARGET[given.target]].title
    return (f"`{shown}`, {date}, on {cpu_name()} ({', '.join(caches())}), with {title}, for `{given.target}`, "
            f"{given.threads} threads; {quiet} of {all_slices} slices counted.")


def run(given, words):
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    calibration = folder / "machine.json"
    output_of(*given.under, RNNCC, "targets", "--calibrate", "-o", calibration)
    found = {name: prepared(name, calibration, given) for name in given.names}
    measure_all(found, given)
    pairs = pairs_of(found)
    for name in found:
        print(predict_page.line(name, [pair for pair in pairs if pair.case == name]))
    path = (HERE if given.names is DISTINCT else folder) / isas.of_file(predict_page.PAGE_FILE, isas.OF_TARGET[given.target])
    path.write_text(predict_page.page(pairs, about(given, words, found)))
    print(f"\n{path}")
    return 0


def main(words):
    given = parse(words)
    try:
        if not has_isa(isas.OF_TARGET[given.target]):
            raise Missing(f"--target={given.target}: this CPU does not run it")
        return run(given, words)
    except Missing as reason:
        print(f"tools/bench: {reason}", file=sys.stderr)
        return ENVIRONMENT_ERROR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
