"""Fits that continue on further rows, for ``partial_fit``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.fitted.learned_graph import learned_graph
from castlereg.fitted.model import FittedModel
from castlereg.fitted.networks import Networks
from castlereg.random_streams import OfFit, fit_stream
from castlereg.search.fit import AssignedTable, TableData, agreement_of, check_order, check_required
from castlereg.search.request import FitRequest
from castlereg.table.table import measure
from castlereg.table.targets import weighted_by_class
from castlereg.training.engines.choice import all_names
from castlereg.training.further import Ongoing, Trained, train_further


def fit_further(request: FitRequest, data: TableData, epochs: int, model: FittedModel | None = None) -> FittedModel:
    """Continue training the networks of a model on all rows of the data, or train a new model if ``model`` is None.

    The preprocessing, the starting weights and the standardization are those of the first call. The graph and its
    threshold are updated from the current weights and rows. The model stores neither rows nor a validation loss.
    """
    if model is None:
        preprocessing, (rows,) = data.preprocessed(request.clipped)
        check_required(preprocessing, request.edges)
        check_order(preprocessing)
    else:
        if model.blend is not None:
            raise ValueError("partial_fit cannot continue training after a refit: fit without Recipe(refit=True)")
        preprocessing = model.preprocessing
        rows = preprocessing.in_own_order(preprocessing.coded(data.rows))
        preprocessing.warn_of_new_missing(rows.columns.cells)
    rows = weighted_by_class(rows, preprocessing.targets, data.class_weight)
    if not len(rows):
        raise ValueError("no row has a positive weight: there is nothing to train on")
    table = preprocessing.table(rows, edges=request.edges)
    (candidate,), n_members = request.candidates, request.n_members
    seeds: Sequence[np.random.SeedSequence] = [fit_stream(request.seed, OfFit.NETWORKS, i) for i in range(n_members)]
    before: Ongoing | Trained | None = None
    if model is None:
        by, _ = measure(table, [np.arange(len(rows))] * n_members)
    else:
        by = model.networks.standardization
        before = model.ongoing or Trained(model.networks.parameters, _epochs_done(model))
        seeds = before.seeds if isinstance(before, Ongoing) and len(before.seeds) == n_members else seeds
    further = train_further(table, request.plan, candidate, by, seeds, epochs, before)
    networks = Networks(preprocessing, further.parameters, by)
    every_row = np.arange(len(rows))
    assigned = AssignedTable(preprocessing, table, [(every_row, every_row)] * n_members, seeds, [rows])
    graph = None
    if networks.has_all_nodes:
        graph = learned_graph(
            networks,
            data.names,
            candidate,
            held_out=assigned.held_out(np.arange(n_members)),
            some_rows=assigned.some_rows,
            traits=assigned.traits(),
            edges=request.edges,
            agreement_of=agreement_of(request, n_members),
        )
    history = further.history if model is None else pd.concat([model.history, further.history])
    history = history.sort_values(["member", "epoch"], ignore_index=True)
    engine = further.engine if model is None else all_names([model.engine, further.engine])
    return FittedModel(networks, history, np.nan, graph, ongoing=further.ongoing, engine=engine)


def _epochs_done(model: FittedModel) -> NDArray[np.int64]:
    last = model.history.groupby("member")["epoch"].max()
    return last.to_numpy(np.int64)
