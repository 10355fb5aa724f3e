# SPDX-License-Identifier: MIT
"""Networks that others trained and publish as Python packages, as models for rnncc. The packages are never imported:
they would ask for frameworks that their weights do not need."""
import importlib.util
from pathlib import Path


def package_folder(name):
    """The folder of the installed package's files."""
    found = importlib.util.find_spec(name)
    if not found:
        raise SystemExit(f"the Python package {name} is not installed: run tools/venv")
    return Path(found.origin).parent
