# SPDX-License-Identifier: MIT
"""For tests that wait for a cluster, which may not come: import `limit`."""
import signal

import pytest

SECONDS = 400


@pytest.fixture(autouse=True)
def limit():
    def late(*_):
        raise TimeoutError(f"{SECONDS} s have passed")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
