"""A Dask cluster for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from joblib import parallel_config

_PATIENCE = "10s"  # for a scheduler to answer


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Have joblib run on a Dask cluster.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('--cluster needs Dask: pip install "castlereg[dask]"') from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {address}: start one with `dask scheduler`") from error
    with client, parallel_config("dask", client=client):
        yield
