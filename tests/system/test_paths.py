# SPDX-License-Identifier: Apache-2.0
"""No path that a user names makes root make, open or own anything outside the job's own places.

The long form: scripts/campaign-paths (FAIRLEAD_TEST_PATHS says how many paths are tried)."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import threading

import pytest

import harness

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="needs two accounts")
PATHS = int(os.environ.get("FAIRLEAD_TEST_PATHS", "500"))
SEED = int(os.environ.get("FAIRLEAD_TEST_PATHS_SEED", "1"))
PUBLIC = "/report", "/script"  # files in RUN/ATTEMPT/RANK that are the user's


# Past the command, which looks at folders itself: what is read from standard input is sent to the daemon as it is.
SENDER = """
import http.client, json, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
for line in sys.stdin:
    connection = Connection("localhost")
    connection.request("POST", "/api/v1/jobs", line, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    print(json.dumps([answer.status, json.loads(answer.read())]), flush=True)
    connection.close()
"""


class User:
    def __init__(self, daemon, entry):
        self.daemon, self.name, self.uid, self.home = daemon, entry.pw_name, entry.pw_uid, entry.pw_dir
        daemon.run("users", "add", self.name, "--uid", str(self.uid))
        self.sender = subprocess.Popen(["/usr/bin/python3", "-c", SENDER, daemon.data + "/fairlead.sock"], user=self.uid, cwd=self.home, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        self.sender.stdin.close()
        self.sender.wait()
        self.sender.stdout.close()

    def run(self, *words, check=False):
        return self.daemon.run(*words, check=check, user=self.uid, env={"HOME": self.home})

    def submit(self, checkpoint=None, workdir=None):
        """The job's number and "", or None and why it was refused."""
        job = {"command": ["true"], "workdir": workdir or self.home, "retries": 0, "checkpoint": {"how": "signal", **({"path": checkpoint} if checkpoint else {})}}
        self.sender.stdin.write(json.dumps(job) + "\n")
        self.sender.stdin.flush()
        status, answer = json.loads(self.sender.stdout.readline())
        assert status in (201, 400, 403), (status, answer, job)
        return (answer["id"], "") if status == 201 else (None, answer["error"]["message"])


def inventory(data):
    """Every folder and file below the data folder, by path, with its owner; what databases write is left out."""
    found = {}
    for folder, folders, files in os.walk(data):
        for name in folders + files:
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                found[os.path.relpath(path, data)] = os.lstat(path).st_uid
    return found


def strangers(daemon, user):
    """What in the data folder is not root's, and is not a place of one of the user's jobs."""
    numbers = {str(j["id"]) for j in daemon.ask("jobs", "--all")}
    bad = []
    for path, uid in inventory(daemon.data).items():
        steps = path.split("/")
        own = steps[0] == "checkpoints" and len(steps) > 1 and steps[1] in numbers
        public = steps[0] == "run" and (path.endswith(PUBLIC) or "code" in steps)
        if uid != 0 and not ((own or public) and uid == user.uid):
            bad.append(path)
        if steps[0] == "checkpoints" and len(steps) == 2 and not own:
            bad.append(path)
        if steps[0] in ("run", "attempts") and len(steps) == 2 and not steps[1].lstrip(".old-").isdigit():
            bad.append(path)
    return bad


def next_attempt(daemon):
    return 1 + max([int(name) for name in os.listdir(daemon.data + "/attempts") if name.isdigit()], default=0)


@needs_root
def test_a_checkpoint_path_gives_nobody_the_folder_of_an_attempt_to_come():
    with harness.account("fairlead-p1") as one, harness.Daemon(nodes="sim:1x2xH100-80GB") as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        other = d.submit("true", flags=("--checkpoint", "signal"))
        d.wait(other)
        os.symlink(d.data + "/run", user.home + "/link")
        coming = next_attempt(d) + 1
        for path in ("%s/run/%d" % (d.data, coming), "%s/attempts/%d" % (d.data, coming), "%s/checkpoints/%d" % (d.data, other),
                     d.data + "/snapshots", d.data + "/checkpoints/77", "%s/link/%d" % (user.home, coming), d.data,
                     user.home + "/.." * user.home.count("/") + d.data + "/run/9"):
            before = inventory(d.data)
            number, why = user.submit(checkpoint=path)
            assert number is None and "checkpoint.path" in why and "data folder" in why and "name a folder of your own" in why, (path, why)
            number, why = user.submit(workdir=path)
            assert number is None and "workdir" in why and "data folder" in why, (path, why)
            gained = {p for p in inventory(d.data).keys() - before.keys() if not p.startswith(("journal/", "history"))}
            assert not gained, (path, gained)
        assert strangers(d, user) == []


@needs_root
def test_the_folder_that_a_job_gets_is_its_users_alone():
    with harness.account("fairlead-p2") as one, harness.Daemon(nodes="sim:1x2xH100-80GB") as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        done = user.run("run", "-d", "-o", "name", "-C", user.home, "--checkpoint", "signal", "--", "sh", "-c", 'echo saved >"$FAIRLEAD_CHECKPOINT_DIR/one"')
        number = int(done.out)
        assert d.wait(number)["state"] == "succeeded"
        made = os.stat("%s/checkpoints/%d" % (d.data, number))
        assert made.st_uid == user.uid and made.st_mode & 0o7777 == 0o700
        above = os.stat(d.data + "/checkpoints")
        assert above.st_uid == 0 and above.st_mode & 0o022 == 0
        assert strangers(d, user) == []


@needs_root
@pytest.mark.parametrize("folder", ["attempts", "run", "checkpoints"])
def test_a_folder_that_is_not_the_daemons_is_not_used(folder):
    with harness.account("fairlead-p3") as one, harness.Daemon(nodes="sim:1x2xH100-80GB") as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        d.wait(d.submit("true", flags=("--checkpoint", "signal")))
        path = "%s/%s" % (d.data, folder)
        os.chown(path, user.uid, -1)
        number, why = user.submit()
        assert number, why
        told = "belongs to uid %d and not to the daemon" % user.uid
        harness.wait_until("the reason is told", lambda: told in user.run("job", str(number)).out + user.run("explain", str(number), "-v").out)
        assert not any(uid == user.uid for p, uid in inventory(d.data).items() if p.startswith(folder + "/"))
        os.chown(path, 0, -1)


@needs_root
@pytest.mark.parametrize("folder", ["", "journal"])
def test_a_data_folder_that_others_can_write_to_is_refused(folder):
    with harness.Daemon(nodes="sim:1x2xH100-80GB") as d:
        d.end()
        path = os.path.join(d.data, folder).rstrip("/")
        mode = os.stat(path).st_mode & 0o7777
        os.chmod(path, 0o777)
        d.up(expect=False)
        harness.wait_until("it ends", lambda: d.process.poll() is not None)
        assert "other accounts can write to \"%s\"" % path in d.log() and "chmod go-w" in d.log(), d.log()
        os.chmod(path, mode)
        d.up()


class Hostile:
    """Paths that mean something in the data folder, in as many spellings as there are."""

    def __init__(self, daemon, user, random):
        self.data, self.home, self.random, self.pid = daemon.data, user.home, random, daemon.process.pid
        self.links = 0
        self.targets = ["", "/run", "/attempts", "/checkpoints", "/journal", "/keys", "/logs", "/snapshots", "/history.sqlite", "/fairlead.sock", "/checkpoints/1",
                        "/run/%d", "/attempts/%d", "/attempts/%d/0", "/checkpoints/%d", "/run/%d/0/script", "/new", "/code/0"]

    def target(self):
        target = self.random.choice(self.targets)
        return target % self.random.randrange(1, 400) if "%d" in target else target

    def link(self, to):
        self.links += 1
        path = "%s/l%d" % (self.home, self.links)
        os.symlink(to, path)
        return path

    def spell(self, path):
        """The same path in another spelling, for whoever resolves it."""
        r, steps = self.random, path.strip("/").split("/")
        kind = r.randrange(9)
        if kind == 0:
            return "/" + "//".join(steps)
        if kind == 1:
            return "/" + "/./".join(steps)
        if kind == 2:
            at = r.randrange(len(steps))
            return "/" + "/".join(steps[:at] + [steps[at], "..", steps[at]] + steps[at + 1:])
        if kind == 3:
            return self.home + "/.." * (self.home.count("/") + r.randrange(3)) + path
        if kind == 4:
            return self.link(path)
        if kind == 5:
            at = r.randrange(1, len(steps) + 1)
            return "/".join([self.link("/" + "/".join(steps[:at]))] + steps[at:])
        if kind == 6:
            return "/proc/self/root" + path
        if kind == 7:
            return "/proc/%d/root%s" % (r.choice([self.pid, 1]), path)
        return self.link(self.link(path)) + r.choice(["", "/", "/.", "/deep/er"])

    def one(self):
        path = self.data + self.target()
        for _ in range(self.random.randrange(3)):
            path = self.spell(path)
        return path if len(path) < 390 else self.data


def remove_what_is_left(user):
    """A path may mean a folder next to the data folder, where every account may make one."""
    with os.scandir(harness.TMP) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_uid == user.uid:
                subprocess.run(["rm", "-rf", entry.path], check=True)


@needs_root
def test_hostile_paths_reach_nothing_but_the_jobs_own_places():
    with harness.account("fairlead-p4") as one, harness.Daemon(nodes="sim:1x8xH100-80GB") as d, contextlib.ExitStack() as stack:
        user, rng = stack.enter_context(User(d, one)), random.Random(SEED)
        hostile, refused, taken = Hostile(d, user, rng), 0, []
        extra = ["/proc/self/fd/%d" % fd for fd in range(3, 40, 4)] + ["/proc/self/cwd", "/proc/%d/cwd/run" % d.process.pid, "/dev/fd/5", "/", "/root/x", "/proc/1/root/root"]
        keys = os.path.join(user.home, "hard")
        with contextlib.suppress(OSError):
            os.link(d.data + "/keys/body.key", keys)  # other file systems can't
        for path in [hostile.one() for _ in range(PATHS - len(extra) - 1)] + extra + [keys]:
            number, _ = user.submit(**{"workdir" if rng.randrange(2) else "checkpoint": path})
            refused += number is None
            taken += [number] if number else []
        for number in taken:
            d.wait(number)
        assert strangers(d, user) == []
        remove_what_is_left(user)
        print("%d paths: %d refused at submission, %d jobs that found no way in" % (PATHS, refused, len(taken)))
        assert refused > PATHS * 0.8, refused


@needs_root
def test_links_that_change_while_a_job_starts_lead_nowhere():
    with harness.account("fairlead-p5") as one, harness.Daemon(nodes="sim:1x8xH100-80GB") as d, contextlib.ExitStack() as stack:
        user, over = stack.enter_context(User(d, one)), threading.Event()
        os.mkdir(user.home + "/good")
        os.chown(user.home + "/good", user.uid, -1)

        def exchange():
            turn = 0
            while not over.is_set():
                for to in ("run", user.home + "/good", "checkpoints", user.home + "/good", "attempts", user.home + "/good"):
                    turn += 1
                    os.symlink(os.path.join(d.data, to), "%s/new%d" % (user.home, turn))
                    os.rename("%s/new%d" % (user.home, turn), user.home + "/flip")

        racer = threading.Thread(target=exchange)
        racer.start()
        try:
            harness.wait_until("the link is there", lambda: os.path.lexists(user.home + "/flip"))
            ended = []
            # A start looks at the link several times. On a busy machine the whole of a round may find it wrong at one of them.
            count = max(60, PATHS // 8)
            for turn in range(20):
                taken = []
                for i in range(turn * count, turn * count + count):
                    path = user.home + "/flip/%d" % (i + 1)
                    number, _ = user.submit(checkpoint=path) if i % 3 else user.submit(workdir=user.home + "/flip")
                    taken += [number] if number else []
                ended += [d.wait(number)["state"] for number in taken]
                if "succeeded" in ended:
                    break
        finally:
            over.set()
            racer.join()
        assert strangers(d, user) == []
        print("%d jobs, %d of them in a folder of their user's" % (len(ended), ended.count("succeeded")))
        assert "succeeded" in ended


@needs_root
def test_a_mount_of_the_data_folder_elsewhere_gives_nothing_away(tmp_path):
    alias = "/mnt/fairlead-alias-%d" % os.getpid()
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    with harness.account("fairlead-p6") as one, harness.Daemon(
            nodes="sim:1x8xH100-80GB",
            before=("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /mnt && mkdir "$0" && mount --bind "$FAIRLEAD_DATA" "$0" && exec "$@"', alias)) as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        for part in ("run/5", "attempts/9", "checkpoints/77", "new"):
            number, _ = user.submit(checkpoint="%s/%s" % (alias, part))
            assert number is None or d.wait(number)["state"] == "failed"
        assert strangers(d, user) == []


@needs_root
def test_what_lies_back_over_a_folder_that_is_not_there_is_resolved_too():
    with harness.account("fairlead-p7") as one, harness.Daemon(nodes="sim:1x2xH100-80GB") as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        os.mkdir(user.home + "/other")
        for link, to in (("data", d.data), ("along", user.home + "/other"), ("other/run", d.data + "/run")):
            os.symlink(to, "%s/%s" % (user.home, link))
        for path in ("none/../data/run/9", "none/../data", "along/none/../run/9", "along/no/ne/../../run"):
            for field in ("checkpoint", "workdir"):
                number, why = user.submit(**{field: "%s/%s" % (user.home, path)})
                assert number is None and "data folder" in why, (field, path, why)
        number, why = user.submit(workdir=user.home + "/along/none/../../other")
        assert number, why


@contextlib.contextmanager
def folder_of(user):
    """On the file system of the data folder, so that it can be renamed into it."""
    folder = tempfile.mkdtemp(prefix="fairlead-test-paths-", dir=harness.TMP)
    os.chmod(folder, 0o755)
    os.chown(folder, user.uid, -1)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@needs_root
def test_a_copy_of_a_snapshot_that_is_removed_takes_along_nothing_of_other_accounts():
    with harness.account("fairlead-p8") as one, harness.account("fairlead-p9") as other, harness.Daemon(nodes="sim:1x2xH100-80GB") as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        place = stack.enter_context(folder_of(user))
        code, shared = place + "/code", place + "/shared"
        for folder, mode in ((code, 0o755), (shared, 0o777)):
            os.mkdir(folder)
            os.chmod(folder, mode)
            os.chown(folder, user.uid, -1)
        with open(code + "/main", "w") as f:
            f.write("x")
        subprocess.run(["sh", "-c", "mkdir -m 755 results empty && echo precious >results/model"], cwd=shared, user=other.pw_uid, check=True)
        assert subprocess.run(["rm", "-rf", shared + "/results"], user=user.uid, capture_output=True).returncode != 0  # what the user can't, root does not for him
        script = "mkdir -p deep/er && echo >deep/er/file && ln -s %s home && mv %s moved && ls moved/results/model" % (other.pw_dir, shared)
        number = int(user.run("run", "-d", "-o", "name", "-g", "0", "--snapshot", code, "--", "sh", "-c", script, check=True).out)
        assert d.wait(number)["state"] == "succeeded", d.logs(number)
        run = d.data + "/run/1"
        harness.wait_until("the rest is gone, and it is told why not all", lambda: "run/1" in d.log() and not os.path.exists(run + "/code/main"))
        assert sorted(os.path.relpath(os.path.join(top, name), run) for top, folders, files in os.walk(run) for name in folders + files) == [
            "code", "code/moved", "code/moved/results", "code/moved/results/model"]
        assert os.path.exists(other.pw_dir + "/.profile")
        number = int(user.run("run", "-d", "-o", "name", "-g", "0", "--snapshot", code, "--", "sh", "-c", "mkdir -p a/b && echo >a/b/c", check=True).out)
        assert d.wait(number)["state"] == "succeeded"
        harness.wait_until("a copy with nothing of others is removed whole", lambda: os.listdir(d.data + "/run") == ["1"])


@needs_root
def test_a_backup_goes_into_no_file_that_somebody_put_there_before():
    with harness.account("fairlead-p10") as one, harness.Daemon(nodes="sim:1x2xH100-80GB") as d, contextlib.ExitStack() as stack:
        user = stack.enter_context(User(d, one))
        place = stack.enter_context(folder_of(user))
        file = place + "/backup.tar"
        ends = ".tmp", ".part", ".part.tmp"
        for end in ends:
            subprocess.run(["sh", "-c", 'umask 077; : >"$0"', file + end], user=user.uid, check=True)
        with contextlib.ExitStack() as held:
            before = [held.enter_context(open(file + end, "rb")) for end in ends]
            d.run("journal", "backup", file)
            assert [f.read() for f in before] == [b"", b"", b""]
        made = os.stat(file)
        assert made.st_uid == 0 and made.st_mode & 0o777 == 0o600 and made.st_size > 0
        assert os.listdir(place) == ["backup.tar"]
