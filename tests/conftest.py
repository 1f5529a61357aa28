# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness

# A test that hangs fails; a campaign, with more patience, gets as much more.
LIMIT_S = int(300 * harness.PATIENCE_S / 60)


def too_late(number, frame):
    raise TimeoutError("the test took more than %d s" % LIMIT_S)


@pytest.fixture(autouse=True)
def limit_of_time():
    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def daemon():
    with harness.Daemon() as d:
        yield d
