"""Training that goes on with other rows: ``partial_fit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.data.rows import Rows
from castlereg.data.schema import monotone_signs, named_columns
from castlereg.data.targets import check_target, read_target, target_kinds
from castlereg.estimators.base import Ensemble, checked_weight, read_known_rows, read_training_rows
from castlereg.fitted.model import FittedModel
from castlereg.graph.constraints import graph_rules
from castlereg.options import check_integer
from castlereg.regularizers.castle import castle_of
from castlereg.search.fit import TableData
from castlereg.search.further import fit_further
from castlereg.target_losses import target_loss
from castlereg.training import phases_for


class PartialFit(Ensemble):
    """What estimators do that can be trained further."""

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, epochs: int = 1
    ) -> Self:
        """Train on some rows, and go on with others later.

        The first call reads columns, levels, scales and starting weights from its rows, as :meth:`fit` does, and they
        stay. Every call makes ``epochs`` passes over the rows given: all of them are trained on, and none is held out.
        Adam's moments and the number of epochs go on from call to call, so that ``partial_fit(X, y, epochs=3)`` is the
        same as three calls with the same rows, bit for bit. The order of the rows of a call does not matter.

        The weights of the last epoch predict, not those of a best one: there is no ``validation_loss_``, and no
        ``feature_importances_``. The graph is read anew after every call, with the rows of that call. ``history_``
        grows by a row per network and epoch, with NaN as the validation loss.

        After :meth:`fit`, or when the model comes from a file, the first call goes on from the weights that predict,
        with fresh moments; edges that ``fit`` left out stay out. Regularizers with a state of their own begin it anew:
        ``BatchNorm`` then normalizes layers that it had left as they were, which changes predictions at first. Pickles
        and copies go on as the original would. ``fit`` always starts anew.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
            Later calls have the columns of the first one. New levels and missing values count as in ``predict``.
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional
            As in :meth:`fit`: whole numbers are copies, others count relative to the mean of the rows given.
        epochs : int
            Passes over the rows.

        Notes
        -----
        ``learning_rate`` and the strengths of regularizers may be changed between calls; what shapes the networks may
        not. ``max_epochs`` matters only for ``Recipe(schedule="cosine")``, whose rate stays at its lowest after as many
        epochs; ``patience``, ``warmup`` and ``validation_fraction`` do not matter. ``objective="graph"``,
        ``bootstrap=True`` and ``Recipe(refit=True)`` need all rows at once, and raise.

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
        """Check the options, read the rows and train on them; an error leaves the estimator as it was."""
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
        """Raise if an option has changed that the model was made with."""
        names = [column.name for column in before.preprocessing.schema]
        losses = {target.node.loss for target in before.targets if target.is_numeric}
        signs = monotone_signs(self.monotone, names) or [0] * len(names)
        if losses - {target_loss(self.loss)} or list(signs) != before.preprocessing.monotone:
            raise ValueError("loss or monotone has changed: set it back, or call fit to start anew")

    def _check_partial_fit(self) -> None:
        """Reject what needs all rows at once."""
        castle = castle_of(self._candidates()[0])
        given = self.class_weight
        needs_all = {
            "objective='graph' discovers its graph": castle is not None and castle.objective == "graph",
            "bootstrap=True draws": self.bootstrap,
            "Recipe(refit=True) selects columns": self.recipe is not None and self.recipe.refit,
            "class_weight='balanced' counts": "balanced" in (given if isinstance(given, list | tuple) else [given]),
        }
        for what in (what for what, is_given in needs_all.items() if is_given):
            raise ValueError(f"{what} from all rows at once, which partial_fit never has: use fit, or another option")


class PartialFitOfClasses(PartialFit):
    """The same for classifiers, whose first rows may not have all classes."""

    def partial_fit(  # type: ignore[override]  # classes come before weights, as in scikit-learn
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | Sequence[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        epochs: int = 1,
    ) -> Self:
        """Train on some rows, and go on with others later; see :meth:`castlereg.CastleRegressor.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight, epochs
            As there. A class that was not there in the first call raises, unless ``classes`` has it.
        classes : array-like, optional
            All classes that there will be, for the first call; those of its rows by default. For several targets a
            list, with the classes of each. Later calls may repeat it.

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
    """Read the classes of each target, sorted; raise if the rows have others."""
    lists = [classes] if len(rows.targets) == 1 else list(classes)
    if len(lists) != len(rows.targets):
        raise ValueError(f"classes has {len(lists)} lists for {len(rows.targets)} targets: give one for each")
    read = []
    for given, values in zip(lists, rows.targets, strict=True):
        (column,), _ = read_target(given, "classes")
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
                f"classes={new.tolist()} are not those of the model, {old.tolist()}: they stay, so leave classes out, "
                "or call fit to start anew"
            )
