"""How many networks fit into memory at once."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from castlereg.data.table import Table
from castlereg.layout import Layout
from castlereg.objective import trained_nodes
from castlereg.regularizers import Regularizer
from castlereg.training.members import Schedule
from castlereg.training.placement import least

# Weights, Adam's two moments and the best weights stay; the gradient, its update and copies between calls come and go.
_COPIES_OF_WEIGHTS = 8
_SHARE = 0.5  # of the memory that is free
_FALLBACK = 4 * 2**30  # where the system does not tell


def members_that_fit(
    table: Table,
    hidden_layer_sizes: tuple[int, ...],
    regularizers: Sequence[Regularizer],
    schedule: Schedule,
    memory: int | None = None,
) -> int:
    """Count the networks that can be trained at once.

    Parameters
    ----------
    table : Table
    hidden_layer_sizes : tuple of int
    regularizers : sequence of Regularizer
    schedule : Schedule
    memory : int, optional
        Bytes to use; half of what is free by default, in the joined process that has least.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> table = Table(np.zeros((100, 3), np.float32), Layout((Node(), Node(), Node(target=True))))
    >>> narrow, wide = (members_that_fit(table, (w, w), (), Schedule(), memory=10**6) for w in (8, 99))
    >>> narrow > wide >= 1
    True
    """
    budget = int(_SHARE * free_memory()) if memory is None else memory
    fit = max(1, budget // bytes_of_a_member(table, hidden_layer_sizes, regularizers, schedule))
    return least(fit) if memory is None else fit


def bytes_of_a_member(
    table: Table, hidden_layer_sizes: tuple[int, ...], regularizers: Sequence[Regularizer], schedule: Schedule
) -> int:
    """Estimate the memory that one network takes while it is trained: weights, batches, and the rows of an epoch."""
    layout = table.layout
    weights = n_weights(layout, hidden_layer_sizes, len(trained_nodes(regularizers, layout)))
    rows = len(table.inputs)
    batches = 16 * 2 * rows  # indices of up to sixteen epochs, here and on the device
    epoch = rows * layout.n_channels // max(1, os.cpu_count() or 1)  # of the networks in training, one a core
    return 4 * (_COPIES_OF_WEIGHTS * weights + batches + epoch)


def n_weights(layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int) -> int:
    """Count the weights of a network, biases included."""
    widths = hidden_layer_sizes or (layout.output_width,)
    count = (layout.n_channels + 1) * n_trained * widths[0]
    count += sum((fan_in + 1) * fan_out for fan_in, fan_out in itertools.pairwise(widths))
    if hidden_layer_sizes:
        count += n_trained * (widths[-1] + 1) * layout.output_width
    return count


def free_memory() -> int:
    """Return the bytes of memory that are free, within the limit of a container."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _FALLBACK
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return max(0, min(free, int(limit.read_text()) - int(used.read_text())))
    except (OSError, ValueError):  # no container, or one without a limit
        return int(free)
