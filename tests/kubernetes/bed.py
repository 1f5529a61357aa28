# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster on loopback for one test: real etcd, API server, controller manager and, where asked for, stock scheduler, with nodes
and pods played by kwok. Everything lies in one folder and ends with the block."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))

from ports import free_port

PATIENCE_S = 180
BUSY = (429, 500, 503, 504)  # what an API server answers that has no time: a read may be asked again


def programs():
    """The folder with etcd and the others; builds them when they are not there."""
    made = subprocess.run([os.path.join(TOP, "scripts/kubernetes-bed")], stdout=subprocess.PIPE, text=True, check=True)
    return made.stdout.strip()


def wait_until(what, holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "not in %d s: %s" % (PATIENCE_S, what)
        time.sleep(0.05)


class Bed:
    """parts: which of "controller-manager", "scheduler" and "kwok" run beside etcd and the API server. pod_stages: a file with stages for pods
    in place of kwok's own, which let each pod run for ever and forget finalizers when it is deleted. server: further words for the API server."""

    def __init__(self, parts=(), pod_stages=None, server=()):
        self.programs = programs()
        self.folder = tempfile.mkdtemp(prefix="fairlead-bed-", dir="/dev/shm")
        self.running = []
        self.parts, self.pod_stages, self.server = parts, pod_stages, server
        self.port = free_port()
        self.token = secrets.token_hex(16)
        self.url = "https://127.0.0.1:%d" % self.port
        self.tls = ssl._create_unverified_context()  # the server's certificate is its own

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, name, *words):
        with open(self.path(name + ".log"), "ab") as log:
            self.running.append((name, subprocess.Popen([os.path.join(self.programs, name), *words], stdin=subprocess.DEVNULL,
                                                        stdout=log, stderr=log, cwd=self.folder)))

    def log(self, name):
        with open(self.path(name + ".log"), errors="replace") as f:
            return f.read()

    def write_keys(self):
        def openssl(*words):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        openssl("genrsa", "-out", self.path("sa.key"), "2048")
        openssl("rsa", "-in", self.path("sa.key"), "-pubout", "-out", self.path("sa.pub"))
        with open(self.path("tokens.csv"), "w") as f:
            f.write('%s,admin,admin,"system:masters"\n' % self.token)
        self.kubeconfig = self.path("kubeconfig")
        with open(self.kubeconfig, "w") as f:  # JSON is YAML
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "bed",
                       "clusters": [{"name": "bed", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
                       "users": [{"name": "admin", "user": {"token": self.token}}],
                       "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}]}, f)

    def start_all(self):
        etcd = "http://127.0.0.1:%d" % free_port()
        self.write_keys()
        self.start("etcd", "--data-dir", self.path("etcd"), "--listen-peer-urls", "http://127.0.0.1:0", "--listen-client-urls", etcd,
                   "--advertise-client-urls", etcd, "--unsafe-no-fsync=true")
        self.start("kube-apiserver", "--etcd-servers", etcd, "--secure-port", str(self.port), "--bind-address", "127.0.0.1",
                   "--cert-dir", self.path("certs"), "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
                   "--allow-privileged=true", "--disable-admission-plugins", "ServiceAccount",
                   "--service-account-issuer", self.url + "/", "--service-account-key-file", self.path("sa.pub"),
                   "--service-account-signing-key-file", self.path("sa.key"), "--token-auth-file", self.path("tokens.csv"), *self.server)
        wait_until("the API server is ready", self.is_ready)
        if "controller-manager" in self.parts:
            self.start("kube-controller-manager", "--kubeconfig", self.kubeconfig, "--leader-elect=false", "--secure-port", str(free_port()),
                       "--bind-address", "127.0.0.1", "--cert-dir", self.path("manager-certs"),
                       "--service-account-private-key-file", self.path("sa.key"))
        if "scheduler" in self.parts:
            self.start("kube-scheduler", "--kubeconfig", self.kubeconfig, "--leader-elect=false", "--secure-port", str(free_port()),
                       "--bind-address", "127.0.0.1", "--cert-dir", self.path("scheduler-certs"))
        if "kwok" in self.parts:
            self.start("kwok", "--kubeconfig", self.kubeconfig, "--manage-all-nodes", "--config", self.stages(),
                       "--server-address", "127.0.0.1:%d" % free_port())

    def stages(self):
        usual = os.path.join(self.programs, "stages.yaml")
        if not self.pod_stages:
            return usual
        with open(usual) as f:
            kept = [part for part in f.read().split("\n---\n") if "kind: Node" in part]
        with open(self.pod_stages) as f, open(self.path("stages.yaml"), "w") as to:
            to.write("\n---\n".join(kept + [f.read()]))
        return self.path("stages.yaml")

    def is_ready(self):
        for name, process in self.running:
            assert process.poll() is None, "%s ended:\n%s" % (name, self.log(name)[-4000:])
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def call(self, method, path, body=None, kind="application/json"):
        """Status and answer; JSON where it is JSON."""
        request = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer " + self.token, "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=PATIENCE_S) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            status, text = e.code, e.read().decode()
        return status, json.loads(text) if text.startswith("{") else text

    def get(self, path):
        end = time.monotonic() + PATIENCE_S
        status, answer = self.call("GET", path)
        while status in BUSY and time.monotonic() < end:
            time.sleep(0.2)
            status, answer = self.call("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def make(self, path, body):
        status, answer = self.call("POST", path, body)
        assert status == 201, (path, status, answer)
        return answer

    def node(self, name, gpus=8, **labels):
        room = {"cpu": "64", "memory": "512Gi", "pods": "256", "nvidia.com/gpu": str(gpus)}
        self.make("/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels},
                                                 "annotations": {"kwok.x-k8s.io/node": "fake"}},
                                    "status": {"capacity": room, "allocatable": room}})

    def pod(self, name, gpus=1, scheduler="default-scheduler", **spec):
        return self.make("/api/v1/namespaces/default/pods", {
            "metadata": {"name": name},
            "spec": {"schedulerName": scheduler, "automountServiceAccountToken": False, **spec,
                     "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})

    def stop(self):
        for _, process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def bed(*parts, pod_stages=None, server=()):
    b = Bed(parts, pod_stages, server)
    try:
        b.start_all()
        yield b
    finally:
        b.stop()
