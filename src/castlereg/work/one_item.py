"""Run one item in a worker."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from joblib import parallel_config

from castlereg.work.results import Done


def use_one_core() -> None:
    """Let this process train on one core, so that results do not depend on how many items run in parallel.

    Call it before JAX starts its devices. In a process that has started them with one device, it changes nothing.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    if "jax" not in sys.modules:  # not every item needs JAX
        os.environ.setdefault("JAX_NUM_CPU_DEVICES", "1")
        return
    config: Any = sys.modules["jax"].config
    if config.jax_num_cpu_devices < 0:
        try:
            config.update("jax_num_cpu_devices", 1)
        except RuntimeError:
            pass  # the devices have started


def run_item(function: Callable[[Any], Any], key: str, item: Any) -> tuple[str, Done]:
    """Call a function on an item in this process, on one core; an error becomes a message."""
    use_one_core()
    begun = time.perf_counter()
    result, message = None, ""
    try:
        with parallel_config("sequential"):  # for joblib calls inside the function
            result = function(item)
    except Exception as error:  # the other items continue
        message = f"{type(error).__name__}: {error}"
    return key, Done(item, result, time.perf_counter() - begun, message)


def lost_item(item: Any, error: Exception) -> Done:
    """Return an item as failed because its workers died repeatedly."""
    reason = f"its workers died ({type(error).__name__}), perhaps out of memory; run again with fewer workers"
    return Done(item, None, 0.0, reason)
