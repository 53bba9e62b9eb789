"""Fitting from a file that may be larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Self

import numpy as np

from castlereg.causal.graph.constraints import graph_rules
from castlereg.estimators.base import Ensemble
from castlereg.options import check_integer
from castlereg.search.file_data import FileData
from castlereg.search.fit import fit
from castlereg.target_losses import target_loss
from castlereg.training.callbacks import Callback, check_callbacks, watched
from castlereg.training.file_source import PIECE
from castlereg.training.loop import OnInterrupt


class FileFit(Ensemble):
    """Estimators that can be fitted from a file."""

    def fit_file(
        self,
        path: str | PathLike[str],
        target: str,
        *,
        validation: str | PathLike[str] | None = None,
        chunk_rows: int = 131_072,
        columns: Sequence[str] | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train on a file that may be larger than memory.

        The file is read twice: once to find the kinds of its columns, by the same rules as in :meth:`fit`, and once to
        write the encoded rows to a temporary file, with four bytes per channel, which is removed afterwards. Each epoch
        reads this file in a different order.

        Parameters
        ----------
        path : str or path
            A CSV, TSV, text or JSON lines file, compressed or not, a Parquet or Feather file, or a folder of Parquet
            files. Parquet and Feather need ``castlereg[arrow]``.
        target : str
            Column to predict.
        validation : str or path, optional
            File of validation rows. By default a tenth of the rows is held out (:class:`castlereg.Recipe`), stratified
            by class. In both cases at most 100,000 rows are used.
        chunk_rows : int
            Number of rows that are in memory at a time; rows are shuffled within these.
        columns : sequence of str, optional
            Columns to predict from; all others by default.
        separator, decimal, encoding : str, optional
            Format of text files, such as ``";"``, ``","`` and ``"cp1252"``; detected by default.
        callbacks : sequence of callable
            As in :meth:`fit`.
        on_interrupt : {"raise", "keep"}
            As in :meth:`fit`.

        Notes
        -----
        The same seed gives the same model. Unlike with :meth:`fit`, it depends on the order of the rows in the file and
        on the column names.

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
        self._check_options()
        callbacks = check_callbacks(callbacks)
        check_integer("chunk_rows", chunk_rows, least=PIECE)
        if self.bootstrap:
            raise ValueError(
                "bootstrap=True cannot be combined with fit_file, which reads rows in pieces: use fit, or False"
            )
        names = ("target_kind", "categorical_features", "class_weight", "monotone")
        options = {name: getattr(self, name) for name in names}
        options |= {"chunk_rows": int(chunk_rows), "drop_unusable": self.unusable_columns == "drop"}
        options["loss"] = target_loss(self.loss)
        text = {"separator": separator, "decimal": decimal, "encoding": encoding}
        data = FileData.opened(path, target, validation, columns, text, **options)
        edges = None if self.constraints is None else graph_rules(self.constraints, None, data.names, 1)
        request = self._request(data, len(data.features), edges)
        with self._unchanged_by_errors(), watched(callbacks, self):
            self.model_ = fit(replace(request, callbacks=callbacks, on_interrupt=on_interrupt))
            self.n_features_in_ = len(data.features)
            self.feature_names_in_ = np.array(data.features, object)
        return self
