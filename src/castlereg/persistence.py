"""Models in files: a safetensors file with the arrays of a model, and everything else as JSON in its metadata.

A model is a tree of objects. An object of a class in :data:`_CLASSES` is written as its constructor's arguments; other
values have their own kind. On reading, classes are looked up in this table and never imported by a name from the
file. Every argument is checked against its annotation, and rules check what annotations cannot say: shapes, and parts
that must match each other. The same checks run on writing, so what is written can be read.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from importlib import import_module
from itertools import repeat
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np
import pandas as pd
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from castlereg.atomic_write import atomic_write
from castlereg.causal.equations import causal_order
from castlereg.network import Form, pack, unpack
from castlereg.notices import warn_user

_CLASSES: dict[str, str] = {
    "castlereg.estimators": "CastleRegressor CastleClassifier CastleRegressorCV CastleClassifierCV NetworkRegressor "
    "NetworkClassifier",
    "castlereg.search": "Blend FittedModel FoldRecord Networks Recipe",
    "castlereg.causal.equations": "Draw LearnedEquation LearnedSystem",
    "castlereg.causal.fitted_world": "FittedWorld",
    "castlereg.causal.graph": "CausalGraph InputGraph",
    "castlereg.causal.knowledge": "EdgeConstraints",
    "castlereg.causal.smooth": "Basis JointBasis SmoothFunction",
    "castlereg.causal.structural": "Population",
    "castlereg.causal.variables": "Variable",
    "castlereg.layout": "EdgeRules Node",
    "castlereg.network": "Activation Channels Dense Embedding Parameters",
    "castlereg.regularizers": "Autoencoder BatchNorm Castle Corruption DeepLasso Dropout InputNoise L1 L2 MixUp Tangos",
    "castlereg.table.encoding": "Preprocessing Rows Standardization",
    "castlereg.table.reading": "Columns ColumnType",
    "castlereg.table.schema": "ColumnSchema",
    "castlereg.table.targets": "ClassTarget NumericTarget",
    "castlereg.target_losses": "Huber Poisson Quantiles",
    "sklearn.model_selection": "KFold StratifiedKFold GroupKFold StratifiedGroupKFold ShuffleSplit "
    "StratifiedShuffleSplit GroupShuffleSplit TimeSeriesSplit PredefinedSplit LeaveOneOut LeaveOneGroupOut",
}
"""Modules and names of all classes that a file may contain."""
_MODELS = (*_CLASSES["castlereg.estimators"].split(), "FittedWorld")  # what users save
_MAY_HAVE_NAN = {"CausalGraph", "Columns", "EdgeRules", "FittedModel", "FoldRecord", "InputGraph", "Population"}

_ADDED = {"hidden_array", "independences_array", "shapes_array", "prior_array", "prior"}  # may be missing in a file

_FORMAT = 3
_MAX_HEADER = 20_000  # kilobytes; most models have less than a hundred
_MAX_DEPTH = 30
_DTYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
_DAMAGED = "get the file again or save the model again"
_NOT_OURS = "pass a file that castlereg.save wrote"


class ModelFileError(ValueError):
    """A file that is not a complete model; the message names the path, the reason and what to do."""


class _Invalid(Exception):
    """The reason why a value is not written or content is rejected, and optionally what to do."""


def save(model: Any, path: str | os.PathLike[str], *, rows: bool = True) -> None:
    """Save a fitted estimator or structural model to one file, completely or not at all; :func:`load` reads it.

    Parameters
    ----------
    model : estimator or FittedWorld
        Any fitted estimator, or a structural model, whose file contains the rows over which its answers are averaged.
        Options that only pickle could store (a random generator, a function, a custom splitter or regularizer) are not
        saved: :func:`save` and :func:`load` warn, and these options are None in the loaded model.
    path : str or path
        Usually ends in ``.castle``.
    rows : bool
        Whether the file of an estimator contains up to 2,000 training rows, from which the graph and the structural
        equations are computed. Pass False to share a model without its data.

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

    name, writer = type(model).__name__, _Writer()
    if name not in _MODELS or type(model) is not _classes()[name]:
        raise TypeError(f"a {name} cannot be saved; pass one of {', '.join(_MODELS)}")
    content: dict[str, Any] = {"format": _FORMAT, "castlereg": __version__, "class": name}
    try:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model, msg="this %(name)s is not fitted; call fit before save")
            options = model.get_params(deep=False)
            saved = {option: _saved(value, option) for option, value in options.items()}
            content["options"] = {option: writer.write(value, option) for option, value in saved.items()}
            content["lost"] = [option for option, value in saved.items() if value is not options[option]]
            content["named"] = hasattr(model, "feature_names_in_")
            model = model.model_.for_file(rows=rows)
            if model.folds is not None:
                folds = replace(model.folds, regularizers=_saved(model.folds.regularizers, "regularizers"))
                model = replace(model, folds=folds)
        content["model"] = writer.write(model, "model")
    except _Invalid as error:
        raise ValueError(f"this {name} cannot be saved: {error.args[0]}") from None
    metadata = {"castlereg": json.dumps(content, allow_nan=False, separators=(",", ":"))}
    packed = safetensors.numpy.save({**writer.arrays, "sha256": _digest(metadata, writer.arrays)}, metadata)
    if int.from_bytes(packed[:8], "little") > 1000 * _MAX_HEADER:
        raise ValueError(f"the options, levels and texts of this {name} take more than {_MAX_HEADER} kB: merge levels")
    with atomic_write(Path(path)) as file:
        file.write(packed)


def _saved(value: Any, name: str) -> Any:
    """Return a value that is not needed to predict, or None with a warning if only pickle could store it."""
    try:
        _Writer().write(value, name)
        return value
    except _Invalid as error:
        consequence = f"The loaded model makes the same predictions, but has {name}=None"
        warn_user(f"{name}={value!r} is not saved: {error}. {consequence}; set it before you fit again")
        return None


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that :func:`save` wrote.

    Nothing in the file is run, imported or unpickled, so it is safe to load files from other people. An incomplete or
    modified file raises a ``ModelFileError``, a ``ValueError`` that names the path, the reason and what to do.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator or FittedWorld
        The saved model; its predictions or answers are the same bit by bit.
    """
    path = Path(path)
    try:
        content, arrays = _unpacked(path)
        return _read_model(content, _Reader(arrays))
    # Errors of Python, NumPy and constructors for content of the right type with impossible values.
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        reason, advice = f"its parts are inconsistent ({error})", _DAMAGED
    except _Invalid as error:
        reason, advice = (*error.args, _DAMAGED)[:2]
    reason = " ".join(reason.split())[:500]  # names in a file can have any length
    raise ModelFileError(f"cannot load {path}: {reason}; {advice}")


def _read_model(content: Any, reader: _Reader) -> Any:
    name, options = content["class"], content.get("options")
    if name not in _MODELS:
        raise _Invalid(f"it contains {name!r}, which is not a model")
    cls: Any = _classes()[name]
    if issubclass(cls, BaseEstimator):
        # Options that are newer than the file keep their defaults.
        estimator = cls(**{option: reader.read(value, option) for option, value in options.items()})
        if lost := ", ".join(content["lost"]):
            warn_user(f"the file does not contain the option {lost}; set it before you fit again")
        cls = _classes()["FittedModel"]
    model = reader.read(content["model"], "model")
    if type(model) is not cls or reader.arrays:
        more = ", ".join(map(repr, reader.arrays))
        raise _Invalid(f"it has the arrays {more}, which are unknown" if more else f"it does not contain a {name}")
    if options is None:
        return model
    if set(model.target_kinds) != {estimator.target_kind}:
        raise _Invalid(f"a {name} cannot predict its targets")
    names = [column.name for column in model.preprocessing.schema]
    estimator.model_, estimator.n_features_in_ = model, len(names)
    if content["named"]:
        estimator.feature_names_in_ = np.array(names, object)
    return estimator


def _unpacked(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the JSON and the arrays of a file."""
    if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe could block forever
        raise _Invalid("it is not a regular file", _NOT_OURS)
    with open(path, "rb") as file:
        size, start = os.fstat(file.fileno()).st_size, file.read(100)
    if start[8:].startswith(b'{"__metadata__":{"sha256":') or b"manifest.json" in start[:100]:
        raise _Invalid("it was written by castlereg 0.1 or 0.2", "fit the model and save it again with this version")
    if not start[8:].startswith(b'{"__metadata__":{"castlereg":"'):
        raise _Invalid("it is not a castlereg model file", _NOT_OURS)
    if (length := int.from_bytes(start[:8], "little")) > 1000 * _MAX_HEADER:
        raise _Invalid(f"its header claims {length // 1000} kB, but the limit is {_MAX_HEADER} kB")
    try:
        with safetensors.safe_open(path, framework="np") as file:
            metadata, names = file.metadata(), file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise _Invalid(f"it is incomplete or damaged ({error})") from None
    content: Any = json.loads(metadata["castlereg"])
    if content["format"] != _FORMAT:
        raise _Invalid(f"it was written by castlereg {content['castlereg']}", "update castlereg")
    if arrays.pop("sha256").tobytes() != _digest(metadata, arrays).tobytes():
        raise _Invalid("it does not match its digest: the file is incomplete, damaged or modified")
    if any(length > size for array in arrays.values() for length in array.shape):  # of an empty array
        raise _Invalid("its arrays are invalid: one is longer than the file")
    return content, arrays


def _digest(metadata: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the SHA-256 of all content, so that any change of the file is detected."""
    digest = hashlib.sha256(metadata["castlereg"].encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name!r} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), np.uint8)


# --- values --------------------------------------------------------------------------------------------


def _texts(codes: NDArray[np.uint32]) -> NDArray[np.str_]:
    """Return texts of the characters with these codes, shape (texts, width)."""
    if codes.max(initial=0) > 0x10FFFF:
        raise ValueError("a text has characters that do not exist")
    return codes.view(f"U{codes.shape[1]}")[:, 0]


# Kinds of values that are not in _CLASSES: their type, their parts, and how to make them from their parts.
_KINDS: dict[str, tuple[type | None, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, repr, float),  # if it is not finite
    "tuple": (tuple, list, tuple),
    "dict": (dict, lambda value: [list(pair) for pair in value.items()], dict),
    "frame": (pd.DataFrame, lambda value: {name: np.asarray(value[name]) for name in value}, pd.DataFrame),
    "time": (pd.Timestamp, pd.Timestamp.isoformat, pd.Timestamp),
    "duration": (pd.Timedelta, pd.Timedelta.isoformat, pd.Timedelta),
    "masked": (np.ma.MaskedArray, lambda v: [v.data, np.ma.getmaskarray(v)], lambda v: np.ma.MaskedArray(v[0], v[1])),
    "objects": (None, list, lambda items: np.fromiter(items, object, len(items))),
    "texts": (None, lambda v: np.array(v).view(np.uint32).reshape(-1, v.itemsize // 4), _texts),
}


@cache
def _classes() -> dict[str, type]:
    return {name: getattr(import_module(module), name) for module, names in _CLASSES.items() for name in names.split()}


@cache
def _parameters(cls: Any) -> tuple[str, ...]:
    """Return the names of a constructor's arguments, which are attributes of the same names."""
    return tuple(inspect.signature(cls).parameters)


@dataclass
class _Writer:
    """Converts values to JSON, and collects their arrays. An object that appears several times is written once."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    numbers: dict[int, tuple[int, Any]] = field(default_factory=dict)  # by id, with the object, which keeps its id

    def write(self, value: Any, path: str) -> Any:
        """Return a value as JSON."""
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        if path.count("/") > _MAX_DEPTH:
            raise _Invalid("it is nested too deeply")
        if type(value) is list:
            return [self.write(item, f"{path}/{i}") for i, item in enumerate(value)]
        if id(value) in self.numbers:
            return {"kind": "same", "value": self.numbers[id(value)][0]}
        kind = next((kind for kind, (cls, _, _) in _KINDS.items() if type(value) is cls), "")
        if type(value) is np.ndarray and value.ndim == 1:
            kind = {"U": "texts", "O": "objects"}.get(value.dtype.kind, "")
        if kind:
            return {"kind": kind, "value": self.write(_KINDS[kind][1](value), path)}
        cls: Any = type(value)
        name = cls.__name__
        if _classes().get(name) is cls and not isinstance(value, BaseEstimator):
            fields = {name: getattr(value, name) for name in _parameters(cls)}
            written = {name: self.write(part, f"{path}/{name}") for name, part in fields.items()}
            _checked(name, fields, path)
            content = {"kind": name, "value": written}
        elif isinstance(value, np.ndarray | np.generic | jax.Array) and value.dtype.str[1:] in _DTYPES:
            self.arrays[path] = np.asarray(value, value.dtype.newbyteorder("="), order="C")
            content = {"kind": "number" if isinstance(value, np.generic) else "array", "value": path}
        else:
            raise _Invalid(f"{name} objects can only be pickled ({path})")
        self.numbers[id(value)] = len(self.numbers), value
        return content


@dataclass
class _Reader:
    """Undoes :class:`_Writer`; ``arrays`` are those that were not read yet."""

    arrays: dict[str, NDArray[Any]]
    objects: list[Any] = field(default_factory=list)

    def read(self, content: Any, path: str) -> Any:
        """Return the value of JSON that :meth:`_Writer.write` returned."""
        if path.count("/") > _MAX_DEPTH:
            raise _Invalid("a value is nested too deeply")
        if type(content) is list:
            return [self.read(item, f"{path}/{i}") for i, item in enumerate(content)]
        if type(content) is not dict:
            if type(content) is float and not math.isfinite(content):
                raise _Invalid(f"{path} is {content}")
            return content
        kind, parts = content["kind"], content["value"]
        if len(content) > 2 or not (kind in _KINDS or kind in _classes() or kind in ("array", "number", "same")):
            raise _Invalid(f"{path} has the unknown kind {kind!r}")
        if kind in _KINDS:
            return _KINDS[kind][2](self.read(parts, path))
        if kind == "same":
            return self.objects[parts]
        if kind in _classes():
            cls: Any = _classes()[kind]
            names = {*_parameters(cls)}
            # Fields of options that are newer than the file keep their defaults.
            wrong = parts.keys() - names or (names - parts.keys() - _ADDED if path.startswith("model") else ())
            if wrong or issubclass(cls, BaseEstimator):
                raise _Invalid(f"{path}, a {kind}, has missing or unknown fields ({', '.join(wrong)})")
            value = _checked(kind, {name: self.read(part, f"{path}/{name}") for name, part in parts.items()}, path)
        elif not _is_array(value := self.arrays.pop(parts), Any, has_nan=True):
            raise _Invalid(f"its array {parts!r} has an invalid type")
        self.objects.append(value[()] if kind == "number" else value)
        return self.objects[-1]


# --- checks --------------------------------------------------------------------------------------------


def _checked(name: str, fields: Mapping[str, Any], path: str) -> Any:
    """Make an object of arguments that have the annotated types, and check its rule."""
    cls: Any = _classes()[name]
    for key, part in fields.items():
        kind = _hints(cls).get(key, Any)
        if not _fits(part, kind, name in _MAY_HAVE_NAN):
            shown = f"an array of {part.dtype}" if isinstance(part, np.ndarray) else repr(part)[:80]
            raise _Invalid(f"{path}/{key} is {shown}, which is not finite or not a valid {kind}")
    value = cls(**fields)
    if name in _RULES and not _RULES[name](value):
        raise _Invalid(f"the parts of {path}, a {name}, are invalid or do not match each other")
    return value


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, localns={"pd": pd, **_classes()}) if is_dataclass(cls) or issubclass(cls, tuple) else {}


def _fits(value: Any, kind: Any, has_nan: bool) -> bool:
    """Return whether a value has an annotated type, and whether its numbers are finite if they must be."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, option, has_nan) for option in args)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in args)
    if origin is Callable:
        return False  # only pickle could store it
    if origin is np.ndarray or kind is jax.Array:
        return _is_array(value, np.float32 if kind is jax.Array else get_args(args[1])[0], has_nan)
    if origin in (dict, Mapping):
        return type(value) is dict and all(all(map(_fits, pair, args, repeat(has_nan))) for pair in value.items())
    if origin is tuple and args[-1] is not ...:
        return type(value) is tuple and len(value) == len(args) and all(map(_fits, value, args, repeat(has_nan)))
    if origin is not None:  # of any length
        sequences = (origin,) if origin in (tuple, list) else (tuple, list)
        return type(value) in sequences and all(_fits(item, args[0], has_nan) for item in value)
    if kind in (int, float):
        numbers: Any = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
        return isinstance(value, numbers) and type(value) is not bool and (has_nan or math.isfinite(value))
    return kind is Any or isinstance(value, (bool, np.bool_) if kind is bool else kind)


def _is_array(value: Any, scalar: Any, has_nan: bool) -> bool:
    """Return whether a value is an array of this type; single precision may be double."""
    if not isinstance(value, np.ndarray | jax.Array):
        return False
    array, dtypes = np.asarray(value), (np.float32, np.float64) if scalar is np.float32 else (scalar,)
    is_type = array.dtype.str[1:] in _DTYPES or array.dtype.kind in "OU" if scalar is Any else array.dtype in dtypes
    is_boolean = array.dtype != bool or array.view(np.uint8).max(initial=0) <= 1
    return is_type and is_boolean and (has_nan or array.dtype.kind != "f" or bool(np.isfinite(array).all()))


def _is_column(column: Any) -> bool:
    levels = column.levels
    is_used = column.kind != "unusable" or (column.constant and column.holds == "nothing" and levels is None)
    has_levels = levels is None or 0 < len(set(levels)) == len(levels)
    return is_used and has_levels and (not column.seasons or (column.holds == "dates" and levels is None))


def _is_preprocessing(preprocessing: Any) -> bool:
    nodes, center, spread = preprocessing.nodes, preprocessing.center, preprocessing.spread
    # The layout allocates memory for the levels of nodes; those of columns are in the file.
    pairs = zip(preprocessing.schema, nodes, strict=True)
    are_nodes = all(replace(column.node(node.clipped), monotone=node.monotone) == node for column, node in pairs)
    has_scales = center.shape == spread.shape == (len(nodes),) and bool((spread > 0).all())
    return are_nodes and has_scales and len(nodes) > 0 and len(preprocessing.targets) > 0


def _are_networks(networks: Any) -> bool:
    """Compare the shapes of all arrays with those of the layout."""
    parameters, scales, layout = networks.parameters, networks.standardization, networks.layout
    embedding, member, n_members = parameters.embedding, networks.member(0), networks.n_members
    if embedding is not None and embedding.weights.shape[1] != len(layout.embedded_nodes):
        return False  # before the layout allocates memory for its inputs
    expected = unpack(pack(member), Form(networks.hidden_layer_sizes, member.activation.name), layout)
    n_nodes = layout.n_nodes if networks.has_all_nodes else len(layout.targets)
    clips = (n_members, layout.n_channels) if layout.is_clipped.any() else None
    units = None if layout.is_squared.all() else (n_members, layout.n_nodes)
    return (
        jax.tree.map(np.shape, member) == jax.tree.map(np.shape, expected)
        and member.input_weights.shape[:2] == (layout.n_inputs, n_nodes)
        and all(np.size(array) and len(array) == n_members for array in jax.tree.leaves(parameters))
        and [None if array is None else array.shape for array in scales]
        == [(n_members, layout.n_channels), (n_members, layout.n_channels), clips, clips, units]
    )


def _is_blend(blend: Any) -> bool:
    weights, alike = blend.weights, {(part.n_members, id(part.preprocessing)) for part in blend.parts}
    is_mean = bool((weights >= 0).all()) and abs(weights.sum() - 1) < 1e-6
    return is_mean and weights.shape == (len(blend.parts),) == (len(blend.names),) and len(alike) == 1


def _are_folds(folds: Any) -> bool:
    numbers, scores = set(folds.fold_of.tolist()), folds.results["mean_test_score"]
    has_choice = 0 <= folds.best < len(scores) == len(folds.results["params"])
    is_complete = len(folds.seeds) == len(folds.folds) and len(folds.errors) == len(numbers)
    return has_choice and is_complete and numbers <= set(range(len(folds.folds)))


def _is_fitted_model(model: Any) -> bool:
    n, n_targets, n_members = len(model.preprocessing.schema), len(model.targets), model.blend.n_members
    folds, rows, edges, shape = model.folds, model.rows, model.edges, (n + n_targets,) * 2
    graphs = [graph for graph in (model.known_graph, model.known_input_graph) if graph is not None]
    return (
        (folds is None or (folds.fold_of.shape == (n_members,) and {n_targets} == set(map(len, folds.errors))))
        and (rows is None or (rows.columns.values.shape[1] == n and len(rows.targets) == n_targets))
        and (model.known_importances is None or model.known_importances.shape == (n,))
        and all(sorted(graph.names) == sorted(model.names) for graph in graphs)
        and (edges is None or edges.allowed.shape == edges.required.shape == shape)
        and (edges is None or edges.prior is None or edges.prior.shape == shape)
        and model.blend.preprocessing is model.preprocessing
        and model.networks.n_members == n_members
        and set(model.selected or ()) <= set(range(n))
        and set(model.engine.split(", ")) <= {"jax", "native", ""}
    )


def _is_graph(graph: Any) -> bool:
    shape = (len(graph.names),) * 2
    shares = [getattr(graph, f"{name}_array") for name in graph.shares]
    arrays = [array for array in vars(graph).values() if isinstance(array, np.ndarray)]
    return all(array.shape == shape and not (array < 0).any() for array in arrays) and not np.greater(shares, 1).any()


def _is_world(world: Any) -> bool:
    """Try all equations on a row."""
    (values, weight), variables, graph = world.population, world.variables, world.causal_graph
    levels = [np.arange(len(variable.levels or ())) for variable in variables]
    systems = {id(s): s for s in (world.system, *(s for draw in world.draws for s in (draw.whole, draw.resampled)))}
    for system in systems.values():
        causal_order(system.edges)  # raises for a cycle
        for node, (equation, codes) in enumerate(zip(system.equations, levels, strict=True)):
            shape, n_residuals = system.given(node, values[:, :1]).shape, np.size(equation.residuals)
            if equation.n_levels != len(codes) or shape != (max(len(codes), 1), 1) or not n_residuals:
                return False
    return (
        values.shape == (len(variables), len(weight))
        and not np.isinf(values).any()
        and all(np.isin(v[~np.isnan(v)], k).all() or not len(k) for v, k in zip(values, levels, strict=True))
        and bool((weight >= 0).all() and weight.any())
        and graph.names == tuple(variable.name for variable in variables)
        and np.array_equal(graph.edge_array, world.system.edges)
    )


_RULES: dict[str, Callable[[Any], bool]] = {
    "Blend": _is_blend,
    "CausalGraph": _is_graph,
    "InputGraph": _is_graph,
    "ClassTarget": lambda t: t.classes.ndim == 1 and len(t.classes) > 1 and all(t.classes[:-1] < t.classes[1:]),
    "ColumnSchema": _is_column,
    "FittedModel": _is_fitted_model,
    "FoldRecord": _are_folds,
    "FittedWorld": _is_world,
    "Networks": _are_networks,
    "NumericTarget": lambda target: target.spread > 0,
    "Preprocessing": _is_preprocessing,
    "Rows": lambda r: (
        r.columns.rows is None and {*map(len, (*r.targets, r if r.weight is None else r.weight))} == {len(r)}
    ),
}
