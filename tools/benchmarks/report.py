# SPDX-License-Identifier: MIT
"""The page, its chart and the lines on the terminal, from results as measure.py and machine.py give them.

results: {"date", "command", "machine", "cases": [{"case", "rounds", "bound", "contestants": {name: {...}}}]}
"""
import json
import os
import statistics
from pathlib import Path

from benchmarks import isas, machine
from benchmarks.cases import case_named
from benchmarks.environment import OWN

FILES = ("results.json", "RESULTS.md", "rnn.svg")
TITLES = {"rnncc": "rnncc", "untuned": "rnncc untuned", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO",
          "torch": "PyTorch", "ncnn": "ncnn", "f32": "rnncc f32",
          "bf16_weights": "rnncc bf16 weights", "int8_weights": "rnncc int8 weights", "bf16_products": "rnncc bf16 products",
          "onnxruntime_int8": "ONNX Runtime int8",
          "openvino_int8": "OpenVINO int8", "openvino_bf16": "OpenVINO bf16"}
MARKERS = {"onnxruntime": "o", "openvino": "s", "torch": "^", "ncnn": "^", "onnxruntime_int8": "o", "openvino_int8": "s",
           "openvino_bf16": "D"}


def title(result):
    return case_named(result["case"]).title


def goal(result, isa):
    return case_named(result["case"]).goal(isa)


def best_peer(result):
    """(name, median seconds)."""
    return min(((name, found["median_seconds"]) for name, found in result["contestants"].items() if name not in OWN),
               key=lambda pair: pair[1], default=(None, None))


def ratio(result):
    name, seconds = best_peer(result)
    return result["contestants"]["rnncc"]["median_seconds"] / seconds if name else None


def paired_ratio(result):
    """The median over the rounds of rnncc's turn over the best peer's: both then met the machine in the same state."""
    name, _ = best_peer(result)
    if not name:
        return None
    ours, theirs = (result["contestants"][who]["turn_medians"] for who in ("rnncc", name))
    return statistics.median(our / their for our, their in zip(ours, theirs))


def milliseconds(seconds):
    """Three significant digits."""
    value = seconds * 1e3
    return f"{value:.{2 if value >= 1 else 3 if value >= 0.1 else 4}f}" if value < 100 else f"{value:.0f}"


def timed(found):
    return f"{milliseconds(found['median_seconds'])} ({found['threads']})"


def cells(result, names, shown):
    """The shown figure of each contestant; - if it did not take part."""
    figures = (result["contestants"].get(name) for name in names)
    return ["-" if found is None else shown(found) for found in figures]


def start_milliseconds(found):
    return milliseconds(found["start_seconds"])


def mebibytes_beyond_weights(found):
    return f"{found['bytes_beyond_weights'] / 2**20:.1f}"


def error_shown(found):
    return f"{found['error']:.1e}"


def versions(results):
    """Name -> version, of all that took part in a case."""
    return {name: found["version"] for result in results["cases"] for name, found in result["contestants"].items()}


def verdict(result, at_most):
    """Paired ratio, ratio, at most, met."""
    of_peer = ratio(result)
    reached = "-" if of_peer is None or at_most is None else "yes" if of_peer <= at_most else "no"
    figures = [(paired_ratio(result), 3), (of_peer, 3), (at_most, 2)]
    return [*("-" if value is None else f"{value:.{digits}f}" for value, digits in figures), reached]


# The terminal


def heading(names):
    columns = "".join(f"{TITLES[name]:>17}" for name in names)
    return f"{'milliseconds (threads)':24}{columns}  paired   ratio  at most  met"


def line(result, names, isa):
    return result_line(result, names, goal(result, isa))


def result_line(result, names, at_most):
    columns = "".join(f"{cell:>17}" for cell in cells(result, names, timed))
    paired, of_peer, shown, reached = verdict(result, at_most)
    return f"{result['case']:24}{columns}{paired:>8}{of_peer:>8}{shown:>9}  {reached}"


# The page


def table(head, rows):
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def times_table(results, names):
    rows = [[title(result), *cells(result, names, timed), *verdict(result, goal(result, results["machine"]["isa"]))]
            for result in results["cases"]]
    return table(["case", *(TITLES[name] for name in names), "paired", "ratio", "at most", "met"], rows)


def roofline_row(result, described):
    case, ours = case_named(result["case"]), result["contestants"]["rnncc"]
    least, core = machine.limit(described, case)
    share = machine.working_set(case) / core["threads"]
    cores, seconds = ours["threads"], ours["median_seconds"]
    _, peer = best_peer(result)
    return [case.title, f"{share / 1024:.0f}", f"{machine.streamed_bytes(case) / seconds / cores * 1e-9:.0f}",
            f"{machine.bandwidth(core, share):.0f}", f"{machine.flops(case) / seconds / cores * 1e-9:.0f}",
            f"{core['gflops']:.0f}", milliseconds(least), milliseconds(seconds),
            f"{100 * least / seconds:.0f}%", f"{least / peer:.2f}" if peer else "-"]


def roofline_table(results):
    head = ["case", "KiB of weights a core", "GB/s a core", "of", "GFLOP/s a core", "of", "limit, ms", "rnncc, ms",
            "of the limit", "ratio at the limit"]
    return table(head, [roofline_row(result, results["machine"]) for result in results["cases"]])


def start_table(results, names):
    rows = [[title(result),
             *cells(result, names, start_milliseconds), *cells(result, names, mebibytes_beyond_weights)]
            for result in results["cases"]]
    head = [f"{TITLES[name]}, {unit}" for unit in ("ms", "MiB") for name in names]
    return table(["case", *head], rows)


def error_table(results, names):
    rows = [[title(result), *cells(result, names, error_shown), f"{result['bound']:.1e}"]
            for result in results["cases"]]
    return table(["case", *(TITLES[name] for name in names), "bound"], rows)


def machine_table(described):
    cores = described["cores"]
    head = ["read over and over by each core"]
    for core in cores:
        head += [f"GB/s, {core['threads']} at once: forward", "alternating"]
    rows = []
    for k, point in enumerate(cores[0]["read"]):
        rows.append([f"{point['bytes'] // 1024} KiB"])
        for core in cores:
            rows[-1] += [f"{core['read'][k]['forward']:.0f}", f"{core['read'][k]['alternating']:.0f}"]
    return table(head, rows)


def versions_shown(results):
    return ", ".join(f"{TITLES[name]} {version}" for name, version in versions(results).items() if name != "untuned")


# What was measured, and where


def named(names):
    return ", ".join(TITLES[name] for name in names)


def obedience(results):
    """Who keeps to the instruction set, of the contestants of all cases, if a CPU with a wider one was told to."""
    seen = {}
    for name, found in ((name, found) for result in results["cases"] for name, found in result["contestants"].items()):
        if "wider" in found:
            seen.setdefault(name, set()).add(found["wider"])
    used = [name for name in seen if True in seen[name]]
    unknown = [name for name in seen if None in seen[name] and name not in used]
    return [name for name in seen if name not in used + unknown], used, unknown


HELD = """

  The CPU has {wider}, too. Peers are held to {isa} by variables, {variables}; ONNX Runtime, OpenVINO
  and ncnn, which do not obey these or not always, by copies of their libraries that find {isa}'s registers alone saved by
  the system."""


def held_to(results):
    """Of a machine that could do more; empty if it could not."""
    described = results["machine"]
    vectors = isas.speeds_of(described["isa"])
    if described.get("best_isa", vectors) == vectors:
        return ""
    kept, used, unknown = obedience(results)
    isa, wider = (isas.ISAS[described[which]] for which in ("isa", "best_isa"))
    said = [HELD.format(wider=wider.title, isa=isa.title, variables=", ".join(
        f"`{name}={value}`" for name, value in isa.held.peers.items()))]
    said += [f"**Not held, because they used wider registers: {named(used)}.**"] if used else []
    said += [f"The kernel saw nothing in wider registers of {named(kept)}."] if kept else []
    said += [f"The kernel does not say whether wider registers were used by {named(unknown)}."] if unknown else []
    return "\n  ".join(said)


def where(described):
    isa = isas.ISAS[described["isa"]]
    return (f"* Machine: {described['cpu']}, {described['cpus']} CPUs, caches {', '.join(described['caches'])}; "
            f"{described['system']}\n* Instruction set: {isa.title}, of modules for `{isa.target}`")


HEAD = """Made by `{command}` on {date}; [{figures}]({figures}) has all figures.

{where}; up to {threads} threads{held}
* Contestants: {versions}

![time of rnncc against the best peer]({drawing})"""


def head(results, files):
    """Which machine, instruction set, date and versions the page's figures are of."""
    described = results["machine"]
    figures, _, drawing = (isas.of_file(name, described["isa"]) for name in files)
    return HEAD.format(
        command=results["command"], date=results["date"], figures=figures, drawing=drawing, where=where(described),
        threads=described["cores"][-1]["threads"], held=held_to(results), versions=versions_shown(results))


PAGE = """# Recurrent layers: rnncc and its peers

{head}

## Time of a run

Medians in milliseconds, with the best thread count of those tried in brackets. `ratio` is rnncc's median over the best
peer's, `at most` its goal. `paired` is the median of the ratios of each round: where it differs, the machine changed
between rounds, as a virtual one does when two of its CPUs share a core for a while.

{times}

Same weights, same input, f32, I = H, weights known when the model is compiled. Longer sequences start from zero; with
T=1 the caller passes the state and gets the new one. GRU is the variant with `linear_before_reset`. All take turns in
one process, each with every thread count except those that the first one or two rounds show to be a fifth slower than
its best. A turn is some uncounted runs, then some counted ones. After a peer's turn there is a pause, because its
threads keep spinning. Before a turn all CPUs are kept busy until they are as fast together as they can be: those of a
virtual machine that have slept may share a core at first. rnncc, ONNX Runtime and OpenVINO are called in a loop in C,
PyTorch from Python.

## How far from the limit

A run reads the recurrent weights in every step. The limit is the time of these reads at the bandwidth measured for a
core's share of the weights, or of the multiply-adds at their measured peak, whichever is longer; plus the same for the
input's product. Barriers, activations, inputs and outputs are left out. `ratio at the limit` is the limit over the best
peer's time: with f32 weights, no ratio on this machine can be much lower.

{roofline}

{reads}

## Start and memory

The time from loading the model's file to the first result, and the growth of resident memory at its peak, without the
size of the weights. Each is measured in a fresh process whose libraries are loaded, on all threads; files are in the
page cache, inputs and outputs are not counted. PyTorch's start is building the layer and copying weights that are in
memory.

{starts}

## Errors

The largest difference from double precision, relative to the largest value if that is over 1. rnncc's bound is
4 ceil(log2(K T)) eps a layer, K = I + H; a peer whose error is 1e-5 larger ends the case.

{errors}
"""


def page(results):
    names = list(versions(results))
    return PAGE.format(
        head=head(results, FILES), times=times_table(results, names),
        roofline=roofline_table(results), reads=machine_table(results["machine"]), starts=start_table(results, names),
        errors=error_table(results, names))


# The chart


def bars(result, title, at_most, limit):
    """A row of the chart. limit: seconds."""
    name, fastest = best_peer(result)
    parts = {each: found["median_seconds"] / fastest for each, found in result["contestants"].items() if name}
    return {"title": title, "ratio": ratio(result), "at_most": at_most, "limit": limit / fastest if name else None,
            "parts": parts}


def drawing(width, height):
    """(figure, axes). Sizes in inches."""
    os.environ.setdefault("MPLBACKEND", "svg")
    from matplotlib import pyplot, rcParams
    rcParams.update({"svg.hashsalt": "rnncc", "svg.fonttype": "none"})  # same figures, same file; text stays text
    return pyplot.subplots(figsize=(width, height), layout="constrained")


def save(figure, path):
    from matplotlib import pyplot
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def chart(rows, path):
    """A row for each case: each contestant's time as a part of the best peer's, rnncc's goal, and the limit."""
    figure, axes = drawing(8, 1 + 0.27 * len(rows))
    places = range(len(rows))
    axes.barh(places, [row["ratio"] for row in rows], color="#8fb3d9", label="rnncc")
    untuned = [(place, row["parts"]["untuned"]) for place, row in zip(places, rows) if "untuned" in row["parts"]]
    if untuned:
        axes.barh(*zip(*untuned), color="none", edgecolor="#2f5f8f", linewidth=0.7, label=TITLES["untuned"])
    expected = [(row["at_most"], place) for place, row in zip(places, rows) if row["at_most"]]
    if expected:
        axes.plot(*zip(*expected), "|", color="black", markersize=11, label="at most")
    axes.plot([row["limit"] for row in rows], places, "|", color="#c8102e", markersize=6, label="limit")
    for name, marker in MARKERS.items():
        points = [(row["parts"][name], place) for place, row in zip(places, rows) if name in row["parts"]]
        if points:
            axes.plot(*zip(*points), marker, color="#9c3d1a", fillstyle="none", markersize=5, label=TITLES[name])
    axes.set_yticks(places, [row["title"] for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.3, -0.7)
    axes.set_xlim(0, 2.5)
    axes.axvline(1, color="grey", linewidth=0.6)
    axes.set_xlabel("time, best peer = 1; farther than 2.5 is not shown")
    figure.legend(fontsize=8, loc="outside upper center", ncols=7, columnspacing=1.2, handlelength=1.5)
    save(figure, path)


def peer_chart(row):
    """draw(results, path) of a chart, where there is a peer. row: of the chart, of a case."""
    def draw(results, path):
        if best_peer(results["cases"][0])[0]:
            chart([row(case) for case in results["cases"]], path)

    return draw


def write_files(results, folder, names, page, draw):
    """All figures, the page, and the chart, under these names: each instruction set has its own. Returns the page's
    path."""
    figures, page_file, chart_file = (Path(folder) / isas.of_file(name, results["machine"]["isa"]) for name in names)
    figures.write_text(json.dumps(results, indent=1) + "\n")
    if results["cases"]:
        page_file.write_text(page(results))
        draw(results, chart_file)
    return page_file


def write(results, folder):
    def row(result):
        least, _ = machine.limit(results["machine"], case_named(result["case"]))
        return bars(result, title(result), goal(result, results["machine"]["isa"]), least)

    return write_files(results, folder, FILES, page, peer_chart(row))
