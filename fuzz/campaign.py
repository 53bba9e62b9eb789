"""Run the cases of a part in worker processes, and log every answer immediately."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tqdm.auto import tqdm

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Part:
    """One kind of case."""

    name: str
    about: str
    count: int  # cases of a full campaign
    limit: float = 60.0  # seconds per case; a longer case counts as hanging
    recycle: int = 300  # cases per worker process


PARTS = {
    part.name: part
    for part in (
        Part("tables", "unusual tables: fit, predict, save, load and ONNX", 10_000, recycle=600),
        Part("files", "loading of damaged or edited model files", 5_000, recycle=500),
        Part("csv", "reading of damaged table files", 5_000, recycle=500),
        Part("kills", "commands that are killed while they run", 150, limit=300, recycle=50),
        Part("limits", "commands without enough disk, memory or permissions", 110, limit=300, recycle=40),
        Part("threads", "models used by 50 threads", 20, limit=300, recycle=20),
        Part("native", "random networks trained by the native engine", 2_000, recycle=1_000),
    )
}


class Log:
    """Answers of a part, one line of JSON each; only the last line of a seed counts."""

    def __init__(self, folder: Path, part: str) -> None:
        self.path = folder / f"{part}.jsonl"
        self.answers: dict[int, dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    answer = json.loads(line)
                except ValueError:  # the line that was being written when the campaign was killed
                    continue
                self.answers[answer["seed"]] = answer
        self._file: IO[str] = open(self.path, "a", encoding="utf-8")  # noqa: SIM115
        if self._file.tell() and not self.path.read_bytes().endswith(b"\n"):
            self._file.write("\n")
        self._lock = threading.Lock()

    def add(self, answer: dict[str, Any]) -> None:
        """Store an answer, so it survives if this process is killed."""
        with self._lock:
            self.answers[answer["seed"]] = answer
            self._file.write(json.dumps(answer) + "\n")
            self._file.flush()

    def waiting(self, count: int) -> list[int]:
        """Return the seeds without an answer, or with a finding that may be fixed by now."""
        return [seed for seed in range(count) if "finding" in self.answers.get(seed, {"finding": ""})]

    def findings(self) -> list[dict[str, Any]]:
        """Return the answers that are findings."""
        return [answer for _, answer in sorted(self.answers.items()) if "finding" in answer]

    def totals(self) -> Counter[str]:
        """Sum the counts of all cases."""
        totals: Counter[str] = Counter()
        for answer in self.answers.values():
            totals.update(answer.get("counts", {}))
        return totals

    def seconds(self) -> float:
        """Sum the time of all cases."""
        return sum(answer["seconds"] for answer in self.answers.values())


class Worker:
    """A process that answers seeds, replaced when it crashes or hangs, and after some cases."""

    def __init__(self, part: Part, folder: Path) -> None:
        self.part, self.folder = part, folder
        self._process: subprocess.Popen[str] | None = None
        self._n_cases = 0

    def answer(self, seed: int) -> dict[str, Any]:
        """Run a case; a process that crashes or takes too long is a finding."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        start = time.perf_counter()
        try:
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            line = process.stdout.readline() if select.select([process.stdout], [], [], self.part.limit)[0] else None
        except BrokenPipeError:
            line = ""
        if line:
            self._n_cases += 1
            if self._n_cases >= self.part.recycle:
                self.stop()
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.stop(kill=True)
        finding = (
            f"hangs: no answer in {self.part.limit:g} s" if line is None else f"crashed: exit {process.returncode}"
        )
        return {"seed": seed, "finding": finding, "trace": "", "seconds": round(time.perf_counter() - start, 3)}

    def stop(self, kill: bool = False) -> None:
        """End the process."""
        process, self._process, self._n_cases = self._process, None, 0
        if process is None:
            return
        if kill:
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT), str(ROOT / "src")]).strip(os.pathsep)
            flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false".strip()
            with open(self.folder / f"{self.part.name}.stderr", "ab") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "fuzz.worker", self.part.name, str(work_folder(self.folder, self.part))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": path, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1"},
                )
        return self._process


def work_folder(folder: Path, part: Part) -> Path:
    """Return the folder for the files of cases; each running case has its own folder in it."""
    return folder / f"{part.name}.work"


def run(part: Part, folder: Path, *, count: int, jobs: int, seconds: float | None) -> Log:
    """Run the waiting cases of a part in parallel, until all are done or the time is over."""
    folder.mkdir(parents=True, exist_ok=True)
    work_folder(folder, part).mkdir(exist_ok=True)
    log = Log(folder, part.name)
    seeds = log.waiting(count)
    until = None if seconds is None else time.monotonic() + seconds
    queue, lock = iter(seeds), threading.Lock()
    bar = tqdm(total=count, initial=count - len(seeds), desc=part.name, unit="case", smoothing=0.02, disable=None)

    def next_seeds() -> Iterator[int]:
        while until is None or time.monotonic() < until:
            with lock:
                seed = next(queue, None)
            if seed is None:
                return
            yield seed

    def work() -> None:
        worker = Worker(part, folder)
        try:
            for seed in next_seeds():
                log.add(worker.answer(seed))
                with lock:
                    bar.set_postfix_str(f"{len(log.findings())} findings")
                    bar.update()
        finally:
            worker.stop()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    with bar:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    shutil.rmtree(work_folder(folder, part), ignore_errors=True)
    return log


def reproduce(part: str, seed: int) -> dict[str, Any]:
    """Run one case in this process."""
    from fuzz.worker import prepare, run_case

    prepare()
    with tempfile.TemporaryDirectory() as folder:
        return run_case(part, seed, Path(folder))
