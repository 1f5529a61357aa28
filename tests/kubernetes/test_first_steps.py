# SPDX-License-Identifier: Apache-2.0
"""What people do first, and what they do wrong then: each is told what it was, where, and how to mend it."""

import json
import shutil
import subprocess

import harness
from bed import bed, free_port, wait_until
from cluster import Serve, cluster
from stand_in import StandIn


def told(text):
    """Of a table that is passed on, where blanks in a field are underscores."""
    return " ".join(text.replace("_", " ").split())


def test_a_working_folder_need_be_in_the_image_alone():
    with cluster(nodes=1) as (b, s):
        job = s.submit("--workdir", "/no/such/folder", "--", "sleep")
        s.wait_for(job, "running")
        (pod,) = s.pods().values()
        assert pod["spec"]["containers"][0]["workingDir"] == "/no/such/folder"


def test_a_dry_run_refuses_what_a_submission_refuses():
    with cluster(nodes=1) as (b, s):
        for text, why in (("tasks: 1..2\n", "write resize: restart"), ("checkpoint: signal\n", "--pod-listen"),
                          ("snapshot: %s\n" % ("0" * 64), "--pod-listen")):
            for words in ((), ("--dry-run",)):
                done = s.run("submit", *words, "-", stdin="command: x\n" + text, check=False)
                assert done.code and why in done.err, (words, text, done)
        assert s.ask("jobs", "--all") == []


def test_a_job_without_an_image_is_refused_where_the_daemon_has_none():
    with cluster(nodes=1, image=None) as (b, s):
        for words in ((), ("--dry-run",)):
            done = s.run("run", *words, "--", "true", check=False)
            assert done.code == 2 and "the job names no image" in done.err, done
        s.wait_for(s.submit("--image", "here", "--", "true"), "running", "succeeded")


def test_what_keeps_a_job_and_where_it_runs_is_said():
    with cluster(nodes=2) as (b, s):
        # A dry run knows it before; so it does of a resource that is misspelt.
        for text, meant in (("volumes: {imagenet: /data}", 'the volume claim "imagenet" is not there'),
                            ("resources: {rdma/hca: 1}", 'no node has the resource "rdma/hca"'),
                            ("volumes: {imagenet: /data}\ntasks: 2", 'the volume claim "imagenet" is not there')):
            dry = json.loads(s.run("submit", "--dry-run", "-", "-o", "json", stdin="command: sleep\n%s\n" % text).out)
            assert not dry["starts_now"] and dry["why"]["summary"] == "may run on none of the 2 nodes: " + meant, dry
        assert json.loads(s.run("submit", "--dry-run", "-", "-o", "json", stdin="command: sleep\n").out)["starts_now"]
        job = json.loads(s.run("submit", "-", "-o", "json", stdin="command: sleep\nvolumes: {imagenet: /data}\n").out)["id"]
        wait_until("it is known that it can't run", lambda: s.ask("explain", str(job))["reason"] == "node_class")
        why = s.ask("explain", str(job))["summary"]
        assert why == 'may run on none of the 2 nodes: the volume claim "imagenet" is not there', why
        gang = s.submit("-t", "2", "-g", "8", "--", "sleep")
        s.wait_for(gang, "running")
        why = s.ask("explain", str(gang))["summary"]
        assert why == "it has its place on n0, n1 and does not wait (running)", why
        s.run("cancel", str(gang))
        s.wait_for(gang, "cancelled")
        b.pod("other", gpus=6, nodeName="n0")
        wait_until("the pod of another is named once", lambda: "GPUs 2 to 7 taken: pod default/other (default-scheduler)" in told(s.run("nodes").out))
        for words, meant in (("nodes uncordon n0", "ready"), ("uncordon n0", "nodes ready"), ("what-if", "plan what-if")):
            assert 'did you mean "%s"?' % meant in s.run(*words.split(), check=False).err


def test_what_ends_the_wait_for_a_node_that_is_gone_is_said():
    with bed() as b, StandIn(b, "n0") as kubelets:
        s = Serve(b)
        try:
            s.up()
            s.wait_for_nodes(1)
            job = s.submit("--workdir", "/", "--", "sleep", "1000")
            s.wait_for(job, "running")
            kubelets.cut("n0")
            s.wait_for(job, "unreachable")
            why = s.ask("explain", str(job))["summary"]
            assert "n0 is not ready" in why and "kubectl delete node" in why and "kubectl annotate pod POD -n " in why, why
            kubelets.cut_off.clear()
            kubelets.ready("n0", "True")
            s.wait_for(job, "running")
        finally:
            s.destroy()


def test_checkpoints_that_go_with_the_pod_are_named_when_they_are_submitted():
    with cluster(nodes=1, words=("--pod-listen", "127.0.0.1:%d" % free_port(), "--shepherd-image", "here")) as (b, s):
        said = lambda text: " ".join(s.run("submit", "--dry-run", "-", stdin="command: x\n" + text).out.split())
        lost = {"checkpoint: signal\n": "It names no checkpoint.path",
                "checkpoint: {path: /ckpt/a}\n": "checkpoint.path /ckpt/a is on none of its volumes",
                "checkpoint: {path: /ckpt/a}\nvolumes: {data: /ckpt2}\n": "is on none of its volumes",
                "checkpoint: {path: /ckpt/a}\nvolumes: {data: /ckpt, tmp: {empty: true, path: /ckpt/a}}\n": "is on the volume tmp, which keeps nothing",
                "checkpoint: {path: /ckpt}\nvolumes: {data: {claim: d, path: /ckpt, read_only: true}}\n": "is on the volume data, which keeps nothing"}
        for text, why in lost.items():
            assert why in said(text), (text, said(text))
        mounted = "kubernetes: {spec: {containers: [{name: main, volumeMounts: [{name: v, mountPath: /ckpt}]}]}}\n"
        for text in ("volumes: {data: /ckpt}\n", "volumes: {data: {claim: d, path: /ckpt/a}}\n", mounted):
            assert "checkpoint.path" not in said("checkpoint: {path: /ckpt/a}\n" + text), text


def test_a_cluster_without_nodes_or_without_the_namespace():
    with bed() as b:
        s = Serve(b)
        try:
            said = s.refuses("--namespace", "nowhere")
            assert 'no namespace "nowhere"' in said and "kubectl create namespace nowhere" in said, said
            s.up()
            wait_until("it has seen the cluster", lambda: "being listed" not in s.run("doctor", check=False).out)
            said = s.run("run", "-d", "--", "true").out
            assert "this cluster has no nodes" in said, said
        finally:
            s.destroy()


def test_who_printed_nothing_is_not_sent_to_a_stream_that_pods_lack():
    with cluster(nodes=1) as (b, s):
        job = s.submit("--", "sleep")
        s.wait_for(job, "running")
        assert "leave out --stderr" in s.run("logs", str(job), "--stderr", check=False).err


def test_one_that_can_not_reach_its_cluster_says_so_and_can_be_ended():
    with bed() as b:
        with open(b.kubeconfig) as f:
            config = json.load(f)
        config["users"][0]["user"]["token"] = "wrong"
        with open(b.path("wrong"), "w") as f:
            json.dump(config, f)
        s = Serve(b, kubeconfig=b.path("wrong"))
        waits = subprocess.Popen(s.command("--detach")[3:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s.env,
                                 text=True)
        try:
            said = waits.stderr.readline()
            assert "not up yet" in said and "it does not know this account (401)" in said, said
            assert "has ended" in s.run("down").out
            assert waits.wait(timeout=harness.PATIENCE_S) != 0
            assert "No daemon runs" in s.run("down").out
        finally:
            s.run("down")
            waits.kill()
            waits.communicate()
        config["clusters"][0]["cluster"]["server"] = b.url.replace("https", "http")
        with open(b.path("http"), "w") as f:
            json.dump(config, f)
        s.kubeconfig = b.path("http")
        said = s.refuses()
        assert "Client sent an HTTP request to an HTTPS server" in said, said
        s.env["KUBECONFIG"] = "%s:/nowhere" % b.kubeconfig
        said = s.refuses(program=[harness.PROGRAM, "serve", "-d", "--engine", "kubernetes"])
        assert "KUBECONFIG names several files" in said, said
        said = s.refuses("-d", "--context", "other")
        assert "http:1:1: contexts has no \"other\"; it has bed" in " ".join(said.split()), said
        shutil.rmtree(s.data)
