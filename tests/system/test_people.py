# SPDX-License-Identifier: Apache-2.0
"""A name that is used again, through a real daemon: nothing of the removed person reaches the next one."""

import json
import os
import subprocess

import harness


def command(d, token, *words):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_") and k != "XDG_STATE_HOME"}
    env = dict(clean, NO_COLOR="1", FAIRLEAD_SERVER="http://127.0.0.1:" + d.tcp_port(), FAIRLEAD_TOKEN=token)
    return subprocess.run([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=env, cwd="/")


def token_of(d, user):
    return d.run("token", "create", "--user", user).out.strip()


def test_a_name_that_is_used_again_is_another_person():
    with harness.Daemon(nodes="sim:1x1xH100-80GB", listen="127.0.0.1:0") as d:
        d.run("teams", "create", "a")
        d.run("users", "add", "mona", "--uid", "23456", "--gid", "23456", "--team", "a")
        d.run("users", "add", "lead", "--no-account", "--role", "lead", "--team", "a")
        old, lead = token_of(d, "mona"), token_of(d, "lead")

        # One uid, one user; a lead makes no token of a member.
        done = d.run("users", "add", "other", "--uid", "23456", "--gid", "23456", check=False)
        assert done.code == 5 and 'uid 23456 belongs to user "mona"' in done.err, done
        done = command(d, lead, "token", "create", "--user", "mona")
        assert done.returncode == 4 and "ask mona or an admin" in done.stderr, done

        done = command(d, old, "run", "-d", "--", "echo", "secret of the first mona")
        assert done.returncode == 0, done
        first = 1
        d.wait(first)
        assert "secret" in command(d, old, "logs", str(first)).stdout
        d.submit("sleep", "1000", flags=("--gpus", "1"))  # the only GPU: what mona submits now waits
        held, waits = 3, 4
        for number in (held, waits):
            assert command(d, old, "run", "-d", "--gpus", "1", "--", "true").returncode == 0
        d.run("hold", str(held))

        d.run("users", "remove", "mona")
        assert command(d, old, "whoami").returncode == 4
        d.wait(held, "cancelled")
        d.wait(waits, "cancelled")
        # The lead makes the name again; an admin gives it an account and a token.
        assert command(d, lead, "users", "add", "mona", "--no-account").returncode == 0
        d.run("users", "change", "mona", "--uid", "23457", "--gid", "23457")
        new = token_of(d, "mona")

        for again in range(2):
            assert command(d, old, "whoami").returncode == 4
            assert json.loads(command(d, new, "whoami", "-o", "json").stdout)["user"] == "mona"
            done = command(d, new, "logs", str(first))
            assert done.returncode == 4 and "secret" not in done.stdout, done
            assert command(d, new, "job", str(first), "--spec").returncode == 4
            rows = json.loads(command(d, new, "token", "-o", "json").stdout)
            assert len(rows) == 1, rows
            if not again:
                d.kill()
                d.up()
