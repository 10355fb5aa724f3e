# SPDX-License-Identifier: MIT
"""The compiler's rooms are layers: a file includes files of its own room and of rooms below it, never of one above,
so that no two rooms include each other. compiler/README.md draws the same layers."""
import re

import pytest
from conftest import ROOT

COMPILER = ROOT / "compiler"

# From the top. A room below kernels/ knows no family; kernels/<family> and load/onnx are rooms of their own.
FAMILIES = ["control", "attention", "recurrent", "reduce", "sample", "select", "index", "pool", "normalise", "matmul", "conv_transposed",
            "conv", "gemm", "fourier", "random", "move", "elementwise"]
LAYERS = [".", "driver", "tune", "quantise", "link", "emit", *(f"kernels/{family}" for family in FAMILIES), "program", "template",
          "layout", "search", "schedules", "reroll", "differentiate", "expand", "passes", "load/onnx", "load", "shapes", "reference", "machine", "ir", "json",
          "support"]
HEIGHT = {room: -place for place, room in enumerate(LAYERS)}


def room_of(path):
    """`kernels/conv` of kernels/conv/direct.c, `load/onnx` of load/onnx/nodes.c, `.` of main.c. The list of steps is at the
    top, as a table of contents: it has only names, and every room declares its passes by it."""
    if path.name in ("passes.def", "passes.h") and path.parent == COMPILER:
        return "ir"
    parts = path.relative_to(COMPILER).parts[:-1]
    return "/".join(parts[:2] if parts[:1] in (("kernels",), ("load",)) else parts[:1]) or "."


def included(text):
    """The compiler's files that a source includes."""
    named = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
    return [COMPILER / name for name in named if (COMPILER / name).exists()]


def upward(path, text):
    """The files of upper rooms that a file of this text includes."""
    own = HEIGHT[room_of(path)]
    return [str(target.relative_to(COMPILER)) for target in included(text) if HEIGHT[room_of(target)] > own]


def sources():
    return sorted(path for suffix in ("c", "h", "def") for path in COMPILER.rglob(f"*.{suffix}"))


def test_every_file_is_in_a_room():
    lost = [str(path.relative_to(COMPILER)) for path in sources() if room_of(path) not in HEIGHT]
    assert not lost, f"in no room of LAYERS: {', '.join(lost)}"


def test_every_room_has_files():
    assert {room_of(path) for path in sources()} == set(LAYERS)


@pytest.mark.parametrize("room", LAYERS)
def test_no_file_includes_what_is_above_it(room):
    arrows = {str(path.relative_to(COMPILER)): upward(path, path.read_text()) for path in sources() if room_of(path) == room}
    assert not {path: above for path, above in arrows.items() if above}


@pytest.mark.parametrize("file, include", [("ir/graph.c", "driver/options.h"), ("kernels/gemm/gemm.c", "kernels/conv/cost.h"),
                                           ("load/onnx/nodes.c", "layout/blocked.h"), ("driver/output.c", "main.c"),
                                           ("load/load.c", "load/onnx/onnx.h")])
def test_an_include_of_an_upper_room_is_found(file, include):
    assert upward(COMPILER / file, f'#include "ir/op.h"\n#include "{include}"\n') == [include]
