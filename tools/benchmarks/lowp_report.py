# SPDX-License-Identifier: MIT
"""Like report.py, for low precision.

Besides what report.py uses, a case of the results has work (of lowp_limits.py), file_bytes: of the ONNX files, and
module_bytes: contestant -> of its module.
"""
import math
import statistics

from benchmarks import lowp_limits, report
from benchmarks.contestants import QUANTISED
from benchmarks.lowp_cases import ALL_IMAGES, BEST, case_named
from benchmarks.report import TITLES, best_peer, cells, milliseconds, table

FILES = ("lowp_results.json", "LOWP_RESULTS.md", "lowp.svg")
MIB = 1 << 20


def title(result):
    return case_named(result["case"]).title


def median(result, who):
    """None if it took no part."""
    found = result["contestants"].get(who)
    return found and found["median_seconds"]


def named_peer(result, of):
    return best_peer(result)[0] if of == BEST else of


def compared(goal, other):
    """What a goal is about, if not about rnncc's own int8."""
    return TITLES[other] if goal.who == "rnncc" else f"{TITLES[goal.who]} of {TITLES[other]}"


def goals(result, isa):
    """(goal, the contestant compared with, paired ratio, ratio) of those whose contestants took part."""
    found = []
    for goal in case_named(result["case"]).goals(isa):
        other = named_peer(result, goal.of)
        if median(result, goal.who) and median(result, other):
            turns = (result["contestants"][who]["turn_medians"] for who in (goal.who, other))
            paired = statistics.median(ours / theirs for ours, theirs in zip(*turns))
            found.append((goal, other, paired, median(result, goal.who) / median(result, other)))
    return found


# The terminal


def heading(names):
    return f"{'milliseconds (threads)':24}" + "".join(f"{TITLES[name]:>19}" for name in names) + "  goals"


def line(result, names, isa):
    shown = [f"{ratio:.2f} of {compared(goal, other)} ({'met' if ratio <= goal.at_most else f'at most {goal.at_most:.2f}'})"
             for goal, other, _, ratio in goals(result, isa)]
    return f"{result['case']:24}" + "".join(f"{cell:>19}" for cell in cells(result, names, report.timed)) + "  " + ", ".join(shown)


# The page


def times_table(results, names):
    rows = [[title(result), *cells(result, names, report.timed), ratio_cell(result, best_peer(result)[0]),
             ratio_cell(result, "f32")] for result in results["cases"]]
    return table(["case", *(TITLES[name] for name in names), "of best peer", "of f32"], rows)


def ratio_cell(result, other):
    return f"{median(result, 'rnncc') / median(result, other):.2f}" if other and median(result, other) else "-"


def goal_table(results):
    rows = [[title(result), compared(goal, other), f"{paired:.3f}", f"{ratio:.3f}", f"{goal.at_most:.2f}",
             "yes" if ratio <= goal.at_most else "no"]
            for result in results["cases"] for goal, other, paired, ratio in goals(result, results["machine"]["isa"])]
    return table(["case", "compared with", "paired", "ratio", "at most", "met"], rows)


def image_ratios(results):
    ratios = ((result, best_peer(result)[0]) for result in results["cases"] if case_named(result["case"]).kind == "image")
    return [median(result, "rnncc") / median(result, peer) for result, peer in ratios if peer]


def images_line(results):
    ratios, most = image_ratios(results), ALL_IMAGES.get(results["machine"]["isa"])
    if not ratios:
        return ""
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    judged = f"; at most {most:.2f}: {'met' if mean <= most else 'not met'}" if most else ""
    return f"Of the image networks, the geometric mean of the ratios to the best peer is {mean:.3f}{judged}.\n"


def core_of(result, described):
    threads = result["contestants"]["rnncc"]["threads"]
    return next((core for core in described["cores"] if core["threads"] == threads), described["cores"][-1])


def known(described):
    """Whether the peak of 8-bit products is."""
    return all(core["int8_gops"] for core in described["cores"])


def limit_row(result, described):
    core = core_of(result, described)
    computing, reading, tensors, least = lowp_limits.seconds(core, result["work"])
    macs = sum(work[0] * work[-1] for work in result["work"])
    small = sum(work[0] * work[-1] for work in result["work"] if work[4])
    return [title(result), f"{macs * 1e-6:.1f}", f"{100 * small / macs:.0f}%",
            *(milliseconds(part) for part in (computing, reading, tensors, least)),
            milliseconds(median(result, "rnncc")), f"{100 * least / median(result, 'rnncc'):.0f}%",
            f"{least / best_peer(result)[1]:.2f}" if best_peer(result)[0] else "-"]


def limit_table(results):
    described = results["machine"]
    if not known(described):
        return "The peak of 8-bit products is not known of this instruction set."
    head = ["case", "million multiply-adds", "int8", "computing, ms", "reading, ms", "moving, ms", "limit, ms", "rnncc, ms",
            "of the limit", "its ratio"]
    return table(head, [limit_row(result, described) for result in results["cases"]])


def peaks_table(results):
    rows = [[str(core["threads"]), f"{core['gflops']:.0f}", f"{core['int8_gops']:.0f}"]
            for core in results["machine"]["cores"]]
    return table(["cores at once", "GFLOP/s of f32, each", "10^9 operations/s of int8, each"], rows)


def decibels(found):
    return f"{-20 * math.log10(found['error']):.1f}" if found["error"] else "exact"


def error_table(results, names):
    rows = [[title(result), *cells(result, names, decibels), f"{-20 * math.log10(result['bound']):.1f}"]
            for result in results["cases"]]
    return table(["case", *(TITLES[name] for name in names), "at least"], rows)


def size_table(results):
    modules = sorted({name for result in results["cases"] for name in result["module_bytes"]}, key=list(TITLES).index)
    files = ["model.onnx", QUANTISED]
    rows = [[title(result),
             *(f"{result['module_bytes'][name] / MIB:.2f}" if name in result["module_bytes"] else "-" for name in modules),
             *(f"{result['file_bytes'][name] / MIB:.2f}" if name in result["file_bytes"] else "-" for name in files)]
            for result in results["cases"]]
    return table(["MiB", *(TITLES[name] for name in modules), *files], rows)


PAGE = """# Low precision: rnncc and its peers

{head}

## Time of a run

Medians in milliseconds, with the best thread count of those tried in brackets. `of best peer` is rnncc's median over
the best peer's, `of f32` over that of rnncc's module of the f32 model.

{times}

rnncc, ONNX Runtime and OpenVINO's int8 read the same quantised model, which ONNX Runtime's quantisers write: u8
activations, s8 weights with a scale for each output channel. They have no GRU: rnncc's is the f32 model with
`--precision=int8-dynamic`, ONNX Runtime's is f32. rnncc's bf16 and int8 weights are the f32 model with `--precision=bf16`
and `int8`: products and sums are in f32; its bf16 products, by AMX alone, `--precision=bf16-dynamic`. LSTM and cases named dynamic have scales of activations
that each run finds (DynamicQuantizeLSTM, MatMulInteger), the others fixed ones (QuantizeLinear and DequantizeLinear
around each layer). OpenVINO's bf16 is its own conversion of the f32 model. OpenVINO computes dynamic models in f32, so it
takes no part in these, nor in DenseNet, of whose quantised concatenations it dies; nor does ncnn, whose Python package has no quantiser. All take turns in one process, as in the other comparisons.

## What is to be reached

`paired` is the median of the ratios of each round: where it differs, the machine changed between rounds.

{goals}

{images}
## How far from the limit

The limit is that of the products, one after the other: of each the longest of its multiply-adds at their peak, of
reading its weights, from the cache or memory that holds all of them, and of moving its inputs or outputs, each from the
cache that holds a core's share. A recurrent layer reads its recurrent weights, a byte each, in every step. `int8` is the
part of the multiply-adds whose both factors are integers of 8 bits. Activations, all nodes without products, and barriers
are left out. `its ratio` is the limit over the best peer's time.

{limits}

{peaks}

{reads}

## Errors

The signal-to-noise ratio of the outputs in decibels: the squares of f32's output over those of the differences from it.
Of SSD, whose rows change places, that of the scores. If rnncc has less than `at least`, that ends the case: it is 30 dB,
or where it is lower 3.5 dB below what ONNX Runtime has with the same quantised model and exact sums. On CPUs without VNNI
the peers' sums of products saturate, so their ratio may be lower.

{errors}

## Sizes

Of modules, with their code and packed weights, and of the ONNX files.

{sizes}
"""


def page(results):
    names = list(report.versions(results))
    return PAGE.format(head=report.head(results, FILES), times=times_table(results, names), goals=goal_table(results),
                       images=images_line(results), limits=limit_table(results), peaks=peaks_table(results),
                       reads=report.machine_table(results["machine"]), errors=error_table(results, names),
                       sizes=size_table(results))


def at_most(result, isa):
    """Of the best peer's time."""
    return next((goal.at_most for goal, other, *_ in goals(result, isa) if other == best_peer(result)[0]), None)


def write(results, folder):
    described = results["machine"]

    def row(result):
        least = lowp_limits.seconds(core_of(result, described), result["work"])[-1] if known(described) else math.nan
        return report.bars(result, title(result), at_most(result, described["isa"]), least)

    return report.write_files(results, folder, FILES, page, report.peer_chart(row))
