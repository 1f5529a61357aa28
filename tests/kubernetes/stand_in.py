# SPDX-License-Identifier: Apache-2.0
"""A stand-in of ours for kubelets: it runs the commands of pods as processes on this machine, where no kubelet can run.

What a kubelet does, and this does too: a pod that is bound to one of its nodes gets its volumes (emptyDir, Secret, folders of the node), its init containers one
after the other, then its container with its command, variables and secrets; its phase, exit code and message are told to the API server; one
that is being deleted gets SIGTERM, and SIGKILL when its grace is over, and is removed when no finalizer holds it.

What it does not have: images (a command is looked for on this machine), containers (no namespaces: a path in a volume stands for the
folder in which that volume lies, in commands and variables alike), networks (a pod's host name stands for 127.0.0.1, and the port of a gang's
rendezvous for a free one), limits, devices, probes, restarts.

`cut(node)` cuts a node's kubelet off: nothing is told of it any more and nothing heard, and what runs there goes on. The way from its pods to
the daemon is a Wire of its own, which can be cut, too.
"""

import base64
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import traceback
import urllib.parse

import harness
from bed import BUSY, free_port

PODS = "/api/v1/pods"
STRATEGIC = "application/strategic-merge-patch+json"
PROGRAMS = os.path.dirname(harness.SHEPHERD)
RENDEZVOUS = "29500"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Wire:
    """From the pods of a node to the daemon, byte by byte, until it is cut."""

    def __init__(self, port):
        self.to, self.whole, self.ends = ("127.0.0.1", port), True, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def where(self):
        return self.to

    def carry(self, near):
        with near, contextlib.suppress(OSError), socket.create_connection(self.where()) as far:
            self.ends |= {near, far}
            there = threading.Thread(target=self.copy, args=(near, far), daemon=True)
            there.start()
            self.copy(far, near)
            there.join()
            self.ends -= {near, far}

    def copy(self, a, b):
        with contextlib.suppress(OSError):
            while self.whole and (data := a.recv(65536)):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)

    def cut(self):
        self.whole = False
        self.listener.close()
        for end in list(self.ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Pod:
    def __init__(self, kubelet, pod):
        self.kubelet, self.namespace, self.name = kubelet, pod["metadata"]["namespace"], pod["metadata"]["name"]
        self.node, self.uid, self.spec, self.labels = pod["spec"]["nodeName"], pod["metadata"]["uid"], pod["spec"], pod["metadata"].get("labels", {})
        self.folder = tempfile.mkdtemp(prefix="pod-", dir=kubelet.folder)
        self.message = os.path.join(self.folder, "message")
        self.process, self.told, self.kill_at, self.stopping = None, None, None, False
        self.first, self.firsts, self.place = None, None, None  # its init containers: the one that runs, those to come

    def path(self):
        return "/api/v1/namespaces/%s/pods/%s" % (self.namespace, self.name)

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as f:
            return f.read()

    def tell(self, phase, state):
        """Once each; the API server may be away."""
        if self.told == (phase, state):
            return
        container = self.spec["containers"][0]
        status, answer = self.kubelet.bed.call("PATCH", self.path() + "/status", {"metadata": {"uid": self.uid}, "status": {
            "phase": phase, "startTime": now(), "containerStatuses": [{
                "name": container["name"], "image": container["image"], "imageID": "", "ready": "running" in state, "restartCount": 0,
                "state": state}]}}, STRATEGIC)
        if status in BUSY:
            return  # the next look tells it
        assert status in (200, 404, 409), answer
        self.told = (phase, state)

    def volumes(self):
        """Folders by name; false when a Secret is not there yet."""
        found = {}
        for volume in self.spec.get("volumes", []):
            folder = os.path.join(self.folder, volume["name"])
            os.makedirs(folder, exist_ok=True)
            found[volume["name"]] = volume["hostPath"]["path"] if "hostPath" in volume else folder
            if "secret" in volume:
                secret = self.secret(volume["secret"]["secretName"])
                if secret is None:
                    return None
                for item in volume["secret"]["items"]:
                    with open(os.path.join(folder, item["path"]), "w") as f:
                        f.write(secret[item["key"]])
                    os.chmod(f.name, 0o755)
        return found

    def secret(self, name):
        status, answer = self.kubelet.bed.call("GET", "/api/v1/namespaces/%s/secrets/%s" % (self.namespace, name))
        return {k: base64.b64decode(v).decode() for k, v in answer.get("data", {}).items()} if status == 200 else None

    def here(self, text, container, volumes):
        """A text of the pod in the words of this machine."""
        text = text.replace("$$", "$")
        places = {mount["mountPath"]: volumes[mount["name"]] for mount in container.get("volumeMounts", []) if mount["name"] != "shm"}
        if places:
            text = re.sub(r"(?<![\w.-])(%s)(?![\w.-])" % "|".join(map(re.escape, places)), lambda found: places[found[1]], text)
        text = re.sub(r"rank-[0-9]+(?:-[0-9]+)?\.fairlead-[0-9a-f]+-[0-9]+-[0-9]+", "127.0.0.1", text)
        if self.kubelet.daemon and text == self.kubelet.daemon:
            return self.kubelet.wire(self.node).address
        return text.replace("/dev/termination-log", self.message)

    def variables(self, container, volumes):
        """None while a Secret is not there yet."""
        env = {"PATH": PROGRAMS + ":" + os.environ["PATH"], "HOME": "/"}
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {})
            if "secretKeyRef" in source:
                secret = self.secret(source["secretKeyRef"]["name"])
                if secret is None:
                    return None
                env[variable["name"]] = secret[source["secretKeyRef"]["key"]]
            elif "fieldRef" in source:
                env[variable["name"]] = self.node
            else:
                env[variable["name"]] = self.here(variable.get("value", ""), container, volumes)
        env.update(self.kubelet.more_env)
        if env.get("MASTER_PORT") == RENDEZVOUS:
            env["MASTER_PORT"] = str(self.kubelet.port(self.labels.get("fairlead.dev/attempt")))
        return env

    def begin(self, container, volumes, env, log):
        words = [self.here(word, container, volumes) for word in container["command"] + container.get("args", [])]
        program = words[0] if "/" in words[0] else shutil.which(words[0], path=env["PATH"]) or words[0]
        cwd = self.here(container.get("workingDir", self.folder), container, volumes)
        return subprocess.Popen([program, *words[1:]], env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def start(self):
        container = self.spec["containers"][0]
        if not self.place:
            volumes = self.volumes()
            env = None if volumes is None else self.variables(container, volumes)
            if env is None:
                return
            self.place, self.firsts = (volumes, env), list(self.spec.get("initContainers", []))
        volumes, env = self.place
        code = self.first.poll() if self.first else 0
        if code:
            return self.failed_first(code)
        if code is None:
            return
        with open(os.path.join(self.folder, "log"), "ab") as log:
            if self.firsts:
                first = self.firsts.pop(0)
                self.first_name = first["name"]
                self.first = self.begin(first, volumes, self.variables(first, volumes), log)
            else:
                self.process, self.first = self.begin(container, volumes, env, log), None

    def failed_first(self, code):
        """An init container did not do it: the others never begin."""
        if self.told:
            return
        told = re.sub("^.* error: ", "", (self.log().strip().splitlines() or [""])[-1])
        container = self.spec["containers"][0]
        status, answer = self.kubelet.bed.call("PATCH", self.path() + "/status", {"metadata": {"uid": self.uid}, "status": {
            "phase": "Failed", "startTime": now(),
            "initContainerStatuses": [{"name": self.first_name, "image": "none", "imageID": "", "ready": False, "restartCount": 0, "state": {
                "terminated": {"exitCode": code if code >= 0 else 128 - code, "reason": "Error", "message": told, "startedAt": now(),
                               "finishedAt": now()}}}],
            "containerStatuses": [{"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0,
                                   "state": {"waiting": {"reason": "PodInitializing"}}}]}}, STRATEGIC)
        if status in BUSY:
            return
        assert status in (200, 404, 409), answer
        self.told = ("Failed", {"terminated": {}})

    def stop(self, grace_s):
        if not self.stopping and (self.process or self.first):
            (self.process or self.first).send_signal(signal.SIGTERM)
        self.stopping = True
        kill_at = time.monotonic() + grace_s
        self.kill_at = kill_at if self.kill_at is None else min(kill_at, self.kill_at)

    def look(self, pod):
        """What there is to do; pod: as the API server has it."""
        if not self.process and not self.stopping:
            self.start()
        if "deletionTimestamp" in pod["metadata"] and not self.stopping:
            self.stop(pod["metadata"].get("deletionGracePeriodSeconds", 30))
        if self.kill_at and time.monotonic() > self.kill_at:
            self.kill()
        runs = self.process or self.first
        code = runs.poll() if runs and (self.process or self.stopping) else 137 if self.stopping or self.told else None
        if code is None:
            if self.process:
                self.tell("Running", {"running": {"startedAt": now()}} if not self.told else self.told[1])
            return
        if not self.told or "terminated" not in self.told[1]:
            message = ""
            if os.path.exists(self.message):
                with open(self.message) as f:
                    message = f.read()
            code = code if code >= 0 else 128 - code
            self.tell("Failed" if code else "Succeeded", {"terminated": {
                "exitCode": code, "reason": "Error" if code else "Completed", "message": message, "startedAt": now(), "finishedAt": now()}})
        if "deletionTimestamp" in pod["metadata"] and not pod["metadata"].get("finalizers"):
            self.kubelet.bed.call("DELETE", self.path(), {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}})

    def kill(self):
        """All of it: what a kubelet's end of a container's namespace does."""
        runs = self.process or self.first
        seen, left = set(), [runs.pid] if runs and runs.poll() is None else []
        while left:
            pid = left.pop()
            if pid not in seen:
                seen.add(pid)
                try:
                    for task in os.listdir("/proc/%d/task" % pid):
                        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                            left += map(int, f.read().split())
                except OSError:
                    continue
        for pid in seen:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class StandIn:
    """`with StandIn(bed, "n0", "n1"):` makes these nodes, and plays their kubelets until the end of the block."""

    def __init__(self, b, *nodes, gpus=8, daemon=None):
        """daemon: the address at which pods are told to reach it."""
        self.daemon, self.wires = daemon, {}
        self.more_env = {}  # of every container that begins from now on
        self.bed, self.nodes, self.folder = b, set(nodes), tempfile.mkdtemp(prefix="fairlead-test-", dir=harness.TMP)
        self.pods, self.ports, self.cut_off = {}, {}, set()
        self.ended, self.problem = threading.Event(), None
        self.lock = threading.RLock()
        for node in nodes:
            b.node(node, gpus=gpus)
            self.ready(node, "True")

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.ended.set()
        self.thread.join()
        for wire in self.wires.values():
            wire.cut()
        for pod in self.pods.values():
            if kind:
                print("--- %s on %s:\n%s" % (pod.name, pod.node, pod.log() if pod.place else "(not begun)"))
            pod.kill()
            for process in (pod.process, pod.first):
                if process:
                    process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert kind or not self.problem, self.problem

    def ready(self, node, status):
        code, answer = self.bed.call("PATCH", "/api/v1/nodes/%s/status" % node, {"status": {"conditions": [
            {"type": "Ready", "status": status, "reason": "StandIn", "message": ""}]}}, STRATEGIC)
        assert code == 200, answer

    def cut(self, node):
        """As when its network is gone: after a while the cluster finds it not ready."""
        with self.lock:
            self.cut_off.add(node)
        self.ready(node, "Unknown")

    def wire(self, node):
        if node not in self.wires:
            self.wires[node] = Wire(int(self.daemon.rsplit(":", 1)[1]))
        return self.wires[node]

    def port(self, attempt):
        return self.ports.setdefault(attempt, free_port())

    def run(self):
        try:
            while not self.ended.wait(0.1):
                self.turn()
        except Exception as e:  # told by the test's own thread
            self.problem = e
            traceback.print_exc()

    def turn(self):
        status, listed = self.bed.call("GET", PODS + "?fieldSelector=" + urllib.parse.quote("spec.nodeName!="))
        if status != 200:
            return
        with self.lock:
            for pod in listed["items"]:
                uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
                if node not in self.nodes or node in self.cut_off:
                    continue
                if uid not in self.pods and pod["status"]["phase"] in ("Failed", "Succeeded"):
                    continue
                if uid not in self.pods:
                    self.pods[uid] = Pod(self, pod)
                self.pods[uid].look(pod)
            there = {pod["metadata"]["uid"] for pod in listed["items"]}
            for uid, pod in self.pods.items():
                if uid not in there and pod.node not in self.cut_off:
                    pod.kill()  # it was deleted by force

    def of(self, name):
        return next((p for p in self.pods.values() if p.name == name), None)
