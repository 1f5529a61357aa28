# SPDX-License-Identifier: Apache-2.0
"""What the driver of a machine tells, in the facts, on the screens and in what is decided; a file comes before it."""

import pytest

import driver
import harness

PAIRS = ("gpus 4", "link 0 2 4", "link 1 3 4", "capability 8 6", "near 0 1 10", "near 2 3 10", "pcie 4 16")


def facts_of(d):
    name = d.ask("nodes")[0]["name"]
    return {f["fact"]: (f["value"], f["from"]) for f in d.ask("nodes", "facts", name)}


@pytest.fixture
def machine():
    told = driver.Driver(*PAIRS)
    with harness.Daemon(nodes=None, env=told.env()) as d:
        yield d, told


def test_what_the_driver_tells_is_shown_and_from_where(machine):
    d, _ = machine
    facts = facts_of(d)
    assert facts["gpus"] == ("4 x H100-80GB", "discovery")
    assert facts["driver"] == ("550.54.14", "discovery")
    assert facts["cuda"] == ("12.4", "discovery")
    assert facts["compute_capability"] == ("8.6", "discovery")
    assert facts["gpu_memory"] == ("81559 MiB", "discovery")
    assert facts["islands"] == ("0,2 1,3", "discovery")
    assert facts["nvlink"] == ("48.0 GB/s", "discovery")
    assert facts["switches"] == ("0-1 2-3", "discovery")
    assert facts["pcie"] == ("24.0 GB/s", "discovery")
    assert facts["nics"] == ("0", "model")
    assert "0,2_1,3" in d.run("nodes", "facts", d.ask("nodes")[0]["name"]).out
    fabric = d.ask("fabric")
    assert fabric["known"] is True
    assert [(m["gpus"], m["nvlink_mbps"], m["reduce_mbps"], m["from"]) for m in fabric["makes"]] == [(4, 48000, 0, "discovery")]
    assert "discovery" in d.run("fabric").out


def test_gpus_joined_by_nvlink_go_together(machine):
    d, _ = machine
    number = d.submit("sleep", "300", flags=("--gpus", "2"))
    d.wait(number, "running")
    attempt = d.job(number)["attempts"][-1]
    assert sorted(attempt["tasks"][0]["gpus"]) in ([0, 2], [1, 3])
    assert attempt["bandwidth_mbps"] == 48000
    d.run("cancel", str(number))


def test_a_driver_that_is_too_old_is_found_before_anything_starts(machine):
    d, told = machine
    client = harness.Client(d.data)
    numbers = [client.submit({"name": key, "command": "true", "gpus": 1, key: value}, key)
               for key, value in (("min_cuda", "12.8"), ("min_capability", "9.0"), ("min_driver", "560"))]
    fine = client.submit({"name": "fine", "command": "true", "gpus": 1, "min_cuda": "12.4", "min_capability": "8.6"}, "fine")
    assert d.wait(fine)["state"] == "succeeded"
    for number in numbers:
        assert d.state(number) == "queued" and d.job(number)["attempts"] == []
    why = client.get("/api/v1/jobs/%d/explain" % numbers[0])
    assert "12.8" in why["summary"] and "12.4" in why["summary"], why
    # a newer driver, and better GPUs
    d.stop()
    told.say(*(line for line in PAIRS if "capability" not in line), "capability 9 0", "driver 570.86.10", "cuda 12080")
    d.up()
    for number in numbers:
        assert d.wait(number)["state"] == "succeeded"
    assert facts_of(d)["cuda"] == ("12.8", "discovery")


def test_a_file_comes_before_what_was_found_and_stays_over_restarts(machine, tmp_path):
    d, told = machine
    file = tmp_path / "cluster.yaml"
    file.write_text('fabric: {hosts: {islands: "0-1 2-3", nvlink: 100GB/s, nics: 2, nic: ndr}}\n')
    d.run("fabric", "set", str(file))
    facts = facts_of(d)
    assert facts["islands"] == ("0-1 2-3", "file") and facts["nvlink"] == ("100.0 GB/s", "file")
    assert facts["nics"] == ("2", "file") and facts["nic"] == ("48.0 GB/s", "file")
    assert [m["from"] for m in d.ask("fabric")["makes"]] == ["file, discovery"]
    assert facts["switches"] == ("0-1 2-3", "discovery") and facts["pcie"] == ("24.0 GB/s", "discovery")
    d.stop()
    told.say(*PAIRS[:-1], "pcie 5 16", "driver 560.1")
    d.up()
    facts = facts_of(d)
    assert facts["islands"] == ("0-1 2-3", "file") and facts["nvlink"] == ("100.0 GB/s", "file")
    assert facts["nics"] == ("2", "file")
    assert facts["driver"] == ("560.1", "discovery") and facts["pcie"] == ("48.0 GB/s", "discovery")
    # a file that says nothing of them gives the word back to the machine
    file.write_text("levels: [rack]\nlabels: {rack: rack}\n")
    name = d.ask("nodes")[0]["name"]
    d.run("nodes", "set", name, "--labels", "rack=r7")
    d.run("fabric", "set", str(file))
    facts = facts_of(d)
    assert facts["islands"] == ("0,2 1,3", "discovery") and facts["nvlink"] == ("48.0 GB/s", "discovery")
    assert facts["rack"] == ("r7", "label")
    file.write_text("nodes: [{name: %s, rack: r8}]\n" % name)
    d.run("fabric", "set", str(file))
    assert facts_of(d)["rack"] == ("r8", "file")


def test_a_restart_on_the_same_machine_says_nothing_new(machine):
    d, _ = machine
    d.stop()
    d.up()
    kinds = [e["kind"] for e in harness.Client(d.data).get("/api/v1/events?limit=200")["events"]]
    assert kinds.count("node-found") == 1 and kinds.count("fabric-set") == 1 and kinds.count("node-set") == 1, kinds
