#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon out of the unpacked image, as the account of its manifest, in the image's own root folder, on a real API server:
scripts/campaign-image. Argument: the image's root folder."""

import os
import subprocess
import sys
import tempfile

import yaml

from bed import TOP, bed, wait_until

root = sys.argv[1]
with open(os.path.join(TOP, "deploy/kubernetes/trying-out.yaml")) as f:
    pod = next(m for m in yaml.safe_load_all(f) if m["kind"] == "StatefulSet")["spec"]["template"]["spec"]
account = str(pod["securityContext"]["runAsUser"])
container = pod["containers"][0]
env = {"PATH": "/usr/bin:/bin", **{e["name"]: e["value"] for e in container["env"]}}
writable = [m["mountPath"] for m in container["volumeMounts"]]


def inside(*words, **more):
    """The words with the image as root folder, without rights, and with nothing writable but the volumes."""
    mounts = " && ".join(["mount --bind --make-private %s %s" % (root, root), "mount -o remount,ro,bind %s" % root, "mount -t proc none %s/proc" % root,
                          *("mount -t tmpfs -o mode=0777 none %s%s" % (root, m) for m in writable if m != "/var/lib/fairlead"),
                          "mount --bind %s %s/var/lib/fairlead" % (data, root), "mount --bind -o ro %s %s/run" % (keys, root)])
    return ["unshare", "--mount", "sh", "-c", mounts + ' && exec setpriv --pdeathsig KILL /usr/sbin/chroot --userspec=%s:%s %s "$@"' % (account, account, root), "sh",
            *words]


with bed("kwok") as b, tempfile.TemporaryDirectory(dir="/dev/shm") as data, tempfile.TemporaryDirectory(dir="/dev/shm") as keys:
    b.node("n0")
    for name in ("fairlead-jobs",):
        b.make("/api/v1/namespaces", {"metadata": {"name": name}})
    os.chmod(data, 0o777)
    os.chmod(keys, 0o755)
    with open(b.kubeconfig) as f, open(keys + "/kubeconfig", "w") as to:
        to.write(f.read())
    words = [w for w in container["command"] if not w.startswith("--pod-address=")]
    shepherd = subprocess.run(inside("fairlead-pod-shepherd", "install", "/tmp/shepherd"), env=env, capture_output=True, text=True)
    assert shepherd.returncode == 0, shepherd.stderr
    daemon = subprocess.Popen(inside(*words, "--pod-address", "127.0.0.1:7071", "--kubeconfig", "/run/kubeconfig", "--image", "none"), env=env, stdout=subprocess.PIPE, text=True)

    def ask(*words):
        return subprocess.run(inside("fairlead", *words), env=env, capture_output=True, text=True)

    try:
        print(daemon.stdout.readline().strip())
        probe = container["readinessProbe"]["exec"]["command"]
        wait_until("the probe is content", lambda: subprocess.run(inside(*probe), env=env, capture_output=True).returncode == 0)
        wait_until("the node is known", lambda: "n0" in ask("nodes").stdout)
        print(ask("run", "-d", "-g", "1", "--", "true").stdout.strip())
        path = "/api/v1/namespaces/fairlead-jobs/pods"
        wait_until("its pod is bound", lambda: [p for p in b.get(path)["items"] if p["spec"].get("nodeName") == "n0"])
        print(ask("version").stdout.strip(), "· the image works")
    finally:
        daemon.terminate()
        daemon.wait(30)
