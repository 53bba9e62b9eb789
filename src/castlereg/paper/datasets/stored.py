"""Tables that are files: found, or downloaded and kept, and in either case checked."""

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

_MOST_COLUMNS: Final = 40  # of which a message lists the names


def stored_table(
    file: str, *, page: str, origin: Origin | None = None, path: str | Path | None = None, download: bool = True
) -> tuple[pd.DataFrame, str]:
    """Read a table of the catalogue.

    Parameters
    ----------
    file : str
        One of the catalogue's.
    page : str
        Where the table is described, for messages.
    origin : Origin, optional
        Where it can be downloaded.
    path : path, optional
        File to read instead of looking for one.
    download : bool
        Whether to download what is not there.

    Returns
    -------
    cells : DataFrame
        Of text.
    source : str
        Path of the file, or the origin when the download could not be kept.
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
        raise FileNotFoundError(_not_there(file, figures, page, "it has to be put there by hand"))
    if not download:
        raise FileNotFoundError(_not_there(file, figures, page, "downloads are switched off"))
    try:
        fetched = origin.fetch()
    except Exception as error:  # whatever goes wrong on the way, the remedy is the same
        why = f"it could not be downloaded from {origin.title}: {error or type(error).__name__}"
        raise FileNotFoundError(_not_there(file, figures, page, why)) from error
    return _kept(file, _checked_download(file, fetched, figures, page, origin), origin)


def _checked_file(path: Path, figures: Figures) -> pd.DataFrame:
    cells = read_cells(path)
    found = differences(figures_of(cells), figures)
    if found:
        raise ValueError(
            f"{path.name}: {'; '.join(found)}. The file {path} is not the table of the catalogue: "
            "delete it or put a whole copy in its place"
        )
    return cells


def _checked_download(file: str, fetched: pd.DataFrame, figures: Figures, page: str, origin: Origin) -> pd.DataFrame:
    try:
        cells = as_cells(with_columns(fetched, list(figures.columns), origin.title))
        found = differences(figures_of(cells), figures)
    except ValueError as error:
        found = [str(error)]
    if found:
        why = f"what {origin.title} sends is not the table of the catalogue: {'; '.join(found)}"
        raise ValueError(_not_there(file, figures, page, why))
    return cells


def _kept(file: str, cells: pd.DataFrame, origin: Origin) -> tuple[pd.DataFrame, str]:
    path = data_folder() / file
    try:
        write_whole(cells, path)
    except OSError as error:
        warn_user(f"{file} was downloaded but cannot be kept in {path.parent}: {error}")
        return cells, origin.title
    return cells, str(path)


def write_whole(cells: pd.DataFrame, path: Path) -> None:
    """Write a table so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(cells.to_csv(index=False, lineterminator="\n").encode())


def _not_there(file: str, figures: Figures, page: str, why: str) -> str:
    places = folders()
    looked = ", ".join(f"{folder} ({what})" for what, folder in places.items())
    unset = "" if VARIABLE in places else f"; {VARIABLE} can name another folder"
    names = list(figures.columns)
    columns = ", ".join(names) if len(names) <= _MOST_COLUMNS else f"{names[0]}, {names[1]}, ..., {names[-1]}"
    return (
        f"{file} was looked for in {looked}{unset}; it is not there, and {why}.\n"
        f"Put it there as {file}: comma-separated, {figures.rows} rows and {len(names)} columns, with the header "
        f"{columns}.\nWhere it comes from: {page}"
    )
