"""Items on the cluster that joblib is configured with, if it is one of Dask or Ray.

joblib itself waits forever for a task that Dask has given up, because its workers died, and from Ray it gets results
only when all are done. Both run the tasks of a worker that has died again, and say when they give one up.
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
_PATIENCE = 5.0  # seconds between two looks at how large the cluster is


class Cluster(NamedTuple):
    """How to write a function down for a cluster, how to give it a call, and how many cores it has now."""

    packed: Callable[[Any], bytes]
    submit: Callable[..., Future[Any]]
    n_cores: Callable[[], int]


def active_cluster() -> Cluster | None:
    """Return the cluster that :func:`joblib.parallel_config` has chosen, if any."""
    backend, _ = get_active_backend()
    match type(backend).__name__:
        case "DaskDistributedBackend":
            return _dask(backend.client)
        case "RayBackend":
            return _ray()
    return None


def _dask(client: Any) -> Cluster:
    without = [worker for worker, found in client.run(find_spec, "castlereg").items() if found is None]
    if without:  # they would end, and their items wait forever
        raise ModuleNotFoundError(f"castlereg is not installed on the workers {', '.join(without)}")
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
    """A function that is unpacked when it is called: a module that a worker does not have is an error of the item."""

    content: bytes

    def __call__(self, item: Any) -> Any:
        return pickle.loads(self.content)(item)


def run_on_cluster(
    cluster: Cluster, function: Callable[[Any], Any], items: Iterator[tuple[str, Any]]
) -> Iterator[tuple[str, Done]]:
    """Run items on a cluster; yield each with its key as it is done."""
    packed = _Packed(cluster.packed(function))
    running: dict[Future[Any], tuple[str, Any]] = {}
    n_cores, asked = 1, -float("inf")
    try:
        while True:
            if time.monotonic() - asked >= _PATIENCE:
                n_cores, asked = max(1, cluster.n_cores()), time.monotonic()
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
