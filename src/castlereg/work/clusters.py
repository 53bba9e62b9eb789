"""Run items on the Dask or Ray cluster that joblib is configured with.

joblib itself waits forever for a task that Dask gave up because its workers died, and it returns results from Ray only
when all are done. Dask and Ray rerun the tasks of a worker that died, and report the tasks that they give up.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

from joblib.parallel import get_active_backend

from castlereg.work.one_item import lost_item, run_item
from castlereg.work.results import Done

_AHEAD = 2  # items per core that are sent to the cluster
_PATIENCE = 5.0  # seconds between two checks of the size of the cluster


class Cluster(NamedTuple):
    """Functions that pickle a function for a cluster, submit a call, and return its current number of cores."""

    packed: Callable[[Any], bytes]
    submit: Callable[..., Future[Any]]
    n_cores: Callable[[], int]


def active_cluster() -> Cluster | None:
    """Return the cluster chosen by :func:`joblib.parallel_config`, if any."""
    backend, _ = get_active_backend()
    match type(backend).__name__:
        case "DaskDistributedBackend":
            return _dask(backend.client)
        case "RayBackend":
            return _ray()
    return None


def _dask(client: Any) -> Cluster:
    without = [worker for worker, spec in client.run(find_spec, "castlereg").items() if spec is None]
    if without:  # these workers would exit, and their items would wait forever
        raise ModuleNotFoundError(f"castlereg is not installed on the workers {', '.join(without)}; install it there")
    submit = client.get_executor(pure=False).submit
    return Cluster(import_module("cloudpickle").dumps, submit, lambda: sum(client.ncores().values()))


def _ray() -> Cluster:
    ray: Any = import_module("ray")
    if not ray.is_initialized():
        ray.init()

    def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = ray.remote(function).remote(*arguments).future()
        return future

    return Cluster(ray.cloudpickle.dumps, submit, lambda: int(ray.cluster_resources().get("CPU", 0)))


@dataclass(frozen=True)
class _Packed:
    """A function that is unpickled when it is called, so that a module missing on a worker is an error of the item."""

    content: bytes

    def __call__(self, item: Any) -> Any:
        return pickle.loads(self.content)(item)


def run_on_cluster(
    cluster: Cluster, function: Callable[[Any], Any], items: Iterator[tuple[str, Any]]
) -> Iterator[tuple[str, Done]]:
    """Run items on a cluster; yield each with its key when it is done."""
    packed = _Packed(cluster.packed(function))
    running: dict[Future[Any], tuple[str, Any]] = {}
    n_cores, checked_at = 1, -float("inf")
    try:
        while True:
            if time.monotonic() - checked_at >= _PATIENCE:
                n_cores, checked_at = max(1, cluster.n_cores()), time.monotonic()
            n_free = _AHEAD * n_cores - len(running)
            for key, item in islice(items, max(0, n_free)):
                running[cluster.submit(run_item, packed, key, item)] = key, item
            if not running:
                return
            for future in wait(running, _PATIENCE, FIRST_COMPLETED).done:
                key, item = running.pop(future)
                try:
                    yield future.result()
                except Exception as error:  # errors of the function are in the result
                    yield key, lost_item(item, error)
    finally:
        for future in running:
            future.cancel()
