# SPDX-License-Identifier: Apache-2.0
"""PyTorch and DeepSpeed themselves inside of gangs on two simulated nodes of two GPUs; scripts/campaign-launchers runs this.

Each process adds 2 to the power of its rank to a sum over all; of four processes it is 15 in each, or somebody was not there.
"""

import os

import pytest

import harness

BIN = os.environ["FAIRLEAD_LAUNCHERS"]  # the folder of an environment's programs
PROGRAM = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
mine = torch.tensor([2 ** dist.get_rank()])
dist.all_reduce(mine)
print("rank %d of %d local %s sum %d\\n" % (dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"], mine.item()), end="", flush=True)
dist.barrier()
dist.destroy_process_group()
"""
TORCHRUN = 'exec "$BIN"/torchrun --nnodes "$WORLD_SIZE" --node-rank "$RANK" --nproc-per-node "$FAIRLEAD_GPUS" '
WAYS = {  # tasks, GPUs of each, script, whether ranks count within each node
    "torchrun": (2, 2, TORCHRUN + '--master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" "$PROGRAM"', True),
    "torchrun-c10d": (2, 2, TORCHRUN + '--rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" --rdzv-id "$FAIRLEAD_ATTEMPT" "$PROGRAM"', True),
    "no-launcher": (4, 1, 'exec "$BIN"/python "$PROGRAM"', True),
    "deepspeed": (2, 2, '[ "$RANK" = 0 ] || exit 0\nexec "$BIN"/deepspeed --no_ssh_check --hostfile "$FAIRLEAD_HOSTFILE" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" "$PROGRAM"', False),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    program = tmp_path_factory.mktemp("program") / "sum.py"
    program.write_text(PROGRAM)
    with harness.Daemon("sim:2x2xH100-80GB") as d:
        d.program = str(program)
        yield d


@pytest.mark.parametrize("way", list(WAYS))
def test_four_processes_on_two_nodes_find_each_other(daemon, way):
    tasks, gpus, script, by_node = WAYS[way]
    env = {"PROGRAM": daemon.program, "BIN": BIN, "DS_ACCELERATOR": "cpu", "PATH": BIN + ":/usr/bin:/bin"}
    number = harness.Client(daemon.data).submit({"name": way, "tasks": tasks, "gpus": gpus, "script": script, "env": env}, way)
    job = daemon.wait(number, patience=300)
    out, trouble = (daemon.run("logs", "--all-ranks", *more, str(number)).out for more in ((), ("--stderr",)))
    assert job["state"] == "succeeded", (job, out, trouble)
    lines = sorted(line[line.index("rank "):] for line in out.splitlines() if " sum " in line)
    assert lines == ["rank %d of 4 local %d sum 15" % (rank, rank % 2 if by_node else rank) for rank in range(4)], (out, trouble)
