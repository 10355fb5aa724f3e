# SPDX-License-Identifier: MIT
"""A plugin of pytest: no more cases begin once these and the programs that they ran took $RNNCC_BUDGET seconds of CPU
time. pytest's status is then 2."""
import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid, location):
    if sum(os.times()[:4]) > float(os.environ["RNNCC_BUDGET"]):
        SESSION[0].shouldstop = "the budget is used up"


SESSION = []


def pytest_sessionstart(session):
    SESSION.append(session)
