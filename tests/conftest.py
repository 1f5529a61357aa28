# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness

# A test that hangs fails; a campaign, with more patience, gets as much more.
LIMIT_S = int(5 * harness.PATIENCE_S)


def too_late(number, frame):
    raise TimeoutError("the test took more than %d s" % LIMIT_S)


# The longest, longest first: where tests run at once, each worker begins with one of them.
LONG = ("test_faults_duplicate_nothing", "test_killing_shepherds", "test_a_job_preempted_and_a_daemon_killed", "test_gangs_start_whole", "test_on_a_full_disk",
        "test_killing_the_daemon", "test_what_a_job_prints")


def pytest_collection_modifyitems(config, items):
    """Workers get stretches of the list in turn: a long test goes to the beginning of each."""
    workers = getattr(config.option, "numprocesses", None) or int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    stretch = max(len(items) // (4 * workers), 2) if workers else 0
    for i, name in enumerate(LONG if stretch else ()):
        at = next((n for n, item in enumerate(items) if item.name.startswith(name)), None)
        if at is not None:
            items.insert(min(i % workers * stretch + i // workers, len(items) - 1), items.pop(at))


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
