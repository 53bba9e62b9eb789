"""What the estimators share: options, checks of the data, the call of the trainer."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from castlereg.data.reading import Columns, read_columns
from castlereg.data.rows import Coding, Rows
from castlereg.data.schema import named_columns, schema_frame
from castlereg.data.targets import ClassTarget, Target, read_target
from castlereg.edge_strength import rows_looked_at
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.estimators.held_out_threshold import HeldOut, evenly, sparsest_threshold
from castlereg.estimators.holdout import random_split, stratified_split
from castlereg.graph import CausalGraph
from castlereg.graph.acyclic_cut import acyclic_cut
from castlereg.graph.column_traits import ColumnTraits
from castlereg.graph.strong_edges import weakest_strong_weight
from castlereg.layout import EdgeRules
from castlereg.moments import MOST_AT_ONCE, blocks
from castlereg.network import Parameters
from castlereg.objective import Batch
from castlereg.options import check_choice, check_flag, check_fraction, check_integer, check_number, check_sizes
from castlereg.regularizers import Regularizer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.training import Member, Schedule, Table, TrainedStack, train
from castlereg.training.room import release
from castlereg.training.standardization import as_batch

# Two layers of three or four ReLUs often die at once; the paper's narrowest table has 8 features.
_NARROWEST = 8
_BOOTSTRAP = 5  # purpose of a random stream; 0 and 1 are the networks and the rows held out
_FEWEST_ROWS = 3  # two to train on, one to stop by


class NetworkEstimator(BaseEstimator, metaclass=ABCMeta):
    """Options and fitting of all estimators."""

    def __init__(
        self,
        regularizers: Sequence[Regularizer] = (),
        *,
        hidden_layer_sizes: Literal["auto"] | tuple[int, ...] = "auto",
        input_init: str = "small",
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | None = None,
        scaling: str = "standard",
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        bootstrap: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        self.regularizers = regularizers
        self.hidden_layer_sizes = hidden_layer_sizes
        self.input_init = input_init
        self.categorical_features = categorical_features
        self.scaling = scaling
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_members = n_members
        self.bootstrap = bootstrap
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X, y, sample_weight, X_val, y_val : array-like
            As in :meth:`castlereg.CastleRegressor.fit`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        graph: CausalGraph | None = None,
    ) -> Self:
        self._check_options()
        rows, names = self._read(X, y)
        edges = self._edge_rules(names, len(rows.targets), graph)
        weight = None if sample_weight is None else _checked_weight(sample_weight, len(rows))
        rows = rows.weighted(weight)
        _check_enough(rows)
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        held_out = None if X_val is None else self._read_held_out(X_val, y_val, len(rows.targets))
        coding, (rows, *held_out_rows) = self._coded(rows, held_out, names)
        _check_required(coding, edges)
        rows = self._with_target_weights(coding, rows)
        stack, held_out_places = self._trained(
            coding, rows, held_out_rows, self._all_regularizers(), self._seed(), edges
        )
        release()
        self._keep(coding, stack, names)
        self._keep_graph(coding, names, [rows, *held_out_rows], held_out_places, edges)
        return self

    def _read(self, X: ArrayLike, y: ArrayLike) -> tuple[Rows, list[str]]:
        """Read rows to learn from; return them and the names of features and targets, the targets' last."""
        columns = self._read_features(X, reset=True)
        targets, target_names = read_target(y)
        check_consistent_length(columns.values, *targets)
        rows = Rows(columns, tuple(self._as_target(c, name) for c, name in zip(targets, target_names, strict=True)))
        return rows, _different([*columns.names, *target_names])

    def _read_features(self, X: ArrayLike, *, reset: bool, what: str = "X") -> Columns:
        columns = read_columns(X, what)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return columns

    def _read_held_out(self, X_val: ArrayLike, y_val: ArrayLike | None, n_targets: int) -> Rows:
        columns = self._read_features(X_val, reset=False, what="X_val")
        targets, names = read_target(y_val, "y_val")
        check_consistent_length(columns.values, *targets)
        if len(targets) != n_targets:
            raise ValueError(f"y_val has {len(targets)} targets, and y has {n_targets}")
        return Rows(columns, tuple(self._as_target(c, name) for c, name in zip(targets, names, strict=True)))

    def _coded(self, rows: Rows, held_out: Rows | None, names: list[str]) -> tuple[Coding, list[Rows]]:
        """Learn how to encode rows; return that and the rows in their own order."""
        n_features = len(rows.columns.types)
        return Coding.fit(
            rows,
            held_out,
            lambda rows: tuple(map(self._fit_target, rows.targets, names[n_features:])),
            categorical=named_columns(self.categorical_features, rows.columns.names),
            clipped=self.scaling == "robust",
        )

    def _trained(
        self,
        coding: Coding,
        rows: Rows,
        held_out: list[Rows],
        regularizers: tuple[Regularizer, ...],
        seed: np.random.SeedSequence,
        edges: EdgeRules | None,
    ) -> tuple[TrainedStack, list[NDArray[np.int64]]]:
        """Encode rows and train networks on them; return also the rows that each was stopped by."""
        table = coding.table(rows, *held_out, edges=edges)
        sizes = self._sizes(table.layout.n_features)
        check_regularizers(regularizers, sizes)
        n_held_out = len(table.inputs) - len(rows)
        members = [
            Member(train_rows, validation_rows, _spawn(seed, 0, i), regularizers)
            for i, (train_rows, validation_rows) in enumerate(self._rows_of_members(coding, rows, n_held_out, seed))
        ]
        stack = train(
            table,
            members,
            hidden_layer_sizes=sizes,
            schedule=self._schedule(),
            input_init=self.input_init,  # type: ignore[arg-type]
            progress=bool(self.verbose),
        )
        return stack, [member.validation_rows.astype(np.int64) for member in members]

    def _rows_of_members(
        self, coding: Coding, rows: Rows, n_held_out: int, seed: np.random.SeedSequence
    ) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Return every member's training and validation rows; held-out rows stand below the others."""
        if n_held_out:
            split = np.arange(len(rows)), len(rows) + np.arange(n_held_out)
        else:
            split = self._split(coding, rows, np.random.default_rng(_spawn(seed, 1)))
        train_rows, validation_rows = (part.astype(np.int32) for part in split)  # of a long table, half the memory
        return [(self._rows_of(i, train_rows, seed), validation_rows) for i in range(self.n_members)]

    def _rows_of(self, member: int, rows: NDArray[np.int32], seed: np.random.SeedSequence) -> NDArray[np.int32]:
        """Return a member's training rows: all, or as many drawn with replacement."""
        if not self.bootstrap:
            return rows
        rng = np.random.default_rng(_spawn(seed, _BOOTSTRAP, member))
        return np.sort(rng.choice(rows, size=len(rows)))

    def _keep(self, coding: Coding, stack: TrainedStack, names: list[str]) -> None:
        """Keep what was learned."""
        self._trained_members = np.flatnonzero(np.isfinite(stack.validation_loss))
        stack = stack.take(self._trained_members)
        self._coding = coding
        self.schema_: pd.DataFrame = schema_frame(coding.encoder.schema)
        self.n_outputs_ = len(coding.targets)
        self.network_ = FittedNetwork.from_stack(stack, coding.layout, coding.encoder)
        self.history_: pd.DataFrame = stack.history
        self.validation_loss_ = float(stack.validation_loss.mean())

    def _keep_graph(
        self,
        coding: Coding,
        names: list[str],
        parts: list[Rows],
        held_out: list[NDArray[np.int64]],
        edges: EdgeRules | None,
        replicas: FittedNetwork | None = None,
    ) -> None:
        """Keep the graph, if there is one; replicas are networks that tell how sure it is, by default the same."""
        self.__dict__.pop("graph_", None)  # of an earlier fit
        if not self.network_.has_all_nodes:
            return
        self._set_graph(
            coding,
            names,
            HeldOut.of(coding, parts, [held_out[member] for member in self._trained_members]),
            lambda most: coding.table(parts[0].take(evenly(np.arange(len(parts[0])), most))),
            _traits(coding, parts[0]),
            edges,
            replicas,
        )

    def _set_graph(
        self,
        coding: Coding,
        names: list[str],
        held_out: HeldOut,
        some_rows: Callable[[int], Table],
        traits: ColumnTraits | None,
        edges: EdgeRules | None,
        replicas: FittedNetwork | None = None,
    ) -> None:
        """Set the graph; at most so many rows, if they are asked for, tell what edges are worth."""
        weights = self._edge_weights(self.network_, some_rows)
        required = None if edges is None else edges.required
        self.graph_: CausalGraph = CausalGraph.from_members(
            weights,
            names,
            target=names[coding.layout.n_features :],
            threshold=min(
                sparsest_threshold(self.network_, weights.mean(axis=0), coding, held_out),
                weakest_strong_weight(acyclic_cut(weights.mean(axis=0), required)),
            ),
            replicas=weights if replicas is None else self._edge_weights(replicas, some_rows),
            required=required,
            traits=traits,
        )

    def _edge_weights(self, network: FittedNetwork, some_rows: Callable[[int], Table]) -> NDArray[np.float64]:
        """Weigh the edges of every member: the paper's norms, or what they are worth where that is what trains them."""
        if not any(one.ends_acyclic for one in self._all_regularizers()):
            return network.edge_weights()
        widest = max(self._sizes(network.layout.n_features), default=1)
        return network.edge_strengths(some_rows(rows_looked_at(network.layout, widest)))

    def _split(
        self, coding: Coding, rows: Rows, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hold some rows out, a share of every class: return training and validation rows."""
        classes = coding.classes_of(rows)
        if classes is None:
            return random_split(len(rows), self.validation_fraction, rng)
        return stratified_split(classes, self.validation_fraction, rng)

    # --- what CASTLE does differently -------------------------------------------------------------

    def _edge_rules(self, names: list[str], n_targets: int, graph: CausalGraph | None) -> EdgeRules | None:
        """Return which edges may be and which must be."""
        return None

    def _all_regularizers(self) -> tuple[Regularizer, ...]:
        return check_regularizers(self.regularizers)

    def _schedule(self) -> Schedule:
        return Schedule(float(self.learning_rate), int(self.batch_size), int(self.max_epochs), int(self.patience))

    def _auto_width(self, n_features: int) -> int:
        return max(n_features + 1, _NARROWEST)

    # --- what kinds of targets do differently -----------------------------------------------------

    @abstractmethod
    def _as_target(self, column: NDArray[Any], name: str) -> NDArray[Any]:
        """Check a target's values, shape (rows,), and convert them."""

    @abstractmethod
    def _fit_target(self, column: NDArray[Any], name: str) -> Target:
        """Learn how to encode a target."""

    def _with_target_weights(self, coding: Coding, rows: Rows) -> Rows:
        """Weigh rows by their targets."""
        return rows

    # --- checks and small steps ------------------------------------------------------------------

    def _check_options(self) -> None:
        check_sizes("hidden_layer_sizes", self.hidden_layer_sizes)
        check_choice("input_init", self.input_init, ["small", "glorot"])
        check_choice("scaling", self.scaling, ["standard", "robust"])
        self._all_regularizers()
        check_number("learning_rate", self.learning_rate, above=0)
        for name in ("batch_size", "max_epochs", "patience", "n_members"):
            check_integer(name, getattr(self, name))
        check_fraction("validation_fraction", self.validation_fraction)
        check_flag("bootstrap", self.bootstrap)

    def _sizes(self, n_features: int) -> tuple[int, ...]:
        if isinstance(self.hidden_layer_sizes, str):
            return (self._auto_width(n_features),) * 2
        return tuple(int(width) for width in self.hidden_layer_sizes)

    def _seed(self) -> np.random.SeedSequence:
        """Turn ``random_state`` into entropy without touching NumPy's global random state."""
        state = self.random_state
        if state is None:
            return np.random.SeedSequence()
        if isinstance(state, np.random.RandomState):
            return np.random.SeedSequence(int(state.randint(2**31)))
        if isinstance(state, np.random.Generator):
            return np.random.SeedSequence(int(state.integers(2**63)))
        check_integer("random_state", state, least=0)
        return np.random.SeedSequence(int(state))

    def _decoded(self, X: ArrayLike) -> list[NDArray[np.float64]]:
        """Predict every target, the mean over networks: values (rows,) or probabilities (rows, classes)."""
        check_is_fitted(self)
        outputs = self.network_.target_outputs(self._cells(X))
        return [target.decode(outputs[:, :, k]).mean(axis=0) for k, target in enumerate(self._coding.targets)]

    def standardized(self, X: ArrayLike, y: ArrayLike, member: int = 0) -> tuple[Parameters, Batch]:
        """Return a network's weights, and rows as it sees them: what the formulas of this package take.

        Parameters
        ----------
        X, y : array-like
            As in ``fit``.
        member : int
            Which network, of several.

        Returns
        -------
        parameters : Parameters
            Of all sub-networks, or of the targets' alone.
        batch : Batch
            In float64, in the given order of rows.
        """
        check_is_fitted(self)
        check_integer("member", member, least=0)
        if member >= self.network_.n_members:
            raise ValueError(f"member={member}: there are {self.network_.n_members} networks, counted from 0")
        rows = self._read_held_out(X, y, self.n_outputs_)
        encoded = self._coding.table(rows).inputs.astype(np.float64)
        one: Parameters = jax.tree.map(lambda a: np.asarray(a[member]), self.network_.parameters)
        weight = np.full(len(rows), 1 / len(rows))
        by = self.network_.standardization.of_member(member)
        return one, as_batch(encoded, weight, by, self.network_.layout)

    def log_likelihood(self, X: ArrayLike, y: ArrayLike) -> float:
        """Tell how well every column of some rows is told from the others, the targets' included.

        Where the graph of the networks has no cycles (``acyclicity_schedule="exact"``) this is the log-likelihood of
        the rows. Compare it on rows that were held out to choose between networks for their graph: the score of the
        target says nothing of the other columns.

        Parameters
        ----------
        X, y : array-like
            As in ``fit``.

        Returns
        -------
        float
            Mean over rows, and over networks if there are several, less a constant of the table; higher is better.

        Examples
        --------
        Lines tell sums of sigmoids as well as two hidden layers do:

        >>> from castlereg import CastleRegressor
        >>> from castlereg.synthetic import example_dag, sample
        >>> rows = sample(example_dag(), 600, random_state=0)
        >>> X, y = rows.drop(columns="Y"), rows["Y"]
        >>> fits = [
        ...     CastleRegressor(0.03, hidden_layer_sizes=sizes, acyclicity_schedule="exact", random_state=0)
        ...     .fit(X[:400], y[:400])
        ...     for sizes in ((), "auto")
        ... ]
        >>> line, deep = (one.log_likelihood(X[400:], y[400:]) for one in fits)
        >>> bool(abs(line - deep) < 0.1)
        True
        """
        check_is_fitted(self)
        if not self.network_.has_all_nodes:
            raise ValueError(f"{type(self).__name__} has learned to tell the target alone, not the other columns")
        rows = self._read_held_out(X, y, self.n_outputs_)
        return float(self.network_.log_likelihoods(self._coding.table(rows)).mean())

    def _cells(self, X: ArrayLike) -> NDArray[np.float64]:
        """Read rows to predict."""
        columns = self._read_features(X, reset=False)
        cells = self._coding.encoder.cells(columns)
        if not columns.complete:
            self._coding.encoder.warn_of_new_gaps(cells)
        return cells

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _different(names: list[str]) -> list[str]:
    """Mark repeated names with a number, so that every node has a name of its own."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _check_required(coding: Coding, edges: EdgeRules | None) -> None:
    """Refuse required edges of constant columns, which have no edges."""
    for k, column in enumerate(coding.encoder.schema):
        if edges is not None and column.constant and (edges.required[k].any() or edges.required[:, k].any()):
            raise ValueError(f"an edge of {column.name!r} is required, but the column is constant")


def _traits(coding: Coding, rows: Rows) -> ColumnTraits | None:
    """Measure the columns and targets that are numbers, in the units of the table."""
    coded = coding.coded(rows)

    def values(block: slice) -> NDArray[np.float64]:
        targets = [
            target.encode(of_target[block])[:, 0] if isinstance(target, ClassTarget) else of_target[block]
            for target, of_target in zip(coding.targets, rows.targets, strict=True)
        ]
        return np.column_stack([coded.block(block.start, block.stop), *targets])

    is_number = numbers_among(coding)
    if len(rows) <= MOST_AT_ONCE:
        return ColumnTraits.of(values(slice(0, len(rows))), is_number)
    return ColumnTraits.of_blocks(lambda: map(values, blocks(len(rows))), is_number)


def numbers_among(coding: Coding) -> NDArray[np.bool_]:
    """Tell which columns and targets, in the user's order, are numbers that vary."""
    nodes = [coding.layout.nodes[k] for k in np.argsort(coding.encoder.node_order(len(coding.targets)))]
    constant = [*(column.constant for column in coding.encoder.schema), *(False for _ in coding.targets)]
    return np.array([node.kind != "categorical" and not flat for node, flat in zip(nodes, constant, strict=True)])


def _check_enough(rows: Rows) -> None:
    if len(rows) < _FEWEST_ROWS:
        raise ValueError(
            f"n_samples={len(rows)} is too few: a network needs at least {_FEWEST_ROWS} rows with a positive "
            "weight, two to train on and one to stop by"
        )


def _spawn(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=key)


def _checked_weight(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    weight: NDArray[np.float64] = _check_sample_weight(sample_weight, np.empty((n_rows, 0)), dtype=np.float64)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight has {weight[row]:g} in row {row}: weights must not be negative")
    return weight
