"""A Dask cluster of two worker processes on this machine."""

import logging

import pytest


@pytest.fixture(scope="session")
def client():
    """The client of the cluster, which no test finds as the current one."""
    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # of workers that are killed on purpose
    dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"})  # machines may be busy
    settings = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        LocalCluster(silence_logs=logging.CRITICAL, **settings) as cluster,
        Client(cluster, set_as_default=False) as found,
    ):
        yield found
