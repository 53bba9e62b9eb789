"""The function behind every fit (plain, cross-validated or from a file), and the data of fits in memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from castlereg.causal.discovery import MOST_ROWS, Discovery, columns_of, discover
from castlereg.causal.graph.sortability import ColumnTraits
from castlereg.fitted.blend import Blend
from castlereg.fitted.held_out import HeldOut, HeldOutPredictions, Predictor, evenly
from castlereg.fitted.importances import importance_rows
from castlereg.fitted.learned_graph import learned_graph
from castlereg.fitted.model import FittedModel, FoldBook
from castlereg.fitted.networks import Networks
from castlereg.fitted.thresholds import by_node, selected_columns, usual_columns
from castlereg.layout import EdgeRules
from castlereg.notices import FitWarning, warn_user
from castlereg.options import check_choice
from castlereg.random_streams import OfFit, fit_stream
from castlereg.regularizers.castle import castle_of
from castlereg.regularizers.protocol import check_regularizers
from castlereg.search.doubts import doubts
from castlereg.search.grid import Candidate, FoldGrid, choose, strengths_of, train_folds
from castlereg.search.pool import pool
from castlereg.search.pooled import PoolRun
from castlereg.search.request import Assignment, CrossValidation, FitRequest, FoldRows, Score
from castlereg.table.group_splits import group_folds, group_split
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.rows import Fold, Rows, folds, random_split, stratified_split
from castlereg.table.table import MOST_AT_ONCE, Table, blocks
from castlereg.table.targets import ClassTarget, Target, TargetKind, fit_target, weighted_by_class
from castlereg.table.time_splits import expanding_folds, latest_split, time_blocks, times_of
from castlereg.target_losses import TargetLoss
from castlereg.training.engines.choice import all_names


def fit(request: FitRequest) -> FittedModel:
    """Train the networks of a request, choose among candidates, and learn the graph."""
    check_choice("on_interrupt", request.on_interrupt, ["raise", "keep"])
    for candidate in request.candidates:
        check_regularizers(candidate, request.plan.hidden_layer_sizes)
    with request.data.prepared(request) as rows:
        check_required(rows.preprocessing, request.edges)
        check_order(rows.preprocessing)
        if request.cross_validation is not None and request.cross_validation.pool:
            return _fit_pool(request, request.cross_validation, rows)
        discovery = _discovered(request, rows)
        if discovery is not None:
            rows = rows.with_edges(EdgeRules(discovery.edges, discovery.edges))
        begun = time.perf_counter()
        grid = train_folds(
            rows.source,
            rows.folds,
            request.plan,
            candidates=request.candidates,
            seeds=rows.seeds,
            progress=request.verbose,
            on_interrupt=request.on_interrupt,
            fold_names=_network_names(request, range(len(rows.folds))),
            callbacks=request.callbacks,
        )
        seconds = (time.perf_counter() - begun) / grid.losses.size
        rules, best, results = request.cross_validation, 0, None
        scores = -grid.losses if rules is None or rules.score is None else _scores(rules.score, grid, rows)
        if rules is not None:
            strengths = [strengths_of(candidate) for candidate in grid.candidates]
            order = [tuple(named.values()) for named in strengths] if rules.one_standard_error else None
            best, results = choose(scores, order), _results(_searched(grid.candidates), scores, grid.losses, seconds)
        trained = grid.trained(best)  # without networks that failed, which have warned
        stack = grid.networks(best, trained)
        networks = Networks.of(rows.preprocessing, stack)
        graph, held_out = None, rows.held_out(trained)
        if networks.has_all_nodes:
            graph = learned_graph(
                networks,
                request.data.names,
                grid.candidates[best],
                held_out=held_out,
                some_rows=rows.some_rows,
                traits=rows.traits(),
                edges=request.edges,
                agreement_of=agreement_of(request, networks.n_members),
                discovery=discovery,
            )
        predictor: Networks | Blend = networks
        blend, selected, engine = None, None, stack.engine
        if request.refit and not stack.interrupted:
            try:
                blend, selected, last = _refitted(request, rows, networks, trained, grid.candidates[best], held_out)
                predictor, engine = blend, all_names([engine, last])
            except KeyboardInterrupt:
                if request.on_interrupt == "raise":
                    raise
                warn_user("the refit was interrupted: predictions use the networks before the refit")
        book = None
        if results is not None and rows.fold_rows is not None:
            folds, seeds, left_out = rows.fold_rows.folds, rows.fold_rows.seeds, rows.fold_rows.left_out
            errors = [_errors(predictor.of_members(np.array([i])), left_out(fold)) for i, fold in enumerate(trained)]
            book = FoldBook(folds, seeds, trained, errors, results, best, grid.candidates[best])
        predictions = HeldOutPredictions.of(predictor, held_out)
        for doubt in doubts(rows, grid, scores, best, predictions, None if discovery is None else graph):
            warn_user(doubt, FitWarning)
        loss = float(stack.validation_loss.mean())
        some = importance_rows(held_out) if isinstance(rows, AssignedTable) else None  # fits from a file keep none
        return FittedModel(
            networks,
            stack.history,
            loss,
            graph,
            book,
            predictions,
            blend,
            selected,
            rows.training_rows,
            some,
            engine=engine,
        )


def check_order(preprocessing: Preprocessing) -> None:
    """Raise for monotone columns if the classes of a target have no order."""
    for target in preprocessing.targets:
        if preprocessing.layout.is_monotone and target.node.kind == "categorical":
            raise ValueError(
                f"monotone needs a target of numbers or of two classes, but {target.name} has "
                f"{target.node.levels} classes"
            )


def _network_names(request: FitRequest, networks: Iterable[int]) -> list[str]:
    kind = "network" if request.cross_validation is None else "fold"
    return [f"{kind} {i}" for i in networks]


def _discovered(request: FitRequest, rows: Assignment) -> Discovery | None:
    """Discover the graph for objective="graph", unless the user passed one."""
    castles = [castle_of(candidate) for candidate in request.candidates]
    if not all(castle is not None and castle.objective == "graph" for castle in castles):
        return None  # candidates of other objectives may use any edge
    if request.edges is not None and np.array_equal(request.edges.allowed, request.edges.required):
        return None
    table = rows.some_rows(MOST_ROWS)
    rules = None if request.edges is None else request.edges.reordered(rows.preprocessing.node_order())
    return discover(
        columns_of(table),
        table.layout.possible_edges(table.constant, None if rules is None else rules.allowed),
        None if rules is None else rules.required,
        seed=int(fit_stream(request.seed, OfFit.GRAPH).generate_state(1)[0]),
        progress=request.verbose,
        keep=request.on_interrupt == "keep",
    )


def _refitted(
    request: FitRequest,
    rows: Assignment,
    networks: Networks,
    trained: NDArray[np.int64],
    candidate: Candidate,
    held_out: HeldOut,
) -> tuple[Blend, tuple[int, ...], str]:
    """Train networks without CASTLE on the columns that each CASTLE network needs.

    Return them with the columns that at least half of them use, and the engine.
    """
    used = selected_columns(networks, held_out)
    grid = train_folds(
        rows.source,
        [rows.folds[i] for i in trained],
        request.plan,
        candidates=[[part for part in candidate if castle_of([part]) is None]],
        seeds=[rows.seeds[i] for i in trained],
        progress=request.verbose,
        on_interrupt=request.on_interrupt,
        used=by_node(used, rows.preprocessing),
        stage="refit",
        fold_names=_network_names(request, trained),
        callbacks=request.callbacks,
    )
    refitted = Networks.of(rows.preprocessing, grid.stacks[0])
    return Blend((refitted,), np.ones(1), ("refit",)), usual_columns(used), grid.stacks[0].engine


def _fit_pool(request: FitRequest, rules: CrossValidation, rows: Assignment) -> FittedModel:
    """Search a pool of candidates; the graph comes from its best CASTLE networks."""
    assert rows.fold_rows is not None
    n_rows = int(rows.counts()[0].sum())
    run = PoolRun.of(rows)
    run.run(
        pool(rows.preprocessing.layout, n_rows, rules.causal, request.plan.engine),
        verbose=request.verbose,
        on_interrupt=request.on_interrupt,
        time_limit=rules.time_limit,
        callbacks=request.callbacks,
    )
    blend, weights = run.blend()
    with_graph = [candidate for candidate in run.trained if candidate.has_graph]
    main = min(with_graph or run.networks, key=lambda candidate: candidate.loss)
    graph = None
    if with_graph:
        n_networks = sum(candidate.networks.n_members for candidate in with_graph)
        graph = learned_graph(
            main.networks,
            request.data.names,
            main.candidate,
            held_out=run.held_out,
            some_rows=rows.some_rows,
            traits=rows.traits(),
            edges=request.edges,
            agreement_of=f"{n_networks} CASTLE networks of the search, whose training rows overlap",
            others=[candidate.networks for candidate in with_graph if candidate is not main],
        )
    folds, seeds, left_out = rows.fold_rows.folds, rows.fold_rows.seeds, rows.fold_rows.left_out
    errors = [_errors(blend.of_members(np.array([fold])), left_out(fold)) for fold in range(len(folds))]
    best = next(i for i, candidate in enumerate(run.trained) if candidate is main)
    book = FoldBook(folds, seeds, np.arange(len(folds)), errors, run.results(weights), best, main.candidate)
    predictions = HeldOutPredictions.of(blend, run.held_out)
    for doubt in doubts(rows, None, None, best, predictions):
        warn_user(doubt, FitWarning)
    loss = float(run.losses(predictions.predicted).mean())
    selected = None if run.used is None else usual_columns(run.used)
    stored = rows.training_rows, importance_rows(run.held_out)
    engine = all_names(candidate.stack.engine for candidate in run.networks)
    return FittedModel(
        main.networks, main.stack.history, loss, graph, book, predictions, blend, selected, *stored, engine=engine
    )


def agreement_of(request: FitRequest, n_networks: int) -> str:
    """Describe the networks whose agreement is the confidence, and therefore its limits."""
    if request.cross_validation is not None:
        return f"{n_networks} networks of cross-validation, whose training rows overlap"
    if request.bootstrap:
        return f"{n_networks} networks, each on its own bootstrap sample of the rows"
    return f"{n_networks} networks that differ only in their seed; bootstrap=True would vary the rows too"


def _scores(score: Score, grid: FoldGrid, rows: Assignment) -> NDArray[np.float64]:
    """Score the network of every fold on the rows that it left out; networks that failed score minus infinity."""
    assert rows.fold_rows is not None
    scores = np.full(grid.losses.shape, -np.inf)
    for candidate, fold in np.argwhere(np.isfinite(grid.losses)):
        stack = grid.networks(candidate, np.array([fold]))
        model = FittedModel(Networks.of(rows.preprocessing, stack), stack.history, float(stack.validation_loss[0]))
        scores[candidate, fold] = score(model, rows.fold_rows.folds[fold][1])
    return scores


def _errors(networks: Predictor, rows: Rows) -> list[NDArray[np.float64]]:
    """Return the errors of a network on coded rows, for each target; see :class:`castlereg.fitted.FoldBook`."""
    errors = []
    predicted = networks.predict(rows.columns.cells)
    for target, values, (of_target,) in zip(networks.preprocessing.targets, rows.targets, predicted, strict=True):
        if isinstance(target, ClassTarget):
            errors.append(1 - of_target[np.arange(len(values)), target.codes(values)])
        else:
            errors.append(np.abs(of_target - values))
    return errors


def check_required(preprocessing: Preprocessing, edges: EdgeRules | None) -> None:
    """Raise for required edges of constant and unusable columns, which have no edges."""
    for k, column in enumerate(preprocessing.schema):
        if edges is not None and column.constant and (edges.required[k].any() or edges.required[:, k].any()):
            state = "unusable" if column.kind == "unusable" else "constant"
            raise ValueError(f"an edge of {column.name!r} is required, but the column is {state}: drop this edge")


def _searched(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the CASTLE options that correspond to each candidate, and other strengths that differ."""
    named = [strengths_of(candidate) for candidate in candidates]
    differ = {name for strengths in named for name in strengths if len({other.get(name) for other in named}) > 1}
    params: list[dict[str, Any]] = [
        {name: value for name, value in strengths.items() if "." not in name or name in differ} for strengths in named
    ]
    castles = [castle_of(candidate) for candidate in candidates]
    details = {c and replace(c, reg_beta=0.0, reg_lambda=0.0) for c in castles}
    if len(details) == 1 or any(c and callable(c.acyclicity) for c in details):  # functions cannot be saved in files
        return params
    return [p | {"castle": c} for p, c in zip(params, castles, strict=True)]


def _results(
    params: list[dict[str, Any]], scores: NDArray[np.float64], losses: NDArray[np.float64], seconds: float
) -> dict[str, Any]:
    """Return the scores in the format of scikit-learn's searches."""
    zeros = np.zeros(len(scores))
    results: dict[str, Any] = {"mean_fit_time": zeros + seconds}
    results |= dict.fromkeys(("std_fit_time", "mean_score_time", "std_score_time"), zeros)
    for name in dict.fromkeys(name for named in params for name in named if name != "castle"):
        values = [named.get(name, np.nan) for named in params]
        results[f"param_{name}"] = np.ma.masked_invalid(np.array(values))
    results["params"] = params
    for fold in range(scores.shape[1]):
        results[f"split{fold}_test_score"] = scores[:, fold]
    with np.errstate(invalid="ignore"):  # failed folds have minus infinity
        results["mean_test_score"], results["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
    results["rank_test_score"] = rankdata(-results["mean_test_score"], method="min").astype(np.int32)
    results["mean_validation_loss"] = losses.mean(axis=1)
    return results


FEWEST_ROWS = 3  # two for training, one for validation


@dataclass(frozen=True)
class TableData:
    """Rows in memory."""

    rows: Rows  # as read
    held_out: Rows | None  # validation rows passed by the user
    names: Sequence[str]  # of features and targets, all unique
    target_kinds: Sequence[TargetKind]
    categorical: Sequence[bool]  # columns that the user marked as categorical
    class_weight: Any = None  # as in scikit-learn; None for regression
    drop_unusable: bool = False  # whether identifiers and free text are ignored, or raise
    loss: TargetLoss | None = None  # of numeric targets; None for the squared error
    monotone: Sequence[int] | None = None  # 1 or -1 for columns with which the targets rise or fall
    groups: NDArray[np.int64] | None = None  # group of each row of the user's table
    time_column: int | None = None  # column with the times of the rows
    classes: Sequence[NDArray[Any]] | None = None  # sorted classes of each target, if some may not be in the rows

    @contextmanager
    def prepared(self, request: FitRequest) -> Iterator[AssignedTable]:
        """Encode the rows, and assign them to networks."""
        _check_enough(self.rows)
        preprocessing, (rows, *held_out) = self.preprocessed(request.clipped)
        if self.class_weight is not None:
            rows = weighted_by_class(rows, preprocessing.targets, self.class_weight)
        _check_enough(rows)
        parts = [rows, *held_out]
        source = preprocessing.table(*parts, edges=request.edges)
        if request.cross_validation is None:
            split = self._split(request, preprocessing, parts)
            yield AssignedTable(preprocessing, source, *_by_network(request, split), parts)
        else:
            user_folds = self._user_folds(request.cross_validation, preprocessing, rows, request.seed)
            of_rows = [(_positions(rows, train), _positions(rows, held)) for train, held in user_folds]
            _check_folds(of_rows, request.cross_validation.cv)
            numbers = [int(n) for n in fit_stream(request.seed, OfFit.FOLD_SEEDS).generate_state(len(user_folds))]
            seeds = [fit_stream(np.random.SeedSequence(number), OfFit.NETWORKS, 0) for number in numbers]
            fold_rows = FoldRows(user_folds, numbers, lambda fold: rows.take(of_rows[fold][1]))
            yield AssignedTable(preprocessing, source, of_rows, seeds, parts, fold_rows=fold_rows)

    def preprocessed(self, clipped: bool) -> tuple[Preprocessing, list[Rows]]:
        """Learn the preprocessing of the rows; return training and validation rows, coded and sorted by values."""

        def targets(rows: Rows) -> tuple[Target, ...]:
            names = self.names[len(self.rows.columns.types) :]
            if self.classes is not None:
                return tuple(map(ClassTarget, names, self.classes))
            pairs = zip(rows.targets, names, self.target_kinds, strict=True)
            return tuple(fit_target(*target, self.loss) for target in pairs)

        return Preprocessing.fit(
            self.rows,
            self.held_out,
            targets,
            categorical=self.categorical,
            clipped=clipped,
            drop_unusable=self.drop_unusable,
            monotone=self.monotone,
        )

    def _split(self, request: FitRequest, preprocessing: Preprocessing, parts: list[Rows]) -> Fold:
        """Split the rows of a fit without cross-validation into training and validation rows."""
        rows, fraction = parts[0], request.validation_fraction
        if len(parts) > 1:
            return np.arange(len(rows)), len(rows) + np.arange(len(parts[1]))
        groups, blocks = self._related(preprocessing, rows)
        if blocks is not None:
            return latest_split(blocks, fraction)
        rng = np.random.default_rng(fit_stream(request.seed, OfFit.HELD_OUT_ROWS))
        classes = preprocessing.classes_of(rows)
        if groups is not None:
            return group_split(groups, classes, fraction, rng)
        if classes is None:
            return random_split(len(rows), fraction, rng)
        return stratified_split(classes, fraction, rng)

    def _user_folds(
        self, rules: CrossValidation, preprocessing: Preprocessing, rows: Rows, seed: np.random.SeedSequence
    ) -> list[Fold]:
        """Split the rows into folds, by their indices in the user's table.

        An integer ``cv`` splits the sorted rows, so the user's order does not matter; a splitter receives the user's
        order, which may be meaningful. Repeats use new random folds for an integer ``cv``; for splitters and folds in
        time, they repeat the same folds with new networks.
        """
        assert rows.index is not None  # rows are sorted by their values
        if not isinstance(rules.cv, int | np.integer):
            cut = folds(
                rules.cv,
                len(rules.y),
                random_state=0,
                y=rules.y,
                groups=rules.groups,
                is_classifier=rules.is_classifier,
            )
            return cut * rules.repeats  # the same rows, different starting weights
        first = np.sort(np.unique(rows.index, return_index=True)[1])
        index, rows = rows.index[first], rows.take(first)
        classes = preprocessing.classes_of(rows)
        groups, blocks = self._related(preprocessing, rows)
        states = [int(state) for state in fit_stream(seed, OfFit.FOLD_ROWS).generate_state(rules.repeats)]
        if blocks is not None:
            cuts = [expanding_folds(blocks, rules.cv)] * rules.repeats
        elif groups is not None:
            cuts = [group_folds(groups, classes, rules.cv, random_state=state) for state in states]
        else:
            cuts = [folds(rules.cv, len(rows), random_state=state, classes=classes) for state in states]
        return [(index[train], index[held]) for cut in cuts for train, held in cut]

    def _related(
        self, preprocessing: Preprocessing, rows: Rows
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Return the group and the time block of each row; None for options that were not passed."""
        groups = None if self.groups is None else self.groups[rows.index]
        if self.time_column is None:
            return groups, None
        times = times_of(rows, self.rows.columns, preprocessing.schema[self.time_column], self.time_column)
        return groups, time_blocks(times, groups)


@dataclass(frozen=True)
class AssignedTable(Assignment):
    """A table in memory, encoded and assigned to networks."""

    parts: list[Rows]  # coded by the schema, in the order of the table

    @property
    def training_rows(self) -> Rows:
        """Rows of the table, coded by the schema."""
        return self.parts[0]

    def held_out(self, networks: NDArray[np.int64]) -> HeldOut:
        """Return the validation rows of some networks."""
        return HeldOut.of(self.preprocessing.targets, self.parts, [self.folds[i][1] for i in networks])

    def some_rows(self, most: int) -> Table:
        """Return at most ``most`` training rows, evenly spaced."""
        return self.preprocessing.table(self.parts[0].take(evenly(np.arange(len(self.parts[0])), most)))

    def traits(self) -> ColumnTraits | None:
        """Measure the columns and targets that are numbers, in the units of the table."""
        rows, targets = self.parts[0], self.preprocessing.targets

        def values(block: slice) -> NDArray[np.float64]:
            of_targets = [
                target.encode(column[block])[:, 0] if isinstance(target, ClassTarget) else column[block]
                for target, column in zip(targets, rows.targets, strict=True)
            ]
            return np.column_stack([rows.columns.block(block.start, block.stop), *of_targets])

        is_number = numbers_among(self.preprocessing)
        if len(rows) <= MOST_AT_ONCE:
            return ColumnTraits.of(values(slice(0, len(rows))), is_number)
        return ColumnTraits.of_blocks(lambda: map(values, blocks(len(rows))), is_number)

    def counts(self, fold: int | None = None) -> list[NDArray[np.int64]]:
        """Return the number of rows of each class of every target, or of all rows; copies of a row count once."""
        rows = self.parts[0]
        assert rows.index is not None  # rows are sorted by their values
        _, first = np.unique(rows.index, return_index=True)
        if fold is not None:
            first = np.intersect1d(first, self.folds[fold][0])
        return [
            np.bincount(target.codes(values[first]), minlength=len(target.classes))
            if isinstance(target, ClassTarget)
            else np.array([len(first)])
            for target, values in zip(self.preprocessing.targets, rows.targets, strict=True)
        ]


def numbers_among(preprocessing: Preprocessing) -> NDArray[np.bool_]:
    """Return which columns and targets, in the user's order, are non-constant numbers."""
    nodes = [preprocessing.layout.nodes[k] for k in np.argsort(preprocessing.node_order())]
    constant = [*(column.constant for column in preprocessing.schema), *(False for _ in preprocessing.targets)]
    return np.array([node.kind != "categorical" and not flat for node, flat in zip(nodes, constant, strict=True)])


def _check_enough(rows: Rows) -> None:
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"n_samples={len(rows)} is too few: a network needs at least {FEWEST_ROWS} rows with a positive weight, "
            "two for training and one for validation"
        )


def _by_network(request: FitRequest, split: Fold) -> tuple[list[Fold], list[np.random.SeedSequence]]:
    """Assign the same split to every network; with bootstrap, each has its own sample of the training rows."""
    train, validation = (part.astype(np.int32) for part in split)  # half the memory for long tables
    assigned: list[Any] = []
    for i in range(request.n_members):
        of_member = train
        if request.bootstrap:
            rng = np.random.default_rng(fit_stream(request.seed, OfFit.BOOTSTRAP, i))
            of_member = np.sort(rng.choice(train, size=len(train)))
        assigned.append((of_member, validation))
    return assigned, [fit_stream(request.seed, OfFit.NETWORKS, i) for i in range(request.n_members)]


def _positions(rows: Rows, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ascending positions of rows of the user's table, including all of their copies."""
    assert rows.index is not None
    times = np.bincount(wanted, minlength=int(rows.index.max()) + 1)  # a splitter may repeat rows
    return np.repeat(np.arange(len(rows)), times[rows.index])


def _check_folds(of_rows: Sequence[Fold], cv: Any) -> None:
    for number, (train, held) in enumerate(of_rows):
        if len(train) < 2 or len(held) < 1:
            raise ValueError(
                f"fold {number} of cv={cv!r} has {len(train)} training rows and {len(held)} validation rows: a network "
                "needs at least two training rows and one validation row"
            )
    if len(of_rows) < 2:
        raise ValueError(f"cv={cv!r} gives {len(of_rows)} fold, but cross-validation needs at least two")
