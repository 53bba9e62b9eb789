"""A process that runs cases: ``python -m fuzz.worker PART FOLDER`` answers each seed with a line of JSON."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

MODULES = {
    "tables": "fuzz.tables",
    "files": "fuzz.model_files",
    "csv": "fuzz.table_files",
    "kills": "fuzz.kills",
    "limits": "fuzz.limits",
    "threads": "fuzz.threads",
    "native": "fuzz.native_shapes",
}


_MOST_MEMORY = {"files": 8 << 30, "csv": 8 << 30}  # a damaged file may claim a huge size


def prepare() -> None:
    """Configure JAX to compile quickly on one device, with its own cache of compiled programs."""
    import jax

    config: Any = jax.config
    config.update("jax_disable_most_optimizations", True)
    config.update("jax_num_cpu_devices", 1)
    config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir()) / "castlereg-fuzz-programs"))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def run_case(part: str, seed: int, folder: Path) -> dict[str, Any]:
    """Run one case in an empty folder; return its counts or its finding."""
    module = importlib.import_module(MODULES[part])
    start = time.perf_counter()
    result: dict[str, Any] = {"seed": seed}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        try:
            result["counts"] = module.check(seed, Path(place))
        except Exception as error:
            result["finding"] = f"{type(error).__name__}: {error}"[:2000]
            result["trace"] = traceback.format_exc()[-6000:]
    return {**result, "seconds": round(time.perf_counter() - start, 3)}


def main() -> None:
    """Answer seeds until there are no more; output of libraries goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare()
    part, folder = sys.argv[1], Path(sys.argv[2])
    if part in _MOST_MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY[part],) * 2)
    with tempfile.TemporaryDirectory(dir=folder) as own:  # next to the files that cases share
        for line in sys.stdin:
            answers.write(json.dumps(run_case(part, int(line), Path(own))) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
