# SPDX-License-Identifier: Apache-2.0
"""Working folders as snapshots for jobs that run as pods: an init container of Fairlead's gets them at the daemon. A stand-in for kubelets runs the
pods' processes here (stand_in.py)."""

import hashlib
import json
import os
import urllib.error
import urllib.request

from cluster import cluster
from test_shepherds import machines, token_of


def folder_with(path, **files):
    for name, text in files.items():
        with open(os.path.join(path, name.replace("_", ".")), "w") as f:
            f.write(text)
    return str(path)


def submit(s, folder, *words, flags=()):
    return s.submit("--snapshot", folder, *flags, "--", *words)


def outputs(kubelets, job):
    """What its ranks printed, by rank."""
    found = {p.labels["fairlead.dev/rank"]: p.log() for p in kubelets.pods.values() if p.labels["fairlead.dev/job"] == str(job)}
    return [found[rank] for rank in sorted(found)]


def get(s, token, path):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (s.pod_port, path), headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_a_task_begins_in_a_copy_of_the_folder_and_a_changed_line_is_in_the_next(tmp_path):
    with machines("n0") as (b, s, kubelets):
        folder_with(tmp_path, run_sh="echo first; cat data.txt; pwd; echo spoilt > data.txt; mkdir made; env", data_txt="one\n")
        (tmp_path / "deep/er").mkdir(parents=True)
        (tmp_path / "deep/er/tool").write_text("#!/bin/sh\necho a tool\n")
        (tmp_path / "deep/er/tool").chmod(0o755)
        (tmp_path / "link").symlink_to("data.txt")
        first = submit(s, str(tmp_path), "sh", "run.sh")
        s.wait_for(first, "succeeded")
        out, = outputs(kubelets, first)
        assert "first\none\n" in out and "/code\n" in out, out
        # The task has no need of the token, and does not get it.
        assert "FAIRLEAD_POD_TOKEN" not in out
        folder_with(tmp_path, run_sh="cat link; deep/er/tool; ls -ld deep data.txt")
        second = submit(s, str(tmp_path), "sh", "run.sh")
        s.wait_for(second, "succeeded")
        out, = outputs(kubelets, second)
        assert "one\na tool\n" in out and "drwxrwxrwx" in out and "-rw-rw-rw-" in out, out


def test_only_the_attempts_own_folder_is_answered_and_only_while_it_lives(tmp_path):
    with machines("n0") as (b, s, kubelets):
        job = submit(s, folder_with(tmp_path, a="first", b="second"), "sleep", "600")
        bare = s.submit("--workdir", "/", "--checkpoint", "signal", "--checkpoint-path", "/c", "--", "sleep", "600")
        for one in (job, bare):
            s.wait_for(one, "running")
        token, other, code = token_of(b, s, job), token_of(b, s, bare), "/pods/v1/attempts/1/ranks/0/code"
        status, listed = get(s, token, code)
        assert status == 200 and hashlib.sha256(listed).hexdigest() in json.dumps(s.bed.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0)))
        assert get(s, token, code + "/0") == (200, b"firstsecond")
        assert get(s, token, code + "/1") == (200, b"second")
        assert get(s, None, code)[0] == 401
        for end in ("/2", "/", "/-1", "/0/", "/99999999999", "/x", "x", "/" + hashlib.sha256(b"first").hexdigest()):
            assert get(s, token, code + end)[0] in (400, 404), end
        assert get(s, token, code.replace("/0/", "/7/"))[0] == 404
        assert get(s, other, code)[0] == 403
        status, said = get(s, other, code.replace("/1/", "/2/"))
        assert status == 404 and b"has no snapshot" in said
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        assert get(s, token, code)[0] == get(s, token, code + "/0")[0] == 409


def test_without_a_door_for_pods_a_folder_is_refused_by_name(tmp_path):
    with cluster(nodes=1) as (b, s):
        folder_with(tmp_path, a="a")
        said = s.run("run", "-d", "--snapshot", str(tmp_path), "--", "true", check=False)
        assert said.code and "--pod-listen" in said.err and "--shepherd-image" in said.err and "snapshot" in said.err
