# SPDX-License-Identifier: MIT
"""The element types, read from runtime/dtypes.def."""
import re
from pathlib import Path
from typing import NamedTuple

import numpy

TABLE = Path(__file__).resolve().parents[2] / "runtime" / "dtypes.def"


class DType(NamedTuple):
    code: int  # of the ABI
    name: str  # in models
    onnx: int  # TensorProto.DataType
    numpy: numpy.dtype


def _rows():
    for row in re.findall(r"^DTYPE\((.*)\)$", TABLE.read_text(), re.MULTILINE):
        columns = [column.strip().strip('"') for column in row.split(",")]
        yield DType(int(columns[1]), columns[3], int(columns[8]), numpy.dtype(columns[10]))


DTYPES = tuple(_rows())
