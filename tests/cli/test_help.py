# SPDX-License-Identifier: Apache-2.0
"""Help, man pages, completion and the pages of docs/ all come from the one table of commands."""

import os
import re
import subprocess

import pytest

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def command(*words, **more):
    return subprocess.run([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, **more)


def command_names():
    return re.findall(r"^## fairlead (.+)$", command("help", "--markdown", "commands").stdout, re.M)


def test_every_command_has_help_in_three_ways():
    names = command_names()
    assert len(names) > 40
    for name in names:
        words = name.split()
        texts = [command(*words, "--help"), command(*words, "-h"), command("help", *words)]
        for done in texts:
            assert done.returncode == 0 and done.stderr == "", (name, done)
            assert done.stdout.startswith("fairlead %s: " % name)
        assert texts[0].stdout == texts[1].stdout == texts[2].stdout


def test_a_noun_has_help_too():
    for noun in ("sim", "plan", "journal"):
        texts = [command(noun, "--help"), command(noun, "-h"), command("help", noun)]
        assert texts[0].returncode == 0 and texts[0].stdout.startswith("Sub-commands\n  %s " % noun)
        assert texts[0].stdout == texts[1].stdout == texts[2].stdout


def test_the_overview_names_every_command_and_topic():
    for words in ([], ["help"], ["--help"], ["-h"]):
        done = command(*words)
        assert done.returncode == 0
        for word in ("run", "submit", "jobs", "job", "explain", "logs", "cancel", "queues", "nodes", "journal verify", "doctor",
                     "sim scenario", "job-file", "exit-codes"):
            assert re.search(r"^  %s +\w" % re.escape(word), done.stdout, re.M), word
    assert "__words" not in command("help").stdout


@pytest.mark.parametrize("words,message", [
    (["jbos"], 'there is no command "jbos"; did you mean "jobs"?'),
    (["ps"], 'did you mean "jobs"?'),
    (["kill", "12"], 'did you mean "cancel"?'),
    (["backup"], 'did you mean "journal backup"?'),
    (["jobs", "12"], "`fairlead job ID` shows one"),
    (["xyzzy"], "`fairlead help` lists them"),
    (["queues", "crate"], 'did you mean "create"?'),
    (["journal"], "journal needs a sub-command"),
    (["jobs", "--stat", "x"], "did you mean --state?"),
    (["jobs", "extra"], 'does not take "extra"'),
    (["job"], "job needs ID"),
    (["job", "twelve"], '"twelve" is not the number of a job'),
    (["jobs", "-o", "xml"], 'one of table|wide|json|yaml|csv|name, not "xml"'),
    (["--nonsense", "jobs"], "no flag --nonsense before the command"),
    (["help", "rnu"], "did you mean"),
    (["run"], "run needs"),
    (["run", "--detach", "--wait", "--", "x"], "contradict each other"),
    (["completion", "tcsh"], "bash, zsh and fish"),
    (["cancel"], "cancel needs ID..., or --me"),
    (["cancel", "--all", "3"], "leave the numbers out"),
    (["report"], "report needs --step"),
])
def test_wrong_use_is_said_on_stderr_with_status_2(words, message):
    done = command(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("fairlead: ") and message in done.stderr, done.stderr


@pytest.mark.parametrize("page", ["commands", "job-file", "policy", "exit-codes"])
def test_the_pages_in_docs_are_those_of_the_tables(page):
    with open(os.path.join(ROOT, "docs", page + ".md")) as f:
        assert f.read() == command("help", "--markdown", page).stdout, \
            "make it anew: fairlead help --markdown %s > docs/%s.md" % (page, page)


def test_every_command_has_a_man_page():
    for name in ["fairlead"] + [n for n in command_names() if " " not in n]:
        page = command("help", "--man", name).stdout
        assert page.count(".SH NAME") == 1 and ".SH SYNOPSIS" in page
        assert not re.search(r"^[.'](?!(TH|SH|SS|PP|TP|BR?|br|nf|fi|\\\")\b|\\\")", page, re.M), "an accidental request in " + name


def test_examples_in_the_job_file_help_are_job_files(tmp_path):
    text = command("help", "job-file").stdout
    examples = re.findall(r"((?:^    \S.*\n)+)", text.split("\nname: ")[0], re.M)
    assert len(examples) >= 2
    for example in examples:
        path = tmp_path / "job.yaml"
        path.write_text("\n".join(line[4:] for line in example.splitlines()) + "\n")
        done = command("submit", "--data", str(tmp_path), str(path))
        assert done.returncode == 6, done.stderr  # all is good but that no daemon is there


def test_every_example_job_file_is_good(tmp_path):
    folder = os.path.join(ROOT, "examples")
    files = [f for f in sorted(os.listdir(folder)) if f.endswith(".yaml") and f != "cluster.yaml"]  # that one is no job
    assert files
    for name in files:
        done = command("submit", "--data", str(tmp_path), os.path.join(folder, name), cwd=folder)
        assert done.returncode == 6, (name, done.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for(shell):
    assert "__words" in command("completion", shell).stdout


def complete(line):
    script = 'source <("%s" completion bash); COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fairlead; printf "%%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script % (harness.PROGRAM, line)], stdout=subprocess.PIPE, text=True, timeout=60,
                          env=dict(os.environ, FAIRLEAD_DATA="/nonexistent"))
    return done.stdout.split()


def test_bash_completes_commands_flags_and_values():
    assert {"job", "jobs", "journal"} == set(complete('"%s" jo' % harness.PROGRAM))
    assert ["create"] == complete('"%s" queues cr' % harness.PROGRAM)
    assert ["--tier"] == complete('"%s" run --ti' % harness.PROGRAM)
    assert ["critical", "standard", "best-effort"] == complete('"%s" run --tier ""' % harness.PROGRAM)
    assert ["yaml"] == complete('"%s" jobs -o y' % harness.PROGRAM)
    assert ["best-effort"] == complete('"%s" run --tier = b' % harness.PROGRAM)  # as bash takes --tier=b apart
    assert ["critical", "standard", "best-effort"] == complete('"%s" run --tier =' % harness.PROGRAM)
    assert ["queued"] == complete('"%s" jobs -s q' % harness.PROGRAM)
    assert ["exit-codes"] == complete('"%s" help ex' % harness.PROGRAM)[1:]
    assert ["change"] == complete('"%s" help queues ch' % harness.PROGRAM)
