"""A report as a file."""

from __future__ import annotations

import datetime
from pathlib import Path

from numpy.typing import ArrayLike

from castlereg.atomic_write import atomic_write
from castlereg.estimators.base import NetworkEstimator, Seed
from castlereg.report.content import report_content
from castlereg.report.page import page_template, render


def write_report(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    path: str | Path,
    *,
    title: str | None = None,
    evaluate: bool = True,
    cv: int = 5,
    random_state: Seed = None,
    date: datetime.date | None = None,
    verbose: bool | None = None,
) -> Path:
    """Write one self-contained HTML page on a fitted model: how well it predicts, its graph, how it was trained.

    Parameters
    ----------
    model : fitted estimator of castlereg
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        The table that the model was fitted on.
    y : array-like of shape (rows,) or (rows, targets)
        Its targets.
    path : str or Path
        File to write, usually ``something.html``; missing folders are created.
    title : str, optional
        By default made from the names of the targets.
    evaluate : bool
        Whether to cross-validate the model against the plain network and a guess. This trains clones of the model on
        rows of equal weight, ``cv`` times; without it the page takes a second.
    cv : int
        Number of folds.
    random_state : int, RandomState, Generator or None
        Decides folds, networks and intervals; by default the model's if that is a number, otherwise a fresh one. The
        page shows it, and the same seed gives the same page.
    date : date, optional
        Shown on the page; by default today.
    verbose : bool, optional
        Show a progress bar; by default in a terminal or notebook.

    Returns
    -------
    Path
        The file.

    Notes
    -----
    An estimator that chooses its strengths by cross-validation is evaluated as the single estimator with these
    strengths and as many networks; the page says so.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, write_report
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=3, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, X, y, f"{folder}/report.html", evaluate=False)
    ...     page.name
    'report.html'
    """
    page_template()  # a missing package should raise before the training, not after it
    content = report_content(
        model, X, y, title=title, evaluate=evaluate, cv=cv, random_state=random_state, date=date, verbose=verbose
    )
    page = render(content)
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as stream:
        stream.write(page.encode())
    return file
