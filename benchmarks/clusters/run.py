"""Run the grid in one way, and write a line of figures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import parallel_config

from benchmarks.clusters.grid import ITEMS, digest, fit, search
from castlereg.work import run_items

RESULTS = Path(__file__).with_name("results.csv")
WORKERS = 2
KILL_AFTER = 300  # fits
WAYS = ("serial", "local", "dask", "ray", "array")


def measure(way: str, by: str, kills: bool, path: Path = RESULTS) -> None:
    """Run the grid as work items ("items") or by scikit-learn ("search"), and append its times."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, _backend(way):
        started = time.perf_counter()
        if way == "array":
            results = _array(Path(folder), kills)
        elif by == "search":
            results = search()
        else:
            if kills:
                _kill_a_worker(Path(folder), _workers)
            results = run_items(fit, ITEMS, folder)
        ended = time.perf_counter()
        line = {
            "way": way,
            "by": by,
            "workers": 1 if way == "serial" else WORKERS,
            "killed": int(kills),
            "fits": len(results),
            "start_seconds": round(started - begun, 1),
            "wall_seconds": round(ended - started, 1),
            "processor_seconds": round(processor_seconds(), 1),
            "results": digest(results),
        }
    print(line, flush=True)
    pd.DataFrame([line]).to_csv(path, mode="a", index=False, header=not path.exists())


@contextmanager
def _backend(way: str) -> Iterator[None]:
    """Have joblib run in this process, in two, or on a cluster with two workers."""
    if way == "local":
        with parallel_config("loky", n_jobs=WORKERS):
            yield
    elif way == "dask":
        from distributed import Client, LocalCluster

        options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        with (
            LocalCluster(host="127.0.0.1", silence_logs=50, **options) as cluster,
            Client(cluster),
            parallel_config("dask"),
        ):
            yield
    elif way == "ray":
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # loopback only
        import ray
        from ray.util.joblib import register_ray

        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
        register_ray()
        with parallel_config("ray", n_jobs=-1):
            yield
        ray.shutdown()
    else:
        yield


def _array(folder: Path, kills: bool) -> list[Any]:
    """Run the grid as elements of an array that share a folder; one may be killed."""
    command = [sys.executable, "-m", "benchmarks.clusters", "element", str(folder)]
    elements = [subprocess.Popen(command) for _ in range(WORKERS)]
    if kills:
        _kill_a_worker(folder, lambda: [elements[0].pid])
    codes = [element.wait() for element in elements]
    if codes != [-signal.SIGKILL if kills else 0, 0]:
        raise RuntimeError(f"the elements ended with {codes}")
    return run_items(fit, ITEMS, folder)


def _kill_a_worker(folder: Path, workers: Callable[[], list[int]]) -> None:
    """Kill a worker, in the background, when some fits are done."""

    def kill() -> None:
        while sum(1 for _ in folder.glob("*.json")) < KILL_AFTER:
            time.sleep(0.05)
        chosen = workers()[0]
        os.kill(chosen, signal.SIGKILL)
        print(f"killed worker {chosen}", flush=True)

    threading.Thread(target=kill, daemon=True).start()


def _workers() -> list[int]:
    """Return the processes below this one that have loaded XLA, as only workers do."""
    return [process for process in _processes() if process != os.getpid() and "jaxlib" in _read(process, "maps")]


def _processes() -> dict[int, list[int]]:
    """Return this process and all below it, with their clock ticks: own and of children that have ended."""
    known: dict[int, tuple[int, list[int]]] = {}
    for process in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        fields = _read(process, "stat").rpartition(")")[2].split()
        if fields:
            known[process] = int(fields[1]), [int(ticks) for ticks in fields[11:15]]
    below = {os.getpid()}
    while more := {process for process, (parent, _) in known.items() if parent in below} - below:
        below |= more
    return {process: known[process][1] for process in below}


def _read(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended
        return ""


def processor_seconds() -> float:
    """Return the processor's seconds of this process and all that it has started, those that ended included."""
    return sum(sum(ticks) for ticks in _processes().values()) / os.sysconf("SC_CLK_TCK")
