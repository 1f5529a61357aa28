# SPDX-License-Identifier: Apache-2.0
"""Traces become workloads, workloads are replayed, and the page says what the JSON says."""

import html.parser
import json
import os
import re
import subprocess

import harness

CLUSTER = 'cluster:\n  nodes:\n    - {name: "n[0-3]", gpus: 8}\n'
POLICIES = ("plain:fifo-strict", "plain:sjf-skip")


def fairlead(*words, **more):
    return subprocess.run([harness.PROGRAM, *words], capture_output=True, text=True, timeout=120, env=dict(os.environ, NO_COLOR="1"), **more)


def trace(jobs):
    lines = ["job_id,submit_s,duration_s,num_gpu,vc"]
    for i in range(jobs):
        lines.append("%d,%d,%d,%d,vc%d" % (i, 7 * i, 60 + 997 * i % 5000, (1, 2, 8, 1, 4, 12)[i % 6], i % 3))
    return "\n".join(lines) + "\n"


def replayed(folder):
    (folder / "c.yaml").write_text(CLUSTER)
    done = fairlead("sim", "convert", "--from", "philly", "--out", str(folder / "w.csv"), "-", input=trace(300))
    assert done.returncode == 0, done.stderr
    words = ["sim", "replay", "--cluster", str(folder / "c.yaml"), "--workload", str(folder / "w.csv"), "--report", str(folder / "out")]
    for policy in ("fairlead", *POLICIES):
        words += ["--policy", policy]
    done = fairlead(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Cells(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "tr":
            self.rows.append({})
        if tag == "td" and "data-figure" in attributes:
            self.rows[-1][attributes["data-figure"]] = float(attributes["data-value"])


def figure_of(figures, name):
    for part in name.split("."):
        figures = figures[int(part) if part.isdigit() else part]
    return figures


def browsed(folder):
    browser = ["chromium", "--headless", "--disable-gpu", "--user-data-dir=%s" % (folder / "browser"), "--dump-dom"]
    if os.getuid() == 0:
        browser.append("--no-sandbox")
    for last in (False, False, True):  # it is not ours: on a busy machine it may give up
        try:
            done = subprocess.run([*browser, "file://%s/out/replay.html" % folder], capture_output=True, text=True, timeout=150)
            if last or done.returncode == 0 and "</html>" in done.stdout:
                return done
        except subprocess.TimeoutExpired:
            if last:
                raise


def test_the_page_in_a_browser_says_what_the_json_says(tmp_path):
    table = replayed(tmp_path)
    assert "plain" not in table and "fifo-strict: 300 jobs, 300 ended" in table and "replay.html" in table
    assert [line.split()[0] for line in table.split("completion  ")[-1].splitlines()[1:4]] == ["fairlead", "fifo-strict", "sjf-skip"]
    report = json.loads((tmp_path / "out" / "replay.json").read_text())
    assert report["format"] == "fairlead-replay 1" and report["gpus"] == 32 and len(report["policies"]) == 3
    done = browsed(tmp_path)
    cells = Cells()
    cells.feed(done.stdout)
    rows = [row for row in cells.rows if row]
    assert len(rows) == 3, done.stderr
    for row, policy in zip(rows, report["policies"]):
        assert len(row) == 10
        for name, value in row.items():
            assert value == figure_of(policy["figures"], name), (policy["policy"], name)
    assert done.stdout.count("<figure>") == 2 + 2 + 3
    assert "<script" not in done.stdout and "http" not in done.stdout.replace("http://www.w3.org", "")


def test_a_page_with_all_columns_says_what_the_json_says_and_praises_few(tmp_path):
    """Queues, prices, deadlines, nodes that go: the table in the browser is the JSON; a star stands where half of the policies at most are as good."""
    (tmp_path / "c.yaml").write_text(CLUSTER.replace("gpus: 8}", "gpus: 8, model: L4}") + 'queues:\n  - {name: a}\n  - {name: b}\npolicy: {prices: {L4: 1.25}}\n')
    lines = ["%d,%d,%d,%s,%d" % (40 * i, 60 + 997 * i % 5000, (1, 2, 8, 1, 4)[i % 5], "ab"[i % 2], 3600 * (i % 3)) for i in range(200)]
    (tmp_path / "w.csv").write_text("#fairlead-workload 1\nsubmit_s,run_s,gpus,queue,deadline_s\n" + "\n".join(lines) + "\n")
    (tmp_path / "a.csv").write_text("#fairlead-availability 1\nat_s,node,there\n2000,n1,0\n4000,n1,1\n")
    words = ["--cluster", str(tmp_path / "c.yaml"), "--workload", str(tmp_path / "w.csv"), "--availability", str(tmp_path / "a.csv")]
    names = ("fairlead", "plain:fifo-strict", "plain:sjf-skip", "plain:las")
    done = fairlead("sim", "replay", *words, *(word for name in names for word in ("--policy", name)), "--report", str(tmp_path / "out"))
    assert done.returncode == 0, done
    policies = json.loads((tmp_path / "out" / "replay.json").read_text())["policies"]
    page = browsed(tmp_path).stdout
    cells = Cells()
    cells.feed(page)
    rows = [row for row in cells.rows if row]
    assert len(rows) == 4 + 2 * 4, page
    for row, policy in zip(rows, policies + [p for _ in "ab" for p in policies]):
        assert len(row) == (5 if any(name.startswith("queues.") for name in row) else 12)
        for name, value in row.items():
            found = policy if name.startswith("queues.") else policy["figures"]
            assert value == figure_of(found, name), (policy["policy"], name)
    best = re.findall(r'class="best" data-figure="([^"]+)"', page)
    assert best and "utilisation" not in best and all(best.count(name) <= 2 for name in best), best
    assert page.count("<figure>") == 2 + 2 + 4


def test_the_example_of_two_clusters_in_one_says_what_comes_out(tmp_path):
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "consolidation")
    text = open(os.path.join(folder, "README.md")).read()
    training, serving = (open(os.path.join(folder, name + ".csv")).read() for name in ("training", "serving"))
    (tmp_path / "both.csv").write_text(training + "".join(serving.splitlines(True)[2:]))

    def outcomes(cluster, workload, *more):
        words = ["sim", "replay", "--cluster", os.path.join(folder, cluster), "--workload", os.path.join(folder, workload), *more]
        return json.loads(fairlead(*words, "-o", "json").stdout)

    def took(policy):
        return {q["queue"]: (q["wait_s"]["p99"], q["completion_s"]["mean"] / 60) for q in policy["queues"]}

    alone = [outcomes(k + ".yaml", k + ".csv") for k in ("serving", "training")]
    shared = outcomes("merged.yaml", str(tmp_path / "both.csv"), "--policy", "fairlead", "--policy", "plain:fifo-skip")
    rows = [("two clusters", sum(o["gpus"] for o in alone), " and ".join("%.1f" % (100 * o["policies"][0]["figures"]["utilisation"]) for o in alone),
             "%.3g s" % took(alone[0]["policies"][0])["serving"][0], took(alone[1]["policies"][0])["training"][1])]
    for name, policy, form in zip(("one, Fairlead", "one, first come first served"), shared["policies"], ("%.3g s", "%.1f min")):
        wait = took(policy)["serving"][0]
        rows.append((name, shared["gpus"], "%.1f" % (100 * policy["figures"]["utilisation"]), form % (wait if form.endswith(" s") else wait / 60),
                     took(policy)["training"][1]))
    for row in rows:
        assert "| %s | %d | %s %% | %s | %.1f min |" % row in text, row
    assert "%.1f %% longer" % (100 * (rows[1][4] / rows[0][4] - 1)) in text


def test_a_replay_repeats_to_the_bit_and_refuses_by_name(tmp_path):
    replayed(tmp_path)
    first = {name: (tmp_path / "out" / name).read_bytes() for name in ("replay.json", "replay.html")}
    replayed(tmp_path)
    assert first == {name: (tmp_path / "out" / name).read_bytes() for name in first}
    words = ["sim", "replay", "--cluster", str(tmp_path / "c.yaml"), "--workload", str(tmp_path / "w.csv")]
    done = fairlead(*words, "--policy", "plain:best")
    assert done.returncode == 2 and '"best" is not known; there are fifo-strict' in done.stderr
    (tmp_path / "bad.yaml").write_text("policy: {min_runtme: 1h}\n")
    done = fairlead(*words, "--policy", str(tmp_path / "bad.yaml"))
    assert done.returncode == 2 and "bad.yaml:1:" in done.stderr and "min_runtime" in done.stderr
    done = fairlead(*words, "--report", "/proc/no")
    assert done.returncode == 2 and "can't make the folder /proc/no" in done.stderr
    done = fairlead("sim", "convert", "--from", "philly", "--out", str(tmp_path / "none.csv"), "-", input="a,b\n")
    assert done.returncode == 2 and 'column "job_id" is missing' in done.stderr and not (tmp_path / "none.csv").exists()
    assert fairlead("sim", "convert", "--from", "philly", "-", input=b"\x1f\x8b\0".decode("latin1")).returncode == 2


def test_each_queue_has_its_figures(tmp_path):
    (tmp_path / "c.yaml").write_text(CLUSTER + "queues:\n  - {name: vision}\n  - {name: speech}\n")
    (tmp_path / "w.csv").write_text("#fairlead-workload 1\nsubmit_s,run_s,gpus,tasks,queue\n0,100,8,4,vision\n1,50,8,4,vision\n2,10,8,1,speech\n3,20,1,1,\n")
    words = ["sim", "replay", "--cluster", str(tmp_path / "c.yaml"), "--workload", str(tmp_path / "w.csv"), "--report", str(tmp_path / "out")]
    done = fairlead(*words, "--policy", "plain:fifo-strict", "--policy", "plain:sjf-skip")
    assert re.search(r"by queue .*\n +default +1 .*\n +speech +1 .*\n +vision +2 ", done.stdout), done.stdout
    policies = json.loads((tmp_path / "out" / "replay.json").read_text())["policies"]
    assert [(q["queue"], q["jobs"], q["wait_s"]["mean"]) for q in policies[0]["queues"]] == [("default", 1, 147), ("speech", 1, 148), ("vision", 2, 49.5)]
    cells = Cells()
    cells.feed((tmp_path / "out" / "replay.html").read_text())
    rows = [row for row in cells.rows if any(name.startswith("queues.") for name in row)]
    assert len(rows) == 3 * 2
    for number, row in enumerate(rows):
        assert len(row) == 5
        for name, value in row.items():
            assert name.split(".")[1] == str(number // 2) and value == figure_of(policies[number % 2], name)


def test_a_made_workload_is_one_that_can_be_replayed(tmp_path):
    (tmp_path / "c.yaml").write_text(CLUSTER + "queues:\n  - {name: vision}\n  - {name: speech}\n")
    words = ["sim", "generate", "--cluster", str(tmp_path / "c.yaml"), "--days", "3", "--load", "60"]
    made = [fairlead(*words, "--seed", seed, "--out", str(tmp_path / seed)) for seed in ("5", "6")]
    assert [m.returncode for m in made] == [0, 0], made
    assert fairlead(*words, "--seed", "5").stdout == (tmp_path / "5").read_text() != (tmp_path / "6").read_text()
    done = fairlead("sim", "replay", "--cluster", str(tmp_path / "c.yaml"), "--workload", str(tmp_path / "5"), "-o", "json")
    figures = json.loads(done.stdout)["policies"][0]["figures"]
    assert figures["jobs"] == figures["ended"] > 50
    refused = fairlead("sim", "generate", "--cluster", str(tmp_path / "c.yaml"), "--days", "0", "--out", str(tmp_path / "none"))
    assert refused.returncode == 2 and "--days" in refused.stderr and not (tmp_path / "none").exists()


def test_words_that_make_no_sense_are_refused_by_name(tmp_path):
    (tmp_path / "c.yaml").write_text(CLUSTER)
    cluster, out = str(tmp_path / "c.yaml"), tmp_path / "out"
    for words, said in ((("generate", "--cluster", cluster), "--days are needed"), (("generate", "--cluster", cluster, "--days", "1", "--load", "1001", "--out", str(out)), "--load: 1001"),
                        (("generate", "--cluster", str(tmp_path / "no"), "--days", "1", "--out", str(out)), "no such file"), (("replay", "--cluster", cluster), "--workload are needed"),
                        (("replay", "--cluster", cluster, "--workload", cluster, "--seed", "x"), "--seed"), (("replay", "--cluster", cluster, "--workload", cluster, "-o", "xml"), "table|json"),
                        (("replay", "--cluster", cluster, "--workload", cluster, "--foretell", "0"), "--foretell: 0"), (("convert", cluster), "--from is needed: journal, philly"),
                        (("convert", "--from", "gavel", "--rate", "0", "--out", str(out), cluster), '--rate is "0"'), (("scenario",), "FILE..."), (("scenario", "-o", "xml", cluster), "tap|json")):
        done = fairlead("sim", *words)
        assert done.returncode == 2 and said in done.stderr and not done.stdout and not out.exists(), (words, done)
    many = fairlead("sim", "replay", "--cluster", cluster, "--workload", cluster, *["--policy=fairlead"] * 65)
    assert many.returncode == 2 and "more than 64 policies" in many.stderr


def test_nodes_come_and_go_and_what_it_cost_is_told(tmp_path):
    (tmp_path / "c.yaml").write_text('cluster:\n  nodes:\n    - {name: d, gpus: 1, model: L4}\n    - {name: s-1, gpus: 1, model: L4, capacity: spot}\n'
                                     'policy: {prices: {L4: 9, "spot:L4": 3}}\n')
    (tmp_path / "w.csv").write_text("#fairlead-workload 1\njob,submit_s,run_s,kind,checkpoints,checkpoint_every_s,restart_s,estimate_s,deadline_s\n"
                                    "j,0,36000,training,yes,60,60,36000,50400\n")
    samples = [0 if i % 10 > 6 else 1 for i in range(200)]  # 70 of 100 minutes
    done = fairlead("sim", "convert", "--from", "spot", "--node", "s", "--out", str(tmp_path / "a.csv"), "-",
                    input=json.dumps({"metadata": {"gap_seconds": 600}, "data": samples}))
    assert done.returncode == 0, done.stderr
    words = ["sim", "replay", "--cluster", str(tmp_path / "c.yaml"), "--workload", str(tmp_path / "w.csv"), "--availability", str(tmp_path / "a.csv")]
    done = fairlead(*words, "--report", str(tmp_path / "out"))
    assert done.returncode == 0 and "paid for the GPUs held" in done.stdout, done
    figures = json.loads((tmp_path / "out" / "replay.json").read_text())["policies"][0]["figures"]
    assert figures["completion_s"]["most"] <= 50400 and 30 < figures["cost"] < 60 and figures["evictions"] >= 5, figures
    assert 'data-figure="cost"' in (tmp_path / "out" / "replay.html").read_text()
    assert figures["deadlines"] == 1 and figures["deadlines_missed"] == 0 and "0 of 1 deadlines missed" in done.stdout
    names = ("fairlead", "plain:uniform-progress", "plain:spot-greedy", "plain:fifo-skip")
    done = fairlead(*words, *(word for name in names for word in ("--policy", name)), "--report", str(tmp_path / "all"))
    assert done.returncode == 0, done
    policies = {p["policy"]: p["figures"] for p in json.loads((tmp_path / "all" / "replay.json").read_text())["policies"]}
    assert policies["fairlead"] == figures
    for name in ("uniform-progress", "spot-greedy"):
        assert policies[name]["deadlines_missed"] == 0 and figures["cost"] <= policies[name]["cost"] < 60, policies
    assert figures["cost"] < policies["uniform-progress"]["cost"]  # its line has it on demand though spot is near
    cells = Cells()
    cells.feed((tmp_path / "all" / "replay.html").read_text())
    rows = [row for row in cells.rows if row]
    assert [(row["cost"], row["deadlines_missed"]) for row in rows] == [(p["cost"], p["deadlines_missed"]) for p in policies.values()]
    (tmp_path / "a.csv").write_text("#fairlead-availability 1\nat_s,node,there\n0,s-2,0\n")
    for name in names:
        refused = fairlead(*words, "--policy", name)
        assert refused.returncode == 2 and 'a.csv:3:1: the cluster has no node "s-2"' in refused.stderr, refused
