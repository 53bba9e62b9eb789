"""Read the tables of commands, for training or for a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from castlereg.options import check_choice, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.table.files import TableFile


def text_options(separator: str | None, decimal: str | None, encoding: str | None) -> dict[str, Any]:
    r"""Return the options of a text file that are set; a tab may be written as ``tab`` or ``\t``.

    >>> text_options("tab", None, "latin-1")
    {'separator': '\t', 'encoding': 'latin-1'}
    """
    tab = {"tab": "\t", r"\t": "\t"}
    given = {"separator": separator and tab.get(separator, separator), "decimal": decimal, "encoding": encoding}
    return {name: value for name, value in given.items() if value is not None}


def check_problem(targets: list[str], drop: list[str] | None, task: str) -> None:
    """Raise for targets that are duplicated or dropped, and for tasks that do not exist or have no effect."""
    check_choice("--task", task, ["auto", "regression", "classification"])
    if len(targets) > 1 and task != "auto":
        raise ValueError(
            f"--task {task} is for one target; with several, each task is inferred from the values: drop --task"
        )
    for name in targets:
        if targets.count(name) > 1:
            raise ValueError(f"--target {name} is duplicated: pass each target only once")
        if name in (drop or []):
            raise ValueError(f"--drop {name}: this column is the target; drop --target or --drop")


def column_options(categorical: list[str] | None, drop_unusable: bool) -> dict[str, Any]:
    """Return the column options of estimators that are set.

    >>> column_options(["zip"], False)
    {'categorical_features': ['zip']}
    """
    options: dict[str, Any] = {"categorical_features": categorical} if categorical else {}
    return options | ({"unusable_columns": "drop"} if drop_unusable else {})


def read_problem(file: TableFile, targets: list[str], drop: list[str] | None) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Read a table; return features, targets, and the number of rows left out because they have no target."""
    from castlereg.table.files import check_columns, note_unnamed

    frame = file.read()
    check_columns([*targets, *(drop or [])], list(frame.columns), file)
    features = [name for name in frame.columns if name not in (*targets, *(drop or []))]
    if not features:
        raise ValueError(f"{file} has only the target: add columns to predict it from")
    note_unnamed(features, file)
    return with_targets(frame, features, targets, file)


def open_for(model: Any, path: Path, text: dict[str, Any]) -> TableFile:
    """Open a table for a model; text columns of the training table are read as text, even if they look like numbers."""
    from castlereg.table.files import TableFile
    from castlereg.table.targets import ClassTarget

    file, fitted = TableFile.open(path, **text), model.model_
    texts = [column.name for column in fitted.preprocessing.schema if column.holds == "text"]
    targets = (target for target in fitted.targets if isinstance(target, ClassTarget))
    texts += [target.name for target in targets if isinstance(target.classes[0], str)]
    for name in texts:
        file = file.with_text(name)
    return file


def columns_for(model: Any, frame: pd.DataFrame, file: TableFile) -> tuple[list[str], list[str]]:
    """Return the features and targets of a model, and check that the table has them."""
    from castlereg.table.files import check_columns

    targets = [target.name for target in model.model_.targets]
    for name in targets:
        if name not in frame.columns:
            hint = did_you_mean(name, map(str, frame.columns)) or ": add it"
            raise ValueError(f"{file} has no column {name!r}, the model's target{hint}")
    features = feature_names(model, [name for name in frame.columns if name not in targets])
    check_columns(features, list(frame.columns), file)
    return features, targets


def feature_names(model: Any, columns: list[str]) -> list[str]:
    """Return the features of a model: by name, or the first columns if it was fitted without names."""
    return list(getattr(model, "feature_names_in_", columns[: model.n_features_in_]))


def with_targets(
    frame: pd.DataFrame, features: list[str], targets: list[str], file: TableFile
) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Return features, targets, and the number of rows left out because they have no target."""
    from castlereg.table.targets import has_targets, plain_target

    has_target = has_targets(frame[targets])
    if not has_target.any():
        raise ValueError(
            f"{file} has no row with a value of {', '.join(map(repr, targets))}: fill in the targets to learn from"
        )
    rows = frame[has_target]
    y = rows[targets].apply(lambda column: column if column.name in file.texts else plain_target(column))
    return rows[features], y.apply(_as_whole_numbers), int((~has_target).sum())


def _as_whole_numbers(column: pd.Series) -> pd.Series:
    """Convert whole numbers to integers; with missing values, pandas reads them as floats, and classes show as 1.0."""
    whole = column.dtype.kind == "f" and bool((column % 1 == 0).all()) and bool((column.abs() < 2**53).all())
    return column.astype("int64") if whole else column


def chosen_task(y: pd.DataFrame, task: str) -> tuple[str, str]:
    """Return the task and the reason for it; with several targets, the task of each is inferred from its values."""
    from castlereg.table.targets import check_target, inferred_task

    if y.shape[1] > 1:
        return "several targets", "each inferred from its values"
    if task == "auto":
        return inferred_task(y.iloc[:, 0])
    if task == "regression":
        try:
            check_target(y.iloc[:, 0].to_numpy(), str(y.columns[0]), "numbers")
        except (TypeError, ValueError) as error:
            raise ValueError(f"--task regression needs a numeric target: {error}") from error
    return task, "set by --task"


def one_or_all(y: pd.DataFrame) -> Any:
    """Return one target as a series, several as a table."""
    return y.iloc[:, 0] if y.shape[1] == 1 else y


def counted(n: int, noun: str = "row") -> str:
    """Return a count with its noun.

    >>> counted(1), counted(2)
    ('1 row', '2 rows')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"


def named(path: Path) -> str:
    """Return the name of a table for use in a sentence."""
    return "standard input" if str(path) == "-" else path.name
