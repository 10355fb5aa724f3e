# SPDX-License-Identifier: MIT
"""Each malformed model of malformed_models.py is refused with its exit code, and all that is said of it is what stands there."""
import pytest
from malformed_models import MODELS

from support.refusal import refused


@pytest.mark.parametrize("model, code, lines", MODELS, ids=[f"{number}-{lines[0][:50]}" for number, (_, _, lines) in enumerate(MODELS)])
def test_a_malformed_model_is_refused_at_its_place(rnncc, tmp_path, model, code, lines):
    said = refused(rnncc, tmp_path, model, code).splitlines()
    assert [line.replace(f"{tmp_path}/model.json: ", "").replace("error: ", "", 1) for line in said] == lines
