# SPDX-License-Identifier: Apache-2.0
"""docs/guide: every command of each page is typed in a shell, in an empty folder with an empty home, and what the page shows appears.

A page holds ```console blocks: `$ ` begins a command, `> ` goes on with it, the other lines are what it prints. `...` stands for anything,
alice for whoever runs the test, and blanks are of any width. Commands that only look are typed again until the page's lines appear. Comments in
front of a block say what else it is:
    <!-- file: NAME -->        save it under that name
    <!-- not run: REASON -->   its commands are only compared with the table of commands
    <!-- shown: PATH -->       its lines stand in that file of the repository, comments aside
    <!-- unit: NAME -->        systemd-analyze verifies it
"""

import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile

import pytest
import yaml

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUIDES = sorted(glob.glob(os.path.join(ROOT, "docs", "guide", "*.md")))
LOOKS = ("jobs", "job", "explain", "logs", "gpus", "nodes", "queues", "doctor", "users", "teams", "prices", "reservations", "whoami", "policy")
REASONS = ("needs Kubernetes", "needs systemd", "builds Fairlead", "needs a screen", "needs another machine", "needs PyTorch")
WORDS = 1500


def read(path):
    with open(path) as f:
        return f.read()


def blocks(text):
    """(mark, language, body) of each."""
    for mark, language, body in re.findall(r"(?:<!-- ([^>]*) -->\n+)?```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield mark, language, body


def commands(body):
    """(command, lines it prints) of a console block."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        else:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """Lines in this order, others between them only where the page says `...`."""
    user, out = pwd.getpwuid(os.getuid()).pw_name, []
    for line in lines:
        if line.strip() == "...":
            out.append(r"(?:.*\n)*?")
            continue
        words = [".*".join(re.escape(part) for part in word.split("...")) for word in line.replace("alice", user).split()]
        out.append(r"\s*" + r"\s+".join(words) + r"[ ]*\n")
    return re.compile("".join(out))


class Shell:
    """One that keeps its folder and variables from command to command."""

    def __init__(self, env, folder):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", env=env, cwd=folder)

    def type(self, command):
        self.process.stdin.write("{ %s\n} </dev/null\nprintf '\\n@@ended %%d\\n' $?\n" % command)
        self.process.stdin.flush()
        out = ""
        while not (ended := re.search(r"\n?@@ended (\d+)\n$", out)):
            line = self.process.stdout.readline()
            assert line, (command, out)
            out += line
        out = out[:ended.start()]
        return int(ended.group(1)), out if out.endswith("\n") or not out else out + "\n"

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def is_look(command):
    words = command.split()
    return words[0] == "fairlead" and words[1] in LOOKS and not (len(words) > 2 and re.fullmatch(r"[a-z]+", words[2])) and "-f" not in words


def follow(page, shell, command, lines):
    wanted, seen = pattern(lines), ""

    def appears():
        nonlocal seen
        code, seen = shell.type(command)
        return code == 0 and wanted.fullmatch(seen)
    try:
        if is_look(command):
            harness.wait_until("what the page shows", appears)
        else:
            assert appears()
    except AssertionError:
        raise AssertionError("%s: %s\n--- the page shows\n%s\n--- what appeared\n%s" % (page, command, "\n".join(lines), seen)) from None


@pytest.fixture
def shell():
    """With a home of its own, in which the clone is ~/fairlead. Its daemon is gone at the end, whatever happened."""
    home = tempfile.mkdtemp(prefix="fairlead-test-guide-", dir=harness.TMP)
    os.symlink(ROOT, os.path.join(home, "fairlead"))
    d = harness.Daemon(data=os.path.join(home, "data"))
    env = dict(d.env, HOME=home, PATH=os.path.dirname(harness.PROGRAM) + ":" + os.environ["PATH"])
    env.pop("NO_COLOR", None)
    os.mkdir(os.path.join(home, "work"))
    opened = Shell(env, os.path.join(home, "work"))
    yield opened
    opened.type("fairlead cancel --all --yes; fairlead down")
    opened.close()
    d.process = None
    d.destroy()
    shutil.rmtree(home)


@pytest.mark.parametrize("path", GUIDES, ids=os.path.basename)
def test_a_guide_works_when_it_is_typed(path, shell):
    page, count = os.path.basename(path), 0
    for mark, language, body in blocks(read(path)):
        kind, _, value = (mark or "").partition(": ")
        assert kind in ("", "file", "not run", "shown", "unit"), mark
        if kind == "file":
            shell.type("cat >%s <<'END-OF-FILE'\n%sEND-OF-FILE" % (value, body))
        elif kind == "shown":
            there = read(os.path.join(ROOT, value))
            assert all(line.partition("  #")[0].rstrip() in there for line in body.splitlines()), mark
        elif kind == "not run":
            assert value.startswith(REASONS), mark
        elif kind == "" and language == "console":
            for command, lines in commands(body):
                follow(page, shell, command, lines)
                count += 1
    assert count > 3


@pytest.mark.parametrize("path", GUIDES, ids=os.path.basename)
def test_a_guide_is_short_and_its_units_are_sound(path, tmp_path):
    text = read(path)
    assert len(text.split()) <= WORDS
    assert os.path.basename(path) in read(os.path.join(ROOT, "docs", "README.md"))
    for mark, _, body in blocks(text):
        if mark.startswith("unit: "):
            shipped = read(os.path.join(ROOT, "deploy", "systemd", mark.partition(": ")[2]))
            assert body.split() == shipped[shipped.index("[Unit]"):].split()
            unit = tmp_path / mark.partition(": ")[2]
            unit.write_text(body.replace("/usr/local/bin/fairlead", os.path.realpath(harness.PROGRAM)))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert done.returncode == 0 and unit.name not in done.stdout, done.stdout


def test_what_the_guide_for_kubernetes_sets_exists():
    """Values of the chart, labels of pods, and manifests that are in the repository; the manifests themselves are applied in tests/kubernetes."""
    text = read(os.path.join(ROOT, "docs", "guide", "from-kubernetes.md"))
    with open(os.path.join(ROOT, "deploy", "helm", "fairlead", "values.yaml")) as f:
        values = yaml.safe_load(f)
    keys = re.findall(r"--set '?([\w.]+)=", text)
    assert len(keys) >= 2
    for key in keys:
        at = values
        for word in key.split("."):
            assert word in at, key
            at = at[word]
    for path in re.findall(r"deploy/[\w/]+", text):
        assert os.path.exists(os.path.join(ROOT, path)), path
    labels = set(re.findall(r"fairlead\.dev/[\w-]+", text))
    assert len(labels) >= 2 and all("`%s" % label in read(os.path.join(ROOT, "docs", "kubernetes.md")) for label in labels)
    template = next(yaml.safe_load(body) for mark, language, body in blocks(text) if mark.startswith("not run") and language == "yaml")["template"]
    assert template["spec"] == {"schedulerName": "fairlead"} and set(template["metadata"]["labels"]) <= labels
