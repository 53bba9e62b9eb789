"""What the estimators share: options, checks of the data, the call of the trainer."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.graph import CausalGraph
from castlereg.layout import Node
from castlereg.objective import trained_nodes
from castlereg.options import check_choice, check_fraction, check_integer, check_number, check_sizes
from castlereg.regularizers import Regularizer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.tables.encoding import Scaling, check_range, is_constant, numeric_layout
from castlereg.tables.refusals import why_refused
from castlereg.tables.row_order import in_own_order
from castlereg.training import Member, Schedule, Table, train

# Two layers of three or four ReLUs often die at once; the paper's narrowest table has 8 features.
_NARROWEST = 8
_FEWEST_ROWS = 3  # two to train on, one to stop by


@dataclass(frozen=True)
class Rows:
    """Checked rows in their own order, with an encoded target."""

    X: NDArray[np.float64]  # (rows, features)
    y: NDArray[np.float64]  # (rows, channels of the target)
    weight: NDArray[np.float32] | None

    def __len__(self) -> int:
        return len(self.X)


class NetworkEstimator(BaseEstimator, metaclass=ABCMeta):
    """Options and fitting of all estimators."""

    def __init__(
        self,
        regularizers: Sequence[Regularizer] = (),
        *,
        hidden_layer_sizes: Literal["auto"] | tuple[int, ...] = "auto",
        input_init: str = "small",
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        self.regularizers = regularizers
        self.hidden_layer_sizes = hidden_layer_sizes
        self.input_init = input_init
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_members = n_members
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
        X : array-like of shape (rows, features)
            Numbers without gaps. Columns are standardized inside.
        y : array-like of shape (rows,)
            Target.
        sample_weight : array-like of shape (rows,), optional
            Weights of rows. A whole number means as many copies of the row; other weights multiply the row's loss.
        X_val, y_val : array-like, optional
            Rows to stop by. By default a random ``validation_fraction`` of the rows is held out.

        Returns
        -------
        self
        """
        self._check_options()
        columns, target, names = self._checked(X, y)
        weight = None if sample_weight is None else _checked_weight(sample_weight, columns)
        columns, target, row_weight = in_own_order(columns, target, weight)
        if len(columns) < _FEWEST_ROWS:
            raise ValueError(
                f"n_samples={len(columns)} is too few: a network needs at least {_FEWEST_ROWS} rows with a positive "
                "weight, two to train on and one to stop by"
            )
        rows = Rows(columns, self._encode_target(target), row_weight)
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        held_out = None if X_val is None else self._validation_rows(X_val, y_val)
        self._train(rows, held_out, names)
        return self

    def _checked(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any], list[str]]:
        """Check rows to learn from; return features, target and the names of both, the target's last."""
        target_name = _name_of(y)
        columns, target = self._validated(X, y)
        names = self._feature_names()
        check_range(columns, names, "X")
        self._check_target(target, "y")
        return columns, target, _different([*names, target_name])

    def _encoded(self, parts: list[Rows], names: list[str]) -> tuple[Table, Scaling]:
        """Lay rows out as a table, the first part being those that decide what is constant."""
        rows = parts[0]
        constant = np.flatnonzero(is_constant(rows.X))
        if len(constant):
            warnings.warn(
                f"constant columns have no edges and no influence: {', '.join(repr(names[j]) for j in constant)}",
                UserWarning,
                stacklevel=4,
            )
        scaling = Scaling.fit(rows.X)
        table = Table(
            np.concatenate([np.hstack([scaling.encode(part.X), part.y]) for part in parts]).astype(np.float32),
            numeric_layout(rows.X.shape[1], self._target_node()),
            _joined_weights(parts),
            tuple(int(j) for j in constant),
        )
        return table, scaling

    def _train(self, rows: Rows, held_out: Rows | None, names: list[str]) -> None:
        """Encode, lay out, train, and keep what was learned."""
        seed = self._seed()
        table, scaling = self._encoded([rows] if held_out is None else [rows, held_out], names)
        layout = table.layout
        if held_out is None:
            train_rows, validation_rows = self._split(rows, np.random.default_rng(_spawn(seed, 1)))
        else:
            train_rows, validation_rows = np.arange(len(rows)), len(rows) + np.arange(len(held_out))
        sizes = self._sizes(layout.n_features)
        regularizers = check_regularizers(self._all_regularizers(), sizes)
        members = [Member(train_rows, validation_rows, _spawn(seed, 0, i), regularizers) for i in range(self.n_members)]
        stack = train(
            table,
            members,
            hidden_layer_sizes=sizes,
            schedule=self._schedule(),
            input_init=self.input_init,  # type: ignore[arg-type]
            released_init=self._released(),
            progress=bool(self.verbose),
        )
        stack = stack.take(np.flatnonzero(np.isfinite(stack.validation_loss)))
        self.network_ = FittedNetwork.from_stack(stack, layout, scaling)
        self.history_: pd.DataFrame = stack.history
        self.validation_loss_ = float(stack.validation_loss.mean())
        if len(trained_nodes(regularizers, layout)) == layout.n_nodes:
            self.graph_ = CausalGraph.from_weights(self.network_.edge_weights().mean(axis=0), names, target=names[-1])
        elif hasattr(self, "graph_"):
            del self.graph_  # of an earlier fit

    # --- what CASTLE does differently -------------------------------------------------------------

    def _all_regularizers(self) -> tuple[Regularizer, ...]:
        return check_regularizers(self.regularizers)

    def _released(self) -> bool:
        return False

    def _schedule(self) -> Schedule:
        return Schedule(float(self.learning_rate), int(self.batch_size), int(self.max_epochs), int(self.patience))

    def _auto_width(self, n_features: int) -> int:
        return max(n_features + 1, _NARROWEST)

    # --- what regressor and classifier do differently -------------------------------------------

    @abstractmethod
    def _target_is_numeric(self) -> bool: ...

    @abstractmethod
    def _target_node(self) -> Node: ...

    @abstractmethod
    def _check_target(self, y: NDArray[Any], what: str) -> None:
        """Refuse values that cannot be a target."""

    @abstractmethod
    def _encode_target(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Learn how to encode the target, and return its channels."""

    @abstractmethod
    def _encode_more_targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Encode the target of rows that are not trained on."""

    @abstractmethod
    def _split(self, rows: Rows, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hold some rows out: return training and validation rows."""

    @abstractmethod
    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn outputs of networks, (networks, rows, outputs), into values (networks, rows) or probabilities."""

    # --- checks and small steps ------------------------------------------------------------------

    def _check_options(self) -> None:
        check_sizes("hidden_layer_sizes", self.hidden_layer_sizes)
        check_choice("input_init", self.input_init, ["small", "glorot"])
        self._all_regularizers()
        check_number("learning_rate", self.learning_rate, above=0)
        for name in ("batch_size", "max_epochs", "patience", "n_members"):
            check_integer(name, getattr(self, name))
        check_fraction("validation_fraction", self.validation_fraction)

    def _validation_rows(self, X_val: ArrayLike, y_val: ArrayLike | None) -> Rows:
        X, y = self._validated(X_val, y_val, reset=False, what="X_val")
        check_range(X, self._feature_names(), "X_val")
        self._check_target(y, "y_val")
        X, y, _ = in_own_order(X, y, None)
        return Rows(X, self._encode_more_targets(y), None)

    def _validated(self, X: Any, *y: Any, reset: bool = True, what: str = "X") -> Any:
        """Let scikit-learn check and convert; when it refuses X, say where the trouble lies."""
        of_target = {"y_numeric": self._target_is_numeric()} if y else {}
        try:
            return validate_data(self, X, *y, dtype=np.float64, reset=reset, **of_target)
        except ValueError as error:
            reason = why_refused(X, what)
            if reason is None:
                raise
            raise ValueError(reason) from error

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

    def _feature_names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _outputs(self, X: ArrayLike) -> NDArray[np.float64]:
        """Run the fitted networks on checked rows, shape (members, rows, outputs)."""
        check_is_fitted(self)
        return self.network_.target_outputs(self._validated(X, reset=False))


def _name_of(y: ArrayLike) -> str:
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)


def _different(names: list[str]) -> list[str]:
    """Mark repeated names with a number, so that every node has a name of its own."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _spawn(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=key)


def _checked_weight(sample_weight: ArrayLike, X: NDArray[np.float64]) -> NDArray[np.float64]:
    weight: NDArray[np.float64] = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight has {weight[row]:g} in row {row}: weights must not be negative")
    return weight


def _joined_weights(parts: list[Rows]) -> NDArray[np.float32] | None:
    if all(part.weight is None for part in parts):
        return None
    return np.concatenate([np.ones(len(p), np.float32) if p.weight is None else p.weight for p in parts])
