# SPDX-License-Identifier: MIT
"""The notebook of tools/examples: its cells run in order, in a fresh process, and print what stands beneath them."""
import json
import os
import subprocess
import sys

from conftest import ROOT
from support.module import PACKAGE

NOTEBOOK = ROOT / "tools" / "examples" / "notebook" / "digits.ipynb"
MARK = "\n--- cell ---\n"


def cells():
    """(code, what it prints) of each."""
    found = json.loads(NOTEBOOK.read_text())["cells"]
    return [("".join(it["source"]), "".join("".join(out["text"]) for out in it["outputs"]))
            for it in found if it["cell_type"] == "code"]


def test_its_cells_run_and_print_what_stands_beneath_them(rnncc):
    script = f"print({MARK!r}, end='')\n".join(f"{code}\n" for code, _ in cells())
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), "RNNCC": str(rnncc.path)})
    assert done.returncode == 0, done.stderr
    for (code, due), printed in zip(cells(), done.stdout.split(MARK), strict=True):
        assert printed == due, code
