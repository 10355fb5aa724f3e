# SPDX-License-Identifier: MIT
"""PREDICT_RESULTS.avx512.md, or that of another instruction set: predicted times beside measured ones."""
from benchmarks.cost_model_page import number, table
from benchmarks.predict import NEAR, errors, far

PAGE_FILE = "PREDICT_RESULTS.md"
WORST = 15  # convolutions listed
PERCENT = round(100 * (NEAR - 1))
ERROR_HEAD = ["what", "count", f"within {PERCENT}%", "geometric mean", "least", "5%", "25%", "50%", "75%", "95%", "most"]
PAIR_HEAD = ["case", "schedule", "measured us", "predicted", "ratio", "calibrated", "ratio"]


def error_row(title, found):
    return [title, found.count, f"{100 * found.near:.0f}%", number(found.bias), *map(number, found.quantiles)]


def kinds(pairs):
    """Title -> pairs of it."""
    found = {kind: [pair for pair in pairs if pair.kind == kind] for kind in dict.fromkeys(pair.kind for pair in pairs)}
    everything = [pair for pair in pairs if pair.kind != "recurrent"]
    return found | ({"all convolutions": everything} if everything else {})


def error_rows(pairs):
    rows = []
    for title, some in kinds(pairs).items():
        for words, calibrated in (("", False), (", calibrated", True)):
            if found := errors(some, calibrated):
                rows.append(error_row(title + words, found))
    return rows


def pair_row(pair):
    more = [number(pair.calibrated, 1), number(pair.ratio(True))] if pair.calibrated else ["-", "-"]
    name = pair.case if pair.name == pair.case else f"`{pair.name}`"
    return [name, f"`{pair.schedule}`", number(pair.measured, 1), number(pair.predicted, 1), number(pair.ratio(False)), *more]


def line(case, pairs):
    found = errors(pairs)
    return f"{case:24} {found.count:4} {100 * found.near:4.0f}%  {found.bias:.2f}"


def page(pairs, about):
    """about: how the page was made."""
    recurrent = [pair for pair in pairs if pair.kind == "recurrent"]
    worst = [pair for pair in far(pairs) if pair.kind != "recurrent"][:WORST]
    return f"""# Predicted and measured times

{about}

A ratio is of the measured time to the predicted one; the goal is to be within {PERCENT}%, either way. Recurrent networks
are timed as a whole, a convolution in its place in the network's run, once a network if it stands there several times.
Predictions are for the schedule that runs. Without calibration, caches and cores are the system's, speeds those of the
table of microarchitectures; `rnncc targets` prints them.

{table(ERROR_HEAD, error_rows(pairs))}

## Recurrent networks

{table(PAIR_HEAD, [pair_row(pair) for pair in recurrent]) if recurrent else "None was measured."}

## Convolutions that are furthest off

{table(PAIR_HEAD, [pair_row(pair) for pair in worst]) if worst else "None is further off."}
"""
