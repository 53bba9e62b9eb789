"""Conversion of fitted estimators to modules and batches, and of trained modules back to fitted estimators."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castlereg.causal.graph import CausalGraph
from castlereg.causal.graph.constraints import graph_rules
from castlereg.estimators.base import NetworkEstimator, read_features, read_known_rows
from castlereg.estimators.cross_validation import CrossValidated
from castlereg.fitted import FittedModel, Networks
from castlereg.fitted.held_out import HeldOut, HeldOutPredictions, evenly
from castlereg.fitted.importances import importance_rows
from castlereg.fitted.learned_graph import learned_graph
from castlereg.losses import as_batch
from castlereg.options import check_integer
from castlereg.regularizers import Castle
from castlereg.regularizers.castle import castle_of
from castlereg.table.rows import Rows
from castlereg.torch.castle import supervised_loss
from castlereg.torch.graph import evaluating
from castlereg.torch.losses import Batch, as_tensor, cell_losses
from castlereg.torch.network import CastleNetwork
from castlereg.torch.wrapped import WrappedNetwork

Estimator = TypeVar("Estimator", bound=NetworkEstimator)


def from_estimator(model: NetworkEstimator, member: int = 0) -> CastleNetwork:
    """Create a module from a network of a fitted estimator.

    It takes standardized rows, from :func:`batch_of` or :func:`inputs_of`, and its outputs are standardized too;
    :class:`TableNetwork` takes the same tables as the estimator and makes the same predictions. Edges that the
    estimator did not have (constant columns, constraints, the graph objective) stay absent.

    Parameters
    ----------
    model : estimator
        Any fitted castlereg estimator. For a pool or a refit, its networks are those that the graph comes from.
    member : int
        Index of the network, if there are several.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> from castlereg.torch import batch_of, castle_loss, from_estimator
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=5, random_state=0).fit(X, y)
    >>> network = from_estimator(model)
    >>> loss, terms = castle_loss(network, batch_of(model, X, y))
    >>> loss.backward()
    """
    networks = _checked_networks(model, member)
    by = networks.standardization.of_member(member)
    names = _user_names(model.model_)
    in_order = [names[j] for j in networks.preprocessing.node_order()]
    return CastleNetwork.from_parameters(
        networks.member(member),
        networks.layout,
        names=in_order if len(set(in_order)) == len(in_order) else None,
        null_loss=by.null_loss,
    )


def batch_of(
    model: NetworkEstimator, X: ArrayLike, y: ArrayLike, member: int = 0, *, dtype: torch.dtype | None = None
) -> Batch:
    """Standardize rows for a network of a fitted estimator; the batch is an input of ``castle_loss``.

    Parameters
    ----------
    model : estimator
        Any fitted castlereg estimator.
    X, y : array-like
        As in ``fit``.
    member : int
        Index of the network, if there are several.
    dtype : torch.dtype, optional
        PyTorch's default dtype by default.
    """
    return Batch.of_arrays(model.standardized(X, y, member)[1], dtype)


def inputs_of(model: NetworkEstimator, X: ArrayLike, member: int = 0, *, dtype: torch.dtype | None = None) -> Tensor:
    """Standardize rows with unknown targets, shape (rows, channels); the targets' channels are placeholders.

    The parameters are those of :func:`batch_of`.
    """
    networks = _checked_networks(model, member)
    cells = model.model_.cells(read_features(model, X))
    return as_tensor(standardized_inputs(networks, cells, member), dtype or torch.get_default_dtype())


def standardized_inputs(networks: Networks, cells: Any, member: int) -> Any:
    """Encode and standardize cells for one network, shape (rows, columns) to (rows, channels), in float64."""
    layout = networks.layout
    encoded = np.zeros((len(cells), layout.n_channels))
    encoded[:, : layout.n_feature_channels] = networks.preprocessing.encode(cells)
    weight = np.full(len(cells), 1 / max(len(cells), 1))
    return as_batch(encoded, weight, networks.standardization.of_member(member), layout).inputs


def to_estimator(
    networks: CastleNetwork | WrappedNetwork | Sequence[CastleNetwork | WrappedNetwork],
    like: Estimator,
    X_val: ArrayLike,
    y_val: ArrayLike,
    *,
    history: pd.DataFrame | None = None,
) -> Estimator:
    """Create a fitted estimator from networks that were trained in PyTorch, with predictions, graph, files and ONNX.

    Parameters
    ----------
    networks : CastleNetwork or WrappedNetwork, or a sequence of them
        Trained on rows from :func:`batch_of` with ``like``: a single network with member 0, several networks each with
        its own member.
    like : estimator
        Fitted, without cross-validation. The result has its options and its preprocessing; ``like`` does not change.
    X_val, y_val : array-like
        Rows that the networks were not trained on, as in ``fit``. They determine the validation loss, the threshold of
        the graph and the importances.
    history : DataFrame, optional
        One row per network and epoch, with at least the columns ``member``, ``epoch``, ``objective`` and
        ``validation_loss``. By default one row per network, with the validation loss in both loss columns.

    Returns
    -------
    estimator
        Of the class of ``like``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> from castlereg.torch import from_estimator, to_estimator
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=5, random_state=0).fit(X[:400], y[:400])
    >>> network = from_estimator(model)  # train it here
    >>> trained = to_estimator(network, model, X[400:], y[400:])
    >>> bool((trained.predict(X) == model.predict(X)).all())
    True
    """
    if isinstance(like, CrossValidated):
        name = type(like).__name__
        raise ValueError(
            f"like is a {name}, which keeps errors of its folds; networks from PyTorch have none: use {name[:-2]}"
        )
    check_is_fitted(like)
    modules = [networks] if isinstance(networks, CastleNetwork | WrappedNetwork) else list(networks)
    fitted, n_members = like.model_, like.model_.networks.n_members
    if len(modules) not in (1, n_members):
        expected = "1 network" if n_members == 1 else f"1 or {n_members} networks"
        raise ValueError(f"networks has {len(modules)} modules, but the estimator needs {expected}")
    for module in modules:
        _check_network(module, fitted)
    members = np.arange(len(modules))
    made = Networks.stacked(
        fitted.preprocessing,
        [module.to_parameters() for module in modules],
        fitted.networks.standardization.of_member(members),
    )
    rows = fitted.preprocessing.coded(
        read_known_rows(like, X_val, y_val, fitted.target_kinds, ("X_val", "y_val")), "X_val", "y_val"
    )
    held_out = HeldOut.of(fitted.targets, [rows], [np.arange(len(rows))] * len(modules))
    losses = _validation_losses(made, rows)
    estimator = copy.copy(like)
    estimator.model_ = FittedModel(
        made,
        _history_of(losses, fitted) if history is None else _checked_history(history),
        float(np.mean(losses)),
        _graph(made, like, held_out, rows) if made.has_all_nodes else None,
        held_out=HeldOutPredictions.of(made, held_out),
        rows=fitted.rows,
        importance_rows=importance_rows(held_out),
        engine="torch",
    )
    if "n_members" in estimator.get_params(deep=False):
        estimator.set_params(n_members=len(modules))
    return estimator


def _graph(networks: Networks, like: NetworkEstimator, held_out: HeldOut, rows: Rows) -> CausalGraph:
    """Return the graph of networks, by the rules of the estimator."""
    names, n_targets = _user_names(like.model_), len(like.model_.targets)
    castle = castle_of(getattr(like, "regularizers", ()))
    objective = getattr(like, "objective", castle.objective if castle is not None else "prediction")
    before = like.model_.graph
    return learned_graph(
        networks,
        names,
        [Castle(objective=objective)],
        held_out=held_out,
        some_rows=lambda most: networks.preprocessing.table(rows.take(evenly(np.arange(len(rows)), most))),
        traits=None if before is None else before.traits,
        edges=graph_rules(like.constraints, None, names, n_targets),
        agreement_of=f"{networks.n_members} networks trained in PyTorch",
    )


def _history_of(losses: list[float], before: FittedModel) -> pd.DataFrame:
    """Return one row per network, with an epoch after those of the previous model."""
    epoch = int(before.history["epoch"].max()) + 1
    return pd.DataFrame({"member": range(len(losses)), "epoch": epoch, "objective": losses, "validation_loss": losses})


def _checked_history(history: pd.DataFrame) -> pd.DataFrame:
    for name in ("member", "epoch", "objective", "validation_loss"):
        if name not in history or not len(history):
            raise ValueError(f"history needs a column {name!r} and at least one row, got {list(history)}")
    return history.copy()


def _validation_losses(networks: Networks, rows: Rows) -> list[float]:
    """Return the mean loss of the targets over rows, of each network, as training measures it."""
    table, targets = networks.preprocessing.table(rows), networks.layout.targets
    losses = []
    for member in range(networks.n_members):
        by = networks.standardization.of_member(member)
        network = CastleNetwork.from_parameters(networks.member(member), networks.layout, null_loss=by.null_loss)
        weight = np.full(len(table.inputs), 1 / len(table.inputs))
        batch = Batch.of_arrays(as_batch(table.inputs, weight, by, networks.layout))
        with evaluating(network):
            outputs = network.target_outputs(batch.inputs)
            of_targets = cell_losses(outputs, batch, networks.layout, targets, network.null_loss)
            losses.append(float(supervised_loss(of_targets, batch)))
    return losses


def _checked_networks(model: NetworkEstimator, member: int) -> Networks:
    check_is_fitted(model)
    check_integer("member", member, least=0)
    networks = model.model_.networks
    if member >= networks.n_members:
        raise ValueError(f"member={member} must be less than the number of networks, which is {networks.n_members}")
    return networks


def _check_network(module: CastleNetwork | WrappedNetwork, fitted: FittedModel) -> None:
    if module.layout.nodes != fitted.preprocessing.layout.nodes:
        raise ValueError(
            "the nodes of the network differ from those of the estimator; create it with from_estimator(model), or "
            "with model.model_.networks.layout, and train it on batch_of(model, X, y)"
        )
    if not all(bool(weights.isfinite().all()) for weights in module.parameters()):
        raise ValueError("the network has weights that are not finite; train it again with a lower learning rate")


def _user_names(fitted: FittedModel) -> list[str]:
    """Return the names of columns and targets in the user's order."""
    if fitted.graph is not None:
        return list(fitted.graph.names)
    return [*(column.name for column in fitted.preprocessing.schema), *(target.name for target in fitted.targets)]
