# SPDX-License-Identifier: MIT
"""tools/bench, once its venv is there: compiles each case's model, has it measured, and writes the page as it grows."""
import datetime
import json
import os
import shlex
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import onnx

from benchmarks import (ablation_report, arguments, cases, cnn_job, cnn_report, compare_report, environment, isas, layers,
                        lowp_cases, lowp_job, lowp_report, machine, networks, product_cases, product_job, product_report,
                        report)
from benchmarks.ablation_cases import STEPS, recorded
from benchmarks.contestants import MODULES, Failed

DISAGREEMENT = 1
RNNCC = environment.BUILD / "compiler" / "rnncc"
HERE = Path(__file__).resolve().parent


REPORTS = {"rnn": report, "cnn": cnn_report, "products": product_report, "ablation": ablation_report,
           "compare": compare_report, "lowp": lowp_report}


def write_recurrent_model(case, folder, contestants):
    model = networks.model(case)
    onnx.save(model.onnx(), folder / "model.onnx")
    return model.write(folder)


def target_options(target):
    """Without --machine, schedules would be chosen for a usual machine of the target."""
    return [f"--target={target}", "--machine=native"] if target else []


def writer_of(case):
    if isinstance(case, lowp_cases.Case):
        return lowp_job.write_model
    if isinstance(case, product_cases.Case):
        return product_job.write_model
    return write_recurrent_model if isinstance(case, cases.Case) else cnn_job.write_model


def modules_of(given):
    """File name -> the options it is compiled with. The last --schedules counts."""
    options = [*target_options(given.target), *given.rnncc]
    if given.what == "ablation":
        return {f"{step.name}.so": [*step.command_options(given.schedules), *options] for step in STEPS}
    if given.what == "compare":
        return {f"{name}.so": options for name in compare_report.COMPILERS}
    untuned = {MODULES[name]: [*options, "--schedules=none"] for name in untuned_of(given)}
    return {MODULES["rnncc"]: options} | untuned


def sources_of(case, model, given):
    """File name of each of the case's modules -> (the model it is compiled from, options)."""
    if given.what == "lowp":
        return lowp_job.modules(case, model.parent, model, target_options(given.target) + given.rnncc, isa_of(given))
    return {name: (model, options) for name, options in modules_of(given).items()}


def compiler_of(module, given):
    return given.other if given.what == "compare" and module == f"{compare_report.BEFORE}.so" else RNNCC


def prepare(case, folder, given, contestants):
    """Writes the model for rnncc and for the peers, and compiles it. Its path and the seconds that each module takes, or
    None if rnncc refuses; it says why."""
    folder.mkdir(parents=True, exist_ok=True)
    model = writer_of(case)(case, folder, contestants)
    seconds = []
    for name, (source, options) in sources_of(case, model, given).items():
        began = time.perf_counter()
        if subprocess.run([compiler_of(name, given), source, "-o", folder / name, *options]).returncode:
            return None
        seconds.append(time.perf_counter() - began)
    return model, seconds


def explained(model, options):
    """How rnncc chooses the schedules of the model's convolutions."""
    return subprocess.run([RNNCC, "inspect", model, "--explain=conv", "-v", *options], capture_output=True, text=True,
                          check=True).stdout


def facts_of(case, model, profile, given, core):
    """Facts that the page shows besides times. profile, core: from layers.py and machine.py, if the case has them.
    """
    if given.what in ("rnn", "compare"):
        return {}
    if given.what == "lowp":
        return lowp_job.facts(case, model.parent, isa_of(given))
    folder, options = model.parent, list(modules_of(given).values())
    if given.what == "cnn":
        limits = layers.facts(profile, explained(model, options[0]), case.B, core)
        return {**cnn_job.module_facts(folder), "limits": limits}
    facts = json.loads((folder / "facts.json").read_text())
    if given.what == "products":
        return {"multiply_adds": facts["multiply_adds"]}
    return {**facts, "recorded": recorded(explained(model, options[-1]))}


def measure(case, given, contestants, described):
    """The case's result, or a disagreement or failure under that name."""
    folder = environment.BUILD / "bench" / (f"lowp-{case.name}" if given.what == "lowp" else case.name)
    contestants = [name for name in contestants if name not in getattr(case, "without", ())]
    try:
        made = prepare(case, folder, given, contestants)
    except Failed as reason:
        return {"case": case.name, "failure": str(reason)}
    if made is None:
        return {"case": case.name, "failure": f"{case.name}: rnncc does not compile it"}
    settings = {"what": given.what, "case": case.name, "folder": str(folder), "contestants": contestants,
                "threads": given.threads, "rounds": given.rounds, "seconds": given.seconds, "isa": isas.speeds_of(described["isa"]),
                "held": is_held(described)}
    command = [*given.under, sys.executable, "-m", "benchmarks.measure", json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=variables(described))
    lines = done.stdout.splitlines()
    if not lines:
        return {"case": case.name, "failure": f"{case.name}: its process ended with status {done.returncode}"}
    result = json.loads(lines[-1])
    if "contestants" not in result:
        return result
    model, seconds = made
    core = machine.core_meanwhile(described, result["meanwhile"]) if "meanwhile" in result else None
    facts = facts_of(case, model, result.pop("profile", None), given, core)
    return {**result, "compile_seconds": seconds if given.what == "compare" else seconds[0], **facts}


def output_folder(given):
    """Where the page grows."""
    return Path(given.output) if given.output else environment.BUILD / "bench"


def is_full(given):
    """Then the page is for the tree, once it is complete: until then, the one there may be of another machine."""
    return not (given.output or given.what == "compare" or given.quick or given.case or given.without or given.rnncc or
                given.schedules)


def shown_command(words):
    """Without --under, which is this machine's business."""
    kept = [word for k, word in enumerate(words)
            if not word.startswith("--under") and not (k and words[k - 1] == "--under")]
    return shlex.join(["tools/bench", *kept])


# The instruction set


def isa_of(given):
    """Of modules, and of peers."""
    best = machine.best_isa()
    if best not in isas.ISAS:
        raise environment.Missing(f"this CPU's instruction set: expected one of {', '.join(isas.OF_TARGET.values())}, found {best}")
    if given.what == "lowp" and not given.target and best == "avx512" and machine.has_flag("amx_int8"):
        return "amx"
    name = isas.OF_TARGET[given.target] if given.target else best
    isa = isas.ISAS[name]
    if not machine.has_isa(name):
        raise environment.Missing(f"this CPU cannot run modules for {isa.target}: it has no {isa.title}")
    if environment.PEERS[given.what] and name != best and not isa.held:
        raise environment.Missing(f"peers cannot be held to {isa.title} on a CPU that has {isas.ISAS[best].title}")
    return name


def is_held(described):
    """Whether contestants have to be told not to use all that the CPU has."""
    return isas.speeds_of(described["isa"]) != described["best_isa"] and isas.ISAS[described["isa"]].held is not None


def held_folder(described):
    return environment.BUILD / "bench" / f"held-{described['isa']}"


def variables(described):
    """Of the measuring process."""
    if not is_held(described):
        return None
    held = isas.ISAS[described["isa"]].held
    path = os.pathsep.join([str(held_folder(described)), os.environ["PYTHONPATH"]])
    return {**os.environ, **held.peers, **held.others, "PYTHONPATH": path}


def hold(described, contestants):
    if is_held(described):
        isas.copy_packages(contestants, Path(sysconfig.get_path("purelib")), held_folder(described),
                           isas.ISAS[described["isa"]].held.saved)


def untuned_of(given):
    return [name for name in environment.UNTUNED.get(given.what, ()) if name not in given.without]


def contestants_of(given):
    if given.what == "ablation":
        return [step.name for step in STEPS]
    if given.what == "compare":
        return compare_report.COMPILERS
    if given.what == "lowp":
        return lowp_job.contestants(given.without, isa_of(given))
    return ["rnncc", *untuned_of(given), *(peer for peer in environment.PEERS[given.what] if peer not in given.without)]


def measure_all(given, contestants, results, output):
    """Adds each case to the results, and writes them. Returns what went wrong."""
    reporter, problems = REPORTS[given.what], []
    print(reporter.heading(contestants))
    for case in given.cases:
        result = measure(case, given, contestants, results["machine"])
        if "contestants" in result:
            results["cases"].append(result)
            print(reporter.line(result, contestants, results["machine"]["isa"]), flush=True)
        else:
            problems.append(result)
            print(f"tools/bench: {result.get('disagreement') or result['failure']}", file=sys.stderr)
        reporter.write(results, output)
    return problems


def run(given, words):
    contestants = contestants_of(given)
    output = output_folder(given)
    output.mkdir(parents=True, exist_ok=True)
    results = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
               "command": shown_command(words),
               "machine": machine.describe(given.threads, given.under, isa_of(given)), "cases": []}
    hold(results["machine"], contestants)
    problems = measure_all(given, contestants, results, output)
    if results["cases"]:
        complete = is_full(given) and not problems
        print(f"\n{REPORTS[given.what].write(results, HERE if complete else output)}")
    if any("disagreement" in problem for problem in problems):
        return DISAGREEMENT
    return environment.ENVIRONMENT_ERROR if problems else 0


def main(words):
    try:
        return run(arguments.parse(words), words)
    except environment.Missing as reason:
        print(f"tools/bench: {reason}", file=sys.stderr)
        return environment.ENVIRONMENT_ERROR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
