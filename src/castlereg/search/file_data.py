"""Preparation of a fit from a file that may be larger than memory: a pass to learn its columns, a pass to encode."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.causal.graph.sortability import ColumnTraits
from castlereg.fitted.held_out import HeldOut, evenly
from castlereg.random_streams import OfFit, fit_stream
from castlereg.search.fit import FEWEST_ROWS, numbers_among
from castlereg.search.request import Assignment, FitRequest
from castlereg.table.files import TableFile, check_columns, note_unnamed
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.reading import Columns, read_columns
from castlereg.table.rows import Rows, n_held_out
from castlereg.table.schema import KindChanged, monotone_signs, named_columns
from castlereg.table.survey import TableSurvey, TargetSurvey
from castlereg.table.table import Table
from castlereg.table.targets import ClassTarget, TargetKind, check_target, read_target, weighted_by_class
from castlereg.table.texts import MISSING_MARKS, as_numbers
from castlereg.target_losses import TargetLoss
from castlereg.training.file_source import FileSource, RowFile

MOST_HELD_OUT = 100_000  # validation rows, which stay in memory; enough to know a mean loss to a few thousandths
_MOST_FOR_THRESHOLD = 20_000
_MOST_FOR_TRAITS = 200_000
_READ_ROWS = 65_536  # rows of a file that are decoded at a time


@dataclass(frozen=True)
class FileData:
    """Rows in a file."""

    file: TableFile
    validation: TableFile | None  # file of validation rows
    features: Sequence[str]  # columns to predict from
    target: str  # column to predict
    target_kind: TargetKind
    categorical_features: Any = None  # as passed by the user
    class_weight: Any = None  # as in scikit-learn; None for regression
    chunk_rows: int = 131_072  # rows in memory at a time
    drop_unusable: bool = False  # whether identifiers and free text are ignored, or raise
    loss: TargetLoss | None = None  # of a numeric target; None for the squared error
    monotone: Any = None  # as passed by the user

    @classmethod
    def opened(
        cls,
        path: Any,
        target: str,
        validation: Any,
        columns: Sequence[str] | None,
        text: Mapping[str, str | None] = MappingProxyType({}),
        **options: Any,
    ) -> FileData:
        """Find the files and their columns; ``text`` are the options of :meth:`TableFile.open`."""
        file = TableFile.open(path, **text)
        features = _chosen(file, target, columns)
        note_unnamed(features, file)
        held_out = None if validation is None else TableFile.open(validation, **text)
        if held_out is not None:
            check_columns([*features, target], held_out.columns(), held_out)
        return cls(file, held_out, features, target, **options)

    @property
    def names(self) -> list[str]:
        """Names of features and target."""
        return [*self.features, self.target]

    @contextmanager
    def prepared(self, request: FitRequest) -> Iterator[AssignedFile]:
        """Encode the rows into a temporary file, and hold some out for validation."""
        file, survey, of_target = self._surveyed(request.verbose)
        if of_target.n_rows < FEWEST_ROWS:
            raise ValueError(
                f"{file} has {of_target.n_rows} rows: a network needs at least {FEWEST_ROWS}, two for "
                "training and one for validation"
            )
        preprocessing = survey.preprocessing(
            str(file),
            {name: list(marks) for name, marks in file.marks.items()},
            (of_target.target(),),
            clipped=request.clipped,
            drop_unusable=self.drop_unusable,
            monotone=monotone_signs(self.monotone, self.features),
        )
        encoding = _Encoding(self, file, preprocessing, of_target, request)
        width = preprocessing.layout.n_channels + (encoding.class_weights is not None)
        shuffle, order = (np.random.default_rng(fit_stream(request.seed, OfFit.FILE_ORDER, k)) for k in (0, 1))
        with RowFile(width, shuffle) as rows:
            held_out = encoding.write(rows)
            table = preprocessing.table(held_out, edges=request.edges)
            if encoding.class_weights is not None:
                codes = preprocessing.classes_of(held_out)
                table = replace(table, weight=encoding.class_weights[codes].astype(np.float32))
            source = FileSource(rows, table, self.chunk_rows, encoding.class_weights is not None, order)
            seeds = [fit_stream(request.seed, OfFit.NETWORKS, i) for i in range(request.n_members)]
            folds = [(np.zeros(0, np.int64), np.arange(len(held_out)))] * len(
                seeds
            )  # training rows come from the source
            yield AssignedFile(preprocessing, source, folds, seeds, held_out, of_target)

    def _surveyed(self, verbose: bool) -> tuple[TableFile, TableSurvey, TargetSurvey]:
        """Learn the kinds of the columns; read columns again if they turn out to be text."""
        file, categorical = self.file, named_columns(self.categorical_features, self.features)
        while True:
            survey = TableSurvey(self.features, categorical)
            of_target = TargetSurvey(self.target, self.target_kind == "numbers", self.loss)
            try:
                for columns, values in self.pieces(file, "reading", verbose):
                    survey.add(columns)
                    of_target.add(values)
                return file, survey, of_target
            except KindChanged as changed:
                marks = _marks(changed.texts)
                again = file.with_marks(changed.column, marks) if marks else file.with_text(changed.column)
                if file.format != "csv" or again == file or changed.column in file.texts:
                    raise ValueError(f"{file}: {changed}; write it with a single type") from None
                file = again

    def pieces(
        self, file: TableFile, doing: str, verbose: bool, ignored: Collection[int] = ()
    ) -> Iterator[tuple[Columns, NDArray[Any]]]:
        """Read a file piece by piece: its features, except for ``ignored`` ones, and its target."""
        first, what = 0, str(file)
        with tqdm(desc=doing, unit="row", unit_scale=True, disable=not verbose, leave=False) as bar:
            for frame in file.frames(self.names, _READ_ROWS):
                (values,), _ = read_target(frame[self.target], f"column {self.target!r} of {what}")
                columns = read_columns(frame[list(self.features)], what, ignored)
                yield columns, check_target(values, self.target, self.target_kind)
                first += len(frame)
                what = f"{file} (rows counted from row {first})"
                bar.update(len(frame))


@dataclass(frozen=True)
class _Encoding:
    """The second pass over a file: write training rows to a temporary file, keep validation rows in memory."""

    data: FileData
    file: TableFile
    preprocessing: Preprocessing
    of_target: TargetSurvey
    request: FitRequest

    @property
    def _ignored(self) -> frozenset[int]:
        return self.preprocessing.unusable

    @cached_property
    def class_weights(self) -> NDArray[np.float64] | None:
        """Weight of each class; None if all rows have the same weight."""
        target = self.preprocessing.targets[0]
        if self.data.class_weight is None or not isinstance(target, ClassTarget):
            return None
        counts = self.of_target.counts_of(target).astype(np.float64)
        by_class = Rows(Columns(np.zeros((len(counts), 1)), ()), (target.classes,), counts)
        weighted = weighted_by_class(by_class, [target], self.data.class_weight)
        if len(weighted) < len(counts):
            raise ValueError(
                "class_weight is 0 for a class, but fit_file cannot leave rows out: drop the rows of this class"
            )
        assert weighted.weight is not None
        return weighted.weight / counts

    def write(self, rows: RowFile) -> Rows:
        """Write the training rows; return the validation rows."""
        rng = np.random.default_rng(fit_stream(self.request.seed, OfFit.HELD_OUT_ROWS))
        held = None
        if self.data.validation is None:
            counts = self.of_target.counts_of(self.preprocessing.targets[0])
            held = _HeldOutOfStream(rng, counts, self.request.validation_fraction)
        held_rows: list[Rows] = []
        for columns, values in self.data.pieces(self.file, "encoding", self.request.verbose, self._ignored):
            piece = self.preprocessing.coded(Rows(columns, (values,)))
            if held is not None:
                codes = self.preprocessing.classes_of(piece)
                is_held = held.next(np.zeros(len(piece), np.int64) if codes is None else codes)
                held_rows.append(piece.take(np.flatnonzero(is_held)))
                piece = piece.take(np.flatnonzero(~is_held))
            channels = self.preprocessing.table(piece).inputs
            if self.class_weights is not None:
                channels = np.column_stack([channels, self.class_weights[self.preprocessing.classes_of(piece)]])
            rows.append(channels)
        rows.finish()
        return _joined(held_rows if self.data.validation is None else self._from_file(self.data.validation, rng))

    def _from_file(self, file: TableFile, rng: np.random.Generator) -> list[Rows]:
        """Read validation rows from a separate file, at most a fixed number, drawn at random."""
        if file.format == self.file.format:
            file = replace(file, texts=self.file.texts, marks=self.file.marks)
        total = sum(len(frame) for frame in file.frames([self.data.target], _READ_ROWS))
        if total == 0:
            raise ValueError(f"{file} has no validation rows")
        chosen = np.sort(rng.choice(total, min(total, MOST_HELD_OUT), replace=False))
        parts, first = [], 0
        for columns, values in self.data.pieces(file, "reading", self.request.verbose, self._ignored):
            in_piece = chosen[(chosen >= first) & (chosen < first + len(columns))] - first
            rows = self.preprocessing.coded(Rows(columns, (values,)).take(in_piece), str(file))
            self.preprocessing.warn_of_new_missing(rows.columns.cells, str(file))
            parts.append(rows)
            first += len(columns)
        return parts


@dataclass(frozen=True)
class AssignedFile(Assignment):
    """Encoded rows of a file, which all networks share."""

    source: FileSource
    validation: Rows  # coded by the schema
    of_target: TargetSurvey

    def held_out(self, networks: NDArray[np.int64]) -> HeldOut:
        """Return the validation rows, or enough of them."""
        some = self.validation.take(evenly(np.arange(len(self.validation)), _MOST_FOR_THRESHOLD))
        targets = self.preprocessing.targets
        spread = [1.0 if isinstance(target, ClassTarget) else self.of_target.spread for target in targets]
        return HeldOut(some.columns.cells, some.targets, spread, [np.arange(len(some))] * len(networks))

    def some_rows(self, most: int) -> Table:
        """Return at most ``most`` validation rows, evenly spaced."""
        return self.preprocessing.table(self.validation.take(evenly(np.arange(len(self.validation)), most)))

    def traits(self) -> ColumnTraits | None:
        """Measure the columns and the target that are numbers, in the units of the table."""
        return ColumnTraits.of_blocks(self._values, numbers_among(self.preprocessing))

    def counts(self, fold: int | None = None) -> list[NDArray[np.int64]]:
        """Return the number of rows of each class of the target; all folds have the same rows."""
        return [self.of_target.counts_of(target) for target in self.preprocessing.targets]

    def _values(self) -> Iterator[NDArray[np.float64]]:
        """Yield some training rows in the user's order and units; the values of categorical columns have no meaning."""
        target, layout = self.preprocessing.targets[0], self.preprocessing.layout
        of_target = (0.0, 1.0) if isinstance(target, ClassTarget) else (target.center, target.spread)
        center, spread = np.r_[self.preprocessing.center, of_target[0]], np.r_[self.preprocessing.spread, of_target[1]]
        position = np.argsort(self.preprocessing.node_order())
        for block in self.source.rows.blocks(_MOST_FOR_TRAITS):
            values = block[:, layout.output_channels[:, 0]].astype(np.float64) * spread + center
            yield values[:, position]


class _HeldOutOfStream:
    """Choose validation rows from a stream: a share of every class, but never its only row."""

    def __init__(self, rng: np.random.Generator, counts: NDArray[np.int64], fraction: float) -> None:
        total = int(counts.sum())
        share = min(n_held_out(total, fraction), MOST_HELD_OUT) / total
        wanted = np.minimum(np.round(share * counts).astype(np.int64), np.maximum(counts - 1, 0))
        if not wanted.any():
            wanted[np.argmax(counts)] = 1
        self._chosen = [np.sort(rng.choice(n, k, replace=False)) for n, k in zip(counts, wanted, strict=True)]
        self._passed = np.zeros(len(counts), np.int64)

    def next(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the next rows are held out, given their classes."""
        held = np.zeros(len(codes), bool)
        for code in np.unique(codes):
            positions = np.flatnonzero(codes == code)
            numbers = self._passed[code] + np.arange(len(positions))
            held[positions] = np.isin(numbers, self._chosen[code], assume_unique=True)
            self._passed[code] += len(positions)
        return held


def _chosen(file: TableFile, target: str, columns: Sequence[str] | None) -> list[str]:
    """Return the names of the columns to predict from."""
    known = file.columns()
    check_columns([target], known, file)
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r} must be a sequence of names, such as [{columns!r}]")
    names = [name for name in known if name != target] if columns is None else list(columns)
    check_columns(names, known, file)
    if target in names:
        raise ValueError(f"columns has the target {target!r}: drop it")
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"columns has {duplicate!r} more than once: drop the duplicates")
    if not names:
        raise ValueError(f"{file} has no column other than the target {target!r}: there is nothing to predict from")
    return names


def _marks(texts: Sequence[str]) -> list[str]:
    """Return the missing-value marks that turn numbers into text; none if there are other reasons."""
    return [t for t in texts if t.strip() in MISSING_MARKS] if as_numbers(texts) is not None else []


def _joined(pieces: list[Rows]) -> Rows:
    cells = np.concatenate([piece.columns.cells for piece in pieces])
    return Rows(Columns(cells, ()), (np.concatenate([piece.targets[0] for piece in pieces]),))
