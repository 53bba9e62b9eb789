"""Save a fitted model to one file, and load it again, without pickle."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from castlereg.atomic_write import atomic_write
from castlereg.persistence.archive import read_archive, write_archive
from castlereg.persistence.arrays import ArrayReader, ArrayWriter
from castlereg.persistence.json_content import Content, parse
from castlereg.persistence.model_state import ESTIMATORS, read_model, write_model
from castlereg.persistence.refusal import ModelFileError, Unreadable

_MODEL, _ARRAYS = "model.json", "arrays.safetensors"
_MOST_TEXT = 100_000_000  # bytes of JSON, which takes many times as much when it is read; models have some thousands
_LONGEST_REASON = 500  # characters: names in a file can be of any length


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to one file, which :func:`load` reads in any process.

    The file is written beside its place first and then moved there, so that there is never half a file.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of castlereg. Options that only pickle could store (a random generator as ``random_state``,
        a function as ``scoring``, a splitter or regularizer of your own) are left out with a warning: the loaded
        model predicts the same and has None in their place.
    path : str or path
        Where to; ``.castle`` by custom.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> import castlereg
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = castlereg.CastleRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     castlereg.save(model, f"{folder}/diabetes.castle")
    ...     loaded = castlereg.load(f"{folder}/diabetes.castle")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    from castlereg import __version__

    if type(model) is not ESTIMATORS.get(type(model).__name__):
        raise TypeError(f"a {type(model).__name__} has no model file; those that have are {', '.join(ESTIMATORS)}")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"this {type(model).__name__} is not fitted: call fit before save") from None
    arrays = ArrayWriter()
    content = json.dumps(write_model(model, arrays), allow_nan=False).encode("ascii")
    if len(content) > _MOST_TEXT:
        raise ValueError(f"the options and levels of this model are {len(content)} bytes of text, too many for a file")
    with atomic_write(Path(path)) as file:
        write_archive(file, {_MODEL: content, _ARRAYS: arrays.to_bytes()}, __version__)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that :func:`save` wrote.

    Nothing in the file is ever run, imported or unpickled, so that a file from elsewhere can be loaded. A file that was
    cut off or changed is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        Of the class that was saved; it predicts the same bits.

    Raises
    ------
    ModelFileError
        A ``ValueError`` that names the path, the reason and what to do.

    Examples
    --------
    >>> import tempfile
    >>> import castlereg
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     castlereg.load(file.name)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    castlereg.persistence.refusal.ModelFileError: cannot load ...: it is no zip file: the end of a model file is \
missing; give a file that castlereg.save wrote
    """
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait for ever
            raise Unreadable("it is no file", "give a file that castlereg.save wrote")
        with open(path, "rb") as file:
            pieces = read_archive(file, frozenset((_MODEL, _ARRAYS)))
        return _read(pieces)
    except Unreadable as refused:
        raise ModelFileError(f"cannot load {path}: {refused.reason[:_LONGEST_REASON]}; {refused.advice}") from None


def _read(pieces: dict[str, bytes]) -> Any:
    if len(pieces[_MODEL]) > _MOST_TEXT:
        raise Unreadable(f"its {_MODEL} has {len(pieces[_MODEL])} bytes, and no model's is that long")
    try:
        return read_model(Content(parse(pieces[_MODEL], _MODEL), _MODEL), ArrayReader(pieces[_ARRAYS]))
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise Unreadable(f"its parts do not go together ({error})") from error
