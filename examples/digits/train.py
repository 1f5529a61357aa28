#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on 1,797 handwritten digits, that resumes bit for bit.

Every rank holds the whole model (64-H-10) and computes the gradient on its part of each batch. Rank 0 gathers the gradients in
the order of ranks, adds them in that order, and sends the sum back: one fixed order of floating-point additions. The
batches follow from the step number alone. So the weights after step N depend on N and the number of ranks only, not on how
often the job was stopped on the way: the SHA-256 printed at the end is that of an undisturbed run.

Rank 0 saves a checkpoint every --every steps and when Fairlead warns (SIGUSR1), atomically: write, fsync, rename, fsync of the
folder, then the report. The rendezvous (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE) is what Fairlead gives to each task.

With PyTorch installed, --torch computes the same gradients with it.
"""

import argparse
import csv
import gzip
import hashlib
import importlib.util
import os
import socket
import struct
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # one BLAS thread: the order of additions inside a product is fixed too

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import fairlead_job as fairlead


def load_digits():
    """The UCI handwritten digits as scikit-learn ships them; only the data file of the package is read."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None:
        sys.exit("the data set comes with the package scikit-learn, which is not installed: scripts/quickstart installs it")
    path = os.path.join(list(spec.submodule_search_locations)[0], "datasets", "data", "digits.csv.gz")
    with gzip.open(path, "rt") as f:
        rows = np.array([[float(x) for x in row] for row in csv.reader(f)])
    return rows[:, :64] / 16.0, rows[:, 64].astype(np.int64)


def initial_weights(hidden, seed):
    r = np.random.Generator(np.random.PCG64(seed))
    return [r.normal(0, 0.2, (64, hidden)), np.zeros(hidden), r.normal(0, 0.2, (hidden, 10)), np.zeros(10)]


def batch_of(step, count, size, seed):
    """Row numbers of this step's batch: a permutation per epoch, made from the seed and the epoch alone."""
    per_epoch = count // size
    epoch, part = divmod(step, per_epoch)
    order = np.random.Generator(np.random.PCG64([seed, epoch])).permutation(count)
    return order[part * size : (part + 1) * size]


def gradients(weights, x, y, total):
    """Of the summed cross entropy over this rank's rows, divided by the rows of the whole batch."""
    w1, b1, w2, b2 = weights
    h = np.tanh(x @ w1 + b1)
    z = h @ w2 + b2
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1.0
    p /= total
    back = (p @ w2.T) * (1.0 - h * h)
    return [x.T @ back, back.sum(axis=0), h.T @ p, p.sum(axis=0)]


def gradients_torch(weights, x, y, total):
    import torch

    torch.set_num_threads(1)
    tensors = [torch.tensor(w, requires_grad=True) for w in weights]
    z = torch.tanh(torch.tensor(x) @ tensors[0] + tensors[1]) @ tensors[2] + tensors[3]
    loss = torch.nn.functional.cross_entropy(z, torch.tensor(y), reduction="sum") / total
    loss.backward()
    return [t.grad.numpy() for t in tensors]


# --- ranks over TCP -----------------------------------------------------------------------------------------------


def receive(connection, size):
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(1 << 20, size - len(data)))
        if not part:
            raise ConnectionError("another rank is gone")
        data += part
    return bytes(data)


class Ranks:
    """Rank 0 listens, the others connect; sum() adds vectors in the order of ranks and gives everybody the same bytes."""

    def __init__(self, rank, size, host, port):
        self.rank, self.size, self.peers, self.root = rank, size, {}, None
        if size == 1:
            return
        if rank == 0:
            with socket.create_server((host, port), backlog=size) as server:
                server.settimeout(60)
                while len(self.peers) < size - 1:
                    connection, _ = server.accept()
                    connection.settimeout(60)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    (peer,) = struct.unpack("!I", receive(connection, 4))
                    self.peers[peer] = connection
            return
        deadline = time.monotonic() + 60
        while True:
            try:
                self.root = socket.create_connection((host, port), timeout=60)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        self.root.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.root.sendall(struct.pack("!I", rank))

    def sum(self, vector, flag):
        """The sum of all ranks' vectors, and rank 0's flag."""
        if self.size == 1:
            return vector, flag
        if self.rank != 0:
            self.root.sendall(vector.tobytes())
            answer = receive(self.root, vector.nbytes + 1)
            return np.frombuffer(answer[1:]).copy(), answer[0] == 1
        total = vector.copy()
        for peer in range(1, self.size):
            total += np.frombuffer(receive(self.peers[peer], vector.nbytes))
        answer = (b"\1" if flag else b"\0") + total.tobytes()
        for peer in range(1, self.size):
            self.peers[peer].sendall(answer)
        return total, flag


# --- checkpoints ---------------------------------------------------------------------------------------------------


def save(folder, step, weights):
    """Complete under its name or not there at all."""
    path = os.path.join(folder, "step-%08d.ckpt" % step)
    data = struct.pack("!Q", step) + b"".join(w.tobytes() for w in weights)
    data += hashlib.sha256(data).digest()
    with open(path + ".part", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".part", path)
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    return path


def load(path, weights):
    with open(path, "rb") as f:
        data = f.read()
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        sys.exit("checkpoint %s is damaged" % path)
    at = 8
    for w in weights:
        w[...] = np.frombuffer(data, count=w.size, offset=at).reshape(w.shape)
        at += w.nbytes
    return struct.unpack("!Q", data[:8])[0]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--every", type=int, default=500, help="steps between checkpoints (default 500)")
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--rate", type=float, default=0.2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--torch", action="store_true", help="compute gradients with PyTorch when it is installed")
    p.add_argument("--out", help="rank 0 writes the SHA-256 of the weights into this file")
    a = p.parse_args()

    fairlead.checkpoint_on_signal()
    x, y = load_digits()
    train = len(y) - len(y) // 5
    compute = gradients_torch if a.torch and importlib.util.find_spec("torch") else gradients
    weights = initial_weights(a.hidden, a.seed)
    first = load(fairlead.resume_from(), weights) if fairlead.resume_from() else 0
    rank, size = fairlead.rank(), fairlead.world_size()
    if rank == 0:
        print("from step %d of %d, %d ranks" % (first, a.steps, size), flush=True)
    ranks = Ranks(rank, size, os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500")))

    for step in range(first, a.steps):
        rows = batch_of(step, train, a.batch, a.seed)
        mine = rows[rank * a.batch // size : (rank + 1) * a.batch // size]
        flat = np.concatenate([g.ravel() for g in compute(weights, x[mine], y[mine], a.batch)])
        due = (step + 1) % a.every == 0 or (rank == 0 and fairlead.checkpoint_wanted())
        flat, due = ranks.sum(flat, due)
        at = 0
        for w in weights:
            w -= a.rate * flat[at : at + w.size].reshape(w.shape)
            at += w.size
        if due and rank == 0 and step + 1 < a.steps:
            path = save(fairlead.checkpoint_dir(), step + 1, weights)
            fairlead.report(step + 1, checkpoint=path)
            print("step %d saved" % (step + 1), flush=True)
        elif rank == 0 and (step + 1) % 100 == 0:
            fairlead.report(step + 1)

    if rank == 0:
        h = np.tanh(x[train:] @ weights[0] + weights[1])
        right = np.mean((h @ weights[2] + weights[3]).argmax(axis=1) == y[train:])
        digest = hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest()
        print("accuracy on unseen digits %.1f %%" % (100 * right), flush=True)
        print("sha256 of the weights %s" % digest, flush=True)
        if a.out:
            with open(a.out, "w") as f:
                f.write(digest + "\n")


if __name__ == "__main__":
    main()
