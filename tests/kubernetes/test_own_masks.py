# SPDX-License-Identifier: Apache-2.0
"""Masks of own jobs (docs/decisions/0021) end with them, whatever became of the jobs meanwhile."""

import http.client
import json
import socket
import threading

from bed import wait_until
from cluster import cluster

JOBS = 100


class Connection(http.client.HTTPConnection):
    """To the daemon's socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def post(self, path, body=b""):
        self.request("POST", "/api/v1" + path, body, {"Content-Type": "application/yaml"})
        answer = self.getresponse()
        return answer.status, json.loads(answer.read())


def test_masks_of_jobs_that_are_cancelled_in_the_turn_of_their_submission_end():
    with cluster(nodes=1) as (_, s):
        socket_path = s.data + "/fairlead.sock"
        coming, done = [1], []

        def cancel():
            connection = Connection(socket_path)
            while not done:
                connection.post("/jobs/%d/cancel" % coming[0])
        others = [threading.Thread(target=cancel) for _ in range(4)]
        for thread in others:
            thread.start()
        try:
            connection = Connection(socket_path)
            for i in range(JOBS):
                status, job = connection.post("/jobs", b'command: ["true"]\ngpus: 1\nresources: {rdma/hca: %d}\n' % (i + 1))
                assert status == 201, job
                coming[0] = job["id"] + 1
        finally:
            done.append(True)
            for thread in others:
                thread.join()
        for job in range(1, JOBS + 1):
            connection.post("/jobs/%d/cancel" % job)

        def masks():
            lines = [line for line in s.run("journal", "show").out.splitlines() if " node-mask " in line]
            names = [{line.split('"name":"')[1].split('"')[0] for line in lines if not ended or '"ended":1' in line} for ended in (False, True)]
            return names
        made, _ = masks()
        assert len(made) == JOBS
        wait_until("all masks have ended", lambda: masks()[1] == made)
