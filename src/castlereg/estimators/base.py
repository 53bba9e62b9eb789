"""The base of all estimators: options, reading of rows, fitting, attributes of the fitted model; fixed strengths."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from castlereg.losses import Batch, as_batch
from castlereg.network import Parameters
from castlereg.options import check_flag, check_integer, check_number, check_sizes
from castlereg.regularizers import BatchNorm, Castle, Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.regularizers.protocol import check_regularizers
from castlereg.search.candidates import Regularizers
from castlereg.search.fit import FitRequest, fit
from castlereg.search.model import FittedModel
from castlereg.search.recipe import Recipe, TrainingOptions
from castlereg.table.encoding import Rows
from castlereg.table.reading import Columns, read_columns
from castlereg.table.schema import Monotone, column_index, monotone_signs, named_columns, schema_frame
from castlereg.table.splits import group_codes
from castlereg.table.targets import ClassWeight, TargetKind, check_target, read_target
from castlereg.target_losses import TargetLoss, target_loss
from castlereg.training import Callback, Control, OnInterrupt, check_callbacks, watched

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.causal import CausalGraph, EdgeConstraints, FittedWorld, InputGraph
    from castlereg.table.files import TableFile

_SMALLEST, _LARGEST = 1e-30, 1e38  # weights, and their sum

Sizes = Literal["auto"] | tuple[int, ...]
Loss = str | TargetLoss
Features = Sequence[str] | Sequence[int] | Sequence[bool] | None
Seed = int | np.random.RandomState | np.random.Generator | None


@dataclass(eq=False, repr=False)
class NetworkEstimator(BaseEstimator, metaclass=ABCMeta):
    """Options and fitting of all estimators.

    Options are the fields of a dataclass, so each class declares only the options that it adds.
    """

    hidden_layer_sizes: Sizes = field(default="auto", kw_only=True)
    recipe: Recipe | None = field(default=None, kw_only=True)
    monotone: Monotone = field(default=None, kw_only=True)
    categorical_features: Features = field(default=None, kw_only=True)
    learning_rate: float | None = field(default=None, kw_only=True)
    max_epochs: int | None = field(default=None, kw_only=True)
    random_state: Seed = field(default=None, kw_only=True)
    verbose: bool = field(default=False, kw_only=True)

    model_: FittedModel = field(init=False)
    target_kind: ClassVar[TargetKind]  # whether targets are numbers or classes
    class_weight: ClassVar[ClassWeight] = None  # an option of classifiers
    loss: ClassVar[Loss] = "squared"  # an option of regressors
    constraints = cast("EdgeConstraints | None", None)  # an option of CASTLE; not annotated, so not a field here

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Check the options, read the rows and fit; an error leaves the estimator unchanged."""
        self._check_options()
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be passed together: pass both or neither")
        with self._unchanged_by_errors():
            columns = read_features(self, X, ignored=(), reset=True)
            rows, names = _with_targets(columns, y, self.target_kind, "y")
            rows = _weighted(rows, sample_weight)
            validation = None
            if X_val is not None:  # read with the columns of this fit, not those of an earlier fit
                read = read_features(self, X_val, "X_val", ignored=())
                validation, _ = _with_targets(read, y_val, self.target_kind, "y_val")
                if len(validation.targets) != len(rows.targets):
                    raise ValueError(f"y_val has {len(validation.targets)} targets, but y has {len(rows.targets)}")
            self._fit_rows(rows, names, validation, **options)
        return self

    def fit_file(
        self,
        path: str | PathLike[str],
        target: str,
        *,
        columns: Sequence[str] | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train on a file that may be larger than memory.

        The file is read once, piece by piece, into a temporary file of numbers that is mapped into memory and removed
        afterwards; then the fit is that of :meth:`fit`.

        Parameters
        ----------
        path : str or path
            A CSV, TSV, text or JSON lines file, compressed or not, a Parquet or Feather file, or a folder of Parquet
            files. Parquet and Feather need ``castlereg[arrow]``.
        target : str
            Column to predict.
        columns : sequence of str, optional
            Columns to predict from; all others by default.
        separator, decimal, encoding : str, optional
            Format of text files, such as ``";"``, ``","`` and ``"cp1252"``; detected by default.
        callbacks, on_interrupt
            As in :meth:`fit`.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import NetworkRegressor
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "diabetes.csv"
        ...     load_diabetes(as_frame=True).frame.to_csv(path, index=False)
        ...     model = NetworkRegressor(max_epochs=2, random_state=0).fit_file(path, "target")
        >>> model.n_features_in_
        10
        """
        import pandas as pd

        from castlereg.table.files import TableFile

        self._check_options()
        file = TableFile.open(path, separator=separator, decimal=decimal, encoding=encoding)
        with self._unchanged_by_errors():
            names = _chosen_columns(file, target, columns)
            read, y = file.columns_on_disk(names, target, progress=bool(self.verbose))
            (values,), _ = read_target(y, f"column {target!r} of {file}")
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, object)
            rows = Rows(read, (check_target(values, target, self.target_kind),))
            coded = pd.DataFrame(read.values, columns=names, copy=False)  # for scorers, which need few of the rows
            choice = self._choice_options(coded, y)
            self._fit_rows(rows, [target], None, callbacks=callbacks, on_interrupt=on_interrupt, **choice)
        return self

    def _fit_rows(
        self,
        rows: Rows,
        target_names: list[str],
        validation: Rows | None,
        *,
        groups: ArrayLike | None = None,
        time_column: str | int | None = None,
        graph: CausalGraph | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
        **request: Any,
    ) -> None:
        for name, value in (("groups", groups), ("time_column", time_column)):
            if value is not None and validation is not None:
                raise ValueError(
                    f"{name} cannot be combined with X_val and y_val, which are the validation rows: drop {name}"
                )
        names = _different([*rows.columns.names, *target_names])
        edges = None
        if self.constraints is not None or graph is not None:
            from castlereg.causal import graph_rules

            edges = graph_rules(self.constraints, graph, names, len(target_names))
        control = Control(check_callbacks(callbacks), on_interrupt, bool(self.verbose))
        with watched(control.callbacks, self):
            self.model_ = fit(
                FitRequest(
                    rows,
                    names[len(rows.columns.names) :],
                    [self.target_kind] * len(target_names),
                    seed_sequence(self.random_state),
                    self._training_options(),
                    validation,
                    named_columns(self.categorical_features, rows.columns.names),
                    self.class_weight,
                    target_loss(self.loss),
                    monotone_signs(self.monotone, rows.columns.names),
                    edges,
                    graph,
                    None if groups is None else group_codes(groups, len(rows)),
                    None if time_column is None else column_index("time_column", time_column, rows.columns.names),
                    control=control,
                    **self._request_options(),
                    **request,
                )
            )

    def _training_options(self) -> TrainingOptions:
        """Collect the options that decide how networks are trained."""
        sizes = self.hidden_layer_sizes
        return TrainingOptions(
            None if isinstance(sizes, str) else tuple(map(int, sizes)),
            None if self.learning_rate is None else float(self.learning_rate),
            None if self.max_epochs is None else int(self.max_epochs),
            self.recipe or Recipe(),
        )

    def _request_options(self) -> dict[str, Any]:
        """Return further fields of the request for a fit."""
        return {}

    def _choice_options(self, X: Any, y: Any) -> dict[str, Any]:
        """Return what splitters and scorers of a search need of the rows."""
        return {}

    @abstractmethod
    def _candidates(self) -> list[Regularizers]:
        """Check the regularizers and return the candidates of a plain fit or of a grid."""

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _check_options(self) -> None:
        check_sizes("hidden_layer_sizes", self.hidden_layer_sizes)
        if not isinstance(self.recipe, Recipe | None):
            raise ValueError(f"recipe={self.recipe!r} must be Recipe(...) or None")
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, above=0)
        if self.max_epochs is not None:
            check_integer("max_epochs", self.max_epochs)
        target_loss(self.loss)
        candidates = self._candidates()
        if self.monotone is not None:
            if self.recipe is not None and self.recipe.activation not in (None, "relu"):
                raise ValueError(
                    f"monotone needs a non-decreasing activation, but recipe has {self.recipe.activation!r}: use 'relu'"
                )
            if any(isinstance(part, BatchNorm) for candidate in candidates for part in candidate):
                raise ValueError(
                    "monotone cannot be combined with BatchNorm, which may flip the signs of units: drop one"
                )
        castles = [castle_of(candidate) for candidate in candidates]
        if self.recipe and self.recipe.refit and any(c is None or c.sparsity is None for c in castles):
            raise ValueError(
                "recipe has refit=True, which needs a Castle with sparsity to select columns: use CastleRegressor "
                "or CastleClassifier, or drop refit"
            )

    # --- what was learned -------------------------------------------------------------------------

    @property
    def graph_(self) -> CausalGraph:
        """The causal graph of the columns and targets, with a probability for every edge and every direction.

        Discovered from the training rows, at most 2,000, under the constraints when it is first asked for; it does not
        depend on the networks. After ``fit(..., graph=graph)``, it is that graph.
        """
        graph = self._fitted().graph
        if graph is None:
            raise AttributeError(
                f"this {type(self).__name__} was saved without rows and before its graph was discovered: save it with "
                "rows, or after model.graph_"
            )
        return graph

    @property
    def input_graph_(self) -> InputGraph:
        """Which columns the sub-networks of CASTLE use: the paper's graph, a fact about the networks."""
        graph = self._fitted().input_graph
        if graph is None:
            raise AttributeError(
                f"this {type(self).__name__} has no input graph: only the target's sub-network was trained"
            )
        return graph

    @property
    def history_(self) -> pd.DataFrame:
        """One row per network and epoch; losses are in units of the target's variance, or of the class entropy."""
        return self._fitted().history.copy()

    @property
    def engine_(self) -> str:
        """The engine that trained the networks, see :class:`castlereg.Recipe`; ``"jax, native"`` for both."""
        return self._fitted().engine

    @property
    def schema_(self) -> pd.DataFrame:
        """One row per column of X: kind, levels, missing values, a note, and its kind of likelihood in the graph."""
        model = self._fitted()
        frame, rows = schema_frame(model.preprocessing.schema), model.sampled_rows
        if rows is None:
            return frame
        from castlereg.causal.judge import Column
        from castlereg.causal.variables import Variables

        table = Variables.of_rows(model.preprocessing, rows)
        kinds = [Column.of(*pair).kind for pair in zip(table.columns, table.values.T, strict=True)]
        return frame.assign(kind_in_graph=kinds[: len(frame)])

    @property
    def validation_loss_(self) -> float:
        """Mean validation loss of the networks at their best epochs; for a pool, the held-out loss of the blend."""
        return self._fitted().validation_loss

    @property
    def selected_features_(self) -> list[str]:
        """Columns that at least half of the networks of a refit use."""
        selected = self._fitted().selected
        if selected is None:
            raise AttributeError(
                f"this {type(self).__name__} has no selected columns: fit with recipe=Recipe(refit=True), or search a "
                "pool (search='fast') with enough time for its refit"
            )
        return [self.model_.preprocessing.schema[j].name for j in selected]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Permutation importance of each column, as a share of the explained loss, shape (features,).

        The increase of the target's loss when the column is permuted among held-out rows, divided by the loss that the
        model explains, see :func:`castlereg.search.held_out.column_importances`. 0 means that the prediction does not
        need the column, and 1 that without it, it is as bad as a constant prediction. The values need not sum to 1:
        related columns can replace each other, an interaction counts for each of its columns, and a permuted column
        misleads the model (the only cause of a linear target has 2). With few rows the values are inexact.

        Computed on first access, from at most 20,000 rows, fewer for wide tables. ``castlereg.save`` stores the values.
        """
        importances = self._fitted().importances
        assert importances is not None  # every fit holds rows out, and files have the values
        return importances.copy()

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return len(self._fitted().targets)

    def _fitted(self) -> FittedModel:
        if "model_" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit")
        return self.model_

    def _predicted(self, X: ArrayLike) -> list[NDArray[np.float64]]:
        """Predict every target by the mean over networks: values (rows,) or probabilities (rows, classes)."""
        check_is_fitted(self)
        return self.model_.predict(read_features(self, X))

    def standardized(self, X: ArrayLike, y: ArrayLike, member: int = 0) -> tuple[Parameters, Batch]:
        """Return a network's weights and standardized rows, the arguments of the formulas in :mod:`castlereg.castle`.

        Parameters
        ----------
        X, y : array-like
            As in ``fit``.
        member : int
            Index of the network, if there are several.

        Returns
        -------
        parameters : Parameters
            Weights of all sub-networks, or only of those of the targets.
        batch : Batch
            The rows in float64, in the same order.
        """
        check_is_fitted(self)
        check_integer("member", member, least=0)
        networks = self.model_.networks
        if member >= networks.n_members:
            raise ValueError(
                f"member={member} is out of range: the model has {networks.n_members} networks, counted from 0"
            )
        rows = read_known_rows(self, X, y, self.model_.target_kinds)
        encoded = self.model_.encoded(rows).inputs.astype(np.float64)
        weight = np.full(len(rows), 1 / len(rows))
        return networks.member(member), as_batch(
            encoded, weight, networks.standardization.take(member), networks.layout
        )

    def structural_model(
        self,
        graph: CausalGraph | None = None,
        *,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 50,
        random_state: int | np.random.Generator = 0,
    ) -> FittedWorld:
        """Learn an equation for every column from its causes, and answer what-if questions.

        Parameters
        ----------
        graph : CausalGraph, optional
            Graph to treat as known, such as an edited ``graph_``. By default answers are averages over plausible
            graphs, weighted by the probabilities of ``graph_``.
        X, y : array-like, optional
            Rows to learn the equations from; by default those of ``fit``, or the 2,000 of them that a file has.
        sample_weight : array-like of shape (rows,), optional
            Weights of ``X`` and ``y``; the rows of ``fit`` keep their own weights.
        n_draws : int
            Number of graphs and bootstrap samples for the error bars; 0 for none.
        random_state : int or Generator

        Returns
        -------
        FittedWorld
            Its methods are described in :class:`castlereg.StructuralModel`.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import CastleRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = CastleRegressor(max_epochs=5, random_state=0).fit(X, y)
        >>> world = model.structural_model(n_draws=10)
        >>> effect = world.effect("bmi", "target", by=1.0)
        >>> bool(effect.answer.low[0] <= effect.estimate[0] <= effect.answer.high[0])
        True
        """
        from castlereg.causal import structural_model

        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("X and y must be passed together: pass both or neither")
        if X is not None:
            rows = self.model_.preprocessing.coded(read_known_rows(self, X, y, self.model_.target_kinds))
            rows = _weighted(rows, sample_weight)
        elif sample_weight is not None:
            raise ValueError("sample_weight needs X and y: pass all three, or none")
        elif self.model_.rows is not None:
            rows = self.model_.rows
        else:
            raise ValueError("the model was saved without rows: pass X and y to learn the equations from")
        graph = self.graph_ if (is_default := graph is None) else graph
        return structural_model(
            self.model_.preprocessing,
            rows,
            graph,
            is_graph_given=not is_default,
            n_draws=n_draws,
            random_state=random_state,
            progress=bool(self.verbose),
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class FixedNetwork(NetworkEstimator):
    """One network, or several that differ in their seeds and optionally in their rows, without a search."""

    regularizers: Sequence[Regularizer] = field(default=(), kw_only=True)
    learning_rate: float = field(default=1e-3, kw_only=True)
    max_epochs: int = field(default=200, kw_only=True)
    n_members: int = field(default=1, kw_only=True)
    bootstrap: bool = field(default=False, kw_only=True)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time_column: str | int | None = None,
        graph: CausalGraph | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (rows, features)
            Numbers, text, categories, booleans and dates, with missing values. Each column is one node, whatever its
            type; ``schema_`` shows how it was read.
        y : array-like of shape (rows,) or (rows, targets)
            One or several targets, without missing values.
        sample_weight : array-like of shape (rows,), optional
            Weights that multiply the losses of the rows. Rows with weight 0 are left out.
        X_val, y_val : array-like, optional
            Validation rows for early stopping. By default a random tenth of the rows is held out, see
            :class:`castlereg.Recipe`.
        groups : array-like of shape (rows,), optional
            Labels of rows that belong together, such as the visits of one patient. No group is then in both the
            training and the validation rows.
        time_column : str or int, optional
            Name or index of a column of ``X`` with numbers or dates. The validation rows are then the latest rows,
            later than every training row. With ``groups`` they are also whole groups; groups that span all times raise.
        graph : CausalGraph, optional
            Train with only the edges of this graph, such as a discovered graph that was edited. Sparsity does not act
            on these edges.
        callbacks : sequence of callable
            Functions called after epochs with an :class:`castlereg.callbacks.Epoch`; they can stop networks. See
            :class:`castlereg.callbacks.Callback`.
        on_interrupt : {"raise", "keep"}
            Effect of Ctrl-C: raise KeyboardInterrupt and leave the estimator unchanged, or end training with a warning
            and keep the best networks so far.
        """
        watching: dict[str, Any] = {"callbacks": callbacks, "on_interrupt": on_interrupt}
        related: dict[str, Any] = {"groups": groups, "time_column": time_column}
        return self._fit(X, y, sample_weight, X_val=X_val, y_val=y_val, graph=graph, **related, **watching)

    def _candidates(self) -> list[Regularizers]:
        return [check_regularizers(self.regularizers)]

    def _training_options(self) -> TrainingOptions:
        others = tuple(part for part in self._candidates()[0] if not isinstance(part, Castle))  # of a refit
        return replace(super()._training_options(), regularizers=others)

    def _request_options(self) -> dict[str, Any]:
        members = {"n_members": int(self.n_members), "bootstrap": bool(self.bootstrap)}
        return {"candidates": self._candidates(), **members}

    def _check_options(self) -> None:
        super()._check_options()
        check_integer("n_members", self.n_members)
        check_flag("bootstrap", self.bootstrap)


@dataclass(eq=False, repr=False)
class FixedCastle(FixedNetwork):
    """CASTLE with fixed strengths."""

    reg_beta: float = 0.01
    reg_lambda: float = 1.0
    castle: Castle | None = field(default=None, kw_only=True)
    constraints: EdgeConstraints | None = field(default=None, kw_only=True)

    def _candidates(self) -> list[Regularizers]:
        if not isinstance(self.castle, Castle | None):
            raise ValueError(f"castle={self.castle!r} must be Castle(...) or None")
        castle, name = self.castle or Castle(), type(self).__name__
        strengths: dict[str, Any] = {"reg_beta": self.reg_beta, "reg_lambda": self.reg_lambda}
        for option, value in strengths.items():
            if getattr(castle, option) not in (value, getattr(type(castle), option)):
                raise ValueError(
                    f"castle has {option}={getattr(castle, option)!r}, but {name} has {option}={value!r}: set {option} "
                    f"of {name} instead"
                )
        return [(replace(castle, **strengths), *other_regularizers(self))]


def other_regularizers(estimator: Any) -> Regularizers:
    """Check the regularizers of an estimator that has CASTLE already."""
    others, name = check_regularizers(estimator.regularizers), type(estimator).__name__
    if castle_of(others) is not None:
        network = name.replace("Castle", "Network").removesuffix("CV")
        raise ValueError(
            f"{name} already has a Castle regularizer: pass its details as castle=Castle(...), or use "
            f"{network}(regularizers=[Castle(...)])"
        )
    return others


def seed_sequence(random_state: Seed) -> np.random.SeedSequence:
    """Convert ``random_state`` to a seed without touching NumPy's global random state."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    check_integer("random_state", random_state, least=0)
    return np.random.SeedSequence(int(random_state))


def _chosen_columns(file: TableFile, target: str, columns: Sequence[str] | None) -> list[str]:
    """Return the names of the columns of a file to predict from."""
    from castlereg.table.files import check_columns, note_unnamed

    check_columns([target], file.names, file)
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r} must be a sequence of names, such as [{columns!r}]")
    names = [name for name in file.names if name != target] if columns is None else list(columns)
    check_columns(names, file.names, file)
    if target in names:
        raise ValueError(f"columns has the target {target!r}: drop it")
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"columns has {duplicate!r} more than once: drop the duplicates")
    if not names:
        raise ValueError(f"{file} has no column other than the target {target!r}: there is nothing to predict from")
    note_unnamed(names, file)
    return names


def read_features(
    estimator: Any, X: ArrayLike, what: str = "X", *, ignored: Collection[int] | None = None, reset: bool = False
) -> Columns:
    """Read a table, and check its columns against those of ``fit``, or store them if ``reset``."""
    columns = read_columns(X, what, estimator.model_.preprocessing.unusable if ignored is None else ignored)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return columns


def read_known_rows(
    estimator: Any, X: ArrayLike, y: Any, kinds: Sequence[TargetKind], what: tuple[str, str] = ("X", "y")
) -> Rows:
    """Read rows with targets of known kinds; ``what`` are the names of X and y in messages."""
    rows, _ = _with_targets(read_features(estimator, X, what[0]), y, kinds[0], what[1])
    if len(rows.targets) != len(kinds):
        raise ValueError(f"{what[1]} has {len(rows.targets)} targets, but the model has {len(kinds)}")
    return rows


def _with_targets(columns: Columns, y: Any, kind: TargetKind, what: str) -> tuple[Rows, list[str]]:
    targets, names = read_target(y, what)
    check_consistent_length(columns.values, *targets)
    return Rows(columns, tuple(check_target(*target, kind) for target in zip(targets, names, strict=True))), names


def _different(names: list[str]) -> list[str]:
    """Add a number to repeated names, to give every node its own name."""
    counts: dict[str, int] = {}
    different = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        different.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return different


def _weighted(rows: Rows, sample_weight: ArrayLike | None) -> Rows:
    """Give rows their weights, checked as scikit-learn does, and that none is negative or beyond float32."""
    if sample_weight is None:
        return rows
    try:
        weight: NDArray[np.float64] = _check_sample_weight(sample_weight, np.empty((len(rows), 0)), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise
        raise ValueError(f"sample_weight must be numbers, one for each row: {error}") from None
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight has {weight[row]:g} in row {row}: weights must not be negative")
    largest = float(weight.max(initial=0.0))
    if largest * len(rows) > _LARGEST or 0 < largest < _SMALLEST:
        raise ValueError(
            f"sample_weight has {largest:g} as its largest value, beyond the range of float32, which networks use: "
            "divide the weights by their mean"
        )
    return replace(rows, weight=weight)
