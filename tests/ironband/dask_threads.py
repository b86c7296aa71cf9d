"""A Dask scheduler and its workers in threads of this process, which others can reach."""

from contextlib import contextmanager


@contextmanager
def dask_threads(workers: int):
    """Its address."""
    # Takes a second, and each of pytest-xdist's workers collects all tests.
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster.scheduler_address
