# SPDX-License-Identifier: MIT
"""MODEL_RESULTS.avx512.md, or that of another instruction set: how good predicted times of convolutions are."""
from benchmarks.cost_model import geometric_mean, median_of, network_behind, summarise

PAGE_FILE = "MODEL_RESULTS.md"
WORST = 12  # workloads listed
WORST_HEAD = ["convolution", "rank correlation", "first choice", "us", "best", "us", "ratio"]


def table(head, rows):
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def distinct(networks):
    """Each workload once, whatever networks it is of."""
    return list({w.name: w for workloads in networks.values() for w in workloads}.values())


def network_row(name, workloads):
    found = summarise(workloads)
    worst = number(min(found.correlations, default=None))
    return [name, found.workloads, found.schedules, number(median_of(found.correlations)), worst,
            number(found.behind, 3), number(network_behind(workloads), 3)]


NETWORK_HEAD = ["network", "workloads", "schedules", "rank correlation, median", "worst", "first / best",
                "whole network"]


def heading():
    return "{:<14} {:>9} {:>9} {:>12} {:>6} {:>12} {:>13}".format(
        "network", "workloads", "schedules", "rank corr.", "worst", "first/best", "whole network")


def line(name, workloads):
    return "{:<14} {:>9} {:>9} {:>12} {:>6} {:>12} {:>13}".format(*network_row(name, workloads))


def worst_rows(workloads):
    known = sorted((w for w in workloads if w.best), key=lambda w: -w.behind)
    return [[f"`{w.name}`", number(w.correlation), f"`{w.first}`", number(w.measured[w.first], 1), f"`{w.best}`",
             number(w.measured[w.best], 1), number(w.behind)] for w in known[:WORST]]


def summary_text(networks):
    workloads = distinct(networks)
    found = summarise(workloads)
    whole = [ratio for ratio in map(network_behind, networks.values()) if ratio]
    if not found.workloads:
        return "Nothing was measured."
    average = sum(found.correlations) / len(found.correlations) if found.correlations else None
    unmeasured = sum(w.best is not None and not w.first_is_measured for w in workloads)
    lines = [
        f"* {found.workloads} distinct convolutions of {len(networks)} networks, {found.schedules} schedules with both "
        "times.",
        f"* Rank correlation (Spearman) within a convolution: mean {number(average)}, median "
        f"{number(median_of(found.correlations))}, worst {number(min(found.correlations, default=None))}; of all times "
        f"together {number(found.overall, 3)}.",
        f"* The schedule of the least predicted time takes {number(found.behind, 3)} times that of the fastest "
        "measured (geometric mean over convolutions; the goal is at most 1.1), and is within 10% of it in "
        f"{100 * found.within:.0f}% of them.",
        f"* A whole network's convolutions: {number(geometric_mean(whole), 3)} times (geometric mean), at most "
        f"{number(max(whole), 3)}.",
        f"* Measured over predicted: {number(found.bias)} (geometric mean), off from that by a factor of "
        f"{number(found.off)} (standard deviation)."]
    if unmeasured:
        lines.append(f"* Of {unmeasured} the schedule of the least predicted time was not measured; the next one is "
                     "used instead.")
    return "\n".join(lines)


def page(networks, about):
    """networks: name -> workloads. about: how the page was made."""
    rows = [network_row(name, workloads) for name, workloads in networks.items()]
    return f"""# Predicted and measured times of convolutions

{about}

{summary_text(networks)}

`rnncc tune` measures the schedules that it expects to be fastest, which are close together; bad ones, which any model
would recognise, are not measured. A convolution that networks share is measured once.

{table(NETWORK_HEAD, rows)}

The convolutions where the first choice is furthest behind, in microseconds:

{table(WORST_HEAD, worst_rows(distinct(networks)))}
"""
