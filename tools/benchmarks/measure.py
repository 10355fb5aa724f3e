# SPDX-License-Identifier: MIT
"""Measures one case in a process of its own: python -m benchmarks.measure SETTINGS, which is JSON; so is its output.

First the starts, each in a fork in which nothing has run yet. Then all contestants are loaded together, with each thread
count; their outputs are compared with double precision; one or two rounds rule out thread counts that are too slow; and
the others take turns, so that all are measured under the same conditions.
"""
import gc
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

from benchmarks import cases, cnn_cases, isas, layers, lowp_cases, machine, product_cases
from benchmarks.cnn_job import CnnJob
from benchmarks.contestants import CONTESTANTS, MODULES, Failed, Job, Rnncc
from benchmarks.environment import OWN
from benchmarks.lowp_job import LowpJob
from benchmarks.product_job import ProductJob

PEER_PAUSE = 0.06  # seconds: ONNX Runtime's threads spin on for some 40 ms after a run
SLICE = 0.01  # seconds of counted runs in a turn, and of uncounted ones before: waking threads takes milliseconds
MAX_RUNS = 400
MIN_ROUNDS = 3  # that a median needs
PAIRED_ROUNDS = 6  # minimum for two modules alone
TUNED_ROUNDS = 12  # maximum for the tuned and the untuned one
CHOOSING_ROUNDS, CHOOSING_SECONDS = 2, 2
STARTS, STARTS_SECONDS = 3, 3  # maximum, and no new one after so long: a peer may take two seconds
START_RUNS = 0.05  # seconds of runs after a first result, in which memory may still grow; one run at least


# Starts


def status_bytes(field):
    """VmRSS or VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise Failed(f"/proc/self/status has no {field}")


def start(contestant, job, threads):
    """Seconds from loading the model to its first result, and what memory grew by at its peak over some runs."""
    gc.collect()  # writes to all objects: their pages are then this fork's own, and no first write to one is timed
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM from now
    before = status_bytes("VmRSS")
    began = time.perf_counter()
    runner = contestant.open(job, threads)
    runner.times(1)
    seconds = time.perf_counter() - began
    run_for(runner, START_RUNS)
    return {"seconds": seconds, "bytes": status_bytes("VmHWM") - before}


def in_fork(function, *arguments):
    """Its result, from a child process. The child leaves without the destructors of libraries that it shares."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            answer = function(*arguments)
        except Exception as failure:  # whatever it is, the parent reports it
            answer = {"failure": f"{type(failure).__name__}: {failure}"}
        with os.fdopen(write_end, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text) if text else {"failure": "the process died"}
    if "failure" in answer:
        raise Failed(answer["failure"])
    return answer


def starts(contestants, job, threads):
    found = {}
    for name, contestant in contestants.items():
        results = []
        while len(results) < STARTS and sum(result["seconds"] for result in results) < STARTS_SECONDS:
            results.append(in_fork(start, contestant, job, threads))
        beyond = min(result["bytes"] for result in results) - job.weight_bytes - contestant.own_output_bytes(job)
        found[name] = {"start_seconds": statistics.median(result["seconds"] for result in results),
                       "bytes_beyond_weights": beyond}
    return found


def run_for(runner, seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        runner.times(1)


def wider(contestant, job, threads):
    """Whether it uses AVX-512's registers."""
    runner = contestant.open(job, threads)
    runner.times(1)
    return {"used": isas.uses_avx512(lambda: run_for(runner, START_RUNS), PEER_PAUSE)}


def unheld(contestants, job, threads):
    """For each contestant, whether it uses wider registers than rnncc's modules may; None if that is not known."""
    return {name: {"wider": in_fork(wider, contestant, job, threads)["used"]}
            for name, contestant in contestants.items()}


# Agreement


def check(job, expected, runners):
    """Name -> error. A wrong output ends the case: its time would mean nothing."""
    errors = {}
    for (name, threads), runner in runners.items():
        error = job.error(runner.run(), expected)
        if error > job.bound_of(name):
            raise Disagreement(f"{job.case.name}: {name} on {threads} threads is off by {error:.2g} of the largest "
                               f"value; the bound is {job.bound_of(name):.2g}")
        errors[name] = max(error, errors.get(name, 0))
    return errors


class Disagreement(Exception):
    pass


# Rounds


class Turn:
    """Takes slices of one runner."""

    def __init__(self, runner, pause):
        self.runner, self.pause, self.seconds = runner, pause, []
        first = runner.times(1)[0]  # a short run takes longer at first
        self.runs = min(MAX_RUNS, math.ceil(SLICE / (first if first > SLICE else runner.times(1)[0])))

    def take(self):
        machine.cpus().wake()
        self.runner.times(self.runs)
        self.seconds.append(self.runner.times(self.runs))
        time.sleep(self.pause)

    @property
    def median(self):
        return statistics.median(second for part in self.seconds for second in part)


def pause_after(name):
    return 0 if name in OWN else PEER_PAUSE


def rounds(turns, fewest, most, seconds):
    """Round after round until there are `most`, or time is up and there are `fewest`. Returns how many."""
    end = time.perf_counter() + seconds
    done = 0
    while done < min(fewest, most) or (done < most and time.perf_counter() < end):
        for turn in turns.values():
            turn.take()
        done += 1
    return done


def by_contestant(turns):
    """Name -> {threads: turn}."""
    names = {}
    for (name, threads), turn in turns.items():
        names.setdefault(name, {})[threads] = turn
    return names


def near_best(turns, near):
    """The turns that take at most `near` times as long as their contestant's best thread count."""
    kept = {}
    for name, counts in by_contestant(turns).items():
        least = min(turn.median for turn in counts.values())
        kept.update({(name, threads): turn for threads, turn in counts.items() if turn.median <= near * least})
    return kept


def choose_counts(runners, near):
    """Turns of the runners to go on with. The others are closed."""
    turns = {key: Turn(runner, pause_after(key[0])) for key, runner in runners.items()}
    time.sleep(PEER_PAUSE)
    rounds(turns, 1, CHOOSING_ROUNDS, CHOOSING_SECONDS)
    kept = near_best(turns, near)
    for key in runners.keys() - kept.keys():
        runners[key].close()
    for turn in kept.values():
        turn.seconds.clear()
    time.sleep(PEER_PAUSE)
    return kept


def spread(seconds):
    ordered = sorted(second for part in seconds for second in part)
    return {"median_seconds": statistics.median(ordered), "p10_seconds": ordered[len(ordered) // 10],
            "p90_seconds": ordered[len(ordered) * 9 // 10], "runs": len(ordered),
            "turn_medians": [statistics.median(part) for part in seconds]}


def counts_of(name, counts):
    """The untuned module is only compared with the tuned one: the maximum thread count is enough."""
    return [max(counts)] if name == "untuned" else counts


def ratio_in_pairs(one, other, most, seconds):
    """The median ratio of the other module's turns to those of the one, in pairs, each first in half of them: the two
    differ by less than the machine changes from one round with peers to the next."""
    one.seconds, other.seconds = [], []
    time.sleep(PEER_PAUSE)
    rounds(dict(enumerate((one, other, other, one))), min(PAIRED_ROUNDS, most), most, seconds)
    return statistics.median(statistics.median(ours) / statistics.median(theirs)
                             for ours, theirs in zip(other.seconds, one.seconds))


def measure(job, settings, beside=()):
    """beside: turns that are no contestant's."""
    contestants = {name: CONTESTANTS[name]() for name in settings["contestants"]}
    counts = settings["threads"]
    started = {name: contestant for name, contestant in contestants.items() if name != "untuned"}
    result = {name: {} for name in contestants} | starts(started, job, max(counts))
    for name, found in (unheld(started, job, max(counts)) if settings["held"] else {}).items():
        result[name].update(found)
    expected = job.reference()
    runners = {(name, threads): contestant.open(job, threads) for threads in counts
               for name, contestant in contestants.items() if threads in counts_of(name, counts)}
    errors = check(job, expected, runners)
    turns = choose_counts(runners, job.near)
    done = rounds(turns | dict(enumerate(beside)), MIN_ROUNDS, settings["rounds"], settings["seconds"])
    for name, candidates in by_contestant(turns).items():
        threads, best = min(candidates.items(), key=lambda pair: pair[1].median)
        result[name].update(threads=threads, error=errors[name], version=contestants[name].version,
                            by_threads={count: turn.median for count, turn in candidates.items()},
                            **spread(best.seconds))
    if "untuned" in result:
        pair = (turns[name, max(counts)] for name in ("rnncc", "untuned"))
        result["untuned"]["to_tuned"] = ratio_in_pairs(*pair, TUNED_ROUNDS, settings["seconds"] / 2)
    return {"case": job.case.name, "rounds": done, "bound": job.bound, "contestants": result}


def measure_network(job, settings):
    """Like `measure`; and the profile of rnncc's module on its best thread count, and the machine's speed meanwhile."""
    meanwhile = machine.Meanwhile(max(settings["threads"]), settings["isa"])
    result = measure(job, settings, [meanwhile])
    threads = result["contestants"]["rnncc"]["threads"]
    profile = layers.profile(job.folder / MODULES["rnncc"], job.feeds, threads)
    return {**result, "profile": profile, "meanwhile": meanwhile.found}


def turns_of_modules(job, names, threads):
    """Turns of modules that were compiled from one model in several ways, and their errors: the first one's output is
    the expected output of the others."""
    modules = {name: Rnncc(f"{name}.so") for name in names}
    runners = {(name, threads): module.open(job, threads) for name, module in modules.items()}
    expected = {name: values.copy() for name, values in next(iter(runners.values())).run().items()}
    errors = check(job, expected, runners)
    return {key: Turn(runner, 0) for key, runner in runners.items()}, errors


def measure_steps(job, settings):
    """Like `measure`, for modules that rnncc made of one network without and with steps of the compiler."""
    (threads,) = settings["threads"]
    turns, errors = turns_of_modules(job, settings["contestants"], threads)
    done = rounds(turns, MIN_ROUNDS, settings["rounds"], settings["seconds"])
    result = {name: {"error": errors[name], **spread(turn.seconds)} for (name, _), turn in turns.items()}
    return {"case": job.case.name, "rounds": done, "bound": job.bound, "threads": threads, "contestants": result}


def measure_pair(job, settings):
    """Like `measure`, for modules of two compilers: the ratio of the second one's time to the first one's."""
    (threads,) = settings["threads"]
    turns, errors = turns_of_modules(job, settings["contestants"], threads)
    ratio = ratio_in_pairs(*turns.values(), settings["rounds"], settings["seconds"])
    result = {name: {"error": errors[name], **spread(turn.seconds)} for (name, _), turn in turns.items()}
    return {"case": job.case.name, "bound": job.bound, "threads": threads, "ratio": ratio, "contestants": result}


def any_case_named(name):
    return cases.case_named(name) or cnn_cases.case_named(name)


def any_job(case, folder):
    return (Job if isinstance(case, cases.Case) else CnnJob)(case, folder)


JOBS = {"rnn": (cases.case_named, Job, measure), "cnn": (cnn_cases.case_named, CnnJob, measure_network),
        "products": (product_cases.case_named, ProductJob, measure), "lowp": (lowp_cases.case_named, LowpJob, measure),
        "ablation": (cnn_cases.case_named, CnnJob, measure_steps),
        "compare": (any_case_named, any_job, measure_pair)}


def main(settings):
    gc.disable()
    case_named, make_job, measure_job = JOBS[settings["what"]]
    job = make_job(case_named(settings["case"]), Path(settings["folder"]))
    try:
        result = measure_job(job, settings)
    except Disagreement as reason:
        result = {"case": job.case.name, "disagreement": str(reason)}
    except Failed as reason:
        result = {"case": job.case.name, "failure": str(reason)}
    print(json.dumps(result), flush=True)
    os._exit(0)  # without waiting for the libraries' threads


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
