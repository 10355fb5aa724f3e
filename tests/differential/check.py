# SPDX-License-Identifier: MIT
"""Whether a random graph computes what it should: by the reference interpreter, by ONNX Runtime and compiled."""
import copy
import os
import pickle
import re
import subprocess
from dataclasses import dataclass, field

import numpy
import onnxruntime

from conftest import build_directory
from support.clang import WITHOUT_PASSES, cached_clang
from support.forks import run_rnncc
from support.machine import peers_saturate
from support.module import Module
from support.reference import Reference

THREADS = (1, 2, 3, 8)
CONTROL = {"If", "Loop", "Scan"}  # for which the reference has no kernels
# Products of bytes, which may saturate in ONNX Runtime.
PRODUCTS = {"MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul",
            "DynamicQuantizeLSTM"}
# ONNX Runtime has no kernel for the operator, its type or its opset.
LACKING = re.compile("Could not find an implementation|No Op registered|Type Error|Unrecognized attribute|NOT_IMPLEMENTED|No corresponding Numpy type|can't be converted to MLDataType")


@dataclass
class Finding:
    """What is wrong with a case."""
    case: object
    what: str  # one line
    options: tuple = ()
    against: str = ""  # "peer", "reference" or "compiler"
    detail: str = ""


def distance(got, expected, bound):
    """None where the arrays agree, or what is wrong. bound: absolute, and relative to the largest, if it is above 1."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    absolute, relative = bound
    if expected.dtype.kind not in "fV" or not absolute and not relative:
        bound = 0
        same = (got == expected) | (got != got) & (expected != expected)
    else:
        finite = numpy.abs(expected[numpy.isfinite(expected)])
        bound = absolute + relative * max(1.0, float(finite.max(initial=0)))
        with numpy.errstate(invalid="ignore"):
            same = numpy.abs(got.astype(float) - expected.astype(float)) <= bound
            same |= (got == expected) | (got != got) & (expected != expected)
    if numpy.all(same):
        return None
    place = numpy.unravel_index(int(numpy.argmin(same)), got.shape) if got.shape else ()
    return (f"{got[place]!r} at {[int(p) for p in place]}, expected {expected[place]!r} within {bound:.3g}; "
            f"{int(numpy.sum(~same))} of {got.size} elements")


def differences(got, expected, errors):
    """A line for the first output that differs, or None."""
    for name, bound in errors.items():
        wrong = distance(got[name], expected[name], bound)
        if wrong:
            return f"{name}: {wrong}"
    return None


# ---- several cases in one module ----


def side_by_side(cases):
    """One model of cases whose names have prefixes of their own."""
    whole = copy.copy(cases[0].model)
    whole.dims, whole.arrays = {}, {}
    for part in ("inputs", "outputs", "nodes", "states"):
        setattr(whole, part, [it for case in cases for it in getattr(case.model, part)])
    for case in cases:
        whole.dims |= case.model.dims
        whole.arrays |= case.model.arrays
    return whole


def feeds_of(cases, run):
    """A case with fewer runs is run again on its last feeds."""
    return {name: array for case in cases for name, array in case.feeds[min(run, len(case.feeds) - 1)].items()}


def count_runs(cases):
    return max(len(case.feeds) for case in cases)


def peer_of(model):
    """run(feeds) by ONNX Runtime as the model is written: its optimiser takes pairs of QuantizeLinear and
    DequantizeLinear for one where that changes results."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.onnx().SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds)))


def of_same_type(array, dtype):
    """ONNX Runtime hands out the bytes of types that NumPy does not have."""
    return array.view(dtype) if array.dtype == numpy.uint8 and dtype.name.startswith("float8") else array


def with_what_is_masked(own, other):
    """The other's result. For scores that a boolean mask leaves out, ONNX Runtime writes the lowest number, not -inf."""
    if own.dtype != numpy.float32:
        return other
    return numpy.where(numpy.isneginf(own) & (other == numpy.finfo(numpy.float32).min), own, other)


def in_turn(case, run):
    """What run(feeds) gives for each feeds of the case, with its states, which are zeros at first."""
    states = {state["input"]: numpy.zeros(state["shape"], numpy.float32) for state in case.model.states}
    results = []
    for feeds in case.feeds:
        results.append(run(feeds | states))
        states = {state["input"]: results[-1][state["output"]] for state in case.model.states}
    return results


@dataclass
class Checker:
    """check() returns what is wrong with cases. options: of rnncc, for those that are compiled together."""
    folder: object
    optimised: bool = False
    threads: tuple = THREADS  # numbers of them that must give the same bits
    counts: dict = field(default_factory=lambda: {"graphs": 0, "by the peer": 0, "compiled": 0, "by nobody": 0})

    def __post_init__(self):
        build = build_directory()
        self.reference = Reference(build / "tests" / "support" / "reference_run")
        self.rnncc = build / "compiler" / "rnncc"
        self.environment = {**os.environ, **cached_clang(), "XDG_CACHE_HOME": "/dev/null",
                            "RNNCC_CLANG_WITHOUT_PASSES": "" if self.optimised else WITHOUT_PASSES}

    def check(self, cases, *options):
        findings, expected = [], {}
        for case in cases:
            self.counts["graphs"] += 1
            result = self.expected(case)
            if isinstance(result, Finding):
                findings.append(result)
            elif not result:
                self.counts["by nobody"] += 1
            else:
                expected[case.seed] = result
        cases = [case for case in cases if case.seed in expected]
        return findings + (self.compiled(cases, expected, options) if cases else [])

    def expected(self, case):
        """What the reference computes in each run, or a Finding: it fails, or ONNX Runtime computes something else. Of
        control flow, what ONNX Runtime computes."""
        results = []
        if not case.graph.used & CONTROL:
            path = case.model.write(self.folder)
            try:
                results = in_turn(case, lambda feeds: self.reference.run(case.model, path, feeds))
            except Exception as wrong:
                return Finding(case, f"the reference fails: {str(wrong).strip().splitlines()[-1]}", against="reference", detail=str(wrong))
        try:
            peer = in_turn(case, peer_of(case.model))
        except Exception as refused:
            if case.graph.grafted or LACKING.search(str(refused)) and not case.graph.peer:
                return results
            return Finding(case, f"ONNX Runtime refuses it: {str(refused).strip().splitlines()[-1][:300]}", against="peer", detail=str(refused))
        if case.graph.used & PRODUCTS and peers_saturate():
            return results
        self.counts["by the peer"] += 1
        if not results:
            return peer
        for run, (own, other) in enumerate(zip(results, peer)):
            other = {name: of_same_type(array, own[name].dtype) for name, array in other.items()}
            if "Attention" in case.graph.used:
                other = {name: with_what_is_masked(own[name], array) for name, array in other.items()}
            if wrong := differences(own, other, case.errors):
                return Finding(case, f"run {run}: the reference has {wrong}, by ONNX Runtime", against="peer")
        return results

    def compiled(self, cases, expected, options):
        """Findings of the module of all of them. Where rnncc fails, of the halves."""
        module = self.folder / "module.so"
        done = self.compile(side_by_side(cases).write(self.folder), module, options)
        if done.returncode:
            if len(cases) > 1:
                return self.in_halves(cases, expected, options)
            said = done.stderr.strip().splitlines()
            return [Finding(cases[0], f"rnncc: exit {done.returncode}: {said[0] if said else ''}", options, "compiler", done.stderr)]
        if "in generated code" in done.stderr:
            if len(cases) > 1:
                return self.in_halves(cases, expected, options)
            return [Finding(cases[0], f"clang complains: {done.stderr.strip().splitlines()[0]}", options, "compiler", done.stderr)]
        self.counts["compiled"] += len(cases)
        return self.ran(module, cases, expected, options)

    def compile(self, model, module, options):
        command = [self.rnncc, "--verify-each", model, "-o", module, *options]
        return run_rnncc(build_directory(), command, self.environment)

    def ran(self, path, cases, expected, options):
        feeds = [feeds_of(cases, run) for run in range(count_runs(cases))]
        outputs = in_child(lambda: outputs_of(path, feeds, self.threads))
        if isinstance(outputs, str):
            if len(cases) > 1:
                return self.in_halves(cases, expected, options)
            return [Finding(cases[0], outputs, options, "crash")]
        wrong = {case.seed: self.wrong(case, expected[case.seed], outputs) for case in cases}
        return [Finding(case, wrong[case.seed], options, "reference") for case in cases if wrong[case.seed]]

    def in_halves(self, cases, expected, options):
        half = len(cases) // 2
        return [wrong for part in (cases[:half], cases[half:]) for wrong in self.compiled(part, expected, options)]

    def wrong(self, case, expected, outputs):
        """What is wrong with a case, in a line; None: nothing. outputs: by threads and run."""
        for run, due in enumerate(expected):
            got = outputs[self.threads[0]][run]
            if line := differences(got, due, case.errors):
                return f"run {run}: the module has {line}"
            for threads in self.threads[1:]:
                for name in case.errors:
                    if got[name].tobytes() != outputs[threads][run][name].tobytes():
                        return f"run {run}: {name}: other bits on {threads} threads"
        return None


def outputs_of(path, feeds, counts):
    """By number of threads, then by run."""
    with Module(path) as module:
        outputs = {}
        for threads in counts:
            with module.context(threads) as context:
                outputs[threads] = [context.run(some) for some in feeds]
        return outputs


def in_child(compute):
    """What a function returns in a process of its own, or how that ends, in words."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            with os.fdopen(writer, "wb") as out:
                pickle.dump(compute(), out)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as back:
        data = back.read()
    _, status = os.waitpid(child, 0)
    if status:
        return f"running the module ends with {f'signal {os.WTERMSIG(status)}' if os.WIFSIGNALED(status) else f'exit {os.WEXITSTATUS(status)}'}"
    return pickle.loads(data)
