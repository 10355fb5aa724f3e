# SPDX-License-Identifier: MIT
"""A case is one folder of the suite: its model is compiled and run on its data.

A module runs in a process of its own, so that a crash is one failure.
"""
import functools
import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy
import onnx
from onnx import numpy_helper

from support.clang import BUILD, WITHOUT_PASSES, cached_clang
from support.forks import run_rnncc
from support.module import Module
from support.reference import ManyRuns, read_output

ROOT = Path(__file__).resolve().parents[2]
PASSED, UNSUPPORTED, FAILED = "passed", "unsupported", "failed"
MAX_ATTEMPTS = 6
# Their expected numbers, by NumPy in f32 or f16, are themselves further from the exact ones than the suite's tolerance:
# they may differ by the type's precision times their largest. So may those in bf16, to which it rounds after each step.
ROUNDED = {"package/test_attention_4d_causal_fp16_expanded", "package/test_dft_inverse", "package/test_dft_inverse_opset19"}
# Which elements are 0 depends on NumPy's generator: of these, what is not 0 on both sides must agree.
DRAWN = re.compile(r"test_bernoulli|test_training_dropout(?!.*zero_ratio)")
UNMEASURED = {"XDG_CACHE_HOME": "/dev/null"}  # plans must not depend on what was measured on this machine


@dataclass
class Case:
    name: str
    model: Path
    light: bool = False  # the onnx package's own: one file, and its outputs beside it
    optimised: bool = True  # by clang, which takes most of the time; else clang compiles without optimisation
    compiled: bool = True  # or else the reference interpreter runs it, if it can
    listed: bool = False  # in unsupported.txt


@dataclass
class Result:
    name: str
    outcome: str
    reason: str = ""
    frozen: bool = False
    seconds: float = 0.0


@dataclass
class DataSet:
    inputs: dict = field(default_factory=dict)
    outputs: list = field(default_factory=list)


def read_tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def ramp(value_info):
    """The inputs of onnx.backend.test.runner for its light models: numbers from 0 to 1."""
    shape = [dim.dim_value or 1 for dim in value_info.type.tensor_type.shape.dim]
    count = numpy.prod(shape)
    return (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)


def data_sets(case, model):
    """Inputs by name and outputs in order, from the folders test_data_set_*."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    if case.light:
        outputs = [read_tensor(case.model.with_name(f"{case.model.stem}_output_{k}.pb")) for k in range(len(model.graph.output))]
        yield DataSet({i.name: ramp(i) for i in inputs}, outputs)
        return
    names = [i.name for i in inputs]
    for folder in sorted(case.model.parent.glob("test_data_set_*")):
        inputs = {name: read_tensor(folder / f"input_{k}.pb") for k, name in enumerate(names)
                  if (folder / f"input_{k}.pb").exists()}
        outputs = [read_tensor(folder / f"output_{k}.pb") for k in range(len(model.graph.output))]
        yield DataSet(inputs, outputs)


def tolerance(case):
    """The suite's own tolerance, of onnx.backend.test.loader."""
    given = case.model.with_name("data.json")
    data = json.loads(given.read_text()) if given.exists() else {}
    return data.get("rtol", 1e-3), data.get("atol", 1e-7)


def named_extents(model, data):
    """The named dims, which are as long as the data is."""
    return {axis.dim_param: extent for i in model.graph.input if i.name in data.inputs
            for axis, extent in zip(i.type.tensor_type.shape.dim, data.inputs[i.name].shape) if axis.dim_param}


def rnncc(case, output, dims, options):
    bounds = [option for name, extent in dims.items() for option in ("--dim", f"{name}={extent}")]
    command = [BUILD / "compiler" / "rnncc", "--verify-each", case.model, "-o", output, *bounds, *options]
    environment = os.environ | cached_clang() | UNMEASURED | ({} if case.optimised else {"RNNCC_CLANG_WITHOUT_PASSES": WITHOUT_PASSES})
    return run_rnncc(BUILD, command, environment)


def first_reason(stderr, model):
    """The first message, without the file and the node's name."""
    line = next((line for line in stderr.splitlines() if "error: " in line), stderr.strip() or "no message")
    line = line.split("error: ", 1)[-1]
    return re.sub(r" \(\d+ times?: .*\)$", "", line)


def sources(model, names):
    """The names, and those of the values that they are computed from."""
    makers = {output: node for node in model.graph.node for output in node.output}
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += makers[name].input if name in makers else []
    return found


def wanted_inputs(stderr, model, data, frozen):
    """Inputs that the compiler must know, by its messages: the named ones, and the integers from which named values are
    computed."""
    asked = [line for line in stderr.splitlines()
             if re.search("must be known at compile time|must be a constant|--freeze", line)]
    named = {name for line in asked for name in re.findall(r"`([^`]+)`", line)}
    behind = {name for name in sources(model, named) if name in data.inputs and data.inputs[name].dtype.kind in "iub"}
    return [name for name in data.inputs if name in named | behind and name not in frozen]


def json_of(array):
    special = {"inf": "inf", "-inf": "-inf", "nan": "nan"}

    def plain(value):
        if isinstance(value, list):
            return [plain(v) for v in value]
        return special.get(str(value), value)

    return json.dumps(plain(array.tolist()))


def with_frozen_inputs(run, model, data):
    """(what run(options) returns, the frozen inputs): only inputs that it asks for, with exit code 3, are frozen."""
    frozen = {}
    for _ in range(MAX_ATTEMPTS):
        done = run([part for name, value in frozen.items() for part in ("--freeze", f"{name}={value}")])
        names = wanted_inputs(done.stderr, model, data, frozen) if done.returncode == 3 else []
        if not names:
            break
        frozen |= {name: json_of(data.inputs[name]) for name in names}
    return done, frozen


def applies(data, frozen):
    """Has the data set the frozen values?"""
    return all(json_of(data.inputs[name]) == value for name, value in frozen.items())


def difference(case, found, expected):
    """None, or which of the outputs differs, and how."""
    rtol, atol = tolerance(case)
    for k, (array, due) in enumerate(zip(found, expected, strict=True)):
        if array.dtype != due.dtype or array.shape != due.shape:
            return f"output {k} is {array.dtype}{list(array.shape)}, due {due.dtype}{list(due.shape)}"
        if DRAWN.search(case.name):
            chosen = (array != 0) & (due != 0)
            array, due = array[chosen], due[chosen]
        rounded = case.name in ROUNDED or due.dtype == ml_dtypes.bfloat16
        near = float(ml_dtypes.finfo(due.dtype).eps * abs(due).max()) if rounded and due.size else atol
        try:
            numpy.testing.assert_allclose(array, due, rtol=rtol, atol=near)
        except AssertionError as error:
            return f"output {k}: " + " ".join(str(error).split())[:300]
    return None


def run_module(path, case, sets, frozen):
    """None, or what is wrong."""
    with Module(path) as module, module.context() as context:
        for data in (data for data in sets if applies(data, frozen)):
            wrong = difference(case, context.run(data.inputs).values(), data.outputs)
            if wrong:
                return wrong
    return None


@functools.cache
def interpreter():
    """Of this process."""
    return ManyRuns(BUILD / "tests" / "support" / "reference_run")


def interpret(case, data, folder, options):
    """The inputs that are not frozen are the folder's in<k>."""
    frozen = {option.split("=")[0] for option in options[1::2]}
    for k, array in enumerate(array for name, array in data.inputs.items() if name not in frozen):
        (folder / f"in{k}").write_bytes(array.tobytes())
    status, said, wrong = interpreter().run(folder, [*options, case.model, folder])
    return subprocess.CompletedProcess((), status, said, wrong)


def run_reference(case, model, sets, folder):
    """The result by the reference interpreter, which refuses what rnncc refuses; None: rnncc must tell."""
    wrong = frozen = None
    for data in (data for data in sets if applies(data, frozen or {})):
        done, frozen = with_frozen_inputs(functools.partial(interpret, case, data, folder), model, data)
        if done.returncode == 3:
            return Result(case.name, UNSUPPORTED, first_reason(done.stderr, model))
        if done.returncode != 0 or case.listed:
            return None
        found = [read_output(folder / f"out{k}", line) for k, line in enumerate(done.stdout.splitlines())]
        wrong = wrong or difference(case, found, data.outputs)
    return Result(case.name, FAILED if wrong else PASSED, f"by the reference interpreter: {wrong}", bool(frozen))


def in_a_process(function, *arguments):
    """The function's result; a text if the process died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = function(*arguments) or ""
        except Exception as error:  # noqa: BLE001: whatever it is, the parent reports it
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return f"died of signal {status & 127}" if status else said


def attempt(case, folder):
    model = onnx.load(case.model, load_external_data=False)
    output = Path(folder) / "module.so"
    try:
        sets = list(data_sets(case, model))
    except Exception:  # noqa: BLE001: sequences and optionals are not tensors; rnncc must say so
        sets = [DataSet()]
    if not case.compiled and sets[0].outputs:
        result = run_reference(case, model, sets, Path(folder))
        if result:
            return result
    dims = named_extents(model, sets[0])
    if 0 in dims.values():
        return Result(case.name, UNSUPPORTED, "a named dim that is 0 long")
    done, frozen = with_frozen_inputs(functools.partial(rnncc, case, output, dims), model, sets[0])
    if done.returncode == 3:
        return Result(case.name, UNSUPPORTED, first_reason(done.stderr, case))
    if done.returncode != 0:
        return Result(case.name, FAILED, f"rnncc: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    wrong = in_a_process(run_module, output, case, sets, frozen)
    return Result(case.name, FAILED if wrong else PASSED, wrong, bool(frozen))


def run_case(case):
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = attempt(case, folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            result = Result(case.name, FAILED, str(error)[:300])
    result.seconds = time.monotonic() - start
    return result
