"""Save a fitted model to one file, and load it again, without pickle."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from castlereg.atomic_write import atomic_write
from castlereg.causal.structural import FittedWorld
from castlereg.persistence.container import Arrays, pack, unpack
from castlereg.persistence.json_content import DOES_NOT_FIT, ModelFileError, Unreadable
from castlereg.persistence.model_state import read_model, write_model
from castlereg.persistence.world_state import read_world, write_world

_LONGEST_REASON = 500  # characters, because names in a file can have any length


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator or structural model to one file, which :func:`load` reads in any process.

    The file appears at ``path`` only after it is completely written.

    Parameters
    ----------
    model : estimator or FittedWorld
        Any fitted estimator of castlereg, or a structural model learned by one; the file of a structural model contains
        the rows over which its answers are averaged. Options that only pickle could store (a random generator as
        ``random_state``, a function as ``scoring`` or in ``castle`` and ``recipe``, a custom splitter or regularizer
        class) are not saved. :func:`save` and :func:`load` warn about them; the loaded model makes the same
        predictions, and these options are None.
    path : str or path
        Usually ends in ``.castle``.

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

    arrays: Arrays = {}
    is_world = isinstance(model, FittedWorld)
    packed = pack(
        {"world": write_world(model, arrays)} if is_world else write_model(model, arrays), arrays, __version__
    )
    with atomic_write(Path(path)) as file:
        file.write(packed)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that :func:`save` wrote.

    Nothing in the file is run, imported or unpickled, so it is safe to load files from other people. An incomplete or
    modified file raises an error.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator or FittedWorld
        The saved model; its predictions or answers are the same bit by bit.

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
    castlereg.persistence.json_content.ModelFileError: cannot load ...: it is not a castlereg model file; \
pass a file that castlereg.save wrote
    """
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe could block forever
            raise Unreadable("it is not a regular file", "pass a file that castlereg.save wrote")
        with open(path, "rb") as file:
            model, arrays = unpack(file)
        try:
            if isinstance(model, dict) and set(model) == {"world"}:
                return read_world(model["world"], arrays)
            return read_model(model, arrays)
        except DOES_NOT_FIT as error:
            raise Unreadable(f"its parts are inconsistent ({error})") from error
    except Unreadable as error:
        raise ModelFileError(f"cannot load {path}: {error.reason[:_LONGEST_REASON]}; {error.advice}") from None
