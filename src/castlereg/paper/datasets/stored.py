"""Tables stored as files: found or downloaded, and always checked."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from castlereg.atomic_write import atomic_write
from castlereg.notices import warn_user
from castlereg.paper.datasets.cells import as_cells, read_cells
from castlereg.paper.datasets.download import Origin, with_columns
from castlereg.paper.datasets.folders import VARIABLE, data_folder, folders
from castlereg.paper.datasets.verification import Figures, differences, figures_of, known_figures

_MOST_COLUMNS: Final = 40  # listed in a message


def stored_table(
    file: str, *, page: str, origin: Origin | None = None, path: str | Path | None = None, download: bool = True
) -> tuple[pd.DataFrame, str]:
    """Read a table of the catalogue.

    Parameters
    ----------
    file : str
        Name of a file of the catalogue.
    page : str
        Web page of the table, for messages.
    origin : Origin, optional
        Source of downloads.
    path : path, optional
        File to read; by default, the file is searched for.
    download : bool
        Whether to download a missing table.

    Returns
    -------
    cells : DataFrame
        Text cells.
    source : str
        Path of the file, or the origin if the download could not be saved.
    """
    figures = known_figures()[file]
    if path is not None:
        if not Path(path).is_file():
            raise FileNotFoundError(f"path={str(path)!r} is not a file")
        return _checked_file(Path(path), figures), str(path)
    for folder in folders().values():
        if (folder / file).is_file():
            return _checked_file(folder / file, figures), str(folder / file)
    if origin is None:
        raise FileNotFoundError(_missing_file_message(file, figures, page, "it has to be placed there by hand"))
    if not download:
        raise FileNotFoundError(_missing_file_message(file, figures, page, "downloads are disabled"))
    try:
        fetched = origin.fetch()
    except Exception as error:  # the remedy is the same for all errors
        reason = f"it could not be downloaded from {origin.title}: {error or type(error).__name__}"
        raise FileNotFoundError(_missing_file_message(file, figures, page, reason)) from error
    return _saved(file, _checked_download(file, fetched, figures, page, origin), origin)


def _checked_file(path: Path, figures: Figures) -> pd.DataFrame:
    cells = read_cells(path)
    remarks = differences(figures_of(cells), figures)
    if remarks:
        raise ValueError(
            f"{path.name}: {'; '.join(remarks)}. The file {path} is not the table of the catalogue: "
            "delete it, or replace it with a complete copy"
        )
    return cells


def _checked_download(file: str, fetched: pd.DataFrame, figures: Figures, page: str, origin: Origin) -> pd.DataFrame:
    try:
        cells = as_cells(with_columns(fetched, list(figures.columns), origin.title))
        remarks = differences(figures_of(cells), figures)
    except ValueError as error:
        remarks = [str(error)]
    if remarks:
        reason = f"the download from {origin.title} is not the table of the catalogue: {'; '.join(remarks)}"
        raise ValueError(_missing_file_message(file, figures, page, reason))
    return cells


def _saved(file: str, cells: pd.DataFrame, origin: Origin) -> tuple[pd.DataFrame, str]:
    path = data_folder() / file
    try:
        write_whole(cells, path)
    except OSError as error:
        warn_user(f"{file} was downloaded but cannot be saved in {path.parent}: {error}")
        return cells, origin.title
    return cells, str(path)


def write_whole(cells: pd.DataFrame, path: Path) -> None:
    """Write a table atomically: readers never see a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(cells.to_csv(index=False, lineterminator="\n").encode())


def _missing_file_message(file: str, figures: Figures, page: str, reason: str) -> str:
    searched = folders()
    listed = ", ".join(f"{folder} ({name})" for name, folder in searched.items())
    unset = "" if VARIABLE in searched else f" ({VARIABLE} can name another folder)"
    names = list(figures.columns)
    columns = ", ".join(names) if len(names) <= _MOST_COLUMNS else f"{names[0]}, {names[1]}, ..., {names[-1]}"
    return (
        f"{file} is not in {listed}{unset}, and {reason}.\n"
        f"Save it there as {file}: comma-separated, {figures.rows} rows and {len(names)} columns, with the header "
        f"{columns}.\nSource: {page}"
    )
