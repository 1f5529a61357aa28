# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness


@pytest.fixture
def daemon():
    with harness.Daemon() as d:
        yield d
