"""Files of commands: checks before any work, and tables for training or for a saved model."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from castlereg.atomic_write import check_writable
from castlereg.options import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.cli.options import TextFormat
    from castlereg.table.files import TableFile

_TEXT = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")
_TABLES = (*_TEXT, ".parquet", ".pq", ".feather", ".arrow", ".xlsx", ".xls")
_ENDINGS = {"model": (".castle",), "page": (".html", ".htm"), "table": _TABLES}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst")


def check_paths(inputs: Mapping[str, Path], outputs: Mapping[str, Path | None]) -> None:
    """Raise for inputs that do not exist, and outputs that cannot be written or are the same as another file.

    The keys of ``inputs`` are nouns such as "table", those of ``outputs`` are options. Two paths are the same file if
    links, hard links or another spelling of the path lead to it.
    """
    inputs = {noun: _without_sheet(path) for noun, path in inputs.items()}
    for path in inputs.values():
        if str(path) != "-" and not path.exists():
            siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
            raise FileNotFoundError(f"file {str(path)!r} does not exist{did_you_mean(path.name, siblings)}")
    given = {option: path for option, path in outputs.items() if path is not None}
    check_writable(*given.values())
    regular = {option: path for option, path in given.items() if path.is_file() or not path.exists()}
    for (option, path), (noun, source) in itertools.product(regular.items(), inputs.items()):
        if _is_input(path, source):
            raise ValueError(f"{option} {path} would overwrite the {noun}, {source}: choose another file")
    for (option, path), (other, second) in itertools.combinations(regular.items(), 2):
        if _is_same(path, second):
            raise ValueError(f"{option} and {other} are the same file, {path}: choose two different files")


def check_name(option: str, path: Path | None, kind: str) -> None:
    """Raise if a model or page has the name of something else, which is likely a mistake."""
    for other, endings in _ENDINGS.items():
        if path is not None and other != kind and _suffix(path) in endings:
            advice = f"end it in {_ENDINGS[kind][0]}"
            raise ValueError(f"{option} {path} is the name of a {other}, but the output is a {kind}: {advice}")


def is_table(path: Path) -> bool:
    """Return whether a path is that of a table rather than a model."""
    return str(path) == "-" or path.is_dir() or _suffix(_without_sheet(path)) in _TABLES


def _suffix(path: Path) -> str:
    name = Path(path.name.lower())
    return Path(name.stem).suffix if name.suffix in _COMPRESSIONS else name.suffix


def _without_sheet(path: Path) -> Path:
    """Return the file of a sheet that is specified as ``book.xlsx#sheet``."""
    return path.with_name(path.name.partition("#")[0]) if "#" in path.name[1:] and not path.exists() else path


def _is_input(path: Path, source: Path) -> bool:
    with suppress(OSError):  # a path that does not exist, or standard input without a file
        if str(source) == "-":
            return os.path.samestat(os.stat(path), os.fstat(sys.stdin.fileno()))
        if os.path.samefile(path, source):
            return True
    return source.is_dir() and path.resolve().is_relative_to(source.resolve())


def _is_same(path: Path, other: Path) -> bool:
    """Compare files that need not exist; many file systems ignore the case of names."""
    with suppress(OSError):
        return os.path.samefile(path, other)
    path, other = path.resolve(), other.resolve()
    return path.parent == other.parent and path.name.casefold() == other.name.casefold()


class Rows(NamedTuple):
    """The rows of a table that have all targets."""

    X: pd.DataFrame
    targets: pd.DataFrame
    n_without_target: int

    @property
    def y(self) -> Any:
        """One target as a series, several as a table."""
        return self.targets.iloc[:, 0] if self.targets.shape[1] == 1 else self.targets


def training_rows(file: TableFile, targets: Sequence[str], drop: Sequence[str]) -> Rows:
    """Read the rows of a table to train on."""
    from castlereg.table.files import note_unnamed

    features = feature_names(file, targets, drop)
    note_unnamed(features, file)
    return _with_targets(file.read(), features, targets, file)


def feature_names(file: TableFile, targets: Sequence[str], drop: Sequence[str]) -> list[str]:
    """Return the columns to predict the targets from, and check the names that the user passed."""
    from castlereg.table.files import check_columns

    for name in targets:
        if targets.count(name) > 1:
            raise ValueError(f"--target {name} is duplicated: pass each target only once")
        if name in drop:
            raise ValueError(f"--drop {name}: this column is the target; drop --target or --drop")
    check_columns([*targets, *drop], file.names, file)
    features = [name for name in file.names if name not in (*targets, *drop)]
    if not features:
        raise ValueError(f"{file} has only the target: add columns to predict it from")
    return features


def loaded(model: Path, table: Path, text: TextFormat) -> tuple[Any, Rows, dict[str, Any]]:
    """Load a model and the rows of a table that has its features and targets; return them with facts to print."""
    from castlereg import load

    fitted = load(model)
    file = open_for(fitted, table, text)
    frame = file.read()
    targets = [target.name for target in fitted.model_.targets]
    for name in targets:
        if name not in frame.columns:
            hint = did_you_mean(name, map(str, frame.columns)) or ": add it"
            raise ValueError(f"{file} has no column {name!r}, the model's target{hint}")
    rows = _with_targets(frame, features_of(fitted, frame.drop(columns=targets), file), targets, file)
    facts = {"model": model, "table": table, "rows": len(rows.X), "rows_without_target": rows.n_without_target}
    return fitted, rows, facts


def open_for(model: Any, path: Path, text: TextFormat) -> TableFile:
    """Open a table for a model; text columns of the training table are read as text, even if they look like numbers."""
    file, fitted = text.open(path), model.model_
    texts = [column.name for column in fitted.preprocessing.schema if column.holds == "text"]
    texts += [t.name for t in fitted.targets if not t.is_numeric and isinstance(t.classes[0], str)]
    for name in texts:
        file = file.with_text(name)
    return file


def features_of(model: Any, frame: pd.DataFrame, file: TableFile) -> list[str]:
    """Return the features of a model: by name, or the first columns if it was fitted without names."""
    from castlereg.table.files import check_columns

    names = list(getattr(model, "feature_names_in_", frame.columns[: model.n_features_in_]))
    check_columns(names, list(frame.columns), file)
    return names


def _with_targets(frame: pd.DataFrame, features: Sequence[str], targets: Sequence[str], file: TableFile) -> Rows:
    """Leave out the rows that have no target."""
    from castlereg.table.targets import has_targets, plain_target

    features, targets = list(features), list(targets)
    has_target = has_targets(frame[targets])
    if not has_target.any():
        shown = ", ".join(map(repr, targets))
        raise ValueError(f"{file} has no row with a value of {shown}: fill in the targets to learn from")
    rows = frame[has_target]
    y = rows[targets].apply(lambda column: column if column.name in file.texts else plain_target(column))
    return Rows(rows[features], y.apply(_as_whole_numbers), int((~has_target).sum()))


def _as_whole_numbers(column: pd.Series) -> pd.Series:
    """Convert whole numbers to integers; with missing values, pandas reads them as floats, and classes show as 1.0."""
    whole = column.dtype.kind == "f" and bool((column % 1 == 0).all()) and bool((column.abs() < 2**53).all())
    return column.astype("int64") if whole else column


def chosen_task(y: pd.DataFrame, task: str) -> tuple[str, str]:
    """Return the task and the reason for it; targets of different kinds raise."""
    from castlereg.table.targets import check_target, inferred_task

    if task == "auto":
        tasks, reasons = zip(*[inferred_task(column) for _, column in y.items()], strict=True)
        if len({*tasks}) > 1:
            kinds = ", ".join(f"{name}: {target_task}" for name, target_task in zip(y, tasks, strict=True))
            raise ValueError(f"the targets need different tasks ({kinds}): fit one model for each, or pass --task")
        return tasks[0], " and ".join(dict.fromkeys(reasons))
    for name, column in y.items() if task == "regression" else ():
        try:
            check_target(column.to_numpy(), str(name), "numbers")
        except (TypeError, ValueError) as error:
            raise ValueError(f"--task regression needs a numeric target: {error}") from error
    return task, "set by --task"


def counted(n: int, noun: str = "row") -> str:
    """Return a count with its noun.

    >>> counted(1), counted(2)
    ('1 row', '2 rows')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"


def left_out(n: int) -> str:
    """Return a remark on rows without a target, for the end of a label."""
    return f"; {counted(n)} without a target left out" if n else ""
