# SPDX-License-Identifier: Apache-2.0
"""A proxy between Fairlead and the API server of bed.py that makes faults, by the dice of a seed. Plain HTTP on loopback, one thread.

Of each request, before it is carried out: dropped, 500, 429 (with Retry-After or without), 409 of a change, 410 of a list, 401. Carried out, and then: the
answer is lost with its connection, 504, or it comes late. Of a read: an answer of before (of the same object, or the whole list). Of a watch:
refused, 410 (as status or as an event), cut between two changes or in the middle of one, silent for a while or until the client gives it up, changes told
again with newest states of other objects, states of before told once more (up to 60, of which each counts: a change that the server did not tell then). The token expires: from then on only the new one is taken, which lies in the kubeconfig's token file.

Each fault is a line of the log: seconds, kind, request."""

import asyncio
import json
import os
import random
import re
import ssl
import threading
import time

REQUEST = {"dropped": 4, "answer-lost": 6, "504-done": 6, "500": 4, "429": 0.6, "429-after": 0.2, "late": 4, "401": 1, "token": 0.05}
CHANGE = {"409": 3}
LIST = {"410": 2, "stale-list": 20}
GET = {"stale": 6}
WATCH = {"refused": 2, "410": 2, "dropped": 1}
STREAM = {"twice": 60, "before": 30, "cut": 1, "torn": 1, "410-event": 1.5, "silent": 0.7, "stalled": 0.05}
OLD_LISTS, OLD_STATES, MOST_AGAIN = 6, 5, 60


def status(code, reason, message="a fault that was made"):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "message": message, "code": code}).encode()


REASONS = {500: "InternalError", 429: "TooManyRequests", 409: "Conflict", 410: "Expired", 401: "Unauthorized", 504: "Timeout"}


class Cut(Exception):
    """The client's connection is closed now."""


class FaultProxy:
    """rate: part of the requests that meet a fault; of changes in a watch nine of ten do. `on` may be set and taken back at any time."""

    def __init__(self, b, seed, rate=0.35, token=None):
        self.bed, self.rate, self.on, self.dice = b, rate, False, random.Random(seed)
        self.counts, self.last, self.began = {}, time.monotonic(), time.monotonic()
        self.upstream_token = token or b.token
        self.token, self.lists, self.objects, self.pool, self.problem = "t0", {}, {}, [], None
        self.log = open(b.path("faults.log"), "w")
        self.token_file = b.path("proxy-token")
        self.write_token()
        self.tls = ssl._create_unverified_context()
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 26))
        port = self.server.sockets[0].getsockname()[1]
        self.kubeconfig = b.path("kubeconfig-faults")
        with open(self.kubeconfig, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "bed",
                       "clusters": [{"name": "bed", "cluster": {"server": "http://127.0.0.1:%d" % port}}],
                       "users": [{"name": "admin", "user": {"tokenFile": self.token_file}}],
                       "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}]}, f)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def write_token(self):
        with open(self.token_file + ".new", "w") as f:
            f.write(self.token + "\n")
        os.replace(self.token_file + ".new", self.token_file)

    def stop(self):
        async def end():
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
            self.loop.stop()
        asyncio.run_coroutine_threadsafe(end(), self.loop)
        self.thread.join()
        self.loop.close()
        self.log.close()

    @property
    def total(self):
        return sum(self.counts.values())

    def note(self, kind, what):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.last = time.monotonic()
        self.log.write("%.3f %s %s\n" % (self.last - self.began, kind, what))

    def choose(self, kinds, what, rate=None):
        if not self.on or self.dice.random() >= (rate or self.rate):
            return None
        kind = self.dice.choices(list(kinds), list(kinds.values()))[0]
        if kind not in ("twice", "before"):  # those are counted one by one
            self.note(kind, what)
        return kind

    # --- one client

    async def serve(self, reader, writer):
        try:
            while await self.one(reader, writer):
                pass
        except (Cut, OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        except Exception as e:  # of the proxy itself: the test says so
            self.problem = repr(e)
            raise
        finally:
            writer.close()

    @staticmethod
    async def head(reader):
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = text.split("\r\n")
        return first, {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest if line)}

    async def one(self, reader, writer):
        first, headers = await self.head(reader)
        method, path, _ = first.split(" ")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("authorization") != "Bearer " + self.token:
            return self.answer(writer, 401, status(401, "Unauthorized", "the token has expired"))
        if "watch=1" in path:
            await self.watch(method, path, headers, reader, writer)
            return False
        return await self.request(method, path, headers, body, writer)

    @staticmethod
    def answer(writer, code, text, more=""):
        writer.write(("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n" % (code, len(text), more)).encode() + text)
        return True

    # --- the API server

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.bed.port, ssl=self.tls, limit=1 << 26)

    def send(self, upstream, method, path, headers, body):
        kind = "Content-Type: %s\r\n" % headers["content-type"] if body else ""
        upstream.write(("%s %s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n" % (
            method, path, self.upstream_token, kind, len(body))).encode() + body)

    async def body(self, up, headers):
        if headers.get("transfer-encoding") != "chunked":
            return await up.readexactly(int(headers.get("content-length", 0)))
        parts = []
        while True:
            size = int(await up.readline(), 16)
            parts.append(await up.readexactly(size))
            await up.readline()
            if not size:
                return b"".join(parts)

    async def forward(self, method, path, headers, body):
        while True:
            fresh = not self.pool
            up, upstream = await self.connect() if fresh else self.pool.pop()
            try:
                self.send(upstream, method, path, headers, body)
                first, answer = await self.head(up)
            except (OSError, asyncio.IncompleteReadError):
                upstream.close()
                if fresh:
                    raise
                continue  # the server had closed a connection that was not in use
            text = await self.body(up, answer)
            self.pool.append((up, upstream))
            return int(first.split(" ")[1]), text

    # --- requests

    async def request(self, method, path, headers, body, writer):
        what = "%s %s" % (method, path)
        kinds = dict(REQUEST)
        is_list = method == "GET" and "limit=" in path
        kinds.update(CHANGE if method != "GET" else LIST if is_list else GET)
        fault = self.choose(kinds, what)
        if fault == "dropped":
            raise Cut
        if fault == "token":
            self.token = "t%d" % (int(self.token[1:]) + 1)
            self.write_token()
            fault = "401"
        if fault in ("500", "409", "410", "401"):
            return self.answer(writer, int(fault), status(int(fault), REASONS[int(fault)]))
        if fault in ("429", "429-after"):
            return self.answer(writer, 429, status(429, REASONS[429]), "Retry-After: 1\r\n" if fault == "429-after" else "")
        code, text = await self.forward(method, path, headers, body)
        if method == "GET" and code == 200:
            text = self.maybe_old(is_list, path, fault, text)
        if fault == "answer-lost":
            raise Cut
        if fault == "504-done":
            return self.answer(writer, 504, status(504, REASONS[504]))
        if fault == "late":
            await asyncio.sleep(self.dice.random() ** 2)
        self.answer(writer, code, text)
        await writer.drain()
        return True

    def maybe_old(self, is_list, path, fault, text):
        known = self.lists if is_list else self.objects
        key = path.split("?")[0] if "continue=" not in path else path
        old = known.setdefault(key, [])
        if fault in ("stale", "stale-list") and old:
            if is_list:
                return self.dice.choice(old)
            same = [o for o in old if json.loads(o)["metadata"]["uid"] == json.loads(text)["metadata"]["uid"]]
            return self.dice.choice(same) if same else text
        old.append(text)
        del old[:-OLD_LISTS]
        return text

    # --- watches

    async def watch(self, method, path, headers, reader, writer):
        what = "WATCH " + path.split("?")[0]
        fault = self.choose(WATCH, what)
        if fault == "dropped":
            raise Cut
        if fault:
            code = 410 if fault == "410" else self.dice.choice((500, 429, 504))
            self.answer(writer, code, status(code, REASONS[code]))
            return
        up, upstream = await self.connect()
        try:
            self.send(upstream, method, path, headers, b"")
            first, answer = await self.head(up)
            if first.split(" ")[1] != "200":
                self.answer(writer, int(first.split(" ")[1]), await self.body(up, answer))
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            await self.stream(up, reader, writer, what)
        finally:
            upstream.close()

    @staticmethod
    def tell(writer, line):
        writer.write(b"%x\r\n%s\r\n" % (len(line), line))

    async def stream(self, up, reader, writer, what):
        told, rest = {}, b""  # told: by uid, the newest states
        while True:
            size = int(await up.readline(), 16)
            rest += await up.readexactly(size)
            await up.readline()
            if not size:
                break
            *whole, rest = rest.split(b"\n")
            for line in whole:
                if writer.is_closing():
                    return
                await self.change(reader, writer, what, line + b"\n", told)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def change(self, reader, writer, what, line, told):
        uid = re.search(rb'"uid":"([^"]*)"', line)
        fault = self.choose(STREAM, what, 0.9)
        if fault == "cut":
            raise Cut
        if fault == "torn":
            writer.write(b"%x\r\n%s" % (len(line), line[:len(line) // 2]))
            await writer.drain()
            raise Cut
        if fault == "410-event":
            self.tell(writer, b'{"type":"ERROR","object":%s}\n' % status(410, "Expired", "too old resource version"))
        if fault == "stalled":
            await reader.read(1)  # nothing comes, and at the end the client has closed it
            raise Cut
        if fault == "silent":
            await asyncio.sleep(self.dice.random() * 6)
            self.last = time.monotonic()
        self.tell(writer, line)
        uid = uid.group(1) if uid and not line.startswith(b'{"type":"BOOKMARK"') else None
        if uid and line.startswith(b'{"type":"DELETED"'):
            told.pop(uid, None)
        elif uid:
            told.setdefault(uid, []).append(line)
            del told[uid][:-OLD_STATES]
        if fault in ("twice", "before"):
            await self.tell_again(writer, what, told, line, fault)
        await writer.drain()

    async def tell_again(self, writer, what, told, line, fault):
        """This change, and newest states of other objects, once more; or states of before. Each is a fault. The server never ends with what is old."""
        known, touched = list(told.values()), {}
        for i in range(self.dice.randint(1, MOST_AGAIN)):
            states = self.dice.choice(known) if known and (i or fault == "before") else [line]
            if fault == "before":
                if len(states) < 2:
                    continue
                touched[id(states)] = states
                self.tell(writer, self.dice.choice(states[:-1]))
            else:
                self.tell(writer, states[-1])
            self.note(fault, what)
        for states in touched.values():
            self.tell(writer, states[-1])
