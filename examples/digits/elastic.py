#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training as train.py, whose ranks may leave and come while it runs; the weights do not show it.

Each batch is cut into a fixed number of pieces (--pieces), whatever the number of ranks; piece p is the work of member
p % size. Member 0 adds the gradients of the pieces in the order of pieces. So the order of floating-point additions does not depend on
how many ranks there were, and the weights after N steps depend on N alone: the SHA-256 is that of one rank, undisturbed.

    fairlead run --tasks 2..4 --gpus 1 --checkpoint signal -- python3 examples/digits/elastic.py --steps 2000

When Fairlead tells of a change (docs/task-environment.md, "Ranks that leave and come"), member 0 says so with its next sum: all
finish the same step, part, and meet again as the members of the new group. Whoever is furthest hands its weights to those that came.
"""

import argparse
import hashlib
import os
import select
import socket
import struct
import sys
import time

from train import batch_of, fairlead, gradients, initial_weights, load, load_digits, np, receive, save

GO_ON, PART, FINISH = 0, 1, 2
HELLO = struct.Struct("!IIQ")  # generation, rank, step
PATIENCE_S = 60


class Parted(Exception):
    """The group is no more: a member is gone, or who belongs to it has changed."""


class Group:
    """The members of one generation: member 0 listens, the others connect. The weights are those of whoever is furthest."""

    def __init__(self, world, step, weights):
        self.rank, self.size, self.peers, self.root = world.rank, world.size, {}, None
        steps = {0: step}
        try:
            if self.rank == 0:
                self.gather(world, steps)
            else:
                self.root = self.connect(world, step)
            self.step = self.agree(steps, weights)
        except (OSError, struct.error) as e:
            self.close()
            raise Parted from e
        except Parted:
            self.close()
            raise

    def gather(self, world, steps):
        with socket.create_server(address(), backlog=self.size) as server:
            while len(self.peers) < self.size - 1:
                ready, _, _ = select.select([server, *watched(world)], [], [], PATIENCE_S)
                if world.changed() or not ready:
                    raise Parted
                if server not in ready:
                    continue
                peer, _ = server.accept()
                peer.settimeout(PATIENCE_S)
                generation, rank, step = HELLO.unpack(receive(peer, HELLO.size))
                if generation == world.generation:
                    self.peers[rank], steps[rank] = peer, step
                else:
                    peer.close()  # it has not heard yet, or we have not: it tries again
        for peer in self.peers.values():
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(b"!")

    def connect(self, world, step):
        """Until member 0 says that all are there; it hangs up on those of another generation."""
        end = time.monotonic() + PATIENCE_S
        while not world.changed():
            if time.monotonic() > end:
                raise Parted
            try:
                root = socket.create_connection(address(), timeout=PATIENCE_S)
                root.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                root.sendall(HELLO.pack(world.generation, self.rank, step))
                ready, _, _ = select.select([root, *watched(world)], [], [], PATIENCE_S)
                if root in ready and root.recv(1) == b"!":
                    return root
                root.close()
            except OSError:
                pass
            time.sleep(0.02)
        raise Parted

    def agree(self, steps, weights):
        if self.rank != 0:
            return take_state(self.root, weights) if receive(self.root, 1) == b"t" else self.give(weights)
        furthest = max(steps, key=lambda rank: (steps[rank], -rank))
        if furthest != 0:
            self.peers[furthest].sendall(b"g")
            copy(weights, receive(self.peers[furthest], size_of(weights)))
        state = struct.pack("!Q", steps[furthest]) + raw(weights)
        for rank, peer in self.peers.items():
            peer.sendall(state if rank == furthest else b"t" + state)
        return steps[furthest]

    def give(self, weights):
        self.root.sendall(raw(weights))
        return take_state(self.root, weights)

    def sum(self, mine, pieces, word):
        """Adds the gradients of all pieces in their order; `word` is member 0's, and told to all."""
        try:
            if self.rank != 0:
                self.root.sendall(b"".join(part.tobytes() for part in mine))
                word, size = struct.unpack("!BI", receive(self.root, 5))
                return np.frombuffer(receive(self.root, size)).copy(), word
            parts = {p: part for p, part in zip(range(0, pieces, self.size), mine)}
            for rank, peer in self.peers.items():
                for p in range(rank, pieces, self.size):
                    parts[p] = np.frombuffer(receive(peer, mine[0].nbytes))
            total = parts[0].copy()
            for p in range(1, pieces):
                total += parts[p]
            for peer in self.peers.values():
                peer.sendall(struct.pack("!BI", word, total.nbytes) + total.tobytes())
            return total, word
        except OSError as e:
            raise Parted from e

    def close(self):
        for connection in [*self.peers.values(), self.root]:
            if connection:
                connection.close()


def address():
    return os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))


def watched(world):
    """Outside Fairlead nobody tells of a change."""
    return [world] if "FAIRLEAD_REPORT_SOCKET" in os.environ else []


def raw(weights):
    return b"".join(w.tobytes() for w in weights)


def size_of(weights):
    return sum(w.nbytes for w in weights)


def copy(weights, data):
    at = 0
    for w in weights:
        w[...] = np.frombuffer(data, count=w.size, offset=at).reshape(w.shape)
        at += w.nbytes


def take_state(connection, weights):
    (step,) = struct.unpack("!Q", receive(connection, 8))
    copy(weights, receive(connection, size_of(weights)))
    return step


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=10**9, help="after so many it ends")
    p.add_argument("--until", help="it ends when this file is there")
    p.add_argument("--every", type=int, default=100, help="steps between checkpoints (default 100)")
    p.add_argument("--pace", type=float, default=0, help="no more steps in a second than this; 0: as fast as it can")
    p.add_argument("--pieces", type=int, default=4, help="of each batch (default 4), at least as many as ranks")
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--rate", type=float, default=0.2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", help="the steps made and the SHA-256 of the weights are written into this file")
    return p.parse_args()


class Training:
    def __init__(self, a):
        self.a = a
        self.x, self.y = load_digits()
        self.train = len(self.y) - len(self.y) // 5
        self.weights = initial_weights(a.hidden, a.seed)
        self.step = load(fairlead.resume_from(), self.weights) if fairlead.resume_from() else 0
        self.next_at = time.monotonic()

    def over(self):
        return self.step + 1 >= self.a.steps or (self.a.until and os.path.exists(self.a.until))

    def gradient(self, piece):
        rows = batch_of(self.step, self.train, self.a.batch, self.a.seed)
        mine = rows[piece * self.a.batch // self.a.pieces : (piece + 1) * self.a.batch // self.a.pieces]
        return np.concatenate([g.ravel() for g in gradients(self.weights, self.x[mine], self.y[mine], self.a.batch)])

    def make_step(self, group, word):
        a = self.a
        flat, word = group.sum([self.gradient(p) for p in range(group.rank, a.pieces, group.size)], a.pieces, word)
        at = 0
        for w in self.weights:
            w -= a.rate * flat[at : at + w.size].reshape(w.shape)
            at += w.size
        self.step += 1
        return word

    def keep_pace(self):
        if self.a.pace:
            self.next_at = max(self.next_at + 1 / self.a.pace, time.monotonic() - 1)
            time.sleep(max(0, self.next_at - time.monotonic()))

    def run(self, group, world):
        """Steps, until it is over or the group parts."""
        while True:
            word = GO_ON
            if group.rank == 0:
                self.keep_pace()
                word = PART if world.changed() else FINISH if self.over() else GO_ON
            word = self.make_step(group, word)
            if group.rank == 0 and word != FINISH and (self.step % self.a.every == 0 or fairlead.checkpoint_wanted()):
                fairlead.report(self.step, checkpoint=save(fairlead.checkpoint_dir(), self.step, self.weights))
            if word != GO_ON:
                return word

    def tell(self):
        h = np.tanh(self.x[self.train :] @ self.weights[0] + self.weights[1])
        right = np.mean((h @ self.weights[2] + self.weights[3]).argmax(axis=1) == self.y[self.train :])
        digest = hashlib.sha256(raw(self.weights)).hexdigest()
        print("accuracy on unseen digits %.1f %%" % (100 * right), flush=True)
        print("sha256 of the weights after %d steps %s" % (self.step, digest), flush=True)
        if self.a.out:
            with open(self.a.out + ".part", "w") as f:
                f.write("%d %s\n" % (self.step, digest))
            os.rename(self.a.out + ".part", self.a.out)


def main():
    fairlead.checkpoint_on_signal()
    training, world, word = Training(arguments()), fairlead.World(), PART
    while word != FINISH:
        world.changed()
        if world.rank < 0:
            sys.exit(0)  # this rank is no longer needed
        try:
            group = Group(world, training.step, training.weights)
        except Parted:
            continue
        training.step = group.step
        if group.rank == 0:
            print("from step %d on with %d ranks" % (training.step, group.size), flush=True)
        try:
            word = training.run(group, world)
        except Parted:
            word = PART
        first = group.rank == 0
        group.close()
    if first:
        training.tell()


if __name__ == "__main__":
    main()
