# SPDX-License-Identifier: Apache-2.0
"""A cluster's own journal as a workload, and played again with changes."""

import csv
import json

import pytest

import harness


def when_all_are_there(daemon, seconds):
    """Its time counts from when all are submitted: a slow machine would let each be over before the next one is there."""
    return "sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done; sleep %d' % seconds, daemon.data + "/go"


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as daemon:
        daemon.run("queues", "create", "vision", "--guarantee", "2")
        numbers = [daemon.submit(*when_all_are_there(daemon, 1), flags=("-g", "4", "--queue", "vision", "--limit", "1h")) for _ in range(3)]
        held = daemon.submit("true", flags=("--hold",))
        open(daemon.data + "/go", "w").close()
        for number in numbers:
            daemon.wait(number, "succeeded")
        assert daemon.state(held) == "held"
        yield daemon


def test_the_journal_becomes_a_cluster_and_a_workload_that_can_be_replayed(d, tmp_path):
    cluster, jobs = str(tmp_path / "site.yaml"), str(tmp_path / "jobs.csv")
    d.run("sim", "convert", "--from", "journal", "--cluster-out", cluster, "--out", jobs, d.data)
    lines = open(jobs).read().splitlines()
    assert lines[0] == "#fairlead-workload 1" and "# jobs that never ran: 1, left out" in lines
    rows = list(csv.DictReader(line for line in lines[1:] if not line.startswith("#")))
    assert [(r["gpus"], r["queue"], r["limit_s"]) for r in rows] == [("4", "vision", "3600")] * 3
    assert rows[0]["submit_s"] == "0" and all(0.9 < float(r["run_s"]) < 60 for r in rows)
    done = d.run("sim", "replay", "--cluster", cluster, "--workload", jobs, "-o", "json")
    figures = json.loads(done.out)["policies"][0]["figures"]
    assert figures["jobs"] == figures["ended"] == 3 and figures["wait_s"]["most"] > 0.5  # one after the other


def test_with_more_nodes_nobody_would_have_waited(d):
    done = d.run("plan", "what-if", "--nodes", "+2xH100-80GB")
    assert "as it happened" in done.out and "% less" in done.out and "12 GPUs in place of 4" in done.out, done
    past = json.loads(d.run("plan", "what-if", "--nodes", "+2xH100-80GB", "-o", "json").out)["policies"]
    happened, again, changed = (p["figures"] for p in past)
    assert happened["jobs"] == happened["ended"] == again["ended"] == changed["ended"] == 3
    assert happened["wait_s"]["most"] > 0.5 and again["wait_s"]["most"] > 0.5 and changed["wait_s"]["most"] < 0.5


def test_another_policy_is_tried_and_what_is_not_possible_is_named(d, tmp_path):
    (tmp_path / "less.yaml").write_text("queues:\n  - {name: vision, limit: 2}\n")
    done = d.run("plan", "what-if", "--policy", str(tmp_path / "less.yaml"))
    assert "3 jobs that ran could never run" in done.out and "would wait" not in done.out, done
    for words, said in (([], "--nodes, --policy"), (["--nodes", "+1xB200"], "no node has GPUs of the model"), (["--nodes", "-1xH100-80GB"], "no node left"),
                        (["--nodes", "-2xH100-80GB"], "fewer"), (["--nodes", "4xH100-80GB"], "+4xMODEL")):
        done = d.run("plan", "what-if", *words, check=False)
        assert done.code != 0 and said in done.err, (words, done)


def test_another_share_of_spot_nodes_is_tried(d, tmp_path):
    done = d.run("plan", "what-if", "--nodes", "+1xH100-80GB", "--spot", "50")
    assert "1 nodes would be spot nodes in place of 0. None of them goes" in done.out, done
    done = d.run("plan", "what-if", "--spot", "100")  # these jobs save nothing, so no spot node is for them
    assert "3 jobs that ran could never run" in done.out, done
    (tmp_path / "a.csv").write_text("#fairlead-availability 1\nat_s,node,there\n0,what-if-2,0\n3600,what-if-2,1\n")
    away = d.run("plan", "what-if", "--nodes", "+1xH100-80GB", "--availability", str(tmp_path / "a.csv"), "-o", "json")
    again, changed = (p["figures"] for p in json.loads(away.out)["policies"][1:])
    assert changed["wait_s"] == again["wait_s"]  # the node that is added comes too late for anybody
    for words, said in ((["--spot", "101"], "--spot: 101"), (["--availability", str(tmp_path / "a.csv")], 'no node "what-if-2"')):
        done = d.run("plan", "what-if", *words, check=False)
        assert done.code != 0 and said in done.err, (words, done)


def test_slices_on_a_pool_are_tried():
    """Parts of one GPU that may not lie beside each other ran one after the other; slices of it run together."""
    with harness.Daemon(nodes="sim:1x1xA100-80GB") as daemon:
        daemon.run("policy", "set", "--share-gpus", "off")
        numbers = [daemon.submit(*when_all_are_there(daemon, 2), flags=("--kind", "batch", "-g", part)) for part in ("0.5", "1/7", "1/7", "1")]
        open(daemon.data + "/go", "w").close()
        for number in numbers:
            daemon.wait(number, "succeeded")
        done = daemon.run("plan", "what-if", "--slices", "A100-80GB")
        assert "The GPUs of 1 nodes may be cut into slices. 3 jobs that asked for a part of a GPU take" in done.out, done
        again, changed = (p["figures"] for p in json.loads(daemon.run("plan", "what-if", "--slices", "A100-80GB", "-o", "json").out)["policies"][1:])
        assert again["ended"] == changed["ended"] == 4 and changed["completion_s"]["most"] < again["completion_s"]["most"] - 1, (again, changed)
        done = daemon.run("plan", "what-if", "--slices", "L4", check=False)
        assert done.code != 0 and "no node has GPUs of that model" in done.err, done


def test_a_job_that_no_node_of_the_pool_would_take_stays_as_it_is():
    """A part of a GPU for a job that asks for a label which only the other pool has."""
    with harness.Daemon(nodes="sim:1x1xA100-80GB,1x1xH100-80GB") as daemon:
        daemon.run("nodes", "set", "node1", "--labels", "disk=fast,region=eu")
        for wish in ("selector: {disk: fast}", "region: eu", "selector: {disk: fast}\nregion: [us, eu]"):
            done = daemon.submit_file(f"command: [sleep, '1']\nkind: batch\ngpus: 0.5\n{wish}\n")
            daemon.wait(json.loads(done.out)["id"], "succeeded")
        done = daemon.run("plan", "what-if", "--slices", "A100-80GB")
        assert "0 jobs that asked for a part of a GPU take" in done.out and "never run" not in done.out, done
        done = daemon.run("plan", "what-if", "--slices", "H100-80GB")
        assert "3 jobs that asked for a part of a GPU take" in done.out and "never run" not in done.out, done


def test_a_folder_without_a_journal_is_refused(d, tmp_path):
    done = d.run("sim", "convert", "--from", "journal", str(tmp_path), check=False)
    assert done.code != 0 and done.err
    done = d.run("sim", "convert", "--from", "philly", "--cluster-out", str(tmp_path / "c"), "-", check=False)
    assert done.code != 0 and "--from journal" in done.err
