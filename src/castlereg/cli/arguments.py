"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="Model file, written by `castlereg fit --output`.")]
Table = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Excel, JSON Lines, Parquet or Feather file, or a folder of Parquet files; - reads stdin."
    ),
]
Targets = Annotated[list[str], typer.Option("--target", "-t", help="Column to predict; repeat for several.")]
TaskName = Annotated[
    str, typer.Option("--task", help="auto (inferred from the target's values), regression or classification.")
]
Dropped = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeat for several.")]
Categorical = Annotated[
    list[str] | None, typer.Option("--categorical", help="Numeric column to treat as categorical; repeat for several.")
]
DropUnusable = Annotated[
    bool,
    typer.Option(
        "--drop-unusable", help="Leave out identifier and free-text columns instead of stopping with an error."
    ),
]
Separator = Annotated[
    str | None, typer.Option("--sep", help="Field separator of a text file, such as ';' or tab (default: detected).")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help="Decimal separator, . or , (default: detected).")]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of a text file, such as latin-1 (default: detected).")
]
Epochs = Annotated[int, typer.Option(min=1, help="Maximum number of training epochs.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar and no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
