"""Base classes of the estimators: options, reading of the data, and attributes of the fitted model."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from castlereg.causal.graph.constraints import EdgeConstraints, graph_rules
from castlereg.causal.structural.of_model import structural_model
from castlereg.estimators.recipe import DEFAULT_RECIPE, Recipe
from castlereg.fitted.model import FittedModel
from castlereg.layout import EdgeRules
from castlereg.losses import Batch, as_batch
from castlereg.network import Parameters
from castlereg.options import check_choice, check_flag, check_integer, check_number, check_sizes
from castlereg.regularizers import BatchNorm, Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.regularizers.protocol import check_regularizers
from castlereg.search.fit import TableData, fit
from castlereg.search.request import CrossValidation, Data, FitRequest
from castlereg.table.group_splits import group_codes
from castlereg.table.reading import Columns, read_columns
from castlereg.table.rows import Rows
from castlereg.table.schema import Monotone, monotone_signs, named_columns, schema_frame
from castlereg.table.targets import ClassWeight, TargetKind, check_target, read_target, target_kinds
from castlereg.table.time_splits import time_column_index
from castlereg.target_losses import TargetLoss, target_loss
from castlereg.training import Plan, phases_for
from castlereg.training.callbacks import Callback, check_callbacks, watched
from castlereg.training.loop import OnInterrupt

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.causal.graph import CausalGraph
    from castlereg.causal.structural import FittedWorld

# In two layers of three or four ReLUs, all units often die; the paper's narrowest table has 8 features.
_NARROWEST = 8
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
    unusable_columns: Literal["raise", "drop"] = field(default="raise", kw_only=True)
    learning_rate: float = field(default=1e-3, kw_only=True)
    max_epochs: int = field(default=200, kw_only=True)
    random_state: Seed = field(default=None, kw_only=True)
    verbose: bool = field(default=False, kw_only=True)

    model_: FittedModel = field(init=False)
    target_kind: ClassVar[TargetKind]  # whether targets are numbers, classes, or inferred from their values
    class_weight: ClassVar[ClassWeight] = None  # an option of classifiers
    loss: ClassVar[Loss] = "squared"  # an option of regressors
    constraints = cast("EdgeConstraints | None", None)  # an option of CASTLE; not annotated, so not a field here

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        groups: ArrayLike | None,
        time_column: str | int | None,
        graph: CausalGraph | None = None,
        cross_validation: CrossValidation | None = None,
        callbacks: Sequence[Callback],
        on_interrupt: OnInterrupt,
    ) -> Self:
        """Check the options, read the data and fit; an error leaves the estimator unchanged."""
        self._check_options()
        callbacks = check_callbacks(callbacks)
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be passed together: pass both or neither")
        for name, value in (("groups", groups), ("time_column", time_column)):
            if value is not None and X_val is not None:
                raise ValueError(
                    f"{name} cannot be combined with X_val and y_val, which are the validation rows: drop {name}"
                )
        with self._unchanged_by_errors(), watched(callbacks, self):
            rows, names = read_training_rows(self, X, y)
            weight = None if sample_weight is None else checked_weight(sample_weight, len(rows))
            kinds = target_kinds(y, self.target_kind)
            held_out = None
            if X_val is not None:  # read with the columns of this fit, not those of an earlier fit
                held_out = _with_targets(_read_features(self, X_val, "X_val"), y_val, kinds, "y_val")[0]
            categorical = named_columns(self.categorical_features, rows.columns.names)
            data = TableData(
                rows.weighted(weight),
                held_out,
                names,
                kinds,
                categorical,
                self.class_weight,
                drop_unusable=self.unusable_columns == "drop",
                loss=target_loss(self.loss),
                monotone=monotone_signs(self.monotone, rows.columns.names),
                groups=None if groups is None else group_codes(groups, len(rows)),
                time_column=None if time_column is None else time_column_index(time_column, rows.columns.names),
            )
            edges = None
            if self.constraints is not None or graph is not None:
                edges = graph_rules(self.constraints, graph, names, len(kinds))
            request = self._request(data, len(categorical), edges, cross_validation)
            self.model_ = fit(replace(request, callbacks=callbacks, on_interrupt=on_interrupt))
        return self

    def _request(
        self, data: Data, n_features: int, edges: EdgeRules | None, cross_validation: CrossValidation | None = None
    ) -> FitRequest:
        """Collect the options in a request for a fit."""
        recipe = self.recipe or DEFAULT_RECIPE
        return FitRequest(
            data,
            self._plan(n_features),
            self._candidates(),
            seed_sequence(self.random_state),
            edges=edges,
            clipped=recipe.scaling == "robust",
            validation_fraction=recipe.validation_fraction,
            cross_validation=cross_validation,
            refit=recipe.refit,
            verbose=bool(self.verbose),
        )

    def _plan(self, n_features: int) -> Plan:
        """Return the training plan for this number of features."""
        recipe = self.recipe or DEFAULT_RECIPE
        sizes = self.hidden_layer_sizes
        return Plan(
            (max(n_features + 1, _NARROWEST),) * 2 if isinstance(sizes, str) else tuple(map(int, sizes)),
            phases_for((), int(self.max_epochs), recipe.warmup, recipe.schedule),
            float(self.learning_rate),
            int(recipe.batch_size),
            recipe.patience,
            recipe.input_init,
            recipe.batches,
            recipe.schedule,
            recipe.activation,
            recipe.averaging,
            recipe.weight_decay,
            recipe.embedding,
            recipe.engine,
        )

    @abstractmethod
    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        """Check the regularizers and return the candidates; there is only one without cross-validation."""

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    # --- options ----------------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_sizes("hidden_layer_sizes", self.hidden_layer_sizes)
        if not isinstance(self.recipe, Recipe | None):
            raise ValueError(f"recipe={self.recipe!r} must be Recipe(...) or None")
        check_choice("unusable_columns", self.unusable_columns, ["raise", "drop"])
        check_number("learning_rate", self.learning_rate, above=0)
        check_integer("max_epochs", self.max_epochs)
        loss = target_loss(self.loss)
        if self.monotone is not None:
            self._check_monotone()
        for candidate in self._candidates():
            castle = castle_of(candidate)
            if self.recipe and self.recipe.refit and (castle is None or castle.sparsity is None):
                raise ValueError(
                    "recipe has refit=True, which needs a Castle with sparsity to select columns: use CastleRegressor "
                    "or CastleClassifier, or drop refit"
                )
            if self.recipe and self.recipe.warmup and castle is not None and castle.objective == "graph":
                raise ValueError(
                    f"recipe has warmup={self.recipe.warmup}, but objective='graph' has its own phases: drop warmup"
                )
            if loss is not None and castle is not None and castle.objective == "graph":
                raise ValueError(
                    f"loss={self.loss!r} cannot be combined with objective='graph', which has its own loss: use "
                    "objective='prediction', or drop loss"
                )

    def _check_monotone(self) -> None:
        """Raise for options that cannot guarantee monotone predictions."""
        if self.recipe is not None and self.recipe.activation != "relu":
            raise ValueError(
                f"monotone needs a non-decreasing activation, but recipe has {self.recipe.activation!r}: use 'relu'"
            )
        if any(isinstance(part, BatchNorm) for candidate in self._candidates() for part in candidate):
            raise ValueError("monotone cannot be combined with BatchNorm, which may flip the signs of units: drop one")

    # --- what was learned -------------------------------------------------------------------------

    @property
    def graph_(self) -> CausalGraph:
        """The learned graph, which has no cycles."""
        graph = self._fitted().graph
        if graph is None:
            raise AttributeError(f"this {type(self).__name__} has no graph: only the target's sub-network was trained")
        return graph

    @property
    def history_(self) -> pd.DataFrame:
        """One row per network and epoch."""
        return self._fitted().history.copy()

    @property
    def engine_(self) -> str:
        """The engine that trained the networks: ``"jax"``, ``"native"``, ``"torch"``, or both as ``"jax, native"``."""
        return self._fitted().engine

    @property
    def schema_(self) -> pd.DataFrame:
        """One row per column of X: its kind, levels, number of missing values, and a note."""
        return schema_frame(self._fitted().preprocessing.schema)

    @property
    def validation_loss_(self) -> float:
        """Mean validation loss of the networks at their best epochs; for a pool, the held-out loss of the blend."""
        loss = self._fitted().validation_loss
        if np.isnan(loss):
            raise AttributeError(
                f"this {type(self).__name__} has no validation loss: partial_fit does not hold out rows"
            )
        return loss

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

        Measured on held-out rows, each predicted by networks that were not trained on it. The importance of a column
        is the increase of the target's loss when the column is permuted among the rows, divided by the loss that the
        model explains: the loss of a constant prediction minus that of the model. The loss is the squared error in
        units of the target's variance, or the log loss in units of the class entropy; for several targets, their mean.

        0 means that the prediction does not need the column, and 1 that without the column it is as bad as a constant
        prediction. The values need not sum to 1: related columns can replace each other, an interaction counts for each
        of its columns, and a permuted column misleads the model (the only cause of a linear target has 2). With few
        rows the values are inexact, and columns without influence are slightly above or below 0. If the model explains
        nothing, all values are 0.

        Computed on first access, from at most 20,000 rows, fewer for wide tables. ``castlereg.save`` stores the values.
        """
        importances = self._fitted().importances
        if importances is None:
            raise AttributeError(
                f"this {type(self).__name__} has no feature importances, because fit_file and partial_fit keep no "
                "held-out rows: use castlereg.explain(model, X, y)"
            )
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
        by = networks.standardization.of_member(member)
        return networks.member(member), as_batch(encoded, weight, by, networks.layout)

    def log_likelihood(self, X: ArrayLike, y: ArrayLike) -> float:
        """Log-likelihood of the rows over all columns, the targets included.

        With ``objective="graph"`` the graph has no cycles, so the value is a proper likelihood. Compare it on held-out
        rows to choose between models for their graph: the score of the target ignores the other columns.

        Parameters
        ----------
        X, y : array-like
            As in ``fit``.

        Returns
        -------
        float
            Mean over rows and networks, up to a constant that depends only on the table; higher is better.

        Examples
        --------
        Linear networks predict sums of sigmoids as well as two hidden layers do:

        >>> from castlereg import CastleRegressor
        >>> from castlereg.causal.synthetic import example_dag, sample
        >>> rows = sample(example_dag(), 600, random_state=0)
        >>> X, y = rows.drop(columns="Y"), rows["Y"]
        >>> fits = [
        ...     CastleRegressor(0.03, hidden_layer_sizes=sizes, objective="graph", random_state=0).fit(X[:400], y[:400])
        ...     for sizes in ((), "auto")
        ... ]
        >>> linear, deep = (model.log_likelihood(X[400:], y[400:]) for model in fits)
        >>> bool(abs(linear - deep) < 0.1)
        True
        """
        check_is_fitted(self)
        if not self.model_.networks.has_all_nodes:
            raise ValueError(
                f"this {type(self).__name__} was trained to predict only the target, not the other columns"
            )
        if any(target.node.loss is not None for target in self.model_.targets):
            raise ValueError(f"loss={self.loss!r} has no likelihood of the target: fit with loss='squared'")
        return self.model_.log_likelihood(read_known_rows(self, X, y, self.model_.target_kinds))

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
            Graph to treat as known, such as an edited ``graph_``. By default the learned graph is used, and answers are
            averages over plausible graphs, weighted by its confidence.
        X, y : array-like, optional
            Rows to learn the equations from; by default those of ``fit``. Required for models loaded from a file.
        sample_weight : array-like of shape (rows,), optional
            Weights of ``X`` and ``y``; the rows of ``fit`` keep their own weights.
        n_draws : int
            Number of graphs and bootstrap samples for the error bars; 0 for none.
        random_state : int or Generator

        Returns
        -------
        FittedWorld
            Its methods are described in :class:`castlereg.causal.structural.StructuralModel`.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import CastleRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = CastleRegressor(objective="graph", max_epochs=5, random_state=0).fit(X, y)
        >>> world = model.structural_model(n_draws=10)
        >>> effect = world.effect("bmi", "target", by=1.0)
        >>> bool(effect.answer.low[0] <= effect.estimate[0] <= effect.answer.high[0])
        True
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("X and y must be passed together: pass both or neither")
        if X is not None:
            rows = self.model_.preprocessing.coded(read_known_rows(self, X, y, self.model_.target_kinds))
            if sample_weight is not None:
                rows = rows.weighted(checked_weight(sample_weight, len(rows)))
        elif sample_weight is not None:
            raise ValueError("sample_weight needs X and y: pass all three, or none")
        elif self.model_.rows is not None:
            rows = self.model_.rows
        else:
            raise ValueError("the training rows are not in memory: pass X and y to learn the equations from")
        return structural_model(
            self.model_, rows, graph, n_draws=n_draws, random_state=random_state, progress=bool(self.verbose)
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class Ensemble(NetworkEstimator):
    """Estimators with one network, or several that differ in their seeds and optionally in their rows."""

    n_members: int = field(default=1, kw_only=True)
    bootstrap: bool = field(default=False, kw_only=True)

    def _request(
        self, data: Data, n_features: int, edges: EdgeRules | None, cross_validation: CrossValidation | None = None
    ) -> FitRequest:
        request = super()._request(data, n_features, edges, cross_validation)
        return replace(request, n_members=int(self.n_members), bootstrap=bool(self.bootstrap))

    def _check_options(self) -> None:
        super()._check_options()
        check_integer("n_members", self.n_members)
        check_flag("bootstrap", self.bootstrap)


@dataclass(eq=False, repr=False)
class PlainNetwork(Ensemble):
    """A network with any regularizers."""

    regularizers: Sequence[Regularizer] = ()

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
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train the network; the parameters are as in :meth:`castlereg.CastleRegressor.fit`."""
        return self._fit(
            X,
            y,
            sample_weight,
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            time_column=time_column,
            callbacks=callbacks,
            on_interrupt=on_interrupt,
        )

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        return [check_regularizers(self.regularizers)]


def checked_plan(estimator: NetworkEstimator, n_features: int) -> Plan:
    """Check the options of an estimator, and return its training plan for this number of features."""
    estimator._check_options()
    return estimator._plan(n_features)


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


def read_features(estimator: Any, X: ArrayLike, *, reset: bool = False, what: str = "X") -> Columns:
    """Read a table, and check its columns against those of ``fit``, or store them if ``reset``."""
    return _read_features(estimator, X, what, reset, () if reset else estimator.model_.preprocessing.unusable)


def _read_features(
    estimator: Any, X: ArrayLike, what: str, reset: bool = False, ignored: Collection[int] = ()
) -> Columns:
    columns = read_columns(X, what, ignored)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return columns


def read_training_rows(estimator: Any, X: ArrayLike, y: ArrayLike) -> tuple[Rows, list[str]]:
    """Read training rows; return them with the unique names of all features and targets, the targets last."""
    columns = read_features(estimator, X, reset=True)
    rows, names = _with_targets(columns, y, target_kinds(y, estimator.target_kind), "y")
    return rows, _different([*columns.names, *names])


def read_known_rows(
    estimator: Any, X: ArrayLike, y: Any, kinds: Sequence[TargetKind], what: tuple[str, str] = ("X", "y")
) -> Rows:
    """Read rows with targets of known kinds; ``what`` are the names of X and y in messages."""
    return _with_targets(read_features(estimator, X, what=what[0]), y, kinds, what[1])[0]


def _with_targets(columns: Columns, y: Any, kinds: Sequence[TargetKind], what: str) -> tuple[Rows, list[str]]:
    targets, names = read_target(y, what)
    if len(targets) != len(kinds):
        raise ValueError(f"{what} has {len(targets)} targets, but the model has {len(kinds)}")
    check_consistent_length(columns.values, *targets)
    values = [check_target(*target) for target in zip(targets, names, kinds, strict=True)]
    return Rows(columns, tuple(values)), names


def _different(names: list[str]) -> list[str]:
    """Add a number to repeated names, to give every node its own name."""
    counts: dict[str, int] = {}
    different = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        different.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return different


def checked_weight(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Check weights of rows as scikit-learn does, and that none is negative or beyond float32."""
    try:
        weight: NDArray[np.float64] = _check_sample_weight(sample_weight, np.empty((n_rows, 0)), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise
        raise ValueError(f"sample_weight must be numbers, one for each row: {error}") from None
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight has {weight[row]:g} in row {row}: weights must not be negative")
    largest = float(weight.max(initial=0.0))
    if largest * n_rows > _LARGEST or 0 < largest < _SMALLEST:
        raise ValueError(
            f"sample_weight has {largest:g} as its largest value, beyond the range of float32, which networks use: "
            "divide the weights by their mean"
        )
    return weight
