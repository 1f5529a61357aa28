# SPDX-License-Identifier: Apache-2.0
"""What is announced for a time: maintenance of nodes. Real processes, a real clock."""

import harness


def node(d, name="node0"):
    return next(n for n in d.ask("nodes") if n["name"] == name)


def test_a_job_makes_way_for_maintenance_and_goes_on_when_the_node_is_back():
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        d.run("policy", "set", "--min-runtime", "0s", "--grace", "1s")
        job = d.submit("sleep", "600")
        d.wait(job, "running")
        d.run("nodes", "maintenance", "node0", "--from", "2s", "--for", "4s", "--reason", "new fan")
        assert node(d)["maintenance_reason"] == "new fan" and "new_fan" in d.run("nodes").out
        late = d.submit("true")
        text = d.run("explain", str(late)).out
        assert 'no maintenance of node "node0"' in text, text
        d.wait(job, "queued", "preempted")
        harness.wait_until("the node is in maintenance", lambda: node(d)["state"] == "maintenance")
        text = d.run("explain", str(late)).out
        assert 'node "node0" has maintenance, which ends in' in text, text
        assert 'has maintenance' in d.run("job", str(job)).out
        harness.wait_until("the node is back", lambda: node(d)["state"] == "ready")
        assert node(d)["maintenance_to_ms"] == 0
        d.wait(job, "running")
        assert len(d.job(job)["attempts"]) == 2
        d.run("cancel", str(job))
        d.wait(late, "succeeded")


def test_maintenance_that_is_called_off_is_over_and_survives_no_restart():
    with harness.Daemon("sim:2x1xH100-80GB") as d:
        d.run("nodes", "maintenance", "node0", "node1", "--for", "10h")
        harness.wait_until("both are in maintenance",
                           lambda: {n["state"] for n in d.ask("nodes")} == {"maintenance"})
        job = d.submit("true")
        d.stop()
        d.up()
        assert {n["state"] for n in d.ask("nodes")} == {"maintenance"}
        assert "which ends in" in d.run("explain", str(job)).out
        d.run("nodes", "maintenance", "node0", "--off")
        d.wait(job, "succeeded")
        assert node(d)["state"] == "ready" and node(d, "node1")["state"] == "maintenance"


def test_what_is_wrong_with_maintenance_is_said():
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        for words, told in [
            (("node0",), "say when it ends"),
            (("node0", "--to", "soon"), "2h from now"),
            (("node0", "--from", "3h", "--to", "2h"), "it must end after it begins"),
            (("node0", "--to", "2020-01-01T00:00Z"), "it must end after it begins"),
            (("node0", "--from", "2020-01-01T00:00Z", "--to", "2020-01-02 00:00"), "its end is in the past"),
            (("node0", "--to", "1h", "--for", "2h"), "or \"for\""),
            (("node0", "--off", "--for", "2h"), "no other flag"),
            (("nodeX", "--for", "2h"), "there is no node"),
        ]:
            result = d.run("nodes", "maintenance", *words, check=False)
            assert result.code != 0 and told in result.err, result
        assert "was so already" in d.run("nodes", "maintenance", "node0", "--off").out
