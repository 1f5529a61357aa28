# SPDX-License-Identifier: Apache-2.0
"""Two daemons on one journal: one leads, by a Lease, and the other follows it and takes over. On a real API server, which keeps a log of who
changed what, and on a real PostgreSQL. scripts/campaign-takeover runs the long forms."""

import contextlib
import datetime
import http.client
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "postgres"))

import pytest

import harness
import server
from bed import Bed, wait_until
from cluster import Serve

HERE = os.path.dirname(os.path.abspath(__file__))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
KILLS = int(os.environ.get("FAIRLEAD_TAKEOVER_KILLS", "10"))
SERVER_KILLS = int(os.environ.get("FAIRLEAD_TAKEOVER_SERVER_KILLS", "5"))
PAUSES = int(os.environ.get("FAIRLEAD_TAKEOVER_PAUSES", "20"))
USERS = ("first", "second")
NODES = 4


class WatchedBed(Bed):
    """Each daemon has an account of its own, and what each changes is written down by the API server."""

    def write_keys(self):
        super().write_keys()
        with open(self.kubeconfig) as f:
            config = json.load(f)
        with open(self.path("tokens.csv"), "a") as f:
            for user in USERS:
                f.write('%s-%s,%s,%s,"system:masters"\n' % (self.token, user, user, user))
        for user in USERS:
            config["users"][0]["user"]["token"] = "%s-%s" % (self.token, user)
            with open(self.path(user), "w") as f:
                json.dump(config, f)
        with open(self.path("audit.yaml"), "w") as f:
            json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
                       "rules": [{"level": "Metadata", "users": list(USERS), "verbs": ["create", "update", "patch", "delete"]}, {"level": "None"}]}, f)

    def start(self, name, *words):
        if name == "kube-apiserver":
            words += ("--audit-policy-file", self.path("audit.yaml"), "--audit-log-path", self.path("audit.log"), "--audit-log-mode", "blocking")
        super().start(name, *words)

    def changes(self, user, since, until):
        """(time, verb, resource, name, status) of what came from the account between the two."""
        found = []
        with open(self.path("audit.log")) as f:
            for line in f:
                e = json.loads(line)
                at = datetime.datetime.fromisoformat(e["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()
                if e["user"]["username"] == user and since <= at <= until:
                    o = e["objectRef"]
                    found.append((at, e["verb"], "/".join(filter(None, (o["resource"], o.get("subresource")))), o.get("name"), e["responseStatus"]["code"]))
        return found


class Asker:
    """Short requests to one daemon, which may be dead or asleep: None then."""

    def __init__(self, data):
        self.path = os.path.join(data, "fairlead.sock")

    def ask(self, method, path, body=None, headers=None, patience=2):
        connection = harness.UnixConnection(self.path)
        connection.timeout = patience
        try:
            connection.connect()
            connection.sock.settimeout(patience)
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers or {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null")
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def election(self):
        answer = self.ask("GET", "/api/v1/status")
        return answer[1]["election"] if answer and answer[0] == 200 else {}


class Load:
    """Clients that submit to whoever takes it, with a key for each job, and know what was acknowledged under which number."""

    def __init__(self, daemons, clients=2):
        self.askers = [Asker(s.data) for s in daemons]
        self.acknowledged, self.at, self.stop, self.lock = {}, [], False, threading.Lock()
        self.threads = [threading.Thread(target=self.submit, args=(i,)) for i in range(clients)]
        for t in self.threads:
            t.start()

    def submit(self, client):
        number = 0
        while not self.stop:
            key = "c%d-%d" % (client, number)
            job = {"name": key, "command": ["true"], "gpus": 1, "image": "none"}
            for asker in self.askers:
                answer = asker.ask("POST", "/api/v1/jobs", job, {"Content-Type": "application/json", "Idempotency-Key": key})
                if answer and answer[0] in (200, 201):
                    with self.lock:
                        self.acknowledged[key] = answer[1]["id"]
                        self.at.append(time.monotonic())
                    number += 1
                    break
                assert answer is None or answer[0] == 503, answer
            time.sleep(0.2)

    def more(self, count):
        before = len(self.at)
        wait_until("jobs are taken", lambda: len(self.at) > before + count)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()


def leader_of(daemons):
    """(the one that leads, the other one), as soon as there is one and the other follows it."""
    found = []

    def known():
        said = [Asker(s.data).election() for s in daemons]
        for i in (0, 1):
            if said[i].get("leads") and said[1 - i].get("stands_by") and said[1 - i].get("leader") == said[i]["leader"]:
                found.append((daemons[i], daemons[1 - i]))
        return found
    wait_until("one leads and the other follows", known)
    return found[0]


@contextlib.contextmanager
def pair(nodes=3, parts=("kwok",), words=((), ()), way=WatchedBed.path):
    """words: what each of the two is started with besides; way: the kubeconfig of a user."""
    with server.Server() as db:
        b = WatchedBed(parts, os.path.join(HERE, "kubelet.yaml"))
        daemons = []
        try:
            b.start_all()
            for i in range(nodes):
                b.node("n%d" % i)
            daemons = [Serve(b, "--stand-by", "--store", db.address, *more, kubeconfig=way(b, user)) for user, more in zip(USERS, words)]
            for s in daemons:
                open(s.data + ".log", "wb").close()
            daemons[0].up()
            wait_until("the first one leads", lambda: Asker(daemons[0].data).election().get("leads"))
            shutil.copytree(os.path.join(daemons[0].data, "keys"), os.path.join(daemons[1].data, "keys"))
            if os.path.exists(os.path.join(daemons[0].data, "kubernetes-instance")):
                shutil.copy(os.path.join(daemons[0].data, "kubernetes-instance"), daemons[1].data)
            daemons[1].up()
            daemons[0].wait_for_nodes(nodes)
            leader_of(daemons)
            yield db, b, daemons
        except BaseException:
            for s in daemons:
                print("a daemon's log:\n" + s.log())
            raise
        finally:
            for s in daemons:
                s.destroy()
            b.stop()


ENDS = ("succeeded", "failed", "cancelled", "timed-out")


def nothing_lost_or_repeated(b, s, load, gang, before):
    """Each job is there once, under the number that was acknowledged, and was run once; the gang that ran before runs on, in the same pods."""
    asker = harness.Client(s.data)
    load.end()
    wait_until("all have ended", lambda: all(j["state"] in ENDS for j in asker.jobs() if j["id"] != gang))
    failed = [j for j in asker.jobs() if j["state"] != "succeeded" and j["id"] != gang]
    assert not failed, failed
    names = {}
    for job in asker.jobs():
        assert job["name"] not in names, job
        names[job["name"]] = job["id"]
    names.pop("sleep")
    assert names == load.acknowledged
    made = {}
    for at, verb, resource, name, status in sorted(sum((b.changes(u, 0, 1e12) for u in USERS), [])):
        if verb == "create" and status == 201 and resource in ("pods", "pods/binding"):
            made.setdefault((resource, name), []).append(at)
    twice = {k: v for k, v in made.items() if len(v) > 1}
    assert not twice, twice
    again = {job: s for job in names.values() for s in [asker.get("/api/v1/jobs/%d" % job)["attempts"]] if len(s) != 1}
    assert not again, again  # no job was started a second time
    assert s.state(gang) == "running" and s.attempt(gang) == 1
    assert {n: p["metadata"]["uid"] for n, p in s.pods().items() if n in before} == before
    verified = s.run("journal", "verify")
    assert "Every record is as it was written." in verified.out


def begin(b, s):
    gang = s.submit("-g", "8", "-t", "2", "--", "sleep")
    s.wait_for(gang, "running")
    return gang, {n: p["metadata"]["uid"] for n, p in s.pods().items()}


def say(what, took):
    took = sorted(took)
    print("%s: %d, P50 %.1f s, P99 %.1f s, longest %.1f s" % (
        what, len(took), statistics.median(took), took[min(len(took) - 1, int(len(took) * 0.99))], took[-1]))


def test_a_stand_by_follows_refuses_changes_and_leads_when_the_leader_is_stopped():
    with pair() as (db, b, daemons):
        a, c = leader_of(daemons)
        gang, before = begin(b, a)
        wait_until("the stand-by has it", lambda: "running" in [j["state"] for j in c.ask("jobs", "--all") if j["id"] == gang])
        assert len(c.ask("nodes")) == 3 and "sleep" in c.run("job", str(gang), "--history").out + c.run("job", str(gang)).out
        refused = c.run("run", "-d", "--", "true", check=False)
        assert refused.code != 0 and "stands by" in refused.err and a.data + "/fairlead.sock" in refused.err, refused
        status, health = Asker(c.data).ask("GET", "/healthz", patience=100)
        assert status == 200 and health["status"] == "standing-by" and health["leader"] == Asker(a.data).election()["leader"]
        assert Asker(a.data).ask("GET", "/healthz", patience=100)[1]["status"] == "ok"
        assert "stands by" in c.run("doctor", check=False).out and "takes work" in a.run("doctor", check=False).out
        epoch = int(db.ask("SELECT epoch FROM fairlead.head"))
        assert a.stop() == 0
        lease = b.get(LEASES)["items"][0]
        wait_until("the other one leads", lambda: Asker(c.data).election().get("leads"))
        assert lease["spec"]["leaseDurationSeconds"] == 8
        assert int(db.ask("SELECT epoch FROM fairlead.head")) == epoch + 1
        assert c.state(gang) == "running" and c.attempt(gang) == 1
        c.wait_for(c.submit("-g", "1", "--", "true"), "succeeded")
        assert {n: p["metadata"]["uid"] for n, p in c.pods().items() if n in before} == before


def test_whoever_asks_before_a_stand_by_knows_who_leads_is_told_to_come_again():
    if not harness.has_failpoints():
        pytest.skip("this build has no failpoints")
    with pair() as (db, b, daemons), harness.Gate() as gate:
        a, c = leader_of(daemons)
        assert c.stop() == 0
        c.env.update(FAIRLEAD_FAILPOINT="stand-by-before-lease:hold", FAIRLEAD_FAILPOINT_GATE=gate.path)
        said = []

        def ask_while_it_is_held():
            gate.wait()
            said.append(c.run("run", "-d", "--", "true", check=False))
            said.append(Asker(c.data).ask("GET", "/healthz", patience=100)[0])
            gate.open()

        # The daemon is of this thread: it ends with the one that made it.
        asks = threading.Thread(target=ask_while_it_is_held)
        asks.start()
        c.up()
        asks.join()
        refused, health = said
        assert refused.code != 0 and "no other one leads at present" in refused.err and health == 200, said
        wait_until("it knows who leads", lambda: a.data in c.run("run", "-d", "--", "true", check=False).err)


def test_another_key_never_leads(tmp_path):
    with pair() as (db, b, daemons):
        a, c = leader_of(daemons)
        begin(b, a)
        assert c.stop() == 0
        key = os.path.join(c.data, "keys", "body.key")
        with open(key, "r+b") as f:
            f.write(os.urandom(32))
        refused = subprocess.run([harness.PROGRAM, "serve", "--engine", "kubernetes", "--kubeconfig", c.kubeconfig, "--image", "none"],
                                 capture_output=True, text=True, env=c.env, timeout=60)
        assert refused.returncode != 0 and "is not the key" in refused.stderr, refused
        wait_until("nobody was disturbed", lambda: Asker(a.data).election().get("leads"))


def test_killing_the_leader_under_load_loses_and_repeats_nothing():
    took = []
    with pair(NODES) as (db, b, daemons):
        gang, before = begin(b, leader_of(daemons)[0])
        load = Load(daemons)
        for _ in range(KILLS):
            load.more(10)
            leader, other = leader_of(daemons)
            leader.kill()
            killed = time.monotonic()
            wait_until("the other one takes work", lambda: any(at > killed + 0.5 for at in load.at[-4:]))
            took.append(min(at for at in load.at if at > killed + 0.5) - killed)
            leader.up()
        say("take-overs from a leader that was killed", took)
        nothing_lost_or_repeated(b, leader_of(daemons)[0], load, gang, before)


def test_killing_the_database_under_load_loses_and_repeats_nothing():
    took = []
    with pair(NODES) as (db, b, daemons):
        gang, before = begin(b, leader_of(daemons)[0])
        load = Load(daemons)
        for _ in range(SERVER_KILLS):
            load.more(10)
            db.kill()
            time.sleep(0.3)
            db.start()
            again = time.monotonic()
            load.more(1)
            took.append(time.monotonic() - again)
        say("the database came back", took)
        nothing_lost_or_repeated(b, leader_of(daemons)[0], load, gang, before)


def test_a_start_waits_for_a_database_that_is_gone():
    if not harness.has_failpoints():
        pytest.skip("this build has no failpoints")
    with pair() as (db, b, daemons):
        s, other = leader_of(daemons)
        assert other.stop() == 0 and s.stop() == 0
        s.env["FAIRLEAD_FAILPOINT"] = "effects-before-start:pause:1"
        s.up()
        wait_until("it leads", lambda: Asker(s.data).election().get("leads"))
        job = ("POST", "/api/v1/jobs", {"name": "one", "command": ["true"], "gpus": 1, "image": "none"}, {"Content-Type": "application/json", "Idempotency-Key": "one"})
        Asker(s.data).ask(*job)
        wait_until("it sleeps before the start", lambda: sleeps(s))
        db.kill()
        s.process.send_signal(signal.SIGCONT)
        wait_until("it says what it waits for", lambda: "waits for its start" in s.log())
        db.start()
        wait_until("the job is known", lambda: (Asker(s.data).ask(*job) or (0,))[0] in (200, 201))
        (one,) = s.ask("jobs", "--all")
        s.wait_for(one["id"], "succeeded")
        assert s.attempt(one["id"]) == 1


def sleeps(s):
    with open("/proc/%d/stat" % s.process.pid) as f:
        return f.read().rsplit(") ", 1)[1][0] == "T"


def test_a_leader_that_sleeps_between_its_last_look_and_its_bytes_writes_nothing_either():
    if not harness.has_failpoints():
        pytest.skip("this build has no failpoints")
    with pair(NODES) as (db, b, daemons):
        gang, before = begin(b, leader_of(daemons)[0])
        first, second = leader_of(daemons)
        second.kill()
        second.env["FAIRLEAD_FAILPOINT"] = "kubernetes-write:pause:9"
        second.up()
        assert leader_of(daemons) == (first, second)
        first.kill()
        first.up()
        assert leader_of(daemons) == (second, first)
        load = Load(daemons)
        wait_until("it sleeps in the middle of a write", lambda: sleeps(second))
        user = USERS[daemons.index(second)]
        wait_until("the other one leads", lambda: Asker(first.data).election().get("leads"))
        load.more(3)
        asleep = b.changes(user, 0, 1e12)
        woken = time.time()
        second.process.send_signal(signal.SIGCONT)
        assert second.process.wait(timeout=harness.PATIENCE_S) != 0
        wrote = [c for c in b.changes(user, woken - 0.01, time.time()) if not (c[2] == "leases" and c[4] >= 400)]
        assert not wrote and len(asleep) >= 9, (wrote, asleep)
        del second.env["FAIRLEAD_FAILPOINT"]
        second.up()
        nothing_lost_or_repeated(b, leader_of(daemons)[0], load, gang, before)


@pytest.mark.parametrize("half", (0, 1))  # each within the time that a test has
def test_a_leader_that_sleeps_beyond_its_lease_writes_nothing_when_it_wakes(half):
    took, dice = [], random.Random(5 + half)
    with pair(NODES) as (db, b, daemons):
        gang, before = begin(b, leader_of(daemons)[0])
        load = Load(daemons)
        for _ in range((PAUSES + half) // 2):
            load.more(5)
            time.sleep(dice.random() / 2)  # anywhere in what it does
            leader, other = leader_of(daemons)
            user = USERS[daemons.index(leader)]
            leader.process.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            wait_until("the other one leads", lambda: Asker(other.data).election().get("leads"))
            wait_until("it takes work", lambda: any(at > stopped + 0.5 for at in load.at[-4:]))
            took.append(min(at for at in load.at if at > stopped + 0.5) - stopped)
            records = int(db.ask("SELECT last_seq FROM fairlead.head"))
            epoch = db.ask("SELECT epoch FROM fairlead.head")
            woken = time.time()
            leader.process.send_signal(signal.SIGCONT)
            assert leader.process.wait(timeout=harness.PATIENCE_S) != 0
            wrote = [c for c in b.changes(user, woken - 0.01, time.time()) if not (c[2] == "leases" and c[4] >= 400)]  # it asks for its Lease, in vain
            assert not wrote, wrote
            assert db.ask("SELECT epoch FROM fairlead.head") == epoch and int(db.ask("SELECT last_seq FROM fairlead.head")) >= records
            assert "leads no more" in leader.log() or "another daemon has taken over" in leader.log()
            leader.up()
        say("take-overs from a leader that slept", took)
        nothing_lost_or_repeated(b, leader_of(daemons)[0], load, gang, before)
