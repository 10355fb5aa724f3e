# SPDX-License-Identifier: MIT
"""Each malformed model of malformed_onnx.py, malformed_onnx_bytes.py and malformed_onnx_tensors.py is refused with its exit code,
and all that is said of it is what stands there."""
import malformed_onnx
import malformed_onnx_bytes
import malformed_onnx_tensors
import pytest

from support.onnx_files import write
from support.refusal import refused

ROWS = malformed_onnx_bytes.ROWS + malformed_onnx.ROWS + malformed_onnx_tensors.ROWS


@pytest.mark.parametrize("model, code, lines", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_malformed_model_is_refused_at_its_place(rnncc, tmp_path, model, code, lines):
    folder = malformed_onnx_tensors.external_files(tmp_path)
    said = refused(rnncc, folder, write(folder, model), code).splitlines()
    assert [line.replace(f"{folder}/model.onnx: ", "").replace("error: ", "", 1).replace(f"{folder}/", "") for line in said] == lines
