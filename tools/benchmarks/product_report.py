# SPDX-License-Identifier: MIT
"""Like report.py, for matrix products and networks of them.

Besides what report.py uses, a case of the results has multiply_adds, and of each contestant by_threads: thread count ->
median seconds.
"""
from benchmarks import report
from benchmarks.cnn_report import scaling_cells
from benchmarks.product_cases import case_named
from benchmarks.report import TITLES, cells, milliseconds, table
from benchmarks.report import heading  # noqa: F401 (run.py uses it)

JUDGED = ("rnncc", "onnxruntime")
FILES = ("product_results.json", "PRODUCT_RESULTS.md", "products.svg")


def title(result):
    return case_named(result["case"]).title


def at_most(result):
    return case_named(result["case"]).at_most


def judged(result):
    """The result with the one peer of which the goals are."""
    contestants = {name: found for name, found in result["contestants"].items() if name in JUDGED}
    return {**result, "contestants": contestants}


def line(result, names, isa):
    columns = "".join(f"{cell:>17}" for cell in cells(result, names, report.timed))
    paired, of_peer, shown, reached = report.verdict(judged(result), at_most(result))
    return f"{result['case']:24}{columns}{paired:>8}{of_peer:>8}{shown:>9}  {reached}"


def of_best_peer(result):
    ratio = report.ratio(result)
    return "-" if ratio is None else f"{ratio:.3f}"


def times_table(results, names):
    rows = [[title(result), *cells(result, names, report.timed), *report.verdict(judged(result), at_most(result)),
             of_best_peer(result)] for result in results["cases"]]
    return table(["case", *(TITLES[name] for name in names), "paired", "ratio", "at most", "met", "of best peer"], rows)


def flops_of(described, threads):
    """A second, of as many cores at once."""
    core = next(core for core in described["cores"] if core["threads"] == threads)
    return core["gflops"] * 1e9 * threads


def limit_seconds(result, described):
    """Its multiply-adds at the peak of the threads on which rnncc is fastest."""
    return 2 * result["multiply_adds"] / flops_of(described, result["contestants"]["rnncc"]["threads"])


def share_cells(result, described):
    """For each thread count: the share of the peak of as many."""
    by_threads = result["contestants"]["rnncc"]["by_threads"]
    return {int(count): 2 * result["multiply_adds"] / seconds / flops_of(described, int(count))
            for count, seconds in by_threads.items()}


def limit_row(result, described, counts):
    shares, least = share_cells(result, described), case_named(result["case"]).at_least
    fewest = shares[min(counts)]
    return [title(result), f"{result['multiply_adds'] * 1e-6:.2f}", milliseconds(limit_seconds(result, described)),
            *(f"{100 * shares[count]:.0f}%" for count in counts), f"{100 * least:.0f}%" if least else "-",
            "-" if not least else "yes" if fewest >= least else "no"]


def counts_of(results):
    return sorted({int(count) for result in results["cases"] for count in result["contestants"]["rnncc"]["by_threads"]})


def limit_table(results):
    counts = counts_of(results)
    head = ["case", "million multiply-adds", "limit, ms", *(f"of the peak, {count}" for count in counts), "at least",
            "met"]
    return table(head, [limit_row(result, results["machine"], counts) for result in results["cases"]])


def scaling_table(results, names):
    counts = counts_of(results)
    rows = [[title(result), *(cell for name in names for cell in scaling_cells(result, name, counts))]
            for result in results["cases"]]
    head = [column for name in names
            for column in [*(f"{TITLES[name]}, {count}" for count in counts), f"{counts[0]} to {counts[-1]}"]]
    return table(["case", *head], rows)


def error_table(results, names):
    rows = [[title(result), *cells(result, names, report.error_shown)] for result in results["cases"]]
    return table(["case", *(TITLES[name] for name in names)], rows)


PAGE = """# Matrix products: rnncc and its peers

{head}

## Time of a run

Medians in milliseconds, with the best thread count of those tried in brackets. `ratio` is rnncc's median over
ONNX Runtime's, `at most` its goal, `of best peer` that over the best peer's. `paired` is the median of the ratios of
each round: where it differs, the machine changed between rounds.

{times}

Products are M x N x K. The encoder has 4 layers of 256 features, 4 heads, 1024 hidden features and Gelu; the decoder 2
layers, each of which attends to what came before and to a memory of 64 steps; the BiLSTM 128 units a direction; the
conformer block half a feed-forward layer, attention, a convolution over 15 steps, a GRU, and the other half. All sizes
are known when they are compiled. Same weights, same input, f32; all take turns in one process, as in the other
comparisons.

## How far from the limit

The limit is the time of the multiply-adds at their measured peak. Of a product, rnncc is to reach 85% of the peak of one
thread, from 64 x 64 x 64 on; on several it waits at barriers, whose time counts in short runs.

{limits}

## From one core to all

Milliseconds by thread count, and how many times faster the most threads are than the fewest.

{scaling}

## Errors

The largest difference from ONNX Runtime on one thread, relative to the largest value if that is over 1. A difference
over {bound:g} ends the case.

{errors}
"""


def page(results):
    names = list(report.versions(results))
    return PAGE.format(head=report.head(results, FILES), times=times_table(results, names), limits=limit_table(results),
                       scaling=scaling_table(results, names), bound=results["cases"][0]["bound"],
                       errors=error_table(results, names))


def write(results, folder):
    def row(result):
        return report.bars(result, title(result), at_most(result), limit_seconds(result, results["machine"]))

    return report.write_files(results, folder, FILES, page, report.peer_chart(row))
