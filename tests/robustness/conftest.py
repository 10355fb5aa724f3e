# SPDX-License-Identifier: MIT
"""How rnncc and its tools fail is tested with the tools as they are."""
import pytest


@pytest.fixture(autouse=True)
def clang_itself(monkeypatch):
    monkeypatch.delenv("RNNCC_CLANG", raising=False)
