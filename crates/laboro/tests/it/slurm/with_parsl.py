"""Parsl's SlurmProvider with its high-throughput executor against our commands."""

import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def triple(number):
    return 3 * number


if __name__ == "__main__":
    provider = SlurmProvider(
        partition="default",
        init_blocks=1,
        max_blocks=1,
        nodes_per_block=1,
        walltime="00:05:00",
        launcher=SimpleLauncher(),
        worker_init=f"export PATH={sys.argv[2]}:$PATH",
    )
    executor = HighThroughputExecutor(
        label="hub",
        address="127.0.0.1",
        loopback_address="127.0.0.1",
        max_workers_per_node=1,
        provider=provider,
        encrypted=False,
    )
    with parsl.load(Config(executors=[executor], run_dir=sys.argv[1], strategy="none")):
        assert [triple(number).result() for number in range(6)] == [0, 3, 6, 9, 12, 15]
    print("parsl ok")
