# SPDX-License-Identifier: Apache-2.0
"""What a Python job needs of Fairlead: progress, finished checkpoints, and a warning before it is stopped.

One file, no dependencies, works unchanged outside Fairlead (then nothing is reported). Copy it beside your program.

    import fairlead_job as fairlead

    fairlead.checkpoint_on_signal()
    start = load(fairlead.resume_from()) if fairlead.resume_from() else 0
    for step in range(start, steps):
        train(step)
        if fairlead.checkpoint_wanted() or step % 500 == 0:
            path = save(fairlead.checkpoint_dir(), step)      # write, fsync, rename: then it is complete
            fairlead.report(step, checkpoint=path)
"""

import json
import os
import signal
import socket

_wanted = False


def rank():
    return int(os.environ.get("RANK", "0"))


def world_size():
    return int(os.environ.get("WORLD_SIZE", "1"))


def checkpoint_dir():
    """The folder for checkpoints, the same for every rank and attempt; the current one outside Fairlead."""
    return os.environ.get("FAIRLEAD_CHECKPOINT_DIR", ".")


def resume_from():
    """Path of the newest complete checkpoint, None on a fresh start."""
    return os.environ.get("FAIRLEAD_RESUME_FROM") or None


def checkpoint_on_signal(number=signal.SIGUSR1):
    """Makes checkpoint_wanted() true when Fairlead warns with this signal (`checkpoint: {how: signal, signal: USR1}`)."""

    def note(signum, frame):
        global _wanted
        _wanted = True

    signal.signal(number, note)


def checkpoint_wanted():
    """True once after each warning."""
    global _wanted
    wanted, _wanted = _wanted, False
    return wanted


def report(step, checkpoint=None, timeout=30.0):
    """Tells Fairlead of progress and, with `checkpoint`, of one that is complete on disk.

    Returns when the report itself is on disk. Raises RuntimeError with the reason when it is refused.
    """
    path = os.environ.get("FAIRLEAD_REPORT_SOCKET")
    if not path:
        return
    message = {"step": int(step)}
    if checkpoint is not None:
        message["checkpoint"] = str(checkpoint)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(timeout)
        s.connect(path)
        s.sendall(json.dumps(message).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = s.recv(4096)
            if not part:
                break
            answer += part
    result = json.loads(answer or b'{"ok": false, "error": "no answer"}')
    if not result.get("ok"):
        raise RuntimeError("Fairlead refused the report: " + str(result.get("error")))


class World:
    """Who belongs to the job while it runs: ranks may leave and come (`tasks: 2..4`, or `rejoin: true`).

        world = fairlead.World()
        while training:
            step()
            if world.changed():                 # look between two steps, in all ranks at the same step
                leave_the_group()
                if world.rank < 0:
                    sys.exit(0)                 # this rank is no longer needed
                join_a_group(world.rank, world.size)
    """

    def __init__(self):
        self.generation, self.rank, self.size = 0, rank(), world_size()
        self.ranks, self._socket, self._text = list(range(self.size)), None, b""
        path = os.environ.get("FAIRLEAD_REPORT_SOCKET")
        if not path:
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._socket.sendall(b'{"watch": true}\n')
        self._socket.setblocking(False)
        with open(os.environ["FAIRLEAD_WORLD_FILE"]) as f:
            self._take(json.load(f))

    def _take(self, told):
        me = int(os.environ["FAIRLEAD_RANK"])
        self.generation, self.size, self.ranks = told["generation"], told["size"], told.get("ranks", [])
        self.rank = told["rank"] if "rank" in told else self.ranks.index(me) if me in self.ranks else -1

    def fileno(self):
        return self._socket.fileno()

    def changed(self):
        """True when it is another one than at the last call; `rank`, `size` and `ranks` say what it is now."""
        before = self.generation
        while self._socket:
            try:
                part = self._socket.recv(65536)
            except BlockingIOError:
                break
            if not part:
                self._socket = None
            self._text += part
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            told = json.loads(line)
            if told.get("notice") == "resize" and told["generation"] > self.generation:
                self._take(told)
        return self.generation != before
