"""Detection of forks after JAX has started: a fit would wait forever for threads that a fork does not copy.

This module does not import JAX. castlereg imports it first, to detect forks before an estimator is imported as well.
"""

from __future__ import annotations

import os
import sys


def has_started() -> bool:
    """Return whether JAX has started its devices; it has no public function for this."""
    return bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", False))


def _has_one_thread() -> bool:
    return os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) == 1


# If castlereg is imported after the fork, JAX has started but its threads are missing.
_forked_too_late = has_started() and _has_one_thread()


def _note_fork() -> None:
    global _forked_too_late
    _forked_too_late = _forked_too_late or has_started()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def check_not_forked() -> None:
    """Raise an error if JAX would wait forever."""
    if _forked_too_late:
        raise RuntimeError(
            "this process was forked after JAX had started, and JAX would hang here: start processes with "
            "multiprocessing.get_context('spawn') or 'forkserver', or use joblib (n_jobs)"
        )
