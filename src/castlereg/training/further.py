"""Continued training: more epochs on some rows, from the state after earlier epochs.

No rows are held out and no best epoch is chosen: the weights of the last epoch predict. The random numbers of an epoch
depend only on its number, so several calls give the same result as one call with as many epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.network import Packed, Parameters, pack
from castlereg.random_streams import OfNetwork, fit_stream
from castlereg.regularizers import Regularizer
from castlereg.table.table import Standardization, Table
from castlereg.training.devices import usual_rules
from castlereg.training.ending import stop_if_ending, stopped_at_exit
from castlereg.training.engines.choice import engine_for
from castlereg.training.engines.protocol import EngineName
from castlereg.training.loop import history_of, unpacked, warn_of_restarts
from castlereg.training.plan import Member, Plan
from castlereg.training.program import MAX_RESTARTS, RATE_AFTER_RESTART
from castlereg.training.setup import Setup
from castlereg.training.sources import TableSource
from castlereg.training.stack import Stack, initial_states
from castlereg.training.state import MemberState

_ROWS_TO_CHECK = 1024  # rows whose loss must be finite after an epoch


@dataclass(frozen=True)
class Ongoing:
    """State from which further epochs continue."""

    states: MemberState  # of all members, as NumPy arrays: weights, Adam's moments, epochs done
    seeds: tuple[np.random.SeedSequence, ...]  # of each member
    left_out: NDArray[np.bool_]  # (members, inputs, trained nodes), edges that the networks do not have


class Trained(NamedTuple):
    """Networks that this module did not train; only their weights are known."""

    parameters: Parameters  # with a leading member axis
    epochs: NDArray[np.int64]  # (members,), epochs done


class Further(NamedTuple):
    """The result of further epochs."""

    ongoing: Ongoing
    parameters: Parameters  # of the last epoch, with a leading member axis
    history: pd.DataFrame  # one row per member and epoch
    engine: EngineName  # that trained these epochs


@usual_rules()
@stopped_at_exit()
def train_further(
    table: Table,
    plan: Plan,
    regularizers: tuple[Regularizer, ...],
    standardization: Standardization,
    seeds: Sequence[np.random.SeedSequence],
    epochs: int,
    before: Ongoing | Trained | None = None,
) -> Further:
    """Train networks for a number of epochs on all rows of a table.

    Parameters
    ----------
    table : Table
    plan : Plan
        Its phases set the learning rate by the number of epochs done; they do not end training.
    regularizers : tuple of Regularizer
    standardization : Standardization
        Of each member.
    seeds : sequence of SeedSequence
        Of each member; they determine the starting weights, the batches and the random numbers of regularizers.
    epochs : int
    before : Ongoing or Trained, optional
        State after earlier epochs; by default, training starts with new networks. Edges that trained networks do not
        have stay absent.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.table.table import measure
    >>> from castlereg.layout import Layout, Node
    >>> from castlereg.training import Phase
    >>> rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    >>> table = Table(rows, Layout((Node(), Node(), Node(target=True))))
    >>> by, _ = measure(table, [np.arange(40)])
    >>> how = Plan((4, 4), (Phase(100),)), (), by, [np.random.SeedSequence(0)]
    >>> first = train_further(table, *how, epochs=1)
    >>> second = train_further(table, *how, epochs=1, before=first.ongoing)
    >>> at_once = train_further(table, *how, epochs=2)
    >>> bool((second.parameters.input_weights == at_once.parameters.input_weights).all())
    True
    """
    rows = np.arange(len(table.inputs), dtype=np.int32)
    weight = 1.0 if table.weight is None else float(table.weight.astype(np.float64).mean())
    members = [Member(rows, rows[:_ROWS_TO_CHECK], seed, regularizers) for seed in seeds]
    setup = Setup.of(table, members, plan, standardization, np.full(len(seeds), weight, table.inputs.dtype))
    states, left_out = _begun(setup, before)
    histories = []
    for _ in range(epochs):
        stop_if_ending()
        states, history, engine = _one_epoch(setup, states, left_out)
        histories.append(history)
    history = pd.concat(histories).sort_values(["member", "epoch"], ignore_index=True)
    warn_of_restarts(history)
    failed = np.flatnonzero(states.restarts > MAX_RESTARTS)
    if len(failed):
        raise FloatingPointError(
            f"the loss of network {', '.join(map(str, failed))} was not finite in more than {MAX_RESTARTS} epochs; "
            "lower learning_rate, reg_lambda or reg_beta, or check the rows for extreme values"
        )
    history = history.assign(validation_loss=np.nan).drop(columns="finite")
    ongoing = Ongoing(states, tuple(seeds), left_out)
    return Further(ongoing, unpacked(states.best, plan.form, setup.layout), history, engine)


def _one_epoch(
    setup: Setup, states: MemberState, left_out: NDArray[np.bool_]
) -> tuple[MemberState, pd.DataFrame, EngineName]:
    members = [
        replace(member, seed=fit_stream(member.seed, OfNetwork.EPOCH, int(epoch)))
        for member, epoch in zip(setup.members, states.epoch, strict=True)
    ]
    # The best network so far is the one of this epoch, unless its loss is not finite.
    begun: Any = {
        "rate": (setup.plan.learning_rate * RATE_AFTER_RESTART**states.restarts).astype(setup.dtype),
        "best_loss": np.full_like(states.best_loss, np.inf),
        "active": np.ones(len(members), bool),
    }
    setup = replace(setup, members=members)
    engine = engine_for(setup)
    stack = Stack(setup, engine, states._replace(**begun))
    stack.masks *= ~left_out
    log = TableSource(setup.table).runner(stack).run(1, 0, lambda share: None)
    stack.record(engine.read(log))
    after: MemberState = engine.read(engine.states)
    engine.close()
    return after, history_of(stack), engine.name


def _begun(setup: Setup, before: Ongoing | Trained | None) -> tuple[MemberState, NDArray[np.bool_]]:
    """Return the states from which further epochs continue, and the edges that the networks do not have."""
    fresh = initial_states(setup)
    no_edge = np.zeros(setup.edge_masks().shape, bool)
    if before is None:
        return fresh, no_edge
    states = before.states if isinstance(before, Ongoing) else _states_of(before, fresh, setup)
    if _shapes(states) != _shapes(fresh):
        raise ValueError(
            "hidden_layer_sizes, n_members, regularizers or recipe have changed and do not match the fitted networks; "
            "restore them, or call fit to start over"
        )
    if isinstance(before, Ongoing):
        return states, before.left_out
    # Weights that are restricted to one sign may all be zero at the moment; their edges stay.
    one_sign = np.array([node.monotone != 0 for node in setup.layout.nodes])[setup.layout.input_nodes]
    has_weights = np.any(states.moving.weights.network.input_weights, axis=-1)
    return states, ~has_weights & ~one_sign[:, None]


def _states_of(trained: Trained, fresh: MemberState, setup: Setup) -> MemberState:
    """Return states with the weights of trained networks, and everything else as at the start of training."""
    n_members = len(trained.parameters.input_bias)
    packed = [pack(jax.tree.map(lambda a, i=i: np.asarray(a[i]), trained.parameters)) for i in range(n_members)]
    network = Packed(*(np.stack(arrays).astype(setup.dtype) for arrays in zip(*packed, strict=True)))  # type: ignore[arg-type]
    moving = fresh.moving._replace(
        weights=fresh.moving.weights._replace(network=network),
        average=None if fresh.moving.average is None else network,
    )
    epoch: Any = trained.epochs.astype(np.int32)
    return fresh._replace(moving=moving, best=network, epoch=epoch)


def _shapes(states: MemberState) -> Any:
    leaves, structure = jax.tree.flatten(states)
    return structure, [leaf.shape for leaf in leaves]
