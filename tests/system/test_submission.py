# SPDX-License-Identifier: Apache-2.0
"""Client keys: the same key gives the same job, also after a restart; with anything else in it, a conflict."""

import harness

JOB = {"name": "keyed", "command": ["true"], "hold": True, "tasks": 2, "gpus": 1, "env": {"A": "1"}}


def post(client, job, key):
    return client.until_answered("POST", "/api/v1/jobs", job, {"Idempotency-Key": key})


def test_a_repeated_client_key_gives_the_same_job_and_another_job_under_it_is_a_conflict():
    with harness.Daemon() as d:
        client = harness.Client(d.data)
        status, first = post(client, JOB, "k1")
        assert status in (200, 201) and not first["already"]
        status, again = post(client, JOB, "k1")
        assert status == 200 and again["already"] and again["id"] == first["id"]
        for change in ({"tasks": 3}, {"gpus": 2}, {"env": {"A": "2"}}, {"command": ["false"]}, {"name": "other"}):
            status, answer = post(client, dict(JOB, **change), "k1")
            assert status == 409, (change, status, answer)
            assert answer["error"]["code"] == "conflict"
        status, other = post(client, JOB, "k2")
        assert other["id"] != first["id"]
        d.kill()
        d.up()
        client = harness.Client(d.data)
        status, again = post(client, JOB, "k1")
        assert again["already"] and again["id"] == first["id"]
        assert len(d.ask("jobs", "--all")) == 2
