"""Training that continues on further rows: ``partial_fit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.causal.graph.constraints import graph_rules
from castlereg.estimators.base import Ensemble, checked_weight, read_known_rows, read_training_rows
from castlereg.fitted.model import FittedModel
from castlereg.options import check_integer
from castlereg.regularizers.castle import castle_of
from castlereg.search.fit import TableData
from castlereg.search.further import fit_further
from castlereg.table.rows import Rows
from castlereg.table.schema import monotone_signs, named_columns
from castlereg.table.targets import check_target, read_target, target_kinds
from castlereg.target_losses import target_loss
from castlereg.training import phases_for


class PartialFit(Ensemble):
    """Estimators whose training can continue on further rows."""

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, epochs: int = 1
    ) -> Self:
        """Train on some rows; later calls continue training on further rows.

        The first call learns columns, levels, scales and starting weights from its rows, as :meth:`fit` does; they are
        then fixed. Every call trains for ``epochs`` passes over all of its rows; none are held out. Adam's moments and
        the number of epochs carry over from call to call: ``partial_fit(X, y, epochs=3)`` gives exactly the same model
        as three calls with the same rows. The order of the rows of a call does not matter.

        Predictions use the weights of the last epoch, not of the best one, so ``validation_loss_`` and
        ``feature_importances_`` are not available. The graph is updated after every call, with the rows of that call.
        ``history_`` grows by one row per network and epoch, with NaN as the validation loss.

        After :meth:`fit`, or for a model loaded from a file, the first call continues from the fitted weights with new
        moments; edges that ``fit`` removed stay removed. Regularizers with state start with a new state: ``BatchNorm``
        then normalizes layers that were not normalized before, which changes predictions at first. Pickles and copies
        continue like the original. ``fit`` always starts over.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
            Later calls need the same columns as the first one. New levels and missing values are treated as in
            ``predict``.
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional
            As in :meth:`fit`: integers are copies of rows, other weights are relative to the mean weight of the call.
        epochs : int
            Number of passes over the rows.

        Notes
        -----
        ``learning_rate`` and the strengths of regularizers may change between calls, but options that define the shape
        of the networks may not. ``max_epochs`` is used only by ``Recipe(schedule="cosine")``, whose learning rate stays
        at its minimum after this number of epochs; ``patience``, ``warmup`` and ``validation_fraction`` have no effect.
        ``objective="graph"``, ``bootstrap=True`` and ``Recipe(refit=True)`` need all rows at the same time, and raise.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import CastleRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = CastleRegressor(random_state=0)
        >>> for start in range(0, 400, 100):
        ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100], epochs=5)
        >>> len(model.history_)
        20
        """
        return self._partial_fit(X, y, sample_weight, epochs)

    def _partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, epochs: int, classes: Any = None
    ) -> Self:
        """Check the options, read the rows and train on them; an error leaves the estimator unchanged."""
        self._check_options()
        self._check_partial_fit()
        check_integer("epochs", epochs)
        before: FittedModel | None = vars(self).get("model_")
        with self._unchanged_by_errors():
            data = self._data_for(X, y, sample_weight, classes, before)
            edges = None
            if self.constraints is not None:
                edges = graph_rules(self.constraints, None, data.names, len(data.rows.targets))
            request = self._request(data, len(data.rows.columns.types), edges)
            phases = phases_for((), request.plan.max_epochs, schedule=request.plan.schedule)
            request = replace(request, plan=replace(request.plan, phases=phases))
            self.model_ = fit_further(request, data, int(epochs), before)
        return self

    def _data_for(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, classes: Any, before: FittedModel | None
    ) -> TableData:
        """Read rows, as the first ones or like those before."""
        if before is None:
            rows, names = read_training_rows(self, X, y)
            kinds = target_kinds(y, self.target_kind)
            known = None if classes is None else _given_classes(classes, rows)
        else:
            self._check_same_model(before)
            kinds, known = before.target_kinds, None
            rows = read_known_rows(self, X, y, kinds)
            names = [column.name for column in (*before.preprocessing.schema, *before.targets)]
            if classes is not None:
                _check_same_classes(_given_classes(classes, rows), before.classes)
        return TableData(
            rows.weighted(None if sample_weight is None else checked_weight(sample_weight, len(rows))),
            None,
            names,
            kinds,
            named_columns(self.categorical_features, rows.columns.names),
            self.class_weight,
            drop_unusable=self.unusable_columns == "drop",
            loss=target_loss(self.loss),
            monotone=monotone_signs(self.monotone, rows.columns.names),
            classes=known,
        )

    def _check_same_model(self, before: FittedModel) -> None:
        """Raise if an option that must stay fixed has changed since the first call."""
        names = [column.name for column in before.preprocessing.schema]
        losses = {target.node.loss for target in before.targets if target.is_numeric}
        signs = monotone_signs(self.monotone, names) or [0] * len(names)
        if losses - {target_loss(self.loss)} or list(signs) != before.preprocessing.monotone:
            raise ValueError("loss or monotone has changed since the first call: reset it, or call fit to start over")

    def _check_partial_fit(self) -> None:
        """Raise for options that need all rows at the same time."""
        castle = castle_of(self._candidates()[0])
        option = self.class_weight
        class_weights = option if isinstance(option, list | tuple) else [option]
        needs_all = {
            "objective='graph' discovers its graph": castle is not None and castle.objective == "graph",
            "bootstrap=True draws": self.bootstrap,
            "Recipe(refit=True) selects columns": self.recipe is not None and self.recipe.refit,
            "class_weight='balanced' counts": "balanced" in class_weights,
        }
        for name in (name for name, is_set in needs_all.items() if is_set):
            raise ValueError(f"{name} from all rows, but partial_fit has only some of them: use fit, or drop it")


class PartialFitOfClasses(PartialFit):
    """Classifiers whose training can continue on further rows; the first rows need not have all classes."""

    def partial_fit(  # type: ignore[override]  # classes come before weights, as in scikit-learn
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | Sequence[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        epochs: int = 1,
    ) -> Self:
        """Train on some rows, with further rows in later calls; see :meth:`castlereg.CastleRegressor.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight, epochs
            As for regressors. Classes that are not in the first call raise later, unless they are in ``classes``.
        classes : array-like, optional
            All classes, including those of later calls; by default those of the first call's rows. For several targets,
            a list with the classes of each. Later calls may repeat it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from castlereg import NetworkClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NetworkClassifier(random_state=0).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
        >>> model.partial_fit(X[50:], y[50:]).predict_proba(X).shape
        (150, 3)
        """
        return self._partial_fit(X, y, sample_weight, epochs, classes)


def _given_classes(classes: Any, rows: Rows) -> list[NDArray[Any]]:
    """Read the sorted classes of each target; raise if the rows have others."""
    lists = [classes] if len(rows.targets) == 1 else list(classes)
    if len(lists) != len(rows.targets):
        raise ValueError(f"classes has {len(lists)} lists for {len(rows.targets)} targets: pass one for each")
    read = []
    for labels, values in zip(lists, rows.targets, strict=True):
        (column,), _ = read_target(labels, "classes")
        known = np.unique(check_target(column, "classes", "classes"))
        if len(known) < 2:
            raise ValueError(f"classes={known.tolist()} has only one class: a classifier needs at least two")
        others = [label for label in np.unique(values).tolist() if label not in known.tolist()]
        if others:
            raise ValueError(f"y has class {others[0]!r}, which is not in classes={known.tolist()}")
        read.append(known)
    return read


def _check_same_classes(given: Sequence[NDArray[Any]], known: Sequence[NDArray[Any]]) -> None:
    for new, old in zip(given, known, strict=True):
        if new.tolist() != old.tolist():
            raise ValueError(
                f"classes={new.tolist()} are not those of the model, {old.tolist()}: drop classes, or call fit to "
                "start over"
            )
