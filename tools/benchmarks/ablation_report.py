# SPDX-License-Identifier: MIT
"""Like report.py, for the steps of ablation_cases.py.

A case of the results has, under contestants, median_seconds, turn_medians and error of each step; and multiply_adds,
rounds, bound, threads. A step's speed-up is the median over the rounds of plain NCHW's turn over the step's own: both
turns of a round are measured in the same state of the machine.
"""
import statistics
import textwrap

from benchmarks import isas, report
from benchmarks.ablation_cases import BASELINE, STEPS
from benchmarks.cnn_cases import case_named
from benchmarks.report import milliseconds, table

FILES = ("ablation_results.json", "ABLATION_RESULTS.md", "ablation.svg")
COLOURS = ["#999999", "#56b4e9", "#0072b2", "#e69f00", "#009e73", "#d55e00"]  # Okabe and Ito's, told apart by all eyes
BAR = 0.8 / (len(STEPS) - 1)  # of a network's place
LEGEND = 7.5  # inches that all steps' titles take in a row
CHARACTERS = 17  # of the words below, an inch


def title(result):
    return case_named(result["case"]).title


def titles(results):
    """Step's name -> its title. If no convolution has a record, nothing was tuned."""
    tuned = any(result["recorded"][0] for result in results["cases"])
    return {step.name: step.title if tuned or not step.default_schedules else f"{step.title}, but no records"
            for step in STEPS}


def records_shown(results):
    shown = (f"{title(result)} {known} of {n}" for result in results["cases"] for known, n in [result["recorded"]])
    return textwrap.fill(f"Convolutions that the last step has a record of `rnncc tune` for: {'; '.join(shown)}.", 120)


def speed_up(result, step, over=BASELINE):
    """(lower quartile, median, upper quartile)."""
    slow, fast = (result["contestants"][name]["turn_medians"] for name in (over, step))
    return tuple(statistics.quantiles((a / b for a, b in zip(slow, fast)), n=4, method="inclusive"))


# The terminal


def heading(names):
    return f"{'times plain NCHW':18}" + "".join(f"{step.title:>23}" for step in STEPS[1:])


def line(result, names, isa):
    columns = (f"{median:.2f} ({lower:.2f}-{upper:.2f})"
               for lower, median, upper in (speed_up(result, step.name) for step in STEPS[1:]))
    return f"{result['case']:18}" + "".join(f"{column:>23}" for column in columns)


# The page


def step_table(results, cell, steps=STEPS):
    """A row a step, a column a network."""
    called = titles(results)
    rows = [[called[step.name], *(cell(result, step) for result in results["cases"])] for step in steps]
    return table(["cumulative", *map(title, results["cases"])], rows)


def speed_up_cell(result, step):
    lower, median, upper = speed_up(result, step.name)
    return "1" if step.name == BASELINE else f"{median:.2f} ({lower:.2f} to {upper:.2f})"


def own_cell(result, step):
    before = STEPS[STEPS.index(step) - 1]
    return f"{speed_up(result, step.name, before.name)[1]:.2f}"


def time_cell(result, step):
    return milliseconds(result["contestants"][step.name]["median_seconds"])


def error_cell(result, step):
    return f"{result['contestants'][step.name]['error']:.1e}"


def baseline_table(results):
    core = results["machine"]["cores"][-1]
    peak = core["gflops"] * core["threads"]
    rows = []
    for result in results["cases"]:
        reached = 2e-9 * result["multiply_adds"] / result["contestants"][BASELINE]["median_seconds"]
        rows.append([title(result), f"{result['multiply_adds'] * 1e-9:.2f}", f"{reached:.0f}",
                     f"{100 * reached / peak:.0f}%"])
    return table(["network", "GMAC", "GFLOP/s of plain NCHW", "of the peak"], rows)


PAGE = """# What each step brings to convolutional networks

Made by `{command}` on {date}; [{figures}]({figures}) has all figures.

The steps and networks are those of NeoCPU (Y. Liu et al., Optimizing CNN Model Inference on CPUs, USENIX ATC 2019),
section 4.2 and table 3, and beside them Winograd's algorithm and tuning.

{where}
* {threads} threads, batch 1, f32

![speed-up over plain NCHW, by network and step]({drawing})

## Speed-up over plain NCHW

Each row includes the steps of the rows above it. The figure is the median over the rounds of plain NCHW's time over the
row's in the same round, with the quartiles in brackets.

{speed_ups}

What each step is:

{steps}

All but the last choose schedules by predicted time. The modules of a network take turns in one process; a turn is an
uncounted run, then a counted one.

{records}

## What each step brings by itself

The speed-up over the row above.

{own}

## Times

Medians in milliseconds.

{times}

## The speed of plain NCHW

The baseline is optimised, too: its multiply-adds a second, and as a part of the peak that is measured in registers on
all cores.

{baseline}

## Errors

The largest difference from plain NCHW's output, relative to the largest value. A difference over {bound:g} ends the
case.

{errors}
"""


def page(results):
    first, isa = results["cases"][0], results["machine"]["isa"]
    figures, _, drawing = (isas.of_file(name, isa) for name in FILES)
    steps = "\n".join(f"* {step.title}: {step.what} (`{' '.join(step.command_options(None)) or 'no option'}`)"
                      for step in STEPS)
    return PAGE.format(
        command=results["command"], date=results["date"], figures=figures, drawing=drawing,
        where=report.where(results["machine"]), threads=first["threads"],
        speed_ups=step_table(results, speed_up_cell), steps=steps, own=step_table(results, own_cell, STEPS[1:]),
        times=step_table(results, time_cell), records=records_shown(results), baseline=baseline_table(results),
        bound=first["bound"], errors=step_table(results, error_cell, STEPS[1:]))


# The drawing


def draw_step(axes, results, number, step):
    """The step's bars, one for each network, with the figure above and the quartiles as a line."""
    found = [speed_up(result, step.name) for result in results["cases"]]
    places = [place + (number - (len(STEPS) - 2) / 2) * BAR for place in range(len(found))]
    heights = [median for _, median, _ in found]
    ranges = [[median - lower for lower, median, _ in found], [upper - median for _, median, upper in found]]
    axes.bar(places, heights, 0.92 * BAR, color=COLOURS[number + 1], label=titles(results)[step.name], yerr=ranges,
             error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
    for place, (_, median, upper) in zip(places, found):
        axes.annotate(f"{median:.2f}", (place, upper), (0, 2), textcoords="offset points", ha="center", fontsize=6.5)


def chart(results, path):
    width = max(LEGEND, 1 + 1.7 * len(results["cases"]))
    figure, axes = report.drawing(width, 4)
    for number, step in enumerate(STEPS[1:]):
        draw_step(axes, results, number, step)
    axes.axhline(1, color=COLOURS[0], linewidth=1)
    axes.set_xticks(range(len(results["cases"])), [title(result) for result in results["cases"]])
    axes.set_ylabel("speed-up over plain NCHW (= 1)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.02, y=0.1)
    figure.legend(fontsize=8, loc="outside upper center", ncols=len(STEPS) - 1)
    described, threads = results["machine"], results["cases"][0]["threads"]
    below = (f"{described['cpu']}, {threads} threads, batch 1, {results['date']}. Each bar includes the steps left of "
             "it; its line spans the quartiles. Measured by tools/bench ablation; steps as in NeoCPU (USENIX "
             "ATC 2019), table 3.")
    figure.supxlabel(textwrap.fill(below, int(CHARACTERS * width)), fontsize=7, color="#555555")
    report.save(figure, path)


def write(results, folder):
    return report.write_files(results, folder, FILES, page, chart)
