# SPDX-License-Identifier: Apache-2.0
"""Open MPI's own mpirun inside of a gang on two simulated nodes: the host file that Fairlead writes, and who finds whom."""

import re

import pytest

import harness

# Open MPI's library by itself: its headers and compilers would be another package.
PROGRAM = r"""
import ctypes, os
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
at = lambda name: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
world, rank, size, sum_ = at("ompi_mpi_comm_world"), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mine = ctypes.c_int(1 << rank.value)
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(sum_), 1, at("ompi_mpi_int"), at("ompi_mpi_op_sum"), world)
print("rank %d of %d sum %d RANK=%s\n" % (rank.value, size.value, sum_.value, os.environ.get("RANK")), end="", flush=True)
mpi.MPI_Finalize()
"""
# It refuses root unless told so, and spins for a core that it need not share.
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


@pytest.fixture(scope="module")
def daemon():
    with harness.Daemon("sim:2x2xH100-80GB") as d:
        yield d


def output_of(d, number, rank=0):
    job = d.wait(number)
    out, trouble = (d.run("logs", *more, "%d/%d" % (number, rank)).out for more in ((), ("--stderr",)))
    assert job["state"] == "succeeded", (job, out, trouble)
    return out


def submit(d, tasks, gpus, script, name):
    client = harness.Client(d.data)
    return client.submit({"name": name, "tasks": tasks, "gpus": gpus, "script": script, "env": dict(SETTINGS, PROGRAM=PROGRAM)}, name)


@pytest.mark.parametrize("tasks,gpus", [(2, 2), (4, 1)])
def test_mpirun_starts_a_process_for_each_gpu_of_the_gang(daemon, tasks, gpus):
    script = """
[ "$RANK" = 0 ] || exit 0
exec env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u LOCAL_WORLD_SIZE mpirun --hostfile "$FAIRLEAD_HOSTFILE" /usr/bin/python3 -c "$PROGRAM"
"""
    number = submit(daemon, tasks, gpus, script, "mpirun-%d" % tasks)
    lines = sorted(line for line in output_of(daemon, number).splitlines() if line)
    assert lines == ["rank %d of 4 sum 15 RANK=None" % rank for rank in range(4)]


def test_a_rank_that_fairlead_starts_is_alone_in_mpi(daemon):
    """As docs/task-environment.md warns: the variables of its name make no world for Open MPI's library."""
    number = submit(daemon, 2, 2, 'exec /usr/bin/python3 -c "$PROGRAM"', "no-mpirun")
    assert [output_of(daemon, number, rank).strip() for rank in range(2)] == ["rank 0 of 1 sum 1 RANK=%d" % rank for rank in range(2)]


def read_as_deepspeed(text):
    """Its documented format: `host slots=N` a line, empty lines and # comments between them, no host twice."""
    hosts = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            found = re.fullmatch(r"(\S+)\s+slots=(\d+)", line)
            assert found, "no line of a host file: " + line
            assert found.group(1) not in hosts, found.group(1) + " is there twice"
            hosts[found.group(1)] = int(found.group(2))
    return hosts


def test_deepspeed_can_read_the_host_file(daemon):
    number = submit(daemon, 2, 2, 'cat "$FAIRLEAD_HOSTFILE"; echo "# $FAIRLEAD_GPUS GPUs"', "hosts")
    for rank in range(2):
        text = output_of(daemon, number, rank)
        assert read_as_deepspeed(text) == {"127.0.0.1": 4} and "# 2 GPUs" in text
