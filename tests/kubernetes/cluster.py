# SPDX-License-Identifier: Apache-2.0
"""Fairlead on a cluster of bed.py: `fairlead serve --engine kubernetes`, with pods that kubelet.yaml plays."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import harness
from bed import bed, wait_until
from proxy import Proxy

PODS = "/api/v1/namespaces/default/pods"


class Serve:
    """The daemon, outside the cluster, with the bed's kubeconfig."""

    def __init__(self, b, *words, kubeconfig=None, image="none"):
        self.bed, self.words = b, (*words, *(("--image", image) if image else ()))
        self.kubeconfig = kubeconfig or b.kubeconfig
        self.data = tempfile.mkdtemp(prefix="fairlead-test-", dir=harness.TMP)
        self.env = dict(os.environ, FAIRLEAD_DATA=self.data, NO_COLOR="1", FAIRLEAD_GIT="no")
        self.process = None

    def command(self, *more):
        return ["setpriv", "--pdeathsig", "KILL", harness.PROGRAM, "serve", "--engine", "kubernetes", "--kubeconfig", self.kubeconfig,
                *self.words, *more]

    def refuses(self, *more, program=None):
        """What it says instead of starting."""
        done = subprocess.run(program or self.command(*more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.env, text=True, timeout=harness.PATIENCE_S)
        assert done.returncode, done.stdout
        return done.stderr

    def up(self, *more):
        words = self.command(*more)
        with open(self.data + ".log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=self.env, text=True,
                                            start_new_session=True)
        greeting = self.process.stdout.readline()
        assert greeting, "the daemon did not start:\n" + self.log()
        return self

    def log(self):
        with open(self.data + ".log", errors="replace") as f:
            return f.read()[-6000:]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=harness.PATIENCE_S)
        self.process.stdout.close()
        return code

    def destroy(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.data)
        os.unlink(self.data + ".log")

    def run(self, *words, check=True, stdin=None):
        done = subprocess.run([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=stdin, text=True, env=self.env,
                              timeout=harness.PATIENCE_S)
        result = harness.Result(done.returncode, done.stdout, done.stderr)
        assert not check or result.code == 0, "fairlead %s: %r\n%s" % (" ".join(words), result, self.log())
        return result

    def ask(self, *words):
        return json.loads(self.run(*words, "-o", "json").out)

    def submit(self, *words):
        return json.loads(self.run("run", "-d", "-o", "json", *words).out)["id"]

    def state(self, job):
        return harness.state_of_job(self.data, job)

    def attempt(self, job):
        return harness.Client(self.data).get("/api/v1/jobs/%d" % job)["attempts"][-1]["attempt"]

    def pod(self, job, rank):
        """The name of that of the newest attempt, which is made a moment after the attempt."""
        pods = []

        def made():
            labels = "fairlead.dev/job=%d,fairlead.dev/attempt=%d,fairlead.dev/rank=%d" % (job, self.attempt(job), rank)
            pods[:] = self.bed.get(PODS + "?labelSelector=" + urllib.parse.quote(labels))["items"]
            return len(pods) == 1
        wait_until("rank %d of job %d has a pod" % (rank, job), made)
        return pods[0]["metadata"]["name"]

    def wait_for(self, job, *states):
        wait_until("job %d is %s, and is %s" % (job, " or ".join(states), self.state(job)), lambda: self.state(job) in states)

    def wait_for_nodes(self, count):
        wait_until("%d nodes are ready" % count, lambda: sum(n["state"] == "ready" for n in self.ask("nodes")) == count)

    def pods(self):
        """Of Fairlead's jobs, by name."""
        return {p["metadata"]["name"]: p for p in self.bed.get(PODS + "?labelSelector=fairlead.dev%2Fjob")["items"]}


@contextlib.contextmanager
def cluster(nodes=2, gpus=8, parts=("kwok",), words=(), through=False, labels=None, server=(), image="none"):
    """A cluster with ready nodes n0, n1 ... and a daemon that knows them. through: a proxy stands between (`s.proxy`)."""
    with bed(*parts, pod_stages=os.path.join(os.path.dirname(os.path.abspath(__file__)), "kubelet.yaml"), server=server) as b:
        for i in range(nodes):
            b.node("n%d" % i, gpus=gpus, **(labels or {}))
        proxy = Proxy(b) if through else None
        s = Serve(b, *words, kubeconfig=proxy.kubeconfig if proxy else None, image=image)
        s.proxy = proxy
        try:
            s.up()
            s.wait_for_nodes(nodes)
            yield b, s
        except BaseException:
            print("the daemon's log:\n" + s.log())
            raise
        finally:
            s.destroy()
            if proxy:
                proxy.stop()
