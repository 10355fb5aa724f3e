# SPDX-License-Identifier: MIT
"""Like report.py, for convolutional networks.

Besides what report.py uses, a case of the results has multiply_adds, multiply_adds_3x3, weight_bytes, packed_bytes,
arena_bytes, module_bytes, compile_seconds, meanwhile (see machine.py), limits (see layers.py), and of each contestant
by_threads: thread count -> median seconds. The untuned module also has to_tuned: the median ratio of its turns to the
tuned one's, in turns of these two alone.
"""
from benchmarks import report
from benchmarks.cnn_cases import case_named
from benchmarks.environment import OWN
from benchmarks.layers import KINDS
from benchmarks.report import TITLES, best_peer, cells, milliseconds, table
from benchmarks.report import heading  # noqa: F401 (run.py uses it)

FILES = ("cnn_results.json", "CNN_RESULTS.md", "cnn.svg")
MiB = 2**20


def title(result):
    return case_named(result["case"]).title


def at_most(result):
    return case_named(result["case"]).at_most


def line(result, names, isa):
    return report.result_line(result, names, at_most(result))


def times_table(results, names):
    rows = [[title(result), *cells(result, names, report.timed),
             *report.verdict(result, at_most(result)), undisturbed_ratio(result),
             *([to_tuned(result)] if "untuned" in names else [])] for result in results["cases"]]
    tuning = ["untuned to tuned"] if "untuned" in names else []
    return table(["network", *(TITLES[name] for name in names), "paired", "ratio", "at most", "met",
                  "undisturbed", *tuning], rows)


def undisturbed_ratio(result):
    """The ratio of rnncc's 10th percentile to that of the peer for which it is least."""
    best = {name: found["p10_seconds"] for name, found in result["contestants"].items()}
    peers = best.keys() - set(OWN)
    return f"{best['rnncc'] / min(best[name] for name in peers):.3f}" if peers else "-"


def to_tuned(result):
    untuned = result["contestants"].get("untuned")
    return f"{untuned['to_tuned']:.3f}" if untuned else "-"


def peak(results):
    """Multiply-adds a second of all cores together."""
    core = results["machine"]["cores"][-1]
    return core["gflops"] * 1e9 * core["threads"] / 2


def limit_row(result, results):
    direct, seconds = result["multiply_adds"] / peak(results), result["contestants"]["rnncc"]["median_seconds"]
    _, peer = best_peer(result)
    share = result["multiply_adds_3x3"] / result["multiply_adds"]
    return [title(result), f"{result['multiply_adds'] * 1e-9:.2f}", f"{100 * share:.0f}%",
            f"{2e-9 * result['multiply_adds'] / seconds:.0f}", f"{100 * direct / seconds:.0f}%", milliseconds(direct),
            f"{direct / peer:.2f}" if peer else "-"]


def limit_table(results):
    head = ["network", "GMAC", "3x3, stride 1", "GFLOP/s of rnncc", "of the peak", "direct limit, ms", "its ratio"]
    return table(head, [limit_row(result, results) for result in results["cases"]])


def reach(result):
    """The part of the limit that a missed ratio would need."""
    _, peer = best_peer(result)
    wanted, of_peer = at_most(result), report.ratio(result)
    if wanted is None or of_peer is None:
        return "-"
    if of_peer <= wanted:
        return "met"
    needed = result["limits"]["least_seconds"] / (wanted * peer)
    return f"{100 * needed:.0f}% of the limit" if needed < 1 else "more than the limit allows"


def layers_row(result, threads):
    found, ours = result["limits"], result["contestants"]["rnncc"]
    seconds = ours["median_seconds"]
    _, peer = best_peer(result)
    wanted = at_most(result)
    parts = ("computing_seconds", "reading_seconds", "moving_seconds", "least_seconds")
    meanwhile = (f"{threads * result['meanwhile'][what]:.0f}" for what in ("gflops", "memory"))
    return [title(result), *meanwhile, *(milliseconds(found[part]) for part in parts),
            *(f"{100 * found['least_seconds'] / taken:.0f}%" for taken in (seconds, ours["p10_seconds"])),
            f"{found['least_seconds'] / peer:.2f}" if peer else "-", f"{wanted:.2f}" if wanted else "-", reach(result)]


def layers_table(results):
    head = ["network", "GFLOP/s", "GB/s", "computing, ms", "reading, ms", "moving, ms", "limit, ms", "rnncc reaches",
            "undisturbed", "its ratio", "at most", "takes"]
    threads = results["machine"]["cores"][-1]["threads"]
    return table(head, [layers_row(result, threads) for result in results["cases"]])


def kinds_table(results):
    """The time of the kernels of each kind, and the limit as a part of it."""
    present = [kind for kind in KINDS if any(result["limits"]["taken_by_kind"][kind] for result in results["cases"])]
    rows = [[title(result), *(kind_cell(result["limits"], kind) for kind in present)] for result in results["cases"]]
    return table(["network", *(KINDS[kind] for kind in present)], rows)


def kind_cell(limits, kind):
    taken, least = limits["taken_by_kind"][kind], limits["by_kind"][kind]
    return f"{milliseconds(taken)} ({100 * least / taken:.0f}%)" if taken else "-"


def scaling_table(results, names):
    """Times by thread count, and how many times faster than on the fewest."""
    counts = sorted({int(count) for result in results["cases"] for found in result["contestants"].values()
                     for count in found["by_threads"]})
    rows = [[title(result), *(cell for name in names for cell in scaling_cells(result, name, counts))]
            for result in results["cases"]]
    head = [column for name in names
            for column in [*(f"{TITLES[name]}, {count}" for count in counts), f"{counts[0]} to {counts[-1]}"]]
    return table(["network", *head], rows)


def scaling_cells(result, name, counts):
    if name not in result["contestants"]:
        return ["-"] * (len(counts) + 1)
    seconds = {int(count): value for count, value in result["contestants"][name]["by_threads"].items()}
    return [*(milliseconds(seconds[count]) for count in counts), f"{seconds[counts[0]] / seconds[counts[-1]]:.2f}"]


def start_table(results, names):
    rows = [[title(result),
             *cells(result, names, report.start_milliseconds), *cells(result, names, report.mebibytes_beyond_weights)]
            for result in results["cases"]]
    return table(["network", *(f"{TITLES[name]}, {unit}" for unit in ("ms", "MiB") for name in names)], rows)


def module_row(result):
    found = result["contestants"]["rnncc"]
    resident = found["bytes_beyond_weights"] + result["weight_bytes"] - result["packed_bytes"] - result["arena_bytes"]
    sizes = [result["weight_bytes"], result["packed_bytes"], result["arena_bytes"], resident,
             result["module_bytes"] - result["packed_bytes"]]
    return [title(result), f"{result['compile_seconds']:.1f}",
            milliseconds(found["start_seconds"] - found["median_seconds"]), *(f"{size / MiB:.2f}" for size in sizes)]


def module_table(results):
    head = ["network", "compiling, s", "start less a run, ms", "weights, MiB", "packed", "arena",
            "resident beyond packed and arena", "module beyond packed"]
    return table(head, [module_row(result) for result in results["cases"]])


def error_table(results, names):
    rows = [[title(result), *cells(result, names, report.error_shown)] for result in results["cases"]]
    return table(["network", *(TITLES[name] for name in names)], rows)


PAGE = """# Convolutional networks: rnncc and its peers

{head}

## Time of a run

Medians in milliseconds, with the best thread count of those tried in brackets. `ratio` is rnncc's median over the best
peer's, `at most` its goal. `paired` is the median of the ratios of each round: where it differs, the machine changed
between rounds, as a virtual one does when two of its CPUs share a core for a while. `undisturbed` is the ratio of the
times below which a tenth of the runs stays.

{times}
{untuned}
Same weights, same image, f32. The networks are those of `models/generate`; ncnn reads the ONNX file converted by pnnx.
All take turns in one process. A turn is an uncounted run, then a counted one (several if they are short). After a peer's
turn there is a pause, because its threads keep spinning; before each turn all CPUs are kept busy until they are as fast
together as they can be, which those of a virtual machine that have slept are not at first. rnncc, ONNX Runtime and
OpenVINO are called in C, ncnn from Python.

## How far from the limit

The peak is the measured speed of multiply-adds in registers on all cores: {peak:.0f} GFLOP/s. The direct limit is the
time of the network's multiply-adds at that peak. `its ratio` is this limit over the best peer's time.

{limits}

With the algorithms that the network's layers use, one after the other:

* `GFLOP/s` and `GB/s` are the peak of all cores and the speed at which they read memory, both medians of measurements in
  each round beside the contestants' turns: a virtual machine's CPUs may share a core for a while, and its memory is
  shared with others.
* `computing` is the time of their multiply-adds at that peak. Winograd's algorithm has fewer, and those of tiles that
  reach beyond the image count; direct ones with padding do not.
* `reading` is the time to read the packed weights, from memory, or at the measured speed of the caches if these hold all
  of them.
* `moving` is the time to move each kernel's inputs, as far as windows reach, residual and outputs, at the measured speed
  of the cache that holds a core's share of each tensor: the longer of reading and writing, which may overlap. Kernels
  without weights count here: pooling, transforms of layouts, concatenations that are copied, softmax, boxes. So do the
  points that Winograd's transforms write and read.

The limit is the longest of these, kernel by kernel: at best, computing hides moving. A Winograd kernel has three such
steps, because each needs the results of the one before: it transforms inputs, multiplies, transforms outputs. Costs that
an implementation could hide or avoid are left out: the arithmetic of Winograd's transforms, which may overlap with loads
and stores; activations, and all arithmetic of kernels without weights; vectors that channels do not fill; barriers.
`undisturbed` is the part of the limit that the fastest tenth of rnncc's runs reaches. `takes` is the part of the limit
that a missed ratio would need.

{layers}

Where the time goes: milliseconds of the kernels of each kind, by the module's profile, with the limit as a part of them
in brackets. Each kernel's time is its median, which a single disturbance does not change: together they can be less than
the median of runs, each of which is disturbed somewhere.

{kinds}

## From one core to all

Milliseconds by thread count, and how many times faster the most threads are than the fewest.

{scaling}

## Start and memory

The time from loading the model's file to the first result, and the growth of resident memory at its peak, without the
size of the weights. Each is measured in a fresh process whose libraries are loaded, on all threads; files are in the
page cache, inputs and outputs are not counted.

{starts}

## What rnncc makes

Packed weights are as the kernels read them: those of Winograd convolutions are larger than the model's. ResNet-50 should
compile in 15 s, start within 20 ms more than a run takes, and have at most 8 MB resident beyond packed weights and
arena, and 1.5 MB in the module beyond packed weights.

{modules}

## Errors

The largest difference from ONNX Runtime on one thread: relative to the largest probability, or of a detection's score
and corners, each compared with the nearest one of its class. A difference over {bound:g} ends the case.

{errors}
"""


UNTUNED = """
`rnncc untuned` is compiled with `--schedules=none`, by predicted times alone; it runs on the maximum thread count only.
`untuned to tuned` is the median ratio of its time to the tuned module's on as many threads, in turns of these two alone.
"""


def page(results):
    names = list(report.versions(results))
    started = [name for name in names if name != "untuned"]
    return PAGE.format(
        head=report.head(results, FILES), times=times_table(results, names),
        untuned=UNTUNED if "untuned" in names else "", peak=2e-9 * peak(results),
        limits=limit_table(results), layers=layers_table(results), kinds=kinds_table(results),
        scaling=scaling_table(results, started), starts=start_table(results, started),
        modules=module_table(results), bound=results["cases"][0]["bound"],
        errors=error_table(results, names))


def write(results, folder):
    def row(result):
        return report.bars(result, title(result), at_most(result), result["limits"]["least_seconds"])

    return report.write_files(results, folder, FILES, page, report.peer_chart(row))
