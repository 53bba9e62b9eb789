"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="File that `castlereg fit --output` wrote.")]
Table = Annotated[
    Path,
    typer.Argument(help="CSV, TSV, Excel, JSON lines, Parquet or Feather file, or folder of Parquet; - is stdin."),
]
Targets = Annotated[list[str], typer.Option("--target", "-t", help="Column to predict; repeat it for several.")]
TaskName = Annotated[str, typer.Option("--task", help="auto (by the target's values), regression or classification.")]
Dropped = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeat it for several.")]
Categorical = Annotated[
    list[str] | None, typer.Option("--categorical", help="Column whose numbers are codes; repeat it for several.")
]
DropUnusable = Annotated[
    bool, typer.Option("--drop-unusable", help="Leave out identifiers and free text instead of stopping.")
]
Separator = Annotated[
    str | None, typer.Option("--sep", help="Separator of a text file, such as ';' or tab (default: detected).")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help="Decimal mark, . or , (default: detected).")]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of a text file, such as latin-1 (default: detected).")
]
Epochs = Annotated[int, typer.Option(min=1, help="Most passes over the rows.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
