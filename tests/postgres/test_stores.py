# SPDX-License-Identifier: Apache-2.0
"""The journal in PostgreSQL: the same as in files, whoever is killed, whatever wire is cut."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import harness
import server

STORES = os.path.join(os.environ.get("FAIRLEAD_BUILD", "build"), "tests", "postgres", "stores")
OPERATIONS = int(os.environ.get("FAIRLEAD_STORE_OPERATIONS", "50000"))
SEED = int(os.environ.get("FAIRLEAD_STORE_SEED", "5"))


def test_both_stores_keep_the_same_history():
    with server.Server() as s, tempfile.TemporaryDirectory(prefix="fairlead-test-", dir=harness.TMP) as files:
        done = subprocess.run([STORES, s.address, files, str(SEED), str(OPERATIONS)], capture_output=True, text=True, timeout=900 + OPERATIONS // 10)
        assert done.returncode == 0, done.stderr
        print("seed %d: %s" % (SEED, done.stdout.strip()))
        assert done.stdout.startswith("%d operations: " % OPERATIONS)
        counts = [int(n) for n in re.findall(r"\d+", done.stdout)]
        assert counts[1] == int(s.ask("SELECT count(*) FROM fairlead.record")) > OPERATIONS and min(counts) > 0


def test_a_journal_of_format_1_is_read(tmp_path):
    golden = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "postgres", "v1.sql")
    with server.Server() as s:
        s.ask(open(golden).read())
        (tmp_path / "journal").mkdir()
        (tmp_path / "journal" / "store").write_text("fairlead-store 1\njournal e5c6b7a102ddbc2cc5fef826d64e15f9\naddress %s\n" % s.address)
        done = subprocess.run([harness.PROGRAM, "journal", "verify", "--data", str(tmp_path)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "29 records, 1 to 29" in done.stdout and "e081f42119517fb0efc8ef143adb7c1eef7c3ced098ecfc0ea9ead3b8cc81fe6" in done.stdout


def refused(data, *words):
    done = subprocess.run([harness.PROGRAM, "up", "--data", str(data), "--nodes", "sim:1x1xH100-80GB", *words], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode != 0 and "\nfairlead: " in "\n" + done.stderr, done
    return done.stderr


class Load:
    """Clients that submit jobs which wait, each with a key of its own, and know what was acknowledged."""

    def __init__(self, data, clients=4):
        self.acknowledged, self.stop, self.lock = {}, False, threading.Lock()
        self.threads = [threading.Thread(target=self.submit, args=(data, i)) for i in range(clients)]
        for t in self.threads:
            t.start()

    def submit(self, data, client):
        http, number = harness.Client(data), 0
        while not self.stop:
            key = "c%d-%d" % (client, number)
            number += 1
            job = http.submit({"name": key, "command": ["true"], "hold": True}, key)
            with self.lock:
                self.acknowledged[key] = job

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()


def each_once(d, load):
    """What was acknowledged is there, under its number, and nothing twice."""
    names = {}
    for job in harness.Client(d.data).jobs():
        assert job["name"] not in names, job
        names[job["name"]] = job["id"]
    assert names == load.acknowledged
    assert "Every record is as it was written." in d.run("journal", "verify").out


def test_a_server_that_is_killed_under_load_loses_nothing():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        load = Load(d.data)
        for _ in range(5):
            before = len(load.acknowledged)
            harness.wait_until("jobs are taken", lambda: len(load.acknowledged) > before + 20)
            s.kill()
            time.sleep(0.3)
            s.start()
        before = len(load.acknowledged)
        harness.wait_until("jobs are taken again", lambda: len(load.acknowledged) > before + 20)
        load.end()
        assert d.alive()
        each_once(d, load)


def test_an_answer_that_is_lost_is_settled_by_the_hash():
    with server.Server() as s:
        wire = server.Wire(s.port)
        with harness.Daemon(store=s.address.replace(str(s.port), str(wire.port))) as d:
            load = Load(d.data)
            for i in range(20):
                before = len(load.acknowledged)
                harness.wait_until("jobs are taken", lambda: len(load.acknowledged) > before + 5)
                wire.cut(0.05 * (i % 3))
            load.end()
            each_once(d, load)
            assert "taken over" not in d.log() and "a commit failed" not in d.log()
        wire.close()


def test_the_daemon_is_killed_and_goes_on():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        runs = d.submit("sleep", "1000")
        harness.wait_until("it runs", lambda: d.state(runs) == "running")
        load = Load(d.data, 2)
        for _ in range(4):
            before = len(load.acknowledged)
            harness.wait_until("jobs are taken", lambda: len(load.acknowledged) > before + 10)
            d.kill()
            d.up()
        load.end()
        load.acknowledged["sleep"] = runs
        each_once(d, load)
        assert d.state(runs) == "running"


def test_a_server_that_is_away_for_longer_is_waited_for():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        first = d.submit("true")
        d.wait(first)
        s.kill()
        late = d.run("run", "-d", "--", "true", check=False, timeout=150)  # the commit is tried for a minute
        assert late.code != 0 and d.alive()
        harness.wait_until("it is said", lambda: "a commit failed" in d.log())
        s.start()
        load = Load(d.data, 2)
        harness.wait_until("jobs are taken again", lambda: len(load.acknowledged) > 20)
        load.end()
        load.acknowledged["true"] = first
        each_once(d, load)


def copy_folder(data, to):
    """What another daemon needs to know of one that is gone."""
    shutil.rmtree(to, ignore_errors=True)
    (to / "journal").mkdir(parents=True)
    shutil.copytree(os.path.join(data, "keys"), to / "keys")
    shutil.copy(os.path.join(data, "journal", "store"), to / "journal" / "store")


def test_a_daemon_that_slept_through_a_take_over_writes_nothing(tmp_path):
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        d.wait(d.submit("true"))
        copy_folder(d.data, tmp_path / "other")
        d.process.send_signal(signal.SIGSTOP)
        with harness.Daemon(store=s.address, data=str(tmp_path / "other")) as other:
            other.wait(other.submit("true"))
            d.process.send_signal(signal.SIGCONT)
            assert d.run("run", "-d", "--", "true", check=False).code != 0
            d.process.wait(timeout=harness.PATIENCE_S)
            assert "taken over" in d.log()
            assert [j["id"] for j in harness.Client(other.data).jobs()] == [1, 2]
            assert int(s.ask("SELECT epoch FROM fairlead.head")) == 2
            assert "Every record is as it was written." in other.run("journal", "verify").out
        d.process = None


def test_of_two_daemons_the_older_one_stops(tmp_path):
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        first = d.submit("true")
        d.wait(first)
        other_data = tmp_path / "other"
        assert "of another data folder" in refused(other_data, "--store", s.address)
        assert int(s.ask("SELECT epoch FROM fairlead.head")) == 1  # nobody was disturbed
        copy_folder(d.data, other_data)
        with harness.Daemon(store=s.address, data=str(other_data)) as other:
            assert other.job(first)["state"] == "succeeded"
            assert d.run("run", "-d", "--", "true", check=False).code != 0
            d.process.wait(timeout=harness.PATIENCE_S)
            assert "another daemon has taken over" in d.log()
            second = other.submit("true")
            other.wait(second)
            assert int(s.ask("SELECT epoch FROM fairlead.head")) == 2
            assert "Every record is as it was written." in other.run("journal", "verify").out
        d.process = None


def test_a_server_that_lacks_what_was_written_is_noticed_at_the_start_too():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        d.wait(d.submit("true"))
        assert d.stop() == 0
        last = int(s.ask("SELECT last_seq FROM fairlead.head"))
        s.ask("CREATE TABLE kept AS SELECT * FROM fairlead.record WHERE seq = %d" % last)  # a stand-by that had not the last record
        back = "UPDATE fairlead.head SET (last_seq, last_time_ms, last_hash) = (SELECT seq, time_ms, hash FROM fairlead.record ORDER BY seq DESC LIMIT 1)"
        s.ask("DELETE FROM fairlead.record WHERE seq = %d; %s" % (last, back))
        epoch = s.ask("SELECT epoch FROM fairlead.head")
        said = refused(d.data)
        assert "the folder knows record %d, and the journal ends at %d" % (last, last - 1) in said and "journal/head" in said
        assert s.ask("SELECT epoch FROM fairlead.head") == epoch  # and nobody was disturbed
        s.ask("INSERT INTO fairlead.record SELECT seq, time_ms + 1, kind, must_understand, text, sha256(hash), guard FROM kept; %s" % back)
        d.up()  # another record under that number: its checksum does not hold, so it is one that is damaged
        assert d.stop() == 0
        last = int(s.ask("SELECT last_seq FROM fairlead.head"))
        s.ask("DELETE FROM fairlead.record WHERE seq = %d; %s" % (last, back))
        os.unlink(os.path.join(d.data, "journal", "head"))
        d.up()
        d.wait(d.submit("true"))


def test_another_key_or_none_is_refused_before_anything_is_taken_over():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        d.wait(d.submit("true"))
        assert d.stop() == 0
        epoch = s.ask("SELECT epoch FROM fairlead.head")
        key = os.path.join(d.data, "keys", "body.key")
        with open(key, "rb") as f:
            right = f.read()
        os.unlink(key)
        assert "is missing" in refused(d.data)
        with open(key, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(bytes(32))
        assert "is not the key" in refused(d.data)
        assert s.ask("SELECT epoch FROM fairlead.head") == epoch
        with open(key, "wb") as f:
            f.write(right)
        d.up()


def commits_wait(s, number):
    """Whether a commit waits for the stand-by already: the server takes a new setting a moment after it was told."""
    probe = threading.Thread(target=s.ask, args=("CREATE TABLE probe_%d ()" % number,))
    probe.start()
    waits = 0
    while probe.is_alive() and not waits:
        waits = int(s.ask("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
    probe.join()
    return waits


def test_a_commit_whose_stand_by_was_not_waited_for_is_not_acknowledged():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        first = d.submit("true")
        d.wait(first)

        def stand_by(name):
            s.ask("ALTER SYSTEM SET synchronous_standby_names = '%s'" % name)
            s.ask("SELECT pg_reload_conf()")
        stand_by("nobody")
        numbers = itertools.count()
        harness.wait_until("commits wait for the stand-by", lambda: commits_wait(s, next(numbers)))
        load = Load(d.data, 2)
        load.acknowledged["true"] = first
        for call in ("pg_cancel_backend", "pg_terminate_backend") * 3:
            harness.wait_until("a commit waits", lambda: int(s.ask("SELECT count(%s(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'" % call)))
        assert len(load.acknowledged) == 1
        stand_by("")
        harness.wait_until("jobs are taken again", lambda: len(load.acknowledged) > 20)
        load.end()
        each_once(d, load)


def test_a_full_disk_of_the_server_is_told_as_the_servers():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        first = d.submit("true")
        d.wait(first)
        s.ask("CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no room' USING ERRCODE = '53100'; END$$;"
              "CREATE TRIGGER no_room BEFORE INSERT ON fairlead.record EXECUTE FUNCTION no_room()")
        assert d.run("run", "-d", "--", "true", check=False).code != 0
        harness.wait_until("it is said", lambda: "the disk of database" in d.log())
        assert "data folder" not in d.log() and d.alive()
        s.ask("DROP TRIGGER no_room ON fairlead.record")
        load = Load(d.data, 2)
        load.acknowledged["true"] = first
        harness.wait_until("jobs are taken again", lambda: len(load.acknowledged) > 20)
        load.end()
        each_once(d, load)


def test_what_was_changed_in_the_database_is_found():
    with server.Server() as s, harness.Daemon(store=s.address) as d:
        d.wait(d.submit("true"))
        seq = int(s.ask("SELECT max(seq) FROM fairlead.record WHERE kind = 30"))
        s.ask("UPDATE fairlead.record SET text = text || ' '::bytea WHERE seq = %d" % seq)
        s.ask("DELETE FROM fairlead.record WHERE seq = %d" % (seq + 1))
        done = d.run("journal", "verify", check=False)
        assert done.code != 0
        assert re.search(r"record %d\b.*checksum" % seq, done.out + done.err) and re.search(r"record %d\b.*missing" % (seq + 1), done.out + done.err)


def test_what_can_not_be_is_refused_in_words(tmp_path):
    with server.Server() as s:
        said = refused(tmp_path / "a", "--store", "postgresql://fairlead:secret@127.0.0.1:%d/postgres" % server.free_port())
        assert "can't reach PostgreSQL" in said and "secret" not in said
        for odd in ("fairlead:50%off", "fairlead:sec@ret", "fairlead:12/secret@x"):
            said = refused(tmp_path / "a", "--store", "postgresql://%s@127.0.0.1/postgres" % odd)
            assert "can't be read" in said and "off" not in said.split("write")[0] and "ret" not in said, said
        said = refused(tmp_path / "a", "--store", s.address.replace("/postgres", "/nothere"))
        assert 'database "nothere"' in said and "does not exist" in said
        with harness.Daemon() as d:
            assert d.stop() == 0
            assert "keeps its journal in files" in refused(d.data, "--store", s.address)
            d.up()
        with harness.Daemon(store=s.address) as d:
            backup = d.run("journal", "backup", str(tmp_path / "b.tar"), check=False)
            assert backup.code != 0 and "pg_dump" in backup.err and not (tmp_path / "b.tar").exists()
            assert d.stop() == 0
            s.ask("DROP SCHEMA fairlead CASCADE")
            # A new, empty journal under the same address is not this folder's.
            assert "has no journal" in refused(d.data)
            with harness.Daemon(store=s.address):
                assert "belongs to" in refused(d.data)
            d.process = None
        s.ask("DROP SCHEMA fairlead CASCADE")
        s.kill()
        s.start("fsync=off")
        assert "fsync is off" in refused(tmp_path / "c", "--store", s.address)
