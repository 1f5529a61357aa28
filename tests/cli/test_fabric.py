# SPDX-License-Identifier: Apache-2.0
"""The cluster tree from its file to the place of a job, and to what is said of it."""

import os

import harness

FILE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "cluster.yaml")
NODES = "sim:8x8xH100-80GB,2x8xL40S-48GB"


def gang(d, tasks, *flags):
    return d.submit("sleep", "300", flags=("--tasks", str(tasks), "--gpus", "8", "--model", "H100-80GB") + flags)


def newest(d, number):
    return d.job(number)["attempts"][-1]


def test_the_example_describes_a_cluster_and_decides_where_a_gang_goes():
    with harness.Daemon(nodes=NODES) as d:
        assert "Nobody has described" in d.run("fabric").out
        assert d.ask("fabric")["known"] is False
        assert "was set" in d.run("fabric", "set", FILE).out
        assert "was so already" in d.run("fabric", "set", FILE).out
        shown = d.ask("fabric")
        assert [level["level"] for level in shown["levels"]] == ["cluster", "spine", "leaf"]
        assert shown["levels"][1]["oversubscription_milli"] == 4000
        assert [(make["model"], make["nodes"], make["nics"]) for make in shown["makes"]] == [("H100-80GB", 8, 8), ("L40S-48GB", 2, 2)]
        assert "4:1" in d.run("fabric").out
        assert {n["name"]: n["domains"] for n in d.ask("nodes")}["node5"] == ["s0", "l1"]

        asked = d.run("run", "--dry-run", "--tasks", "2", "--gpus", "8", "--model", "H100-80GB", "-o", "json", "--", "true").out
        assert '"bandwidth_mbps"' in asked and '"slowdown_permille": 1000' in asked.replace(":1000", ": 1000"), asked
        wide = gang(d, 6)  # no leaf holds it: 3 and 3, of which one leaf has none left for the next
        d.wait(wide, "running")
        attempt = newest(d, wide)
        places = sorted(task["node"] for task in attempt["tasks"])
        assert len([p for p in places if p in ("node0", "node1", "node2", "node3")]) in (2, 3, 4)
        assert attempt["bandwidth_mbps"] > 0 and attempt["slowdown_permille"] >= 1000
        assert "GB/s expected" in d.run("job", str(wide)).out
        assert "%" in d.run("jobs", "-o", "wide").out

        picky = gang(d, 2, "--max-slowdown", "1%")  # one host is free in each leaf: through 4:1 that is too slow
        harness.wait_until("it waits for a faster place", lambda: "would take" in d.job(picky)["reason"])
        assert "max_slowdown" in d.run("explain", str(picky), "-v").out
        assert d.job(picky)["max_slowdown_permille"] == 10
        d.run("cancel", str(wide))
        d.wait(picky, "running")
        assert newest(d, picky)["slowdown_permille"] == 1000


def bound(d, *flags):
    number = d.submit("sleep", "300", flags=("--hold", *flags))
    return d.job(number)["max_slowdown_permille"]


def test_training_that_says_nothing_goes_by_the_policy():
    pair = ("--tasks", "2", "--gpus", "8", "--kind", "training")
    with harness.Daemon(nodes=NODES) as d:
        d.run("policy", "set", "--max-slowdown", "40")
        assert bound(d, *pair) == 0, "nobody has described the network"
        d.run("policy", "set", "--max-slowdown", "99900")
        d.run("fabric", "set", FILE)
        assert bound(d, *pair) == 0, "nobody has asked for it"
        d.run("policy", "set", "--max-slowdown", "50")
        assert bound(d, *pair) == 500
        assert [bound(d, *pair, "--max-slowdown", "20%"), bound(d, *pair, "--max-slowdown", "99900%")] == [200, 999000]
        assert bound(d, "--tasks", "2", "--gpus", "8", "--kind", "batch") == 0, "not of another kind"
        assert [bound(d), bound(d, "--gpus", "0.5"), bound(d, "--gpus", "8")] == [0, 0, 0], "who has all its GPUs in one host"
        assert bound(d, *pair, "--spread", "node") == 0
        d.run("policy", "set", "--max-slowdown", "30")
        assert "30" in [line for line in d.run("policy").out.splitlines() if "max-slowdown" in line][0].split()
        assert bound(d, *pair) == 300
        d.run("policy", "set", "--max-slowdown", "99900")
        assert bound(d, *pair) == 0
        refused = d.run("policy", "set", "--max-slowdown", "0", check=False)
        assert refused.code == 2 and "between 1 and 99900" in refused.err, refused
        assert [d.job(number)["max_slowdown_permille"] for number in (1, 3)] == [0, 500], "what was submitted stays as it was"


def test_on_one_machine_nothing_waits_for_a_faster_place_of_it():
    with harness.Daemon(nodes="sim:1x8xH100-80GB") as d:
        d.run("fabric", "set", "-", stdin="fabric: {hosts: {nics: 8, nic: ndr}}\n")
        d.run("policy", "set", "--max-slowdown", "50")
        assert bound(d, "--tasks", "2", "--gpus", "2", "--kind", "training") == 0


def test_what_is_wrong_in_the_file_is_named_by_line_and_column():
    with harness.Daemon(nodes="sim:2x8xH100-80GB") as d:
        bad = d.run("fabric", "set", "-", stdin="levels: [rack]\nfabric:\n  hosts: {nic: nrd}\n", check=False)
        assert bad.code != 0 and ":3:" in bad.err and "ndr" in bad.err, bad
        bad = d.run("fabric", "set", "-", stdin="nodes:\n  - {name: node7}\n", check=False)
        assert bad.code != 0 and 'no node "node7"' in bad.err, bad
        bad = d.run("fabric", "set", "-", stdin="fabric: {levels: {rack: {oversubscription: 2}}}\n", check=False)
        assert bad.code != 0 and 'no level "rack"' in bad.err, bad
        assert d.ask("fabric")["known"] is False
        bad = d.run("run", "-d", "--tasks", "2", "--max-slowdown", "20%", "--", "true", check=False)
        assert bad.code != 0 and "fairlead fabric set" in bad.err, bad
        bad = d.run("run", "-d", "--tasks", "2", "--max-slowdown", "much", "--", "true", check=False)
        assert bad.code != 0 and "such as 20%" in bad.err, bad


def test_nodes_stand_where_their_labels_say_and_stay_there_through_a_restart():
    with harness.Daemon(nodes="sim:2x8xH100-80GB") as d:
        d.run("nodes", "set", "node1", "--labels", "rack=r7")
        d.run("fabric", "set", "-", stdin="levels: [rack]\nlabels: {rack: rack}\nfabric: {hosts: {nics: 8, nic: ndr}}\n"
              "nodes: [{name: node0, rack: r1}]\n")
        where = lambda: {n["name"]: n["domains"] for n in d.ask("nodes")}
        assert where() == {"node0": ["r1"], "node1": ["r7"]}
        d.kill()
        d.up()
        assert where() == {"node0": ["r1"], "node1": ["r7"]}
        assert d.ask("fabric")["known"] is True
