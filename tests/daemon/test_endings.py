# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends the daemon in every state: whatever one of its threads waits for, and also before it is up."""

import os
import signal
import sys
import threading
import time

import pytest

import harness

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "postgres"))
import server  # noqa: E402

needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")


def ends(d):
    """It was asked to. The limit is 5 s; a busy machine gets more before it counts as never."""
    d.process.send_signal(signal.SIGTERM)
    assert d.process.wait(timeout=60) == 0, d.log()


def held_at(point, gate):
    return {"FAIRLEAD_FAILPOINT": point + ":hold", "FAIRLEAD_FAILPOINT_GATE": gate.path, "FAIRLEAD_SHEPHERD_FAILPOINT": ""}


@needs_failpoints
@pytest.mark.parametrize("point", ("gate-before-commit", "core-before-decide", "effects-before-start", "engine-claimed"))
def test_it_ends_while_a_thread_waits(point):
    """The gate for a disk, the core for anything, the engine for a file server: held for ever there."""
    with harness.Gate() as gate, harness.Daemon() as d:
        kept = d.submit("true", flags=("--hold",))
        d.kill()
        d.up(held_at(point, gate))
        asks = threading.Thread(target=lambda: d.run("run", "--detach", "--", "true", check=False))
        asks.start()
        gate.wait()
        ends(d)
        asks.join()
        assert "ended after" in d.log()
        d.up()
        assert d.state(kept) == "held"


@needs_failpoints
def test_it_ends_while_the_journal_is_read():
    with harness.Gate() as gate, harness.Daemon() as d:
        kept = d.submit("true", flags=("--hold",))
        d.stop()
        starts = threading.Thread(target=lambda: d.up(held_at("recover-after-snapshot", gate), expect=False))
        starts.start()
        gate.wait()
        ends(d)
        starts.join()
        assert not d.greeting and "asked to stop while it started" in d.log()
        d.up()
        assert d.state(kept) == "held"


@needs_failpoints
def test_it_ends_while_the_journal_cannot_be_read_back():
    with harness.Daemon(env={"FAIRLEAD_FAILPOINT": "gate-commit:error:1", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        manifest = d.data + "/journal/manifest"
        os.rename(manifest, manifest + ".away")
        client = harness.Client(d.data)
        assert client.once("POST", "/api/v1/jobs", {"name": "new", "command": ["true"], "hold": True}, {"Idempotency-Key": "k"})[0] == 503
        harness.wait_until("it says what is wrong", lambda: "journal is missing" in client.once("GET", "/healthz")[1].get("problem", ""))
        ends(d)
        os.rename(manifest + ".away", manifest)
        d.up()


def test_it_ends_while_postgresql_is_silent():
    """Up, with a commit under way; then at the start, which asks it first."""
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        kept = d.submit("true", flags=("--hold",))
        s.silent()
        asks = threading.Thread(target=lambda: d.run("run", "--detach", "--", "true", check=False))
        asks.start()
        time.sleep(0.5)     # or nothing is asked of it yet: it ends then, too
        ends(d)
        asks.join()
        starts = threading.Thread(target=lambda: d.up(expect=False))
        starts.start()
        harness.wait_until("it starts", lambda: not d.process.stdout.closed and d.alive())
        time.sleep(0.5)
        ends(d)
        starts.join()
        assert not d.greeting
        s.silent(False)
        d.up()
        assert d.state(kept) == "held"
