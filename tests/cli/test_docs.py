# SPDX-License-Identifier: Apache-2.0
"""The documentation that people write: its commands exist with their flags, and the README's work when typed."""

import glob
import os
import re
import shlex
import subprocess

import pytest

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))),
         *sorted(glob.glob(os.path.join(ROOT, "docs", "guide", "*.md"))), *sorted(glob.glob(os.path.join(ROOT, "docs", "results", "*.md"))), os.path.join(ROOT, "scripts", "quickstart")]


def read(path):
    with open(path) as f:
        return f.read()


def command_names():
    page = subprocess.run([harness.PROGRAM, "help", "--markdown", "commands"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    return re.findall(r"^## fairlead (.+)$", page, re.M)


def help_of(name):
    return subprocess.run([harness.PROGRAM, *name.split(), "--help"], stdout=subprocess.PIPE, text=True, timeout=60).stdout


def invocations(text):
    """What stands behind "fairlead " in examples and in backticks, up to a comment or the next command of the line."""
    for line in re.findall(r"^(?:    |    \$ |\$ )(fairlead .*)$", text, re.M) + re.findall(r"`(fairlead [^`]+)`", text):
        for part in re.split(r"\s#|[|;&\n]|\s>", line):
            if part.strip().startswith("fairlead "):
                yield part.strip().rstrip(".,:").split()[1:]


@pytest.mark.parametrize("path", PAGES, ids=os.path.basename)
def test_commands_in_the_documentation_exist(path):
    names = command_names()
    for words in invocations(read(path)):
        if not re.fullmatch(r"[a-z]+", words[0]):
            continue  # "fairlead COMMAND"
        name = " ".join(words[:2]) if " ".join(words[:2]) in names else words[0]
        assert name in names or any(n.startswith(name + " ") for n in names), (path, words)
        page, own = help_of(name), words[:words.index("--")] if "--" in words else words
        for flag in (w.split("=")[0] for w in own if w.startswith("--")):
            assert re.search(re.escape(flag) + r"\b", page), (path, words, flag)


def test_the_page_for_users_of_slurm_has_40_rows():
    rows = [line.split("|")[1:3] for line in read(os.path.join(ROOT, "docs", "guide", "from-slurm.md")).splitlines() if line.startswith("| `")]
    assert len(rows) >= 40
    for slurm, ours in rows:
        assert len(list(invocations(ours))) == 1, slurm


def test_fields_in_the_page_for_users_of_slurm_exist():
    help_page = subprocess.run([harness.PROGRAM, "help", "job-file"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    fields = [line.split("|")[3] for line in read(os.path.join(ROOT, "docs", "guide", "from-slurm.md")).splitlines() if line.startswith("| `--")]
    assert len(fields) > 15
    for field in fields:
        assert re.search(r"^%s: " % re.escape(re.search(r"`(\w+): ", field).group(1)), help_page, re.M), field


def test_the_page_on_typing_counts_right():
    text = read(os.path.join(ROOT, "docs", "results", "2026-11-28-typing.md"))
    files = dict(re.findall(r"^\*\*(\w+)\*\*\n\n```yaml\n(.*?)```$", text, re.M | re.S))
    rows = [line.replace(r"\|", "\0").split("|")[3:7] for line in text.splitlines() if re.match(r"\| \d+ \|.*\|.*\|.*\|.*\|", line)]
    assert len(rows) == 25 and files
    figures = []
    for row in rows:
        figures.append([])
        for cell in row:
            commands = [c.replace("\0", "|") for c in re.findall(r"`([^`]+)`", cell)] + [files[name].strip() for name in re.findall(r"file (\w+)", cell)]
            assert cell.strip() in ("-", "nothing") or "**%d, %d**" % (len(commands), sum(map(len, commands))) in cell, cell
            figures[-1].append(None if cell.strip() == "-" else (len(commands), sum(map(len, commands))))
    said = [[int(n) for n in re.findall(r"\d+", line.split("|", 2)[2])] for line in text.splitlines() if line.startswith(("| tasks it", "| ... with"))]
    assert said[0] == [sum(row[k] is not None for row in figures) for k in range(4)]
    for part in (0, 1):
        assert said[1 + part] == [sum(row[k] is not None and row[k][part] == min(f[part] for f in row if f) for row in figures) for k in range(4)]


def test_the_readme_works_when_it_is_typed(tmp_path):
    readme = read(os.path.join(ROOT, "README.md"))
    shown = readme.split("## A minute of it")[1].split("A job file:")[0]
    lines = [line.split(" #")[0].rstrip() for line in re.findall(r"^    \$ (.*)$", shown, re.M)]
    nodes = [shlex.split(line)[-1] for line in lines if line.startswith("fairlead up ")]
    assert lines[0].startswith("export PATH=") and len(nodes) == 1 and len(lines) > 8
    with harness.Daemon(nodes=nodes[0]) as d:
        for line in lines[1:]:
            if line.startswith("fairlead up "):
                continue
            words = shlex.split(line)
            assert words[0] == "fairlead", line
            if words[1] == "explain":  # the minute shows a job that waits
                assert d.state(int(words[2])) == "queued", line
            if words[1] == "logs":  # a reader types more slowly than the job starts
                d.wait(int(words[2].split("/")[0]))
            done = d.run(*[os.path.join(ROOT, w) if w.startswith("examples/") else w for w in words[1:]])
            assert done.out, line
        job_file = re.search(r"```yaml\n(.*?)```", readme, re.S).group(1)
        assert "it would" in d.run("submit", "--dry-run", "-", stdin=job_file).out


def test_the_picture_of_the_readme_is_what_the_program_prints():
    done = subprocess.run([os.path.join(ROOT, "scripts", "terminal-picture"), "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, FAIRLEAD_BUILD=harness.BUILD), timeout=harness.PATIENCE_S)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", [p for p in PAGES if p.endswith(".md")], ids=os.path.basename)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(path)):
        assert os.path.exists(os.path.join(os.path.dirname(path), target)), (path, target)


def scenario_names():
    """By file, without its ending."""
    return {os.path.basename(path)[:-len(".yaml")]: set(re.findall(r"^name: (.+)$", read(path), re.M))
            for path in glob.glob(os.path.join(ROOT, "tests", "scenarios", "*.yaml"))}


@pytest.mark.parametrize("page,least", [("docs/policy.md", 20), ("docs/how-fairlead-decides.md", 40), ("src/core/scheduling/queues/README.md", 2), ("src/core/scheduling/reserve/README.md", 3)])
def test_scenarios_that_a_page_names_exist(page, least):
    names, named, text = scenario_names(), 0, re.sub(r"\s+", " ", read(os.path.join(ROOT, page)))
    for quoted, file in re.findall(r'((?:"[^"]+",? (?:and )?)+)\(([a-z-]+)\)', text):
        for name in re.findall(r'"([^"]+)"', quoted):
            assert name in names.get(file, ()), (name, file)
            named += 1
    assert named >= least


def test_the_page_on_decisions_has_every_reason():
    codes = set(re.findall(r'\[REASON_[A-Z_]+\] = "([a-z_]+)"', read(os.path.join(ROOT, "src", "core", "explain", "explain.c")))) - {"none"}
    table = read(os.path.join(ROOT, "docs", "how-fairlead-decides.md")).split("| reason | it waits for |")[1]
    assert len(codes) > 20 and codes == set(re.findall(r"`([a-z_]+)`[,|\s]", "\n".join(line.split("|")[1] + "|" for line in table.splitlines()[2:] if "|" in line)))
