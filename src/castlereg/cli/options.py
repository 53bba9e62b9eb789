"""Options that several commands share, each declared once, and groups of them.

A command with a parameter such as ``shown: Output`` has all options of this group, see ``command`` in ``app``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from castlereg.notices import shows_progress

if TYPE_CHECKING:
    from castlereg import EdgeConstraints
    from castlereg.table.files import TableFile

_TABLE = "CSV, TSV, Excel, JSON Lines, Parquet or Feather file, or a folder of Parquet files; - reads stdin."
Names = list[str] | None
Model = Annotated[Path, Argument(help="Model file, written by `castlereg fit --output`.")]
Table = Annotated[Path, Argument(help=_TABLE)]
ModelOrTable = Annotated[Path, Argument(metavar="MODEL|TABLE", help=f"Model file, or with --target: {_TABLE}")]
Dropped = Annotated[Names, Option("--drop", help="Column to leave out; repeat for several.")]
Categorical = Annotated[
    Names, Option("--categorical", help="Numeric column to treat as categorical; repeat for several.")
]
Epochs = Annotated[int | None, Option("--epochs", min=1, help="Maximum number of epochs (default: set by the search).")]
Seed = Annotated[int, Option("--seed", min=0, help="Random seed; the same seed gives the same result.")]


@dataclass(frozen=True)
class Output:
    """What a command prints."""

    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress bar and no notes.")] = False
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of text.")] = False
    debug: Annotated[bool, Option("--debug", help="Show the full traceback of an error.")] = False

    @property
    def progress(self) -> bool:
        """Whether to show progress bars."""
        return shows_progress(False if self.quiet or self.as_json else None)


@dataclass(frozen=True)
class TextFormat:
    r"""How to read a text file, where the detected format is wrong; a tab may be written as ``tab`` or ``\t``.

    >>> TextFormat("tab", None, "latin-1").given
    {'separator': '\t', 'encoding': 'latin-1'}
    """

    sep: Annotated[str | None, Option(help="Separator of a text file, such as ';' or tab (default: detected).")] = None
    decimal: Annotated[str | None, Option(help="Decimal separator, . or , (default: detected).")] = None
    encoding: Annotated[str | None, Option(help="Encoding of a text file, such as latin-1 (default: detected).")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that are set."""
        separator = {"tab": "\t", r"\t": "\t"}.get(self.sep or "", self.sep)
        options = {"separator": separator, "decimal": self.decimal, "encoding": self.encoding}
        return {name: value for name, value in options.items() if value is not None}

    def open(self, path: Path) -> TableFile:
        """Open a table."""
        from castlereg.table.files import TableFile

        return TableFile.open(path, **self.given)


@dataclass(frozen=True)
class Knowledge:
    """What the user knows about the edges of the graph."""

    source: Annotated[Names, Option(help="Column without causes; repeat for several.")] = None
    sink: Annotated[Names, Option(help="Column without effects; repeat for several.")] = None
    tier: Annotated[Names, Option(help="Columns 'a,b' that no column of a later --tier causes; repeat.")] = None
    forbid: Annotated[Names, Option(help="Edge 'a->b' that does not exist; repeat for several.")] = None
    require: Annotated[Names, Option(help="Edge 'a->b' that exists; repeat for several.")] = None

    beliefs: Annotated[
        Path | None, Option(help="CSV file of beliefs, with columns cause, effect, probability, and perhaps source.")
    ] = None

    def constraints(self, names: Sequence[str], known: EdgeConstraints | None = None) -> EdgeConstraints | None:
        """Return the constraints on nodes with these names, in addition to those that are known."""
        if not any((self.source, self.sink, self.tier, self.forbid, self.require, self.beliefs)):
            return known
        from castlereg import EdgeConstraints

        known = known or EdgeConstraints()
        known = EdgeConstraints(
            required=[*known.required, *(_edge("--require", text, names) for text in self.require or ())],
            forbidden=[*known.forbidden, *(_edge("--forbid", text, names) for text in self.forbid or ())],
            tiers=[listed(text) for text in self.tier] if self.tier else known.tiers,
            sinks=[*known.sinks, *(self.sink or ())],
            sources=[*known.sources, *(self.source or ())],
            beliefs=[*known.beliefs, *(() if self.beliefs is None else _beliefs(self.beliefs))],
        )
        known.rules(names)  # raises for unknown columns and contradictions, before any training
        return known


def _edge(option: str, text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split ``a->b``; a name may contain an arrow if both ends are known."""
    parts = text.split("->")
    pairs = [("->".join(parts[:k]).strip(), "->".join(parts[k:]).strip()) for k in range(1, len(parts))]
    if not pairs:
        raise ValueError(f"{option} {text} must have the form 'cause->effect'")
    return next((pair for pair in pairs if set(pair) <= set(names)), pairs[0])


def _beliefs(path: Path) -> Sequence[Any]:
    """Read beliefs; names are texts, also those that look like numbers."""
    import pandas as pd

    from castlereg import EdgeConstraints

    texts = dict.fromkeys(("cause", "effect", "source"), str)
    try:
        return tuple(EdgeConstraints(beliefs=pd.read_csv(path, dtype=texts, keep_default_na=False)).beliefs)
    except (OSError, ValueError) as error:  # also if it is not a table
        raise ValueError(f"--beliefs {path}: {error}") from None


def listed(text: str) -> list[str]:
    """Split a list at its commas; a part that contains a comma is quoted.

    >>> listed('"Oslo, east",Bergen')
    ['Oslo, east', 'Bergen']
    """
    return next(csv.reader([text], skipinitialspace=True), [])


def check(rules: dict[str, bool]) -> None:
    """Raise the first message whose condition holds."""
    for message, is_wrong in rules.items():
        if is_wrong:
            raise ValueError(message)
