# SPDX-License-Identifier: Apache-2.0
"""The account comes from a program that the kubeconfig names, as clouds have them (client-go's credential plugins), on a real API server."""

import datetime
import json
import os
import subprocess

from bed import Bed, wait_until
from cluster import Serve

VERSION = "client.authentication.k8s.io/v1"


class CertificateBed(Bed):
    """That takes client certificates, too."""

    def write_keys(self):
        super().write_keys()

        def openssl(*words):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("ca.key"), "-out", self.path("ca.crt"), "-days", "1",
                "-subj", "/CN=bed-clients")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("client.key"), "-out", self.path("client.csr"),
                "-subj", "/O=system:masters/CN=by-certificate")
        openssl("x509", "-req", "-in", self.path("client.csr"), "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"), "-CAcreateserial",
                "-out", self.path("client.crt"), "-days", "1")

    def start(self, name, *words):
        super().start(name, *words, *(("--client-ca-file", self.path("ca.crt")) if name == "kube-apiserver" else ()))


class Program:
    """Prints what `say` says, and writes a line for each time that it is run."""

    def __init__(self, b):
        self.bed, self.path = b, b.path("get-credential")
        self.say({})
        with open(self.path, "w") as f:
            f.write("""#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" >> %s
test "$WHO" = me && test "$1" = token || exit 9
test -e %s && { cat %s; rm %s; exit 0; }
cat %s
test -e %s && { echo "log in first" >&2; exit 3; }
exit 0
""" % (b.path("runs"), *[b.path("first")] * 3, b.path("says"), b.path("fails")))
        os.chmod(self.path, 0o755)
        self.kubeconfig = b.path("kubeconfig-exec")
        with open(b.kubeconfig) as f:
            config = json.load(f)
        config["users"][0]["user"] = {"exec": {"apiVersion": VERSION, "command": "./get-credential", "args": ["token"], "interactiveMode": "IfAvailable",
                                               "env": [{"name": "WHO", "value": "me"}], "provideClusterInfo": True}}
        with open(self.kubeconfig, "w") as f:
            json.dump(config, f)

    def say(self, status, fails=False):
        with open(self.bed.path("says.new"), "w") as f:
            json.dump({"apiVersion": VERSION, "kind": "ExecCredential", "status": status}, f)
        os.rename(self.bed.path("says.new"), self.bed.path("says"))
        if fails:
            open(self.bed.path("fails"), "w").close()
        elif os.path.exists(self.bed.path("fails")):
            os.unlink(self.bed.path("fails"))

    def runs(self):
        if not os.path.exists(self.bed.path("runs")):
            return []
        with open(self.bed.path("runs")) as f:
            return f.read().splitlines()


def soon(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def up(b, program):
    s = Serve(b, kubeconfig=program.kubeconfig)
    s.up()
    return s


def runs_a_job(s):
    job = s.submit("--", "true")
    s.wait_for(job, "succeeded")


def test_a_token_comes_from_a_program_until_it_expires_or_is_refused():
    b = CertificateBed(("kwok",), os.path.join(os.path.dirname(os.path.abspath(__file__)), "kubelet.yaml"))
    s = None
    try:
        b.start_all()
        b.node("n0")
        program = Program(b)
        # Refused by the API server: the program is run again.
        program.say({"token": "nobody"})
        os.rename(b.path("says"), b.path("first"))
        program.say({"token": b.token})
        s = up(b, program)
        s.wait_for_nodes(1)
        assert len(program.runs()) >= 2
        runs_a_job(s)
        said = json.loads(program.runs()[0])
        assert said["spec"] == {"interactive": False, "cluster": {"server": b.url, "insecure-skip-tls-verify": True}}, said
        # One without an end is kept.
        count = len(program.runs())
        runs_a_job(s)
        assert len(program.runs()) == count
        s.destroy()
        # One that ends is renewed before, and goes on to be used while the program fails.
        program.say({"token": b.token, "expirationTimestamp": soon(20)})
        s = up(b, program)
        s.wait_for_nodes(1)
        program.say({}, fails=True)
        wait_until("it failed, in its own words", lambda: "log in first" in s.log())
        assert "get-credential" in s.log() and "ended with 3" in s.log()
        program.say({"token": b.token})
        wait_until("it is good again", lambda: "gives credentials again" in s.log())
        runs_a_job(s)
        s.destroy()
        # A certificate does it too.
        with open(b.path("client.crt")) as crt, open(b.path("client.key")) as key:
            program.say({"clientCertificateData": crt.read(), "clientKeyData": key.read()})
        s = up(b, program)
        s.wait_for_nodes(1)
        runs_a_job(s)
    except BaseException:
        if s:
            print("the daemon's log:\n" + s.log())
        raise
    finally:
        if s:
            s.destroy()
        b.stop()


def test_a_program_that_is_not_there_is_named():
    b = Bed()
    try:
        b.write_keys()
        program = Program(b)
        os.unlink(program.path)
        s = Serve(b, kubeconfig=program.kubeconfig)
        open(s.data + ".log", "w").close()
        said = s.refuses()
        assert program.path.replace("get-credential", "./get-credential") in " ".join(said.split()) and "can't be run here" in " ".join(said.split()), said
        s.destroy()
    finally:
        b.stop()
