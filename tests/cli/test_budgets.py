# SPDX-License-Identifier: Apache-2.0
"""Budgets, prices, guarantees by model and collecting, from the command to what starts."""

import json

import harness


def queue(d, name):
    return {q["name"]: q for q in d.ask("queues")}[name]


def submit(d, *flags):
    return d.submit("sleep", "300", flags=flags)


def waits(d, number, why):
    """A pass has looked at it, and said so."""
    harness.wait_until("job %d waits: %s" % (number, why), lambda: why in d.job(number)["reason"])
    return d.state(number) == "queued"


def test_a_job_beyond_its_queues_budget_waits_until_it_may_be_spent():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        d.run("queues", "create", "vision")
        d.run("prices", "set", "H100-80GB", "2.10")
        d.run("queues", "budget", "vision", "4.5", "--currency", "EUR")
        shown = queue(d, "vision")
        assert shown["budget_left"] == "4.500000" and shown["currency"] == "EUR"
        assert submit(d, "-q", "vision", "-g", "1", "--limit", "2h") == 1  # 4.20
        d.wait(1, "running")
        dear = submit(d, "-q", "vision", "-g", "1", "--limit", "2h")  # what runs is spoken for
        assert waits(d, dear, "of the budget of queue \"vision\"")
        assert 'may cost 4.20 EUR at its limit, but of the budget of queue "vision" 0.' in d.run("explain", str(dear), "-v").out
        assert submit(d, "-g", "1", "--limit", "2h") == 3  # of another queue
        d.wait(3, "running")
        d.run("queues", "budget", "vision", "9")
        d.wait(dear, "running")
        assert queue(d, "vision")["currency"] == "EUR"
        dear = submit(d, "-q", "vision", "-g", "1", "--limit", "2h")
        assert waits(d, dear, "of the budget of queue \"vision\"")
        d.run("policy", "set", "--budget-warns", "yes")
        d.wait(dear, "running")
        d.run("queues", "budget", "vision", "none")
        assert "budget_left" not in queue(d, "vision")
        assert d.run("queues", "budget", "nowhere", "1", check=False).code == 3
        done = d.run("queues", "budget", "vision", "much", check=False)
        assert done.code == 2 and "amount with at most six decimals" in done.err, done


def test_a_model_whose_price_is_taken_away_costs_what_any_does():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        d.run("queues", "create", "vision")
        d.run("queues", "budget", "vision", "2")
        d.run("prices", "set", "any", "0.80")
        d.run("prices", "set", "H100-80GB", "2.10")
        assert d.ask("prices") == [{"model": "H100-80GB", "per_hour": "2.100000"}, {"model": "any", "per_hour": "0.800000"}]
        assert d.run("prices").out.splitlines()[1].split() == ["H100-80GB", "2.10"]
        job = submit(d, "-q", "vision", "--limit", "2h")
        assert waits(d, job, "of the budget of queue \"vision\"")
        d.run("prices", "set", "H100-80GB", "none")
        assert d.ask("prices") == [{"model": "any", "per_hour": "0.800000"}]
        d.wait(job, "running")
        done = d.run("prices", "set", "any", "0.0000001", check=False)
        assert done.code == 2 and "at most six decimals" in done.err, done
        d.kill()
        d.up()
        assert d.ask("prices") == [{"model": "any", "per_hour": "0.800000"}]


def test_a_guarantee_by_model_is_for_critical_work_on_that_model():
    with harness.Daemon(nodes="sim:1x4xH100-80GB,1x4xA100-40GB") as d:
        d.run("queues", "create", "vision", "--guarantee-models", "H100-80GB=2")
        assert queue(d, "vision")["guarantee_models"] == "H100-80GB=2" and queue(d, "vision")["guarantee_gpus"] == 2
        promised = submit(d, "-q", "vision", "--tier", "critical", "-m", "H100-80GB", "-g", "1")
        d.wait(promised, "running")
        words = ("run", "-d", "-q", "vision", "--tier", "critical", "-m", "A100-40GB", "-g", "1", "--", "sleep", "300")
        done = d.run(*words, check=False)
        assert done.code == 8 and 'queue "vision" guarantees 0 of the models it accepts' in done.err, done
        d.run("queues", "change", "vision", "--guarantee-models", "H100-80GB=1,A100-40GB=1")
        d.run(*words)
        d.wait(promised + 1, "running")
        done = d.run("queues", "create", "bad", "--guarantee-models", "H100-80GB=x", check=False)
        assert done.code == 2 and done.err.startswith('fairlead: --guarantee-models: "H100-80GB=x" is not like MODEL=GPUS'), done
        d.run("queues", "change", "vision", "--guarantee-models", "none")
        assert queue(d, "vision")["guarantee_models"] == ""


def test_what_is_collected_for_a_blocked_job_is_lent_to_no_standard_work():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        d.run("policy", "set", "--collect-after", "1ms")
        assert d.ask("policy")["collect_after_ms"] == 1
        d.wait(submit(d, "-g", "2", "--limit", "4h"), "running")
        wide = submit(d, "-g", "4")
        small = submit(d, "-g", "1", "--limit", "1h")  # over long before the wide one can start
        spare = submit(d, "-g", "1", "--limit", "1h", "--tier", "best-effort")
        d.wait(spare, "running")
        assert d.state(wide) == "queued"
        assert waits(d, small, 'the place is collected for job %d "sleep", which has waited long' % wide)
        d.run("policy", "set", "--collect-after", "0s")
        d.wait(small, "running")
        done = d.run("policy", "set", "--collect-after", "soon", check=False)
        assert done.code == 2 and done.err.startswith('fairlead: --collect-after: duration "soon"'), done


def test_guarantees_of_a_model_beyond_what_there_is_are_told():
    with harness.Daemon(nodes="sim:1x4xH100-80GB,1x4xA100-40GB") as d:
        assert "there are GPUs for all of them" in d.run("doctor", check=False).out
        done = d.run("queues", "create", "p", "--guarantee-models", "H100-80GB=3,A100-40GB=1")
        assert "guarantees" not in done.err, done
        done = d.run("queues", "create", "q", "--guarantee-models", "H100-80GB=2,any=1")
        assert "the guarantees of H100-80GB come to 5 GPUs, and there are 4 of that model" in done.err, done
        assert "A100" not in done.err and "all guarantees" not in done.err, done
        done = d.run("queues", "change", "q", "--guarantee-models", "H100=1")
        assert "H100 is guaranteed, and no node has that model" in done.err, done
        assert "H100 is guaranteed, and no node has that model" in d.run("doctor", check=False).out


def dry_run(d, job, *words):
    return " ".join(d.run("submit", "--dry-run", *words, "-", stdin=json.dumps(job)).out.split())


def test_what_a_job_would_cost_is_said_before_and_while_it_waits():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        job = {"command": "true", "gpus": 2, "limit": "10h"}
        assert "price" not in dry_run(d, job, "-o", "json")
        d.run("prices", "set", "any", "2")
        d.run("queues", "create", "vision")
        d.run("queues", "budget", "vision", "100", "--currency", "EUR")
        words = ("-q", "vision", "-g", "2", "--limit", "10h")
        job["queue"] = "vision"
        said = dry_run(d, job)
        # Of a job with a limit alone no more is known than that it runs for a part of it: 2 GPUs for 5 h, 9 h in 9 of 10 cases, 10 h at most.
        assert "Expected cost: about 20.00 EUR, at most 40.00 EUR at its limit (4.00 EUR an hour there)." in said, said
        price = json.loads(dry_run(d, job, "-o", "json"))["price"]
        assert price == {"per_hour": "4.000000", "likely": "20.000000", "safe": "36.000000", "most": "40.000000", "most_by": "limit", "currency": "EUR", "placed": True}
        plan = harness.Client(d.data).once("POST", "/api/v1/plan", {"command": ["true"], "queue": "vision", "gpus": 4, "limit": "1h"})[1]
        assert plan["jobs"][0]["price"]["safe"] == "7.200000", plan
        hold = submit(d, "-g", "4")
        d.wait(hold, "running")
        waits_for = submit(d, *words)
        said = " ".join(d.run("explain", str(waits_for), "-v").out.split())
        assert "at most 40.00 EUR at its limit (4.00 EUR an hour on the cheapest GPUs that it accepts)." in said, said


def test_what_has_ended_comes_off_the_budget_by_itself():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        d.run("prices", "set", "any", "3600")  # one a second
        d.run("queues", "create", "group")
        d.run("queues", "create", "vision", "--parent", "group")
        for name in "group", "vision":
            d.run("queues", "budget", name, "100000")
        job = d.submit("sleep", "0.5", flags=("-q", "vision", "-g", "2", "--limit", "1h"))
        d.wait(job, "succeeded")
        for name in "group", "vision":
            shown = queue(d, name)
            spent = float(shown["budget_spent"])
            assert 1 <= spent < 1000 and abs(float(shown["budget_left"]) - (100000 - spent)) < 1e-6, shown
        d.kill()
        d.up()
        assert float(queue(d, "vision")["budget_spent"]) == spent
        d.run("queues", "budget", "vision", "50")
        assert queue(d, "vision")["budget_spent"] == "0.000000" and queue(d, "vision")["budget_left"] == "50.000000"

