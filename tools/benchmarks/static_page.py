# SPDX-License-Identifier: MIT
"""STATIC_RESULTS.md: the hot loops of the networks on cores that nobody has here."""
import json

from benchmarks.cost_model_page import table
from benchmarks.hot_loops import cores_of

PAGE_FILE, DATA_FILE = "STATIC_RESULTS.md", "static_results.json"
MOST_OVER_BOUND = 1.15
# Figures without a limit: Cortex-A55 issues in order, and clang's schedule leaves it waiting for loads.
UNLIMITED = (("aarch64-linux-gnu", "cortex-a55"),)


def slow(found, target):
    """Core -> cycles over the bound, where that is too many: the loop waits for its own results."""
    return {core: round(cycles.over_bound, 2) for core, cycles in found.cycles.items()
            if (target, core) not in UNLIMITED and cycles.over_bound > MOST_OVER_BOUND}


def faults(found, target):
    """What is not as it should be: a name for each, and how much of it."""
    loop = found.loop
    counts = {"spills": len(loop.spills), "loads too many": max(0, loop.loads - (loop.most_loads or loop.loads))}
    return {name: count for name, count in counts.items() if count} | slow(found, target)


def faulty(loops, target):
    """Template, multiply-adds and sums of each faulty loop -> its faults, the most of each where several look alike."""
    result = {}
    for found in loops:
        if one := faults(found, target):
            key = f"{found.loop.kernel.template} {found.loop.multiply_adds} {found.loop.sums}"
            known = result.setdefault(key, {})
            known.update({name: max(count, known.get(name, 0)) for name, count in one.items()})
    return result


def worse(now, before):
    """Lines that say which loops of faulty() have faults that they did not have, or more of them."""
    lines = []
    for key, found in now.items():
        for name, count in found.items():
            known = before.get(key, {}).get(name, 0)
            if count > known * 1.02:
                lines.append(f"{key}: {name} {count:g}, recorded {known:g}")
    return lines


def most_over_bound(loops, core):
    return max((found.cycles[core].over_bound for found in loops), default=0)


def stack_moves(loops):
    return sum(len(found.loop.spills) for found in loops)


def summary(loops, target):
    """What the page says of the hot loops and the transforms of a case, and the test compares."""
    transforms = [found for found in loops if found.loop.transforms]
    loops = [found for found in loops if not found.loop.transforms]
    return {"loops": len(loops), "spills": stack_moves(loops), "transforms": stack_moves(transforms),
            "least": round(min((found.loop.multiply_adds / max(1, found.loop.loads) for found in loops), default=0), 2),
            "worst": {core: round(most_over_bound(loops, core), 2) for core in cores_of(target)},
            "faults": faulty(loops, target)}


def merged(known, results, cases, targets):
    """case -> target -> summary(), in this order: known, but for the results, of (case, target)."""
    made = {}
    for name in cases:
        for target in targets:
            found = results.get((name, target)) or known.get(name, {}).get(target)
            if found:
                made.setdefault(name, {})[target] = found
    return made


def worst(found):
    return ", ".join(f"{core} {most:.2f}" for core, most in found["worst"].items())


def line(name, target, found):
    return f"{name}, {target}: {found['loops']} loops, {found['spills']} spills; most cycles over the bound: {worst(found)}"


CASE_HEAD = ["case", "target", "hot loops", "spills", "multiply-adds a load, least", "cycles over the bound, of the worst loop"]


def case_row(name, target, found):
    return [f"`{name}`", target, found["loops"], found["spills"], f"{found['least']:.2f}", worst(found)]


# Causes of faults that no order of instructions, or no tile, would mend.
CAUSES = """\
* SSE, of which Sandy Bridge and Zen 3 take up to 1.25 of the bound: tiles are in registers. An element is spread over a
  vector by a shuffle, on a pipe that multiplies or adds, too. The bound supposes that each instruction takes the pipe
  that the others need least; a core, and llvm-mca, takes one that is idle.
* Eight sums, and depthwise rows of 7 pixels: two additions a cycle of 4 cycles each need eight sums, Haswell's of 5 need
  ten. Neoverse V1 has four, which need sixteen: rows of 14 pixels have fewer.
* SSD's maps of four pixels and of one have even fewer. They are 0.02% of its work.
* Apple M1: a turn ends with addresses that only every third one computes, and Cyclone's window is too short to hide them.
* Softmax has no tile. Of SSE and NEON its exponential looks like a product, and its steps wait for each other.
"""


FAULT_HEAD = ["case", "target", "template", "multiply-adds", "sums", "faults"]


def fault_rows(name, target, found):
    for key, faults_of in found["faults"].items():
        yield [f"`{name}`", target, *key.split(), ", ".join(f"{fault} {count:g}" for fault, count in faults_of.items())]


def transform_rows(each):
    return [[f"`{name}`", target, found["transforms"]] for name, target, found in each if found.get("transforms")]


def page(results):
    """results: of merged()."""
    each = [(name, target, found) for name, of_case in results.items() for target, found in of_case.items()]
    rows = [row for one in each for row in fault_rows(*one)]
    transforms = transform_rows(each)
    return "\n".join([
        "# Hot loops, without a clock",
        "",
        "`tools/bench static` writes this page: the same on every machine. Each network is planned for two threads and "
        "compiled by clang 19, and its hot loops are read from the object code: innermost loops of which 23% or "
        "more is multiply-adds (15% of SSE's, where each is three instructions), and through which most of a kernel's "
        "work goes. The bound is that of the core's ports, "
        "by llvm-mca: as if no instruction waited for a result, with all loads in the first cache.",
        "",
        f"A hot loop should move no vector to the stack or from there (spills), load each vector of its tile once, and "
        f"take at most {MOST_OVER_BOUND} times the bound. One core has figures, and no limit: Cortex-A55, which issues "
        "in order. Of x86 cores llvm-mca 19 has instructions wrong, which are put right before it is asked: `REWRITTEN` "
        "and `readings()` of hot_loops.py say which, and how that is known. Of Apple M1 it has no model, and takes "
        "Cyclone's, of three pipes.",
        "",
        "llvm-mca has no core that ends with SSE2 or SSE4.2: their loops are shown on cores that run them beside wider "
        "vectors. Neoverse V1 has SVE of 256 bits, SiFive's P670 has RVV of 128.",
        "",
        table(CASE_HEAD, [case_row(*one) for one in each]),
        "",
        "## Loops that are not as they should be",
        "",
        f"The test of hot loops fails where one gets worse, or another one appears. `{DATA_FILE}` has them for it. "
        "Some causes stay:",
        "",
        CAUSES,
        table(FAULT_HEAD, rows) if rows else "None.",
        "",
        "## Winograd's transforms",
        "",
        "They are no products, and have no limit but what is on record: a tile's 36 or 64 points lie between its two "
        "axes, and no target has registers for them.",
        "",
        table(["case", "target", "vectors to the stack or from there"], transforms) if transforms else "None on the stack.",
        ""])


def text(results):
    """JSON, a line for each target of a case."""
    cases = (",\n".join(f"  {json.dumps(target)}: {json.dumps(found)}" for target, found in of_case.items())
             for of_case in results.values())
    return "{\n" + ",\n".join(f' {json.dumps(name)}: {{\n{lines}\n }}' for name, lines in zip(results, cases)) + "\n}\n"
