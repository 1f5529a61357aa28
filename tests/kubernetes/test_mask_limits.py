# SPDX-License-Identifier: Apache-2.0
"""Masks of nodes are few: one user's jobs, or the pods of one namespace, do not take them all."""

import harness
from bed import wait_until
from cluster import cluster
from test_pod_extras import submit
from test_pods import condition, phase, pod

USER_MOST, NAMESPACE_MOST = 64, 128


def wish(i):
    return "command: [\"true\"]\nresources: {example.com/fpga: %d}\n" % (i + 1)


def words(text):
    return " ".join(text.split())


def test_one_user_holds_a_quarter_of_the_masks_at_most():
    with cluster(nodes=1) as (b, s):
        held = [submit(s, wish(i)) for i in range(USER_MOST)]
        same = submit(s, wish(0))
        refused = submit(s, wish(USER_MOST), check=False)
        assert refused.code != 0 and "%d different sets of claims" % USER_MOST in words(refused.err), refused
        # What asks for the same needs none of its own, and neither does what asks for nothing; the journal knows whose they are.
        s.kill()
        s.up()
        refused = submit(s, wish(USER_MOST), check=False)
        assert refused.code != 0 and "most for one user" in words(refused.err), refused
        s.wait_for(submit(s, "command: [\"true\"]\n"), "succeeded")
        s.run("cancel", str(held[1]))
        wait_until("there is room", lambda: submit(s, wish(USER_MOST), check=False).code == 0)
        assert s.state(same) == "queued"


def test_each_mask_of_a_job_with_roles_counts():
    two = "command: [\"true\"]\nresources: {rdma/hca: %d}\nroles: [{name: a}, {name: b, tasks: 2}]\n"
    with cluster(nodes=1) as (b, s):
        held = [submit(s, two % (i + 1)) for i in range(USER_MOST // 3)]
        # One mask is left to him, and this takes three: of each role, and of both. None of them stays.
        refused = submit(s, two % 100, check=False)
        assert refused.code != 0 and "ask for %d different sets" % (USER_MOST - 1) in words(refused.err) and "this one for 3 more" in words(refused.err), refused
        submit(s, wish(0))
        refused = submit(s, wish(1), check=False)
        assert refused.code != 0 and "%d different sets of claims" % USER_MOST in words(refused.err), refused
        # The journal knows whose they are, too.
        s.kill()
        s.up()
        s.run("cancel", str(held[1]))  # before the nodes are listed, maybe
        submit(s, two % 1)
        wait_until("there is room", lambda: submit(s, two % 100, check=False).code == 0)


def test_pods_of_one_namespace_hold_half_of_the_masks_at_most():
    with cluster(nodes=1) as (b, s):
        for i in range(NAMESPACE_MOST + 1):
            pod(b, "p%d" % i, nodeSelector={"kind": "k%d" % i})
        wait_until("one says that there are too many", lambda: any(
            "%d kinds" % NAMESPACE_MOST in str(condition(b, "p%d" % i)) and "in this namespace" in str(condition(b, "p%d" % i)) for i in range(NAMESPACE_MOST + 1)))
        for i in range(NAMESPACE_MOST + 1):
            b.call("DELETE", "/api/v1/namespaces/default/pods/p%d" % i)
        pod(b, "then", nodeSelector={"kubernetes.io/hostname": "n0"})
        wait_until("its turn comes", lambda: phase(b, "then") == "Running")


def test_one_user_asks_only_so_often_where_his_pods_could_run():
    with cluster(nodes=1) as (b, s):
        client, said = harness.Client(s.data), []
        plan = {"jobs": [{"command": ["x"], "resources": {"example.com/fpga": i + 1}} for i in range(20)]}

        def is_refused():
            said.append(client.once("POST", "/api/v1/plan", plan))
            return said[-1][0] != 200
        wait_until("a loop is refused", is_refused)
        assert len(said) > 3 and said[-1][0] == 422, said[-1]
        assert "asks too often on which nodes" in str(said[-1][1]) and "try again in" in str(said[-1][1]), said[-1]
        # What asks for nothing of that kind asks the engine nothing, and a submission is none.
        dry = lambda text: s.run("submit", "--dry-run", "-", stdin=text, check=False)
        assert dry("command: x\n").code == 0
        assert submit(s, wish(0), check=False).code == 0
        wait_until("one more may be asked after a while", lambda: dry(wish(7)).code == 0)
