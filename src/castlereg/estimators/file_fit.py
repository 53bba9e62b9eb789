"""Fitting from a file that may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import validate_data
from tqdm.auto import tqdm

from castlereg.data.encoding import Encoder, Scaling
from castlereg.data.files import TableFile, check_columns
from castlereg.data.reading import MISSING_MARKS, Columns, as_numbers, read_columns
from castlereg.data.rows import Coding, Rows
from castlereg.data.schema import named_columns
from castlereg.data.survey import KindChanged, TableSurvey
from castlereg.data.target_survey import TargetSurvey
from castlereg.data.targets import ClassTarget, read_target
from castlereg.estimators.base import NetworkEstimator, _check_required, _spawn, numbers_among
from castlereg.estimators.held_out_threshold import HeldOut, evenly
from castlereg.estimators.holdout import n_held_out
from castlereg.graph.column_traits import ColumnTraits
from castlereg.layout import EdgeRules
from castlereg.options import check_integer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.training import Table
from castlereg.training.room import release
from castlereg.training.row_file import PIECE, RowFile
from castlereg.training.stream import train_stream

MOST_HELD_OUT = 100_000  # rows to stop by, which stay in memory; a mean loss of so many is known to a few thousandths
_MOST_FOR_THRESHOLD = 20_000
_MOST_FOR_TRAITS = 200_000
_READ_ROWS = 65_536  # rows of a file that are decoded at a time
_ORDER = 6  # purpose of a random stream; 0 and 1 are the networks and the rows held out


class FileFit(NetworkEstimator):
    """What estimators do that can be fitted from a file."""

    def fit_file(
        self,
        path: str | PathLike[str],
        target: str,
        *,
        validation: str | PathLike[str] | None = None,
        chunk_rows: int = 131_072,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Train on a file that may be larger than memory.

        The file is read twice: once to learn what its columns are, with the rules of :meth:`fit`, and once to write the
        encoded rows into a temporary file, four bytes a channel, which is gone afterwards. Every epoch reads that file
        in another order.

        Parameters
        ----------
        path : str or path
            A Parquet or CSV file, or a folder of Parquet files. Parquet needs ``castlereg[arrow]``.
        target : str
            Column to predict.
        validation : str or path, optional
            File with rows to stop by. By default ``validation_fraction`` of the rows, a share of every class; at most
            100,000 either way.
        chunk_rows : int
            Rows that are in memory at a time, and within which rows are shuffled.
        columns : sequence of str, optional
            Columns to predict from; all others by default.

        Returns
        -------
        self

        Notes
        -----
        The same seed gives the same model. Unlike that of :meth:`fit`, it depends on the order of the rows in the file
        and on the names of the columns.

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
        check_integer("chunk_rows", chunk_rows, least=PIECE)
        if self.bootstrap:
            raise ValueError("bootstrap=True draws from all rows at once, which fit_file never has: use fit, or False")
        file = TableFile.open(path)
        held_out_file = None if validation is None else TableFile.open(validation)
        names = _chosen(file, target, columns)
        if held_out_file is not None:
            check_columns([*names, target], held_out_file.columns(), held_out_file.path)
        edges = self._edge_rules([*names, target], 1, None)
        file, survey, of_target = self._surveyed(file, names, target)
        _check_rows(of_target, file)
        coding = self._coding_of(file, survey, of_target, names, target)
        _check_required(coding, edges)
        if held_out_file is not None and held_out_file.format == file.format:
            held_out_file = replace(held_out_file, texts=file.texts, marks=file.marks)
        seed = self._seed()
        of_class = self._weights_of(coding, of_target)
        shuffled = np.random.default_rng(_spawn(seed, _ORDER, 0))
        with RowFile(coding.layout.n_channels + (of_class is not None), shuffled) as rows:
            held_out = self._encoded(file, held_out_file, coding, of_target, of_class, rows, names, target, seed)
            stack = self._trained_on(rows, held_out, coding, edges, seed, chunk_rows, of_class)
            release()
            self._keep(coding, stack, [*names, target])
            self._keep_graph_of(rows, held_out, coding, of_target, [*names, target], edges)
        return self

    # --- two passes over the file ----------------------------------------------------------------

    def _surveyed(self, file: TableFile, names: list[str], target: str) -> tuple[TableFile, TableSurvey, TargetSurvey]:
        """Learn what the columns hold; read again what turns out to be text."""
        while True:
            survey = TableSurvey(names, named_columns(self.categorical_features, names))
            of_target = TargetSurvey(target, is_regressor(self))
            try:
                for frame, columns, values in self._pieces(file, names, target, "reading"):
                    if of_target.n_rows == 0:
                        validate_data(self, frame[names], reset=True, skip_check_array=True)
                    survey.add(columns)
                    of_target.add(values)
                return file, survey, of_target
            except KindChanged as changed:
                if file.format != "csv":
                    raise ValueError(f"file {str(file.path)!r}: {changed}: write it with one type") from None
                marks = _marks(changed.texts)
                again = file.with_marks(changed.column, marks) if marks else file.with_text(changed.column)
                if again == file or changed.column in file.texts:
                    raise ValueError(f"file {str(file.path)!r}: {changed}: write it with one type") from None
                file = again

    def _pieces(
        self, file: TableFile, names: list[str], target: str, doing: str
    ) -> Iterator[tuple[pd.DataFrame, Columns, NDArray[Any]]]:
        """Read a file piece by piece: the frame, its features and its target."""
        first, what = 0, f"file {str(file.path)!r}"
        with tqdm(desc=doing, unit="row", unit_scale=True, disable=not self.verbose, leave=False) as bar:
            for frame in file.frames([*names, target], _READ_ROWS):
                (values,), _ = read_target(frame[target], f"column {target!r} of {what}")
                yield frame, read_columns(frame[names], what), self._as_target(values, target)
                first += len(frame)
                what = f"file {str(file.path)!r} from row {first} on, counted from there,"
                bar.update(len(frame))

    def _coding_of(
        self, file: TableFile, survey: TableSurvey, of_target: TargetSurvey, names: list[str], target: str
    ) -> Coding:
        """Turn what was seen into a coding. Columns are ordered by type and name: no digest of all rows is at hand."""
        clipped = self.scaling == "robust"
        schema = survey.schema(f"file {str(file.path)!r}", {name: list(m) for name, m in file.marks.items()})
        nodes = [column.node(clipped) for column in schema]
        keys = [(n.kind, n.levels, n.gaps, n.clipped, name) for n, name in zip(nodes, names, strict=True)]
        order = sorted(range(len(names)), key=keys.__getitem__)
        scaling = Scaling.joined([survey.columns[j].scaling(schema[j]) for j in order])
        encoder = Encoder(schema, tuple(order), tuple(nodes[j] for j in order), scaling)
        return Coding(encoder, (of_target.target(self._fit_target),))

    def _weights_of(self, coding: Coding, of_target: TargetSurvey) -> NDArray[np.float64] | None:
        """Return the weight of each class; None when all rows weigh alike."""
        target = coding.targets[0]
        if getattr(self, "class_weight", None) is None or not isinstance(target, ClassTarget):
            return None
        counts = of_target.counts_of(target).astype(np.float64)
        one_each = Rows(Columns(np.zeros((len(counts), 1)), ()), (target.classes,), counts)
        weighted = self._with_target_weights(coding, one_each)
        if len(weighted) < len(counts):
            raise ValueError("class_weight is 0 for a class, which fit_file does not leave out: drop its rows")
        assert weighted.weight is not None
        return weighted.weight / counts

    def _encoded(
        self,
        file: TableFile,
        held_out_file: TableFile | None,
        coding: Coding,
        of_target: TargetSurvey,
        of_class: NDArray[np.float64] | None,
        rows: RowFile,
        names: list[str],
        target: str,
        seed: np.random.SeedSequence,
    ) -> Rows:
        """Write the training rows into a file; return those to stop by."""
        rng = np.random.default_rng(_spawn(seed, 1))
        held = None
        if held_out_file is None:
            held = _Held(rng, of_target.counts_of(coding.targets[0]), self.validation_fraction)
        kept: list[Rows] = []
        for _, columns, values in self._pieces(file, names, target, "encoding"):
            piece = Rows(columns, (values,))
            codes = coding.classes_of(piece)
            if held is not None:
                is_held = held.of(np.zeros(len(piece), np.int64) if codes is None else codes)
                kept.append(_coded(coding, piece.take(np.flatnonzero(is_held))))
                piece = piece.take(np.flatnonzero(~is_held))
            channels = coding.table(piece).inputs
            if of_class is not None:
                channels = np.column_stack([channels, of_class[coding.classes_of(piece)]])
            rows.append(channels)
        rows.finish()
        if held_out_file is not None:
            kept = self._held_out_of(held_out_file, coding, names, target, rng)
        return _joined(kept)

    def _held_out_of(
        self, file: TableFile, coding: Coding, names: list[str], target: str, rng: np.random.Generator
    ) -> list[Rows]:
        """Read rows to stop by from a file of their own; at most so many, drawn at random."""
        total = sum(len(frame) for frame in file.frames([target], _READ_ROWS))
        if total == 0:
            raise ValueError(f"file {str(file.path)!r} has no rows to stop by")
        chosen = np.sort(rng.choice(total, min(total, MOST_HELD_OUT), replace=False))
        kept, first = [], 0
        for _, columns, values in self._pieces(file, names, target, "reading"):
            own = chosen[(chosen >= first) & (chosen < first + len(columns))] - first
            kept.append(_coded(coding, Rows(columns, (values,)).take(own), f"file {str(file.path)!r}"))
            first += len(columns)
        return kept

    # --- training and what it leaves -------------------------------------------------------------

    def _trained_on(
        self,
        rows: RowFile,
        held_out: Rows,
        coding: Coding,
        edges: EdgeRules | None,
        seed: np.random.SeedSequence,
        chunk_rows: int,
        of_class: NDArray[np.float64] | None,
    ) -> Any:
        layout = coding.layout
        sizes, regularizers = self._sizes(layout.n_features), self._all_regularizers()
        check_regularizers(regularizers, sizes)
        table = _as_table(coding, held_out, edges)
        if of_class is not None:
            weight = of_class[coding.targets[0].codes(held_out.targets[0])].astype(np.float32)  # type: ignore[union-attr]
            table = Table(table.inputs, table.layout, weight, table.constant, table.edges)
        return train_stream(
            rows,
            table,
            [_spawn(seed, 0, i) for i in range(self.n_members)],
            regularizers,
            order_seed=_spawn(seed, _ORDER, 1),
            chunk_rows=chunk_rows,
            weighted=of_class is not None,
            hidden_layer_sizes=sizes,
            schedule=self._schedule(),
            input_init=self.input_init,  # type: ignore[arg-type]
            progress=bool(self.verbose),
        )

    def _keep_graph_of(
        self,
        rows: RowFile,
        held_out: Rows,
        coding: Coding,
        of_target: TargetSurvey,
        names: list[str],
        edges: EdgeRules | None,
    ) -> None:
        self.__dict__.pop("graph_", None)  # of an earlier fit
        if not self.network_.has_all_nodes:
            return
        looked_at = evenly(np.arange(len(held_out)), _MOST_FOR_THRESHOLD)
        some = held_out.take(looked_at)
        by_member = [np.arange(len(some))] * self.network_.n_members
        spread = [1.0 if isinstance(t, ClassTarget) else of_target.spread for t in coding.targets]
        self._set_graph(
            coding,
            names,
            HeldOut(some.columns.cells, some.targets, spread, by_member),
            lambda most: _as_table(coding, held_out.take(evenly(np.arange(len(held_out)), most)), None),
            ColumnTraits.of_blocks(lambda: _as_values(rows, coding), numbers_among(coding)),
            edges,
        )


class _Held:
    """Choose rows to hold out as they come: a share of every class, and never a class's only row."""

    def __init__(self, rng: np.random.Generator, counts: NDArray[np.int64], fraction: float) -> None:
        total = int(counts.sum())
        share = min(n_held_out(total, fraction), MOST_HELD_OUT) / total
        wanted = np.minimum(np.round(share * counts).astype(np.int64), np.maximum(counts - 1, 0))
        if not wanted.any():
            wanted[np.argmax(counts)] = 1
        self.chosen = [np.sort(rng.choice(n, k, replace=False)) for n, k in zip(counts, wanted, strict=True)]
        self.seen = np.zeros(len(counts), np.int64)

    def of(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of the next rows, given by their classes, are held out."""
        held = np.zeros(len(codes), bool)
        for code in np.unique(codes):
            places = np.flatnonzero(codes == code)
            numbers = self.seen[code] + np.arange(len(places))
            held[places] = np.isin(numbers, self.chosen[code], assume_unique=True)
            self.seen[code] += len(places)
        return held


def _chosen(file: TableFile, target: str, columns: Sequence[str] | None) -> list[str]:
    """Return the names of the columns to predict from."""
    known = file.columns()
    check_columns([target], known, file.path)
    if columns is None:
        names = [name for name in known if name != target]
    else:
        if isinstance(columns, str):
            raise ValueError(f"columns={columns!r} must be a sequence of names, such as [{columns!r}]")
        names = list(columns)
        check_columns(names, known, file.path)
        if target in names:
            raise ValueError(f"columns has the target {target!r}: leave it out")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"columns has {twice!r} more than once")
    if not names:
        raise ValueError(
            f"file {str(file.path)!r} has no columns but the target {target!r}: there is nothing to predict from"
        )
    return names


def _check_rows(of_target: TargetSurvey, file: TableFile) -> None:
    if of_target.n_rows < 3:
        raise ValueError(
            f"file {str(file.path)!r} has {of_target.n_rows} rows: a network needs at least 3, two to train on and one "
            "to stop by"
        )


def _marks(texts: Sequence[str]) -> list[str]:
    """Find the missing-value marks for which alone texts are no numbers; none when there are other reasons."""
    return [t for t in texts if t.strip() in MISSING_MARKS] if as_numbers(texts) is not None else []


def _coded(coding: Coding, rows: Rows, what: str | None = None) -> Rows:
    """Keep the cells of rows as the encoder numbers them, so that pieces can be put together."""
    if what is None:
        cells = coding.cells(rows)
    else:
        cells = coding.encoder.cells(rows.columns, what)
        coding.encoder.warn_of_new_gaps(cells, what)
    return Rows(Columns(cells, ()), rows.targets)


def _joined(pieces: list[Rows]) -> Rows:
    cells = np.concatenate([piece.columns.cells for piece in pieces])
    return Rows(Columns(cells, ()), (np.concatenate([piece.targets[0] for piece in pieces]),))


def _as_table(coding: Coding, held_out: Rows, edges: EdgeRules | None) -> Table:
    features = coding.encoder.encode(held_out.columns.cells)
    inputs = np.hstack([features, coding.targets[0].encode(held_out.targets[0])]).astype(np.float32)
    own_edges = None if edges is None else edges.reordered(coding.encoder.node_order(1))
    return Table(inputs, coding.layout, None, coding.encoder.constant, own_edges)


def _as_values(rows: RowFile, coding: Coding) -> Iterator[NDArray[np.float64]]:
    """Go through some training rows: columns and target in the user's order and units, levels of more than two as 0."""
    encoder, layout = coding.encoder, coding.layout
    target = coding.targets[0]
    center, spread = encoder.scaling.center, encoder.scaling.spread
    if isinstance(target, ClassTarget):
        center, spread = np.r_[center, 0.0], np.r_[spread, 1.0]
    else:
        center, spread = np.r_[center, target.scaling.center], np.r_[spread, target.scaling.spread]
    place = np.argsort(encoder.node_order(1))
    for block in rows.blocks(_MOST_FOR_TRAITS):
        values = block[:, layout.output_channels[:, 0]].astype(np.float64) * spread + center
        yield values[:, place]
