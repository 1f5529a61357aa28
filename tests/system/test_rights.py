# SPDX-License-Identifier: Apache-2.0
"""What one user may do to another, through a real daemon: priorities, tiers, queues, limits per user, default queues, users of a file."""

import json
import os
import subprocess

import harness


def command(d, token, *words):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_") and k != "XDG_STATE_HOME"}
    env = dict(clean, NO_COLOR="1", FAIRLEAD_SERVER="http://127.0.0.1:" + d.tcp_port(), FAIRLEAD_TOKEN=token)
    return subprocess.run([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=env, cwd="/")


def site(d, tmp_path):
    """Teams vision and speech with a queue each; users from a file; a token of each."""
    for team in ("vision", "speech"):
        d.run("teams", "create", team)
        d.run("queues", "create", team, "--team", team, "--guarantee", "2")
    people = tmp_path / "people.csv"
    people.write_text("name,team,role,uid,gid\nlou,vision,lead,23461,23461\nann,vision,,23462,23462\nbob,speech,,23463,23463\n")
    said = d.run("users", "add", "--from", str(people)).out
    assert said.count("was added") == 3, said
    return {user: d.run("token", "create", "--user", user).out.strip() for user in ("lou", "ann", "bob")}


def refused(done, *words):
    assert done.returncode == 4, done
    for word in words:
        assert word in done.stderr, done


def test_a_researcher_neither_raises_a_priority_nor_takes_over_with_critical_work(tmp_path):
    with harness.Daemon(nodes="sim:1x4xH100-80GB", listen="127.0.0.1:0") as d:
        token = site(d, tmp_path)
        admin = d.run("whoami", "-o", "json").out
        admin = json.loads(admin)["user"]
        victim = d.submit("sleep", "1000", flags=("--gpus", "4"))
        d.wait(victim, "running")

        done = command(d, token["ann"], "run", "-d", "--gpus", "4", "--priority", "1000", "--", "true")
        refused(done, 'researcher "ann"', 'ask admin "%s"' % admin)
        done = command(d, token["ann"], "run", "-d", "--gpus", "2", "--tier", "critical", "--", "true")
        refused(done, 'queue "vision" does not admit critical jobs', 'lead "lou"')
        done = command(d, token["ann"], "run", "-d", "--gpus", "1", "--priority", "50", "--", "true")
        refused(done, 'ask lead "lou" or admin')
        # Own jobs, lowered; a lead raises them in the own queue and no further; a job of others is nobody's to touch.
        done = command(d, token["ann"], "run", "-d", "--gpus", "4", "--priority", "-5", "--", "true")
        assert done.returncode == 0, done
        waits = victim + 1
        assert d.job(waits)["queue"] == "vision"
        refused(command(d, token["ann"], "priority", str(waits), "--to", "1"), "priority 1 is more than the 0")
        refused(command(d, token["lou"], "priority", str(waits), "--to", "101"), 'lead "lou"')
        assert command(d, token["lou"], "priority", str(waits), "--to", "100").returncode == 0
        refused(command(d, token["bob"], "priority", str(waits), "--to", "-1"), 'researcher "bob" may not change the priority of jobs')
        refused(command(d, token["bob"], "cancel", str(waits)), 'researcher "bob" may not cancel jobs')
        assert d.state(victim) == "running"
        # The lead lets the team's queue admit critical work; what is stated is there after a restart.
        assert command(d, token["lou"], "queues", "change", "vision", "--tiers", "critical,standard").returncode == 0
        refused(command(d, token["lou"], "queues", "change", "vision", "--weight", "5"), "may not change its weight")
        refused(command(d, token["lou"], "queues", "change", "speech", "--weight", "5"), "may not make or change queues of others")
        d.kill()
        d.up()
        done = command(d, token["ann"], "run", "-d", "--gpus", "2", "--tier", "critical", "--", "true")
        assert done.returncode == 0, done
        # The admin of the machine notices nothing.
        d.submit("true", flags=("--gpus", "1", "--priority", "1000"))


def test_limits_of_each_user_hold_and_are_explained(tmp_path):
    with harness.Daemon(nodes="sim:1x4xH100-80GB", listen="127.0.0.1:0") as d:
        token = site(d, tmp_path)
        assert command(d, token["lou"], "queues", "change", "vision", "--user-limit", "1", "--user-waiting", "2").returncode == 0
        for number in (1, 2, 3):
            assert command(d, token["ann"], "run", "-d", "--gpus", "1", "--", "sleep", "1000").returncode == 0, number
        d.wait(1, "running")
        done = command(d, token["ann"], "run", "-d", "--gpus", "1", "--", "true")
        assert done.returncode == 8 and "exceed its limit of 2 per user" in done.stderr, done
        assert d.state(2) == "queued"
        why = d.run("explain", "2", "-v").out
        assert 'the jobs of user "ann" may hold 0 more in queue "vision" (its limit per user is 1)' in why, why
        # Another user of the queue starts; so does this one when the limit is gone.
        assert command(d, token["lou"], "run", "-d", "--gpus", "1", "--", "sleep", "1000").returncode == 0
        d.wait(4, "running")
        assert command(d, token["lou"], "queues", "change", "vision", "--user-limit", "none").returncode == 0
        d.wait(2, "running")
        queues = json.loads(d.run("queues", "-o", "json").out)
        vision = [q for q in queues if q["name"] == "vision"][0]
        assert vision["user_waiting"] == 2 and "user_limit_gpus" not in vision


def test_jobs_without_a_queue_go_to_the_teams_only_queue_otherwise_to_the_users_own(tmp_path):
    with harness.Daemon(nodes="sim:1x4xH100-80GB", listen="127.0.0.1:0") as d:
        token = site(d, tmp_path)

        def queue_of(user, *flags):
            done = command(d, token[user], "run", "-d", *flags, "--", "true")
            assert done.returncode == 0, done
            return json.loads(d.run("jobs", "-a", "-o", "json").out)[-1]["queue"]

        assert queue_of("ann") == "vision"
        d.run("users", "change", "ann", "--default-queue", "default")
        assert queue_of("ann") == "vision"  # the team has exactly one
        d.run("queues", "create", "night", "--parent", "vision", "--team", "vision")
        assert queue_of("ann") == "default"
        d.run("users", "change", "ann", "--default-queue", "night")
        d.run("users", "change", "ann", "--role", "researcher")  # what is not given stays
        assert queue_of("ann") == "night"
        assert queue_of("ann", "-q", "vision") == "vision"
        assert queue_of("lou") == "default"  # two queues, and none of the lead's own
        done = d.run("users", "change", "ann", "--default-queue", "nihgt", check=False)
        assert done.code == 3 and 'user "ann": default queue' in done.err and "night" in done.err, done


def test_users_of_a_file_are_added_all_or_the_line_is_named(tmp_path):
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.run("teams", "create", "vision")
        people = tmp_path / "people.csv"

        def add(text):
            people.write_text(text)
            return d.run("users", "add", "--from", str(people), "--no-account", check=False)

        def users():
            return {u["name"]: u for u in json.loads(d.run("users", "-o", "json").out)}

        before = len(users())
        done = add("name,team\nann,vision\nbob,vison\n")
        assert done.code == 3 and "people.csv:3 (1 of 2 users were added before)" in done.err and 'team "vison"' in done.err, done
        done = add("name,team\ncem,vision\nann,vision\n")
        assert done.code == 5 and 'people.csv:3: user "ann" is there already, and nobody was added' in done.err, done
        done = add("name,uid\ndan,one\n")
        assert done.code == 2 and "people.csv:2: uid" in done.err, done
        assert len(users()) == before + 1
        done = add('name,team,role\n"cem",vision,lead\r\ndan,,viewer\n')
        assert done.code == 0 and done.out.count("was added") == 2, done
        assert (users()["cem"]["role"], users()["dan"]["role"], users()["dan"]["team"]) == ("lead", "viewer", "")
        for words in (["--from", str(people), "eve"], [], ["--from", str(people), "--role", "lead"]):
            assert d.run("users", "add", *words, check=False).code == 2, words


def test_a_token_ends_after_90_days_unless_something_else_was_asked_for():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        day = 86400 * 1000
        made = {name: json.loads(d.run("token", "create", *flags, "-o", "json").out)["expires_ms"]
                for name, flags in (("plain", ()), ("never", ("--expires", "never")), ("short", ("--expires", "2d")))}
        assert made["never"] == 0
        assert abs(made["plain"] - made["short"] - 88 * day) < 3600 * 1000, made
