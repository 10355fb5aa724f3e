# SPDX-License-Identifier: MIT
"""Like report.py, for the modules of two compilers.

A case of the results has, under contestants, median_seconds and error of each compiler; and ratio, the median over pairs
of turns of this compiler's time to the other one's; compile_seconds of both; bound and threads.
"""
import json
import math

from benchmarks.report import milliseconds, table, where

BEFORE, AFTER = COMPILERS = ["before", "after"]  # the other compiler, this one
PAGE_FILE = "COMPARE_RESULTS.md"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def ratios(results):
    return [result["ratio"] for result in results["cases"]]


def compile_ratio(results):
    """The ratio of the sums over all cases."""
    before, after = (sum(seconds) for seconds in zip(*(result["compile_seconds"] for result in results["cases"])))
    return after / before


# The terminal


def heading(names):
    return f"{'':28}{'before ms':>12}{'after ms':>12}{'ratio':>8}{'compile s':>16}"


def columns(result):
    times = [milliseconds(result["contestants"][name]["median_seconds"]) for name in COMPILERS]
    return [*times, f"{result['ratio']:.3f}", " ".join(f"{seconds:.2f}" for seconds in result["compile_seconds"])]


def line(result, names, isa):
    before, after, ratio, seconds = columns(result)
    return f"{result['case']:28}{before:>12}{after:>12}{ratio:>8}{seconds:>16}"


# The page

PAGE = """# Two compilers

Made by `{command}` on {date}: modules of another rnncc (before) and of this one (after), {threads} threads, in turns.

{where}
* Ratio, after over before: geometric mean {mean:.3f}, least {least:.3f}, most {most:.3f}, of {count} cases
* Seconds of compiling, after over before, all cases together: {compiling:.3f}

A ratio is the median over pairs of turns; each compiler runs first in half of them.

{rows}
"""


def page(results):
    found = ratios(results)
    rows = [[result["case"], *columns(result)] for result in results["cases"]]
    return PAGE.format(
        command=results["command"], date=results["date"], threads=results["cases"][0]["threads"],
        where=where(results["machine"]), mean=geometric_mean(found), least=min(found), most=max(found), count=len(found),
        compiling=compile_ratio(results),
        rows=table(["case", "before ms", "after ms", "ratio", "compile s: before, after"], rows))


def write(results, folder):
    (folder / "compare_results.json").write_text(json.dumps(results, indent=1) + "\n")
    if results["cases"]:
        (folder / PAGE_FILE).write_text(page(results))
    return folder / PAGE_FILE
