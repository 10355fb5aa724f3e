# SPDX-License-Identifier: MIT
"""ONNX's own conformance suite, through rnncc and the modules that it makes: Debian's libonnx-testdata, and of the Python
package onnx, which is newer, the node tests and the light models: well-known networks whose weights are all alike. A test
that Debian has with the same bytes runs once.

    .venv/bin/python tests/conformance/run.py             all of it, two models at a time
    .venv/bin/python tests/conformance/run.py relu gru    the folders whose names contain a word
    .venv/bin/python tests/conformance/run.py --op GRU    those that are about an operator: small models that have it
    .venv/bin/python tests/conformance/run.py --long      all of it compiled, and Debian's optimised

A folder passes if its module's outputs are what the folder says they are, within the suite's tolerance. It is
unsupported if rnncc says so (exit code 3), and then unsupported.txt must list it: one that passes though it is listed,
or is unsupported though it is not, counts as failed, so that nothing slips. After an operator is added:
`run.py --listed --update`, and the folders that the operator's name is part of.

By default clang optimises every sixteenth model of Debian's, and of the light ones those that would else compute for longer
than optimising takes. Of Debian's, every eighth node test is compiled, every fourth other one, and the first of each
operator; of the package's the latter. The reference interpreter runs the others, if it can. --long, a word or --op compiles all.

Shapes and the like that a test gives as data are frozen to that data where rnncc asks for it (`--freeze`), and counted.
"""
import argparse
import collections
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conformance import generated  # noqa: E402
from conformance.case import PASSED, UNSUPPORTED, Case, run_case  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "conformance" / "unsupported.txt"
SUITE = Path("/usr/share/libonnx-testdata/data")
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SKIPPED = f"rnncc does not support the model: {LIST.relative_to(ROOT)}"
MANY_OPERATIONS = {"light_bvlc_alexnet", "light_resnet50", "light_vgg19", "light_zfnet512"}
WRONG = "BFLOAT16"  # Debian's: they truncate, where Cast rounds, and have inputs of other shapes. The package's are right.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def debian_cases(compiled, long):
    """Debian's models; every eighth node test and every fourth other one is compiled, and the first of each operator."""
    seen, place = set(), 0
    for kind in KINDS:
        for path in sorted((SUITE / kind).glob("*/model.onnx")):
            if WRONG in path.parent.name:
                continue
            operators = {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}
            yield Case(f"{kind}/{path.parent.name}", path, optimised=long or place % 16 == 0,
                       compiled=compiled or place % (8 if kind == "node" else 4) == 0 or not operators <= seen)
            seen |= operators
            place += 1


def package_cases(compiled):
    """The package's node tests; of each operator that Debian's suite has not, the first is compiled."""
    old, own = SUITE / "node", generated.folders()
    known = {op for folder in own if (old / folder.name).exists() for op in generated.operators_of(folder)}
    for folder in own:
        if generated.same_files(folder, old / folder.name):
            continue
        new = set(generated.operators_of(folder)) - known
        known |= new
        yield Case(f"package/{folder.name}", folder / "model.onnx", optimised=False, compiled=compiled or bool(new))


def cases(words, compiled, long):
    found = [Case(f"light/{path.stem}", path, light=True, optimised=long or path.stem in MANY_OPERATIONS)
             for path in sorted(LIGHT.glob("*.onnx"))]  # the slow ones first
    found += [*debian_cases(compiled, long), *package_cases(compiled)]
    return [case for case in found if not words or any(word in case.name for word in words)]


def is_about(case, op):
    most = 8  # nodes of a test of one operator, and what it needs around it
    nodes = onnx.load(case.model, load_external_data=False).graph.node
    return len(nodes) <= most and any(node.op_type == op for node in nodes)


def read_list():
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def write_list(results, listed):
    """The list with what these results say; what was not run stays."""
    listed = {name: reason for name, reason in listed.items() if name not in {r.name for r in results}}
    listed |= {r.name: r.reason for r in results if r.outcome == UNSUPPORTED}
    heading = ["# Folders of ONNX's conformance suite that rnncc does not support, and why.",
               "# Written by tests/conformance/run.py --update."]
    LIST.write_text("\n".join(heading + [f"{name}: {listed[name]}" for name in sorted(listed)]) + "\n")


def judged(result, listed):
    """The reason why the result is a failure, or None."""
    if result.outcome == UNSUPPORTED:
        return None if result.name in listed else f"unsupported, and not in {LIST.name}: {result.reason}"
    if result.outcome == PASSED:
        return f"passes, and is in {LIST.name}" if result.name in listed else None
    return result.reason


def write_junit(path, results, failures):
    suite = ElementTree.Element("testsuite", name="conformance", tests=str(len(results)), failures=str(len(failures)))
    for result in results:
        entry = ElementTree.SubElement(suite, "testcase", classname="conformance", name=result.name,
                                       time=f"{result.seconds:.3f}")
        if result.name in failures:
            ElementTree.SubElement(entry, "failure").text = failures[result.name]
        elif result.outcome == UNSUPPORTED:
            ElementTree.SubElement(entry, "skipped", message=SKIPPED).text = result.reason
    ElementTree.ElementTree(suite).write(path)


def report(results, failures):
    reasons = collections.Counter(r.reason for r in results if r.outcome == UNSUPPORTED)
    for reason, count in reasons.most_common():
        print(f"unsupported {count:4d}  {reason}")
    for name, reason in failures.items():
        print(f"FAILED {name}: {reason}")
    passed = [r for r in results if r.outcome == PASSED]
    frozen = sum(r.frozen for r in passed)
    print(f"{len(passed)} passed ({frozen} of them with frozen inputs), {sum(reasons.values())} unsupported, "
          f"{len(failures)} failed")


def told(result):
    """The result; on a terminal, with a line that says where the run is."""
    if sys.stderr.isatty():
        print(f"\r\033[K{result.name}", end="", file=sys.stderr, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("-j", type=int, default=os.cpu_count() + 1)
    parser.add_argument("--update", action="store_true", help="write unsupported.txt anew; failures stay failures")
    parser.add_argument("--listed", action="store_true", help="only the folders that unsupported.txt has")
    parser.add_argument("--long", action="store_true", help="every case is compiled; clang optimises all of Debian's")
    parser.add_argument("--op", metavar="NAME", help="only the folders that are about one operator; there may be none")
    parser.add_argument("--junit", type=Path)
    arguments = parser.parse_args()
    if arguments.long:
        os.environ["RNNCC_LONG_TESTS"] = "1"
    start = time.monotonic()
    listed = read_list()
    everything = bool(arguments.long or arguments.words or arguments.op)
    chosen = [case for case in cases(arguments.words, everything, arguments.long)
              if not arguments.listed or case.name in listed]
    if arguments.op:
        chosen = [case for case in chosen if is_about(case, arguments.op)]
    for case in chosen:
        case.listed = case.name in listed
    # What workers leave, which end in the midst of what they do.
    with (tempfile.TemporaryDirectory() as folder,
          multiprocessing.Pool(arguments.j, setattr, (tempfile, "tempdir", folder)) as pool):
        results = [told(result) for result in pool.imap(run_case, chosen)]
    if arguments.update:
        write_list(results, read_list())
    listed = read_list()
    failures = {r.name: why for r in results if (why := judged(r, listed))}
    gone = set(listed) - {r.name for r in results} if not (arguments.words or arguments.listed or arguments.op) else ()
    failures |= {name: f"is in {LIST.name}, and not in the suite" for name in gone}
    report(results, failures)
    print(f"{time.monotonic() - start:.0f} s")
    if arguments.junit:
        write_junit(arguments.junit, results, failures)
    return 1 if failures or not (results or arguments.op) or not SUITE.exists() else 0


if __name__ == "__main__":
    sys.exit(main())
