# SPDX-License-Identifier: Apache-2.0
"""The edge of the HTTP server at a real daemon: too few descriptors, strangers, clients that send slowly, too many dear questions."""

import contextlib
import http.server
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

USER, STRANGER = 61201, 61202  # uids of this test's own: nobody's accounts
REQUEST = b"GET /api/v1/%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="calls as several accounts")


@contextlib.contextmanager
def account(uid):
    """Who connects meanwhile is this account to the daemon: the kernel notes it at the connect."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def dial(daemon, port=None):
    s = socket.socket(socket.AF_INET if port else socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(harness.PATIENCE_S)
    s.connect(("127.0.0.1", int(port)) if port else os.path.join(daemon.data, "fairlead.sock"))
    return s


def dial_many(stack, count, daemon, port=None):
    return [stack.enter_context(contextlib.closing(dial(daemon, port))) for _ in range(count)]


def read_answer(s):
    """Status and body of the next answer; 0 where the connection was closed without one."""
    have = b""
    try:
        while b"\r\n\r\n" not in have:
            piece = s.recv(65536)
            if not piece:
                return 0, ""
            have += piece
        head, body = have.split(b"\r\n\r\n", 1)
        length = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while len(body) < length[0]:
            body += s.recv(65536)
    except ConnectionResetError:
        return 0, ""
    return int(head.split()[1]), body.decode()


def ask(s, what="status", token=None):
    try:
        s.sendall(REQUEST % (what.encode(), b"Authorization: Bearer %s\r\n" % token.encode() if token else b""))
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was turned away before: what it was told is there to be read
    return read_answer(s)


def ask_anew(daemon, port=None, token=None, what="status"):
    with contextlib.closing(dial(daemon, port)) as s:
        return ask(s, what, token)


def was_told(s):
    """Whether the daemon has said something on a connection that asked nothing."""
    s.setblocking(False)
    try:
        return len(s.recv(1, socket.MSG_PEEK)) > 0
    except BlockingIOError:
        return False
    finally:
        s.settimeout(harness.PATIENCE_S)


def add_user(daemon):
    daemon.run("teams", "create", "vision")
    daemon.run("users", "add", "ann", "--team", "vision", "--uid", str(USER), "--gid", str(USER), "--role", "researcher")


def make_token(daemon):
    return daemon.run("token", "create").out.strip()


def descriptors(daemon):
    """Highest that is open, and one."""
    return max(int(name) for name in os.listdir("/proc/%d/fd" % daemon.process.pid)) + 1


@needs_root
def test_300_idle_connections_with_256_descriptors_keep_nobody_else_out():
    with harness.Daemon(listen="127.0.0.1:0", before=("prlimit", "--nofile=256:256")) as d, contextlib.ExitStack() as stack:
        add_user(d)
        port, token = d.tcp_port(), make_token(d)
        with account(USER):
            idle = dial_many(stack, 300, d)
        # Who keeps the machine gets in over both doors, and work goes on.
        assert ask_anew(d)[0] == 200
        assert ask_anew(d, port, token)[0] == 200
        assert d.wait(d.submit("true"))["state"] == "succeeded"
        told = harness.wait_until("some are told", lambda: [s for s in idle if was_told(s)])
        assert len(told) < 300
        status, text = read_answer(told[0])
        assert status == 503 and "connections" in json.loads(text)["error"]["message"]
        for s in idle:
            s.close()

        def answered():
            with account(USER):
                s = dial(d)
            with contextlib.closing(s):
                return ask(s)[0] == 200
        harness.wait_until("the user is answered when his connections are gone", answered)


@needs_root
@pytest.mark.parametrize("tcp", (False, True))
def test_a_daemon_without_a_free_descriptor_says_so_and_listens_again(tcp):
    with harness.Daemon(listen="127.0.0.1:0") as d, contextlib.ExitStack() as stack:
        port, token = (d.tcp_port(), make_token(d)) if tcp else (None, None)
        before = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (descriptors(d), before[1]))
        for _ in range(300):  # the numbers that are free below are used up first
            s = stack.enter_context(contextlib.closing(dial(d, port)))
            status, text = ask(s, token=token)
            if status != 200:
                break
        assert status == 503 and "descriptors" in json.loads(text)["error"]["message"]
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, before)
        # Whoever comes at that very moment may still be told.
        harness.wait_until("clients are let in again", lambda: ask_anew(d, port, token)[0] == 200)


@needs_root
def test_an_unknown_account_takes_sixteen_connections_and_no_more():
    with harness.Daemon() as d, contextlib.ExitStack() as stack:
        add_user(d)
        with account(STRANGER):
            strange = dial_many(stack, 17, d)
        status, text = read_answer(strange[16])
        assert status == 503 and "16" in json.loads(text)["error"]["message"]
        assert ask(strange[0])[0] == 401
        with account(USER):
            s = stack.enter_context(contextlib.closing(dial(d)))
        assert ask(s)[0] == 200
        # Who has shown a token is no stranger any more, and makes room.
        assert ask(strange[1], token=make_token(d))[0] == 200
        with account(STRANGER):
            s = stack.enter_context(contextlib.closing(dial(d)))
        assert ask(s)[0] == 401


@needs_root
def test_connections_that_show_no_token_do_not_keep_those_out_that_do():
    with harness.Daemon(listen="127.0.0.1:0") as d, contextlib.ExitStack() as stack:
        port, token = d.tcp_port(), make_token(d)
        silent = dial_many(stack, 40, d, port)
        for s in silent:  # bodies that never come
            s.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\nx")
        known = dial_many(stack, 40, d, port)
        assert [ask(s, token=token)[0] for s in known] == [200] * 40


@needs_root
def test_bodies_that_come_slowly_keep_nobody_out():
    with harness.Daemon() as d, contextlib.ExitStack() as stack:
        add_user(d)
        with account(USER):
            slow = dial_many(stack, 200, d)
        for s in slow:
            s.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
        with account(USER):
            s = stack.enter_context(contextlib.closing(dial(d)))
        assert ask(s)[0] == 200
        assert ask_anew(d)[0] == 200


@pytest.mark.parametrize("listen,shown", (("127.0.0.9:0", "http://127.0.0.9:"), ("[::1]:0", "http://[::1]:")))
def test_the_greeting_names_the_address_that_is_listened_on(listen, shown):
    with harness.Daemon(listen=listen) as d:
        line = ""
        while not line.startswith("HTTP: "):
            line = d.process.stdout.readline()
            assert line
        address = line.split()[1]
        assert address.startswith(shown) and not address.endswith(":0")
        token = make_token(d)
        assert d.run("whoami", "--server", address, env={"FAIRLEAD_TOKEN": token}).code == 0


def plan_body():
    return json.dumps({"command": ["true"], "gpus": 1}).encode()


def send_plan(s):
    body = plan_body()
    s.sendall(b"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
              % (len(body), body))


@contextlib.contextmanager
def held_plans(count):
    """A daemon that holds the first two plans, `count` plans of one user, and a function that lets go."""
    held = "work-before-slow:hold:2,work-before-slow:hold:1"  # whoever is held has been counted by all before
    with harness.Gate() as gate, contextlib.ExitStack() as stack:
        d = stack.enter_context(harness.Daemon(env={"FAIRLEAD_FAILPOINT": held, "FAIRLEAD_FAILPOINT_GATE": gate.path}))
        d.env.pop("FAIRLEAD_FAILPOINT")  # the commands' and a later start's
        add_user(d)
        with account(USER):
            plans = dial_many(stack, count, d)
            own = stack.enter_context(contextlib.closing(dial(d)))
        for s in plans:
            send_plan(s)
        gate.wait()
        # Whoever comes to the gate later goes through.
        yield d, plans, own, lambda: stack.callback(os.close, os.open(gate.path, os.O_RDWR))


needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="the build has no failpoints")


@needs_root
@needs_failpoints
def test_status_and_others_are_answered_while_a_users_plans_wait():
    """Two of his plans are held, so the other 38 can't be over: what is answered meanwhile has passed them."""
    with held_plans(40) as (d, plans, own, let_go):
        assert ask(own)[0] == 200
        assert ask(own, "jobs")[0] == 200
        assert ask_anew(d)[0] == 200
        # Another user's expensive read has a worker, too.
        assert ask_anew(d, what="events?limit=1")[0] == 200
        assert not [s for s in plans if was_told(s)]
        let_go()
        assert [read_answer(s)[0] for s in plans] == [200] * 40


@needs_root
@needs_failpoints
def test_a_plan_too_many_is_told_when_to_come_again():
    with held_plans(103) as (d, plans, own, let_go):
        refused = harness.wait_until("one is refused", lambda: [s for s in plans if was_told(s)])
        have = refused[0].recv(65536)
        assert b" 429 " in have and b"Retry-After: 5" in have
        assert ask(own)[0] == 200
        let_go()
        left = [s for s in plans if s is not refused[0]]
        assert [read_answer(s)[0] for s in left] == [200] * 102


@needs_root
@needs_failpoints
def test_plans_that_wait_for_their_turn_do_not_keep_the_daemon_from_ending():
    with held_plans(40) as (d, plans, own, let_go):
        d.process.send_signal(signal.SIGTERM)
        harness.wait_until("it takes no more", lambda: ask(own)[0] != 200)
        let_go()
        assert [read_answer(s)[0] for s in plans] == [503] * 40
        assert d.process.wait(harness.PATIENCE_S) == 0
        d.up()


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses the first two requests as the daemon does with one plan too many."""
    asked = 0

    def do_GET(self):
        Busy.asked += 1
        busy = Busy.asked <= 2
        body = json.dumps({"error": {"code": "unavailable", "message": "wait"}} if busy else
                          {"user": "ann", "team": "", "role": "viewer", "uid": 1, "token": ""}).encode()
        self.send_response(429 if busy else 200)
        if busy:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def test_the_command_asks_again_when_the_daemon_says_so():
    with http.server.HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = dict(os.environ, FAIRLEAD_SERVER="http://127.0.0.1:%d" % server.server_port, FAIRLEAD_TOKEN="fl_" + "0" * 64)
        done = subprocess.run([harness.PROGRAM, "whoami"], env=env, capture_output=True, text=True, timeout=harness.PATIENCE_S,
                              stdin=subprocess.DEVNULL)
        server.shutdown()
    assert done.returncode == 0 and "ann" in done.stdout, done
    assert Busy.asked == 3
