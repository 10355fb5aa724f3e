# SPDX-License-Identifier: MIT
"""A plugin of pytest: no more cases begin once these and the programs that they ran took $RNNCC_BUDGET seconds of CPU
time. pytest's status is then 2."""
import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if sum(os.times()[:4]) > float(os.environ["RNNCC_BUDGET"]):
        item.session.shouldstop = "the budget is used up"
