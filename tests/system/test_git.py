# SPDX-License-Identifier: Apache-2.0
"""The state of git is noted where a command is typed, and nothing that a repository brings along is run for that."""

import json
import os
import shutil
import subprocess
import tempfile

import pytest

import harness

AUTHOR = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
          "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
SHOW = 'echo "$FAIRLEAD_GIT_COMMIT|$FAIRLEAD_GIT_BRANCH|$FAIRLEAD_GIT_CHANGED|$FAIRLEAD_GIT_UNTRACKED|$FAIRLEAD_GIT_REMOTE"'


# As the command has it; what is said of a repository is asked with the time that a busy machine takes.
OWN_LIMITS = {"FAIRLEAD_TEST_GIT_ASK_MS": "", "FAIRLEAD_TEST_GIT_COUNT_MS": ""}


@pytest.fixture(scope="module")
def daemon():
    with tempfile.TemporaryDirectory(prefix="fairlead-test-git-", dir=harness.TMP) as temporary:
        long = {"FAIRLEAD_TEST_GIT_ASK_MS": "100000", "FAIRLEAD_TEST_GIT_COUNT_MS": "100000"}
        with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_GIT": "", "TMPDIR": temporary, **long}) as d:
            yield d


@pytest.fixture
def place():
    folder = tempfile.mkdtemp(prefix="fairlead-test-git-", dir=harness.TMP)
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


def git(folder, *words, check=True):
    done = subprocess.run(["git", "-C", folder, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **AUTHOR))
    assert not check or done.returncode == 0, done
    return done.stdout.decode(errors="replace").strip()


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def repository(folder, *options):
    """A repository with two files and a commit; its id."""
    os.makedirs(folder)
    git(folder, "init", "-q", "-b", "main", *options)
    write(os.path.join(folder, "train.py"), "one\n")
    write(os.path.join(folder, "src/model.py"), "one\n")
    write(os.path.join(folder, ".gitignore"), "*.log\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return git(folder, "rev-parse", "HEAD")


def submit(d, folder, *flags, env=None, command=("true",)):
    """The job's number and what was complained of."""
    done = subprocess.run([harness.PROGRAM, "run", "--detach", "-g", "0", *flags, "-o", "json", "--", *command], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", env=dict(d.env, **(env or {})), timeout=harness.PATIENCE_S)
    assert done.returncode == 0, done
    return json.loads(done.stdout)["id"], done.stderr


def noted(d, folder, *flags, env=None):
    """What is noted of the folder; None = nothing."""
    number, complaint = submit(d, folder, *flags, env=env)
    assert "git" not in complaint, complaint
    return d.ask("job", str(number), "--spec").get("git")


def test_commit_branch_changes_and_remote_are_shown_and_reach_the_task(daemon, place):
    d, folder = daemon, place + "/r"
    commit = repository(folder)
    git(folder, "remote", "add", "other", "/srv/other")
    git(folder, "remote", "add", "origin", "https://alice:geheim@git.example.com/r.git?token=geheim")
    assert noted(d, folder) == {"commit": commit, "branch": "main", "changed": 0, "untracked": 0, "remote": "https://git.example.com/r.git"}
    write(folder + "/train.py", "two\n")
    os.unlink(folder + "/src/model.py")
    write(folder + "/new/a", "")
    write(folder + "/new/b", "")
    write(folder + "/x.log", "")
    git(folder, "config", "branch.main.remote", "other")
    number, _ = submit(d, folder + "/new", command=("sh", "-c", SHOW))  # a folder below
    d.wait(number, "succeeded")
    assert d.run("logs", str(number)).out.strip() == commit + "|main|2|1|/srv/other"
    assert "git           %s on main, 2 files changed, 1 file unknown to git, from /srv/other\n" % commit in d.run("job", str(number)).out
    assert "geheim" not in d.run("job", str(number)).out


def test_what_is_said_is_taken_and_it_can_be_left_out(daemon, place):
    d, folder = daemon, place + "/r"
    commit = repository(folder)
    assert noted(d, place) is None
    assert noted(d, folder, env={"FAIRLEAD_GIT": "no"}) is None
    for text, expected in (("git: {}", None), ("git: {branch: x}", {"branch": "x"})):
        write(place + "/job.yaml", "command: 'true'\ngpus: 0\n%s\n" % text)
        done = subprocess.run([harness.PROGRAM, "submit", "-o", "json", place + "/job.yaml"], cwd=folder, stdout=subprocess.PIPE, env=d.env, check=True)
        assert d.ask("job", str(json.loads(done.stdout)["id"]), "--spec").get("git") == expected
    # The folder that is sent or run in comes before the current one.
    write(place + "/plain/a", "a")
    assert noted(d, place, "--snapshot", folder)["commit"] == commit
    assert noted(d, place, "-C", folder)["commit"] == commit
    assert noted(d, folder, "--snapshot", place + "/plain")["commit"] == commit
    refused = d.run("submit", "-", stdin="command: x\ngit: {remote: 'https://a:geheim@h/p'}\n", check=False)
    assert refused.code == 2 and "without user, password" in refused.err and "geheim" not in refused.err.split("\n")[0], refused


def test_a_second_try_with_the_same_key_gives_the_same_job_also_when_files_changed_meanwhile(daemon, place):
    d, folder = daemon, place + "/r"
    commit = repository(folder)
    first, _ = submit(d, folder, "--key", "again")
    write(folder + "/train.py", "two\n")
    write(folder + "/out.txt", "what the first try left\n")
    again, _ = submit(d, folder, "--key", "again")
    assert again == first
    assert d.ask("job", str(first), "--spec")["git"] == {"commit": commit, "branch": "main", "changed": 0, "untracked": 0}  # of the first
    other = d.run("run", "--detach", "-g", "0", "--key", "again", "--", "false", check=False)
    assert other.code != 0 and "another content" in other.err, other


def test_no_branch_no_commit_linked_trees_and_submodules(daemon, place):
    d, folder = daemon, place + "/r"
    commit = repository(folder)
    git(folder, "checkout", "-q", "--detach")
    number, _ = submit(d, folder)
    assert "git           %s, no branch, nothing changed\n" % commit in d.run("job", str(number)).out
    git(folder, "checkout", "-q", "main")
    git(folder, "worktree", "add", "-q", "-b", "side", place + "/linked")
    write(place + "/linked/train.py", "two\n")
    assert noted(d, place + "/linked") == {"commit": commit, "branch": "side", "changed": 1, "untracked": 0}
    os.makedirs(place + "/empty")
    git(place + "/empty", "init", "-q", "-b", "main")
    write(place + "/empty/a", "")
    assert noted(d, place + "/empty") == {"branch": "main", "changed": 0, "untracked": 1}
    git(place + "/empty", "add", "a")
    assert noted(d, place + "/empty")["changed"] == 1
    # A submodule: in it, of it; at another commit it counts as one file of the tree above.
    inner = repository(place + "/inner")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", place + "/inner", "sub")
    git(folder, "commit", "-q", "-m", "sub")
    assert noted(d, folder + "/sub")["commit"] == inner
    assert noted(d, folder)["changed"] == 0
    git(folder + "/sub", "commit", "-q", "--allow-empty", "-m", "more")
    assert noted(d, folder)["changed"] == 1


def test_other_forms_of_repositories(daemon, place):
    d = daemon
    for name, prepare in (("split", ("update-index", "--split-index")), ("sparse", ("sparse-checkout", "set", "--cone", "--sparse-index", "src")),
                          ("v4", ("update-index", "--index-version", "4")), ("cache", ("update-index", "--untracked-cache")),
                          ("pack", ("gc", "-q")), ("crlf", ("config", "core.autocrlf", "true"))):
        commit = repository(os.path.join(place, name))
        git(os.path.join(place, name), *prepare)
        assert noted(d, os.path.join(place, name)) == {"commit": commit, "branch": "main", "changed": 0, "untracked": 0}, name
        write(os.path.join(place, name, "src/model.py"), "three\n")
        assert noted(d, os.path.join(place, name))["changed"] == 1, name
    commit = repository(place + "/sha256", "--object-format=sha256")
    assert len(commit) == 64
    assert noted(d, place + "/sha256") == {"commit": commit, "branch": "main", "changed": 0, "untracked": 0}
    git(place + "/sha256", "clone", "-q", "--bare", ".", place + "/bare")
    assert noted(d, place + "/bare") is None
    assert noted(d, place + "/sha256/.git") is None


def test_names_that_are_no_text(daemon, place):
    d = daemon
    folder = place + "/with\nline end"  # a job can't run there, but be submitted from there
    commit = repository(folder)
    write(folder + "/a\nb\n? c", "")
    write(folder + "/\"1 x\"", "")
    with open(os.fsencode(folder) + b"/\xff", "w"):
        pass
    git(folder, "checkout", "-q", "-b", "ä")
    with open(folder + "/.git/HEAD", "wb") as f:
        f.write(b"ref: refs/heads/a\xffb\n")
    with open(os.fsencode(folder) + b"/.git/refs/heads/a\xffb", "w") as f:
        f.write(commit + "\n")
    git(folder, "config", "remote.a.b.url", "https://h/\x1b[2J\x9b3m")
    assert noted(d, folder, "-C", "/") == {"commit": commit, "branch": "a\ufffdb", "changed": 0, "untracked": 3, "remote": "https://h/\ufffd[2J\ufffd3m"}
    git(folder, "checkout", "-q", "-b", "x" * 200)
    git(folder, "config", "remote.origin.url", "https://h/" + "x" * 1000)  # too long to be told
    assert noted(d, folder, "-C", "/") == {"commit": commit, "branch": "x" * 200, "changed": 0, "untracked": 3}


def trap(folder, marker, inner=None):
    """Everything by which settings of a repository are known to run a program when files are compared."""
    write(folder + "/trap.sh", "#!/bin/sh\necho \"$0 $*\" >> %s\ncat\n" % marker, 0o755)
    program = folder + "/trap.sh"
    git(folder, "add", "trap.sh")
    write(folder + "/.gitattributes", "* filter=evil diff=evil text=auto\n")
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-q", "-m", "trap")
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.gitProxy", "core.askPass", "filter.evil.clean", "filter.evil.smudge",
                "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "diff.external", "pager.status", "pager.config", "credential.helper",
                "gpg.program", "sequence.editor", "core.alternateRefsCommand", "uploadpack.packObjectsHook", "trace2.eventTarget"):
        git(folder, "config", key, program)
    for alias in ("status", "config", "rev-parse", "symbolic-ref"):
        git(folder, "config", "alias." + alias, "!" + program)
    git(folder, "config", "core.hooksPath", folder + "/hooks")
    for hook in ("post-index-change", "fsmonitor-watchman", "query-watchman", "post-checkout", "pre-auto-gc"):
        write(folder + "/hooks/" + hook, "#!/bin/sh\necho hook >> %s\n" % marker, 0o755)
        write(folder + "/.git/hooks/" + hook, "#!/bin/sh\necho hook >> %s\n" % marker, 0o755)
    write(folder + "/more.cfg", "[core]\n\tfsmonitor = %s\n[filter \"evil\"]\n\tclean = %s\n" % (program, program))
    git(folder, "config", "include.path", folder + "/more.cfg")
    git(folder, "config", "remote.origin.url", "ext::%s" % program)
    git(folder, "config", "remote.origin.promisor", "true")
    git(folder, "config", "remote.origin.uploadpack", program)
    git(folder, "config", "extensions.partialClone", "origin")
    git(folder, "config", "protocol.ext.allow", "always")
    # Same size, another time: only the content says whether it changed, so a filter is wanted.
    os.utime(folder + "/train.py", (1, 1))
    os.utime(folder + "/src/model.py", (1, 1))


def test_nothing_that_a_repository_names_is_run(daemon, place):
    d, folder, marker = daemon, place + "/r", place + "/marker"
    repository(folder)
    repository(folder + "/sub")  # a submodule, with a trap of its own
    trap(folder + "/sub", marker + "-sub")
    write(folder + "/sub/train.py", "changed\n")
    git(folder, "add", "sub")
    trap(folder, marker)
    for name in (marker, marker + "-sub"):
        if os.path.exists(name):
            os.unlink(name)
    # Its own git would run them: so the trap is one.
    git(folder, "status", check=False)
    assert os.path.exists(marker) and os.path.exists(marker + "-sub"), "the traps are none"
    os.unlink(marker)
    os.unlink(marker + "-sub")
    os.utime(folder + "/train.py", (2, 2))
    os.utime(folder + "/src/model.py", (2, 2))
    index = os.stat(folder + "/.git/index").st_mtime_ns
    state = noted(d, folder)
    assert state["commit"] == git(folder, "rev-parse", "HEAD") and state["branch"] == "main" and state["changed"] == 0, state
    assert "remote" not in state  # of a helper's address only the helper knows what is in it
    # Objects that lack are not fetched.
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    os.unlink("%s/.git/objects/%s/%s" % (folder, tree[:2], tree[2:]))
    state = noted(d, folder)
    assert "changed" not in state and state["branch"] == "main", state
    assert not os.path.exists(marker) and not os.path.exists(marker + "-sub"), open(marker).read()
    assert os.stat(folder + "/.git/index").st_mtime_ns == index  # nor is anything written
    assert not [name for name in os.listdir(d.env["TMPDIR"]) if name.startswith("fairlead-git-")]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else(daemon, place):
    d, folder = daemon, place + "/r"
    repository(folder)
    for parent, folders, files in os.walk(folder):
        for name in [parent, *(os.path.join(parent, file) for file in folders + files)]:
            os.lchown(name, 65534, 65534)
    number, complaint = submit(d, folder, env={"GIT_CONFIG_GLOBAL": "/dev/null"})
    assert "the state of git is not noted: fatal: detected dubious ownership" in complaint
    assert "git" not in d.ask("job", str(number), "--spec")


def stand_in(folder, text):
    """A program of that text in place of git."""
    write(folder + "/bin/git", "#!/bin/sh\n" + text, 0o755)
    return {"PATH": folder + "/bin:" + os.environ["PATH"]}


def test_a_git_that_is_missing_slow_or_broken_holds_nothing_up(daemon, place):
    d, folder, real = daemon, place + "/r", shutil.which("git")
    commit = repository(folder)
    number, complaint = submit(d, folder, env={"PATH": place})
    assert "there is no program git in PATH" in complaint and "git" not in d.ask("job", str(number), "--spec")
    number, complaint = submit(d, folder, env={**OWN_LIMITS, **stand_in(place, "sleep 1000\n")})
    assert "git did not answer within 1000 ms" in complaint
    for text in ("exit 1\n", "kill -9 $$\n", "yes\n", "echo >&2 'fatal: no'; exit 128\n", "yes >&2\n", "printf 'true\\n\\nx'\n", "cat\n", "exec >&- 2>&-; sleep 1000\n",
                 "(sleep 1000) & exit 3\n"):
        number, _ = submit(d, folder, env={**OWN_LIMITS, **stand_in(place, text)})
        assert "git" not in d.ask("job", str(number), "--spec"), text
    # The comparison alone is slow, breaks or says a lot: the rest is known.
    for text in ("sleep 1000", "exit 1", "kill -9 $$", "yes '? x'", "yes | tr -d '\\n'"):
        script = "case \"$*\" in *status*) %s;; esac\nexec %s \"$@\"\n" % (text, real)
        number, complaint = submit(d, folder, env={**stand_in(place, script), "FAIRLEAD_TEST_GIT_COUNT_MS": ""})
        state = d.ask("job", str(number), "--spec")["git"]
        assert state == {"commit": commit, "branch": "main"} and not complaint, text
        assert "not known whether files are changed" in d.run("job", str(number)).out
    # A great many are told as the most that is told.
    script = "case \"$*\" in *status*) yes '? x' | head -n 1200000 | tr '\\n' '\\0'; exit 0;; esac\nexec %s \"$@\"\n" % real
    number, _ = submit(d, folder, env=stand_in(place, script))
    assert d.ask("job", str(number), "--spec")["git"].get("untracked", 1000000) == 1000000
    assert not [name for name in os.listdir(d.env["TMPDIR"]) if name.startswith("fairlead-git-")]
    assert noted(d, folder, env={"TMPDIR": "/does/not/exist"}) == {"commit": commit, "branch": "main"}


def test_variables_of_another_call_of_git_do_not_lead_elsewhere(daemon, place):
    d, folder = daemon, place + "/r"
    commit = repository(folder)
    repository(place + "/other")
    git(place + "/other", "commit", "-q", "--allow-empty", "-m", "x")
    assert noted(d, folder, env={"GIT_DIR": place + "/other/.git", "GIT_WORK_TREE": place + "/other", "GIT_INDEX_FILE": "/none", "GIT_TRACE": "1",
                                 "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"}) == {
        "commit": commit, "branch": "main", "changed": 0, "untracked": 0}
