# SPDX-License-Identifier: MIT
"""The node tests of the Python package onnx, written as folders: model.onnx, data.json, test_data_set_<k>.

The package computes them, as it brings no files of them. They stay in the build directory, of each version of the package.
"""
import functools
import json
import os
import shutil
import warnings
from pathlib import Path

import onnx
from onnx import numpy_helper

from support.clang import ROOT

FOLDER = ROOT / "build" / "conformance" / f"onnx-{onnx.__version__}"


def proto_of(value, info):
    """An input or output of a case as the suite's files have it."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    return {"tensor_type": numpy_helper.from_array, "sequence_type": numpy_helper.from_list,
            "optional_type": numpy_helper.from_optional}[kind](value, info.name)


def files_of(case):
    """(path, bytes) of each file of a case."""
    graph = case.model.graph
    yield "model.onnx", case.model.SerializeToString()
    operators = sorted({node.op_type for node in graph.node})
    yield "data.json", json.dumps({"rtol": case.rtol, "atol": case.atol, "operators": operators}).encode()
    for k, (inputs, outputs) in enumerate(case.data_sets):
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for place, (value, info) in enumerate(zip(values, infos)):
                yield f"test_data_set_{k}/{kind}_{place}.pb", proto_of(value, info).SerializeToString()


def collected():
    from onnx.backend.test.case import node  # its modules compute when they are imported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return node.collect_testcases(None)


def write_all(folder):
    for case in collected():
        for name, data in files_of(case):
            path = folder / case.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@functools.cache
def folders():
    """The folder of each case, sorted. Whole or not there: it is written beside, and renamed."""
    if not FOLDER.exists():
        beside = FOLDER.with_name(f"{FOLDER.name}.{os.getpid()}")
        write_all(beside)
        try:
            beside.rename(FOLDER)
        except OSError:  # another session was faster
            shutil.rmtree(beside)
    return sorted(path for path in FOLDER.iterdir())


def operators_of(folder):
    return json.loads((folder / "data.json").read_text())["operators"]


def same_files(one, other):
    """Do both folders hold the same model and data? Tolerances apart."""
    names = {str(path.relative_to(one)) for path in one.rglob("*.*") if path.suffix != ".json"}
    return all((other / name).exists() and (one / name).read_bytes() == (other / name).read_bytes() for name in names)
