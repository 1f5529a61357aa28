# SPDX-License-Identifier: Apache-2.0
"""openapi-python-client makes a client of the daemon's own description, and that client can call every route. The generator and
what it needs are those of `scripts/python-packages --client`."""

import json
import os
import re
import subprocess

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.environ.get("FAIRLEAD_CLIENT_PYTHON")
# Bodies that the generator has no word for; the same routes take JSON, or bytes as application/octet-stream.
WARNINGS = {("POST /api/v1/jobs", "application/yaml"), ("PATCH /api/v1/jobs/{id}", "application/yaml"), ("POST /api/v1/snapshots", "text/plain")}


def python():
    """Run by itself, the test makes the environment as scripts/test-system does."""
    return PYTHON or subprocess.run([os.path.join(ROOT, "scripts", "python-packages"), "--client"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip() + "/bin/python"


def generate(description, folder, interpreter):
    (folder / "openapi.json").write_text(json.dumps(description))
    (folder / "settings.json").write_text('{"post_hooks": []}')
    done = subprocess.run([interpreter, "-m", "openapi_python_client", "generate", "--path", folder / "openapi.json", "--config", folder / "settings.json",
                           "--meta", "none", "--output-path", folder / "fairlead_client"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, COLUMNS="500", NO_COLOR="1"), timeout=harness.PATIENCE_S)
    assert done.returncode == 0, done.stdout
    warned = re.findall(r"WARNING parsing (\w+ \S+) within \w+\.(.*)$", done.stdout, re.M)
    reasons = re.findall(r"^Unsupported content type (\S+)$", done.stdout, re.M)
    assert [left_out for _, left_out in warned] == [""] * len(reasons), done.stdout
    assert set(zip([route for route, _ in warned], reasons)) == WARNINGS, done.stdout
    assert "Unable to process" not in done.stdout, done.stdout


def routes():
    with open(os.path.join(ROOT, "src", "api", "routes.def")) as f:
        return set(re.findall(r"^ROUTE\((\w+),", f.read(), re.M))


def test_a_generated_client_calls_every_route(tmp_path):
    with harness.Daemon(nodes="sim:2x4xH100-80GB", listen="127.0.0.1:0") as d:
        interpreter = python()
        generate(harness.Client(d.data).get("/api/v1/openapi.json"), tmp_path, interpreter)
        token = d.ask("token", "create", "--expires", "1h")["token"]
        done = subprocess.run([interpreter, os.path.join(ROOT, "tests", "system", "client_calls.py"), tmp_path, "http://127.0.0.1:%s" % d.tcp_port(), token],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE_S)
        assert done.returncode == 0, done.stderr
        called = set(json.loads(done.stdout))
        assert called == routes() | {"event_list as a stream", "job_logs as a stream"}
