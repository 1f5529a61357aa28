# SPDX-License-Identifier: Apache-2.0
"""The simulator's cluster file as the nodes of a daemon, and simulated nodes in racks: where jobs then run."""

import harness

FILE = """
cluster:
  levels: [spine, leaf]
  fabric:
    hosts: {nics: 8, nic: ndr}
    levels: {spine: {oversubscription: 4}}
  data: {web: {size: 1GB, at: [l0]}, old: {size: 2GB}}
  transfers: [{from: l0, to: l1, price: 0.5}]
  nodes:
    - {name: "a[0-1]", gpus: 8, model: H100-80GB, spine: s0, leaf: l0, labels: {pool: blue}, driver: "560.1", cuda: "12.6", nvlink: [[0, 1, 2, 3], [4, 5, 6, 7]]}
    - {name: "b[0-1]", gpus: 4, model: A100-80GB, cpus: 32, ram: 256GiB, spine: s0, leaf: l1, taints: [kept=ada], mig: [[3g.40gb, 3g.40gb]]}
queues:
  - {name: vision, guarantee: 4}
"""


def facts_of(d, name):
    return {f["fact"]: (f["value"], f["from"]) for f in d.ask("nodes", "facts", name)}


def where(d, number):
    d.wait(number, "running")
    return sorted(task["node"] for task in d.job(number)["attempts"][-1]["tasks"])


def test_a_daemon_has_the_nodes_of_a_cluster_file(tmp_path):
    file = tmp_path / "site.yaml"
    file.write_text(FILE)
    with harness.Daemon(cluster=str(file)) as d:
        nodes = {n["name"]: n for n in d.ask("nodes")}
        assert sorted(nodes) == ["a0", "a1", "b0", "b1"]
        assert nodes["a0"]["domains"] == ["s0", "l0"] and nodes["b1"]["domains"] == ["s0", "l1"]
        assert nodes["a0"]["labels"] == "pool=blue" and nodes["b0"]["taints"] == "kept=ada"
        assert all(n["simulated"] for n in nodes.values())
        assert (nodes["b0"]["cpu_milli"], nodes["b0"]["ram_mib"]) == (32000, 262144)
        facts = facts_of(d, "a0")
        assert facts["gpus"] == ("8 x H100-80GB", "file") and facts["cuda"] == ("12.6", "file")
        assert facts["islands"] == ("0-3 4-7", "file") and facts["leaf"] == ("l0", "file")
        assert facts["nics"] == ("8", "file")
        assert [s["slice"] for s in d.ask("gpus")[16]["slices"]] == ["3g.40gb", "3g.40gb"]
        assert [level["level"] for level in d.ask("fabric")["levels"]] == ["cluster", "spine", "leaf"]
        assert [s["name"] for s in d.ask("fabric")["data"]] == ["old", "web"] and d.ask("fabric")["transfers"][0]["price"] == "0.500000"
        assert "vision" not in {q["name"] for q in d.ask("queues")}, "queues are people's"
        # what the file says decides: labels, islands
        job = harness.Client(d.data).submit({"name": "one", "command": "sleep 300", "tasks": 2, "gpus": 4, "labels": {"pool": "blue"}}, "one")
        assert where(d, job) == ["a0", "a0"]
        assert sorted(t["gpus"] for t in d.job(job)["attempts"][-1]["tasks"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        # the work goes on over a restart, and slices stay what people made of them
        d.run("gpus", "cut", "b0/0", "--slices", "")
        d.stop()
        file.write_text(FILE.replace("leaf: l1", "leaf: l2").replace("a[0-1]", "a[0-2]").replace(", old: {size: 2GB}", ""))
        d.up()
        nodes = {n["name"]: n for n in d.ask("nodes")}
        assert sorted(nodes) == ["a0", "a1", "a2", "b0", "b1"] and nodes["b1"]["domains"] == ["s0", "l2"]
        assert d.state(job) == "running"
        assert [s["name"] for s in d.ask("fabric")["data"]] == ["web"]
        slices = {(g["node"], g["index"]): g["slices"] for g in d.ask("gpus")}
        assert slices["b0", 0] == [] and len(slices["b1", 0]) == 2


def test_what_the_file_says_wrong_is_told_with_its_place(tmp_path):
    file = tmp_path / "site.yaml"
    file.write_text(FILE.replace("cuda:", "cude:"))
    with harness.Daemon() as d:
        d.stop()
        answer = d.run("up", "--cluster", str(file), check=False)
        assert answer.code != 0 and "site.yaml:10" in answer.err and "cude" in answer.err, answer.err
        answer = d.run("up", "--cluster", str(file), "--nodes", "sim:1x1xT4", check=False)
        assert answer.code != 0 and "give one of them" in answer.err, answer.err
        d.up()


def test_simulated_nodes_stand_in_racks_until_somebody_says_otherwise(tmp_path):
    with harness.Daemon(nodes="sim:4x8xH100-80GB/rack=2/islands=2") as d:
        assert [n["domains"] for n in d.ask("nodes")] == [["r0"], ["r0"], ["r1"], ["r1"]]
        facts = facts_of(d, "node0")
        assert facts["rack"] == ("r0", "declared") and facts["islands"] == ("0-3 4-7", "declared")
        assert d.ask("fabric")["known"] is False, "nobody said how fast anything is"
        lone = d.submit("sleep", "300", flags=("--gpus", "8"))
        d.wait(lone, "running")
        wide = d.submit("sleep", "300", flags=("--tasks", "2", "--gpus", "8", "--require", "rack"))
        places = where(d, wide)
        assert len({{n["name"]: n["domains"][0] for n in d.ask("nodes")}[p] for p in places}) == 1
        d.run("cancel", str(wide))
        d.wait(wide)
        file = tmp_path / "cluster.yaml"
        file.write_text('nodes: [{name: "node[0-3]", rack: r9}]\n')
        d.run("fabric", "set", str(file))
        d.stop()
        d.up()
        assert [n["domains"] for n in d.ask("nodes")] == [["r9"]] * 4, "what a person said stays"
        assert facts_of(d, "node0")["rack"] == ("r9", "file")
