"""dask-jobqueue's SLURMCluster against our commands: workers come as jobs, work, and are cancelled."""

import sys

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

if __name__ == "__main__":
    cluster = SLURMCluster(
        cores=1,
        memory="500MB",
        walltime="00:05:00",
        interface="lo",
        local_directory=sys.argv[1],
        log_directory=sys.argv[1],
        python=sys.executable,
        scheduler_options={"dashboard": False},
    )
    cluster.scale(jobs=2)
    client = Client(cluster)
    assert client.gather(client.map(lambda number: number + 1, range(10))) == list(range(1, 11))
    client.close()
    cluster.close()
    print("dask ok")
