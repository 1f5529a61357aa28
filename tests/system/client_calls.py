# SPDX-License-Identifier: Apache-2.0
"""Calls every route of a daemon with the Python client that was generated from its description (test_python_client.py):
client_calls.py FOLDER-OF-THE-CLIENT ADDRESS TOKEN. Prints a line of JSON: by route what came back."""

import hashlib
import importlib
import io
import json
import sys
import time

sys.path.insert(0, sys.argv[1])
from fairlead_client import AuthenticatedClient, models  # noqa: E402

CLIENT = AuthenticatedClient(base_url=sys.argv[2], token=sys.argv[3], timeout=60)
CALLED = {}


def module(name, folder):
    return importlib.import_module("fairlead_client.api.%s.%s" % (folder, name))


def call(name, folder, *path, refused=False, **more):
    """What the client makes of the answer: an object of the generated class, never a refusal unless one is expected."""
    answer = module(name, folder).sync_detailed(*path, client=CLIENT, **more)
    kind = type(answer.parsed).__name__
    assert (kind == "ErrorReply") == refused, (name, answer.content)
    assert answer.parsed is not None, name
    CALLED[name] = kind
    if hasattr(answer.parsed, "to_dict"):  # from_dict drops what is not described; so all that came must be there again
        assert answer.parsed.to_dict() == json.loads(answer.content), name
    return answer.parsed


def until(test):
    while not test():
        time.sleep(0.05)


def job_of(number):
    return call("job_show", "jobs", str(number))


def submit(**fields):
    return call("job_submit", "jobs", body=models.JobFile.from_dict(fields))


def raw(data):
    from fairlead_client.types import File
    return File(payload=io.BytesIO(data))


def stream_of_events(after):
    """The generated function makes the request; httpx reads the answer as it comes."""
    request = module("event_list", "events")._get_kwargs(after=after)
    with CLIENT.get_httpx_client().stream(**request, headers={"Accept": "text/event-stream"}) as answer:
        for line in answer.iter_lines():
            if line.startswith("data:"):
                CALLED["event_list as a stream"] = "str"
                return json.loads(line[len("data:"):])


def daemon():
    assert call("healthz", "healthz").status == "ok"
    assert "fairlead_" in call("metrics", "metrics")
    assert call("version", "version").api == "v1"
    assert call("whoami", "whoami").by == "token"
    assert call("status", "status").nodes == 2
    assert call("openapi", "openapi")["openapi"] == "3.1.0"
    before = call("policy", "policy")
    call("policy_set", "policy", body=models.PolicySet(grace="3m"))
    assert call("policy", "policy").grace_ms == 180000 != before.grace_ms


def people():
    call("team_set", "teams", "vision", body=models.TeamSet(title="Computer Vision"))
    call("user_set", "users", "vera", body=models.UserSet(team="vision", role="viewer"))
    assert "vision" in [t.name for t in call("team_list", "teams").teams]
    assert "vera" in [u.name for u in call("user_list", "users").users]
    made = call("token_create", "tokens", body=models.TokenCreate(user="vera", expires="1h"))
    assert made.token.startswith("fl_")
    assert made.id in [t.id for t in call("token_list", "tokens").tokens]
    call("token_revoke", "tokens", made.id)
    call("user_remove", "users", "vera")
    call("team_remove", "teams", "vision")
    gone = call("user_remove", "users", "nobody", refused=True)
    assert gone.error.code == "not_found"


def queues():
    call("queue_set", "queues", "night", body=models.QueueSet(guarantee_gpus=2, limit_gpus=4))
    call("budget_set", "queues", "night", body=models.BudgetSet(left="100.00", currency="EUR"))
    call("price_set", "prices", "any", body=models.PriceSet(per_hour="2.10"))
    assert call("price_list", "prices").prices[0].per_hour == "2.100000"
    assert [q.limit_gpus for q in call("queue_list", "queues").queues if q.name == "night"] == [4]
    call("queue_remove", "queues", "night")


def nodes():
    names = [n.name for n in call("node_list", "nodes").nodes]
    assert names == ["node0", "node1"]
    assert call("node_facts", "nodes", "node1").node == "node1"
    for state in ("cordoned", "ready"):
        call("node_state", "nodes", "node1", body=models.NodeState(state=state))
    call("node_marks", "nodes", "node1", body=models.NodeMarks(labels="pool=blue"))
    call("node_maintenance", "nodes", "node1", body=models.NodeMaintenance(from_="12h", for_="1h"))
    call("node_maintenance", "nodes", "node1", body=models.NodeMaintenance(off=True))
    for aside in (True, False):
        call("gpu_set", "nodes", "node1", body=models.GpuSet(set_aside=aside, index=3))
    call("gpu_cut", "nodes", "node1", body=models.GpuCut(slices="3g.40gb,3g.40gb", index=3))
    assert [len(g.slices) for g in call("gpu_list", "gpus", node="node1").gpus] == [0, 0, 0, 2]
    call("gpu_cut", "nodes", "node1", body=models.GpuCut(slices="", index=3))
    call("fabric_set", "fabric", body=models.FabricSet.from_dict({"levels": ["rack"], "nodes": [{"name": "node[0-1]", "rack": "r0"}]}))
    assert call("fabric_show", "fabric").levels[1].level == "rack"
    call("reservation_set", "reservations", "course", body=models.ReservationSet(gpus=2, from_="24h", for_="1h"))
    assert call("reservation_list", "reservations").reservations[0].gpus == 2
    call("reservation_remove", "reservations", "course")
    assert call("defrag_show", "defrag").plans == []
    call("defrag_ask", "defrag", body=models.Empty())


def jobs():
    plan = call("plan", "plan", body=models.PlanRequest.from_dict({"jobs": [{"command": "true", "gpus": 2}]}))
    assert plan.jobs[0].starts_now
    dry = call("job_submit", "jobs", body=models.JobFile(command="true"), dry_run=models.JobSubmitDryRun.VALUE_1)
    assert dry.dry_run and dry.id == 0
    long = submit(name="long", command=["sleep", "1000"], tasks=2, gpus=4)
    waiting = submit(name="waiting", script="echo out; echo err >&2", gpus={"count": 1})
    until(lambda: job_of(long.id).state == "running")
    assert call("job_explain", "jobs", str(waiting.id)).reason == "capacity"
    call("job_priority", "jobs", str(waiting.id), body=models.Priority(priority=7))
    assert call("job_change", "jobs", str(waiting.id), body=models.JobChange.from_dict({"limit": "3h", "deadline": None})).done == 1
    assert call("job_actions", "job_actions", body=models.JobAction(action="hold", jobs=str(waiting.id))).matched == 1
    call("job_hold", "jobs", str(waiting.id), body=models.Reason(reason="not yet"))
    assert job_of(waiting.id).state == "held"
    call("job_release", "jobs", str(waiting.id), body=models.Empty())
    call("job_cancel", "jobs", str(long.id), body=models.Reason(reason="make room"))
    until(lambda: job_of(waiting.id).state == "succeeded")
    assert job_of(waiting.id).attempts[0].tasks[0].code == 0
    assert call("job_logs", "jobs", str(waiting.id), "0") == "out\n"
    assert call("job_logs", "jobs", str(waiting.id), "0", stream="stderr") == "err\n"
    assert call("job_spec", "jobs", str(waiting.id)).script.startswith("echo out")
    assert call("job_history", "jobs", str(waiting.id)).events[0].kind == "job-submitted"
    listed = call("job_list", "jobs", active=models.JobListActive.VALUE_0, total=models.JobListTotal.VALUE_1, sort="-name", limit=1)
    assert listed.total == 2 and listed.jobs[0].id == waiting.id
    follow_of_a_log()
    no_pod = call("pod_show", "pods", "default", "train-0", refused=True)
    assert no_pod.error.message


def follow_of_a_log():
    """The client reads it to its end; httpx also gives it as it comes, from the request that the generated function makes."""
    job = submit(command="echo first; sleep 1000", gpus=0)
    until(lambda: job_of(job.id).state == "running")
    request = module("job_logs", "jobs")._get_kwargs(str(job.id), "0", follow=models.JobLogsFollow.VALUE_1)
    with CLIENT.get_httpx_client().stream(**request) as answer:
        assert next(answer.iter_lines()) == "first"
    CALLED["job_logs as a stream"] = "str"
    call("job_cancel", "jobs", str(job.id), body=models.Reason())
    until(lambda: job_of(job.id).state == "cancelled")


def events():
    page = call("event_list", "events", limit=5)
    assert len(page.events) == 5 and page.next_ == page.events[-1].seq
    assert stream_of_events(page.events[0].seq)


def snapshots():
    content = b"print('\xc3\xa4')\n\x00\xff"
    digest = hashlib.sha256(content).hexdigest()
    tree = b"fairlead-tree 1\nF %d %s main.py\n" % (len(content), digest.encode())
    assert call("snapshot_put", "snapshots", body=raw(tree)).missing == [digest]
    assert call("snapshot_file", "snapshots", digest, body=raw(content)).digest == digest
    kept = call("snapshot_put", "snapshots", body=raw(tree))
    assert kept.missing == [] and kept.id == hashlib.sha256(tree).hexdigest()


for part in (daemon, people, queues, nodes, jobs, events, snapshots):
    part()
print(json.dumps(CALLED))
