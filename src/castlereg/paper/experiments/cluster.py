"""Run experiments of the command line on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from joblib import parallel_config

_PATIENCE = "10s"  # for a scheduler to answer


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Run joblib on a Dask cluster.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('--cluster needs Dask: install it with pip install "castlereg[dask]"') from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler responds at {address}: start one with `dask scheduler`") from error
    with client, parallel_config("dask", client=client):
        yield
