# SPDX-License-Identifier: Apache-2.0
"""Who looks at pods past whatever stands between Fairlead and the API server, and an account that changes them."""

import collections
import http.client
import json
import threading
import time

from bed import BUSY


def holds(pod):
    """Whether it has its GPUs."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


class Witness:
    """Follows all pods. Notes as a problem: a pod that is bound twice, more GPUs of a node than it has, two pods of one rank that may run.
    gone: nodes of which the test knows that nothing runs there."""

    def __init__(self, b, gpus):
        self.bed, self.gpus, self.problems, self.stop, self.pods, self.seen = b, gpus, [], False, {}, 0
        self.bound, self.gone = {}, set()
        self.on = collections.defaultdict(dict)  # of a node: those of its pods that hold GPUs there, by uid
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        listed = self.bed.get("/api/v1/pods")
        version = listed["metadata"]["resourceVersion"]
        while not self.stop:
            connection = http.client.HTTPSConnection("127.0.0.1", self.bed.port, context=self.bed.tls, timeout=5)
            try:
                connection.request("GET", "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=" + version,
                                   headers={"Authorization": "Bearer " + self.bed.token})
                answer = connection.getresponse()
                if answer.status in BUSY:
                    time.sleep(0.2)
                    continue
                if answer.status != 200:
                    self.problems.append("the witness lost its watch: %s" % answer.read())
                    return
                while not self.stop:
                    line = answer.readline()
                    if not line:
                        break
                    change = json.loads(line)
                    if change["type"] == "ERROR":
                        self.problems.append("the witness lost its watch: %s" % change)
                        return
                    version = change["object"]["metadata"]["resourceVersion"]
                    if change["type"] != "BOOKMARK":
                        self.saw(change["type"], change["object"])
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)  # then it goes on where it was
            finally:
                connection.close()

    def holds(self, pod):
        return holds(pod) and pod["spec"]["nodeName"] not in self.gone

    def saw(self, kind, pod):
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        self.seen += 1
        if node:
            if self.bound.setdefault(uid, node) != node:
                self.problems.append("pod %s was bound to %s and to %s" % (pod["metadata"]["name"], self.bound[uid], node))
        if kind == "DELETED":
            self.pods.pop(uid, None)
            self.bound.pop(uid, None)
        else:
            self.pods[uid] = pod
        if not node:
            return
        if kind == "DELETED" or not self.holds(pod):
            self.on[node].pop(uid, None)
            return
        self.on[node][uid] = pod
        here = [p for p in self.on[node].values() if self.holds(p)]
        taken = sum(int(p["spec"]["containers"][0]["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for p in here)
        if taken > self.gpus:
            self.problems.append("%d GPUs of node %s are given at once: %s" % (taken, node, sorted(p["metadata"]["name"] for p in here)))
        labels = pod["metadata"].get("labels", {})
        if "fairlead.dev/job" in labels:
            same = [p["metadata"]["name"] for pods in self.on.values() for p in pods.values() if self.holds(p) and all(
                p["metadata"].get("labels", {}).get(k) == labels.get(k) for k in ("fairlead.dev/instance", "fairlead.dev/job", "fairlead.dev/rank"))]
            if len(same) > 1:
                self.problems.append("a rank has more than one pod that runs: %s" % same)

    def end(self):
        self.stop = True
        self.thread.join()


class Api:
    """The API server past the proxy, on a connection that stays."""

    def __init__(self, b):
        self.bed, self.connection = b, None

    def call(self, method, path, body=None, kind="application/json", tries=100):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.bed.port, context=self.bed.tls, timeout=60)
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body),
                                    {"Authorization": "Bearer " + self.bed.token, "Content-Type": kind})
            answer = self.connection.getresponse()
            status, text = answer.status, answer.read()
            if status not in BUSY or tries == 0:
                return status, json.loads(text)
            time.sleep(0.2)
            return self.call(method, path, body, kind, tries - 1)
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            if tries == 0:
                raise
            return self.call(method, path, body, kind, tries - 1)
