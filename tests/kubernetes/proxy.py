# SPDX-License-Identifier: Apache-2.0
"""A proxy between Fairlead and the API server of bed.py that answers in the server's place, or changes what it says. Plain HTTP on loopback;
it adds the account."""

import contextlib
import http.server
import json
import ssl
import threading
import urllib.parse
import http.client


class Proxy:
    """rules: functions (method, path, body) -> None, or (status, object): the answer in the server's place. changes: functions (path, object) on
    what a GET of one object or list answers, or a list of the one that a watch tells; change it in place. edits: functions (method, path, object) on what is written, likewise. What was
    asked is in `asked`, as "METHOD path"."""

    def __init__(self, b):
        self.bed, self.rules, self.changes, self.edits, self.asked = b, [], [], [], []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                proxy.handle(self)

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.kubeconfig = b.path("kubeconfig-proxy")
        with open(self.kubeconfig, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "bed",
                       "clusters": [{"name": "bed", "cluster": {"server": "http://127.0.0.1:%d" % self.server.server_address[1]}}],
                       "users": [{"name": "admin", "user": {}}],
                       "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}]}, f)

    def handle(self, request):
        size = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(size) if size else b""
        self.asked.append("%s %s" % (request.command, request.path))
        if body and self.edits:
            thing = json.loads(body)
            for edit in self.edits:
                edit(request.command, request.path, thing)
            body = json.dumps(thing).encode()
        for rule in list(self.rules):
            answer = rule(request.command, request.path, body.decode())
            if answer:
                self.answer(request, answer[0], json.dumps(answer[1]).encode())
                return
        upstream = http.client.HTTPSConnection("127.0.0.1", self.bed.port, context=ssl._create_unverified_context(), timeout=400)
        headers = {k: v for k, v in request.headers.items() if k.lower() in ("content-type", "accept")}
        upstream.request(request.command, request.path, body, dict(headers, Authorization="Bearer " + self.bed.token))
        response = upstream.getresponse()
        with contextlib.suppress(OSError):
            if "watch=1" in request.path and response.status == 200:
                self.stream(request, response)
            else:
                self.answer(request, response.status, self.changed(request, response.read()))
        upstream.close()

    def changed(self, request, text):
        if request.command != "GET" or not self.changes:
            return text
        thing = json.loads(text)
        for change in self.changes:
            change(request.path, thing)
        return json.dumps(thing).encode()

    @staticmethod
    def answer(request, status, text):
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def stream(self, request, response):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while True:
            line = response.readline()
            if not line:
                break
            for rule in list(self.rules):
                if rule("WATCH", request.path, line.decode()):
                    line = b""
                    break
            if line and self.changes:
                thing = json.loads(line)
                for change in self.changes:
                    change(request.path, {"items": [thing["object"]]})
                line = json.dumps(thing).encode() + b"\n"
            if line:
                request.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                request.wfile.flush()
        request.wfile.write(b"0\r\n\r\n")

    def count(self, text):
        return sum(text in asked for asked in self.asked)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def refusal(status, reason, message="not now"):
    return status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": status}


def path_of(path):
    return urllib.parse.urlsplit(path).path
