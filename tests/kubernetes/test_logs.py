# SPDX-License-Identifier: Apache-2.0
"""`fairlead logs` of pods: the API server asks the node's kubelet, which a stand-in of the test's plays."""

import http.server
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import harness
from bed import wait_until
from cluster import PODS, cluster
from test_pods import jobs, phase, pod


class Kubelet(http.server.BaseHTTPRequestHandler):
    """GET /containerLogs/NAMESPACE/POD/CONTAINER"""

    said = {}  # by pod
    lines = {}  # by pod: those that come with their times, one after the other; None = the container has ended
    unknown = set()  # pods that were asked for and are in none of these
    starting = set()  # pods whose container does not run yet
    asked, cut = [], 0  # cut: so many connections are closed in the midst of a line

    def timed(self, pod, query):
        """As a kubelet: times in front, from the second on that is asked for; followed, until the container has ended."""
        Kubelet.asked.append(query)
        follows, since, at = query.get("follow") == ["true"], query.get("sinceTime", [""])[0][:19], 0
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        if "tailLines" in query:
            there = [("%s %s\n" % line).encode() for line in self.lines[pod] if line][-int(query["tailLines"][0]):]
            self.wfile.write(b"".join(there)[:int(query["limitBytes"][0])])
            return
        while True:
            while at < len(self.lines[pod]) and self.lines[pod][at] is not None:
                stamp, text = self.lines[pod][at]
                at += 1
                if stamp[:19] < since:
                    continue
                self.wfile.write(("%s %s\n" % (stamp, text)).encode())
                if follows and Kubelet.cut and text == "cut here":
                    Kubelet.cut -= 1
                    self.wfile.write(b"2026-11-23T07:00:59Z half a li")
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
            self.wfile.flush()
            if not follows or at < len(self.lines[pod]):
                return
            time.sleep(0.05)

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        words, query = url.path.split("/"), urllib.parse.parse_qs(url.query)
        text = self.said.get(words[3]) if words[1] == "containerLogs" else None
        if words[1] == "containerLogs" and words[3] in self.starting:
            Kubelet.asked.append(query)
            body = b'container "main" in pod "%s" is waiting to start: ContainerCreating' % words[3].encode()
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        if words[1] == "containerLogs" and words[3] in self.lines:
            return self.timed(words[3], query)
        if text is None:
            Kubelet.unknown.add(words[3])
        body = (text or "").encode()
        if "tailLines" in query:
            body = b"".join(body.splitlines(True)[-int(query["tailLines"][0]):])
        body = body[:int(query.get("limitBytes", [len(body)])[0])]
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def kubelet(b):
    """Its port, of a server with a certificate of its own."""
    key, certificate = b.path("kubelet.key"), b.path("kubelet.crt")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
                    "-subj", "/CN=kubelet"], check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def answers_at(b, node, port):
    def is_so():
        b.call("PATCH", "/api/v1/nodes/%s/status" % node, {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}, "application/merge-patch+json")
        status = b.get("/api/v1/nodes/" + node)["status"]
        return status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port") == port
    wait_until("the node says where its kubelet is", is_so)


def words(text):
    return " ".join(text.split())


def test_what_pods_print_is_shown_and_why_it_is_not():
    with cluster(nodes=1) as (b, s):
        pod(b, "theirs")
        wait_until("it runs", lambda: phase(b, "theirs") == "Running")
        own = s.submit("--", "sleep")
        s.wait_for(own, "running")
        theirs, name = jobs(s)[-1]["id"] if jobs(s)[-1]["name"] == "theirs" else jobs(s)[0]["id"], s.pod(own, 0)
        # No kubelet answers for nodes that kwok plays: said, with what is left to do.
        for number, named in ((theirs, "theirs"), (own, name)):
            said = s.run("logs", str(number), check=False)
            assert said.code and "the node of this pod, which keeps its output, does not answer" in words(said.err) and "kubectl -n default logs " + named in words(said.err), said
            said = s.run("logs", "-f", str(number), check=False)
            assert said.code and "the node of this pod, which keeps its output, does not answer" in words(said.err), said
        server = kubelet(b)
        try:
            answers_at(b, "n0", server.server_address[1])
            Kubelet.said = {"theirs": "one\ntwo\nthree\n", name: "x" * (17 << 20)}
            assert s.run("logs", str(theirs)).out == "one\ntwo\nthree\n"
            # By the names that kubectl shows, of both kinds.
            assert s.run("logs", "default/theirs").out == "one\ntwo\nthree\n"
            assert s.run("logs", "default/" + name, "--tail-bytes", "3").out.startswith("xxx\n")
            assert s.run("explain", "default/" + name, "-v").out.startswith("job %d is running\n" % own)
            for absent in ("default/nobody", "other/" + name):
                said = s.run("logs", absent, check=False)
                assert said.code == 3 and "there is no pod" in said.err, said
            assert s.run("logs", str(theirs), "--tail-bytes", "9").out == "wo\nthree\n"
            said = s.run("logs", str(own)).out
            assert said.startswith("x" * (16 << 20) + "\n[fairlead: no more than 16 MiB are shown") and name in said[16 << 20:], said[16 << 20:][:200]
            # The end of more than is asked for at a time: a kubelet counts its limit from the first line of a tail.
            Kubelet.said["theirs"] = "".join("%099d\n" % i for i in range(200000))
            shown = s.run("logs", str(theirs), "--tail-bytes", "1000000").out
            is_end = shown == Kubelet.said["theirs"][-1000000:]  # asserted as such: pytest would compare the texts for minutes
            assert is_end, shown[-200:]
            first, shown = s.run("logs", str(theirs), "--tail-bytes", "18000000").out.split("\n", 1)
            assert first.startswith("[fairlead: only the last %d bytes are shown" % len(shown)) and "kubectl -n default logs theirs --tail" in first, first
            is_end = len(shown) > 4 << 20 and Kubelet.said["theirs"].endswith(shown)
            assert is_end, shown[-200:]
            # Gone with its pod.
            b.call("DELETE", PODS + "/theirs")
            wait_until("it is gone", lambda: b.call("GET", PODS + "/theirs")[0] == 404)
            said = s.run("logs", str(theirs), check=False)
            assert said.code and "is not there any more" in words(said.err), said
        finally:
            server.shutdown()
            server.server_close()


def test_output_is_followed_over_breaks_until_the_rank_has_ended():
    with cluster(nodes=1) as (b, s):
        own = s.submit("--", "sleep")
        s.wait_for(own, "running")
        name = s.pod(own, 0)
        server = kubelet(b)
        second = "2026-11-23T07:00:%02d.5Z"
        lines = Kubelet.lines[name] = [(second % i, "line %d" % i) for i in range(3)] + [(second % 2, "line 2 again")]
        try:
            answers_at(b, "n0", server.server_address[1])
            Kubelet.cut = 2
            with open(b.path("followed"), "wb") as out:
                follower = subprocess.Popen([harness.PROGRAM, "logs", "-f", str(own)], stdout=out, stderr=out, env=s.env)

            def followed():
                with open(b.path("followed")) as f:
                    return f.read()
            wait_until("what there is came", lambda: "line 2 again\n" in followed())
            lines.append((second % 3, "cut here"))
            lines.append((second % 4, "behind the cut"))
            wait_until("the connection broke twice, and it goes on", lambda: "behind the cut\n" in followed() and not Kubelet.cut)
            # Over the silence of a stream, which is asked for anew after ten seconds.
            before = len(Kubelet.asked)
            wait_until("it was asked for anew", lambda: len(Kubelet.asked) > before)
            lines.append((second % 5, "behind the silence"))
            wait_until("it goes on", lambda: "behind the silence\n" in followed())
            # The rank ends, its last words come, and the stream ends.
            s.run("cancel", str(own))
            lines += [(second % 6, "last words"), None]
            assert follower.wait(harness.PATIENCE_S) == 0, followed()
            assert followed().splitlines() == ["line 0", "line 1", "line 2", "line 2 again", "cut here", "behind the cut", "behind the silence", "last words"], followed()
        finally:
            Kubelet.lines.clear()
            server.shutdown()
            server.server_close()


def test_the_end_is_followed_and_no_more_of_what_was_there_before():
    with cluster(nodes=1) as (b, s):
        own = s.submit("--", "sleep")
        s.wait_for(own, "running")
        name = s.pod(own, 0)
        server = kubelet(b)
        # Lines of 1,000 bytes: the last 3,000 of them, which may be the last 3,000 bytes, are more than one answer.
        lines = Kubelet.lines[name] = [("2026-11-23T07:%02d:%02d.5Z" % (i // 60 % 60, i % 60), "%0999d" % i) for i in range(3400)]
        follow = lambda tail: subprocess.Popen([harness.PROGRAM, "logs", "-f", str(own), "--tail-bytes", str(tail)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=s.env, text=True)
        try:
            answers_at(b, "n0", server.server_address[1])
            short, long = follow(3000), follow(2000000)
            for who, count in ((short, 3), (long, 2000)):
                for i in range(count):
                    assert int(who.stdout.readline()) == 3400 - count + i
            lines += [("2026-11-23T07:59:59.5Z", "then"), None]
            assert short.stdout.readline() == long.stdout.readline() == "then\n"
            s.run("cancel", str(own))
            assert short.wait(harness.PATIENCE_S) == long.wait(harness.PATIENCE_S) == 0
        finally:
            Kubelet.lines.clear()
            server.shutdown()
            server.server_close()


def test_what_does_not_fit_into_one_answer_is_missing_in_front_and_said():
    with cluster(nodes=1) as (b, s):
        own = s.submit("--", "sleep")
        s.wait_for(own, "running")
        name = s.pod(own, 0)
        server = kubelet(b)
        # Most bytes are those of the times.
        lines = Kubelet.lines[name] = [("2026-11-23T07:%02d:%02d.%06dZ" % (i // 60000, i // 1000 % 60, i % 1000), "x") for i in range(150000)]
        try:
            answers_at(b, "n0", server.server_address[1])
            follower = subprocess.Popen([harness.PROGRAM, "logs", "-f", str(own), "--tail-bytes", "250000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=s.env, text=True)
            first = follower.stdout.readline()
            assert first.startswith("[fairlead: of what was there before only the last ") and "kubectl -n default logs " + name in first, first
            lines += [("2026-11-23T07:59:59.5Z", "then"), None]
            shown = list(iter(follower.stdout.readline, "then\n"))
            assert int(first.split(" bytes")[0].split()[-1]) == 2 * len(shown) and 1000 < len(shown) < 125000, (first, len(shown))
            s.run("cancel", str(own))
            assert follower.wait(harness.PATIENCE_S) == 0
        finally:
            Kubelet.lines.clear()
            server.shutdown()
            server.server_close()


def test_one_that_has_not_begun_is_followed_from_its_first_line():
    with cluster(nodes=1) as (b, s):
        own = s.submit("--", "sleep")
        s.wait_for(own, "running")
        name = s.pod(own, 0)
        server = kubelet(b)
        Kubelet.starting.add(name)
        Kubelet.lines[name] = [("2026-11-23T07:00:00.5Z", "first"), None]
        try:
            answers_at(b, "n0", server.server_address[1])
            said = s.run("logs", str(own), check=False)
            assert said.code == 3 and "is waiting to start: ContainerCreating" in words(said.err), said
            follower = subprocess.Popen([harness.PROGRAM, "logs", "-f", str(own)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=s.env, text=True)
            before = len(Kubelet.asked)
            wait_until("it is asked for again", lambda: len(Kubelet.asked) >= before + 3)
            Kubelet.starting.clear()
            assert follower.stdout.readline() == "first\n"
            s.run("cancel", str(own))
            assert follower.wait(harness.PATIENCE_S) == 0, follower.stdout.read()
            # One whose kubelet does not know it yet, as it is with `run`, which asks at once.
            ran = subprocess.Popen([harness.PROGRAM, "run", "--", "sleep"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s.env, text=True)
            wait_until("its pod runs", lambda: len(s.ask("jobs", "--all")) == 2 and s.state(own + 1) == "running")
            path = s.pod(own + 1, 0)
            wait_until("it was asked for in vain", lambda: path in Kubelet.unknown)
            Kubelet.lines[path] = [("2026-11-23T07:00:00.5Z", "of run"), None]
            assert ran.stdout.readline() == "of run\n"
            s.run("cancel", str(own + 1))
            ran.communicate(timeout=harness.PATIENCE_S)
        finally:
            Kubelet.starting.clear()
            Kubelet.lines.clear()
            server.shutdown()
            server.server_close()


def test_output_of_a_rank_that_ended_is_there_while_its_pod_is():
    with cluster(nodes=1) as (b, s):
        own = s.submit("--", "true")
        s.wait_for(own, "succeeded")
        name = s.pod(own, 0)
        server = kubelet(b)
        try:
            answers_at(b, "n0", server.server_address[1])
            Kubelet.said = {name: "it was good\n"}
            assert s.run("logs", str(own)).out == "it was good\n"
            Kubelet.lines[name] = [("2026-11-23T07:00:00Z", "it was good"), None]
            assert s.run("logs", "-f", str(own)).out == "it was good\n"
        finally:
            Kubelet.lines.clear()
            server.shutdown()
            server.server_close()
