# SPDX-License-Identifier: Apache-2.0
"""What the init container for snapshots makes of answers that are not as they should be. No cluster: a server here answers in the daemon's place."""

import hashlib
import http.server
import os
import subprocess
import threading

import pytest

import harness

PROGRAM = os.path.join(harness.BUILD, "src/shepherd/fairlead-pod-shepherd")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def line(path, data=b"a", kind="F"):
    return "%s %d %s %s" % (kind, len(data), digest(data), path)


def listed(*lines):
    return ("fairlead-tree 1\n" + "".join(one + "\n" for one in lines)).encode()


def fetch(into, text, answer):
    """answer(path behind "code", number of the question from 1): status, body, and where it is another one its length."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            assert self.headers["Authorization"] == "Bearer fp_1_x"
            asked.append(self.path)
            status, body, *length = answer(self.path.partition("/code")[2], len(asked))
            self.send_response(status)
            self.send_header("Content-Length", str(length[0] if length else len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                pass  # it had heard enough

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            done = subprocess.run([PROGRAM, "fetch", "--server", "127.0.0.1:%d" % server.server_port, "--attempt", "1", "--rank", "0", "--snapshot",
                                   digest(text), "--into", str(into)], env={"FAIRLEAD_POD_TOKEN": "fp_1_x"}, stderr=subprocess.PIPE, text=True,
                                  timeout=harness.PATIENCE_S, check=False)
        finally:
            server.shutdown()
            thread.join()
    assert done.returncode in (0, 1), done
    assert os.path.exists(os.path.join(into, "code")) == (done.returncode == 0)
    return done.returncode == 0, done.stderr, asked


@pytest.mark.parametrize("lines", [
    [line("../x")], [line("/x")], [line("a//b")], ["L 4 /tmp a", line("a/b")], [line("a"), line("a/b")], [line("b"), line("a")], [line("a"), line("a")],
    [line("/".join(["n" * 200] * 6))], [line("/".join("d" * 33))], [],
], ids=lambda lines: lines[0][-20:] if lines else "empty")
def test_a_list_that_leads_elsewhere_makes_nothing(tmp_path, lines):
    text = listed(*lines)
    well, said, _ = fetch(tmp_path, text, lambda path, number: (200, b"aa" if path else text))
    assert not well and ("the snapshot" in said or "lies in what is no folder" in said)
    assert os.listdir(tmp_path) == []


def test_what_is_cut_off_or_too_long_or_not_now_is_asked_for_again(tmp_path):
    text = listed(line("a", b"abc"))
    wrong = [(200, b"ab", 3), (200, b"ab"), (200, b"abcd"), (503, b'{"error":{"code":"unavailable","message":"not now"}}'), (200, b"a" * (9 << 20))]
    well, _, asked = fetch(tmp_path, text, lambda path, number: (200, text) if not path else ([*wrong, (200, b"abc")])[number - 2])
    assert well and len(asked) == 7 and (tmp_path / "code/a").read_bytes() == b"abc"


def test_what_is_refused_is_said_whole(tmp_path):
    text = listed(line("a"))
    body = b'{"error":{"code":"not_found","message":"node \\"n0\\" has none: look there"}}'
    well, said, asked = fetch(tmp_path, text, lambda path, number: (404, body))
    assert not well and len(asked) == 1 and 'node "n0" has none: look there' in said


def test_what_an_earlier_try_left_is_no_part_of_it(tmp_path):
    text = listed(line("a", b"abc"), line("run", b"x", "X"))
    (tmp_path / "code.new/a").mkdir(parents=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / digest(b"abc")).write_text("something that is longer")
    well, said, _ = fetch(tmp_path, text, lambda path, number: (200, b"abcx" if path else text))
    assert well, said
    assert os.listdir(tmp_path) == ["code"] and sorted(os.listdir(tmp_path / "code")) == ["a", "run"]
    assert (tmp_path / "code/a").read_bytes() == b"abc" and (tmp_path / "code/run").stat().st_mode & 0o777 == 0o777
