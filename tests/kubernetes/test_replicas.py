# SPDX-License-Identifier: Apache-2.0
"""Two daemons behind one Service, as the chart sets them up: shepherds in pods get now the one and now the other, and one of them leads. The Service is
a stand-in for kube-proxy that asks each daemon what the chart's readinessProbe asks; pods are run by the stand-in for kubelets."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import urllib.error

import yaml

import harness
from bed import TOP, free_port, wait_until
from stand_in import StandIn, Wire
from test_folders import outputs
from test_shepherds import ask, attempts_in, goes_on, process_of, steps, submit, token_of
from test_stand_by import LEASES, USERS, Asker, WatchedBed, leader_of, pair

LEASE = "2m"


class Service(Wire):
    """A connection goes to each that is ready in turn; one that is dead is not ready when its probe has found that."""

    def __init__(self, doors):
        super().__init__(0)
        self.doors, self.ready, self.turn = doors, [True] * len(doors), 0
        self.carried = [0] * len(doors)
        self.swallow = 0  # so many questions for leases get no answer, as from one that sleeps
        self.threads, self.over, self.lock = [], threading.Event(), threading.Lock()
        with open(os.path.join(TOP, "deploy/kubernetes/two-replicas.yaml")) as f:
            pod = next(m for m in yaml.safe_load_all(f) if m["kind"] == "StatefulSet")["spec"]["template"]["spec"]
        self.probe = pod["containers"][0]["readinessProbe"]

    def where(self):
        with self.lock:
            ready = [i for i, r in enumerate(self.ready) if r] or [0]
            self.turn += 1
            one = ready[self.turn % len(ready)]
            self.carried[one] += 1
            return "127.0.0.1", self.doors[one]

    def carry(self, near):
        if self.swallow and b"/lease " in near.recv(65536, socket.MSG_PEEK):
            with self.lock:
                self.swallow -= 1
            with near, contextlib.suppress(OSError):
                while near.recv(65536):
                    pass
            return
        super().carry(near)

    def watch(self, daemons):
        self.threads = [threading.Thread(target=self.look, args=(i, s)) for i, s in enumerate(daemons)]
        for t in self.threads:
            t.start()

    def look(self, i, s):
        """As a kubelet does, but for the period, which is a fifth of the chart's."""
        command, failed = [harness.PROGRAM, *self.probe["exec"]["command"][1:]], 0
        while not self.over.wait(self.probe["periodSeconds"] / 5):
            try:
                done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=s.env, timeout=self.probe["timeoutSeconds"]).returncode
            except subprocess.TimeoutExpired:
                done = 1
            failed = failed + 1 if done else 0
            self.ready[i] = failed < self.probe["failureThreshold"] and (self.ready[i] or not done)

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join()
        self.cut()


@contextlib.contextmanager
def replicas(*nodes, way=WatchedBed.path):
    service = Service([free_port() for _ in USERS])
    words = [("--pod-listen", "127.0.0.1:%d" % door, "--pod-address", service.address, "--shepherd-image", "fairlead", "--pod-lease", LEASE) for door in service.doors]
    try:
        with pair(0, (), words, way) as (_, b, daemons), StandIn(b, *nodes, daemon=service.address) as kubelets:
            service.watch(daemons)
            for s, door in zip(daemons, service.doors):
                s.pod_port = door
            leader_of(daemons)[0].wait_for_nodes(len(nodes))
            yield b, daemons, service, kubelets
    finally:
        service.end()


def leads(s):
    wait_until("the other one leads", lambda: Asker(s.data).election().get("leads"))


def made_once(b):
    """No pod was made, and none bound, twice."""
    made = [(resource, name) for user in USERS for _, verb, resource, name, status in b.changes(user, 0, 1e12)
            if verb == "create" and status == 201 and resource in ("pods", "pods/binding")]
    assert len(made) == len(set(made)), made


def test_leaders_are_killed_while_pods_run_and_their_shepherds_find_the_next(tmp_path):
    with replicas("n0", "n1") as (b, daemons, service, kubelets):
        leader, other = leader_of(daemons)
        leader.run("policy", "set", "--min-runtime", "1s")
        counts, saves = (submit(leader, tmp_path / name, number, flags=["--gpus", "8"]) for name, number in (("counts", "3000"), ("saves", "100000")))
        for name in ("counts", "saves"):
            goes_on(tmp_path / name)
        folder = tmp_path / "code"
        folder.mkdir()
        (folder / "code.py").write_text("print('from the snapshot')\n")
        carried = list(service.carried)
        wait_until("shepherds ask both", lambda: all(now > before for now, before in zip(service.carried, carried)))
        for _ in range(2):
            leader.kill()
            leads(other)
            for name in ("counts", "saves"):
                goes_on(tmp_path / name, 1)
            # What it leads by now it gives away: each of the pods asks both for the folder.
            fetched = other.submit("--snapshot", str(folder), "--gpus", "0", "-t", "2", "--", "python3", "code.py")
            leader.up()
            leader, other = leader_of(daemons)
            leader.wait_for(fetched, "succeeded")
            assert outputs(kubelets, fetched) == ["from the snapshot\n"] * 2
        leader.wait_for(counts, "succeeded")
        told = leader.ask("job", str(counts))
        assert [step for _, step in steps(tmp_path / "counts")] == list(range(1, 3001))
        assert told["attempt_count"] == 1 and told["attempts"][-1]["tasks"][0]["step"] == 3000, told
        # A wish comes through, from one that did not lead when the pod was made.
        critical = leader.submit("--gpus", "8", "-t", "2", "--tier", "critical", "--workdir", "/", "--", "true")
        leader.wait_for(critical, "succeeded")
        wait_until("it goes on", lambda: attempts_in(steps(tmp_path / "saves"))[1:])
        done = steps(tmp_path / "saves")
        assert [step for _, step in done] == list(range(1, len(done) + 1)) and len(attempts_in(done)) == 2, "a step was lost or done twice"
        told = leader.ask("job", str(saves))
        assert told["attempt_count"] == 2 and told["checkpoints"], told
        made_once(b)
        leader.run("cancel", str(saves))
        leader.wait_for(saves, "cancelled")


def test_a_leader_that_sleeps_keeps_no_shepherd_and_says_nothing_final_when_it_wakes(tmp_path):
    with replicas("n0") as (b, daemons, service, kubelets):
        leader, other = leader_of(daemons)
        job = submit(leader, tmp_path, "100000", flags=["--gpus", "8"])
        goes_on(tmp_path)
        process = process_of(kubelets, leader, job)
        leader.process.send_signal(signal.SIGSTOP)
        leads(other)
        asleep = daemons.index(leader)
        wait_until("the Service leaves out who does not answer", lambda: not service.ready[asleep])
        reported = other.ask("job", str(job))["attempts"][-1]["tasks"][0]["step"] or 0
        wait_until("reports come in", lambda: other.ask("job", str(job))["attempts"][-1]["tasks"][0]["step"] > reported)
        leader.process.send_signal(signal.SIGCONT)
        assert leader.process.wait(timeout=harness.PATIENCE_S) != 0
        leader.up()
        wait_until("the Service takes it in again", lambda: service.ready[asleep])
        carried = service.carried[asleep]
        wait_until("it is asked", lambda: service.carried[asleep] > carried)
        goes_on(tmp_path)
        assert process.poll() is None and other.ask("job", str(job))["attempt_count"] == 1
        other.run("cancel", str(job))
        other.wait_for(job, "cancelled")
        made_once(b)


def test_a_leader_that_is_cut_off_from_the_cluster_gives_no_leases_and_the_next_one_does(tmp_path):
    wires = []

    def way(b, user):
        with open(b.path(user)) as f:
            config = json.load(f)
        wires.append(Wire(b.port))
        config["clusters"][0]["cluster"]["server"] = "https://" + wires[-1].address
        with open(b.path(user + "-wire"), "w") as f:
            json.dump(config, f)
        return f.name

    with replicas("n0", way=way) as (b, daemons, service, kubelets):
        leader, other = leader_of(daemons)
        job = submit(leader, tmp_path, "100000", flags=["--gpus", "8"])
        goes_on(tmp_path)
        process, token = process_of(kubelets, leader, job), token_of(b, leader, job)
        wires[daemons.index(leader)].cut()

        def answer():
            try:
                return ask(leader, token, "/pods/v1/attempts/1/ranks/0/lease", {"wait_ms": 0, "warning": 0})[0]
            except urllib.error.URLError:
                return None  # it has ended: the journal is the other one's
        wait_until("it gives no leases", lambda: answer() in (503, None))
        leads(other)
        reported = other.ask("job", str(job))["attempts"][-1]["tasks"][0]["step"] or 0
        wait_until("reports come in", lambda: other.ask("job", str(job))["attempts"][-1]["tasks"][0]["step"] > reported)
        goes_on(tmp_path)
        assert answer() in (503, None)
        assert process.poll() is None and other.ask("job", str(job))["attempt_count"] == 1
        other.run("cancel", str(job))
        other.wait_for(job, "cancelled")
        made_once(b)
        for wire in wires:
            wire.cut()


def test_a_shepherd_that_gets_no_answer_asks_more_often_and_finds_who_leads_in_time(tmp_path):
    with replicas("n0") as (b, daemons, service, kubelets):
        leader, _ = leader_of(daemons)
        job = submit(leader, tmp_path, "100000", flags=["--gpus", "8"])
        goes_on(tmp_path)
        process = process_of(kubelets, leader, job)
        service.swallow = 4  # were each waited for as long as one that answers late, the lease would end
        wait_until("four questions were in vain", lambda: not service.swallow)
        carried = sum(service.carried)
        wait_until("it asks again", lambda: sum(service.carried) > carried + 4)
        goes_on(tmp_path)
        assert process.poll() is None and leader.ask("job", str(job))["attempt_count"] == 1
        leader.run("cancel", str(job))
        leader.wait_for(job, "cancelled")


def test_who_follows_answers_nothing_as_if_it_led(tmp_path):
    with replicas("n0") as (b, daemons, service, kubelets):
        leader, other = leader_of(daemons)
        job = submit(leader, tmp_path, "100000", flags=["--gpus", "1"])
        leader.wait_for(job, "running")
        goes_on(tmp_path)
        token, rank = token_of(b, leader, job), "/pods/v1/attempts/1/ranks/0/"
        wait_until("the other one knows of it", lambda: "running" in [j["state"] for j in other.ask("jobs", "--all")])
        bodies = {"lease": {"wait_ms": 0, "warning": 0}, "reports": {"reports": [{"number": 999, "step": 1}]}, "ended": {"code": 0}}
        for what, body in bodies.items():
            status, said = ask(other, token, rank + what, body)
            assert status == 503 and "stands by" in said, (what, status, said)
        # Of an attempt that is over, too, for it is behind; a bad token is refused by both.
        assert ask(leader, token, rank + "lease", bodies["lease"])[0] == 200
        leader.run("cancel", str(job))
        leader.wait_for(job, "cancelled")
        wait_until("the other one knows of that", lambda: "cancelled" in [j["state"] for j in other.ask("jobs", "-a")])
        assert ask(leader, token, rank + "lease", bodies["lease"])[0] == 409
        assert ask(other, token, rank + "lease", bodies["lease"])[0] == 503
        assert [ask(s, token[:-1], rank + "lease", {})[0] for s in daemons] == [401, 401]
        # A person who came to the wrong one is told where to go.
        refused = other.run("cancel", str(job), check=False)
        assert refused.code != 0 and "stands by" in refused.err and leader.data in refused.err, refused
        (lease,) = b.get(LEASES)["items"]
        assert lease["spec"]["holderIdentity"].split("_")[0] == socket.gethostname()  # which is the pod's name in a StatefulSet
